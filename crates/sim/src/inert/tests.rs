//! Inert tiles as packets see them.

use super::*;
use crate::Node;
use crate::noc::{GridBuilder, Reply};
use crate::probe::RequestId;
use proptest::prelude::*;
use tilework_abi::board::Board;
use tilework_abi::noc::NocXy;

const CORE: Place = Place { node: 0, x: 1, y: 2 };
const NODE: NodeId = 7;

/// The inert tiles of a chip all of whose tiles are inert.
fn tiles(board: Board) -> InertTiles {
    let grid = GridBuilder::new(board.harvesting(), true).fill(NODE).build().unwrap();
    InertTiles::new(NODE, &Arc::new(grid))
}

fn send(tiles: &mut InertTiles, noc: u8, to: (u8, u8), body: Body) -> Result<Option<Body>, Fault> {
    let to = Dest::Unicast(Place { node: NODE, x: to.0, y: to.1 });
    tiles.deliver(100, Packet { noc, from: CORE, to, id: RequestId::default(), body });
    let mut out = Outbox::default();
    tiles.run(crate::NEVER, &mut out)?;
    Ok(out.take_all().pop().map(|d| d.packet.body))
}

fn read(tiles: &mut InertTiles, noc: u8, to: (u8, u8), addr: u64, len: u32) -> Result<Vec<u8>, Fault> {
    let reply = Reply { to: CORE, trid: 0, addr: 0 };
    match send(tiles, noc, to, Body::ReadRequest { addr, len, reply })? {
        Some(Body::ReadResponse { data, .. }) => Ok(data.to_vec()),
        other => panic!("not a read response: {other:?}"),
    }
}

fn word(tiles: &mut InertTiles, noc: u8, to: (u8, u8), addr: u64) -> Result<u32, Fault> {
    read(tiles, noc, to, addr, 4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
}

fn write(tiles: &mut InertTiles, to: (u8, u8), addr: u64, data: &[u8]) -> Result<Option<Body>, Fault> {
    send(tiles, 0, to, Body::WriteRequest { addr, data: data.into(), mask: None, reply: None })
}

/// Where the driver finds each kind of tile's NIU (tt-umd `NOC0_CONTROL_REG_ADDR_BASE_MAP`, and
/// MemoryMap.md's table).
#[test]
fn every_position_of_the_grid_says_where_it_is() {
    for board in [Board::P100, Board::P150] {
        let mut tiles = tiles(board);
        for (x, y) in (0..17).flat_map(|x| (0..12).map(move |y| (x, y))) {
            let bases: &[[u64; 2]] = match Site::at(x, y).unwrap() {
                Site::Tensix | Site::Ethernet { .. } => &[[0xFFB2_0000, 0xFFB3_0000]],
                Site::Dram { .. } => &[[0xFFB2_0000, 0xFFB3_0000], [0x12_FFB2_0000, 0x12_FFB3_0000]],
                Site::Empty => &[[0xFFB2_0000; 2], [0xFFB3_0000; 2], [0xFF00_0000; 2]],
                _ => &[[0xFFFF_FFFF_FFB2_0000; 2], [0xFFFF_FFFF_FFB3_0000; 2], [0xFFFF_FFFF_FF00_0000; 2]],
            };
            for base in bases {
                let id = [0, 1].map(|noc: u8| word(&mut tiles, noc, (x, y), base[usize::from(noc)] + 0x44).unwrap());
                let (x, y) = (u32::from(x), u32::from(y));
                let size = 17 << 12 | 12 << 19;
                assert_eq!(id, [x | y << 6 | size | 1 << 28, (16 - x) | (11 - y) << 6 | size]);
            }
        }
    }
}

#[test]
fn an_ethernet_tile_has_l1_registers_and_cores_that_stay_held() {
    let mut tiles = tiles(Board::P150);
    let tile = (1, 1);
    assert_eq!(word(&mut tiles, 0, tile, 0xFFB2_0148).unwrap(), NocXy::new(20, 25).encode());
    assert_eq!(word(&mut tiles, 0, tile, 0xFFB2_0048).unwrap(), 0x2_0000);
    let data: Vec<u8> = (0..=255).collect();
    for addr in [0, 0x1_0001, 0x7_FF00] {
        write(&mut tiles, tile, addr, &data).unwrap();
        assert_eq!(read(&mut tiles, 1, tile, addr, 256).unwrap(), data);
    }
    assert!(write(&mut tiles, tile, 0x7_FF01, &data).is_err(), "behind the end of L1");
    // What the driver reads to learn of the port (tt-umd `eth_status_t`): done, unused; and version
    // 1.8.0, a byte per part.
    assert_eq!(word(&mut tiles, 0, tile, 0x7_CC04).unwrap(), 3);
    assert_eq!(read(&mut tiles, 0, tile, 0x7_CFBC, 3).unwrap(), [0, 8, 1]);
    // Both cores held (bits 11 and 12); holding them again changes nothing, releasing
    // one is a fault.
    assert_eq!(word(&mut tiles, 0, tile, 0xFFB1_21B0).unwrap() & 0x1800, 0x1800);
    write(&mut tiles, tile, 0xFFB1_21B0, &0x4_7800u32.to_le_bytes()).unwrap();
    assert_eq!(word(&mut tiles, 0, tile, 0xFFB1_21B0).unwrap(), 0x4_7800);
    let fault = write(&mut tiles, tile, 0xFFB1_21B0, &0x4_7000u32.to_le_bytes()).unwrap_err();
    assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
    // Its NIUs count what they serve: the reads above.
    assert!(word(&mut tiles, 0, tile, 0xFFB2_0200 + 4 * 53).unwrap() > 5);
    assert_eq!(word(&mut tiles, 0, tile, 0xFFB3_0200 + 4 * 53).unwrap(), 3);
}

#[test]
fn atomics_work_on_ethernet_l1() {
    use tilework_abi::noc::atomic;
    let mut tiles = tiles(Board::P150);
    let reply = Some(Reply { to: CORE, trid: 0, addr: 0 });
    for old in 0..3 {
        let body = Body::AtomicRequest { addr: 0x100, len_be: atomic::incr32(0x100), data: 1, reply };
        match send(&mut tiles, 0, (16, 1), body).unwrap() {
            Some(Body::AtomicResponse { value, .. }) => assert_eq!(value, old),
            other => panic!("not an answer: {other:?}"),
        }
    }
    let body = Body::AtomicRequest { addr: 0x2001_0000, len_be: atomic::incr32(0), data: 1, reply };
    assert!(send(&mut tiles, 0, (8, 3), body).is_err(), "no L1 in an L2CPU tile");
}

#[test]
fn an_l2cpu_tile_stores_its_registers() {
    let mut tiles = tiles(Board::P100);
    for addr in [0x2000_0010, 0x2FF0_0000, 0xFFFF_F7FE_FFF1_0400] {
        write(&mut tiles, (8, 9), addr, &0x1234_5678u32.to_le_bytes()).unwrap();
        assert_eq!(word(&mut tiles, 0, (8, 9), addr).unwrap(), 0x1234_5678);
        assert_eq!(word(&mut tiles, 0, (8, 3), addr).unwrap(), 0, "another tile's");
    }
    let fault = word(&mut tiles, 0, (8, 9), 0x4000_0000).unwrap_err();
    assert_eq!((fault.class, fault.site.addr), (FaultClass::UnimplementedFunctionality, Some(0x4000_0000)));
}

#[test]
fn fused_off_and_empty_tiles_have_nothing_but_nius() {
    let mut tiles = tiles(Board::P100);
    for (x, y) in [(15, 2), (1, 1), (9, 5), (11, 0), (8, 2), (8, 4), (3, 0)] {
        for addr in [0, 0x1_0000, 0xFFB1_21B0, 0x8000_0000] {
            let fault = word(&mut tiles, 0, (x, y), addr).unwrap_err();
            assert_eq!((fault.class, fault.site.addr), (FaultClass::UndefinedBehavior, Some(addr)), "({x},{y})");
        }
    }
    // Firmware stops the clock of what is fused off (NIU_CFG_0, bit 12).
    for (x, y) in [(15, 2), (1, 1), (9, 5)] {
        assert_eq!(word(&mut tiles, 0, (x, y), 0xFFB2_0100).unwrap() & 1 << 12, 1 << 12);
    }
}

#[test]
fn odd_requests_are_faults() {
    let mut tiles = tiles(Board::P150);
    assert!(read(&mut tiles, 0, (1, 1), 0xFFB2_0044, 8).is_err(), "two registers at once");
    assert!(read(&mut tiles, 0, (1, 1), 0, 16385).is_err(), "more than a packet");
    assert!(write(&mut tiles, (1, 1), 0xFFB2_0040, &[1, 0, 0, 0]).is_err(), "a request from a tile that does not run");
    assert!(write(&mut tiles, (1, 1), 0xFFB1_2001, &[0; 4]).is_err(), "not a register's address");
    let all: Arc<[Place]> = Arc::from([Place { node: NODE, x: 1, y: 1 }]);
    let body = Body::WriteRequest { addr: 0, data: [0; 4].as_slice().into(), mask: None, reply: None };
    tiles.deliver(0, Packet { noc: 0, from: CORE, to: Dest::Multicast(all), id: RequestId::default(), body });
    assert!(tiles.run(crate::NEVER, &mut Outbox::default()).is_err(), "a multicast");
}

/// Addresses around everything that is built.
fn addresses() -> impl Strategy<Value = u64> {
    let near =
        [0, 0x7_FFFF, 0xFF00_0000, 0xFFB1_21B0, 0xFFB2_0000, 0xFFB3_0000, 0x2000_0000, 0xFFFF_FFFF_FFB2_0000, u64::MAX];
    (prop::sample::select(near.to_vec()), -0x800i64..0x900).prop_map(|(base, by)| base.wrapping_add_signed(by))
}

fn bodies() -> impl Strategy<Value = Body> {
    let reply = Reply { to: CORE, trid: 0, addr: 0 };
    let data = prop::collection::vec(any::<u8>(), 0..70);
    prop_oneof![
        (addresses(), 0u32..20_000).prop_map(move |(addr, len)| Body::ReadRequest { addr, len, reply }),
        (addresses(), data, any::<Option<u64>>()).prop_map(move |(addr, data, mask)| Body::WriteRequest {
            addr,
            data: data.into(),
            mask,
            reply: Some(reply)
        }),
        (addresses(), any::<u32>(), any::<u32>()).prop_map(move |(addr, len_be, data)| Body::AtomicRequest {
            addr,
            len_be,
            data,
            reply: Some(reply)
        }),
        Just(Body::WriteAck { reply }),
    ]
}

proptest! {
    /// Every packet is answered or causes a fault with the cycle of its arrival.
    #[test]
    fn any_packet_is_answered_or_a_fault(x in 0u8..17, y in 0u8..12, noc in 0u8..2, bodies in prop::collection::vec(bodies(), 1..8)) {
        let mut tiles = tiles(Board::P150);
        for body in bodies {
            let is_request = !matches!(body, Body::WriteAck { .. });
            match send(&mut tiles, noc, (x, y), body) {
                Ok(answer) => prop_assert_eq!(answer.is_some(), is_request),
                Err(fault) => prop_assert_eq!(fault.site.cycle, Some(100)),
            }
        }
    }
}
