//! The CSRs `tt_cfg_qstatus` and `tt_cfg_bstatus`: which instructions are in flight.
//!
//! Follows BlackholeA0/TensixTile/BabyRISCV/CSRs.md.

use super::Tensix;
use super::border::Client;
use super::coprocessor::{Coprocessor, THREADS};
use super::frontend::Queued;
use crate::Cycle;
use tilework_abi::tensix::Processor;
use tilework_abi::tensix::insn::{FrontEndOp, Insn, Unit};

/// Instructions in the front end, and whether a lane of the vector unit is enabled.
const QSTATUS: u16 = 0xBC0;
/// Instructions in the front end or in a unit.
const BSTATUS: u16 = 0xBC1;

/// Types of instructions, by bit.
const REPLAY: u32 = 1 << 0;
const MOP: u32 = 1 << 1;
const SCALAR: u32 = 1 << 2 | MISC;
const MOVER: u32 = 1 << 3 | MISC;
const UNPACKER: u32 = 1 << 4 | MISC;
const PACKER: u32 = 1 << 5 | MISC;
const CONFIG: u32 = 1 << 6;
const SYNC: u32 = 1 << 7;
/// The miscellaneous unit, or one of those that have a bit of their own, too.
const MISC: u32 = 1 << 8;
const VECTOR: u32 = 1 << 9;
const MATRIX: u32 = 1 << 10;

/// Conditions of `STALLWAIT` that say that a unit has instructions of a thread. Those of the mover
/// and of the configuration unit do not know the thread: they count for all.
const CONDITIONS: [(u32, u32); 8] =
    [(0, SCALAR), (1, UNPACKER), (2, UNPACKER), (3, PACKER), (4, MATRIX), (9, MOVER), (11, VECTOR), (12, CONFIG)];

fn type_of(insn: Insn) -> u32 {
    match insn {
        Insn::FrontEnd(FrontEndOp::Mop(_)) => MOP,
        Insn::FrontEnd(FrontEndOp::Replay(insn)) if insn.exec() || !insn.load() => REPLAY,
        _ => match insn.unit() {
            None | Some(Unit::FrontEnd) => 0,
            Some(Unit::Misc) => MISC,
            Some(Unit::Sync | Unit::Wait) => SYNC,
            Some(Unit::Config) => CONFIG,
            Some(Unit::Scalar) => SCALAR,
            Some(Unit::Mover) => MOVER,
            Some(Unit::Matrix) => MATRIX,
            Some(Unit::Vector) => VECTOR,
            Some(Unit::Packer) => PACKER,
            Some(Unit::Unpacker) => UNPACKER,
        },
    }
}

impl Coprocessor {
    fn queued(&self, thread: usize) -> u32 {
        let Queued { insns, expands, replays } = self.threads[thread].front.queued();
        let expanding = if expands { MOP } else { 0 } | if replays { REPLAY } else { 0 };
        insns.fold(expanding, |types, insn| types | type_of(insn))
    }

    fn busy(&self, thread: usize, now: Cycle) -> u32 {
        let repeats = if self.threads[thread].retry.is_some() { SCALAR } else { 0 };
        let busy = CONDITIONS.iter().filter(|(condition, _)| self.busy_until(thread, *condition) > now);
        busy.fold(self.queued(thread) | repeats, |types, (_, bits)| types | bits)
    }
}

impl Tensix {
    /// The CSR `csr` of `core` in cycle `now`; `None`: it is not one of the coprocessor's.
    pub(crate) fn status_csr(&self, core: Processor, csr: u16, now: Cycle) -> Option<u32> {
        let cop = &self.coprocessor;
        let types = |thread| match csr {
            QSTATUS => Some(cop.queued(thread)),
            BSTATUS => Some(cop.busy(thread, now)),
            _ => None,
        };
        let all = (0..THREADS).try_fold(0, |all, thread| Some(all | types(thread)?))?;
        let own = match Client::of(core) {
            Some(Client::T(thread)) => types(thread)?,
            _ => all,
        };
        Some(if csr == BSTATUS {
            own | all << 11
        } else {
            let lanes = u32::from(cop.vector.is_any_lane_enabled());
            own | lanes << 11 | all << 13 | lanes << 24
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensix::bench::Bench;
    use Processor::{Brisc, Trisc0, Trisc1};
    use tilework_abi::tensix::insn;

    #[test]
    fn queued_instructions_show_their_types() {
        let mut b = Bench::new();
        let q = |b: &Bench, core| b.t.status_csr(core, QSTATUS, 1).unwrap();
        const LANES: u32 = 1 << 11 | 1 << 24;
        assert_eq!(q(&b, Trisc0), LANES, "all lanes are enabled");
        b.push(0, 0, &[insn::Setrwc::build().word(), insn::Setdmareg::build().word(), insn::Mop::build().word()]);
        let types = MATRIX | SCALAR | MOP;
        assert_eq!(q(&b, Trisc0), LANES | types | types << 13);
        assert_eq!(q(&b, Trisc1), LANES | types << 13);
        assert_eq!(q(&b, Brisc), LANES | types | types << 13);
        assert_eq!((b.t.status_csr(Trisc0, 0xBC2, 1), b.t.status_csr(Brisc, 0xBBF, 1)), (None, None));
    }

    #[test]
    fn busy_units_show_until_they_are_done() {
        let mut b = Bench::new();
        let loadind = insn::Loadind::build().addr_reg(1).size(1).word();
        let passed = b.execute(0, &[loadind])[0];
        let busy = |b: &Bench, core, at| b.t.status_csr(core, BSTATUS, at).unwrap();
        assert_eq!(busy(&b, Trisc0, passed + 1), SCALAR | SCALAR << 11);
        assert_eq!(busy(&b, Trisc1, passed + 1), SCALAR << 11);
        assert_eq!(busy(&b, Trisc0, passed + 100), 0);
        assert_eq!(b.t.status_csr(Trisc0, QSTATUS, passed + 1).unwrap() & 0x7FF, 0, "it has left the front end");
    }
}
