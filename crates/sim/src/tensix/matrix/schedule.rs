//! When the matrix unit takes an instruction.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/MatrixUnit.md ("Instruction latency and
//! throughput"), BlackholeA0/TensixTile/TensixCoprocessor/Dst.md ("Instruction scheduling") and the
//! same sections of the pages of the moves.

use crate::tensix::dst::{Dst, Writer};
use crate::tensix::src::{A, B, Sources};
use crate::{Cycle, NEVER, timing};
use tilework_abi::tensix::insn::MatrixOp;

/// What an instruction needs and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tensix) struct Needs {
    /// It waits for SrcA and for SrcB.
    sources: [bool; 2],
    /// Where it reads Dst.
    reads: Option<usize>,
    /// Where it writes Dst.
    writes: Option<usize>,
    after: After,
    /// From issue to its results.
    pub(in crate::tensix) latency: Cycle,
    /// From issue to the next instruction.
    pub(in crate::tensix) interval: Cycle,
}

/// What other instructions make an instruction wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Moves from Dst, and into SrcA.
    FromDst,
    /// These, and moves to Dst.
    ToDst,
    /// Moves to SrcB: another one only waits for moves to Dst.
    ToB,
    /// Moves to SrcA: from Dst.
    DstToA,
    /// Moves to SrcA: from SrcB.
    BToA,
}

/// Until when what goes on keeps instructions from starting.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    /// After a move to Dst: instructions that combine SrcA, SrcB and Dst.
    moved_to_dst: Cycle,
    /// After a move to SrcA: all but such moves.
    moved_to_a: Cycle,
    /// After a move to SrcB: all but such moves.
    moved_to_b: Cycle,
}

impl Needs {
    /// Which bank it waits for.
    pub(in crate::tensix) fn missing(&self, src: &Sources) -> Option<&'static str> {
        let missing = [A, B].map(|i| self.sources[i] && !src.0[i].matrix_may_read());
        match missing {
            [false, false] => None,
            [true, false] => Some("SrcA"),
            [false, true] => Some("SrcB"),
            [true, true] => Some("SrcA and SrcB"),
        }
    }

    /// `row`: the row of Dst that the instruction names.
    pub(in crate::tensix) fn of(insn: MatrixOp, row: usize) -> Self {
        let (both, a, b, none) = ([true; 2], [true, false], [false, true], [false; 2]);
        let (dst, arithmetic, to_dst) = (Some(row), timing::MATRIX_ARITHMETIC, timing::MATRIX_MOVE);
        let needs =
            |sources, reads, writes, after, latency| Self { sources, reads, writes, after, latency, interval: 1 };
        match insn {
            MatrixOp::Mvmul(_)
            | MatrixOp::Dotpv(_)
            | MatrixOp::Gapool(_)
            | MatrixOp::Gmpool(_)
            | MatrixOp::Elwmul(_) => needs(both, dst, dst, After::ToDst, arithmetic),
            MatrixOp::Elwadd(i) => needs(both, dst.filter(|_| i.add_dst()), dst, After::FromDst, arithmetic),
            MatrixOp::Elwsub(i) => needs(both, dst.filter(|_| i.add_dst()), dst, After::FromDst, arithmetic),
            MatrixOp::Mova2d(_) => needs(a, None, dst, After::FromDst, to_dst),
            MatrixOp::Movb2d(_) => needs(b, None, dst, After::FromDst, to_dst),
            MatrixOp::Movdbga2d(_) | MatrixOp::Movdbgb2d(_) => needs(none, None, dst, After::FromDst, to_dst),
            MatrixOp::Movd2a(_) => needs(none, dst, None, After::DstToA, timing::MATRIX_MOVE_TO_A),
            MatrixOp::Movb2a(_) => needs(b, None, None, After::BToA, timing::MATRIX_MOVE),
            MatrixOp::Movd2b(_) => needs(none, dst, None, After::ToB, timing::MATRIX_MOVE),
            MatrixOp::Trnspsrcb(_) => needs(b, None, None, After::FromDst, timing::TENSIX_UNIT),
            MatrixOp::Shiftxa(_) => needs(a, None, None, After::FromDst, timing::TENSIX_UNIT),
            MatrixOp::Shiftxb(_) => {
                Self { interval: timing::MATRIX_SHIFT, ..needs(b, None, None, After::FromDst, timing::MATRIX_SHIFT) }
            }
            MatrixOp::Zeroacc(_)
            | MatrixOp::Zerosrc(_)
            | MatrixOp::Clrexphist(_)
            | MatrixOp::Gatesrcrst(_)
            | MatrixOp::Cleardvalid(_)
            | MatrixOp::Setrwc(_)
            | MatrixOp::Incrwc(_) => needs(none, None, None, After::FromDst, timing::TENSIX_UNIT),
        }
    }
}

impl Schedule {
    /// The first cycle in which an instruction can start; [`NEVER`]: when a bank changes hands.
    pub(super) fn start(&self, needs: &Needs, src: &Sources, dst: &Dst) -> Cycle {
        if needs.missing(src).is_some() {
            return NEVER;
        }
        let dst = needs.reads.map_or(0, |row| dst.readable(row));
        let moves = match needs.after {
            After::FromDst => self.moved_to_a.max(self.moved_to_b),
            After::ToDst => self.moved_to_a.max(self.moved_to_b).max(self.moved_to_dst),
            After::ToB => self.moved_to_a.max(self.moved_to_dst),
            After::DstToA => self.moved_to_b.max(self.moved_to_dst),
            After::BToA => self.moved_to_b,
        };
        dst.max(moves)
    }

    /// An instruction starts.
    pub(super) fn started(&mut self, needs: &Needs, dst: &mut Dst, now: Cycle) {
        if let Some(row) = needs.writes {
            dst.note_write(row, Writer::Matrix, now);
        }
        match needs.after {
            After::DstToA | After::BToA => self.moved_to_a = now + timing::MATRIX_MOVE_TO_A,
            After::ToB => self.moved_to_b = now + timing::MATRIX_MOVE,
            _ if needs.latency == timing::MATRIX_MOVE => self.moved_to_dst = now + timing::MATRIX_MOVE,
            _ => {}
        }
    }
}
