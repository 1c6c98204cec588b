//! Compression: zeros are left out, and a counter of four bits behind each datum says how many.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/Packers/Compression.md, which specifies the
//! format and leaves open which of its forms the packer writes. Here a datum is left out if it is
//! plus zero before it gets its block's exponent, neither the first nor the last one of its row,
//! and no more than the fifteenth one in a row of zeros; the others are written.

use super::convert::{self, Row};
use super::output::Staged;
use super::plan::Layout;
use crate::tensix::dst::COLUMNS;

/// Data that come together, followed by their counters.
pub(super) const GROUP: usize = 32;
/// The most that a counter counts.
const MOST_ZEROS: u8 = 15;
/// What is held of the streams of data and exponents, and the most that a `PACR` adds to them: four
/// groups, for the one that is held, 64 data and up to 15 zeros behind them.
pub(super) const STAGED: usize = 16 + 4 * (4 * GROUP + GROUP / 2);

/// Data that are not written yet, and where the tile and its row stand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compressor {
    values: [u32; GROUP],
    zeros: [u8; GROUP],
    len: usize,
    /// Data of the tile that are not left out: indices where rows start have 16 bits.
    total: u16,
    /// The tile has begun: the start of its first row is written.
    has_begun: bool,
    /// A row has begun.
    in_row: bool,
    /// The last datum of the row so far is a zero, which is not in `values`.
    ends_with_zero: bool,
}

/// What goes where.
pub(super) struct Streams<'a> {
    pub(super) row_starts: &'a mut Staged,
    pub(super) exponents: &'a mut Staged,
    pub(super) data: &'a mut Staged<STAGED>,
    pub(super) layout: Layout,
}

impl Compressor {
    /// The next datum of a row.
    pub(super) fn push(&mut self, x: u32, to: &mut Streams<'_>) {
        if !self.in_row {
            self.in_row = true;
            if !self.has_begun {
                self.has_begun = true;
                to.row_starts.store(&[0; COLUMNS], 1, 16);
            }
            self.add(x, to);
            return;
        }
        if self.ends_with_zero {
            self.leave_out(to);
        }
        self.ends_with_zero = x == 0;
        if x != 0 {
            self.add(x, to);
        }
    }

    /// The row ends, if one has begun.
    pub(super) fn end_row(&mut self, to: &mut Streams<'_>) {
        if self.ends_with_zero {
            self.add(0, to);
            self.ends_with_zero = false;
        }
        if self.in_row {
            self.in_row = false;
            to.row_starts.store(&[self.total.into(); COLUMNS], 1, 16);
        }
    }

    /// The tile ends.
    pub(super) fn end_tile(&mut self, to: &mut Streams<'_>) {
        self.end_row(to);
        if self.len != 0 {
            self.emit(to);
        }
        *self = Self::default();
    }

    /// A zero within a row: counts it behind the last datum, if there is room.
    fn leave_out(&mut self, to: &mut Streams<'_>) {
        // A row begins with a datum, so that there is one.
        match self.len.checked_sub(1).map(|last| &mut self.zeros[last]) {
            Some(zeros) if *zeros < MOST_ZEROS => *zeros += 1,
            _ => self.add(0, to),
        }
    }

    /// Adds a datum. A full group stays until then, for the zeros behind its last datum.
    fn add(&mut self, x: u32, to: &mut Streams<'_>) {
        if self.len == GROUP {
            self.emit(to);
        }
        (self.values[self.len], self.zeros[self.len]) = (x, 0);
        self.len += 1;
        self.total = self.total.wrapping_add(1);
    }

    /// Writes the group; what is missing of a whole one is zero.
    fn emit(&mut self, to: &mut Streams<'_>) {
        self.values[self.len..].fill(0);
        self.zeros[self.len..].fill(0);
        for (i, half) in self.values.as_chunks::<COLUMNS>().0.iter().enumerate() {
            let mut row: Row = *half;
            if let Layout::Block { bits, small } = to.layout {
                let exponent;
                (exponent, row) = convert::block(row, small, bits);
                if i * COLUMNS < self.len {
                    to.exponents.store(&[exponent.into(); COLUMNS], 1, 8);
                }
            }
            to.data.store(&row, COLUMNS, to.layout.bits());
        }
        for half in self.zeros.as_chunks::<COLUMNS>().0 {
            to.data.store(&half.map(u32::from), COLUMNS, 4);
        }
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compresses rows of 16-bit data; the row starts, and each datum with its counter.
    fn compressed(rows: &[&[u32]]) -> (Vec<u16>, Vec<(u16, u8)>) {
        let (mut row_starts, mut exponents, mut data) = (Staged::default(), Staged::default(), Staged::default());
        let layout = Layout::Plain { bits: 16 };
        let mut to = Streams { row_starts: &mut row_starts, exponents: &mut exponents, data: &mut data, layout };
        let mut c = Compressor::default();
        for row in rows {
            row.iter().for_each(|&x| c.push(x, &mut to));
            c.end_row(&mut to);
        }
        c.end_tile(&mut to);
        let bytes = |staged: &mut Staged, len: usize| staged.units(len as u32).to_vec();
        let half = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
        let len = row_starts.len() / 8;
        let starts: Vec<u16> = bytes(&mut row_starts, len).chunks(2).map(half).collect();
        let all = data.units((data.len() / 8) as u32).to_vec();
        let data = all.chunks(80).flat_map(|group| {
            (0..GROUP).map(|i| (half(&group[2 * i..]), group[64 + i / 2] >> (4 * (i % 2)) & 0xF)).collect::<Vec<_>>()
        });
        (starts, data.collect())
    }

    #[test]
    fn the_first_and_the_last_datum_of_a_row_stay() {
        let (starts, data) = compressed(&[&[0, 0, 0, 0], &[0], &[5, 0, 0, 6, 0], &[7, 8]]);
        assert_eq!(starts, [0, 2, 3, 6, 8]);
        assert_eq!(data[..9], [(0, 2), (0, 0), (0, 0), (5, 2), (6, 0), (0, 0), (7, 0), (8, 0), (0, 0)]);
        assert_eq!(data.len(), GROUP);
    }

    #[test]
    fn a_counter_counts_to_fifteen() {
        let mut row = vec![9];
        row.extend([0; 34]);
        row.push(3);
        let (starts, data) = compressed(&[&row]);
        assert_eq!(starts, [0, 4]);
        // 15 behind the 9, a zero and 15 behind it, a zero and 2 behind it.
        assert_eq!(data[..4], [(9, 15), (0, 15), (0, 2), (3, 0)]);
    }

    #[test]
    fn a_full_group_waits_for_the_zeros_behind_it() {
        let mut row: Vec<u32> = (1..=32).collect();
        row.extend([0, 0, 33]);
        let (starts, data) = compressed(&[&row, &[]]);
        assert_eq!((starts, data.len()), (vec![0, 33], 64), "an empty row is none");
        assert_eq!((data[31], data[32], data[33]), ((32, 2), (33, 0), (0, 0)));
    }
}
