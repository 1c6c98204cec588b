//! Multicasts to part of a rectangle, and counters that return to zero.

use super::Ram;
use super::niu_counters::{Bench, xy};
use super::niu_regs::{get, niu};
use crate::noc::{Dest, Niu, Outbox};
use tilework_abi::noc::{CLEAR_OUTSTANDING, NocRect, NocXy, counter, ctrl, init};
use tilework_riscv::Access;

/// The physical coordinates of the tiles that receive a multicast from (3,4), in the order of rows.
fn receivers(niu: &mut Niu, rect: u32, exclude: u32, flags: u32) -> Vec<(u8, u8)> {
    let fields = [
        (init::TARG_ADDR_LO, 0x1000),
        (init::RET_ADDR_LO, 0x1000),
        (init::RET_ADDR_HI, rect),
        (init::AT_LEN_BE, 4),
        (init::BRCST_EXCLUDE, exclude),
        (init::CTRL, ctrl::CMD_WR | ctrl::BRCST | ctrl::PATH_RESERVE | flags),
    ];
    for (field, value) in fields {
        niu.write(field, value, 0).expect("a field");
    }
    let start = niu.write(init::CMD_CTRL, 1, 0).expect("a request").expect("a start");
    let mut out = Outbox::default();
    niu.depart(start, &mut Ram::new(), &mut out).expect("a departure");
    let Some(Dest::Multicast(tiles)) = out.take_all().pop().map(|d| d.packet.to) else { panic!("not a multicast") };
    tiles.iter().map(|place| (place.x, place.y)).collect()
}

fn rect(x0: u8, y0: u8, x1: u8, y1: u8) -> NocRect {
    NocRect { start: NocXy::new(x0, y0), end: NocXy::new(x1, y1) }
}

/// `NOC_BRCST_EXCLUDE` that leaves a quadrant out, as tt-metal's `get_noc_exclude_region`
/// composes it.
fn quadrant(x: u32, y: u32, x_up: u32, y_up: u32) -> u32 {
    1 << 22 | y_up << 21 | x_up << 20 | y << 14 | x << 8
}

#[test]
fn a_quadrant_is_left_out() {
    // The case that a public probe of the register expects of hardware: rectangle
    // (10,2)..(14,11), corner (14,3), and 14,2 and 14,3 do not receive when columns count upwards
    // and rows downwards.
    let everything = receivers(&mut niu(0), rect(10, 2, 14, 11).encode(), 0, 0);
    assert_eq!(everything.len(), 50);
    let got = receivers(&mut niu(0), rect(10, 2, 14, 11).encode(), quadrant(14, 3, 1, 0), 0);
    let missing: Vec<_> = everything.iter().copied().filter(|t| !got.contains(t)).collect();
    assert_eq!(missing, [(14, 2), (14, 3)]);
    assert_eq!(got.len(), 48);
    for (x_up, y_up, left) in [(0, 0, 40), (1, 1, 41), (0, 1, 5), (1, 0, 48)] {
        let got = receivers(&mut niu(0), rect(10, 2, 14, 11).encode(), quadrant(14, 3, x_up, y_up), 0);
        assert_eq!(got.len(), left, "directions {x_up} {y_up}");
    }
}

#[test]
fn the_same_quadrant_on_the_other_noc_has_mirrored_coordinates_and_directions() {
    let (x, y) = (16 - 14, 11 - 3);
    let noc1 = receivers(&mut niu(1), rect(10, 2, 14, 11).encode_noc1(), quadrant(x, y, 0, 1), 0);
    let noc0 = receivers(&mut niu(0), rect(10, 2, 14, 11).encode(), quadrant(14, 3, 1, 0), 0);
    assert_eq!(noc1, noc0);
}

#[test]
fn columns_and_rows_are_kept_and_skipped_in_turn() {
    let columns = |tiles: Vec<(u8, u8)>| {
        let mut x: Vec<u8> = tiles.into_iter().map(|t| t.0).collect();
        x.dedup();
        x
    };
    let row = rect(1, 2, 16, 2).encode();
    // keep 1, skip 1; keep 2, skip 1; keep 1, skip 3: columns 8 and 9 are counted although no tile
    // there receives.
    for (keep, skip, expected) in [
        (1, 1, &[1, 3, 5, 7, 11, 13, 15][..]),
        (2, 1, &[1, 2, 4, 5, 7, 10, 11, 13, 14, 16][..]),
        (1, 3, &[1, 5, 13][..]),
        (1, 0, &[1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16][..]),
        (0, 1, &[1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16][..]),
    ] {
        assert_eq!(columns(receivers(&mut niu(0), row, keep | skip << 2, 0)), expected, "keep {keep}, skip {skip}");
    }
    let rows = receivers(&mut niu(0), rect(2, 2, 2, 11).encode(), 2 << 4 | 2 << 6, 0);
    assert_eq!(rows, [(2, 2), (2, 3), (2, 6), (2, 7), (2, 10), (2, 11)]);
    // A rectangle that wraps around the edge: distances from 15 in low bits are 0 and 1 for 15 and
    // 16, 1, 0 and 1 for 0, 1 and 2.
    let wrapped = receivers(&mut niu(0), rect(15, 2, 2, 2).encode(), 1 | 1 << 2, 0);
    assert_eq!(wrapped, [(1, 2), (15, 2)]);
}

#[test]
fn the_sender_receives_only_when_asked_to() {
    let around = rect(3, 4, 4, 4).encode();
    assert_eq!(receivers(&mut niu(0), around, 0, 0), [(4, 4)]);
    assert_eq!(receivers(&mut niu(0), around, 0, ctrl::BRCST_SRC_INCLUDE), [(3, 4), (4, 4)]);
    // Left out by the pattern, although included.
    assert_eq!(receivers(&mut niu(0), around, quadrant(3, 4, 0, 0), ctrl::BRCST_SRC_INCLUDE), [(4, 4)]);
}

#[test]
fn a_priority_changes_nothing_but_who_goes_first() {
    let mut niu = niu(0);
    assert_eq!(receivers(&mut niu, rect(3, 4, 4, 4).encode(), 0, 5 << 27), [(4, 4)]);
}

/// BlackholeA0/NoC/Interrupts.md and MemoryMap.md, "Interrupt status".
#[test]
fn counters_that_return_to_zero_are_remembered() {
    const CFG: u32 = 0x178;
    const CLR: u32 = 0x17C;
    const NUM: u32 = 0x378;
    const SOURCE: u32 = 0x37C;
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    for trid in [3, 9, 12] {
        let start = bench.start(
            100 * u64::from(trid),
            &[
                (init::TARG_ADDR_LO, 0x1000),
                (init::TARG_ADDR_HI, xy(3, 4)),
                (init::RET_ADDR_LO, 0x1000),
                (init::RET_ADDR_HI, xy(1, 2)),
                (init::AT_LEN_BE, 16),
                (init::PACKET_TAG, trid << 10),
            ],
        );
        bench.depart(start);
        let (niu, _) = bench.at(1, 2);
        assert_eq!(niu.counter(counter::MST_REQS_OUTSTANDING_ID + trid as usize), 1);
        assert_eq!(get(niu, SOURCE) >> trid & 1, 0, "not before the answer");
        if trid != 12 {
            bench.settle();
        } else {
            niu.write(CLEAR_OUTSTANDING, 1 << 12, 0).expect("a write");
        }
    }
    let (niu, _) = bench.at(1, 2);
    assert_eq!(niu.read(SOURCE, 0), Ok((1 << 3 | 1 << 9 | 1 << 12, Access::Watched)));
    assert_eq!(niu.read(NUM, 0), Ok((0, Access::Volatile)), "none is enabled");
    niu.write(CFG, 1 << 28 | 1 << 9 | 1 << 12, 0).expect("enables");
    assert_eq!([get(niu, NUM), get(niu, NUM)], [9, 9], "reads do not clear");
    niu.write(CFG, 1 << 9 | 1 << 12, 0).expect("enables");
    assert_eq!([get(niu, NUM), get(niu, NUM), get(niu, NUM)], [9, 12, 0]);
    assert_eq!(get(niu, SOURCE), 1 << 3);
    niu.write(CLR, 1 << 3, 0).expect("a write");
    assert_eq!((get(niu, SOURCE), get(niu, CLR)), (0, 0));
    // Clearing a counter that is zero is no transition.
    niu.write(CLEAR_OUTSTANDING, 0xFFFF, 0).expect("a write");
    assert_eq!(get(niu, SOURCE), 0);
}
