//! The ARC tile as packets see it.

use super::messages::code;
use super::*;
use crate::Node;
use crate::noc::GridBuilder;
use crate::noc::{Body, Data, Place, Reply};
use crate::probe::RequestId;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const ARC: Place = Place { node: 1, x: 8, y: 0 };
const HOST: Place = Place { node: 0, x: 2, y: 0 };

fn arc(board: Board) -> ArcTile {
    let grid = GridBuilder::new(board.harvesting(), true).fill(1).build().unwrap();
    ArcTile::new((board, 1), ARC, Arc::new(grid))
}

fn send(arc: &mut ArcTile, body: Body) -> Result<Option<Body>, Fault> {
    arc.deliver(100, Packet { noc: 0, from: HOST, to: Dest::Unicast(ARC), id: RequestId::default(), body });
    let mut out = Outbox::default();
    arc.run(crate::NEVER, &mut out)?;
    match out.take_all().pop().map(|d| d.packet.body) {
        // What the host asks wrongly is no fault of a program.
        Some(Body::Refused { fault, .. }) => Err(fault),
        answer => Ok(answer),
    }
}

fn word(arc: &mut ArcTile, addr: u64) -> Result<u32, Fault> {
    let reply = Reply { to: HOST, trid: 0, addr: 0 };
    match send(arc, Body::ReadRequest { addr, len: 4, reply })? {
        Some(Body::ReadResponse { data, .. }) => Ok(u32::from_le_bytes(data[..].try_into().unwrap())),
        other => panic!("not a read response: {other:?}"),
    }
}

/// Reads the table as a driver does, through the pointer in scratch word 13.
fn read_table(arc: &mut ArcTile) -> BTreeMap<u32, u32> {
    let base = u64::from(word(arc, 0x8003_0434).unwrap());
    assert!((0x1000_0000..=0x1007_FFFF).contains(&base));
    let count = word(arc, base + 4).unwrap();
    let data = base + 8 + 4 * u64::from(count);
    assert_eq!(u64::from(word(arc, 0x8003_0430).unwrap()), data, "scratch word 12 points at the data");
    (0..u64::from(count))
        .map(|i| {
            let entry = word(arc, base + 8 + 4 * i).unwrap();
            (entry & 0xFFFF, word(arc, data + 4 * u64::from(entry >> 16)).unwrap())
        })
        .collect()
}

fn table(board: Board) -> BTreeMap<u32, u32> {
    read_table(&mut arc(board))
}

#[test]
fn a_driver_learns_what_a_p100_has() {
    let t = table(Board::P100);
    assert_eq!(t[&36], 0x7F, "bank 7 is harvested");
    assert_eq!(t[&22], 0x1555_1555);
    assert_eq!(t[&14], 800, "nobody has said that the card is busy");
    assert_eq!(t[&35], 0, "no Ethernet");
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
    assert_eq!(t[&22], 0x5555_5555, "trained, and the self test passed");
    // Channels 5 and 8 are gone, as in tt-umd's description of a P150 (`eth_harvesting_mask` 288).
    assert_eq!(!t[&35] & 0x3FFF, 288);
    assert_eq!((t[&37], t[&38], t[&40]), (0xF, 1, 1));
    assert_eq!((u64::from(t[&1]) << 32 | u64::from(t[&2])) >> 36, 0x41);
}

#[test]
fn firmware_has_started_and_coordinates_are_translated() {
    let mut arc = arc(Board::P150);
    assert_eq!(word(&mut arc, 0x8003_0408).unwrap() & 7, 5);
    assert_eq!(word(&mut arc, 0x8005_0100).unwrap() >> 14 & 1, 1);
    assert_eq!(word(&mut arc, 0x8005_8100).unwrap() >> 14 & 1, 1);
}

#[test]
fn scratch_words_are_storage_and_the_rest_is_a_fault() {
    let mut arc = arc(Board::P100);
    let write = |addr| Body::WriteRequest { addr, data: Data::from([1, 2, 3, 4]), mask: None, reply: None };
    assert_eq!(send(&mut arc, write(0x8003_0400)).unwrap(), None);
    assert_eq!(word(&mut arc, 0x8003_0400).unwrap(), 0x0403_0201);
    assert_eq!(word(&mut arc, 0x8003_0060).unwrap(), 0);
    assert_eq!(send(&mut arc, write(0x8003_0074)).unwrap(), None);
    assert_eq!(word(&mut arc, 0x8003_0074).unwrap(), 0x0403_0201);
    for addr in [0x1007_FFFE, 0x8003_0078, 0x8003_0402, 0x8003_0500, 0x8002_0000, 0, u64::MAX] {
        let fault = send(&mut arc, write(addr)).unwrap_err();
        assert_eq!((fault.class, fault.site.addr), (FaultClass::UnimplementedFunctionality, Some(addr)));
    }
    for addr in [0x8002_0000, 0x0FFF_FFFC, 0x1008_0000, u64::MAX - 1] {
        assert_eq!(word(&mut arc, addr).unwrap_err().class, FaultClass::UnimplementedFunctionality);
    }
}

fn write(arc: &mut ArcTile, addr: u64, value: u32) {
    let data = Data::from(value.to_le_bytes());
    assert_eq!(send(arc, Body::WriteRequest { addr, data, mask: None, reply: None }).unwrap(), None);
}

/// Sends a message to queue `index` and takes the answer, step by step as tt-umd does
/// (`blackhole_arc_message_queue.cpp`).
fn message(arc: &mut ArcTile, index: u64, bell: (u64, u32), request: [u32; 8]) -> [u32; 8] {
    let control = u64::from(word(arc, 0x8003_042C).unwrap());
    let (base, info) = (word(arc, control).unwrap(), word(arc, control + 4).unwrap());
    let size = info & 0xFF;
    let queue = u64::from(base) + index * u64::from(2 * size * 32 + 32);
    let wptr = word(arc, queue).unwrap();
    assert_ne!(wptr.abs_diff(word(arc, queue + 16).unwrap()) % (2 * size), size, "full");
    for (i, value) in (0..).zip(request) {
        write(arc, queue + 32 + u64::from(wptr % size) * 32 + 4 * i, value);
    }
    write(arc, queue, (wptr + 1) % (2 * size));
    write(arc, bell.0, bell.1);
    let rptr = word(arc, queue + 4).unwrap();
    assert_ne!(word(arc, queue + 20).unwrap(), rptr, "no answer");
    let answer = queue + 32 + u64::from(size + rptr % size) * 32;
    let answer = std::array::from_fn(|i| word(arc, answer + 4 * i as u64).unwrap());
    write(arc, queue + 4, (rptr + 1) % (2 * size));
    answer
}

/// tt-umd's interrupt trigger and tt-kmd's.
const BELLS: [(u64, u32); 2] = [(0x8003_0100, 0x1_0000), (0x800B_0000, 0)];

#[test]
fn test_messages_are_answered_with_the_next_number_and_serial() {
    let mut arc = arc(Board::P150);
    for round in 0..20 {
        for (queue, bell) in [(0, BELLS[1]), (3, BELLS[0])] {
            let answer = message(&mut arc, queue, bell, [code::TEST.into(), 41 + round, 0, 0, 0, 0, 0, 0]);
            assert_eq!(answer, [0, 42 + round, 1 + round, 0, 0, 0, 0, 0]);
        }
    }
    let set = message(&mut arc, 3, BELLS[0], [code::SET_LAST_SERIAL.into(), 99, 0, 0, 0, 0, 0, 0]);
    assert_eq!(set, [0; 8]);
    assert_eq!(message(&mut arc, 3, BELLS[0], [code::TEST.into(), u32::MAX, 0, 0, 0, 0, 0, 0])[1..3], [0, 100]);
}

#[test]
fn the_ai_clock_follows_messages_and_power_settings() {
    let mut arc = arc(Board::P100);
    let mut send = |request: [u32; 2]| message(&mut arc, 3, BELLS[0], [request[0], request[1], 0, 0, 0, 0, 0, 0]);
    let clock = [code::GET_AICLK.into(), 0];
    assert_eq!(send(clock)[..3], [0, 800, 3]);
    assert_eq!(send([code::AICLK_GO_BUSY.into(), 0]), [0; 8]);
    assert_eq!(send(clock)[..3], [0, 1350, 3]);
    // One valid flag, and it says busy: then the message alone does not make the card idle
    // (tt-kmd's power state).
    assert_eq!(send([u32::from(code::POWER_SETTING) | 1 << 8 | 1 << 16, 0]), [0; 8]);
    assert_eq!(send([code::AICLK_GO_LONG_IDLE.into(), 0]), [0; 8]);
    assert_eq!(send(clock)[1], 1350);
    // No valid flags: nothing changes.
    assert_eq!(send([code::POWER_SETTING.into(), 0]), [0; 8]);
    assert_eq!(send(clock)[1], 1350);
    assert_eq!(send([u32::from(code::POWER_SETTING) | 4 << 8, 0]), [0; 8]);
    assert_eq!(send(clock)[1], 800);
    assert_eq!(send([code::FORCE_AICLK.into(), 1000]), [0; 8]);
    assert_eq!(send(clock)[..3], [0, 1000, 2]);
    assert_eq!(send([code::FORCE_AICLK.into(), 1500])[0], 1, "refused");
    assert_eq!(send(clock)[1], 1000);
    assert_eq!(send([code::FORCE_AICLK.into(), 0]), [0; 8]);
    assert_eq!(send([code::AICLK_GO_BUSY.into(), 0]), [0; 8]);
    assert_eq!(read_table(&mut arc)[&14], 1350, "telemetry shows it");
}

#[test]
fn a_message_that_the_firmware_does_not_know_is_answered_with_0xff() {
    let mut arc = arc(Board::P150);
    for unknown in [0x11, 0x56, 0x00, 0xFF] {
        assert_eq!(message(&mut arc, 1, BELLS[0], [unknown, 7, 0, 0, 0, 0, 0, 0]), [0xFF, 0, 0, 0, 0, 0, 0, 0]);
    }
    // What tt-kmd sends when it takes a card.
    for known in [code::ASIC_STATE0, code::SET_WDT_TIMEOUT, code::ASIC_STATE3] {
        assert_eq!(message(&mut arc, 0, BELLS[1], [known.into(), 0, 0, 0, 0, 0, 0, 0]), [0; 8]);
    }
}

#[test]
fn a_full_answer_queue_holds_further_requests_back_and_wrong_pointers_are_ignored() {
    let mut arc = arc(Board::P150);
    let control = u64::from(word(&mut arc, 0x8003_042C).unwrap());
    let queue = u64::from(word(&mut arc, control).unwrap());
    for i in 0..4 {
        write(&mut arc, queue + 32 + 32 * i, code::TEST.into());
    }
    write(&mut arc, queue, 4);
    write(&mut arc, 0x8003_0100, 1 << 16);
    assert_eq!((word(&mut arc, queue + 16).unwrap(), word(&mut arc, queue + 20).unwrap()), (4, 4));
    // Four answers wait: the fifth request must wait too, until one is taken.
    write(&mut arc, queue, 5);
    write(&mut arc, 0x8003_0100, 1 << 16);
    assert_eq!(word(&mut arc, queue + 16).unwrap(), 4);
    write(&mut arc, queue + 4, 1);
    write(&mut arc, 0x8003_0100, 1 << 16);
    assert_eq!((word(&mut arc, queue + 16).unwrap(), word(&mut arc, queue + 20).unwrap()), (5, 5));
    write(&mut arc, queue, 0x1234_5678);
    write(&mut arc, 0x8003_0100, 1 << 16);
    assert_eq!(word(&mut arc, queue + 16).unwrap(), 5);
}

#[test]
fn clocks_and_nius_can_be_read() {
    let mut arc = arc(Board::P150);
    // `send` asks at cycle 100: 3 counts of 50 MHz.
    assert_eq!((word(&mut arc, 0x8003_00E0).unwrap(), word(&mut arc, 0x8003_00E4).unwrap()), (3, 0));
    let node_id = 8 | 17 << 12 | 12 << 19 | 1 << 28;
    for base in [0x8005_0000, 0xFFFF_FFFF_FFB2_0000, 0xFFFF_FFFF_FFB3_0000, 0xFFFF_FFFF_FF00_0000] {
        assert_eq!(word(&mut arc, base + 0x44).unwrap(), node_id, "{base:#x}");
        assert_eq!(word(&mut arc, base + 0x148).unwrap(), 8);
    }
    assert_eq!(word(&mut arc, 0x8005_8044).unwrap(), 8 | 11 << 6 | 17 << 12 | 12 << 19);
}

#[test]
fn every_tag_stands_once_and_pairs_lie_side_by_side() {
    let mut arc = arc(Board::P150);
    let base = u64::from(word(&mut arc, 0x8003_0434).unwrap());
    let count = u64::from(word(&mut arc, base + 4).unwrap());
    let entries: Vec<_> = (0..count).map(|i| word(&mut arc, base + 8 + 4 * i).unwrap()).collect();
    let index: BTreeMap<_, _> = entries.iter().map(|entry| (entry & 0xFFFF, entry >> 16)).collect();
    assert_eq!(index.len() as u64, count);
    assert_eq!(read_table(&mut arc)[&33], count as u32);
    // tt-kmd reads both halves of a 64-bit number from consecutive words.
    assert_eq!(index[&2], index[&1] + 1);
    assert_eq!(index[&62], index[&61] + 1);
    // All tags that tt-umd knows (`telemetry.hpp`), less those that the public firmware does not
    // publish: 3, 39, 57..59.
    let published = (1..=68).filter(|tag| ![3, 39, 57, 58, 59].contains(tag));
    assert_eq!(index.keys().copied().collect::<Vec<_>>(), published.collect::<Vec<_>>());
}

proptest! {
    /// A host may write anything into the queues: the ARC answers, or leaves them alone.
    #[test]
    fn any_content_of_the_queues_is_survived(
        writes in prop::collection::vec((0u64..0x500, prop_oneof![0u32..10, any::<u32>()]), 0..40),
    ) {
        let mut arc = arc(Board::P150);
        for (offset, value) in writes {
            write(&mut arc, 0x1000_2000 + 4 * (offset / 4), value);
            write(&mut arc, BELLS[0].0, BELLS[0].1);
        }
        // The pointer and the telemetry of another page are untouched.
        prop_assert_eq!(word(&mut arc, 0x8003_042C).unwrap(), 0x1000_2000);
        prop_assert_eq!(read_table(&mut arc)[&36], 0xFF);
    }
}

#[test]
fn registers_take_the_accesses_of_their_rows_and_faults_name_them() {
    let blocks = [&regs::RESET_UNIT, &regs::MSI_CATCHER];
    let rows = blocks.into_iter().flat_map(|block| block.regs.iter().map(move |reg| (block, reg)));
    for (block, reg) in rows {
        let mut arc = arc(Board::P150);
        let addr = block.base + u64::from(reg.offset);
        let read = word(&mut arc, addr);
        let data = Data::from([0xFF; 4]);
        let written = send(&mut arc, Body::WriteRequest { addr, data, mask: None, reply: None });
        match reg.access {
            Kind::Rw => assert_eq!(word(&mut arc, addr), Ok(reg.mask), "{}", reg.name),
            Kind::Ro => assert!(read.is_ok() && written.unwrap_err().what.contains(reg.name), "{}", reg.name),
            Kind::WoFault => assert!(written.is_ok() && read.unwrap_err().what.contains(reg.name), "{}", reg.name),
            _ => panic!("{} has an access that the ARC tile does not know", reg.name),
        }
    }
}
