//! The matrix unit, as far as start-up code and address counters need it: which rows of Dst are valid, who owns the banks of SrcA and
//! SrcB, and the counters.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{MatrixUnit,ZEROACC,ZEROSRC,SETRWC,INCRWC,SETDVALID,CLEARDVALID,GATESRCRST,CLREXPHIST}.md and
//! BlackholeA0/TensixTile/TensixCoprocessor/Dst.md. Encodings are those of the public Blackhole header `ckernel_ops.h`. The contents of SrcA,
//! SrcB and Dst are not built: nothing that is built can read them, and what would is a fault.

use super::config::{ALU_ACC_CTRL, Config, DEST_OFFSET, DEST_REGW_BASE, FP32_OR_INT8, Refusal};
use super::counters::Rwc;
use crate::FaultClass;

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
    fn clear_valid(&mut self, word: u32) {
        if word & 1 != 0 {
            *self = Self::default();
            return;
        }
        self.release(word >> 22, 0, word & 2 == 0);
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

/// What executing an instruction came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Executed {
    /// It is done.
    Done,
    /// It is not one of those that are built.
    NotBuilt,
}

impl Matrix {
    /// What `ZEROACC` has cleared holds again what it held.
    pub(super) fn revert_zero_acc(&mut self) {
        self.rows = DstRows::default();
    }

    /// Executes one instruction of `thread`.
    pub(super) fn execute(&mut self, config: &Config, thread: usize, word: u32) -> Result<Executed, Refusal> {
        let rwc = &mut self.rwcs[thread];
        match word >> 24 {
            0x10 => self.zero_acc(config, thread, word)?,
            // ZEROSRC, CLREXPHIST, GATESRCRST: they only touch contents, histograms and a cache.
            0x11 | 0x21 | 0x35 => {}
            0x36 => self.banks.clear_valid(word),
            0x37 => {
                rwc.set(word);
                let kept = config.field(thread, super::config::CLR_DVALID_DISABLE);
                self.banks.release(word >> 22, kept, true);
            }
            0x38 => rwc.increment(word),
            _ => return Ok(Executed::NotBuilt),
        }
        Ok(Executed::Done)
    }

    fn zero_acc(&mut self, config: &Config, thread: usize, word: u32) -> Result<(), Refusal> {
        let (mode, use_32, revert) = (word >> 19 & 3, word >> 18 & 1 != 0, word >> 17 & 1 != 0);
        let (addr_mod, at) = (word >> 14 & 7, (word & 0x3FF) as usize);
        if revert {
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

    fn cleared(words: &[u32]) -> Vec<usize> {
        let mut m = Matrix::default();
        for &word in words {
            assert_eq!(m.execute(&Config::default(), 0, word), Ok(Executed::Done));
        }
        (0..ROWS).filter(|&row| !m.rows.is_valid(row)).collect()
    }

    fn zero_acc(mode: u32, use_32: bool, at: u32) -> u32 {
        0x1000_0000 | mode << 19 | u32::from(use_32) << 18 | at
    }

    #[test]
    fn zeroacc_clears_rows_blocks_halves_or_everything() {
        assert_eq!(cleared(&[zero_acc(0, false, 1023)]), [1023]);
        assert_eq!(cleared(&[zero_acc(1, false, 3)]), (48..64).collect::<Vec<_>>());
        // Block 1 of 32-bit rows: physical rows 32..40 and 48..56.
        assert_eq!(cleared(&[zero_acc(1, true, 1)]), (32..40).chain(48..56).collect::<Vec<_>>());
        assert_eq!(cleared(&[zero_acc(1, false, 64), zero_acc(1, true, 32)]), [0; 0]);
        assert_eq!(cleared(&[zero_acc(2, false, 1)]), (512..1024).collect::<Vec<_>>());
        assert_eq!(cleared(&[0x1018_0000]).len(), 1024, "the word that BRISC's start-up pushes");
    }

    #[test]
    fn one_row_is_relative_to_the_counters() {
        let mut m = Matrix::default();
        let mut c = Config::default();
        c.set_thread(0, 1, 100).unwrap();
        c.set(0, DEST_REGW_BASE, 1000).unwrap();
        m.rwcs[0].set(0x3700_0000 | 4 | 7 << 14);
        m.execute(&c, 0, zero_acc(0, false, 5)).unwrap();
        let cleared: Vec<usize> = (0..ROWS).filter(|&row| !m.rows.is_valid(row)).collect();
        assert_eq!(cleared, [(5 + 100 + 7 + 1000) % 1024]);
        assert_eq!(m.execute(&c, 0, zero_acc(3, false, 0) | 1 << 17).unwrap_err().0, FaultClass::UndefinedBehavior);
        assert_eq!(m.execute(&c, 0, 0x2600_0000), Ok(Executed::NotBuilt));
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
        m.execute(&c, 0, 0x3700_0000 | 1 << 22).unwrap();
        assert_eq!(may(&m), (true, true));
        m.execute(&c, 0, 0x3600_0000 | 1 << 22 | 2).unwrap();
        assert_eq!(may(&m), (true, false), "keeps reading the bank that it gave back");
        m.execute(&c, 0, 0x3600_0001).unwrap();
        assert_eq!(m.banks, SrcBanks::default());
    }
}
