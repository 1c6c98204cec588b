//! Arguments of the kernel `rearrange`, which makes the pages of a tensor from elements of others.
//!
//! Elements of the result have six coordinates, outermost first. A *box* is a part of the result
//! between two corners. Its element at coordinates `i` is the one of a source, in row-major order,
//! whose number is `base` plus the sum of `stride[k] * (i[k] - low[k])`. So one kernel changes
//! layouts, permutes, slices, concatenates, pads, repeats and reshapes.
//!
//! A box may take a number from another tensor, the *index*: element `base + sum of stride[k] *
//! (i[k] - low[k])` of that. A box with `step` then has the element `step` times that number
//! further on: rows of a table, gathered elements, slices with bounds that are tensors. A box with
//! `moves` is moved along that dimension by it: places that are written. A number that is not below
//! `bound` ends the kernel in a trap.

/// Coordinates of an element.
pub const DIMS: usize = 6;
/// Boxes at most.
pub const BOXES: usize = 8;

/// Unique arguments: what this core does.
pub mod own {
    /// First part of a page; parts are counted through all pages.
    pub const FIRST: u32 = 0;
    /// Parts (may be 0).
    pub const PARTS: u32 = 1;
}

/// The most parts of a tile: each has at least four rows of a face.
pub const TILE_PARTS: u32 = 16;

/// Common arguments: the result, and the kernel's memory.
pub mod arg {
    /// Address of the result in each DRAM bank.
    pub const ADDRESS: u32 = 0;
    /// Distance of its pages in a bank, a multiple of 64.
    pub const STRIDE: u32 = 1;
    /// Bytes of a page.
    pub const BYTES: u32 = 2;
    /// Bytes of an element as a power of two: 0 to 2.
    pub const SIZE: u32 = 3;
    /// Whether pages are tiles of 32 by 32 (1) or rows (0).
    pub const TILES: u32 = 4;
    /// What is where no box is, as a word of equal elements.
    pub const FILL: u32 = 5;
    /// Whether pages have elements of no box.
    pub const FILLS: u32 = 6;
    /// Number of the circular buffer of one page that is the kernel's memory.
    pub const CB: u32 = 7;
    /// Pieces of sources' pages that it has room for, a power of two.
    pub const SLOTS: u32 = 8;
    /// Bytes of a piece as a power of two, 6 at least: a page is read in pieces of so many bytes.
    pub const SLOT_SHIFT: u32 = 9;
    /// Number of boxes, at least 1.
    pub const BOXES: u32 = 10;
    /// Lengths of the result's dimensions, without padding.
    pub const DIMS: u32 = 11;
    /// Parts of a page, which are made one by one: a tile has 1, 2, 4, 8 or 16 of the same size.
    pub const PARTS: u32 = 17;
    /// Bytes of each part but the last of a page, a multiple of 64.
    pub const PART_BYTES: u32 = 18;
    /// The index ([`super::index`]).
    pub const INDEX: u32 = 19;
    /// Arguments of the first box.
    pub const FIRST_BOX: u32 = INDEX + super::index::WORDS;
}

/// Arguments of the index.
pub mod index {
    /// Address in each DRAM bank, distance of pages in a bank, bytes of a page, whether pages are
    /// tiles, length of the last dimension and of the one before: as those of a box.
    pub const ADDRESS: u32 = 0;
    /// The first element.
    pub const BASE: u32 = 6;
    /// Strides, in two's complement.
    pub const STRIDES: u32 = 7;
    /// Bytes of an element as a power of two: 0 to 2.
    pub const SIZE: u32 = 13;
    /// All numbers are below this.
    pub const BOUND: u32 = 14;
    /// Arguments of the index.
    pub const WORDS: u32 = 15;
}

/// Arguments of a box.
pub mod of_box {
    /// Address of its source in each DRAM bank.
    pub const ADDRESS: u32 = 0;
    /// Distance of the source's pages in a bank.
    pub const STRIDE: u32 = 1;
    /// Bytes of a page.
    pub const BYTES: u32 = 2;
    /// Whether pages are tiles.
    pub const TILES: u32 = 3;
    /// Length of the last dimension, and of the one before.
    pub const COLUMNS: u32 = 4;
    /// See [`COLUMNS`].
    pub const ROWS: u32 = 5;
    /// The first element.
    pub const BASE: u32 = 6;
    /// The lower corner: the first coordinates of the box.
    pub const LOW: u32 = 7;
    /// The upper corner: the coordinates behind the last.
    pub const HIGH: u32 = 13;
    /// Strides, in two's complement.
    pub const STRIDES: u32 = 19;
    /// How many elements further on each of the index's numbers is; 0: none.
    pub const STEP: u32 = 25;
    /// By which of its dimensions the box is moved by the index's number, one more; 0: by none.
    pub const MOVES: u32 = 26;
    /// Arguments of a box.
    pub const WORDS: u32 = 27;
}

/// Runs of elements that are remembered until their pages are there.
pub const RUNS: u32 = 512;
/// Bytes of a run in the kernel's memory: address of its source, of its copy, and its elements.
pub const RUN_BYTES: u32 = 12;
/// Bytes that the kernel's memory has for each slot besides the piece: which it has, and in
/// which batch of runs it was used last.
pub const TAG_BYTES: u32 = 8;

/// Bytes of the kernel's memory: two pages of the result, slots with their tags, runs, and a page
/// of the index.
pub const fn memory(page_bytes: u32, slots: u32, slot_bytes: u32, index_bytes: u32) -> u32 {
    let tables = slots * TAG_BYTES + RUNS * RUN_BYTES;
    let pages = 2 * page_bytes.next_multiple_of(64) + slots * slot_bytes;
    pages + tables.next_multiple_of(64) + index_bytes.next_multiple_of(64)
}
