//! A Tensix tile as its own cores and packets see it.

use super::*;
use Processor::{Brisc, Ncrisc, Trisc0, Trisc1, Trisc2};
use proptest::prelude::*;
use tilework_abi::tensix::insn;

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
    let mut t = Tensix::new();
    // B writes to T1's number; T1 reads it under B's number.
    t.store(Brisc, 0xFFEC_2000, 77, 0).unwrap();
    assert_eq!(t.take_changed(), Some(0));
    assert_eq!(t.take_changed(), None);
    assert_eq!(value(&mut t, Trisc1, 0xFFEC_0004), 1);
    assert_eq!(value(&mut t, Trisc0, 0xFFEC_0004), 0);
    assert_eq!(value(&mut t, Trisc1, 0xFFEC_0000), 77);
    assert_eq!(t.take_changed(), Some(5), "a sender that waits for room must look again");
    assert_eq!(t.load(Trisc1, 0xFFEC_0000, 0), Err(Refuse::Block));
    for v in 0..4 {
        t.store(Trisc2, 0xFFEC_0000, v, 0).unwrap();
    }
    assert_eq!(t.store(Trisc2, 0xFFEC_1000, 4, 0), Err(Refuse::Block));
    assert_eq!(value(&mut t, Brisc, 0xFFEC_3000), 0);
    t.store(Trisc2, 0xFFEC_1000, 4, 0).unwrap();
    assert_eq!(t.peek(Trisc0, 0xFFEC_3004), Some(1));
    assert_eq!(t.peek(Trisc0, 0xFFEC_3000), None, "a pop has an effect");
}

#[test]
fn semaphores_are_counters_for_the_triscs() {
    let mut t = Tensix::new();
    t.store(Trisc0, 0xFFE8_0020 + 4 * 7, 0, 0).unwrap();
    t.store(Trisc1, 0xFFE8_0020 + 4 * 7, 0, 0).unwrap();
    assert_eq!(value(&mut t, Trisc2, 0xFFE8_003C), 2);
    t.store(Trisc2, 0xFFE8_003C, 1, 0).unwrap();
    assert_eq!(t.load(Trisc0, 0xFFE8_003C, 0).unwrap().access, Access::Watched);
    assert_eq!(t.peek(Trisc0, 0xFFE8_003C), Some(1));
    assert_eq!(refused(t.load(Trisc0, 0xFFE8_0040, 0)).class, FaultClass::MissingSpecification);
}

#[test]
fn b_waits_at_a_pc_buffer_until_its_reader_waits_too() {
    let mut t = Tensix::new();
    t.store(Brisc, 0xFFE9_0000, 5, 0).unwrap();
    assert_eq!(t.load(Brisc, 0xFFE9_0000, 0), Err(Refuse::Block));
    assert_eq!(value(&mut t, Trisc1, 0xFFE8_0000), 5);
    assert_eq!(t.load(Brisc, 0xFFE9_0000, 0), Err(Refuse::Block));
    t.take_changed();
    assert_eq!(t.load(Trisc1, 0xFFE8_0000, 0), Err(Refuse::Block));
    assert!(t.has_changed(), "B must look again");
    t.take_changed();
    assert_eq!(t.load(Trisc1, 0xFFE8_0000, 0), Err(Refuse::Block));
    assert!(!t.has_changed(), "a second try is nothing new");
    assert_eq!(value(&mut t, Brisc, 0xFFE9_0000), 0);
    t.reset_core(Trisc1, 9);
    assert_eq!(t.load(Brisc, 0xFFE9_0000, 0), Err(Refuse::Block));
    t.set_pc_buf_override(0b11 << 10, 9);
    assert_eq!(value(&mut t, Brisc, 0xFFE9_0000), 0);
}

#[test]
fn manual_ttsync_of_an_idle_thread_does_not_wait_and_its_stores_are_dropped() {
    let mut t = Tensix::new();
    t.store(Trisc0, 0xFFE8_0004, 9, 0).unwrap();
    assert_eq!(value(&mut t, Trisc0, 0xFFE8_0004), 0);
    assert_eq!(value(&mut t, Trisc0, 0xFFE8_0008), 0);
    assert_eq!(refused(t.load(Trisc0, 0xFFE8_000C, 0)).class, FaultClass::MissingSpecification);
}

#[test]
fn b_sees_all_gprs_and_a_trisc_its_own() {
    let mut t = Tensix::new();
    t.store(Trisc1, 0xFFE0_0004, 0x1122_3344, 0).unwrap();
    assert_eq!(value(&mut t, Brisc, 0xFFE0_0104), 0x1122_3344);
    assert_eq!(value(&mut t, Brisc, 0xFFE0_0106), 0x1122, "the addressed byte comes first");
    assert_eq!(refused(t.load(Trisc1, 0xFFE0_0100, 0)).class, FaultClass::MissingSpecification);
    assert_eq!(refused(t.load(Brisc, 0xFFE0_0300, 0)).class, FaultClass::MissingSpecification);
}

#[test]
fn a_reset_loses_what_is_on_its_way() {
    let mut t = Tensix::new();
    t.store(Trisc1, 0xFFEC_0000, 7, 0).unwrap();
    t.store(Brisc, 0xFFEC_2000, 8, 0).unwrap();
    t.store(Brisc, 0xFFE9_0000, 9, 0).unwrap();
    t.reset_core(Trisc1, 1);
    assert_eq!(t.load(Brisc, 0xFFEC_2000, 2), Err(Refuse::Block), "what T1 sent is gone");
    assert_eq!(value(&mut t, Trisc1, 0xFFEC_0000), 8, "what it was sent is not");
    t.release_core(Trisc1, 2);
    assert_eq!(t.load(Trisc1, 0xFFE8_0000, 3), Err(Refuse::Block), "its PC buffer is empty");
}

#[test]
fn who_pushes_where() {
    let mut t = Tensix::new();
    assert_eq!(refused(t.store(Trisc0, 0xFFE5_0000, 0, 0)).class, FaultClass::UndefinedBehavior);
    assert_eq!(refused(t.store(Ncrisc, 0xFFE4_0000, NOP, 0)).class, FaultClass::UndefinedBehavior);
    assert_eq!([Brisc, Ncrisc, Trisc0, Trisc1, Trisc2].map(thread_of), [None, None, Some(0), Some(1), Some(2)]);
    assert_eq!(refused(t.store(Brisc, 0xFFE4_0000, 0, 7)).site.cycle, Some(7), "zero is no instruction");
    // B's FIFO behind the MOP expander holds eight.
    for i in 0..9 {
        let want = if i < 8 { Ok(()) } else { Err(Refuse::Block) };
        assert_eq!(t.store(Brisc, 0xFFE5_0000, NOP, 0), want);
    }
}

#[test]
fn what_a_core_does_not_have_is_a_fault_that_says_who_has_it() {
    let mut t = Tensix::new();
    let fault = refused(t.load(Ncrisc, 0xFFEC_0000, 0));
    assert!(fault.what.contains("NCRISC") && fault.what.contains("TRISC"), "{}", fault.what);
    assert_eq!(fault.site.addr, Some(0xFFEC_0000));
    assert!(refused(t.store(Brisc, 0xFFB8_0000, 0, 0)).what.contains("TRISC"));
    t.store(Trisc0, 0xFFB8_0020, 1, 0).unwrap();
    assert_eq!(refused(t.load(Trisc0, 0xFFB8_0020, 0)).class, FaultClass::UndefinedBehavior);
    assert_eq!(refused(t.load(Trisc0, 0xFFBD_8000, 0)).class, FaultClass::UnimplementedFunctionality);
}

#[test]
fn configuration_is_storage() {
    let mut t = Tensix::new();
    t.store(Brisc, 0xFFEF_0020, 42, 0).unwrap();
    assert_eq!(value(&mut t, Trisc2, 0xFFEF_0020), 42);
    assert_eq!(refused(t.store(Brisc, 0xFFEF_0011, 0, 0)).class, FaultClass::UnsupportedFunctionality);
    t.store(Brisc, 0xFFB1_1024, 0x3F, 0).unwrap();
    assert_eq!(value(&mut t, Brisc, 0xFFB1_1024), 0x3F);
}

proptest! {
    #[test]
    fn no_access_panics(ops in prop::collection::vec((0usize..5, 0xFFB0_0000u32.., any::<u32>(), any::<bool>()), 0..200)) {
        let mut t = Tensix::new();
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
