//! Addresses that must not be mixed, each with a type of its own.

use crate::noc::PCIE_HOST_BIT;
use core::fmt;

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
    fn bit_60_belongs_to_the_noc_address() {
        let address = PcieAddr::new(0x1000_0000_4000_0000);
        assert_eq!((address.get(), address.noc_address()), (0x4000_0000, 0x1000_0000_4000_0000));
        assert_eq!(address.checked_add(8).and_then(|end| end.offset_from(address)), Some(8));
        assert_eq!(address.offset_from(PcieAddr::new(0x4000_0001)), None);
        assert_eq!(address.checked_add(u64::MAX), None);
        assert_eq!(address.checked_add(PCIE_HOST_BIT - 1), None);
    }
}
