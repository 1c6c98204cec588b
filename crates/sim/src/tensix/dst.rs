//! Dst: 1024 rows of 16 columns of 16 bits, or 512 of 32 bits, which lie in the same storage.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/Dst.md. A datum is kept in the layout of the
//! hardware (`number.rs` converts). A row that `ZEROACC` has cleared reads as zeros, until
//! something is written to it: packers and the matrix unit see that (WormholeB0/.../ZEROACC.md).
//!
//! Units note what they write in blocks of eight rows, so that hardware's stalls and the gaps that
//! software must leave are the same whoever wrote ("Instruction scheduling" of Dst.md and
//! SFPLOAD.md). Blocks count in the rows that instructions name, before `DEST_ACCESS_CFG` moves
//! them; software uses one view of Dst at a time.

use super::config::Config;
use crate::{Cycle, timing};
use tilework_abi::tensix::cfg;

/// Rows of 16-bit data.
pub(super) const ROWS: usize = 1024;
/// Columns.
pub(super) const COLUMNS: usize = 16;
/// Rows of a block: what is written together can be read together.
pub(super) const BLOCK: usize = 8;
/// From the high to the low half of a 32-bit row.
const LOW_HALF: usize = 8;

/// A row of 16-bit data.
pub(super) type Row16 = [u16; COLUMNS];
/// A row of 32-bit data.
pub(super) type Row32 = [u32; COLUMNS];

/// Where rows lie, as `DEST_ACCESS_CFG` says. Units read it once for an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowMap {
    remap: bool,
    swizzle: bool,
}

impl RowMap {
    pub(super) fn of(config: &Config) -> Self {
        Self::read(|field| config.global(field) != 0)
    }

    /// As `is_set` says, to which fields are given.
    #[inline]
    pub(super) fn read(is_set: impl Fn(cfg::Field) -> bool) -> Self {
        Self { remap: is_set(cfg::DEST_ACCESS_CFG_REMAP_ADDRS), swizzle: is_set(cfg::DEST_ACCESS_CFG_SWIZZLE_32B) }
    }

    /// `Adj16`: where a row of 16-bit data lies.
    #[inline]
    pub(super) fn row16(self, row: usize) -> usize {
        let r = row % ROWS;
        if self.remap { (r & 0x3C7) ^ ((r & 0x030) >> 1) ^ ((r & 0x008) << 2) } else { r }
    }

    /// `Adj32`: where the high half of a row of 32-bit data lies; the low half is eight rows
    /// further.
    #[inline]
    pub(super) fn row32(self, row: usize) -> usize {
        let mut r = self.row16(row);
        if self.swizzle {
            r = (r & 0x3F3) ^ ((r & 0x018) >> 1) ^ ((r & 0x004) << 1);
        }
        ((r & 0x1F8) << 1) | (r & 0x207)
    }
}

/// Applies `f` to each column of a row. A loop: `array::map` of so many is compiled to code for
/// single columns.
#[inline(always)]
pub(super) fn each<A: Copy, B: Copy + Default>(row: [A; COLUMNS], mut f: impl FnMut(A) -> B) -> [B; COLUMNS] {
    let mut out = [B::default(); COLUMNS];
    for (to, from) in out.iter_mut().zip(row) {
        *to = f(from);
    }
    out
}

/// Which unit has written a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writer {
    Matrix,
    Vector,
    Unpacker,
}

/// Dst.
#[derive(Clone, Debug)]
pub(super) struct Dst {
    bits: Box<[Row16]>,
    /// By row of the storage: it holds something.
    valid: [u64; ROWS / 64],
    /// By block: when the matrix unit and the packer can read it.
    readable: [Cycle; ROWS / BLOCK],
    /// By block: the matrix unit was the last to write it.
    computed: u128,
    /// By block: written since somebody asked.
    written: u128,
}

impl Default for Dst {
    fn default() -> Self {
        Self {
            bits: vec![[0; COLUMNS]; ROWS].into_boxed_slice(),
            valid: [u64::MAX; ROWS / 64],
            readable: [0; ROWS / BLOCK],
            computed: 0,
            written: 0,
        }
    }
}

impl Dst {
    /// An instruction that issues in cycle `at` writes to the block of row `row`.
    #[inline]
    pub(super) fn note_write(&mut self, row: usize, writer: Writer, at: Cycle) {
        let block = row % ROWS / BLOCK;
        self.readable[block] = at + timing::DST_READABLE;
        self.computed = self.computed & !(1 << block) | u128::from(writer == Writer::Matrix) << block;
        self.written |= 1 << block;
    }

    /// The blocks that were written since the last call, for those who observe.
    pub(super) fn take_written(&mut self) -> u128 {
        std::mem::take(&mut self.written)
    }

    /// The block of row `row`, as a bit.
    pub(super) fn block_of(row: usize) -> u128 {
        1 << (row % ROWS / BLOCK)
    }

    /// When the matrix unit and the packer can read row `row`.
    #[inline]
    pub(super) fn readable(&self, row: usize) -> Cycle {
        self.readable[row % ROWS / BLOCK]
    }

    /// When `SFPLOAD` can read row `row`: only what the matrix unit writes is late for it.
    #[inline]
    pub(super) fn loadable(&self, row: usize) -> Cycle {
        let block = row % ROWS / BLOCK;
        let late = timing::DST_READABLE - timing::DST_LOADABLE;
        if self.computed >> block & 1 != 0 { self.readable[block].saturating_sub(late) } else { 0 }
    }

    /// Whether row `at` of the storage holds something.
    #[inline]
    pub(super) fn is_valid(&self, at: usize) -> bool {
        self.valid[at / 64] >> (at % 64) & 1 != 0
    }

    /// Clears row `at` of the storage.
    pub(super) fn clear(&mut self, at: usize) {
        self.valid[at / 64] &= !(1 << (at % 64));
    }

    /// Row `at` of the storage holds again what it held.
    pub(super) fn revert_clear_of(&mut self, at: usize) {
        self.valid[at / 64] |= 1 << (at % 64);
    }

    /// Clears `count` rows of the storage from `at` on, or else they hold again what they held;
    /// both are multiples of 64.
    pub(super) fn clear_part(&mut self, at: usize, count: usize, revert: bool) {
        for rows in self.valid.iter_mut().skip(at / 64).take(count / 64) {
            *rows = if revert { u64::MAX } else { 0 };
        }
    }

    /// What was cleared holds again what it held.
    pub(super) fn revert_clear(&mut self) {
        self.valid = [u64::MAX; ROWS / 64];
    }

    /// Row `at` of the storage, or zeros if it was cleared.
    #[inline]
    pub(super) fn read_at(&self, at: usize) -> Row16 {
        if self.is_valid(at) { self.bits[at] } else { [0; COLUMNS] }
    }

    /// Writes row `at` of the storage.
    #[inline]
    pub(super) fn write_at(&mut self, at: usize, row: Row16) {
        self.bits[at] = row;
        self.valid[at / 64] |= 1 << (at % 64);
    }

    /// `count` rows of the storage from `at` on, within a block, hold something then: zeros if they
    /// were cleared.
    #[inline]
    fn hold_something(&mut self, at: usize, count: usize, halves: &[usize]) {
        let mask = ((1 << count) - 1) << (at % 64);
        let cleared = !self.valid[at / 64] & mask;
        if cleared != 0 {
            for at in (at..at + count).filter(|at| cleared >> (at % 64) & 1 != 0) {
                halves.iter().for_each(|half| self.bits[at + half] = [0; COLUMNS]);
            }
            self.valid[at / 64] |= mask;
        }
    }

    /// `Dst16b[row]` and the rows after it, `count` in all, if they lie in one block. They all hold
    /// something then.
    #[inline]
    pub(super) fn narrow_rows(&mut self, map: RowMap, row: usize, count: usize) -> Option<&mut [Row16]> {
        if row % BLOCK + count > BLOCK {
            return None;
        }
        // Mappings do not touch rows within a block.
        let at = map.row16(row);
        self.hold_something(at, count, &[0]);
        self.bits.get_mut(at..at + count)
    }

    /// The high and the low halves of `Dst32b[row]` and the rows after it, `count` in all, if they
    /// lie in one block. They all hold something then.
    #[inline]
    pub(super) fn wide_rows(&mut self, map: RowMap, row: usize, count: usize) -> Option<(&mut [Row16], &mut [Row16])> {
        // A mapping that swizzles does touch rows within a block.
        if map.swizzle || row % BLOCK + count > BLOCK {
            return None;
        }
        let at = map.row32(row);
        self.hold_something(at, count, &[0, LOW_HALF]);
        let (high, low) = self.bits.get_mut(at..at + LOW_HALF + count)?.split_at_mut(LOW_HALF);
        Some((&mut high[..count], low))
    }

    /// `Dst16b[row]`.
    #[inline]
    pub(super) fn read16(&self, map: RowMap, row: usize) -> Row16 {
        self.read_at(map.row16(row))
    }

    /// Writes `Dst16b[row]`.
    #[inline]
    pub(super) fn write16(&mut self, map: RowMap, row: usize, data: Row16) {
        self.write_at(map.row16(row), data);
    }

    /// `Dst16b[row]` and the three rows after it, if `row` is a multiple of four and none of them was
    /// cleared.
    #[inline]
    pub(super) fn narrow_quad(&self, map: RowMap, row: usize) -> Option<&[Row16; 4]> {
        // Mappings do not touch rows within four.
        let at = map.row16(row);
        if self.valid[at / 64] >> (at % 64) & 0xF != 0xF { None } else { self.bits[at..].first_chunk() }
    }

    /// The same of `Dst32b`: high and low halves.
    #[inline]
    pub(super) fn wide_quad(&self, map: RowMap, row: usize) -> Option<[&[Row16; 4]; 2]> {
        let at = map.row32(row);
        if self.valid[at / 64] >> (at % 64) & 0xF != 0xF {
            return None;
        }
        Some([self.bits[at..].first_chunk()?, self.bits[at + LOW_HALF..].first_chunk()?])
    }

    /// `Dst16b[row]` and the three rows after it, to change parts of those of `rows`, a bit each;
    /// `row` is a multiple of four. The rest of a cleared row is again what it was before: so found
    /// on another simulator, not documented.
    #[inline]
    pub(super) fn narrow_quad_mut(&mut self, map: RowMap, row: usize, rows: u64) -> Option<&mut [Row16; 4]> {
        let at = map.row16(row);
        self.valid[at / 64] |= rows << (at % 64);
        self.bits[at..].first_chunk_mut()
    }

    /// The same of `Dst32b`: high and low halves.
    #[inline]
    pub(super) fn wide_quad_mut(&mut self, map: RowMap, row: usize, rows: u64) -> Option<[&mut [Row16; 4]; 2]> {
        let at = map.row32(row);
        self.valid[at / 64] |= rows << (at % 64);
        let (before, low) = self.bits.split_at_mut(at + LOW_HALF);
        Some([before[at..].first_chunk_mut()?, low.first_chunk_mut()?])
    }

    /// The high and the low halves of `Dst32b[row]`.
    #[inline]
    pub(super) fn read_halves(&self, map: RowMap, row: usize) -> [Row16; 2] {
        let at = map.row32(row);
        if self.is_valid(at) { [self.bits[at], self.bits[at + LOW_HALF]] } else { [[0; COLUMNS]; 2] }
    }

    /// Writes the high and the low halves of `Dst32b[row]`.
    #[inline]
    pub(super) fn write_halves(&mut self, map: RowMap, row: usize, [high, low]: [Row16; 2]) {
        let at = map.row32(row);
        self.bits[at] = high;
        self.bits[at + LOW_HALF] = low;
        self.valid[at / 64] |= 1 << (at % 64);
    }

    /// `Dst32b[row]`.
    #[inline]
    pub(super) fn read32(&self, map: RowMap, row: usize) -> Row32 {
        let [high, low] = self.read_halves(map, row);
        let mut row = [0; COLUMNS];
        for ((to, high), low) in row.iter_mut().zip(high).zip(low) {
            *to = u32::from(high) << 16 | u32::from(low);
        }
        row
    }

    /// Writes `Dst32b[row]`.
    #[inline]
    pub(super) fn write32(&mut self, map: RowMap, row: usize, data: Row32) {
        self.write_halves(map, row, [each(data, |datum| (datum >> 16) as u16), each(data, |datum| datum as u16)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: RowMap = RowMap { remap: false, swizzle: false };

    #[test]
    fn a_wide_row_is_two_rows_eight_apart() {
        let mut d = Dst::default();
        d.write32(PLAIN, 9, [0x1234_5678; 16]);
        assert_eq!((d.read16(PLAIN, 17)[0], d.read16(PLAIN, 25)[0]), (0x1234, 0x5678));
        assert_eq!(d.read32(PLAIN, 9), [0x1234_5678; 16]);
    }

    #[test]
    fn cleared_rows_read_as_zero_until_written() {
        let mut d = Dst::default();
        d.write16(PLAIN, 700, [7; 16]);
        d.clear(700);
        assert_eq!((d.read16(PLAIN, 700), d.is_valid(701)), ([0; 16], true));
        d.write16(PLAIN, 700, [8; 16]);
        assert_eq!(d.read16(PLAIN, 700), [8; 16]);
        d.clear(700);
        assert!(d.narrow_quad(PLAIN, 700).is_none());
        let part = |d: &mut Dst, rows| d.narrow_quad_mut(PLAIN, 700, rows).map(|rows| rows[0][3] = 9);
        part(&mut d, 0b1110);
        assert!(!d.is_valid(700));
        part(&mut d, 1);
        assert_eq!((d.read16(PLAIN, 700)[2..5].to_vec(), d.is_valid(700)), (vec![8, 9, 8], true));
        d.write32(PLAIN, 9, [0x1234_5678; 16]);
        let change = |d: &mut Dst, f: fn(&mut Row16, &mut Row16)| {
            let [high, low] = d.wide_quad_mut(PLAIN, 8, 0b10).expect("four rows");
            f(&mut high[1], &mut low[1]);
        };
        change(&mut d, |high, low| (high[1], low[2]) = (0xABCD, 0xEF01));
        assert_eq!(d.read32(PLAIN, 9)[..4], [0x1234_5678, 0xABCD_5678, 0x1234_EF01, 0x1234_5678]);
        d.clear(PLAIN.row32(9));
        assert_eq!(d.read32(PLAIN, 9), [0; 16]);
        assert!(d.wide_quad(PLAIN, 8).is_none());
        change(&mut d, |_, low| low[0] = 5);
        assert_eq!(d.wide_quad(PLAIN, 8).map(|[high, low]| (high[1][1], low[1][0])), Some((0xABCD, 5)));
        assert_eq!(d.read32(PLAIN, 9)[..2], [0x1234_0005, 0xABCD_5678]);
        d.write16(PLAIN, 700, [8; 16]);
        for revert in [Dst::revert_clear, |d: &mut Dst| d.revert_clear_of(700)] {
            d.clear(700);
            revert(&mut d);
            assert_eq!(d.read16(PLAIN, 700), [8; 16]);
        }
    }

    #[test]
    fn rows_side_by_side_hold_something() {
        let mut d = Dst::default();
        let swizzled = RowMap { remap: false, swizzle: true };
        assert!(d.narrow_rows(PLAIN, 6, 3).is_none() && d.wide_rows(PLAIN, 6, 3).is_none());
        assert!(d.wide_rows(swizzled, 0, 8).is_none());
        (16..24).for_each(|row| d.write16(PLAIN, row, [row as u16; 16]));
        d.clear(17);
        let rows = d.narrow_rows(PLAIN, 16, 4).map(|rows| rows.iter().map(|row| row[3]).collect::<Vec<_>>());
        assert_eq!(rows, Some(vec![16, 0, 18, 19]));
        assert!(d.is_valid(17));
        let remapped = RowMap { remap: true, swizzle: false };
        for map in [PLAIN, remapped] {
            (200..208).for_each(|row| d.write32(map, row, [(row << 16 | 5) as u32; 16]));
            d.clear(map.row32(201));
            let (high, low) = d.wide_rows(map, 200, 3).expect("side by side");
            let of = |rows: &[Row16]| rows.iter().map(|row| row[15]).collect::<Vec<_>>();
            assert_eq!((of(high), of(low)), (vec![200, 0, 202], vec![5, 0, 5]));
            assert_eq!(d.read32(map, 203), [203 << 16 | 5; 16]);
        }
    }

    #[test]
    fn blocks_can_be_read_when_whoever_wrote_them_is_done() {
        let mut d = Dst::default();
        assert_eq!((d.readable(15), d.loadable(15)), (0, 0));
        d.note_write(9, Writer::Matrix, 100);
        assert_eq!([7, 8, 15, 16].map(|row| d.readable(row)), [0, 105, 105, 0]);
        assert_eq!([7, 8, 15, 1032].map(|row| d.loadable(row)), [0, 104, 104, 104]);
        for writer in [Writer::Vector, Writer::Unpacker] {
            d.note_write(12, writer, 200);
            assert_eq!((d.readable(8), d.loadable(8)), (205, 0));
        }
    }

    #[test]
    fn every_mapping_is_one_to_one() {
        for (remap, swizzle) in [(false, false), (false, true), (true, false), (true, true)] {
            let map = RowMap { remap, swizzle };
            let mut narrow: Vec<_> = (0..1024).map(|r| map.row16(r)).collect();
            narrow.sort_unstable();
            assert!(narrow.into_iter().eq(0..1024));
            let wide = (0..512).map(|r| map.row32(r));
            let mut halves: Vec<_> = wide.flat_map(|at| [at, at + LOW_HALF]).collect();
            halves.sort_unstable();
            assert!(halves.into_iter().eq(0..1024));
        }
    }
}
