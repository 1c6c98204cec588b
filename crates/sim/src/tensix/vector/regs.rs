//! Which registers an instruction names, its sub-unit and its latency.
//!
//! Follows the instructions' pages, VectorUnit.md ("Instructions", "Sub-units") and the table at
//! the top of SFPLOADMACRO.md.

use crate::{Cycle, timing};
use tilework_abi::tensix::insn::VectorOp;

/// `SFPAND_MOD1_USE_VB` and `SFPOR_MOD1_USE_VB`.
const USE_VB: u32 = 1;

/// The registers that an instruction names. Where the instruction has no `VB` or no `VC`, it is
/// `VD`: so say the pages of the instructions, and SFPLOADMACRO.md for what a macro executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regs {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) c: usize,
    pub(super) d: usize,
}

impl Regs {
    /// Those of the instruction as it is encoded.
    pub(super) fn of(insn: VectorOp) -> Self {
        let four = |a: u32, b: u32, c: u32, d: u32| Self { a: a as usize, b: b as usize, c: c as usize, d: d as usize };
        let three = |b: u32, c: u32, d: u32| four(0, b, c, d);
        let two = |c: u32, d: u32| four(0, d, c, d);
        let one = |d: u32| four(0, d, d, d);
        match insn {
            VectorOp::Sfpmad(i) => four(i.va(), i.vb(), i.vc(), i.vd()),
            VectorOp::Sfpadd(i) => four(i.va(), i.vb(), i.vc(), i.vd()),
            VectorOp::Sfpmul(i) => four(i.va(), i.vb(), i.vc(), i.vd()),
            VectorOp::Sfpmul24(i) => four(i.va(), i.vb(), i.vc(), i.vd()),
            VectorOp::Sfpand(i) if i.mod1() & USE_VB != 0 => three(i.vb(), i.vc(), i.vd()),
            VectorOp::Sfpand(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpor(i) if i.mod1() & USE_VB != 0 => three(i.vb(), i.vc(), i.vd()),
            VectorOp::Sfpor(i) => two(i.vc(), i.vd()),
            VectorOp::SfpStochRnd(i) => three(i.vb(), i.vc(), i.vd()),
            // With an immediate, VB is its low four bits, which is where VB lies.
            VectorOp::Sfpshft2(i) => three(i.vb(), i.vc(), i.vd()),
            VectorOp::Sfparecip(i) => three(i.vb(), i.vc(), i.vd()),
            VectorOp::Sfpdivp2(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpexexp(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpexman(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpiadd(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpshft(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpsetcc(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpmov(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpabs(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpnot(i) => two(i.vc(), i.vd()),
            VectorOp::Sfplz(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpsetexp(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpsetman(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpsetsgn(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpxor(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpcast(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpswap(i) => two(i.vc(), i.vd()),
            VectorOp::Sfple(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpgt(i) => two(i.vc(), i.vd()),
            VectorOp::Sfpload(i) => one(i.vd()),
            VectorOp::Sfploadi(i) => one(i.vd()),
            VectorOp::Sfpstore(i) => one(i.vd()),
            VectorOp::Sfplut(i) => one(i.vd()),
            VectorOp::Sfplutfp32(i) => one(i.vd()),
            VectorOp::Sfpmuli(i) => one(i.vd()),
            VectorOp::Sfpaddi(i) => one(i.vd()),
            VectorOp::Sfpconfig(i) => one(i.vd()),
            VectorOp::Sfpencc(i) => one(i.vd()),
            VectorOp::Sfppushc(i) => one(i.vd()),
            VectorOp::Sfppopc(i) => one(i.vd()),
            VectorOp::Sfpcompc(i) => one(i.vd()),
            VectorOp::Sfptransp(i) => one(i.vd()),
            VectorOp::Sfploadmacro(i) => one(i.vd_hi() << 2 | i.vd_lo()),
            VectorOp::Sfpnop(_) => one(0),
        }
    }
}

/// Whether an instruction can be stored as the template that its `VD` names (SFPCONFIG.md,
/// `LaneConfig`).
pub(super) fn can_be_template(insn: VectorOp) -> bool {
    !matches!(insn, VectorOp::Sfpnop(_) | VectorOp::Sfpconfig(_) | VectorOp::Sfploadmacro(_))
}

/// The sub-unit that executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubUnit {
    Load,
    Simple,
    Mad,
    Round,
    Store,
}

impl SubUnit {
    /// Those that a macro can schedule for, in the order of its sequence bits.
    pub(super) const SCHEDULED: [Self; 4] = [Self::Simple, Self::Mad, Self::Round, Self::Store];

    pub(super) fn of(insn: VectorOp) -> Self {
        match insn {
            VectorOp::Sfpload(_) | VectorOp::Sfploadi(_) | VectorOp::Sfploadmacro(_) | VectorOp::Sfpnop(_) => {
                Self::Load
            }
            VectorOp::Sfpstore(_) => Self::Store,
            VectorOp::Sfpshft2(_) | VectorOp::SfpStochRnd(_) => Self::Round,
            _ if is_mad(insn) => Self::Mad,
            _ => Self::Simple,
        }
    }
}

/// Whether the MAD sub-unit executes the instruction.
pub(super) fn is_mad(insn: VectorOp) -> bool {
    matches!(
        insn,
        VectorOp::Sfpmad(_)
            | VectorOp::Sfpadd(_)
            | VectorOp::Sfpmul(_)
            | VectorOp::Sfpaddi(_)
            | VectorOp::Sfpmuli(_)
            | VectorOp::Sfpmul24(_)
            | VectorOp::Sfplut(_)
            | VectorOp::Sfplutfp32(_)
    )
}

/// Whether the instruction has the unit for two cycles, in the second of which it accepts `SFPNOP`
/// only (SFPSWAP.md, SFPSHFT2.md).
pub(super) fn is_two_cycles(insn: VectorOp) -> bool {
    match insn {
        VectorOp::Sfpswap(_) => true,
        VectorOp::Sfpshft2(i) => matches!(i.mod1(), 2..=4),
        _ => false,
    }
}

/// After how many cycles the result of an instruction is there.
pub(super) fn latency(insn: VectorOp) -> Cycle {
    if is_mad(insn) || is_two_cycles(insn) { timing::TENSIX_VECTOR_MAD } else { timing::TENSIX_UNIT }
}
