//! Arguments of the kernel `lines`, which works on lines of elements, each a page of a tensor in
//! rows: it puts them in order, chooses the first ones, writes elements to places that an index
//! names, runs over them, or draws one of them at random.
//!
//! Floats are ordered by their values; NaNs are larger than all others and equal to one another, as
//! both zeros are. Sums and products of floats are rounded to float32 one by one.

/// Unique arguments: what this core does.
pub mod own {
    /// First line.
    pub const FIRST: u32 = 0;
    /// How many (may be 0).
    pub const LINES: u32 = 1;
}

/// Common arguments.
pub mod arg {
    /// What is done ([`super::what`]).
    pub const WHAT: u32 = 0;
    /// How: a [`super::by`], or whether the largest elements come first (1).
    pub const BY: u32 = 1;
    /// The [`super::element`] of lines, updates and values.
    pub const ELEMENT: u32 = 2;
    /// The same of the values that running operations make, and of the index.
    pub const VALUE: u32 = 3;
    /// See [`VALUE`].
    pub const INDEX: u32 = 4;
    /// Elements of a line, at least 1.
    pub const LENGTH: u32 = 5;
    /// How many of them are chosen, at most [`LENGTH`]; how many places the index has.
    pub const COUNT: u32 = 6;
    /// Flags ([`super::flag`]).
    pub const FLAGS: u32 = 7;
    /// Number of the circular buffer of one page that is the kernel's memory.
    pub const CB: u32 = 8;
    /// The lines, and further tensors: address in each DRAM bank, distance of pages in a bank,
    /// bytes of a page.
    pub const LINES: u32 = 9;
    /// What is written to places: the index, and the elements.
    pub const PLACES: u32 = 12;
    /// See [`PLACES`].
    pub const UPDATES: u32 = 15;
    /// What is made: lines of values, and of the numbers that the elements had in their line.
    pub const VALUES: u32 = 18;
    /// See [`VALUES`].
    pub const NUMBERS: u32 = 21;
    /// Common arguments.
    pub const WORDS: u32 = 24;
}

/// What the kernel does.
pub mod what {
    /// Chooses the first elements in order, which need not fit into L1 with their line.
    pub const FIRST: u32 = 0;
    /// Puts whole lines in order, and gives the first elements.
    pub const SORT: u32 = 1;
    /// Writes elements to places in lines, one after the other.
    pub const WRITE: u32 = 2;
    /// Runs over lines: each element becomes the fold of all up to it.
    pub const RUN: u32 = 3;
    /// Draws the number of an element of each line of float32: of as many of the largest as the
    /// place says, in proportion to the exponentials of their products with the line's temperature,
    /// and of these of the largest up to and with the one at which the sum of the parts exceeds a
    /// bound. The updates are a line's bound, temperature and random number ([`super::drawn`]).
    pub const DRAW: u32 = 4;
}

/// The updates of a line of which an element is drawn, in float32.
pub mod drawn {
    /// The bound of the sum of parts.
    pub const BOUND: u32 = 0;
    /// What elements are multiplied by.
    pub const TEMPERATURE: u32 = 1;
    /// A number from 0 to below 1.
    pub const NUMBER: u32 = 2;
    /// How many there are.
    pub const WORDS: u32 = 3;
}

/// What an element and one that comes to it make.
pub mod by {
    /// The latter.
    pub const REPLACE: u32 = 0;
    /// Their sum.
    pub const SUM: u32 = 1;
    /// Their product.
    pub const PRODUCT: u32 = 2;
    /// The larger; NaN if either is.
    pub const MAX: u32 = 3;
    /// The smaller; NaN if either is.
    pub const MIN: u32 = 4;
}

/// Flags.
pub mod flag {
    /// Runs begin at the end of lines.
    pub const BACK: u32 = 1 << 0;
    /// Places that lines do not have are left out. Without this they end the kernel in a trap.
    pub const SKIP: u32 = 1 << 1;
    /// Lines and updates are not read: an element is its number in its line, and updates go on
    /// behind the last of these. So the result says which element each place has at last.
    pub const NUMBERED: u32 = 1 << 2;
    /// Values are wanted of what is chosen.
    pub const VALUES: u32 = 1 << 3;
    /// Numbers are.
    pub const NUMBERS: u32 = 1 << 4;
}

/// Element types.
pub mod element {
    /// float32.
    pub const F32: u32 = 0;
    /// bfloat16.
    pub const BF16: u32 = 1;
    /// 32 bits in two's complement.
    pub const I32: u32 = 2;
    /// Unsigned integers of 32, 16 and 8 bits.
    pub const U32: u32 = 3;
    /// See [`U32`].
    pub const U16: u32 = 4;
    /// See [`U32`].
    pub const U8: u32 = 5;

    /// Bytes as a power of two.
    #[inline(always)]
    pub const fn size(element: u32) -> u32 {
        match element {
            BF16 | U16 => 1,
            U8 => 0,
            _ => 2,
        }
    }
}

/// Bytes of a line that are read at once where it need not fit.
pub const PIECE: u32 = 16 << 10;

/// Bytes of the kernel's memory for lines of `length` elements, of which `count` are chosen or
/// written to; `bytes` are those of a page of the lines, the index, updates, values and numbers.
///
/// They are, one behind the other and each a multiple of 64: what is read of the lines, the index
/// and updates, staged values and numbers, and three tables of words.
pub const fn memory(what: u32, length: u32, count: u32, bytes: [u64; 5]) -> u64 {
    let mut all = 0;
    let mut i = 0;
    while i < bytes.len() {
        let piece = if what == what::FIRST && i == 0 { PIECE as u64 } else { bytes[i] };
        all += piece.next_multiple_of(64);
        i += 1;
    }
    all + 3 * table(what, length, count)
}

/// Bytes of each of the three tables.
pub const fn table(what: u32, length: u32, count: u32) -> u64 {
    let words = match what {
        what::FIRST => count,
        what::SORT | what::WRITE | what::DRAW => length,
        _ => 0,
    };
    (words as u64 * 4).next_multiple_of(64)
}
