//! A Tensix tile as its own cores and packets see it.

use super::*;
use crate::{Fault, FaultClass};
use Processor::{Brisc, Ncrisc, Trisc0, Trisc1, Trisc2};
use proptest::prelude::*;
use tilework_abi::address_map::THREAD_STRIDE;
use tilework_abi::tensix::{self as map, insn};
use tilework_riscv::{Access, Refuse, Width};

const NOP: u32 = insn::Nop::build().word();

fn value(t: &mut Tensix, core: Processor, addr: u32) -> u32 {
    t.load(core, addr, 5).unwrap().value
}

fn refused<T: std::fmt::Debug>(result: Result<T, Refuse<Fault>>) -> Fault {
    match result {
        Err(Refuse::Fault(fault)) => fault,
        other => panic!("not a fault: {other:?}"),
    }
}

#[test]
fn a_mailbox_goes_from_the_storing_core_to_the_numbered_one() {
    let mut t = Tensix::default();
    // B writes to T1's number; T1 reads it under B's number.
    t.core_blocks(Awaits::ANYTHING);
    t.store(Brisc, map::MAILBOX_BASE + 0x2000, 77, 0).unwrap();
    assert_eq!(t.take_changed().map(|changed| changed.at), Some(0));
    assert_eq!(t.take_changed(), None);
    t.core_blocks(Awaits::ANYTHING);
    assert_eq!(value(&mut t, Trisc1, map::MAILBOX_BASE + 4), 1);
    assert_eq!(value(&mut t, Trisc0, map::MAILBOX_BASE + 4), 0);
    assert_eq!(value(&mut t, Trisc1, map::MAILBOX_BASE), 77);
    assert_eq!(t.take_changed().map(|changed| changed.at), Some(5), "a sender that waits for room must look again");
    assert_eq!(t.load(Trisc1, map::MAILBOX_BASE, 0), Err(Refuse::Block));
    for v in 0..4 {
        t.store(Trisc2, map::MAILBOX_BASE, v, 0).unwrap();
    }
    assert_eq!(t.store(Trisc2, map::MAILBOX_BASE + 0x1000, 4, 0), Err(Refuse::Block));
    assert_eq!(value(&mut t, Brisc, map::MAILBOX_BASE + 0x3000), 0);
    t.store(Trisc2, map::MAILBOX_BASE + 0x1000, 4, 0).unwrap();
    assert_eq!(t.peek(Trisc0, map::MAILBOX_BASE + 0x3000 + 4), Some(1));
    assert_eq!(t.peek(Trisc0, map::MAILBOX_BASE + 0x3000), None, "a pop has an effect");
}

#[test]
fn semaphores_are_counters_for_the_triscs() {
    let mut t = Tensix::default();
    t.store(Trisc0, map::PC_BUF_BASE + 0x20 + 4 * 7, 0, 0).unwrap();
    t.store(Trisc1, map::PC_BUF_BASE + 0x20 + 4 * 7, 0, 0).unwrap();
    assert_eq!(value(&mut t, Trisc2, map::PC_BUF_BASE + 0x3C), 2);
    t.store(Trisc2, map::PC_BUF_BASE + 0x3C, 1, 0).unwrap();
    assert_eq!(t.load(Trisc0, map::PC_BUF_BASE + 0x3C, 0).unwrap().access, Access::Watched);
    assert_eq!(t.peek(Trisc0, map::PC_BUF_BASE + 0x3C), Some(1));
    assert_eq!(refused(t.load(Trisc0, map::PC_BUF_BASE + 0x40, 0)).class, FaultClass::MissingSpecification);
}

#[test]
fn b_waits_at_a_pc_buffer_until_its_reader_waits_too() {
    let mut t = Tensix::default();
    t.store(Brisc, map::PC_BUF_BASE + THREAD_STRIDE, 5, 0).unwrap();
    assert_eq!(t.load(Brisc, map::PC_BUF_BASE + THREAD_STRIDE, 0), Err(Refuse::Block));
    assert_eq!(value(&mut t, Trisc1, map::PC_BUF_BASE), 5);
    assert_eq!(t.load(Brisc, map::PC_BUF_BASE + THREAD_STRIDE, 0), Err(Refuse::Block));
    t.core_blocks(Awaits::ANYTHING);
    assert_eq!(t.load(Trisc1, map::PC_BUF_BASE, 0), Err(Refuse::Block));
    assert!(t.has_changed(), "B must look again");
    t.take_changed();
    t.core_blocks(Awaits::ANYTHING);
    assert_eq!(t.load(Trisc1, map::PC_BUF_BASE, 0), Err(Refuse::Block));
    assert!(!t.has_changed(), "a second try is nothing new");
    assert_eq!(value(&mut t, Brisc, map::PC_BUF_BASE + THREAD_STRIDE), 0);
    t.reset_core(Trisc1, 9);
    assert_eq!(t.load(Brisc, map::PC_BUF_BASE + THREAD_STRIDE, 0), Err(Refuse::Block));
    t.set_pc_buf_override(0b11 << 10, 9);
    assert_eq!(value(&mut t, Brisc, map::PC_BUF_BASE + THREAD_STRIDE), 0);
}

#[test]
fn manual_ttsync_of_an_idle_thread_does_not_wait_and_its_stores_are_dropped() {
    let mut t = Tensix::default();
    t.store(Trisc0, map::PC_BUF_BASE + 0x4, 9, 0).unwrap();
    assert_eq!(value(&mut t, Trisc0, map::PC_BUF_BASE + 0x4), 0);
    assert_eq!(value(&mut t, Trisc0, map::PC_BUF_BASE + 0x8), 0);
    assert_eq!(refused(t.load(Trisc0, map::PC_BUF_BASE + 0xC, 0)).class, FaultClass::MissingSpecification);
}

#[test]
fn b_sees_all_gprs_and_a_trisc_its_own() {
    let mut t = Tensix::default();
    t.store(Trisc1, map::GPR_BASE + 0x4, 0x1122_3344, 0).unwrap();
    assert_eq!(value(&mut t, Brisc, map::GPR_BASE + 0x104), 0x1122_3344);
    assert_eq!(value(&mut t, Brisc, map::GPR_BASE + 0x106), 0x1122, "the addressed byte comes first");
    assert_eq!(refused(t.load(Trisc1, map::GPR_BASE + 0x100, 0)).class, FaultClass::MissingSpecification);
    assert_eq!(refused(t.load(Brisc, map::GPR_BASE + 0x300, 0)).class, FaultClass::MissingSpecification);
}

#[test]
fn a_reset_loses_what_is_on_its_way() {
    let mut t = Tensix::default();
    t.store(Trisc1, map::MAILBOX_BASE, 7, 0).unwrap();
    t.store(Brisc, map::MAILBOX_BASE + 0x2000, 8, 0).unwrap();
    t.store(Brisc, map::PC_BUF_BASE + THREAD_STRIDE, 9, 0).unwrap();
    t.reset_core(Trisc1, 1);
    assert_eq!(t.load(Brisc, map::MAILBOX_BASE + 0x2000, 2), Err(Refuse::Block), "what T1 sent is gone");
    assert_eq!(value(&mut t, Trisc1, map::MAILBOX_BASE), 8, "what it was sent is not");
    t.release_core(Trisc1, 2);
    assert_eq!(t.load(Trisc1, map::PC_BUF_BASE, 3), Err(Refuse::Block), "its PC buffer is empty");
}

#[test]
fn who_pushes_where() {
    let mut t = Tensix::default();
    assert_eq!(
        refused(t.store(Trisc0, map::INSTRN_BUF_BASE + THREAD_STRIDE, 0, 0)).class,
        FaultClass::UndefinedBehavior
    );
    assert_eq!(refused(t.store(Ncrisc, map::INSTRN_BUF_BASE, NOP, 0)).class, FaultClass::UndefinedBehavior);
    assert_eq!([Brisc, Ncrisc, Trisc0, Trisc1, Trisc2].map(thread_of), [None, None, Some(0), Some(1), Some(2)]);
    assert_eq!(refused(t.store(Brisc, map::INSTRN_BUF_BASE, 0, 7)).site.cycle, Some(7), "zero is no instruction");
    // B's FIFO behind the MOP expander holds eight.
    for i in 0..9 {
        let want = if i < 8 { Ok(()) } else { Err(Refuse::Block) };
        assert_eq!(t.store(Brisc, map::INSTRN_BUF_BASE + THREAD_STRIDE, NOP, 0), want);
    }
}

#[test]
fn what_a_core_does_not_have_is_a_fault_that_says_who_has_it() {
    let mut t = Tensix::default();
    let fault = refused(t.load(Ncrisc, map::MAILBOX_BASE, 0));
    assert!(fault.what.contains("NCRISC") && fault.what.contains("TRISC"), "{}", fault.what);
    assert_eq!(fault.site.addr, Some(u64::from(map::MAILBOX_BASE)));
    assert!(refused(t.store(Brisc, map::MOP_CFG_BASE, 0, 0)).what.contains("TRISC"));
    t.store(Trisc0, map::MOP_CFG_BASE + 0x20, 1, 0).unwrap();
    assert_eq!(refused(t.load(Trisc0, map::MOP_CFG_BASE + 0x20, 0)).class, FaultClass::UndefinedBehavior);
    assert!(refused(t.load_dst(Brisc, map::DST_BASE, Width::Word)).what.contains("TRISC"));
}

#[test]
fn configuration_is_storage() {
    let mut t = Tensix::default();
    t.store(Brisc, map::CFG_BASE + 0x20, 42, 0).unwrap();
    assert_eq!(value(&mut t, Trisc2, map::CFG_BASE + 0x20), 42);
    assert_eq!(refused(t.store(Brisc, map::CFG_BASE + 0x11, 0, 0)).class, FaultClass::UnsupportedFunctionality);
    t.store(Brisc, map::TDMA_BASE + 0x24, 0x3F, 0).unwrap();
    assert_eq!(value(&mut t, Brisc, map::TDMA_BASE + 0x24), 0x3F);
}

proptest! {
    #[test]
    fn no_access_panics(ops in prop::collection::vec((0usize..5, 0xFFB0_0000u32.., any::<u32>(), any::<bool>()), 0..200)) {
        let mut t = Tensix::default();
        for (core, addr, word, store) in ops {
            let core = Processor::ALL[core];
            let before = t.peek(core, addr);
            if store {
                let _ = t.store(core, addr, word, 1);
            } else if let (Some(peeked), Ok(loaded)) = (before, t.load(core, addr, 1)) {
                prop_assert_eq!(peeked, loaded.value);
            }
        }
    }
}

#[test]
fn quick_accesses_are_as_others() {
    let words = |base: u32, count: u32| (0..count).map(move |i| base + 4 * i);
    let places = words(map::MOP_CFG_BASE - 4, 11).chain(words(map::GPR_BASE, 2)).chain(words(map::PC_BUF_BASE, 18));
    let configuration = [0, 1, 223, 224, 447, 448, 671, 672, 800].map(|word| map::CFG_BASE + 4 * word);
    let places: Vec<u32> = places.chain(configuration).chain([map::CFG_BASE + 2, map::PC_BUF_BASE + 0x22]).collect();
    let state = |t: &Tensix| {
        let cop = &t.coprocessor;
        format!("{:?}", (&cop.mop, &cop.config, &cop.gprs, &cop.semaphores, &t.pc_bufs, cop.next()))
    };
    let (mut stored, mut loaded) = (Vec::new(), Vec::new());
    for (core, &addr) in Processor::ALL.into_iter().flat_map(|core| places.iter().map(move |addr| (core, addr))) {
        for is_busy in [false, true] {
            let mut quick = Tensix::default();
            quick.store(Trisc1, map::PC_BUF_BASE + 0x24, 0, 3).unwrap();
            if is_busy {
                quick.push(Trisc0, 0, NOP, 4).unwrap();
            }
            let mut other = quick.clone();
            if quick.quick_configure(core, addr, 0x55) {
                other.store(core, addr, 0x55, 9).unwrap();
                stored.push((core, addr, is_busy));
            }
            if let Some(load) = quick.quick_load(core, addr, 9) {
                assert_eq!(other.load(core, addr, 9), Ok(load), "{core} at {addr:#x}");
                loaded.push((core, addr, is_busy));
            }
            assert_eq!(state(&quick), state(&other), "{core} at {addr:#x}");
        }
    }
    let [first_of_mop, sync, post] = [map::MOP_CFG_BASE, map::PC_BUF_BASE + 4, map::PC_BUF_BASE + 0x24];
    for (core, addr, is_busy, is_quick) in [
        (Trisc0, first_of_mop, true, true),
        (Trisc0, map::CFG_BASE, false, true),
        (Trisc0, map::CFG_BASE, true, false),
        (Trisc1, map::CFG_BASE, true, true),
        (Brisc, map::CFG_BASE, false, false),
        (Trisc2, sync, false, true),
        (Trisc2, post, false, false),
    ] {
        assert_eq!(stored.contains(&(core, addr, is_busy)), is_quick, "a store by {core} at {addr:#x}");
    }
    for (core, addr, is_busy, is_quick) in [
        (Trisc0, sync, false, true),
        (Trisc0, sync, true, false),
        (Trisc1, post, true, true),
        (Ncrisc, sync, false, false),
        (Trisc0, map::PC_BUF_BASE, false, false),
    ] {
        assert_eq!(loaded.contains(&(core, addr, is_busy)), is_quick, "a load by {core} at {addr:#x}");
    }
}
