//! Arguments and circular buffers of the kernels of whole rows: `row-softmax` and `row-norm`, which
//! compute, and `row-reader` and `row-writer`, which feed and empty them.
//!
//! A row of tiles lies in L1 as a whole. Statistics of it are columns of one tile. Rows are turned:
//! each core begins with another tile, so that not all ask the same bank at the same time. A last
//! tile with padding stays the last.

/// The circular buffers. Those of a row of tiles have room for that, or for several.
pub mod cb {
    /// The argument: a row of tiles.
    pub const X: u32 = 0;
    /// Ones in row 0 of a tile of float32; stays.
    pub const ONES: u32 = 1;
    /// Weight, of which row 0 counts: a row of tiles, which stays.
    pub const WEIGHT: u32 = 2;
    /// Bias likewise.
    pub const BIAS: u32 = 3;
    /// The result: a row of tiles.
    pub const Y: u32 = 16;
    /// The last tile of a row without its padding.
    pub const LAST: u32 = 24;
    /// A statistic: float32, as are those that follow.
    pub const STATISTIC: u32 = 25;
    /// Exponentials, or differences from the mean: a row of tiles.
    pub const TERMS: u32 = 26;
    /// Sums of squares: two tiles.
    pub const SQUARES: u32 = 27;
    /// The row of tiles before it is multiplied by the weight.
    pub const SCALED: u32 = 28;
    /// The row of tiles before the bias is added.
    pub const WEIGHTED: u32 = 29;
}

/// Run-time arguments of the compute kernels.
pub mod arg {
    /// Rows of tiles (may be 0).
    pub const ROWS: u32 = 0;
    /// Tiles of a row.
    pub const COLUMNS: u32 = 1;
    /// Columns of the last tile that are no padding, if there is any, else 0.
    pub const WIDTH: u32 = 2;
    /// Formats of argument and result (`Format`).
    pub const X: u32 = 3;
    /// See [`X`].
    pub const Y: u32 = 4;
    /// How many there are for `row-softmax`. For `row-norm`, there are also:
    pub const SOFTMAX_WORDS: u32 = 5;
    /// One divided by the number of elements of a row, as the bits of an f32.
    pub const PART: u32 = 5;
    /// What is added to the variance, likewise.
    pub const EPSILON: u32 = 6;
    /// Bits of [`super::flag`].
    pub const FLAGS: u32 = 7;
    /// Formats of weight and bias.
    pub const WEIGHT: u32 = 8;
    /// See [`WEIGHT`].
    pub const BIAS: u32 = 9;
    /// How many there are for `row-norm`.
    pub const NORM_WORDS: u32 = 10;
}

/// What `row-norm` does.
pub mod flag {
    /// The mean is subtracted.
    pub const CENTRED: u32 = 1 << 0;
    /// There is a weight.
    pub const WEIGHTED: u32 = 1 << 1;
    /// There is a bias.
    pub const BIASED: u32 = 1 << 2;
}

/// Arguments of `row-writer`, which writes the result.
pub mod writer {
    /// Unique: the first page.
    pub const FIRST: u32 = 0;
    /// Unique: rows of tiles (may be 0).
    pub const ROWS: u32 = 1;
    /// Unique: with which of its tiles a row begins.
    pub const TURN: u32 = 2;
    /// Common: tiles of a row.
    pub const COLUMNS: u32 = 0;
    /// Common: how many of them are turned, the first ones.
    pub const TURNED: u32 = 1;
    /// Common: address in each DRAM bank.
    pub const ADDRESS: u32 = 2;
    /// Common: distance of pages in a bank, a multiple of 64.
    pub const STRIDE: u32 = 3;
    /// Common: bytes of a page.
    pub const BYTES: u32 = 4;
}

/// Arguments of `row-reader`.
pub mod reader {
    /// Unique: the first page of the argument.
    pub const FIRST: u32 = 0;
    /// Unique: rows of tiles (may be 0).
    pub const ROWS: u32 = 1;
    /// Unique: with which of its tiles a row begins.
    pub const TURN: u32 = 2;
    /// Common: tiles of a row.
    pub const COLUMNS: u32 = 0;
    /// Common: how many of them are turned, the first ones.
    pub const TURNED: u32 = 1;
    /// Common: bits of [`super::flag`], for weight and bias.
    pub const FLAGS: u32 = 2;
    /// Common: where those of the argument begin, then of weight and bias. In each:
    pub const BUFFERS: u32 = 3;
    /// Address in each DRAM bank.
    pub const ADDRESS: u32 = 0;
    /// Distance of pages in a bank, a multiple of 64.
    pub const STRIDE: u32 = 1;
    /// Bytes of a page.
    pub const BYTES: u32 = 2;
    /// Arguments of a buffer.
    pub const WORDS: u32 = 3;
    /// Buffers.
    pub const COUNT: u32 = 3;
}
