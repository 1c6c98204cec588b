//! SrcA and SrcB: two banks each of 64 rows of 16 data of 19 bits, and whose turn each bank is.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/SrcASrcB.md. A datum is kept in the layout of
//! the hardware (`number.rs` converts).

use tilework_abi::tensix::insn::Cleardvalid;

/// Rows of a bank.
pub(super) const ROWS: usize = 64;
/// Index of SrcA, and of the unpacker that fills it.
pub(super) const A: usize = 0;
/// Index of SrcB, and of the unpacker that fills it.
pub(super) const B: usize = 1;
/// Banks of each.
const BANKS: usize = 2;

/// A row of data.
pub(super) type Row = [u32; 16];

/// SrcA or SrcB.
#[derive(Clone, Debug)]
pub(super) struct Src {
    /// Bank after bank.
    rows: Box<[Row]>,
    /// The bank that the matrix unit uses.
    matrix: usize,
    /// The bank that the unpacker uses.
    unpack: usize,
    /// By bank: the matrix unit's turn.
    for_matrix: [bool; BANKS],
    /// By bank: the format that its unpacker wrote it in.
    implied: [u8; BANKS],
    /// By bank: another number, that neither bank had before, whenever rows may be written.
    versions: [u64; BANKS],
}

impl Default for Src {
    fn default() -> Self {
        let rows = vec![[0; 16]; BANKS * ROWS].into_boxed_slice();
        Self { rows, matrix: 0, unpack: 0, for_matrix: [false; BANKS], implied: [0; BANKS], versions: [0; BANKS] }
    }
}

impl Src {
    /// The rows of the matrix unit's bank.
    #[inline]
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows[self.matrix * ROWS..][..ROWS]
    }
    /// Another number whenever the matrix unit's bank, or which bank that is, may have changed.
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.versions[self.matrix]
    }
    #[inline]
    fn new_version(&self) -> u64 {
        self.versions[0].max(self.versions[1]) + 1
    }
    /// The rows of the matrix unit's bank.
    #[inline]
    pub(super) fn rows_mut(&mut self) -> &mut [Row] {
        self.versions[self.matrix] = self.new_version();
        &mut self.rows[self.matrix * ROWS..][..ROWS]
    }
    /// The rows of the unpacker's bank.
    #[inline]
    pub(super) fn unpacked_mut(&mut self) -> &mut [Row] {
        self.versions[self.unpack] = self.new_version();
        &mut self.rows[self.unpack * ROWS..][..ROWS]
    }
    /// The format that the matrix unit's bank implies (SrcASrcB.md, "Implied data format").
    #[inline]
    pub(super) fn implied_format(&self) -> u32 {
        self.implied[self.matrix].into()
    }
    /// The unpacker's bank implies `format`, a number of four bits.
    pub(super) fn imply_format(&mut self, format: u32) {
        self.implied[self.unpack] = (format & 0xF) as u8;
    }
    /// All rows, bank after bank.
    pub(super) fn all_mut(&mut self) -> &mut [Row] {
        let version = self.new_version();
        self.versions = [version, version + 1];
        &mut self.rows
    }
    /// The unpacker's bank is the unpacker's.
    #[inline]
    pub(super) fn unpacker_may_write(&self) -> bool {
        !self.for_matrix[self.unpack]
    }
    /// The matrix unit's bank is the matrix unit's.
    #[inline]
    pub(super) fn matrix_may_read(&self) -> bool {
        self.for_matrix[self.matrix]
    }
    /// Its banks' turns are as at the beginning; what they hold stays.
    pub(super) fn reset_turns(&mut self) {
        (self.matrix, self.unpack, self.for_matrix, self.implied) = (0, 0, [false; BANKS], [0; BANKS]);
    }
    /// The unpacker is done with its bank and turns to the other one.
    pub(super) fn give_to_matrix(&mut self) {
        self.for_matrix[self.unpack] = true;
        self.unpack ^= 1;
    }
    /// The matrix unit gives its bank back, unless it is `kept`, and turns to the other one if
    /// `flip`.
    pub(super) fn release(&mut self, kept: bool, flip: bool) {
        if !kept {
            self.for_matrix[self.matrix] = false;
        }
        self.matrix ^= usize::from(flip);
    }
}

/// SrcA and SrcB.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources(pub(super) [Src; 2]);

impl Sources {
    /// `SETDVALID`.
    pub(super) fn set_valid(&mut self, which: u32) {
        self.chosen(which).for_each(|(_, src)| src.give_to_matrix());
    }
    /// `CLEARDVALID`.
    pub(super) fn clear_valid(&mut self, insn: Cleardvalid) {
        if insn.reset() {
            self.0.iter_mut().for_each(Src::reset_turns);
            return;
        }
        self.release(insn.clear_dvalid(), 0, !insn.keep_reading_same_src());
    }
    /// Gives the matrix unit's banks of `which` back, unless `kept`, and turns to the other ones if
    /// `flip`.
    pub(super) fn release(&mut self, which: u32, kept: u32, flip: bool) {
        self.chosen(which).for_each(|(i, src)| src.release(kept >> i & 1 != 0, flip));
    }
    fn chosen(&mut self, which: u32) -> impl Iterator<Item = (usize, &mut Src)> {
        self.0.iter_mut().enumerate().filter(move |(i, _)| which >> i & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banks_go_back_and_forth() {
        let mut s = Sources::default();
        let may = |s: &Sources| (s.0[A].unpacker_may_write(), s.0[A].matrix_may_read());
        assert_eq!(may(&s), (true, false));
        s.set_valid(1);
        assert_eq!(may(&s), (true, true));
        s.set_valid(1);
        assert_eq!(may(&s), (false, true), "both banks wait for the matrix unit");
        s.release(1, 0, true);
        assert_eq!(may(&s), (true, true));
        let keeps = Cleardvalid::build().clear_dvalid(1).keep_reading_same_src(true).word();
        s.clear_valid(Cleardvalid::decode(keeps).unwrap());
        assert_eq!(may(&s), (true, false), "keeps reading the bank that it gave back");
        s.clear_valid(Cleardvalid::decode(Cleardvalid::build().reset(true).word()).unwrap());
        assert_eq!((s.0[A].matrix, s.0[A].unpack, s.0[A].for_matrix), (0, 0, [false; 2]));
    }
}
