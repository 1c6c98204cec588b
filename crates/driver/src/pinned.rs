//! A pinned region of host memory.

use crate::{DriverError, HostLink};
use tilework_abi::addr::{Cycle, PcieAddr};

/// A region of host memory that the device reaches through the PCIe tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pinned {
    base: PcieAddr,
    len: usize,
}

impl Pinned {
    pub(crate) fn new(base: PcieAddr, len: usize) -> Self {
        Self { base, len }
    }
    /// The NoC address of the region's first byte, with bit 60 set: what firmware is given.
    pub fn noc_address(&self) -> u64 {
        self.base.noc_address()
    }
    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// True when the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn at(&self, offset: u64, len: usize) -> Result<PcieAddr, DriverError> {
        let inside = offset.checked_add(len as u64).is_some_and(|end| end <= self.len as u64);
        let address = self.base.checked_add(offset).filter(|_| inside);
        address.ok_or(DriverError::Pinned { offset, len, size: self.len })
    }
    /// Reads `out.len()` bytes at `offset`.
    ///
    /// # Errors
    /// The access leaves the region, or the link failed.
    pub fn read(&self, link: &mut impl HostLink, offset: u64, out: &mut [u8]) -> Result<(), DriverError> {
        Ok(link.pinned_read(self.at(offset, out.len())?, out)?)
    }
    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// As [`Pinned::read`].
    pub fn write(&self, link: &mut impl HostLink, offset: u64, data: &[u8]) -> Result<(), DriverError> {
        Ok(link.pinned_write(self.at(offset, data.len())?, data)?)
    }
    /// Reads the little-endian word at `offset`.
    ///
    /// # Errors
    /// As [`Pinned::read`].
    pub fn read32(&self, link: &mut impl HostLink, offset: u64) -> Result<u32, DriverError> {
        let mut word = [0; 4];
        self.read(link, offset, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }
    /// Writes the little-endian word at `offset`.
    ///
    /// # Errors
    /// As [`Pinned::read`].
    pub fn write32(&self, link: &mut impl HostLink, offset: u64, value: u32) -> Result<(), DriverError> {
        self.write(link, offset, &value.to_le_bytes())
    }
    /// The address of the word at `offset`, for [`HostLink::wait_words`].
    ///
    /// # Errors
    /// The word is not in the region.
    pub fn word(&self, offset: u64) -> Result<PcieAddr, DriverError> {
        self.at(offset, 4)
    }
    /// Waits until the word at `offset` is no longer `seen`, for at most `budget` cycles, and
    /// returns it.
    ///
    /// # Errors
    /// As [`Pinned::read`]; also when nothing can change the word any more or the budget is used
    /// up.
    pub fn wait_change(
        &self,
        link: &mut impl HostLink,
        offset: u64,
        seen: u32,
        budget: Cycle,
    ) -> Result<u32, DriverError> {
        Ok(link.wait_word(self.at(offset, 4)?, seen, budget)?)
    }
}
