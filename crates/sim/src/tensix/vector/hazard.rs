//! What the unit stalls for, and what it should have stalled for.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/SFPMAD.md ("Instruction scheduling") and the
//! same section of SFPSWAP.md, SFPSHFT2.md and SFPLUTFP32.md. The result of the MAD sub-unit is
//! there after two cycles. In the cycle after such an instruction, the unit stalls an instruction
//! that reads the result, so far as its logic sees that it does. Software must keep a gap in the
//! cases that the logic does not see; without it the instruction is a fault here, because what it
//! reads is not documented. The exception is `SFPSWAP`, which real kernels send without a gap
//! (tt-metal's reciprocal): its comparison is in its first cycle and so sees what the register
//! held before, the exchange is in its second and moves the new value. Where the pages do not say
//! what the logic sees, it sees what the instruction reads. Without [`Bug::VectorStalls`] it
//! always does.

use super::regs::{Regs, is_mad, is_two_cycles};
use super::{LReg, WRITABLE, undefined};
use crate::tensix::config::{Config, Refusal};
use crate::{Bug, Bugs, Cycle};
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::VectorOp;

/// `INDIRECT_VA` of `SFPMAD` and its like.
const INDIRECT_VA: u32 = 4;
/// `INDIRECT_VD` of `SFPMAD`, `SFPLUT` and their like.
const INDIRECT_VD: u32 = 8;
/// All registers that the logic looks after.
const ALL: u8 = 0xFF;
/// `LReg[7]`, which names registers.
const INDEX: u8 = 1 << 7;
/// Registers of a block of four.
const FIRST_FOUR: u8 = 0x0F;

/// Refuses a read that comes too early.
pub(super) fn refuse() -> Result<(), Refusal> {
    undefined(
        "a register is read one cycle after an instruction of two cycles that writes it, which the stalling logic \
         does not see (SFPMAD.md): software must leave a gap",
    )
}

/// The last instructions that hold up others.
#[derive(Clone, Debug, Default)]
pub(super) struct Hazards {
    /// What the destination of the last instruction of the MAD sub-unit held before.
    before: LReg,
    /// Registers that the last instruction of the MAD sub-unit writes, and the cycle behind it.
    written: u8,
    written_after: Cycle,
    /// In this cycle the unit accepts `SFPNOP` only.
    only_nop: Cycle,
    bugs: Bugs,
}

/// The registers that an instruction reads.
#[derive(Clone, Copy, Default, Debug)]
struct Reads {
    /// Those that the logic believes it to read.
    seen: u8,
    /// Those that it reads in its first cycle.
    real: u8,
}

/// What an instruction is for the logic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effects {
    reads: Reads,
    /// The registers that an instruction of the MAD sub-unit writes.
    written: u8,
    is_mad: bool,
    is_two_cycles: bool,
    is_nop: bool,
}

impl Effects {
    pub(super) fn of(insn: VectorOp, r: Regs) -> Self {
        Self {
            reads: reads(insn, r),
            written: if is_indirect(insn, INDIRECT_VD) { ALL } else { bit(r.d) },
            is_mad: is_mad(insn),
            is_two_cycles: is_two_cycles(insn),
            is_nop: matches!(insn, VectorOp::Sfpnop(_)),
        }
    }
}

impl Hazards {
    /// Which documented bugs the logic has.
    pub(super) fn set_bugs(&mut self, bugs: Bugs) {
        self.bugs = bugs;
    }

    /// When the unit takes the instruction that stands before it in cycle `now`, and whether that
    /// instruction reads too early then what the logic does not see.
    #[inline]
    pub(super) fn look(&self, of: &Effects, now: Cycle, config: &Config) -> (Cycle, bool) {
        let waits = self.only_nop == now && now != 0 && !of.is_nop;
        if !self.is_after_mad(now) {
            return (now + Cycle::from(waits), false);
        }
        let Reads { seen, real } = of.reads;
        // Without bugs the logic sees all of it.
        let seen = if self.bugs.has(Bug::VectorStalls) { seen } else { real };
        let seen = if stalls(config) { seen } else { 0 };
        let stalls = seen & self.written != 0;
        (now + Cycle::from(stalls || waits), real & !seen & self.written != 0)
    }

    /// What register `r` held when an instruction that reads it too early looked at it; `None`: as
    /// now, or this is not known.
    pub(super) fn before(&self, r: usize) -> Option<&LReg> {
        (self.written == bit(r) && self.written != 0).then_some(&self.before)
    }

    /// An instruction is about to issue that changes the register which is now `old`.
    #[inline]
    pub(super) fn keep(&mut self, of: &Effects, old: &LReg) {
        if of.is_mad {
            self.before = *old;
        }
    }

    /// The instruction has issued in cycle `now`.
    #[inline]
    pub(super) fn issued(&mut self, of: &Effects, now: Cycle) {
        if of.is_mad {
            self.written = of.written;
            self.written_after = now + 1;
        }
        if of.is_two_cycles {
            self.only_nop = now + 1;
        }
    }

    #[inline]
    fn is_after_mad(&self, now: Cycle) -> bool {
        self.written != 0 && self.written_after == now
    }
}

/// Whether the stalling logic works.
fn stalls(config: &Config) -> bool {
    config.global(cfg::CHICKEN_BITS_SFPU_SCBD_DISABLE) == 0
}

fn bit(r: usize) -> u8 {
    if r < WRITABLE { 1 << r } else { 0 }
}

/// Whether an instruction of the MAD sub-unit has the mode `indirect`.
fn is_indirect(insn: VectorOp, indirect: u32) -> bool {
    let mode = match insn {
        VectorOp::Sfpmad(i) => i.mod1(),
        VectorOp::Sfpadd(i) => i.mod1(),
        VectorOp::Sfpmul(i) => i.mod1(),
        VectorOp::Sfpmul24(i) => i.mod1(),
        VectorOp::Sfpaddi(i) => i.mod1() & INDIRECT_VD,
        VectorOp::Sfpmuli(i) => i.mod1() & INDIRECT_VD,
        VectorOp::Sfplut(i) => i.mod0() & INDIRECT_VD,
        VectorOp::Sfplutfp32(i) => i.mod1_mirror() & INDIRECT_VD,
        _ => 0,
    };
    mode & indirect != 0
}

/// What `SFPSHFT2` reads in a mode, for which it names `b`, `c` and `d`.
fn shuffle_reads(mode: u32, [b, c, d]: [u8; 3]) -> Reads {
    let moved = FIRST_FOUR & !1;
    match mode {
        0 => Reads { seen: moved, real: moved },
        1 => Reads { seen: FIRST_FOUR, real: FIRST_FOUR },
        2 => Reads { seen: 0, real: moved | c },
        3 | 4 => Reads { seen: 0, real: c },
        5 => Reads { seen: c | d, real: b | c },
        _ => Reads { seen: d, real: b },
    }
}

/// What an instruction reads.
fn reads(insn: VectorOp, r: Regs) -> Reads {
    let [a, b, c, d] = [r.a, r.b, r.c, r.d].map(bit);
    let both = |mask: u8| Reads { seen: mask, real: mask };
    let index = if is_indirect(insn, INDIRECT_VD) { INDEX } else { 0 };
    match insn {
        VectorOp::Sfpmad(_) | VectorOp::Sfpadd(_) | VectorOp::Sfpmul(_) | VectorOp::Sfpmul24(_) => {
            both(if is_indirect(insn, INDIRECT_VA) { ALL } else { a | b | c | index })
        }
        VectorOp::Sfpaddi(_) | VectorOp::Sfpmuli(_) => both(c | index),
        VectorOp::Sfplut(_) => both(FIRST_FOUR | index),
        VectorOp::Sfplutfp32(i) => {
            let tables = if i.mod1() & 2 == 0 || i.mod1() & 10 != 10 { ALL & !INDEX } else { FIRST_FOUR };
            let named = if i.mod1() & INDIRECT_VD != 0 { INDEX } else { 0 };
            Reads { seen: ALL & !INDEX | index, real: tables | named }
        }
        // What VB is, the logic does not see.
        VectorOp::Sfpand(i) => Reads { seen: c | bit(i.vd() as usize), real: b | c },
        VectorOp::Sfpor(i) => Reads { seen: c | bit(i.vd() as usize), real: b | c },
        VectorOp::Sfpiadd(i) => Reads { seen: c, real: if i.mod1() & 1 != 0 { c } else { b | c } },
        VectorOp::Sfpshft(i) => Reads {
            seen: c,
            real: if i.mod1() & 5 == 5 {
                c
            } else if i.mod1() & 1 != 0 {
                b
            } else {
                b | c
            },
        },
        VectorOp::Sfpconfig(i) => Reads { seen: 0, real: if i.mod1() & 1 == 0 || r.d < 4 { bit(0) } else { 0 } },
        // A plain swap reads in its second cycle only.
        VectorOp::Sfpswap(i) => Reads { seen: 0, real: if i.mod1() == 0 { 0 } else { c | d } },
        VectorOp::Sfpshft2(i) => shuffle_reads(i.mod1(), [b, c, d]),
        VectorOp::SfpStochRnd(i) => {
            let by_register = matches!(i.mod1(), 4 | 5) && !i.use_imm5();
            Reads { seen: b | c, real: if by_register { b | c } else { c } }
        }
        VectorOp::Sfparecip(i) => Reads { seen: b | c, real: if i.mod1() == 1 { b | c } else { c } },
        VectorOp::Sfpmov(i) if i.mod1() & 8 != 0 => Reads { seen: c, real: 0 },
        VectorOp::Sfpsetexp(i) => both(if i.mod1() & 1 != 0 { c } else { b | c }),
        VectorOp::Sfpsetman(i) => both(if i.mod1() & 1 != 0 { c } else { b | c }),
        VectorOp::Sfpsetsgn(i) => both(if i.mod1() & 1 != 0 { c } else { b | c }),
        VectorOp::Sfpxor(_) | VectorOp::Sfpgt(_) | VectorOp::Sfple(_) => both(b | c),
        VectorOp::Sfptransp(_) => both(ALL),
        VectorOp::Sfpstore(_) => both(d),
        VectorOp::Sfpload(i) => both(if i.mod0() >= 14 { d } else { 0 }),
        VectorOp::Sfploadmacro(i) => both(if i.mod0() >= 14 { d } else { 0 }),
        VectorOp::Sfploadi(i) => both(if i.mod0() >= 8 { d } else { 0 }),
        VectorOp::Sfpnop(_)
        | VectorOp::Sfpencc(_)
        | VectorOp::Sfpcompc(_)
        | VectorOp::Sfppushc(_)
        | VectorOp::Sfppopc(_) => Reads::default(),
        // The others have VC only.
        _ => both(c),
    }
}
