//! What a tile's recorder keeps of the coprocessor's wait gates, so that few events say what orders
//! its units.

use super::{Agent, Recorder, Unit, Wants, What};
use crate::Cycle;
use crate::tensix::Origin;
use tilework_abi::tensix::insn::{self, Insn, MatrixOp, MiscOp, Unit as Of, WaitOp};

/// Threads.
const THREADS: usize = 3;

/// An instruction that has passed a wait gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    pub(crate) thread: usize,
    pub(crate) insn: Insn,
    pub(crate) origin: Origin,
    /// Blocks of Dst that it has written, or read as the packer.
    pub(crate) written: u128,
    pub(crate) read: u128,
    /// Banks of SrcA or SrcB may have changed hands.
    pub(crate) gives: bool,
}

/// By thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Gates {
    /// What the last wait instruction may hold back, until something of it has passed.
    held: [u16; THREADS],
    /// Blocks of Dst that were told of since the last wait instruction: written, and read.
    told: [[u128; 2]; THREADS],
    /// Something has passed since somebody observes.
    started: bool,
}

impl Gates {
    /// Whether an instruction is told of.
    fn takes(&mut self, passing: &Passing) -> bool {
        let held = &mut self.held[passing.thread];
        let is_first = *held != 0 && insn::is_blocked_by(passing.insn.word(), *held);
        if is_first {
            *held = 0;
        }
        let block = match passing.insn {
            Insn::Wait(WaitOp::Stallwait(wait)) => Some(wait.block_mask()),
            Insn::Wait(WaitOp::Semwait(wait)) => Some(wait.block_mask()),
            Insn::Wait(WaitOp::Streamwait(wait)) => Some(wait.block_mask()),
            _ => None,
        };
        if let Some(block) = block {
            // None is the matrix unit (STALLWAIT.md).
            *held = if block == 0 { Of::Matrix.block_bits() } else { block as u16 };
            self.told[passing.thread] = [0; 2];
        }
        let always = match passing.insn {
            Insn::Matrix(MatrixOp::Zeroacc(_)) => true,
            Insn::Matrix(_) => passing.gives,
            Insn::Misc(MiscOp::Setdvalid(_)) => true,
            Insn::Misc(_) | Insn::Vector(_) => false,
            _ => true,
        };
        always || is_first
    }

    /// What is used from now on is told of again.
    pub(super) fn tell_again(&mut self) {
        self.told = Default::default();
    }

    /// The blocks of `blocks` that were not told of.
    fn news(&mut self, thread: usize, blocks: u128, reads: bool) -> u128 {
        let told = &mut self.told[thread][usize::from(reads)];
        let news = blocks & !*told;
        *told |= news;
        news
    }
}

impl Recorder {
    /// An instruction passes a wait gate.
    pub(crate) fn passes(&mut self, at: Cycle, passing: &Passing) {
        let Passing { thread, insn, origin, written, read, .. } = *passing;
        let gates = self.gates.get_or_insert_default();
        let is_first = !std::mem::replace(&mut gates.started, true);
        let takes = gates.takes(passing);
        // What was written before somebody looked is not this instruction's.
        let written = if is_first { 0 } else { gates.news(thread, written, false) };
        let read = gates.news(thread, read, true);
        let (agent, pc) = (Agent::Coprocessor(Unit::Gate), origin.pc().unwrap_or(0));
        if takes {
            let (by, pushed) = (origin.core(), origin.pushed());
            self.record(at, agent, pc, What::Passes { thread: thread as u8, by, pushed, insn: insn.word() });
        }
        let unit = match insn {
            Insn::Matrix(_) => Unit::Matrix,
            Insn::Packer(_) => Unit::Packer,
            _ => Unit::Vector,
        };
        for (blocks, writes) in [(written, true), (read, false)].into_iter().filter(|(blocks, _)| *blocks != 0) {
            let blocks = [blocks as u64, (blocks >> 64) as u64];
            self.record(at, agent, pc, What::Dst { thread: thread as u8, unit, blocks, writes });
        }
    }

    /// Whether [`Recorder::passes`] and its like are wanted.
    #[inline]
    pub(crate) fn watches(&self) -> bool {
        self.wants(Wants::COPROCESSOR)
    }
}
