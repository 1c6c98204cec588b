//! The three threads of a compute kernel.

/// A thread: the core whose image is built, and the thread of the coprocessor that it feeds.
pub trait Thread {
    /// TRISC0: feeds the unpackers.
    const UNPACK: bool = false;
    /// TRISC1: feeds the matrix unit and the vector unit.
    const MATH: bool = false;
    /// TRISC2: feeds the packer.
    const PACK: bool = false;
}

/// TRISC0.
pub enum Unpack {}
/// TRISC1.
pub enum Math {}
/// TRISC2.
pub enum Pack {}

impl Thread for Unpack {
    const UNPACK: bool = true;
}
impl Thread for Math {
    const MATH: bool = true;
}
impl Thread for Pack {
    const PACK: bool = true;
}
