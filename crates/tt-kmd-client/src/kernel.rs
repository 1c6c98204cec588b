//! What an operating system does for a client of the kernel driver.

use std::io;
use tilework_abi::kmd::Request;

/// How memory is to be had from the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// Pages of the usual size, which lie anywhere: for a host whose IOMMU puts them side by side.
    Usual,
    /// Huge pages of 1 GiB, each of which is in one piece.
    Huge,
}

/// An open device file.
pub trait Kernel {
    /// Bytes of this process: of a BAR, or of memory. Dropping it unmaps them.
    type Mapping: Mapped;

    /// `ioctl`: the argument is the request's structure with room for the answer.
    ///
    /// # Errors
    /// What the driver says.
    fn request(&mut self, request: Request, argument: &mut [u8]) -> io::Result<()>;
    /// `mmap` of the device file.
    ///
    /// # Errors
    /// What the driver says.
    fn map(&mut self, offset: u64, len: usize) -> io::Result<Self::Mapping>;
    /// Memory of this process, all zero, that is neither moved nor copied by a fork.
    ///
    /// # Errors
    /// What the system says.
    fn memory(&mut self, len: usize, pages: Pages) -> io::Result<Self::Mapping>;
}

/// Mapped bytes, which somebody else may change or look at.
///
/// An access of whole aligned words is one access for each of them; the other side sees accesses in
/// the order of the calls.
pub trait Mapped {
    /// Where they begin in this process.
    fn address(&self) -> u64;
    /// Reads `out.len()` bytes from `at` on; both within the mapping.
    fn read(&self, at: usize, out: &mut [u8]);
    /// Writes `data` from `at` on; both within the mapping.
    fn write(&self, at: usize, data: &[u8]);
    /// Has combined writes leave the processor.
    fn flush(&self);

    /// Reads the little-endian word at `at`.
    fn read32(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        self.read(at, &mut word);
        u32::from_le_bytes(word)
    }
}
