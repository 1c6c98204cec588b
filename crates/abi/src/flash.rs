//! Attention in one program: arguments of the kernels `flash`, `flash-read` and `flash-write`, and
//! which tiles of the scores they go through.
//!
//! A core has units: a unit is some rows of tiles of the queries of one head. Tiles of keys that no
//! query of a row sees are left out by all three kernels, and those that some do not see have a
//! mask.

/// Unique arguments.
pub mod own {
    /// The first unit.
    pub const FIRST: u32 = 0;
    /// How many (may be 0).
    pub const UNITS: u32 = 1;
    /// How many arguments there are.
    pub const WORDS: u32 = 2;
}

/// Common arguments. Lengths are in tiles where nothing else is said.
pub mod arg {
    /// Rows of tiles of a head's queries.
    pub const ROWS: u32 = 0;
    /// Rows of tiles of a head's keys and values.
    pub const KEYS: u32 = 1;
    /// Columns of queries and keys, and of values.
    pub const DEPTH: u32 = 2;
    /// See [`DEPTH`].
    pub const WIDTH: u32 = 3;
    /// Units of a head: unit `i` of `n` has rows `i`, `i + n`...
    pub const SPLIT: u32 = 4;
    /// Tiles of keys whose scores are in L1 at once.
    pub const BLOCK: u32 = 5;
    /// Whether keys and values of a unit stay in L1, so that each row has one block of scores.
    pub const STAY: u32 = 6;
    /// Query `i` sees key `j` if `j - i` is from [`LOW`] to [`HIGH`] (signed).
    pub const LOW: u32 = 7;
    /// See [`LOW`].
    pub const HIGH: u32 = 8;
    /// Keys of a head, in elements.
    pub const LENGTH: u32 = 9;
    /// What differences of scores are multiplied by, as a power of two: the bits of an f32.
    pub const SCALE: u32 = 10;
    /// What scores are multiplied by before a mask is added: the bits of an f32.
    pub const FACTOR: u32 = 11;
    /// Bytes of an element of the given mask; 0 without one.
    pub const MASK: u32 = 12;
    /// Heads of a batch, and of a key head.
    pub const HEADS: u32 = 13;
    /// See [`HEADS`].
    pub const SHARED: u32 = 14;
    /// Pages of the mask from one of the batch to the next, and from head to head.
    pub const MASK_BATCH: u32 = 15;
    /// See [`MASK_BATCH`].
    pub const MASK_HEAD: u32 = 16;
    /// Addresses in each DRAM bank.
    pub const QUERY: u32 = 17;
    /// See [`QUERY`].
    pub const KEY: u32 = 18;
    /// See [`QUERY`].
    pub const VALUE: u32 = 19;
    /// See [`QUERY`].
    pub const MASK_ADDRESS: u32 = 20;
    /// See [`QUERY`].
    pub const RESULT: u32 = 21;
    /// See [`QUERY`]: a number for each of the batch, the last key that its queries see instead of
    /// all keys.
    pub const POSITIONS: u32 = 22;
    /// How many of them; 0: queries see all keys that the band lets them see.
    pub const POSITION_COUNT: u32 = 23;
    /// How many arguments there are.
    pub const WORDS: u32 = 24;
}

/// Numbers of the circular buffers.
pub mod cb {
    /// A row of tiles of queries.
    pub const QUERY: u32 = 0;
    /// Keys and values, a row of tiles after the other.
    pub const KEY: u32 = 1;
    /// See [`KEY`].
    pub const VALUE: u32 = 2;
    /// A tile of ones, which stays.
    pub const ONES: u32 = 3;
    /// Tiles of masks.
    pub const MASK: u32 = 4;
    /// One page with the positions, for all cores.
    pub const POSITIONS: u32 = 5;
    /// The result.
    pub const RESULT: u32 = 16;
    /// A block of scores, f32.
    pub const SCORES: u32 = 24;
    /// The largest score of each query, f32.
    pub const LARGEST: u32 = 25;
    /// A block of weights.
    pub const WEIGHTS: u32 = 26;
    /// What sums of the blocks before are multiplied by, f32.
    pub const RESCALE: u32 = 27;
    /// Sums of the blocks before: those of values and of weights, f32.
    pub const SUMS: u32 = 28;
}

/// The semaphore that is one when the positions are there.
pub const HAS_POSITIONS: u32 = 0;

/// Rows and columns of a tile.
pub const TILE: i32 = 32;
/// Tiles of values that are summed up at once, beside a tile of sums of weights.
pub const AT_ONCE: u32 = 3;
/// Bits of what a score has that a query does not see: about -1e30, exact in bfloat16. No score is
/// less.
pub const UNSEEN: u32 = 0xF149_0000;

/// Which keys queries see by their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Band {
    /// Query `i` sees key `j` if `j - i` is not less.
    pub low: i32,
    /// Nor more.
    pub high: i32,
    /// Keys.
    pub length: i32,
}

impl Band {
    /// What bounds are at most, so that sums of them do not overflow.
    pub const FAR: i32 = 1 << 28;

    /// With keys up to a position only.
    #[inline(always)]
    #[must_use]
    pub const fn up_to(self, position: u32) -> Self {
        Self { length: position.cast_signed() + 1, ..self }
    }

    /// The first tile of keys that a query of a row of tiles sees, and the one behind the last.
    #[inline(always)]
    pub const fn tiles(self, row: u32) -> (u32, u32) {
        let Self { low, high, length } = self;
        let first = row.cast_signed() * TILE;
        // The first key that the first query sees, and the last one that the last query sees.
        let (begin, last) = (first + low, first + TILE - 1 + high);
        let begin = if begin < 0 { 0 } else { begin };
        let last = if last < length { last } else { length - 1 };
        if last < begin { (0, 0) } else { ((begin / TILE).cast_unsigned(), (last / TILE).cast_unsigned() + 1) }
    }

    /// Whether all queries of a row of tiles see all keys of a tile.
    #[inline(always)]
    pub const fn sees_all(self, row: u32, tile: u32) -> bool {
        let apart = (tile.cast_signed() - row.cast_signed()) * TILE;
        let whole = (tile.cast_signed() + 1) * TILE <= self.length;
        whole && apart - (TILE - 1) >= self.low && apart + (TILE - 1) <= self.high
    }

    /// Which columns of a tile a query sees, from the first one to before the second.
    #[inline(always)]
    pub const fn columns(self, query: u32, tile: u32) -> (u32, u32) {
        let apart = query.cast_signed() - tile.cast_signed() * TILE;
        let (from, to) = (self.low + apart, self.high + apart + 1);
        let end = self.length - tile.cast_signed() * TILE;
        let end = if end < TILE { end } else { TILE };
        let from = if from < 0 { 0 } else { from };
        let to = if to > end { end } else { to };
        if to < from { (0, 0) } else { (from.cast_unsigned(), to.cast_unsigned()) }
    }
}

/// The parts in which columns of values are summed up: how many, and columns of a part; the last
/// one may have fewer.
pub const fn parts(width: u32) -> (u32, u32) {
    let count = width.div_ceil(AT_ONCE);
    let each = if count == 0 { 0 } else { width.div_ceil(count) };
    (count, each)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tile and column by the definition.
    #[test]
    fn bands_are_what_pairs_say() {
        const FAR: i32 = Band::FAR;
        for (low, high, length) in
            [(-FAR, 0, 100), (-FAR, FAR, 70), (-40, 0, 128), (-33, 33, 96), (0, 0, 64), (-5, 5, 33)]
        {
            let band = Band { low, high, length };
            let sees = |i: u32, j: u32| {
                (low..=high).contains(&(j.cast_signed() - i.cast_signed())) && j.cast_signed() < length
            };
            for row in 0..4 {
                let (begin, end) = band.tiles(row);
                for tile in 0..6 {
                    let pairs = || (0..32).flat_map(|r| (0..32).map(move |c| (row * 32 + r, tile * 32 + c)));
                    let any = pairs().any(|(i, j)| sees(i, j));
                    assert!(!any || (begin..end).contains(&tile), "{band:?} {row} {tile}");
                    assert_eq!(band.sees_all(row, tile), pairs().all(|(i, j)| sees(i, j)), "{band:?} {row} {tile}");
                    for i in row * 32..row * 32 + 32 {
                        let (from, to) = band.columns(i, tile);
                        assert!((0..32).all(|c| (from..to).contains(&c) == sees(i, tile * 32 + c)), "{band:?} {i}");
                    }
                }
            }
        }
    }

    #[test]
    fn parts_fit_into_dst() {
        assert_eq!([1, 2, 3, 4, 7, 8].map(parts), [(1, 1), (1, 2), (1, 3), (2, 2), (3, 3), (3, 3)]);
    }
}
