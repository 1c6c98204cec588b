//! The kernel driver of a Blackhole card (tt-kmd 2.x) as a library: open files, requests, mappings,
//! pinned memory, TLB windows, locks, power and reset, and the folders in `/dev` and `/sys`.
//!
//! It is pure: the chip is behind [`Card`], the memory of the program that asks behind
//! [`UserMemory`], and who calls it decides what a file descriptor and a mapping are. Layouts and
//! numbers of requests are those of the driver's public header `ioctl.h` ([`layout`]); behaviour
//! and errors follow `chardev.c`, `memory.c`, `tlb.c` and `blackhole.c`. The host is one with an
//! IOMMU, so that any pages can be pinned: they get consecutive bus addresses ([`BusMap`]).
#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod arc;
mod bus;
mod driver;
mod errno;
mod file;
mod memory;
pub mod program;
pub mod record;
mod tree;
mod windows;

pub use arc::telemetry;
pub use bus::{BusMap, Place};
pub use driver::{Driver, OpenFlags};
pub use errno::{Errno, Refusal};
pub use file::FileId;
pub use memory::{Mapping, Target};
pub use tilework_abi::kmd as layout;
#[cfg(unix)]
pub use tree::write_tree;
pub use tree::{BETWEEN_BOARDS, Entry, MAJOR, MOST_CARDS, Tree, bus_device_function, tree, tree_of};

use tilework_abi::tlb::Bar;

/// A page of the host.
pub const PAGE: u64 = 4096;

/// The card's side: its BARs, and its reset.
///
/// An access does not fail: a card that is stopped answers with ones, and whoever owns it knows.
pub trait Card {
    /// Reads `out.len()` bytes at `offset` of `bar`.
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]);
    /// Writes `data` at `offset` of `bar`.
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]);
    /// Resets the chip: it then is as after power-on.
    fn reset(&mut self);

    /// Reads a register or a word.
    fn read32(&mut self, bar: Bar, offset: u64) -> u32 {
        let mut word = [0; 4];
        self.read(bar, offset, &mut word);
        u32::from_le_bytes(word)
    }
    /// Writes a register or a word.
    fn write32(&mut self, bar: Bar, offset: u64, value: u32) {
        self.write(bar, offset, &value.to_le_bytes());
    }
}

/// The memory of the program whose request is served.
pub trait UserMemory {
    /// Reads `out.len()` bytes at `address`.
    ///
    /// # Errors
    /// [`Errno::Fault`]: they are not all there.
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Errno>;
    /// Writes `data` at `address`.
    ///
    /// # Errors
    /// [`Errno::Fault`]: not all of it can be written.
    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Errno>;
    /// Whether `size` bytes from `address` on are memory that can be pinned, for writing unless
    /// `read_only`.
    fn can_be_pinned(&mut self, address: u64, size: u64, read_only: bool) -> bool;
    /// `size` bytes from `address` on were pinned; the device may write them unless `read_only`.
    fn pinned(&mut self, _address: u64, _size: u64, _read_only: bool) {}
    /// `size` bytes from `address` on are not pinned any more.
    fn unpinned(&mut self, _address: u64, _size: u64) {}
    /// Memory for a DMA buffer of `size` bytes, all zero; where it lies in the process.
    ///
    /// # Errors
    /// [`Errno::NoMemory`]: there is too little.
    fn allocate(&mut self, size: u64) -> Result<u64, Errno>;
    /// Frees what [`UserMemory::allocate`] gave.
    fn free(&mut self, address: u64, size: u64);
}
