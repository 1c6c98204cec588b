//! The vector unit (SFPU): 32 lanes of 32 bits.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/VectorUnit.md, the pages of its instructions
//! and WormholeB0/TensixTile/TensixCoprocessor/LReg.md (the same on Blackhole). Each file has one
//! class of instructions; an instruction works on whole registers with a mask of lanes.
//!
//! An instruction takes effect in the cycle in which it issues, and the unit stalls what would read
//! a result of two cycles too early (`hazard.rs`). While `SFPLOADMACRO` has instructions in flight,
//! several execute in one cycle: they all read what the cycle began with, and their results arrive
//! one or two cycles later (`load_macro.rs`).

mod bits;
mod columns;
mod configure;
mod cross_lane;
mod float;
mod fma;
mod hazard;
mod integer;
mod known;
mod load_macro;
mod load_store;
mod lut;
#[cfg(test)]
mod mode_tests;
mod predicate;
mod random;
mod recip;
mod regs;
#[cfg(test)]
mod tests;

use super::config::{Config, Refusal};
use super::counters::Rwc;
use super::dst::Dst;
use crate::{Bugs, Cycle, FaultClass};
use hazard::Hazards;
use known::{Kept, Known};
use load_macro::Macros;
use regs::Regs;
use tilework_abi::tensix::insn::VectorOp;

/// Lanes; four rows of [`COLUMNS`].
const LANES: usize = 32;
/// Columns of the lanes: what `SFPCONFIG` sets has one value for each.
const COLUMNS: usize = 8;
/// From this `VD` on, an instruction is stored as a template instead of being executed.
const TEMPLATES: usize = 12;
/// The sign of FP32 and of a sign-magnitude integer.
const SIGN: u32 = 1 << 31;
/// 1.0.
const ONE: u32 = 0x3F80_0000;
/// The register that only instructions of a macro write, and only their stores read.
const MACRO_LREG: usize = 16;
/// Registers that instructions write.
const WRITABLE: usize = 8;

/// A register: a datum for each lane.
type LReg = [u32; LANES];

/// What `LReg[11..15]` hold after reset, and what `SFPCONFIG` without a value puts there: -1,
/// 1/512, -0.67487759, -0.34484843.
const DEFAULTS: [u32; 4] =
    [(-1.0f32).to_bits(), (1.0f32 / 512.0).to_bits(), (-0.674_877_6f32).to_bits(), (-0.344_848_43f32).to_bits()];

/// The vector unit's state.
#[derive(Clone, Debug)]
pub(super) struct Vector {
    lregs: [LReg; MACRO_LREG + 1],
    /// `LaneConfig`, by column: nothing writes it in other units.
    lane_config: [u32; COLUMNS],
    modes: configure::Modes,
    /// `LaneFlags`, by lane.
    flags: u32,
    /// `UseLaneFlagsForLaneEnable`, by lane.
    use_flags: u32,
    stack: predicate::Stack,
    /// `LoadMacroConfig`, by column: four templates, four sequences, `Misc`.
    macro_config: [[u32; COLUMNS]; 9],
    prng: LReg,
    /// `RWCs[thread].Sp` of SFPLOAD.md.
    sp: [u32; 3],
    hazards: Hazards,
    macros: Macros,
    known: Kept,
    bugs: Bugs,
}

impl Default for Vector {
    fn default() -> Self {
        let mut lregs = [[0; LANES]; MACRO_LREG + 1];
        lregs[8] = [0.8373f32.to_bits(); LANES];
        lregs[10] = [ONE; LANES];
        for (lreg, value) in lregs[11..].iter_mut().zip(DEFAULTS) {
            *lreg = [value; LANES];
        }
        lregs[15] = std::array::from_fn(|lane| lane as u32 * 2);
        Self {
            lregs,
            lane_config: [0; COLUMNS],
            modes: configure::Modes::default(),
            flags: 0,
            use_flags: 0,
            stack: predicate::Stack::default(),
            macro_config: [[0; COLUMNS]; 9],
            prng: random::RESET,
            sp: [0; 3],
            hazards: Hazards::default(),
            macros: Macros::default(),
            known: Kept::default(),
            bugs: Bugs::AS_CHIP,
        }
    }
}

impl Vector {
    /// The registers, a datum for each lane of each.
    pub(super) fn lregs(&self) -> &[[u32; LANES]] {
        &self.lregs[..MACRO_LREG]
    }
}

/// What an instruction of `thread` works on besides the vector unit.
pub(super) struct Operands<'a> {
    pub(super) config: &'a Config,
    pub(super) thread: usize,
    pub(super) dst: &'a mut Dst,
    pub(super) rwc: &'a mut Rwc,
    pub(super) now: Cycle,
}

/// An instruction that stands before the unit, as it is in one cycle.
pub(super) struct Looked {
    known: Known,
    /// When the unit takes it.
    pub(super) accepts: Cycle,
    /// It reads too early what the stalling logic does not see.
    too_early: bool,
}

/// The lanes of an instruction, a bit each.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    /// Those that execute it; the others store it as a template or belong to another instruction.
    all: u32,
    /// Of those, the ones that are enabled.
    enabled: u32,
}

/// The mask of the lanes for which `f` holds.
#[inline]
fn lanes_where(f: impl Fn(usize) -> bool) -> u32 {
    let mut mask = 0;
    for lane in 0..LANES {
        mask |= u32::from(f(lane)) << lane;
    }
    mask
}

/// `new` in the lanes of `mask`, `old` in the others.
#[inline]
fn blend(old: u32, new: u32, mask: u32) -> u32 {
    old & !mask | new & mask
}

impl Vector {
    /// Which documented bugs the unit has.
    pub(super) fn set_bugs(&mut self, bugs: Bugs) {
        self.bugs = bugs;
        self.hazards.set_bugs(bugs);
    }

    /// By column of Dst: moves of the matrix unit leave it alone (`BLOCK_DEST_MOV`, SFPCONFIG.md).
    pub(super) fn blocked_columns(&self) -> u16 {
        self.modes.block_move
    }

    /// Whether any lane executes instructions.
    pub(super) fn is_any_lane_enabled(&self) -> bool {
        self.enabled() != 0
    }

    /// Looks at an instruction that stands before the unit in cycle `now`; `None`: it is none of
    /// the unit's.
    #[inline]
    pub(super) fn look(&mut self, word: u32, now: Cycle, config: &Config) -> Option<Looked> {
        let known = *self.known.get(word)?;
        let (accepts, too_early) = self.hazards.look(&known.effects, now, config);
        Some(Looked { known, accepts, too_early })
    }

    /// Executes an instruction that the unit accepts in this cycle. Returns for how many cycles it
    /// is in the pipeline.
    pub(super) fn issue(&mut self, on: &mut Operands<'_>, looked: &Looked) -> Result<Cycle, Refusal> {
        let now = on.now;
        let &Looked { known: Known { insn, ref effects, .. }, too_early, .. } = looked;
        let (regs, latency) = (looked.known.regs(), looked.known.latency());
        let enabled = if self.macros.is_quiet(now) {
            self.enabled()
        } else {
            let enabled = self.begin(now);
            let unit = regs::SubUnit::of(insn);
            if self.macros.count_instruction(now, unit) {
                // A scheduled instruction has the sub-unit in this cycle; this one is discarded.
                return Ok(1);
            }
            if self.macros.clashes(now, unit) {
                return undefined(
                    "an SFPLOADMACRO sequence writes from the simple or round sub-unit in the same cycle",
                );
            }
            enabled
        };
        let all = if regs.d >= TEMPLATES && self.modes.backdoor != 0 && regs::can_be_template(insn) {
            self.store_template(regs.d, insn.word());
            !self.modes.backdoor
        } else {
            u32::MAX
        };
        if all == 0 && !matches!(insn, VectorOp::Sfpload(_) | VectorOp::Sfpstore(_)) {
            return Ok(1);
        }
        if too_early && !matches!(insn, VectorOp::Sfpswap(_)) {
            hazard::refuse()?;
        }
        if regs.d < WRITABLE {
            self.hazards.keep(effects, &self.lregs[regs.d]);
        }
        self.macros.set_arrival(now + latency);
        let lanes = Lanes { all, enabled: enabled & all };
        match insn {
            VectorOp::Sfpload(insn) => {
                self.load(on, load_store::Load::of(insn), lanes)?;
            }
            VectorOp::Sfpstore(insn) => self.store_from(on, insn, lanes),
            VectorOp::Sfploadmacro(insn) => self.load_macro(on, insn, lanes)?,
            VectorOp::Sfpswap(insn) if too_early => self.swap_early(insn, regs, lanes)?,
            _ => self.run(insn, regs, lanes)?,
        }
        self.hazards.issued(effects, now);
        Ok(latency)
    }

    /// Executes an instruction that needs nothing outside the unit.
    fn run(&mut self, insn: VectorOp, r: Regs, lanes: Lanes) -> Result<(), Refusal> {
        match insn {
            VectorOp::Sfpload(_) | VectorOp::Sfpstore(_) | VectorOp::Sfploadmacro(_) | VectorOp::Sfpnop(_) => {}
            VectorOp::Sfploadi(i) => self.load_immediate(i, r, lanes)?,
            VectorOp::Sfpconfig(i) => self.configure(i, r.d),
            VectorOp::Sfpmad(i) => self.mad(r, i.mod1(), lanes),
            VectorOp::Sfpadd(i) => self.mad(r, i.mod1(), lanes),
            VectorOp::Sfpmul(i) => self.mad(r, i.mod1(), lanes),
            VectorOp::Sfpaddi(i) => self.add_immediate(i, r, lanes),
            VectorOp::Sfpmuli(i) => self.multiply_immediate(i, r, lanes),
            VectorOp::Sfpmul24(i) => self.multiply_24(i, r, lanes),
            VectorOp::Sfplut(i) => self.lut(i, r, lanes),
            VectorOp::Sfplutfp32(i) => self.lut_fp32(i, r, lanes),
            VectorOp::Sfparecip(i) => self.approximate(i, r, lanes),
            VectorOp::Sfpdivp2(i) => self.div_p2(i, r, lanes),
            VectorOp::Sfpexexp(i) => self.extract_exponent(i, r, lanes),
            VectorOp::Sfpexman(i) => self.extract_mantissa(i, r, lanes),
            VectorOp::Sfpsetexp(i) => self.set_exponent(i, r, lanes),
            VectorOp::Sfpsetman(i) => self.set_mantissa(i, r, lanes),
            VectorOp::Sfpsetsgn(i) => self.set_sign(i, r, lanes),
            VectorOp::Sfpabs(i) => self.absolute(i, r, lanes),
            VectorOp::Sfpand(_) => self.binary(r, lanes, |b, c| b & c),
            VectorOp::Sfpor(_) => self.binary(r, lanes, |b, c| b | c),
            VectorOp::Sfpxor(_) => self.binary(r, lanes, |b, c| b ^ c),
            VectorOp::Sfpnot(_) => self.unary(r, lanes, |c| !c),
            VectorOp::Sfpiadd(i) => self.add_integer(i, r, lanes),
            VectorOp::Sfpshft(i) => self.shift(i, r, lanes),
            VectorOp::Sfplz(i) => self.leading_zeros(i, r, lanes),
            VectorOp::Sfpcast(i) => self.cast(i, r, lanes),
            VectorOp::SfpStochRnd(i) => self.round(i, r, lanes),
            VectorOp::Sfpmov(i) => self.move_lreg(i, r, lanes),
            VectorOp::Sfpsetcc(i) => self.set_flags(i, r, lanes),
            VectorOp::Sfpencc(i) => self.enable_flags(i, lanes),
            VectorOp::Sfpcompc(_) => self.complement_flags(lanes),
            VectorOp::Sfppushc(i) => self.push_flags(i, lanes)?,
            VectorOp::Sfppopc(i) => self.pop_flags(i, lanes)?,
            VectorOp::Sfpgt(i) => self.compare(r, i.mod1(), lanes, true),
            VectorOp::Sfple(i) => self.compare(r, i.mod1(), lanes, false),
            VectorOp::Sfpswap(i) => self.swap(i, r, lanes),
            VectorOp::Sfpshft2(i) => self.shift_2(i, r, lanes)?,
            VectorOp::Sfptransp(_) => self.transpose(lanes),
        }
        Ok(())
    }

    /// `LaneEnabled`.
    #[inline]
    fn enabled(&self) -> u32 {
        !self.modes.masked & (!self.use_flags | self.flags)
    }

    /// Writes `values` to register `d` in the lanes of `mask`; the other registers are read-only.
    #[inline]
    fn write(&mut self, d: usize, values: &LReg, mask: u32) {
        if d < WRITABLE || d == MACRO_LREG {
            if self.macros.delays_writes() {
                self.macros.write_later(d, values, mask);
            } else {
                put(&mut self.lregs[d], values, mask);
            }
        }
    }

    /// Writes to the registers that the low four bits of `LReg[7]` name, or to register `d`.
    fn write_indirect(&mut self, d: usize, indirect: bool, values: &LReg, mask: u32) {
        if !indirect || d == MACRO_LREG {
            self.write(d, values, mask);
            return;
        }
        let index = self.lregs[7];
        for d in 0..WRITABLE {
            let named = mask & lanes_where(|lane| index[lane] & 15 == d as u32);
            if named != 0 {
                self.write(d, values, named);
            }
        }
    }

    /// `VD = f(VC)`.
    #[inline]
    fn unary(&mut self, r: Regs, lanes: Lanes, f: impl Fn(u32) -> u32) {
        let c = &self.lregs[r.c];
        let mut out = [0; LANES];
        for lane in 0..LANES {
            out[lane] = f(c[lane]);
        }
        self.write(r.d, &out, lanes.enabled);
    }

    /// `VD = f(VB, VC)`.
    #[inline]
    fn binary(&mut self, r: Regs, lanes: Lanes, f: impl Fn(u32, u32) -> u32) {
        let (b, c) = (&self.lregs[r.b], &self.lregs[r.c]);
        let mut out = [0; LANES];
        for lane in 0..LANES {
            out[lane] = f(b[lane], c[lane]);
        }
        self.write(r.d, &out, lanes.enabled);
    }

    /// Sets `LaneFlags` in the lanes of `mask`.
    #[inline]
    fn put_flags(&mut self, flags: u32, mask: u32) {
        self.flags = blend(self.flags, flags, mask);
    }

    /// Stores an instruction as template `vd - 12` in the columns whose back door is open.
    fn store_template(&mut self, vd: usize, word: u32) {
        for (column, slot) in self.macro_config[vd - TEMPLATES].iter_mut().enumerate() {
            if self.modes.backdoor >> column & 1 != 0 {
                *slot = word;
            }
        }
    }
}

/// Puts `values` into the lanes of `mask`.
#[inline]
fn put(lreg: &mut LReg, values: &LReg, mask: u32) {
    if mask == u32::MAX {
        *lreg = *values;
        return;
    }
    for lane in 0..LANES {
        let chosen = 0u32.wrapping_sub(mask >> lane & 1);
        lreg[lane] = blend(lreg[lane], values[lane], chosen);
    }
}

/// What the documents leave undefined.
fn undefined<T>(what: &'static str) -> Result<T, Refusal> {
    Err((FaultClass::UndefinedBehavior, what))
}
