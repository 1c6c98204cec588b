//! Caches of decoded code: one per tile, and one that all tiles of a chip share.
//!
//! Firmware and kernels are the same in most tiles, so a page that one tile has decoded serves all
//! others with the same bytes. Which pages are cached affects only what has to be decoded again;
//! when a tile's own code changes, it drops its own pages and no others.

use std::sync::{Arc, Mutex, PoisonError};
use tilework_riscv::{CODE_PAGE_BYTES, CodePage};

/// Bytes of code in a page.
const BYTES: usize = CODE_PAGE_BYTES as usize;
/// Entries of the book: enough for a few hundred KiB of different code, 1 KiB each.
const PLACES: usize = 1024;
/// Pages of a row of a tile's table: 16 KiB of L1.
const ROW: usize = 64;

/// A page with the bytes it stands for.
struct Entry {
    bytes: [u8; BYTES],
    page: Arc<CodePage>,
}

/// The decoded pages of all tiles, by content. A page can be in one entry only, and replaces the
/// page that was there.
pub(crate) struct CodeBook {
    entries: Mutex<Vec<Option<Box<Entry>>>>,
}

impl CodeBook {
    /// An empty book, for the tiles of one chip.
    pub(crate) fn new() -> Arc<Self> {
        let entries = std::iter::repeat_with(|| None).take(PLACES).collect();
        Arc::new(Self { entries: Mutex::new(entries) })
    }

    /// The page that these bytes decode to.
    fn page(&self, bytes: &[u8; BYTES]) -> Arc<CodePage> {
        // A poisoned lock is safe to use: no panic happens in the middle of a change.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = &mut entries[place(bytes)];
        match entry {
            Some(entry) if entry.bytes == *bytes => entry.page.clone(),
            _ => {
                let page = Arc::new(CodePage::decode(bytes));
                *entry = Some(Box::new(Entry { bytes: *bytes, page: page.clone() }));
                page
            }
        }
    }
}

/// The entry of a page with these bytes; any function that distributes well would do. The
/// multiplier is that of Knuth's multiplicative hashing for 64 bits.
fn place(bytes: &[u8; BYTES]) -> usize {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |sum: u64, word: u64| {
        let sum = (sum ^ word).wrapping_mul(SPREAD);
        sum ^ sum >> 32
    };
    // Four sums side by side, because each multiplication waits for the one before it.
    let mut sums = [0; 4];
    for words in bytes.as_chunks::<32>().0 {
        for (sum, word) in sums.iter_mut().zip(words.as_chunks::<8>().0) {
            *sum = mix(*sum, u64::from_le_bytes(*word));
        }
    }
    sums.into_iter().fold(0, mix) as usize % PLACES
}

/// The decoded pages that one tile's cores have asked for.
///
/// After each change of code all cores look up their pages again, so that a page is found without
/// a search: by its number, in rows that are there where a core has run.
#[derive(Clone)]
pub(super) struct TileCode {
    book: Arc<CodeBook>,
    rows: Vec<Option<Box<Row>>>,
}

/// Neighbouring pages of L1.
type Row = [Option<Arc<CodePage>>; ROW];

impl TileCode {
    /// No decoded code yet.
    pub(super) fn new(book: Arc<CodeBook>) -> Self {
        Self { book, rows: Vec::new() }
    }

    /// The page with this number, if it is decoded.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&Arc<CodePage>> {
        self.rows.get(number / ROW)?.as_ref()?[number % ROW].as_ref()
    }

    /// Decodes the page with this number, which is in L1.
    pub(super) fn decode(&mut self, number: usize, bytes: &[u8; BYTES]) -> Arc<CodePage> {
        let page = self.book.page(bytes);
        let row = number / ROW;
        if self.rows.len() <= row {
            self.rows.resize(row + 1, None);
        }
        let row = self.rows[row].get_or_insert_with(|| Box::new([const { None }; ROW]));
        row[number % ROW] = Some(page.clone());
        page
    }

    /// Drops the page with this number.
    pub(super) fn drop_page(&mut self, number: usize) {
        if let Some(Some(row)) = self.rows.get_mut(number / ROW) {
            row[number % ROW] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_riscv::{Insn, Op, encode};

    /// A page of `addi x1, x1, imm`.
    fn adds(imm: i32) -> [u8; BYTES] {
        let word = encode(Insn { op: Op::Addi, rd: 1, rs1: 1, rs2: 0, imm }).expect("it fits");
        let mut bytes = [0; BYTES];
        for at in bytes.as_chunks_mut::<4>().0 {
            *at = word.to_le_bytes();
        }
        bytes
    }

    #[test]
    fn tiles_with_the_same_code_share_its_page() {
        let book = CodeBook::new();
        let mut tiles = [(); 2].map(|()| TileCode::new(book.clone()));
        let pages = tiles.each_mut().map(|tile| tile.decode(3, &adds(7)));
        assert!(Arc::ptr_eq(&pages[0], &pages[1]));
        assert_eq!(pages[0].insns[5].imm, 7);
    }

    #[test]
    fn a_page_is_what_its_bytes_say_however_many_there_are() {
        let book = CodeBook::new();
        for imm in -2048..2048 {
            assert_eq!(book.page(&adds(imm)).insns[63].imm, imm);
        }
        assert_eq!(book.entries.lock().expect("nobody panicked").len(), PLACES);
    }

    #[test]
    fn a_changed_page_changes_in_its_own_tile_only() {
        let book = CodeBook::new();
        let mut tiles = [(); 2].map(|()| TileCode::new(book.clone()));
        for tile in &mut tiles {
            tile.decode(0, &adds(1));
            tile.decode(1, &adds(2));
        }
        tiles[0].drop_page(0);
        tiles[0].drop_page(0);
        assert!(tiles[0].get(0).is_none());
        assert!(tiles[0].get(16).is_none(), "past L1");
        tiles[0].decode(2, &adds(3));
        tiles[0].decode(0, &adds(4));
        let seen = |tile: &TileCode| [0, 1, 2].map(|i| tile.get(i).map(|page| page.insns[0].imm));
        assert_eq!(seen(&tiles[0]), [Some(4), Some(2), Some(3)]);
        assert_eq!(seen(&tiles[1]), [Some(1), Some(2), None]);
    }
}
