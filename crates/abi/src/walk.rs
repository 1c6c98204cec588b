//! Arguments of the kernels `walk` and `even-walk`, which read pages of several buffers in nested
//! loops, and of `even-writer`.
//!
//! Those that are called even have the same arguments on all cores, so that one multicast brings
//! them: each core has as many pages, those behind the pages of the cores whose number is lower,
//! and finds its own number by where it is ([`number`]). A core without a number has no pages.

/// Buffers at most.
pub const BUFFERS: usize = 6;
/// Loops of a buffer, the outermost first.
pub const LOOPS: usize = 4;

/// Unique arguments, for each buffer.
pub mod own {
    /// Which of all pages of the loops is this core's first; for `even-walk` that of core 0.
    pub const FIRST: u32 = 0;
    /// How many there are (may be 0).
    pub const PAGES: u32 = 1;
    /// Arguments of a buffer.
    pub const WORDS: u32 = 2;
}

/// Common arguments: the number of buffers, at least 1, and for each of them.
pub mod buffer {
    /// The number of buffers.
    pub const COUNT: u32 = 0;
    /// Where those of the first buffer begin. In each:
    pub const FIRST: u32 = 1;
    /// Address in each DRAM bank.
    pub const ADDRESS: u32 = 0;
    /// Distance of pages in a bank, a multiple of 64.
    pub const STRIDE: u32 = 1;
    /// Bytes of a page.
    pub const BYTES: u32 = 2;
    /// Number of the circular buffer.
    pub const CB: u32 = 3;
    /// How often each loop goes round.
    pub const COUNTS: u32 = 4;
    /// From one round of a loop to the next, in pages.
    pub const STEPS: u32 = 8;
    /// Arguments of a buffer.
    pub const WORDS: u32 = 12;
}

/// The numbers of cores, row by row: words that say which tiles of each row are among them. In the
/// common arguments of `even-walk` they follow the buffers, in those of `even-writer` and of `pair`
/// they come first.
pub mod number {
    /// Words: one for each row of a chip with workers, at most.
    pub const WORDS: u32 = 10;
    /// The first of these rows.
    pub const FIRST_ROW: u32 = 2;
    /// Where in a word the number of the row's first core is; below it a bit for each column.
    pub const COLUMNS: u32 = 24;

    /// The words for cores in this order, as pairs of column and row; none if they are not row by
    /// row.
    pub fn words(cores: impl IntoIterator<Item = (u8, u8)>) -> Option<[u32; WORDS as usize]> {
        let (mut words, mut last) = ([0; WORDS as usize], None);
        for (number, (x, y)) in (0u32..).zip(cores) {
            let row = u32::from(y).checked_sub(FIRST_ROW)? as usize;
            let word = words.get_mut(row)?;
            if last.is_some_and(|last| last >= (y, x)) || u32::from(x) >= COLUMNS || number >> (32 - COLUMNS) != 0 {
                return None;
            }
            if *word == 0 {
                *word = number << COLUMNS;
            }
            *word |= 1 << x;
            last = Some((y, x));
        }
        Some(words)
    }

    /// Which of the words a core in row `y` needs.
    pub const fn row(y: u32) -> u32 {
        y - FIRST_ROW
    }

    /// The number of the core in column `x` of the row that has this word, if it has one.
    #[inline(always)]
    pub const fn of(word: u32, x: u32) -> Option<u32> {
        if word >> x & 1 == 0 {
            return None;
        }
        Some((word >> COLUMNS) + (word & ((1 << x) - 1)).count_ones())
    }
}

/// Common arguments of `even-writer`, behind the numbers of cores.
pub mod result {
    use super::number;

    /// Address in each DRAM bank.
    pub const ADDRESS: u32 = number::WORDS;
    /// Pages of each core; those that the buffer does not have are left out.
    pub const PAGES: u32 = ADDRESS + 1;
    /// Pages of the buffer.
    pub const ALL: u32 = ADDRESS + 2;
    /// Bytes of a page: a multiple of 64.
    pub const BYTES: u32 = ADDRESS + 3;
    /// Number of the circular buffer.
    pub const CB: u32 = ADDRESS + 4;
    /// All of them.
    pub const WORDS: u32 = ADDRESS + 5;
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn each_core_finds_its_number() {
        let is_worker = |tile: &(u8, u8)| ![(16, 2), (1, 5)].contains(tile) && !(8..10).contains(&tile.0);
        let all = || (2..12).flat_map(|y| (1..17).map(move |x| (x, y))).filter(is_worker);
        let of_row = |words: &[u32], y: u8| words[number::row(y.into()) as usize];
        let words = number::words(all()).unwrap();
        for (i, (x, y)) in (0..).zip(all()) {
            assert_eq!(number::of(of_row(&words, y), x.into()), Some(i));
        }
        let words = number::words(all().take(17)).unwrap();
        for (x, y) in (2..12).flat_map(|y| (1..17).map(move |x| (x, y))) {
            let number = (0..17).zip(all()).find(|(_, tile)| *tile == (x, y)).map(|(i, _)| i);
            assert_eq!(number::of(of_row(&words, y), x.into()), number, "{x}, {y}");
        }
        assert_eq!(number::words([(2, 2), (1, 2)]), None);
        assert_eq!(number::words([(2, 1)]), None);
    }
}
