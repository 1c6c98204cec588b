//! The few things that a host can do to a card.

use crate::LinkError;
use tilework_abi::tlb::Bar;
use tilework_sim::Chip;

/// A card as its host sees it: memory windows, pinned memory and time.
///
/// Addresses of pinned memory are NoC addresses without bit 60 ([`tilework_abi::noc::PCIE_HOST_BIT`]).
pub trait HostLink {
    /// Stores `data` at `offset` of `bar`. Posted: it takes effect later, in order.
    ///
    /// # Errors
    /// The link or the chip failed.
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError>;
    /// Loads `out.len()` bytes from `offset` of `bar`.
    ///
    /// # Errors
    /// The link or the chip failed.
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError>;
    /// Pins `len` bytes of host memory, all zero, and returns the NoC address at which the device finds them: `wish` where the link can choose.
    ///
    /// # Errors
    /// The link failed, or the memory cannot be had.
    fn pin(&mut self, len: usize, wish: u64) -> Result<u64, LinkError>;
    /// Reads pinned memory.
    ///
    /// # Errors
    /// The bytes are not pinned.
    fn pinned_read(&mut self, address: u64, out: &mut [u8]) -> Result<(), LinkError>;
    /// Writes pinned memory.
    ///
    /// # Errors
    /// The bytes are not pinned.
    fn pinned_write(&mut self, address: u64, data: &[u8]) -> Result<(), LinkError>;
    /// Waits until the pinned word at `address` is no longer `seen`, for at most `budget` cycles, and returns it.
    ///
    /// # Errors
    /// The chip failed, nothing can change the word any more, or the budget is used up.
    fn wait_word(&mut self, address: u64, seen: u32, budget: u64) -> Result<u32, LinkError>;
    /// Lets `cycles` pass, for instance between two looks at a word of the device.
    ///
    /// # Errors
    /// The chip failed.
    fn idle(&mut self, cycles: u64) -> Result<(), LinkError>;
    /// Time since power-on, in AI clock cycles.
    fn cycles(&self) -> u64;
}

impl HostLink for Chip {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        Ok(Chip::bar_write(self, bar, offset, data)?)
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        Ok(Chip::bar_read(self, bar, offset, out)?)
    }
    fn pin(&mut self, len: usize, wish: u64) -> Result<u64, LinkError> {
        Chip::pin(self, wish, len)?;
        Ok(wish)
    }
    fn pinned_read(&mut self, address: u64, out: &mut [u8]) -> Result<(), LinkError> {
        Ok(Chip::pinned_read(self, address, out)?)
    }
    fn pinned_write(&mut self, address: u64, data: &[u8]) -> Result<(), LinkError> {
        Ok(Chip::pinned_write(self, address, data)?)
    }
    fn wait_word(&mut self, address: u64, seen: u32, budget: u64) -> Result<u32, LinkError> {
        Ok(Chip::wait_word(self, address, seen, budget)?)
    }
    fn idle(&mut self, cycles: u64) -> Result<(), LinkError> {
        Ok(Chip::run(self, cycles)?)
    }
    fn cycles(&self) -> u64 {
        Chip::now(self)
    }
}
