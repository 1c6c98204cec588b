//! Arguments of the kernel `edges`, which writes zeros behind the last rows or columns of matrices,
//! where their tiles go on: what multiplies them then adds nothing.

/// Unique arguments: what this core does.
pub mod own {
    /// First of the tiles at the edge.
    pub const FIRST: u32 = 0;
    /// How many (may be 0).
    pub const TILES: u32 = 1;
}

/// Common arguments.
pub mod arg {
    /// Address of the tensor in each DRAM bank.
    pub const ADDRESS: u32 = 0;
    /// Distance of its pages in a bank, a multiple of 64.
    pub const STRIDE: u32 = 1;
    /// Bytes of a page.
    pub const BYTES: u32 = 2;
    /// Bytes of an element as a power of two.
    pub const SIZE: u32 = 3;
    /// Where in a page the elements begin: behind the exponents of block formats.
    pub const ELEMENTS: u32 = 4;
    /// Tiles side by side in a matrix.
    pub const ACROSS: u32 = 5;
    /// Tiles one below the other in a matrix.
    pub const DOWN: u32 = 6;
    /// Whether it is rows (1) or columns (0) that end.
    pub const ROWS: u32 = 7;
    /// How many of them the last tile has, 1 to 31.
    pub const LENGTH: u32 = 8;
    /// Number of the circular buffer that has room for two pages.
    pub const CB: u32 = 9;
    /// How many there are.
    pub const WORDS: u32 = 10;
}
