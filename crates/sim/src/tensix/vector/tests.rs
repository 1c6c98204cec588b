//! What the tests of the vector unit's files share, and tests of what they have in common.

use super::*;
use crate::tensix::bench::{Bench as Chip, CORES};
use crate::tensix::config::Config;
use crate::tensix::counters::Rwc;
use crate::tensix::coverage::Executed;
use crate::tensix::dst::Dst;
use tilework_abi::tensix::insn;

/// The vector unit with what it works on, on thread 0; an instruction in each cycle in which the
/// unit takes one.
#[derive(Default)]
pub(super) struct Bench {
    pub(super) v: Vector,
    pub(super) config: Config,
    pub(super) dst: Dst,
    pub(super) rwc: Rwc,
    pub(super) now: Cycle,
    /// For `cargo xtask coverage`.
    executed: Executed,
}

/// The first lanes' values; the others are zero.
pub(super) fn lane_values(first: &[u32]) -> LReg {
    std::array::from_fn(|lane| first.get(lane).copied().unwrap_or(0))
}

impl Bench {
    pub(super) fn try_run(&mut self, word: u32) -> Result<(), Refusal> {
        let insn = VectorOp::decode(word).expect("a vector instruction");
        let Self { v, config, dst, rwc, now, executed } = self;
        let mut on = Operands { config, thread: 0, dst, rwc, now: *now };
        loop {
            on.now += 1;
            *now = on.now;
            // Scheduled instructions come first in a cycle.
            if v.next_scheduled(on.now - 1) == on.now {
                v.step_scheduled(&mut on)?;
            }
            let looked = v.look(insn.word(), on.now, on.config).expect("an instruction of the unit");
            if looked.accepts <= on.now {
                executed.count(insn::Insn::decode(word));
                return v.issue(&mut on, &looked).map(drop);
            }
        }
    }

    pub(super) fn run(&mut self, words: &[u32]) {
        for &word in words {
            assert_eq!(self.try_run(word), Ok(()), "{}", insn::Insn::decode(word));
        }
    }

    /// Cycles in which no instruction issues.
    pub(super) fn idle(&mut self, cycles: u32) {
        for _ in 0..cycles {
            let Self { v, config, dst, rwc, now, .. } = self;
            *now += 1;
            let mut on = Operands { config, thread: 0, dst, rwc, now: *now };
            if v.next_scheduled(on.now - 1) == on.now {
                v.step_scheduled(&mut on).expect("no fault");
            }
        }
    }

    pub(super) fn set(&mut self, index: usize, values: LReg) {
        self.v.lregs[index] = values;
    }
    pub(super) fn lreg(&self, index: usize) -> LReg {
        self.v.lregs[index]
    }
    pub(super) fn flags(&self) -> u32 {
        self.v.flags
    }
    pub(super) fn use_flags(&self) -> u32 {
        self.v.use_flags
    }
}

#[test]
fn results_of_two_cycles_hold_up_what_reads_them() {
    let mad = insn::Sfpmad::build().va(10).vb(10).vc(9).vd(1).word();
    let cycles = |words: &[u32]| {
        let mut b = Bench::default();
        b.run(words);
        b.now
    };
    let mov = |vc: u32| insn::Sfpmov::build().vc(vc).vd(2).word();
    let nop = insn::Sfpnop::build().word();
    assert_eq!((cycles(&[mad, mov(1)]), cycles(&[mad, mov(3)]), cycles(&[mad, nop, mov(1)])), (3, 2, 3));
    // An indirect destination can be any register.
    let indirect = insn::Sfpmad::build().va(10).vb(10).vc(9).vd(1).mod1(8).word();
    assert_eq!(cycles(&[indirect, mov(3)]), 3);
    assert_eq!((cycles(&[mad, insn::Sfpstore::build().vd(1).word()]), cycles(&[mad, mad, mad])), (3, 3));
    // Behind SFPSWAP, and shuffles of lanes, only SFPNOP comes at once.
    let swap = insn::Sfpswap::build().vc(3).vd(4).word();
    assert_eq!((cycles(&[swap, mov(5)]), cycles(&[swap, nop]), cycles(&[swap, nop, mov(5)])), (3, 2, 3));
    let shuffle = |mode: u32| insn::Sfpshft2::build().vc(3).vd(4).mod1(mode).word();
    assert_eq!((cycles(&[shuffle(3), mov(5)]), cycles(&[shuffle(0), mov(5)])), (3, 2));
}

#[test]
fn reads_that_the_stalling_logic_misses_are_faults() {
    let after_mad = |word: u32, gap: bool, bugs: Bugs| {
        let mut b = Bench::default();
        b.v.set_bugs(bugs);
        b.run(&[insn::Sfpmad::build().va(10).vb(10).vc(9).vd(1).word()]);
        if gap {
            b.run(&[insn::Sfpnop::build().word()]);
        }
        let refused = b.try_run(word).is_err();
        (refused, b.now)
    };
    let chip = Bugs::AS_CHIP;
    let missed = [
        insn::Sfpand::build().vb(1).vc(2).vd(3).mod1(1).word(),
        insn::Sfpor::build().vb(1).vc(2).vd(3).mod1(1).word(),
        insn::Sfpiadd::build().vc(2).vd(1).word(),
        insn::Sfpshft::build().imm12(1).vc(2).vd(1).mod1(1).word(),
        insn::Sfpshft2::build().vc(1).vd(2).mod1(3).word(),
        insn::Sfpshft2::build().vb(1).vc(2).vd(3).mod1(5).word(),
    ];
    for word in missed {
        let insn = insn::Insn::decode(word);
        assert!(after_mad(word, false, chip).0 && !after_mad(word, true, chip).0, "{insn}");
        let stalled = after_mad(word, false, chip.without(crate::Bug::VectorStalls));
        assert_eq!(stalled, (false, 3), "{insn} without the bug");
    }
    // These are seen, or read nothing in their first cycle.
    let seen = [
        insn::Sfpswap::build().vc(1).vd(2).word(),
        insn::Sfpiadd::build().vc(1).vd(2).word(),
        insn::Sfpiadd::build().imm12(1).vc(2).vd(1).mod1(1).word(),
        insn::Sfpgt::build().vc(2).vd(1).mod1(1).word(),
    ];
    seen.into_iter().for_each(|word| assert!(!after_mad(word, false, chip).0, "{}", insn::Insn::decode(word)));
    // With the logic off, everything is missed.
    let mut b = Bench::default();
    b.config.set(0, tilework_abi::tensix::cfg::CHICKEN_BITS_SFPU_SCBD_DISABLE.word.into(), 1).unwrap();
    b.run(&[insn::Sfpmad::build().va(10).vb(10).vc(9).vd(1).word()]);
    assert!(b.try_run(insn::Sfpmov::build().vc(1).vd(2).word()).is_err());
}

#[test]
fn a_swap_right_behind_a_product_compares_what_was_there_before() {
    // l1 is 0, becomes 1 (1 * 1 + 0) and is compared with l2, which is 0.5: 0 < 0.5, so nothing is
    // exchanged, although 1 > 0.5.
    let half = insn::Sfploadi::build().vd(2).imm16(0x3F00).word();
    let mad = insn::Sfpmad::build().va(10).vb(10).vc(9).vd(1).word();
    let minimum = insn::Sfpswap::build().vc(2).vd(1).mod1(1).word();
    let mut b = Bench::default();
    b.run(&[half, mad, minimum]);
    assert_eq!([b.v.lregs[1][0], b.v.lregs[2][0]], [1.0f32, 0.5].map(f32::to_bits));
    let mut b = Bench::default();
    b.run(&[half, mad, insn::Sfpnop::build().word(), minimum]);
    assert_eq!([b.v.lregs[1][0], b.v.lregs[2][0]], [0.5f32, 1.0].map(f32::to_bits));
}

/// The coprocessor, with `f(row)` in each row of Dst.
fn coprocessor(f: impl Fn(usize) -> u16) -> Chip {
    let mut b = Chip::new();
    (0..64).for_each(|row| b.t.coprocessor.dst.write_at(row, [f(row); 16]));
    b
}

#[test]
fn threads_wait_for_the_unit_and_for_results() {
    let mut b = coprocessor(|_| 0);
    let mad = insn::Sfpmad::build().va(10).vb(10).vc(9).vd(1).word();
    let mov = insn::Sfpmov::build().vc(1).vd(2).word();
    let swap = insn::Sfpswap::build().vc(3).vd(4).word();
    let passed = b.execute(0, &[mad, mov, mov, swap, mov]);
    let cycles: Vec<_> = passed.iter().map(|at| at - passed[0]).collect();
    assert_eq!(cycles, [0, 2, 3, 4, 6]);
    // STALLWAIT for the vector unit (C11) releases the thread when the result is there.
    let wait = insn::Stallwait::build().block_mask(insn::BLOCK_ALL.into()).condition_mask(1 << 11).word();
    let passed = b.execute(0, &[mad, wait, insn::Nop::build().word()]);
    assert_eq!([passed[1] - passed[0], passed[2] - passed[0]], [1, 3]);
}

#[test]
fn what_a_macro_has_scheduled_executes_without_further_instructions() {
    let mut b = coprocessor(|row| if row < 4 { 0xFFFF } else { 0 });
    // Macro 0: SFPNOT two cycles after the next, a store of the register two cycles later still.
    let sequence = 2 << 3 | 4 | (4 << 3 | 3) << 24;
    let set_up = [
        insn::Sfpnot::build().vd(12).word(),
        insn::Sfploadi::build().mod0(10).imm16(sequence & 0xFFFF).word(),
        insn::Sfploadi::build().mod0(8).imm16(sequence >> 16).word(),
        insn::Sfpconfig::build().vd(4).word(),
        insn::Sfpconfig::build().vd(8).mod1(1).imm16(6).word(),
    ];
    b.execute(1, &set_up);
    let wait = insn::Stallwait::build().block_mask(insn::BLOCK_ALL.into()).condition_mask(1 << 11).word();
    let load = insn::Sfploadmacro::build().vd_lo(1).mod0(6).word();
    let passed = b.execute(1, &[load, wait, insn::Nop::build().word()]);
    assert_eq!(b.t.coprocessor.vector.lregs[1], [0xFFFF_0000; LANES]);
    assert_eq!(b.t.coprocessor.dst.read_at(2), std::array::from_fn(|column| if column % 2 == 0 { 0 } else { 0xFFFF }));
    assert!(passed[2] - passed[0] > 5, "the wait lasts until the store: {passed:?}");
}

#[test]
fn a_write_of_the_seed_acts_on_the_next_number() {
    let mut b = coprocessor(|_| 0);
    let take = insn::Sfpmov::build().vc(9).vd(1).mod1(8).word();
    let word = u32::from(tilework_abi::tensix::cfg::PRNG_SEED_SEED_VAL.word);
    b.execute(1, &[take]);
    b.t.store(CORES[1], tilework_abi::tensix::CFG_BASE + 4 * word, 5, b.t.last_step() + 1).expect("configuration");
    b.execute(1, &[take]);
    let seeded = b.t.coprocessor.vector.lregs[1];
    assert_eq!(seeded[0], 0x2E79_84F4);
    b.execute(1, &[take]);
    assert_ne!(b.t.coprocessor.vector.lregs[1], seeded, "seeded once");
}

#[test]
fn a_fault_of_a_scheduled_instruction_names_the_thread() {
    let mut b = coprocessor(|_| 0);
    // SFPPOPC of an empty stack in the cycle after the load.
    let set_up = [insn::Sfppopc::build().vd(12).word(), insn::Sfpconfig::build().vd(4).mod1(1).imm16(4).word()];
    b.execute(2, &set_up);
    b.push(2, b.t.last_step() + 1, &[insn::Sfploadmacro::build().mod0(6).word()]);
    let fault = b.run(10_000).expect_err("an empty stack");
    let text = fault.to_string();
    assert!(text.contains("SFPPOPC") && text.contains("T2"), "{text}");
}

/// Cycles for a tile, 32 registers, of the loops in docs/timing.md, "Compared with cards".
#[test]
fn loops_that_were_measured_on_cards_take_what_the_page_says() {
    let load = insn::Sfpload::build().vd(3).word();
    let lut = |vd: u32| insn::Sfplutfp32::build().vd(vd).mod1(2).word();
    let store = |vd: u32| insn::Sfpstore::build().vd(vd).word();
    let tile = |words: &[u32], counts_rows: bool| {
        let mut b = Bench::default();
        for _ in 0..32 {
            b.run(words);
            // INCRWC is the matrix unit's.
            b.idle(counts_rows.into());
        }
        b.now
    };
    assert_eq!(tile(&[load, lut(3), store(3)], true), 160);
    assert_eq!(tile(&[load, lut(3), store(3)], false), 128);
    // The store is that of the loop before.
    assert_eq!(tile(&[load, store(6), lut(6)], false), 96);
    assert_eq!(tile(&[load, store(3)], true), 96);
}
