//! What the tests of the vector unit's files share, and tests of what they have in common.

use super::*;
use crate::tensix::config::Config;
use crate::tensix::counters::Rwc;
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
}

/// The first lanes' values; the others are zero.
pub(super) fn lane_values(first: &[u32]) -> LReg {
    std::array::from_fn(|lane| first.get(lane).copied().unwrap_or(0))
}

impl Bench {
    pub(super) fn try_run(&mut self, word: u32) -> Result<(), Refusal> {
        let insn = VectorOp::decode(word).expect("a vector instruction");
        let Self { v, config, dst, rwc, now } = self;
        let mut on = Operands { config, thread: 0, dst, rwc };
        *now += 1;
        loop {
            // Scheduled instructions come first in a cycle.
            if v.next_scheduled(*now - 1) == *now {
                v.step_scheduled(&mut on, *now)?;
            }
            match v.accepts(insn, *now, on.config) {
                at if at > *now => *now += 1,
                _ => return v.issue(&mut on, insn, *now).map(drop),
            }
        }
    }

    pub(super) fn run(&mut self, words: &[u32]) {
        for &word in words {
            assert_eq!(self.try_run(word), Ok(()), "{}", insn::Insn::decode(word));
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
