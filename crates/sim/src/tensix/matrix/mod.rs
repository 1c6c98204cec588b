//! The matrix unit (FPU): what it does to SrcA, SrcB, Dst and its counters.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/MatrixUnit.md and the pages of its instructions.
//! What differs on Blackhole is marked in them as such.

mod arithmetic;
mod clear;
mod element;
mod factors;
mod format;
#[cfg(test)]
mod format_tests;
mod held;
mod moves;
mod narrow;
mod pool;
mod schedule;
mod setup;
mod sum;
#[cfg(test)]
mod tests;
mod wide;

use super::config::{Config, Refusal};
use super::counters::Rwc;
use super::dst::{Dst, ROWS};
use super::random::Generators;
use super::src::{self, A, B, Sources};
use crate::Cycle;
use arithmetic::{Faces, Place, Product};
use element::{Element, Taken};
use moves::{FromDst, ToDst};
pub(super) use schedule::Needs;
use schedule::Schedule;
use setup::Setup;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{MatrixOp, settings};

/// The matrix unit's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Matrix {
    pub(super) rwcs: [Rwc; 3],
    schedule: Schedule,
    /// There are none before the first product: most tiles of most chips never have one, and the
    /// memory is large.
    faces: Option<Box<Faces>>,
    /// The row of SrcA that the last instruction which has one named; `SHIFTXA` takes it.
    last_a: usize,
    /// Of stochastic rounding.
    generators: Generators,
    setup: Setup,
    /// What the last instruction that was looked at names.
    named: Option<(MatrixOp, Named)>,
}

/// What an instruction of `thread` works on.
pub(super) struct Operands<'a> {
    pub(super) config: &'a Config,
    pub(super) thread: usize,
    pub(super) src: &'a mut Sources,
    pub(super) dst: &'a mut Dst,
    /// By column: moves leave it alone (`LaneConfig.BLOCK_DEST_MOV` of the vector unit).
    pub(super) blocked: u16,
}

/// What an instruction names, before counters are added to it.
#[derive(Clone, Copy, Debug)]
struct Named {
    dst: u32,
    /// Bits of the row of Dst that count.
    dst_mask: u32,
    addr_mod: u32,
    /// The banks of SrcA and SrcB that it gives back.
    flips: u32,
}

impl Named {
    fn of(insn: MatrixOp) -> Self {
        let named = |dst, dst_mask, addr_mod, flips| Self { dst, dst_mask, addr_mod, flips };
        let four = |is_four: bool| if is_four { 0x3FC } else { 0x3FF };
        match insn {
            // 0x400 less the number of rows, of which there are seven with broadcasting (MVMUL.md).
            MatrixOp::Mvmul(i) => {
                let mask = if i.broadcast_src_b_row() { 0x3F9 } else { 0x3F8 };
                named(i.dst_row(), mask, i.addr_mod(), i.clear_dvalid())
            }
            MatrixOp::Dotpv(i) => named(i.dst_row(), 0x3F8, i.addr_mod(), i.clear_dvalid()),
            MatrixOp::Gapool(i) => named(i.dst_row(), 0x3FC, i.addr_mod(), i.clear_dvalid()),
            MatrixOp::Gmpool(i) => named(i.dst_row(), 0x3FC, i.addr_mod(), i.clear_dvalid()),
            MatrixOp::Elwmul(i) => named(i.dst_row(), 0x3F8, i.addr_mod(), i.clear_dvalid()),
            MatrixOp::Elwadd(i) => named(i.dst_row(), 0x3F8, i.addr_mod(), i.clear_dvalid()),
            MatrixOp::Elwsub(i) => named(i.dst_row(), 0x3F8, i.addr_mod(), i.clear_dvalid()),
            MatrixOp::Mova2d(i) => named(i.dst_row(), if i.move_8_rows() { 0x3F8 } else { 0x3FF }, i.addr_mod(), 0),
            MatrixOp::Movdbga2d(i) => named(i.dst_row(), if i.move_8_rows() { 0x3F8 } else { 0x3FF }, i.addr_mod(), 0),
            MatrixOp::Movb2d(i) => {
                let mask = if i.broadcast_1_row_to_8() { 0x3F8 } else { four(i.move_4_rows()) };
                named(i.dst_row(), mask, i.addr_mod(), 0)
            }
            MatrixOp::Movdbgb2d(i) => {
                let mask = if i.movb2d_instr_mod() & 2 != 0 { 0x3F8 } else { four(i.movb2d_instr_mod() & 4 != 0) };
                named(i.dst(), mask, i.addr_mod(), 0)
            }
            MatrixOp::Movd2a(i) => named(i.dst_row(), four(i.move_4_rows()), i.addr_mod(), 0),
            MatrixOp::Movd2b(i) => named(i.dst_row(), four(i.move_4_rows()), i.addr_mod(), 0),
            MatrixOp::Movb2a(i) => named(0, 0x3FF, i.addr_mod(), 0),
            MatrixOp::Shiftxb(i) => named(0, 0x3FF, i.addr_mod(), 0),
            MatrixOp::Setrwc(i) => named(0, 0x3FF, 0, i.clear_dvalid()),
            MatrixOp::Trnspsrcb(_)
            | MatrixOp::Shiftxa(_)
            | MatrixOp::Zeroacc(_)
            | MatrixOp::Zerosrc(_)
            | MatrixOp::Clrexphist(_)
            | MatrixOp::Gatesrcrst(_)
            | MatrixOp::Cleardvalid(_)
            | MatrixOp::Incrwc(_) => named(0, 0x3FF, 0, 0),
        }
    }
}

impl Named {
    /// Whether banks of SrcA or SrcB may change hands by the instruction.
    fn gives_banks(self, insn: MatrixOp) -> bool {
        self.flips != 0 || matches!(insn, MatrixOp::Cleardvalid(_))
    }
}

/// Whether banks of SrcA or SrcB may change hands by an instruction.
pub(super) fn gives_banks(insn: MatrixOp) -> bool {
    Named::of(insn).gives_banks(insn)
}

impl Matrix {
    /// The unit has left reset (SoftReset.md).
    pub(super) fn reset_generators(&mut self) {
        self.generators = Generators::default();
    }

    /// Seeds the generators of random numbers.
    pub(super) fn seed(&mut self, seed: u32) {
        self.generators.seed(seed);
    }

    /// What an instruction needs.
    pub(super) fn needs(&mut self, on: &Operands<'_>, insn: MatrixOp) -> Needs {
        self.setup.refresh(on);
        let named = Named::of(insn);
        self.named = Some((insn, named));
        Needs::of(insn, self.dst_row(on, named.dst) & named.dst_mask as usize)
    }

    /// What the configuration adds to the mode of an instruction that works in formats.
    pub(super) fn settings(&self, on: &Operands<'_>) -> u32 {
        let with = [
            (settings::SRC_FORMAT, on.source_format(A)),
            (settings::DST_FP32, on.read(cfg::ALU_ACC_CTRL_FP32_ENABLED)),
            (settings::INT8_MATH, on.read(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED)),
            (settings::FIDELITY, self.phase(on)),
        ];
        with.into_iter().fold(0, |word, (field, value)| field.put(word, value))
    }

    /// The fidelity phase of the next instruction.
    fn phase(&self, on: &Operands<'_>) -> u32 {
        (self.rwcs[on.thread].fidelity() + on.read(cfg::FIDELITY_BASE_PHASE)) & 3
    }

    /// The first cycle in which an instruction can start; [`crate::NEVER`]: when a bank changes
    /// hands.
    pub(super) fn start(&self, needs: &Needs, on: &Operands<'_>) -> Cycle {
        self.schedule.start(needs, on.src, on.dst)
    }

    /// An instruction starts at cycle `now`.
    pub(super) fn started(&mut self, needs: &Needs, on: &mut Operands<'_>, now: Cycle) {
        self.schedule.started(needs, on.dst, now);
    }

    /// Executes one instruction; returns whether banks may have changed hands.
    pub(super) fn execute(&mut self, on: &mut Operands<'_>, insn: MatrixOp) -> Result<bool, Refusal> {
        self.setup.refresh(on);
        self.setup.check()?;
        let named = match self.named {
            Some((of, named)) if of == insn => named,
            _ => Named::of(insn),
        };
        let dst = self.dst_row(on, named.dst) & named.dst_mask as usize;
        let rwc = &mut self.rwcs[on.thread];
        match insn {
            MatrixOp::Zeroacc(insn) => return self.zero_acc(on, insn).map(|()| false),
            MatrixOp::Zerosrc(insn) => on.zero_src(insn),
            // The histogram is the packer's, which is told by the caller; the simulated unit has no
            // cache that could be stale.
            MatrixOp::Clrexphist(_) | MatrixOp::Gatesrcrst(_) => {}
            MatrixOp::Cleardvalid(insn) => on.src.clear_valid(insn),
            MatrixOp::Setrwc(insn) => rwc.set(insn),
            MatrixOp::Incrwc(insn) => rwc.increment(insn),
            MatrixOp::Trnspsrcb(_) => on.transpose_b(),
            MatrixOp::Shiftxa(insn) => on.shift_a(self.last_a & 0x30, insn.direction())?,
            MatrixOp::Shiftxb(insn) => {
                let at = (insn.src_row() + rwc.src_b()) as usize % src::ROWS;
                on.shift_b(at, insn.shift_in_zero());
                rwc.apply(on.config, on.thread, named.addr_mod);
            }
            _ => {
                let (a, b) = (rwc.src_a() as usize, rwc.src_b() as usize);
                self.compute_or_move(on, insn, (a, b, dst))?;
                self.rwcs[on.thread].apply(on.config, on.thread, named.addr_mod);
            }
        }
        if named.flips != 0 {
            on.src.release(named.flips, self.setup.kept, true);
        }
        Ok(named.gives_banks(insn))
    }

    /// Instructions that work on Dst, and `MOVB2A`; `a`, `b`: counters of SrcA and SrcB.
    fn compute_or_move(
        &mut self,
        on: &mut Operands<'_>,
        insn: MatrixOp,
        (a, b, dst): (usize, usize, usize),
    ) -> Result<(), Refusal> {
        let phase = (self.rwcs[on.thread].fidelity() + self.setup.phase_base) & 3;
        let mut at = Place { a: a & 0x38, b: b & 0x38, dst, phase };
        let taken = |broadcast_row, broadcast_column, add| Taken { broadcast_row, broadcast_column, add };
        self.last_a = at.a;
        match insn {
            MatrixOp::Mvmul(i) if i.broadcast_src_b_row() => {
                at.b = b;
                self.product(on, at, Product::Broadcast)?;
            }
            MatrixOp::Mvmul(_) | MatrixOp::Dotpv(_) => self.product(on, at, Product::Eight)?,
            MatrixOp::Gapool(_) => self.product(on, at, Product::Four)?,
            MatrixOp::Gmpool(i) => {
                at.a = a & 0x30;
                self.last_a = at.a;
                on.max_pool(at, i.arg_max(), i.instr_mod19())?;
            }
            MatrixOp::Elwmul(i) => {
                at.b = b & broadcast_mask(i.broadcast_src_b_row());
                let taken = taken(i.broadcast_src_b_row(), i.broadcast_src_b_col0(), true);
                on.element_wise(at, Element::Multiply, (self.setup.modes(on)?, taken), &mut self.generators)?;
            }
            MatrixOp::Elwadd(i) => {
                at.b = b & broadcast_mask(i.broadcast_src_b_row());
                let taken = taken(i.broadcast_src_b_row(), i.broadcast_src_b_col0(), i.add_dst());
                on.element_wise(at, Element::Add, (self.setup.modes(on)?, taken), &mut self.generators)?;
            }
            MatrixOp::Elwsub(i) => {
                at.b = b & broadcast_mask(i.broadcast_src_b_row());
                let taken = taken(i.broadcast_src_b_row(), i.broadcast_src_b_col0(), i.add_dst());
                on.element_wise(at, Element::Subtract, (self.setup.modes(on)?, taken), &mut self.generators)?;
            }
            _ => self.move_rows(on, insn, (a, b, dst))?,
        }
        Ok(())
    }

    /// Moves from and to Dst, and `MOVB2A`; as [`Self::compute_or_move`].
    fn move_rows(
        &mut self,
        on: &mut Operands<'_>,
        insn: MatrixOp,
        (a, b, dst): (usize, usize, usize),
    ) -> Result<(), Refusal> {
        let row = |base: usize, offset: u32, mask: usize| (base + offset as usize) & mask & (src::ROWS - 1);
        let many = |is_many: bool, rows: usize| if is_many { (rows, !(rows - 1)) } else { (1, usize::MAX) };
        match insn {
            MatrixOp::Mova2d(i) => {
                let (rows, mask) = many(i.move_8_rows(), 8);
                self.last_a = row(a, i.src_row(), mask);
                on.move_to_dst(&to_dst(A, self.last_a, dst, rows, i.use_dst32b_lo()))?;
            }
            MatrixOp::Movdbga2d(i) => {
                let (rows, mask) = many(i.move_8_rows(), 8);
                on.move_to_dst(&to_dst(A, row(a, i.src_row(), mask), dst, rows, i.use_dst32b_lo()))?;
            }
            MatrixOp::Movb2d(i) => {
                let mode = Movb2dMode::new(i.move_4_rows(), i.broadcast_1_row_to_8(), i.broadcast_col0());
                on.move_to_dst(&mode.of((b, i.src_row()), dst, i.use_dst32b_lo()))?;
            }
            MatrixOp::Movdbgb2d(i) => {
                let bits = i.movb2d_instr_mod();
                let mode = Movb2dMode::new(bits & 4 != 0, bits & 2 != 0, bits & 1 != 0);
                on.move_to_dst(&mode.of((b, i.src()), dst, i.dest_32b_lo()))?;
            }
            MatrixOp::Movd2a(i) => {
                let (rows, mask) = many(i.move_4_rows(), 4);
                self.last_a = row(a, i.src_row(), mask);
                on.move_from_dst(&FromDst { to: A, src: self.last_a, dst, rows, low: i.use_dst32b_lo() })?;
            }
            MatrixOp::Movd2b(i) => {
                let (rows, mask) = many(i.move_4_rows(), 4);
                on.move_from_dst(&FromDst {
                    to: B,
                    src: row(b, i.src_row(), mask),
                    dst,
                    rows,
                    low: i.use_dst32b_lo(),
                })?;
            }
            MatrixOp::Movb2a(i) => {
                let (rows, mask) = many(i.move_4_rows(), 4);
                self.last_a = row(a, i.src_a_row(), mask);
                on.move_b_to_a(row(b, i.src_b_row(), mask), self.last_a, rows);
            }
            _ => {}
        }
        Ok(())
    }

    /// The row of Dst that an instruction names by `offset`; after [`Setup::refresh`].
    fn dst_row(&self, on: &Operands<'_>, offset: u32) -> usize {
        (offset + self.setup.dst_base + self.rwcs[on.thread].dst()) as usize % ROWS
    }
}

/// Which bits of SrcB's counter an element-wise instruction takes.
fn broadcast_mask(broadcast_row: bool) -> usize {
    if broadcast_row { 0x3F } else { 0x38 }
}

fn to_dst(from: usize, src: usize, dst: usize, rows: usize, low: bool) -> ToDst {
    ToDst { from, src, dst, rows, broadcast_row: false, broadcast_column: false, low }
}

/// What `MOVB2D` moves.
struct Movb2dMode {
    four_rows: bool,
    broadcast_row: bool,
    broadcast_column: bool,
}

impl Movb2dMode {
    fn new(four_rows: bool, broadcast_row: bool, broadcast_column: bool) -> Self {
        Self { four_rows, broadcast_row, broadcast_column }
    }

    fn of(&self, (base, offset): (usize, u32), dst: usize, low: bool) -> ToDst {
        let src = (base + offset as usize) & (src::ROWS - 1);
        let (rows, src) = match (self.broadcast_row, self.four_rows) {
            (true, _) => (8, src),
            (false, true) => (4, src & !3),
            (false, false) => (1, src),
        };
        let Self { broadcast_row, broadcast_column, .. } = *self;
        ToDst { broadcast_row, broadcast_column, ..to_dst(B, src, dst, rows, low) }
    }
}

impl Operands<'_> {
    fn read(&self, field: cfg::Field) -> u32 {
        self.config.read(self.thread, field)
    }
    #[inline]
    fn is_set(&self, field: cfg::Field) -> bool {
        self.config.is_set(self.thread, field)
    }
}
