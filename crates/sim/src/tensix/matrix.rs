//! The matrix unit, as far as start-up code and address counters need it: which rows of Dst are
//! valid, who owns the banks of SrcA and SrcB, and the counters.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/MatrixUnit.md, the pages of its instructions and
//! BlackholeA0/TensixTile/TensixCoprocessor/Dst.md. The contents of SrcA, SrcB and Dst are not
//! built: nothing that is built can read them, and what would is a fault.

use super::config::{ALU_ACC_CTRL, Config, DEST_OFFSET, DEST_REGW_BASE, FP32_OR_INT8, Refusal};
use super::counters::Rwc;
use crate::FaultClass;
use tilework_abi::tensix::insn::{self, Cleardvalid, Zeroacc};

/// Rows of Dst.
const ROWS: usize = 1024;

/// Which rows of Dst hold something.
#[derive(Debug)]
pub(super) struct DstRows([u64; ROWS / 64]);

impl Default for DstRows {
    fn default() -> Self {
        Self([u64::MAX; ROWS / 64])
    }
}

impl DstRows {
    fn clear(&mut self, row: usize) {
        self.0[row / 64 % (ROWS / 64)] &= !(1 << (row % 64));
    }
    /// Whether a row holds something.
    #[cfg(test)]
    fn is_valid(&self, row: usize) -> bool {
        self.0[row / 64] >> (row % 64) & 1 != 0
    }
}

/// Who may use the banks of SrcA (index 0) and SrcB (index 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SrcBanks {
    /// The bank that the matrix unit uses.
    matrix: [usize; 2],
    /// The bank that the unpacker uses.
    unpack: [usize; 2],
    /// By operand and bank: the matrix unit's turn.
    for_matrix: [[bool; 2]; 2],
}

impl SrcBanks {
    /// The unpacker's bank of SrcA (0) or SrcB (1) is the unpackers'.
    pub(super) fn unpacker_may_write(&self, src: usize) -> bool {
        !self.for_matrix[src][self.unpack[src]]
    }
    /// The matrix unit's bank is the matrix unit's.
    pub(super) fn matrix_may_read(&self, src: usize) -> bool {
        self.for_matrix[src][self.matrix[src]]
    }
    /// SrcA's (0) or SrcB's (1) banks are as at the beginning.
    pub(super) fn reset(&mut self, src: usize) {
        self.matrix[src] = 0;
        self.unpack[src] = 0;
        self.for_matrix[src] = [false; 2];
    }
    /// `SETDVALID`.
    pub(super) fn give_to_matrix(&mut self, flips: u32) {
        for src in (0..2).filter(|src| flips >> src & 1 != 0) {
            self.for_matrix[src][self.unpack[src]] = true;
            self.unpack[src] ^= 1;
        }
    }
    /// `CLEARDVALID`.
    fn clear_valid(&mut self, insn: Cleardvalid) {
        if insn.reset() {
            *self = Self::default();
            return;
        }
        self.release(insn.clear_dvalid(), 0, !insn.keep_reading_same_src());
    }
    /// Gives the matrix unit's banks back, unless `kept`, and turns to the other ones if `flip`.
    fn release(&mut self, flips: u32, kept: u32, flip: bool) {
        for src in (0..2).filter(|src| flips >> src & 1 != 0) {
            if kept >> src & 1 == 0 {
                self.for_matrix[src][self.matrix[src]] = false;
            }
            self.matrix[src] ^= usize::from(flip);
        }
    }
}

/// The matrix unit's state.
#[derive(Debug, Default)]
pub(super) struct Matrix {
    pub(super) rwcs: [Rwc; 3],
    pub(super) banks: SrcBanks,
    rows: DstRows,
}

impl Matrix {
    /// What `ZEROACC` has cleared holds again what it held.
    pub(super) fn revert_zero_acc(&mut self) {
        self.rows = DstRows::default();
    }

    /// Executes one instruction of `thread`.
    pub(super) fn execute(&mut self, config: &Config, thread: usize, insn: insn::MatrixOp) -> Result<(), Refusal> {
        let rwc = &mut self.rwcs[thread];
        match insn {
            insn::MatrixOp::Zeroacc(insn) => self.zero_acc(config, thread, insn)?,
            // They only touch contents, histograms and a cache.
            insn::MatrixOp::Zerosrc(_) | insn::MatrixOp::Clrexphist(_) | insn::MatrixOp::Gatesrcrst(_) => {}
            insn::MatrixOp::Cleardvalid(insn) => self.banks.clear_valid(insn),
            insn::MatrixOp::Setrwc(insn) => {
                rwc.set(insn);
                let kept = config.field(thread, super::config::CLR_DVALID_DISABLE);
                self.banks.release(insn.clear_dvalid(), kept, true);
            }
            insn::MatrixOp::Incrwc(insn) => rwc.increment(insn),
        }
        Ok(())
    }

    fn zero_acc(&mut self, config: &Config, thread: usize, insn: Zeroacc) -> Result<(), Refusal> {
        let (mode, use_32) = (insn.mode(), insn.use_dst32b());
        let (addr_mod, at) = (insn.addr_mod(), insn.imm10() as usize);
        if insn.revert() {
            return Err((FaultClass::UndefinedBehavior, "ZEROACC that reverts"));
        }
        match mode {
            0 => {
                let base = config.field(thread, DEST_OFFSET) + self.rwcs[thread].dst();
                let row = (at as u32 + base + config.get(thread, DEST_REGW_BASE)?) as usize % ROWS;
                let wide = config.get(thread, ALU_ACC_CTRL)? & FP32_OR_INT8 != 0;
                self.rows.clear(if wide { config.adj32(row) } else { row });
            }
            1 => {
                // Only the low eight bits count, and blocks past the end do nothing (ZEROACC.md).
                let block = at & 0xFF;
                for i in (0..16).filter(|_| block < if use_32 { 32 } else { 64 }) {
                    self.rows.clear(if use_32 { block * 32 + (i & 8) * 2 + (i & 7) } else { block * 16 + i });
                }
            }
            2 => {
                let half = ROWS / 64 / 2;
                self.rows.0[(at & 1) * half..][..half].fill(0);
            }
            _ => self.rows.0.fill(0),
        }
        if mode < 2 {
            self.rwcs[thread].apply(config, thread, addr_mod);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insn::Setrwc;

    fn execute(m: &mut Matrix, config: &Config, word: u32) -> Result<(), Refusal> {
        m.execute(config, 0, insn::MatrixOp::decode(word).expect("a built instruction"))
    }

    fn cleared(words: &[u32]) -> Vec<usize> {
        let mut m = Matrix::default();
        for &word in words {
            assert_eq!(execute(&mut m, &Config::default(), word), Ok(()));
        }
        (0..ROWS).filter(|&row| !m.rows.is_valid(row)).collect()
    }

    fn zero_acc(mode: u32, use_32: bool, at: u32) -> u32 {
        Zeroacc::build().mode(mode).use_dst32b(use_32).imm10(at).word()
    }

    #[test]
    fn zeroacc_clears_rows_blocks_halves_or_everything() {
        assert_eq!(cleared(&[zero_acc(0, false, 1023)]), [1023]);
        assert_eq!(cleared(&[zero_acc(1, false, 3)]), (48..64).collect::<Vec<_>>());
        // Block 1 of 32-bit rows: physical rows 32..40 and 48..56.
        assert_eq!(cleared(&[zero_acc(1, true, 1)]), (32..40).chain(48..56).collect::<Vec<_>>());
        assert_eq!(cleared(&[zero_acc(1, false, 64), zero_acc(1, true, 32)]), [0; 0]);
        assert_eq!(cleared(&[zero_acc(2, false, 1)]), (512..1024).collect::<Vec<_>>());
        assert_eq!(cleared(&[zero_acc(3, false, 0)]).len(), 1024, "the word that BRISC's start-up pushes");
    }

    #[test]
    fn one_row_is_relative_to_the_counters() {
        let mut m = Matrix::default();
        let mut c = Config::default();
        c.set_thread(0, 1, 100).unwrap();
        c.set(0, DEST_REGW_BASE, 1000).unwrap();
        m.rwcs[0].set(Setrwc::decode(Setrwc::build().dst(true).dst_val(7).word()).unwrap());
        execute(&mut m, &c, zero_acc(0, false, 5)).unwrap();
        let cleared: Vec<usize> = (0..ROWS).filter(|&row| !m.rows.is_valid(row)).collect();
        assert_eq!(cleared, [(5 + 100 + 7 + 1000) % 1024]);
        let reverts = Zeroacc::build().mode(3).revert(true).word();
        assert_eq!(execute(&mut m, &c, reverts).unwrap_err().0, FaultClass::UndefinedBehavior);
        assert_eq!(insn::MatrixOp::decode(insn::Mvmul::build().word()), None, "not built");
    }

    #[test]
    fn banks_go_back_and_forth() {
        let mut m = Matrix::default();
        let c = Config::default();
        let may = |m: &Matrix| (m.banks.unpacker_may_write(0), m.banks.matrix_may_read(0));
        assert_eq!(may(&m), (true, false));
        m.banks.give_to_matrix(1);
        assert_eq!(may(&m), (true, true));
        m.banks.give_to_matrix(1);
        assert_eq!(may(&m), (false, true), "both banks wait for the matrix unit");
        execute(&mut m, &c, Setrwc::build().clear_dvalid(1).word()).unwrap();
        assert_eq!(may(&m), (true, true));
        let keeps = Cleardvalid::build().clear_dvalid(1).keep_reading_same_src(true);
        execute(&mut m, &c, keeps.word()).unwrap();
        assert_eq!(may(&m), (true, false), "keeps reading the bank that it gave back");
        execute(&mut m, &c, Cleardvalid::build().reset(true).word()).unwrap();
        assert_eq!(m.banks, SrcBanks::default());
    }
}
