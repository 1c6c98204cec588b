//! The shortest poll loops: a load of a register and a branch back to it.
//!
//! Most cores that wait for a device are in one. When such a loop is about to be watched for an
//! iteration ([`Visited::Armed`](crate::poll::Visited)), it is known beforehand whether that
//! iteration repeats what was before. So the core does not execute it and compare: it parks at
//! once, exactly as it would have parked at the end of the iteration, which counts as executed.

use crate::poll::Watch;
use crate::{Bus, Core, Cycle, Insn, Op, Width, timing};

/// Instructions of such a loop.
const INSNS: u64 = 2;

impl Core {
    /// Parks the core in the loop at whose head `pc` it is at cycle `now`, with the instructions
    /// `insns` there, having executed `retired`, if the next iteration ends until `limit` and would
    /// show that the loop repeats itself. Returns the cycle and the count at its end. `bubble`: the
    /// extra cycles of a predicted jump.
    #[inline(never)]
    pub(crate) fn park_at_once<B: Bus>(
        &mut self,
        bus: &mut B,
        (now, limit): (Cycle, Cycle),
        (pc, insns): (u32, &[Insn]),
        retired: u64,
        bubble: Cycle,
    ) -> Option<(Cycle, u64)> {
        let &[load, branch, ..] = insns else { return None };
        let reg = |number: u8| self.regs[usize::from(number & 31)];
        let waits = load.rd != 0 && [branch.rs1, branch.rs2].contains(&load.rd);
        if B::COUNTS || load.op != Op::Lw || branch.imm != -4 || !waits {
            return None;
        }
        // Nothing is in flight, so that its time depends on nothing before it.
        if self.outstanding > now || bus.draining(now) != 0 || now >= limit {
            return None;
        }
        let (a, b) = (reg(branch.rs1), reg(branch.rs2));
        let goes_on = match branch.op {
            Op::Beq => a == b,
            Op::Bne => a != b,
            Op::Blt => a.cast_signed() < b.cast_signed(),
            Op::Bge => a.cast_signed() >= b.cast_signed(),
            Op::Bltu => a < b,
            Op::Bgeu => a >= b,
            _ => false,
        };
        let addr = reg(load.rs1).wrapping_add(load.imm.cast_unsigned());
        if !goes_on || !addr.is_multiple_of(4) {
            return None;
        }
        let (value, latency) = bus.steady_word(now, addr)?;
        let ready = now + Cycle::from(latency);
        let end = ready.max(now + timing::ISSUE) + timing::ISSUE + bubble;
        if value != reg(load.rd) || end > limit {
            return None;
        }
        self.result_at(load.rd, ready);
        let watch = Watch { addr, width: Width::Word, pc, value, at: now, stored: false };
        self.polls.park_at_once(watch, end, retired + INSNS);
        Some((end, retired + INSNS))
    }
}
