//! The ARC tile as packets see it.

use super::*;
use crate::noc::{Body, Place, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;

const ARC: Place = Place { node: 1, x: 8, y: 0 };
const HOST: Place = Place { node: 0, x: 2, y: 0 };

fn send(arc: &mut ArcTile, body: Body) -> Result<Option<Body>, Fault> {
    arc.deliver(100, Packet { noc: 0, from: HOST, to: Dest::Unicast(ARC), body });
    let (mut out, mut taken) = (Outbox::default(), Vec::new());
    arc.run(crate::NEVER, &mut out)?;
    out.take_before(crate::NEVER, &mut taken);
    Ok(taken.pop().map(|d| d.packet.body))
}

fn word(arc: &mut ArcTile, addr: u64) -> Result<u32, Fault> {
    let reply = Reply { to: HOST, trid: 0, addr: 0 };
    match send(arc, Body::ReadRequest { addr, len: 4, reply })? {
        Some(Body::ReadResponse { data, .. }) => Ok(u32::from_le_bytes(data[..].try_into().unwrap())),
        other => panic!("not a read response: {other:?}"),
    }
}

/// Reads the table as a driver does, through the pointer in scratch word 13.
fn table(board: Board) -> BTreeMap<u32, u32> {
    let mut arc = ArcTile::new(board);
    let base = u64::from(word(&mut arc, 0x8003_0434).unwrap());
    assert!((0x1000_0000..=0x1007_FFFF).contains(&base));
    let count = word(&mut arc, base + 4).unwrap();
    let data = base + 8 + 4 * u64::from(count);
    assert_eq!(u64::from(word(&mut arc, 0x8003_0430).unwrap()), data, "scratch word 12 points at the data");
    (0..u64::from(count))
        .map(|i| {
            let entry = word(&mut arc, base + 8 + 4 * i).unwrap();
            (entry & 0xFFFF, word(&mut arc, data + 4 * u64::from(entry >> 16)).unwrap())
        })
        .collect()
}

#[test]
fn a_driver_learns_what_a_p100_has() {
    let t = table(Board::P100);
    assert_eq!(t[&36], 0x7F, "bank 7 is harvested");
    assert_eq!(t[&14], 1350);
    // Columns 15 and 16 are bits 3 and 1 of the mask.
    assert_eq!(t[&34], 0x3FFF & !0b1010);
    assert_eq!(t[&34].count_ones() as usize * 10, Board::P100.tensix_count());
    assert_eq!((u64::from(t[&1]) << 32 | u64::from(t[&2])) >> 36, 0x43);
}

#[test]
fn a_driver_learns_what_a_p150_has() {
    let t = table(Board::P150);
    assert_eq!(t[&36], 0xFF);
    assert_eq!(t[&34], 0x3FFF);
    assert_eq!(t[&22], 0x5555);
    assert_eq!((u64::from(t[&1]) << 32 | u64::from(t[&2])) >> 36, 0x41);
}

#[test]
fn firmware_has_started_and_coordinates_are_translated() {
    let mut arc = ArcTile::new(Board::P150);
    assert_eq!(word(&mut arc, 0x8003_0408).unwrap() & 7, 5);
    assert_eq!(word(&mut arc, 0x8005_0100).unwrap() >> 14 & 1, 1);
    assert_eq!(word(&mut arc, 0x8005_8100).unwrap() >> 14 & 1, 1);
}

#[test]
fn scratch_words_are_storage_and_the_rest_is_a_fault() {
    let mut arc = ArcTile::new(Board::P100);
    let write = |addr| Body::WriteRequest { addr, data: Arc::from([1, 2, 3, 4]), mask: None, reply: None };
    assert_eq!(send(&mut arc, write(0x8003_0400)).unwrap(), None);
    assert_eq!(word(&mut arc, 0x8003_0400).unwrap(), 0x0403_0201);
    assert_eq!(word(&mut arc, 0x8003_0060).unwrap(), 0);
    assert_eq!(send(&mut arc, write(0x8003_0074)).unwrap(), None);
    assert_eq!(word(&mut arc, 0x8003_0074).unwrap(), 0x0403_0201);
    for addr in [0x1000_1000, 0x8003_0078, 0x8003_0402, 0x8003_0500, 0x8002_0000, 0, u64::MAX] {
        let fault = send(&mut arc, write(addr)).unwrap_err();
        assert_eq!((fault.class, fault.site.addr), (FaultClass::UnimplementedFunctionality, Some(addr)));
    }
    for addr in [0x8002_0000, 0x0FFF_FFFC, 0x1008_0000, u64::MAX - 1] {
        assert_eq!(word(&mut arc, addr).unwrap_err().class, FaultClass::UnimplementedFunctionality);
    }
}
