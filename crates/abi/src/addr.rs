//! Addresses and counts that must not be mixed, each with a type of its own, and the type of time.
//!
//! Memory maps and regions hold these types. Register rows, single words of a region and the
//! layouts of messages hold plain words: they are what goes over the wire, and what the firmware,
//! which computes with words, loads and stores.

use crate::convert::addr32_of;
use crate::noc::PCIE_HOST_BIT;
use core::fmt;

/// A point in time or a length of time, in AI clock cycles; points count from the chip's reset.
///
/// The one definition for interpreter, simulator, driver and runtime. It is an alias and no type of
/// its own, because the simulator's time is arithmetic everywhere (latencies added, periods
/// divided, the latest of several): a type with all of these operators would keep nothing apart.
pub type Cycle = u64;

/// An address in the L1 of a Tensix tile, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct L1Addr(u32);

impl L1Addr {
    /// The address `value`.
    pub const fn new(value: u32) -> Self {
        Self(value)
    }
    /// The address as a number: what a command, a message or an argument of a kernel holds.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// The address `bytes` further on, inside L1 by the caller's bounds.
    #[must_use]
    #[track_caller]
    pub const fn offset(self, bytes: u32) -> Self {
        match self.checked_add(bytes) {
            Some(address) => address,
            None => panic!("the address leaves the 32-bit space"),
        }
    }
    /// The address `bytes` further on; `None` beyond the 32-bit space.
    pub const fn checked_add(self, bytes: u32) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }
    /// Bytes from `start` to this address; `None` before it.
    pub const fn offset_from(self, start: Self) -> Option<u32> {
        self.0.checked_sub(start.0)
    }
}

impl From<L1Addr> for u64 {
    fn from(address: L1Addr) -> Self {
        address.0.into()
    }
}

impl fmt::Display for L1Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// An address in a bank of DRAM, in bytes. A bank holds 4 GiB, so that the address of a byte has 32
/// bits and the end of the bank 33.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct DramAddr(u64);

impl DramAddr {
    /// The address `value`.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }
    /// The address as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The address of a byte as an argument of a kernel, which has 32 bits.
    ///
    /// # Panics
    /// At the end of a bank and beyond.
    #[track_caller]
    pub const fn word(self) -> u32 {
        addr32_of(self.0)
    }
    /// The address `bytes` further on, in the bank by the caller's bounds.
    #[must_use]
    #[track_caller]
    pub const fn offset(self, bytes: u64) -> Self {
        match self.checked_add(bytes) {
            Some(address) => address,
            None => panic!("the address leaves the 64-bit space"),
        }
    }
    /// The address `bytes` further on; `None` beyond the 64-bit space.
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }
}

impl From<DramAddr> for u64 {
    fn from(address: DramAddr) -> Self {
        address.0
    }
}

impl fmt::Display for DramAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A number of pages: of a buffer, a circular buffer, a ring or a transfer. How many bytes a page
/// has is the holder's matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct PageCount(u32);

impl PageCount {
    /// `count` pages.
    pub const fn new(count: u32) -> Self {
        Self(count)
    }
    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// Bytes of these pages at `page_size` bytes each.
    pub const fn bytes(self, page_size: u32) -> u64 {
        // The product of two numbers of 32 bits has at most 64.
        self.0 as u64 * page_size as u64
    }
}

impl fmt::Display for PageCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An address of host memory as the device sees it through the PCIe tile, without bit 60
/// ([`PCIE_HOST_BIT`]), which says that it is one. Not a bus address: address translation in the
/// PCIe tile or an IOMMU lies between the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PcieAddr(u64);

impl PcieAddr {
    /// The address `value`; bit 60 is dropped.
    pub const fn new(value: u64) -> Self {
        Self(value & !PCIE_HOST_BIT)
    }
    /// The address without bit 60.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// What firmware is given: the NoC address in the PCIe tile's space.
    pub const fn noc_address(self) -> u64 {
        self.0 | PCIE_HOST_BIT
    }
    /// The address `bytes` further on; `None` beyond the address space.
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(address) if address & PCIE_HOST_BIT == 0 => Some(Self(address)),
            _ => None,
        }
    }
    /// Bytes from `start` to this address; `None` before it.
    pub const fn offset_from(self, start: Self) -> Option<u64> {
        self.0.checked_sub(start.0)
    }
}

impl fmt::Display for PcieAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_move_inside_their_space() {
        let l1 = L1Addr::new(0x3_7000);
        assert_eq!(l1.offset(64).offset_from(l1), Some(64));
        assert_eq!(l1.offset_from(l1.offset(1)), None);
        assert_eq!(l1.checked_add(u32::MAX), None);
        let last = DramAddr::new(0xFFFF_FFC0);
        assert_eq!((last.word(), last.offset(64).get()), (0xFFFF_FFC0, 0x1_0000_0000));
        assert_eq!(last.checked_add(u64::MAX), None);
        assert_eq!(PageCount::new(u32::MAX).bytes(u32::MAX), 0xFFFF_FFFE_0000_0001);
    }

    #[test]
    #[should_panic(expected = "more than 32 bits")]
    fn the_end_of_a_bank_is_no_argument() {
        DramAddr::new(0x1_0000_0000).word();
    }

    #[test]
    fn bit_60_belongs_to_the_noc_address() {
        let address = PcieAddr::new(0x1000_0000_4000_0000);
        assert_eq!((address.get(), address.noc_address()), (0x4000_0000, 0x1000_0000_4000_0000));
        assert_eq!(address.checked_add(8).and_then(|end| end.offset_from(address)), Some(8));
        assert_eq!(address.offset_from(PcieAddr::new(0x4000_0001)), None);
        assert_eq!(address.checked_add(u64::MAX), None);
        assert_eq!(address.checked_add(PCIE_HOST_BIT - 1), None);
    }
}
