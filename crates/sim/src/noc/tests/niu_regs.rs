//! Registers of an NIU and the requests that it refuses.

use super::niu_counters::{Bench, xy};
use super::{Ram, board_grid, tile};
use crate::FaultClass;
use crate::noc::{GridBuilder, Niu, Outbox};
use proptest::prelude::*;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::noc::{self, NocRect, NocXy, atomic, ctrl, init};
use tilework_abi::reg::{Access as Kind, Slot};
use tilework_riscv::Access;

pub(super) fn niu(noc: u8) -> Niu {
    let grid = board_grid(Board::P150);
    Niu::new(noc, tile(&grid, 3, 4), NocXy::new(3, 4), 0x0001_0017, grid)
}

pub(super) fn get(niu: &mut Niu, off: u32) -> u32 {
    niu.read(off, 0).expect("a register").0
}

#[test]
fn identification() {
    let (mut a, mut b) = (niu(0), niu(1));
    // x, y, 17, 12, and bit 28 on NoC 0; (16 - 3, 11 - 4) on NoC 1.
    assert_eq!(get(&mut a, noc::NODE_ID), 3 | 4 << 6 | 17 << 12 | 12 << 19 | 1 << 28);
    assert_eq!(get(&mut b, noc::NODE_ID), 13 | 7 << 6 | 17 << 12 | 12 << 19);
    for buf in 0..4 {
        assert_eq!(get(&mut a, buf * noc::CMD_BUF_STRIDE + noc::ENDPOINT_ID), 0x0001_0017);
    }
    assert_eq!(get(&mut b, noc::ID_LOGICAL), 3 | 4 << 6);
    assert_eq!(get(&mut a, noc::NIU_CFG_0) & noc::NIU_CFG_0_TRANSLATE, noc::NIU_CFG_0_TRANSLATE);
    // Columns 0, 8, 9 and rows 0, 1 are opted out.
    assert_eq!(get(&mut a, noc::ROUTER_CFG_1), 1 << 0 | 1 << 8 | 1 << 9);
    assert_eq!(get(&mut a, noc::ROUTER_CFG_3), 0b11);
}

#[test]
fn configuration_is_storage_except_for_what_hardware_acts_on() {
    let mut niu = niu(0);
    for off in [noc::ROUTER_CFG_0, 0x10C, 0x114, noc::ID_LOGICAL, 0x178] {
        niu.write(off, 0xDEAD_BEEF, 0).expect("storage");
        assert_eq!(get(&mut niu, off), 0xDEAD_BEEF);
    }
    let kept = get(&mut niu, noc::NIU_CFG_0);
    niu.write(noc::NIU_CFG_0, kept | 1 | 0xFFFE << 16, 0).expect("clock gating and general use");
    assert_eq!(get(&mut niu, noc::NIU_CFG_0), kept | 1 | 0xFFFE << 16);
    let fault = niu.write(noc::NIU_CFG_0, kept | 1 << 12, 9).expect_err("tile clock off");
    assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
    assert_eq!((fault.site.tile, fault.site.cycle), (Some(NocXy::new(3, 4)), Some(9)));
    assert!(niu.write(0x158, 1, 0).is_err(), "translation of DRAM columns");
    assert_eq!(niu.write(0x16C, 0, 0), Ok(None), "as the card's firmware writes it");
    assert!(niu.write(noc::NIU_CFG_0, kept | 1 << 16, 0).is_err(), "request FIFOs");
}

#[test]
fn fields_read_back_and_unknown_registers_are_named() {
    let mut niu = niu(0);
    for buf in 0..4 {
        for field in (0..=0x34).step_by(4) {
            let off = buf * noc::CMD_BUF_STRIDE + field;
            niu.write(off, 0xFFFF_0000 | off, 0).expect("a field");
            let tag = if field == init::PACKET_TAG { 0xFFFF } else { u32::MAX };
            assert_eq!(get(&mut niu, off), (0xFFFF_0000 | off) & tag);
        }
    }
    for off in [0x38, 0x3C, 0x42, 0x4C, 0x6C, 0x180, 0x1FC, 0x500, 0x5FC, 0x600, 0x2000, 0xFFFC] {
        let fault = niu.read(off, 0).expect_err("no such register");
        assert!(fault.what.contains(&format!("{off:#x}")), "{fault}");
    }
    assert!(niu.write(noc::NODE_ID, 0, 0).is_err() && niu.write(noc::COUNTERS, 0, 0).is_err());
    assert_eq!(niu.write(init::CMD_CTRL, 0, 0), Ok(None));
}

#[test]
fn faults_name_the_register() {
    let mut niu = niu(0);
    let what = |fault: Option<crate::Fault>| fault.expect("a fault").what.clone();
    for (off, words) in [
        (noc::COUNTERS + 8, "write of NIU_MST_RD_RESP_RECEIVED (NIU register 0x208), which is read only"),
        (noc::COUNTERS + 4 * 18, "NIU_MST_REQS_OUTSTANDING_ID(2)"),
        (0x1800 + noc::NODE_ID, "NOC_NODE_ID"),
        (noc::PORT1_FLIT_COUNTER + 4, "PORT1_FLIT_COUNTER(1) (NIU register 0x504), which is not built"),
        (noc::MEMORY_SHUTDOWN, "MEMORY_SHUTDOWN_CONTROL changes from 0x0 to 0x7"),
        (noc::ECC_CTRL, "ECC_CTRL is set to 0x7f: making errors is not built"),
    ] {
        let value = if off == noc::ECC_CTRL { 0x7F } else { 7 };
        let found = what(niu.write(off, value, 0).err());
        assert!(found.contains(words), "`{found}` does not say `{words}`");
    }
    assert!(what(niu.read(noc::PORT2_FLIT_COUNTER, 0).err()).contains("PORT2_FLIT_COUNTER(0)"));
}

/// Registers that are an NIU's own, of each initiator and counters, with their offsets.
fn rows() -> impl Iterator<Item = (u32, Slot)> {
    (0..noc::NIU_SPAN).step_by(4).filter_map(|off| noc::register(off).map(|(_, slot)| (off, slot)))
}

#[test]
fn registers_take_the_accesses_of_their_rows() {
    for (off, Slot { reg, .. }) in rows() {
        let mut niu = niu(0);
        let read = niu.read(off, 0);
        assert_eq!(read.is_ok(), reg.access != Kind::NotBuilt, "{}", reg.name);
        if matches!(reg.access, Kind::Ro | Kind::NotBuilt) {
            assert!(niu.write(off, 0, 0).is_err(), "{}", reg.name);
            continue;
        }
        let old = read.map_or(0, |(value, _)| value);
        if reg.fixed != 0 {
            assert!(niu.write(off, old ^ reg.fixed, 0).is_err(), "{}", reg.name);
            assert_eq!(get(&mut niu, off), old, "{}: a refused write changes nothing", reg.name);
        }
        // Broadcast masks and requests have rules of their own.
        if [noc::ROUTER_CFG_1, noc::ROUTER_CFG_3].contains(&off) || off % noc::CMD_BUF_STRIDE == init::CMD_CTRL {
            continue;
        }
        assert_eq!(niu.write(off, old ^ !reg.fixed, 0), Ok(None), "{}", reg.name);
        let kept = if reg.access == Kind::Rw { reg.written(old, old ^ !reg.fixed).expect("not fixed") } else { 0 };
        assert_eq!(get(&mut niu, off), kept, "{}", reg.name);
    }
}

#[test]
fn status_of_things_that_do_not_happen_is_zero() {
    let mut niu = niu(1);
    // Error counts, ECC control, request FIFO status (in each initiator), counters being reset,
    // debug, fences (noc_parameters.h).
    let single = [0x50, 0x54, 0x58, 0x5C, 0x60, 0x174, 0x17C, 0x300, 0x374, 0x380, 0x3FC, 0x400, 0x4A8];
    let repeated = (0..4).flat_map(|buf| [buf * 0x800 + 0x64, buf * 0x800 + 0x68]);
    for off in single.into_iter().chain(repeated) {
        assert_eq!(niu.read(off, 0), Ok((0, Access::Watched)), "register {off:#x}");
    }
    for (off, value) in [(0x5C, 0b111), (0x60, 0xFFFF), (0x174, 0x11), (0x17C, 0xFFFF), (0x400, 0)] {
        assert_eq!(niu.write(off, value, 0), Ok(None), "register {off:#x}");
    }
    for (off, value) in [(0x5C, 1 << 3), (0x400, 1), (0x64, 0), (0x300, 0), (0x37C, 0), (0x14C, 1)] {
        assert!(niu.write(off, value, 0).is_err(), "register {off:#x}");
    }
}

#[test]
fn a_busy_initiator_is_volatile_and_must_not_be_touched() {
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    let fields = [
        (init::TARG_ADDR_LO, 0x1000),
        (init::TARG_ADDR_HI, xy(3, 4)),
        (init::RET_ADDR_LO, 0x1000),
        (init::RET_ADDR_HI, xy(1, 2)),
        (init::AT_LEN_BE, 16),
    ];
    let start = bench.start(0, &fields);
    let (niu, _) = bench.at(1, 2);
    assert_eq!(niu.read(init::CMD_CTRL, 1), Ok((1, Access::Volatile)));
    assert!(niu.write(init::TARG_ADDR_LO, 0, 1).is_err());
    assert!(niu.write(init::CMD_CTRL, 1, 1).is_err());
    assert_eq!(niu.write(0x800 + init::TARG_ADDR_LO, 0, 1), Ok(None), "another initiator is free");
    bench.depart(start);
    let (niu, _) = bench.at(1, 2);
    assert_eq!(niu.read(init::CMD_CTRL, 9), Ok((0, Access::Watched)));
    assert_eq!(niu.write(init::TARG_ADDR_LO, 0, 9), Ok(None));
}

/// Fields that make a good write from 0x1000 of (1,2) to 0x2000 of (3,4), and then `changes`.
fn refused(changes: &[(u32, u32)]) -> (FaultClass, String) {
    let mut bench = Bench::new(&[(1, 2)]);
    let (niu, _) = bench.at(1, 2);
    let good = [
        (init::TARG_ADDR_LO, 0x1000),
        (init::TARG_ADDR_HI, xy(1, 2)),
        (init::RET_ADDR_LO, 0x2000),
        (init::RET_ADDR_HI, xy(3, 4)),
        (init::CTRL, ctrl::CMD_WR | ctrl::RESP_MARKED),
        (init::AT_LEN_BE, 64),
    ];
    for &(field, value) in good.iter().chain(changes) {
        niu.write(field, value, 0).expect("a field");
    }
    match niu.write(init::CMD_CTRL, 1, 0) {
        Err(fault) => (fault.class, fault.what.clone()),
        Ok(start) => panic!("accepted: {start:?}"),
    }
}

use FaultClass::{
    MissingSpecification as Missing, UndefinedBehavior as Undefined, UnimplementedFunctionality as Unimplemented,
};

/// Register writes, the class of the fault that they end with, and a part of its text.
type Refused<'a> = (&'a [(u32, u32)], FaultClass, &'a str);

/// Checks that each of these changes of a good write is refused with this class and these words.
fn all_refused(table: &[Refused<'_>]) {
    for (changes, class, words) in table {
        let (found, what) = refused(changes);
        assert_eq!(found, *class, "{what}");
        assert!(what.contains(words), "`{what}` does not say `{words}`");
    }
}

#[test]
fn every_wrong_request_has_its_own_fault() {
    let wr = ctrl::CMD_WR;
    all_refused(&[
        (&[(init::AT_LEN_BE, 0)], Undefined, "0 bytes"),
        (&[(init::RET_ADDR_HI, xy(40, 40))], Undefined, "no tile has the coordinates (40,40)"),
        (&[(init::TARG_ADDR_HI, xy(0, 5) | 63 << 6)], Undefined, "NOC_TARG_ADDR_HI"),
        (&[(init::TARG_ADDR_HI, xy(17, 12))], Undefined, "answer to a tile that is not Tensix"),
        (&[(init::CTRL, 3)], Undefined, "type 3"),
        (&[(init::RET_ADDR_LO, 0x18_0000 - 32)], Undefined, "neither in L1"),
        (&[(init::RET_ADDR_MID, 1)], Undefined, "neither in L1"),
        (&[(init::TARG_ADDR_LO, 0xFFFF_FFF0), (init::TARG_ADDR_MID, u32::MAX)], Undefined, "neither in L1"),
        (&[(init::RET_ADDR_LO, 0xFFB4_0000)], Undefined, "take 4 at a time"),
        (&[(init::RET_ADDR_LO, 0xFFB4_0002), (init::AT_LEN_BE, 4)], Undefined, "multiple of 4"),
        (&[(init::RET_ADDR_LO, 0x2008)], Undefined, "differ modulo 16"),
        (&[(init::RET_ADDR_LO, 0x2010), (init::TARG_ADDR_LO, 0x1010), (init::AT_LEN_BE, 16400)], Undefined, "splits"),
        (&[(init::CTRL, wr | ctrl::WR_BE), (init::AT_LEN_BE, 0)], Undefined, "mask is empty"),
        (&[(init::CTRL, wr | ctrl::WR_INLINE)], Undefined, "inline write to L1"),
        (&[(init::CTRL, wr | ctrl::WR_INLINE), (init::TARG_ADDR_HI, xy(17, 12))], Undefined, "not Tensix or Ethernet"),
        (&[(init::CTRL, ctrl::CMD_RD | ctrl::BRCST)], Undefined, "multicast read"),
        (
            &[(init::CTRL, wr | ctrl::VC_STATIC | 4 << 13)],
            Undefined,
            "unicast request on a static virtual channel of class 2",
        ),
        (&[(init::CTRL, wr | ctrl::BRCST | ctrl::VC_STATIC)], Undefined, "multicast request on a static"),
        (&[(init::CTRL, wr | 1 << 31)], Undefined, "L1_ACC"),
        (&[(init::PACKET_TAG, 1 << 6)], Unimplemented, "overlay delivery"),
        (
            &[
                (init::CTRL, ctrl::CMD_RD),
                (init::TARG_ADDR_HI, xy(17, 12)),
                (init::RET_ADDR_HI, xy(1, 2)),
                (init::RET_ADDR_LO, 0x2010),
            ],
            Undefined,
            "differ modulo 64",
        ),
    ]);
}

#[test]
fn every_wrong_multicast_has_its_own_fault() {
    let wr = ctrl::CMD_WR;
    let rect = |x| NocRect { start: NocXy::new(x, 2), end: NocXy::new(3, 3) }.encode();
    all_refused(&[
        (
            // Columns from 1 upwards and rows from 2 upwards: everything.
            &[(init::CTRL, wr | ctrl::BRCST), (init::RET_ADDR_HI, rect(1)), (init::BRCST_EXCLUDE, 0x70_8100)],
            Undefined,
            "leaves no tile",
        ),
        (
            &[(init::CTRL, wr | ctrl::BRCST), (init::RET_ADDR_HI, rect(10)), (init::BRCST_EXCLUDE, 0x70_8100)],
            Missing,
            "wraps around the edge",
        ),
        (
            &[(init::CTRL, wr | ctrl::BRCST), (init::RET_ADDR_HI, rect(10)), (init::BRCST_EXCLUDE, 0b1001)],
            Undefined,
            "not a power of two",
        ),
        (
            &[(init::CTRL, wr | ctrl::BRCST), (init::RET_ADDR_HI, rect(40))],
            Undefined,
            "a corner lies outside the torus",
        ),
        (
            &[(init::CTRL, wr | ctrl::BRCST), (init::RET_ADDR_HI, 8 << 18 | 8 << 12 | 8 << 6 | 8)],
            Undefined,
            "no receiving tile",
        ),
    ]);
}

#[test]
fn every_wrong_atomic_has_its_own_fault() {
    all_refused(&[
        (&[(init::CTRL, ctrl::CMD_AT), (init::AT_LEN_BE, 2 << 12)], Missing, "opcode 0x2"),
        (
            &[(init::CTRL, ctrl::CMD_AT), (init::AT_LEN_BE, atomic::incr32(0)), (init::TARG_ADDR_LO, 0xFFB4_0000)],
            Undefined,
            "outside L1",
        ),
        (
            &[(init::CTRL, ctrl::CMD_AT), (init::AT_LEN_BE, atomic::incr32(0)), (init::TARG_ADDR_HI, xy(17, 12))],
            Undefined,
            "outside L1",
        ),
        (
            &[(init::CTRL, ctrl::CMD_AT), (init::AT_LEN_BE, atomic::incr32(0)), (init::TARG_ADDR_LO, 0x1002)],
            Undefined,
            "multiple of 4",
        ),
    ]);
}

#[test]
fn a_linked_transaction_stays_with_its_destination() {
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    let fields = |to: u32, flags: u32| {
        [
            (init::TARG_ADDR_LO, 0x1000),
            (init::TARG_ADDR_HI, xy(1, 2)),
            (init::RET_ADDR_LO, 0x2000),
            (init::RET_ADDR_HI, to),
            (init::CTRL, ctrl::CMD_WR | flags),
            (init::AT_LEN_BE, 16),
        ]
    };
    let start = bench.start(0, &fields(xy(3, 4), ctrl::VC_LINKED));
    bench.depart(start);
    let (niu, _) = bench.at(1, 2);
    for (field, value) in fields(xy(3, 5), 0) {
        niu.write(field, value, 20).expect("a field");
    }
    assert!(niu.write(init::CMD_CTRL, 1, 20).expect_err("elsewhere").what.contains("linked"));
    let start = bench.start(21, &fields(xy(3, 4), 0));
    bench.depart(start);
    let start = bench.start(40, &fields(xy(3, 5), 0));
    bench.depart(start);
}

proptest! {
    /// No sequence of register writes, departures and reads panics.
    #[test]
    fn random_register_writes_never_panic(
        writes in prop::collection::vec((0..4u32, 0..0x52u32, prop_oneof![
            any::<u32>(),
            0..0x40u32,
            Just(0x1000u32),
            Just(xy(3, 4)),
            Just(xy(1, 2)),
            Just(0xFFB4_0000u32),
            Just(0x0041_2083u32),
        ]), 1..300),
    ) {
        let mut bench = Bench::new(&[(1, 2)]);
        let (niu, _) = bench.at(1, 2);
        let (mut ram, mut out) = (Ram::new(), Outbox::default());
        for (i, (buf, field, value)) in writes.into_iter().enumerate() {
            // A third of the accesses start a request.
            let off = if field % 3 == 0 { buf * 0x800 + init::CMD_CTRL } else { buf * 0x800 + field * 4 };
            if let Ok(start) = niu.write(off, value, i as u64) {
                let mut next = start;
                while let Some(start) = next {
                    next = niu.depart(start, &mut ram, &mut out).unwrap_or(None);
                }
            }
            let _ = niu.read(off, i as u64);
        }
    }
}

/// Ethernet tiles have an L1 of 512 KiB and registers, as Tensix tiles have
/// (EthernetTile/BabyRISCV/README.md; NOC_CTRL: atomics and inline writes may go there).
#[test]
fn requests_to_an_ethernet_tile_follow_its_memory_map() {
    let grid = GridBuilder::new(Board::P150.harvesting(), true).fill(0).build().expect("everything fits");
    let mut niu = Niu::new(0, tile(&grid, 3, 4), NocXy::new(3, 4), 0, Arc::new(grid));
    let mut start = |fields: &[(u32, u32)]| {
        let base = [
            (init::TARG_ADDR_LO, 0x100),
            (init::TARG_ADDR_HI, xy(20, 25)),
            (init::RET_ADDR_LO, 0x100),
            (init::RET_ADDR_HI, xy(3, 4)),
        ];
        for &(field, value) in base.iter().chain(fields) {
            niu.write(field, value, 0).expect("a field");
        }
        let start = niu.write(init::CMD_CTRL, 1, 0)?.expect("a start");
        niu.depart(start, &mut Ram::new(), &mut Outbox::default()).expect("a departure");
        Ok::<(), crate::Fault>(())
    };
    let inline = ctrl::CMD_WR | ctrl::WR_INLINE;
    start(&[(init::CTRL, inline), (init::TARG_ADDR_LO, 0xFFB1_2054)]).expect("a register");
    start(&[(init::CTRL, ctrl::CMD_AT), (init::AT_LEN_BE, atomic::incr32(0x100))]).expect("an atomic");
    start(&[
        (init::CTRL, ctrl::CMD_RD),
        (init::AT_LEN_BE, 0x4000),
        (init::TARG_ADDR_LO, 0x7_C000),
        (init::RET_ADDR_LO, 0),
    ])
    .expect("the end of L1");
    let read = [(init::CTRL, ctrl::CMD_RD), (init::AT_LEN_BE, 16), (init::TARG_ADDR_LO, 0x8_0000)];
    assert!(start(&read).is_err(), "behind L1");
    assert!(start(&[(init::CTRL, inline)]).is_err(), "an inline write to L1");
    assert!(
        start(&[(init::CTRL, inline), (init::TARG_ADDR_HI, xy(8, 26))]).is_err(),
        "an inline write to an L2CPU tile"
    );
}
