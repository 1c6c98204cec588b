//! Coordinate translation and broadcast opt-out as an NIU's own registers have them
//! (BlackholeA0/NoC/MemoryMap.md, "NIU and NoC router configuration"; tt-zephyr-platforms,
//! `noc_init.c`, for the masks and for what the tables of a card hold).

use super::niu_regs::{get, niu};
use super::{Ram, board_grid, tile, write_of};
use crate::FaultClass;
use crate::noc::{Dest, Niu, Outbox, Place};
use tilework_abi::board::Board;
use tilework_abi::noc::{self, NocRect, NocXy, ctrl, init};

const X_TABLE: u32 = 0x118;
const Y_TABLE: u32 = 0x130;
const COL_MASK: u32 = 0x150;
const ROW_MASK: u32 = 0x154;

/// Where a posted write to `word` goes, as NoC 0 coordinates; `None` when nowhere.
fn goes_to(niu: &mut Niu, word: u32, flags: u32) -> Option<Vec<(u8, u8)>> {
    let fields = [
        (init::TARG_ADDR_LO, 0x1000),
        (init::RET_ADDR_LO, 0x1000),
        (init::RET_ADDR_HI, word),
        (init::AT_LEN_BE, 4),
        (init::CTRL, ctrl::CMD_WR | flags),
    ];
    for (field, value) in fields {
        niu.write(field, value, 0).expect("a field");
    }
    let start = niu.write(init::CMD_CTRL, 1, 0).ok()?.expect("a start");
    let mut out = Outbox::default();
    niu.depart(start, &mut Ram::new(), &mut out).expect("a departure");
    Some(match out.take_all().pop().expect("a packet").packet.to {
        Dest::Unicast(place) | Dest::Copy(place) => vec![(place.x, place.y)],
        Dest::Multicast(tiles) | Dest::MulticastY(tiles) => tiles.iter().map(|p| (p.x, p.y)).collect(),
    })
}

fn xy(x: u8, y: u8) -> u32 {
    NocXy::new(x, y).encode()
}

/// A table register with these six entries.
fn entries(six: [u32; 6]) -> u32 {
    six.iter().enumerate().fold(0, |word, (i, entry)| word | entry << (5 * i))
}

#[test]
fn without_translation_coordinates_are_those_of_the_noc() {
    for noc in [0, 1] {
        let mut niu = niu(noc);
        let shipped = get(&mut niu, noc::NIU_CFG_0);
        assert_eq!(goes_to(&mut niu, xy(5, 6), 0), Some(vec![(5, 6)]), "translated");
        assert_eq!(goes_to(&mut niu, xy(17, 12), 0), Some(vec![(0, 0)]), "a DRAM port");
        niu.write(noc::NIU_CFG_0, shipped & !noc::NIU_CFG_0_TRANSLATE, 0).expect("translation off");
        let raw = if noc == 0 { (5, 6) } else { (16 - 5, 11 - 6) };
        assert_eq!(goes_to(&mut niu, xy(raw.0, raw.1), 0), Some(vec![(5, 6)]), "raw, NoC {noc}");
        assert_eq!(goes_to(&mut niu, xy(17, 12), 0), None, "beyond the torus");
        let (start, end) = if noc == 0 { ((2, 6), (3, 7)) } else { ((13, 4), (14, 5)) };
        let rect = NocRect { start: NocXy::new(start.0, start.1), end: NocXy::new(end.0, end.1) };
        let square = Some(vec![(2, 6), (3, 6), (2, 7), (3, 7)]);
        assert_eq!(goes_to(&mut niu, rect.encode(), ctrl::BRCST), square, "raw rectangle, NoC {noc}");
        niu.write(noc::NIU_CFG_0, shipped, 0).expect("translation on");
        assert_eq!(goes_to(&mut niu, xy(17, 12), 0), Some(vec![(0, 0)]));
    }
}

#[test]
fn an_niu_follows_tables_of_its_own() {
    let mut niu = niu(0);
    let shipped = get(&mut niu, X_TABLE);
    assert_eq!(shipped, entries([0, 1, 2, 3, 4, 5]), "columns of a card without harvesting");
    // Columns 1 and 2 change places.
    niu.write(X_TABLE, entries([0, 2, 1, 3, 4, 5]), 0).expect("a table");
    assert_eq!(goes_to(&mut niu, xy(1, 6), 0), Some(vec![(2, 6)]));
    assert_eq!(goes_to(&mut niu, xy(2, 6), 0), Some(vec![(1, 6)]));
    assert_eq!(goes_to(&mut niu, xy(3, 6), 0), Some(vec![(3, 6)]));
    let rect = NocRect { start: NocXy::new(2, 6), end: NocXy::new(3, 6) };
    let row = Some(vec![(1, 6), (2, 6), (3, 6)]);
    assert_eq!(goes_to(&mut niu, rect.encode(), ctrl::BRCST), row, "corners first, then the span");
    // A row that keeps X, a column that keeps Y.
    let rows = get(&mut niu, ROW_MASK);
    assert_eq!(rows, 0b11, "rows of PCIe and Ethernet");
    niu.write(ROW_MASK, rows | 1 << 6, 0).expect("a mask");
    assert_eq!(goes_to(&mut niu, xy(1, 6), 0), Some(vec![(1, 6)]));
    assert_eq!(goes_to(&mut niu, xy(1, 7), 0), Some(vec![(2, 7)]));
    niu.write(Y_TABLE, entries([0, 1, 2, 3, 8, 5]), 0).expect("a table");
    assert_eq!(goes_to(&mut niu, xy(3, 4), 0), Some(vec![(3, 8)]));
    niu.write(COL_MASK, 1 << 3, 0).expect("a mask");
    assert_eq!(goes_to(&mut niu, xy(3, 4), 0), Some(vec![(3, 4)]));
    assert_eq!(goes_to(&mut niu, xy(4, 4), 0), Some(vec![(4, 8)]));
    // Back to what the firmware left.
    for (off, value) in [(X_TABLE, shipped), (Y_TABLE, shipped), (ROW_MASK, rows), (COL_MASK, 0)] {
        niu.write(off, value, 0).expect("a register");
    }
    for at in [(1, 6), (2, 6), (3, 4)] {
        assert_eq!(goes_to(&mut niu, xy(at.0, at.1), 0), Some(vec![at]));
    }
}

#[test]
fn tables_of_noc_1_hold_mirrored_coordinates() {
    let mut niu = niu(1);
    assert_eq!(get(&mut niu, X_TABLE), entries([16, 15, 14, 13, 12, 11]));
    assert_eq!(get(&mut niu, Y_TABLE), entries([11, 10, 9, 8, 7, 6]));
    niu.write(X_TABLE, entries([16, 14, 15, 13, 12, 11]), 0).expect("a table");
    assert_eq!(goes_to(&mut niu, xy(1, 6), 0), Some(vec![(2, 6)]));
}

#[test]
fn broadcasts_pass_an_niu_by_that_is_opted_out() {
    for noc in [0, 1] {
        let mut niu = niu(noc);
        let grid = board_grid(Board::P150);
        let (me, other) = (tile(&grid, 3, 4), tile(&grid, 3, 5));
        let receive = |niu: &mut Niu, to| {
            let mut out = Outbox::default();
            niu.receive(9, write_of(noc, other, to, 4), &mut Ram::new(), &mut out).expect("a reception");
            niu.counter(noc::counter::SLV_POSTED_WR_REQ_RECEIVED)
        };
        assert_eq!(receive(&mut niu, Dest::Copy(me)), 1);
        // One bit of each mask is the NIU's own, that of its coordinates on its NoC.
        let own = if noc == 0 {
            [(noc::ROUTER_CFG_1, 3), (noc::ROUTER_CFG_3, 4)]
        } else {
            [(noc::ROUTER_CFG_1, 13), (noc::ROUTER_CFG_3, 7)]
        };
        for (i, (register, bit)) in own.into_iter().enumerate() {
            let before = get(&mut niu, register);
            assert_eq!(before >> bit & 1, 0);
            niu.write(register, before | 1 << bit, 0).expect("opted out");
            assert_eq!(receive(&mut niu, Dest::Copy(me)), 1 + 2 * i as u32, "a broadcast");
            assert_eq!(receive(&mut niu, Dest::Unicast(me)), 2 + 2 * i as u32, "a unicast");
            niu.write(register, before | 1 << (bit - 1), 0).expect("a neighbour's bit");
            assert_eq!(receive(&mut niu, Dest::Copy(me)), 3 + 2 * i as u32);
        }
    }
}

#[test]
fn what_cannot_receive_cannot_opt_in() {
    let grid = board_grid(Board::P150);
    let port: Place = grid.resolve(0, xy(17, 14)).expect("a DRAM port");
    let mut niu = Niu::new(0, port, NocXy::new(17, 14), 0x800, grid);
    let columns = get(&mut niu, noc::ROUTER_CFG_1);
    niu.write(noc::ROUTER_CFG_1, columns | 1 << 5, 0).expect("another column");
    let rows = get(&mut niu, noc::ROUTER_CFG_3);
    niu.write(noc::ROUTER_CFG_3, rows & !(1 << port.y), 0).expect("its column still keeps it out");
    let fault = niu.write(noc::ROUTER_CFG_1, columns & !(1 << port.x), 0).expect_err("it would receive");
    assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
    assert_eq!(get(&mut niu, noc::ROUTER_CFG_1), columns | 1 << 5);
}
