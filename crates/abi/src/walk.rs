//! Arguments of the kernel `walk`, which reads pages of several buffers in nested loops.

/// Buffers at most.
pub const BUFFERS: usize = 6;
/// Loops of a buffer, the outermost first.
pub const LOOPS: usize = 4;

/// Unique arguments, for each buffer.
pub mod own {
    /// Which of all pages of the loops is this core's first.
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
