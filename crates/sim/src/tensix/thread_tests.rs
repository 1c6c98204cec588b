//! Threads against the pages' functional models: waits, semaphores, mutexes, configuration, and
//! when things happen.

use super::bench::{Bench, CORES};
use super::*;
use crate::{FaultClass, NEVER};
use Processor::{Brisc, Trisc0, Trisc1, Trisc2};
use proptest::prelude::*;
use tilework_abi::address_map::THREAD_STRIDE;
use tilework_abi::tensix::{self as map, insn};
use tilework_riscv::Refuse;

pub(super) const NOP: u32 = insn::Nop::build().word();
const DMANOP: u32 = insn::Dmanop::build().word();
const INCRWC: u32 = insn::Incrwc::build().word();
/// A `MOP` of template 1 with the configured counts.
const MOP1: u32 = insn::Mop::build().template(1).word();
const BLOCK_ALL: u32 = insn::BLOCK_ALL as u32;

fn stallwait(block: u32, condition: u32) -> u32 {
    insn::Stallwait::build().block_mask(block).condition_mask(condition).word()
}
fn seminit(mask: u32, value: u32, max: u32) -> u32 {
    insn::Seminit::build().new_max(max).new_value(value).semaphore_mask(mask).word()
}
fn sempost(mask: u32) -> u32 {
    insn::Sempost::build().semaphore_mask(mask).word()
}
fn semget(mask: u32) -> u32 {
    insn::Semget::build().semaphore_mask(mask).word()
}
fn semwait(block: u32, mask: u32, condition: u32) -> u32 {
    insn::Semwait::build().block_mask(block).semaphore_mask(mask).condition_mask(condition).word()
}
fn setc16(index: u32, value: u32) -> u32 {
    insn::Setc16::build().cfg_index(index).new_value(value).word()
}
fn wrcfg(gpr: u32, four: bool, index: u32) -> u32 {
    insn::Wrcfg::build().input_reg(gpr).is_128bit(four).cfg_index(index).word()
}
fn setdvalid(src: u32) -> u32 {
    insn::Setdvalid::build().set_valid(src).word()
}
pub(super) fn setdmareg(half: u32, value: u32) -> u32 {
    insn::Setdmareg::build().new_value(value).result_half_reg(half).word()
}

#[test]
fn an_instruction_reaches_the_gate_three_cycles_after_its_push_and_passes_there() {
    let mut b = Bench::new();
    b.push(1, 100, &[NOP, NOP]);
    assert_eq!(b.run(1000).unwrap(), [103, 104]);
    assert_eq!((b.t.next(), b.t.last_step()), (NEVER, 105));
}

#[test]
fn a_wait_blocks_the_next_instruction_for_at_least_one_cycle() {
    let mut b = Bench::new();
    // The conditions are met at once: one cycle to see that, then the block goes.
    b.push(0, 0, &[stallwait(BLOCK_ALL, 1 << 4), NOP, NOP]);
    assert_eq!(b.run(1000).unwrap(), [3, 5, 6]);
    // What is not blocked passes.
    b.push(0, 100, &[stallwait(1 << 6, 1 << 4), DMANOP, INCRWC]);
    assert_eq!(b.run(1000).unwrap(), [103, 104, 105]);
}

#[test]
fn a_second_wait_stays_at_the_gate_until_the_first_is_forgotten() {
    let mut b = Bench::new();
    b.push(0, 0, &[semwait(1 << 6, 1, 1), semwait(1 << 6, 2, 1), NOP]);
    assert_eq!(b.run(50).unwrap(), [3]);
    assert!(b.t.explain(Trisc0)[0].0.contains("semaphore 0"), "{:?}", b.t.explain(Trisc0));
    b.t.store(Trisc1, map::PC_BUF_BASE + 0x20, 0, 60).unwrap();
    assert_eq!(b.run(100).unwrap(), [61, 62], "the second one goes to wait, and NOP is not what it blocks");
    assert_eq!(b.t.explain(Trisc0), []);
}

#[test]
fn stallwait_waits_for_units_and_zero_masks_mean_what_the_page_says() {
    let mut b = Bench::new();
    b.out.l1[16] = 9;
    b.set_gpr(0, 1, 1);
    // LOADIND of 32 bits takes ten cycles; STALLWAIT with C0 and B0 holds the SETDMAREG behind it.
    let loadind = insn::Loadind::build().size(1).offset_half_reg(10).result_reg(2).addr_reg(1).word();
    b.push(0, 0, &[loadind, stallwait(1, 1), setdmareg(20, 1)]);
    assert_eq!(b.run(1000).unwrap(), [3, 6, 14]);
    assert_eq!(b.gpr(0, 2), 9);
    // A block mask of zero is B6, a condition mask of zero C0 to C3.
    b.push(0, 100, &[loadind, stallwait(0, 0), NOP, INCRWC]);
    assert_eq!(b.run(1000).unwrap(), [103, 106, 107, 114]);
}

#[test]
fn stallwait_on_src_banks_waits_for_whoever_hands_them_over() {
    let mut b = Bench::new();
    // C7: SrcA of the matrix unit; thread 2 gives it at cycle 203.
    b.push(1, 100, &[stallwait(BLOCK_ALL, 1 << 7), NOP]);
    assert_eq!(b.run(200).unwrap(), [103]);
    assert!(b.t.explain(Trisc1)[0].0.contains("C7"));
    b.push(2, 200, &[setdvalid(1)]);
    assert_eq!(b.run(1000).unwrap(), [203, 205]);
    // C5: the unpacker's other bank is still its own; after a second SETDVALID it is not.
    b.push(2, 300, &[setdvalid(1), stallwait(BLOCK_ALL, 1 << 5), NOP]);
    assert_eq!(b.run(1000).unwrap(), [303, 304]);
    b.push(1, 1000, &[insn::Cleardvalid::build().clear_dvalid(1).word()]);
    assert_eq!(b.run(2000).unwrap(), [1003, 1004], "thread 2 sees it in the same cycle, the block goes in the next");
}

#[test]
fn stallwait_on_the_configuration_unit_counts_every_thread() {
    let mut b = Bench::new();
    // RDCFG is in the unit for two cycles.
    b.push(0, 0, &[insn::Rdcfg::build().word()]);
    b.push(1, 0, &[stallwait(BLOCK_ALL, 1 << 12), NOP]);
    assert_eq!(b.run(100).unwrap(), [3, 3, 6], "latched at 3, met at 5, gone at 6");
}

/// C5 to C8: a bank of SrcA or SrcB is not the unpackers', or not the matrix unit's. Each
/// `SETDVALID` gives a bank to the matrix unit.
#[test]
fn stallwait_src_bank_truth_table() {
    let cases: [(&[u32], &[u32]); 7] =
        [(&[], &[7, 8]), (&[1], &[8]), (&[2], &[7]), (&[3], &[]), (&[3, 1], &[5]), (&[3, 2], &[6]), (&[3, 3], &[5, 6])];
    for (given, unmet) in cases {
        for condition in 5..=8 {
            let mut b = Bench::new();
            b.execute(2, &given.iter().map(|&src| setdvalid(src)).collect::<Vec<_>>());
            b.execute(1, &[stallwait(BLOCK_ALL, 1 << condition)]);
            assert_eq!(b.execute(1, &[NOP]).is_empty(), unmet.contains(&condition), "C{condition} after {given:?}");
        }
    }
}

/// Each unit holds up the waits that name it, of its own thread or of all, and no other.
#[test]
fn stallwait_conditions_of_units_see_their_unit_only() {
    let loadind = insn::Loadind::build().size(1).offset_half_reg(10).result_reg(2).addr_reg(1).word();
    let moves = insn::Movdbga2d::build().word();
    let xmov = insn::Xmov::build().word();
    for (word, condition, of_all_threads) in [(loadind, 0, false), (moves, 4, false), (xmov, 9, true)] {
        for wait in [0, 1, 2, 3, 4, 9, 10, 11, 12] {
            for thread in 0..2 {
                let mut b = Bench::new();
                b.push(0, 0, &[word]);
                b.push(thread, 0, &[stallwait(BLOCK_ALL, 1 << wait), NOP]);
                let passed = b.run(1000).unwrap();
                let waits = wait == condition && (thread == 0 || of_all_threads);
                let [.., latched, nop] = passed[..] else { panic!("three instructions") };
                assert_eq!(nop - latched > 2, waits, "C{wait} of thread {thread} beside {word:#x}");
            }
        }
    }
}

/// C10: requests of the thread's core. They are processed in the cycle in which they are emitted,
/// so nothing is left to wait for, and what is blocked sees them.
#[test]
fn stallwait_on_the_core_s_requests_finds_them_processed() {
    let mut b = Bench::new();
    b.set_gpr(0, 1, 7);
    b.push(0, 0, &[stallwait(BLOCK_ALL, 1 << 10), wrcfg(1, false, 88)]);
    assert_eq!(b.run(100).unwrap(), [3, 5]);
    assert_eq!(b.t.peek(Brisc, map::CFG_BASE + 4 * 88), Some(7));
}

/// SEMWAIT's conditions: C0 while any chosen semaphore is zero, C1 while any has reached its
/// maximum.
#[test]
fn semwait_truth_table() {
    for (value, max, condition, waits) in [
        (0, 2, 1, true),
        (1, 2, 1, false),
        (2, 2, 1, false),
        (0, 2, 2, false),
        (1, 2, 2, false),
        (2, 2, 2, true),
        (3, 2, 2, true),
        (0, 0, 2, true),
        (1, 2, 3, false),
        (0, 2, 3, true),
        (2, 2, 3, true),
    ] {
        let mut b = Bench::new();
        b.execute(0, &[seminit(0x81, value, max), seminit(2, 5, 9)]);
        b.execute(1, &[semwait(BLOCK_ALL, 0x83, condition)]);
        assert_eq!(b.execute(1, &[NOP]).is_empty(), waits, "value {value}, max {max}, condition {condition}");
    }
    let mut b = Bench::new();
    b.push(0, 0, &[semwait(1, 1, 0)]);
    let fault = b.run(10).unwrap_err();
    assert_eq!((fault.class, fault.site.core), (FaultClass::UndefinedBehavior, Some(Trisc0)));
}

#[test]
fn semaphore_instructions_saturate_and_name_several_at_once() {
    let mut b = Bench::new();
    b.execute(0, &[seminit(0xFF, 14, 3), sempost(0x0F), sempost(0x01), semget(0xF0)]);
    assert_eq!((0..8).map(|i| b.semaphore(i)).collect::<Vec<_>>(), [15, 15, 15, 15, 13, 13, 13, 13]);
    b.execute(2, &[seminit(1, 0, 0), semget(1)]);
    assert_eq!(b.semaphore(0), 0);
}

#[test]
fn the_sync_unit_takes_one_semaphore_instruction_a_cycle() {
    let mut b = Bench::new();
    for thread in 0..3 {
        b.push(thread, 0, &[sempost(1), sempost(1)]);
    }
    assert_eq!(b.run(100).unwrap(), [3, 4, 5, 6, 7, 8]);
    assert_eq!(b.semaphore(0), 6);
    // A core's store takes its turn, too.
    b.push(0, 100, &[sempost(1)]);
    assert_eq!(b.run(103).unwrap(), [0; 0]);
    b.t.store(Trisc1, map::PC_BUF_BASE + 0x20, 1, 103).unwrap();
    assert_eq!(b.run(200).unwrap(), [104]);
}

#[test]
fn a_core_s_post_lets_a_thread_go_on() {
    let mut b = Bench::new();
    b.push(2, 0, &[semwait(2, 8, 1), semget(8), NOP]);
    assert_eq!(b.run(500).unwrap(), [3]);
    assert_eq!(b.t.next(), NEVER, "waiting costs nothing");
    assert_eq!(b.t.load(Trisc2, map::PC_BUF_BASE + 0x4, 500), Err(Refuse::Block), "Manual TTSync waits for it");
    b.t.core_blocks(Awaits::ANYTHING);
    b.t.store(Trisc0, map::PC_BUF_BASE + 0x2C, 0, 600).unwrap();
    assert_eq!(b.run(1000).unwrap(), [601, 602]);
    assert_eq!(
        b.t.take_changed().map(|changed| changed.at),
        Some(603),
        "who waits for the thread to drain looks again"
    );
    assert_eq!(b.t.load(Trisc2, map::PC_BUF_BASE + 0x4, 604).unwrap().latency, 3);
    assert_eq!(b.semaphore(3), 0);
}

#[test]
fn mutexes_hold_threads_at_the_gate_and_go_round() {
    let mut b = Bench::new();
    let get = insn::Atgetm::build().index(2).word();
    let release = insn::Atrelm::build().index(2).word();
    b.execute(1, &[get]);
    b.push(0, 1000, &[get, sempost(1)]);
    b.push(2, 1000, &[get, sempost(2)]);
    assert_eq!(b.run(2000).unwrap(), [0; 0]);
    assert!(b.t.explain(Trisc2)[0].0.contains("mutex 2, which T1 holds"), "{:?}", b.t.explain(Trisc2));
    // Both wait: thread (1 + 1) % 3 gets it.
    b.push(1, 2000, &[release]);
    assert_eq!(b.run(3000).unwrap(), [2003, 2003, 2004]);
    assert_eq!((b.semaphore(0), b.semaphore(1)), (0, 1));
    b.push(2, 3000, &[release]);
    b.run(4000).unwrap();
    assert_eq!((b.semaphore(0), b.semaphore(1)), (1, 1));
    // Mutex 1 does not exist: the thread waits for ever.
    b.push(1, 5000, &[insn::Atgetm::build().index(1).word(), NOP]);
    assert_eq!(b.run(9000).unwrap(), [0; 0]);
}

#[test]
fn configuration_instructions_go_to_the_thread_s_bank() {
    let mut b = Bench::new();
    b.set_gpr(1, 5, 0xAABB_CCDD);
    (0..4).for_each(|i| b.set_gpr(1, 8 + i, 100 + i));
    let rmw = insn::Rmwcib2::build().mask(0x0F).new_value(0xFF).index4(70);
    b.execute(1, &[setc16(0, 1), wrcfg(5, false, 70), wrcfg(10, true, 77), rmw.word()]);
    let cfg = |b: &Bench, index: u32| b.t.peek(Brisc, map::CFG_BASE + 4 * index).unwrap();
    assert_eq!((cfg(&b, 70), cfg(&b, 224 + 70)), (0, 0xAABF_CCDD), "byte 2: low four bits set");
    assert_eq!([76, 77, 78, 79].map(|i| cfg(&b, 224 + i)), [100, 101, 102, 103]);
    b.execute(1, &[insn::Rdcfg::build().result_reg(9).cfg_index(70).word()]);
    assert_eq!(b.gpr(1, 9), 0xAABF_CCDD);
    // STREAMWRCFG: stream select 2 names stream 17, register 5, to index 80.
    b.out.registers.insert(tilework_abi::stream::reg_addr(17, 5), 0x1234);
    let streamwrcfg = insn::Streamwrcfg::build().stream_select(2).reg_index(5).cfg_index(80);
    b.execute(1, &[setc16(61, 17), streamwrcfg.word()]);
    assert_eq!(cfg(&b, 224 + 80), 0x1234);
    b.push(1, 99_999, &[wrcfg(0, false, 224)]);
    assert_eq!(b.run(NEVER).unwrap_err().class, FaultClass::UndefinedBehavior);
}

#[test]
fn the_configuration_unit_takes_one_instruction_a_cycle_but_setc16_from_everyone() {
    let mut b = Bench::new();
    (0..3).for_each(|thread| b.push(thread, 0, &[wrcfg(0, false, 0), setc16(20, 1)]));
    assert_eq!(b.run(100).unwrap(), [3, 4, 4, 5, 5, 6]);
    // CFGSHIFTMASK takes two.
    let shift = insn::Cfgshiftmask::build().word();
    b.push(0, 100, &[shift, shift, wrcfg(0, false, 0)]);
    assert_eq!(b.run(200).unwrap(), [103, 105, 107]);
}

#[test]
fn streamwait_waits_until_a_stream_has_come_so_far() {
    let mut b = Bench::new();
    let messages = tilework_abi::stream::reg_addr(6, tilework_abi::stream::reg::NUM_MSGS_RECEIVED);
    // Select 1 names stream 6; the target is 1 << 10 | 5.
    b.execute(0, &[setc16(60, 6), setc16(58, 1)]);
    let wait = insn::Streamwait::build().block_mask(BLOCK_ALL).target_value_lo(5);
    b.push(0, 1000, &[wait.condition_index(1).stream_select(1).word(), NOP]);
    assert_eq!(b.run(2000).unwrap(), [1003]);
    assert_eq!(b.out.asleep_on, [messages]);
    b.out.registers.insert(messages, 1028);
    b.t.wake(2000);
    assert_eq!(b.run(3000).unwrap(), [0; 0], "one short");
    b.out.registers.insert(messages, 1029);
    b.t.wake(3000);
    assert_eq!(b.run(4000).unwrap(), [3001]);
    // Condition 0 is about the phase, whose high bits are another field; a block mask
    // of zero is B6.
    b.execute(0, &[setc16(57, 2)]);
    let phase = tilework_abi::stream::reg_addr(6, tilework_abi::stream::reg::CURR_PHASE);
    let wait = insn::Streamwait::build().target_value_lo(7).stream_select(1).word();
    b.push(0, 5000, &[wait, NOP, INCRWC]);
    assert_eq!(b.run(6000).unwrap(), [5003, 5004]);
    b.out.registers.insert(phase, 2 << 10 | 7);
    b.t.wake(6000);
    assert_eq!(b.run(7000).unwrap(), [6001]);
}

#[test]
fn b_waits_for_the_coprocessor_at_a_pc_buffer() {
    let mut b = Bench::new();
    b.push(0, 0, &[semwait(BLOCK_ALL, 1, 1), NOP]);
    b.run(100).unwrap();
    assert_eq!(b.t.load(Trisc0, map::PC_BUF_BASE, 100), Err(Refuse::Block));
    assert_eq!(b.t.load(Brisc, map::PC_BUF_BASE, 101), Err(Refuse::Block), "T0 waits, but its thread does not rest");
    b.t.store(Trisc1, map::PC_BUF_BASE + 0x20, 0, 200).unwrap();
    b.run(300).unwrap();
    assert_eq!(b.t.load(Brisc, map::PC_BUF_BASE, 300).unwrap().value, 0);
}

#[test]
fn mop_done_waits_for_expansions_only() {
    let mut b = Bench::new();
    // A MOP of 100 NOPs behind a wait: the FIFOs hold ten, so the expander is not done.
    for (i, word) in [10, 10, NOP, NOP, NOP, NOP, NOP, NOP, NOP].into_iter().enumerate() {
        b.t.store(Trisc0, map::MOP_CFG_BASE + 4 * i as u32, word, 0).unwrap();
    }
    b.push(0, 0, &[semwait(BLOCK_ALL, 1, 1), MOP1]);
    b.run(1000).unwrap();
    assert_eq!(b.t.load(Trisc0, map::PC_BUF_BASE + 0x8, 1000), Err(Refuse::Block));
    b.t.store(Trisc1, map::PC_BUF_BASE + 0x20, 0, 1000).unwrap();
    assert_eq!(b.run(2000).unwrap().len(), 100);
    assert!(b.t.load(Trisc0, map::PC_BUF_BASE + 0x8, 2000).is_ok());
}

#[test]
fn auto_ttsync_holds_a_core_s_access_until_its_push_has_passed() {
    let mut b = Bench::new();
    b.execute(0, &[setc16(56, 0b10100)]);
    b.push(0, 1000, &[semwait(BLOCK_ALL, 1, 1), setdmareg(2, 7)]);
    b.run(1100).unwrap();
    assert_eq!(b.t.load(Trisc0, map::GPR_BASE + 4, 1100), Err(Refuse::Block));
    assert!(b.t.load(Trisc0, map::CFG_BASE, 1100).is_ok(), "configuration is not tracked");
    b.t.core_blocks(Awaits::ANYTHING);
    b.t.store(Trisc1, map::PC_BUF_BASE + 0x20, 0, 1200).unwrap();
    b.run(2000).unwrap();
    assert!(b.t.has_changed());
    assert_eq!(b.gpr(0, 1), 7);
}

#[test]
fn the_matrix_unit_waits_for_banks_blocks_and_moves() {
    let mvmul = |row| insn::Mvmul::build().dst_row(row).word();
    let nop = insn::Setrwc::build().word();
    // Both banks are empty: the thread waits until another one gives them over.
    let mut b = Bench::new();
    b.push(1, 10, &[mvmul(0)]);
    assert_eq!(b.run(1000).unwrap(), [0; 0]);
    b.push(0, 1000, &[insn::Setdvalid::build().set_valid(1).word()]);
    assert_eq!(b.run(2000).unwrap().len(), 1, "SrcB is still empty");
    let why = b.t.explain(Trisc1);
    assert!(why.iter().any(|(why, _)| why.ends_with("waits for SrcB")), "{why:?}");
    b.push(0, 2000, &[insn::Setdvalid::build().set_valid(2).word()]);
    let passed = b.run(3000).unwrap();
    assert_eq!(passed[0], passed[1], "a later thread sees it in the same cycle");
    // Distances from one instruction to the next.
    let mut distances = |words: &[u32]| {
        let passed = b.execute(1, words);
        passed.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    };
    assert_eq!(distances(&[mvmul(0), mvmul(0), mvmul(8), mvmul(16), mvmul(0)]), [5, 1, 1, 3]);
    let (to_dst, add) = (insn::Mova2d::build().dst_row(64).word(), insn::Elwadd::build().dst_row(64).word());
    assert_eq!(distances(&[to_dst, add, nop, mvmul(80)]), [1, 1, 2]);
    let (to_a, to_b) = (insn::Movd2a::build().dst_row(200).word(), insn::Movd2b::build().dst_row(200).word());
    assert_eq!(distances(&[to_a, to_a, nop]), [1, 2]);
    assert_eq!(distances(&[to_b, to_b, nop]), [1, 4]);
    assert_eq!(distances(&[insn::Shiftxb::build().word(), nop]), [2]);
    // STALLWAIT waits for results.
    assert_eq!(distances(&[mvmul(256), stallwait(BLOCK_ALL, 1 << 4), nop]), [1, 5]);
}

#[test]
fn what_is_not_built_is_a_fault_that_names_the_instruction_when_it_reaches_its_unit() {
    let mut b = Bench::new();
    let conv = insn::Conv3s1::build().clear_dvalid(1).addr_mod(3).dst(5);
    b.push(2, 40, &[semwait(BLOCK_ALL, 1, 1), conv.word()]);
    b.run(100).unwrap();
    b.t.store(Trisc1, map::PC_BUF_BASE + 0x20, 0, 100).unwrap();
    let fault = b.run(200).unwrap_err();
    assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
    let said = "CONV3S1 clear_dvalid=0x1, rotate_weights=0, addr_mod=3, dst=5 (0x2240c005) of Tensix thread T2, matrix unit (FPU): \
                not built: a relic that computes Dst += 0 (MatrixUnit.md), which does not say for which rows";
    assert_eq!(fault.what, said);
    assert_eq!(fault.site.pc, Some(Trisc2.default_reset_pc()));
    assert!(fault.to_string().contains(", pushed by TRISC2 at pc 0xe000, cycle 101"), "{fault}");
    assert!(fault.read.ends_with(", CONV3S1"), "{}", fault.read);
    assert_eq!((fault.site.core, fault.site.cycle), (Some(Trisc2), Some(101)));
    // BRISC's pushes do not pass the MOP expander.
    let mut b = Bench::new();
    b.t.store(Brisc, map::INSTRN_BUF_BASE + THREAD_STRIDE, MOP1, 0).unwrap();
    let fault = b.run(100).unwrap_err();
    assert_eq!((fault.class, fault.site.core), (FaultClass::UndefinedBehavior, Some(Brisc)));
    assert!(fault.to_string().contains(", pushed by BRISC at pc 0x0"), "{fault}");
}

fn any_word() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), (0u32..0x100, any::<u32>()).prop_map(|(op, rest)| op << 24 | rest & 0xFF_FFFF)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_instruction_word_panics(
        words in prop::collection::vec((0usize..3, any_word()), 1..40),
        gprs in prop::collection::vec(any::<u32>(), 8),
        small in any::<bool>(),
    ) {
        let mut b = Bench::new();
        for (i, value) in gprs.iter().enumerate() {
            for thread in 0..3 {
                b.set_gpr(thread, i as u32 * 7, if small { value % 0x1_8000 } else { *value });
            }
        }
        for &(thread, word) in &words {
            let at = b.t.last_step() + 1;
            let _ = b.t.push(CORES[thread], thread, word, at);
            let _ = b.t.store(Brisc, map::INSTRN_BUF_BASE + 0x1_0000 * thread as u32, word, at);
            if b.run(at + 40).is_err() {
                break;
            }
            for core in CORES {
                b.t.explain(core);
            }
        }
    }
}
