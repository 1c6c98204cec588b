//! Addresses on the host's bus: what an IOMMU gives to pinned memory.

use crate::PAGE;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The first address that is given out. Anything but small: a device that takes an offset for an
/// address finds nothing there.
const FIRST: u64 = 0x10_0000_0000;
/// Addresses end here (tt-kmd `blackhole.c`, `dma_address_bits`).
const END: u64 = 1 << 58;
/// Each range begins at a multiple of it, so that an access past the end of one is noticed.
const ALIGN: u64 = 2 << 20;

/// Memory of the process that the device reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Where it begins in the process.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// Whether the device may only read it.
    pub read_only: bool,
}

/// Which memory of the process lies at which bus addresses. Shared: the chip looks at it while the
/// driver waits for the chip.
#[derive(Clone, Default, Debug)]
pub struct BusMap(Arc<Mutex<BTreeMap<u64, Place>>>);

impl BusMap {
    fn ranges(&self) -> MutexGuard<'_, BTreeMap<u64, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives bus addresses to `place`: the lowest that are free, or `None` where no room is left.
    pub(crate) fn add(&self, place: Place) -> Option<u64> {
        let mut ranges = self.ranges();
        let mut at = FIRST;
        for (&base, other) in ranges.iter() {
            if at.checked_add(place.size)? < base {
                break;
            }
            at = (base + other.size + PAGE).next_multiple_of(ALIGN);
        }
        at.checked_add(place.size).filter(|&end| end <= END)?;
        ranges.insert(at, place);
        Some(at)
    }

    /// Takes the addresses from `base` on back.
    pub(crate) fn remove(&self, base: u64) {
        self.ranges().remove(&base);
    }

    /// Where in the process `len` bytes at bus address `addr` lie; `None` unless all of them lie in
    /// one range, which the device may write if `writes`.
    pub fn find(&self, addr: u64, len: usize, writes: bool) -> Option<u64> {
        let ranges = self.ranges();
        let (&base, place) = ranges.range(..=addr).next_back()?;
        let at = addr - base;
        let end = at.checked_add(u64::try_from(len).ok()?)?;
        (end <= place.size && !(writes && place.read_only)).then_some(place.address + at)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.ranges().clear();
    }
}
