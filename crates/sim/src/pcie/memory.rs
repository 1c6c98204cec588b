//! Host memory that the device can reach.
//!
//! A driver pins pages and gets a NoC address for them; that address has bit 60 set (tt-kmd
//! `ioctl.h`). Here an address is always the part below bit 58 (`outbound.rs`), after the
//! controller's address translation. Accesses outside the pinned regions are faults: on a real
//! host, an IOMMU would stop them at best. A host that is another program with memory of its own
//! provides a [`HostBus`], which then serves all addresses outside the pinned regions.

use super::outbound::ADDRESS_BITS;
use crate::{Fault, FaultClass};

const READ: &str = "tenstorrent/tt-kmd, ioctl.h";

/// The memory of an external host, as the device reaches it by DMA.
pub trait HostBus: Send {
    /// Reads `out.len()` bytes at bus address `addr`.
    fn read(&self, addr: u64, out: &mut [u8]);
    /// Writes `data` at bus address `addr`.
    fn write(&self, addr: u64, data: &[u8]);
}

/// The host's memory as the device sees it.
///
/// A copy has the regions and no bus.
#[derive(Default)]
pub(crate) struct HostMemory {
    /// Sorted by base; they do not overlap.
    regions: Vec<Region>,
    bus: Option<Box<dyn HostBus>>,
}

struct Region {
    base: u64,
    bytes: Vec<u8>,
}

impl Clone for Region {
    fn clone(&self) -> Self {
        Self { base: self.base, bytes: crate::sparse::copy_of(&self.bytes) }
    }
}

impl Clone for HostMemory {
    fn clone(&self) -> Self {
        Self { regions: self.regions.clone(), bus: None }
    }
}

impl Region {
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }
}

impl std::fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.regions.iter().map(|r| r.base..r.end())).finish()
    }
}

impl HostMemory {
    /// Pins `len` bytes, all zero, at `base`. Memory is committed as it is touched. A region that
    /// is pinned already is emptied: its host starts anew.
    ///
    /// # Errors
    /// An empty region, one that reaches bit 58, or one that overlaps another; too little memory.
    pub(crate) fn pin(&mut self, base: u64, len: usize) -> Result<(), Fault> {
        let refuse = |why: &str| {
            let what = format!("{len} bytes of host memory cannot be pinned: {why}");
            Err(Fault::new(FaultClass::UnsupportedFunctionality, what, READ).at_addr(base))
        };
        let Some(end) = base.checked_add(len as u64).filter(|&end| end <= 1 << ADDRESS_BITS) else {
            return refuse("the region reaches bit 58 of the address");
        };
        if len == 0 {
            return refuse("the region is empty");
        }
        // Asked first: memory that is zero without being touched can only be had or not be had.
        if Vec::<u8>::new().try_reserve_exact(len).is_err() {
            return refuse("there is not enough memory of the host for them");
        }
        if let Some(same) = self.regions.iter_mut().find(|r| r.base == base && r.bytes.len() == len) {
            same.bytes = vec![0; len];
            return Ok(());
        }
        if self.regions.iter().any(|r| base < r.end() && r.base < end) {
            return refuse("the region overlaps another");
        }
        let at = self.regions.partition_point(|r| r.base < base);
        self.regions.insert(at, Region { base, bytes: vec![0; len] });
        Ok(())
    }

    /// Routes all addresses that are not pinned to `bus`.
    pub(crate) fn attach(&mut self, bus: Box<dyn HostBus>) {
        self.bus = Some(bus);
    }

    /// Whether a part of it belongs to another program.
    pub(crate) fn has_bus(&self) -> bool {
        self.bus.is_some()
    }

    /// The pinned regions: base and length.
    #[cfg(test)]
    pub(crate) fn regions(&self) -> impl Iterator<Item = (u64, usize)> {
        self.regions.iter().map(|r| (r.base, r.bytes.len()))
    }

    /// Index of the region that holds the access, and the offset in it.
    fn find(&self, addr: u64, len: usize) -> Result<(usize, usize), Fault> {
        let after = self.regions.partition_point(|r| r.base <= addr);
        if let Some(i) = after.checked_sub(1) {
            let region = &self.regions[i];
            let at = addr - region.base;
            if at.checked_add(len as u64).is_some_and(|end| end <= region.bytes.len() as u64) {
                return Ok((i, at as usize));
            }
        }
        Err(Fault::new(FaultClass::UndefinedBehavior, format!("{len} bytes of host memory that are not pinned"), READ)
            .at_addr(addr))
    }

    /// Checks that `len` bytes at `addr` lie in one pinned region or belong to the bus.
    ///
    /// # Errors
    /// They do neither.
    pub(crate) fn check(&self, addr: u64, len: usize) -> Result<(), Fault> {
        if self.bus.is_some() { Ok(()) } else { self.find(addr, len).map(|_| ()) }
    }

    /// Reads `out.len()` bytes at `addr`.
    ///
    /// # Errors
    /// The bytes are not pinned.
    pub(crate) fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        match (self.find(addr, out.len()), &self.bus) {
            (Ok((i, at)), _) => out.copy_from_slice(&self.regions[i].bytes[at..at + out.len()]),
            (Err(_), Some(bus)) => bus.read(addr, out),
            (Err(fault), None) => return Err(fault),
        }
        Ok(())
    }

    /// Writes `data` at `addr`.
    ///
    /// # Errors
    /// The bytes are not pinned; nothing is written.
    pub(crate) fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        match (self.find(addr, data.len()), &self.bus) {
            (Ok((i, at)), _) => self.regions[i].bytes[at..at + data.len()].copy_from_slice(data),
            (Err(_), Some(bus)) => bus.write(addr, data),
            (Err(fault), None) => return Err(fault),
        }
        Ok(())
    }

    /// Writes those of the first 64 bytes of `data` whose mask bit is set; all of it without a
    /// mask.
    ///
    /// # Errors
    /// The bytes are not pinned; nothing is written.
    pub(crate) fn write_masked(&mut self, addr: u64, data: &[u8], mask: Option<u64>) -> Result<(), Fault> {
        let Some(mask) = mask else { return self.write(addr, data) };
        self.check(addr, data.len())?;
        for (bit, byte) in data.iter().enumerate().take(64) {
            if mask >> bit & 1 != 0 {
                self.write(addr + bit as u64, &[*byte])?;
            }
        }
        Ok(())
    }
}
