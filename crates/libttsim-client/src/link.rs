//! The chip behind the libttsim interface as a [`HostLink`]: what real drivers do to a card, over
//! ten C functions.
//!
//! Pinned memory needs an outbound region of the PCIe tile's address translation, as on a card
//! ([`tilework_abi::pci::iatu`]; tt-umd programs one region for each of its channels the same way).
//! Time passes in `libttsim_clock` alone as far as the interface tells: how long the library lets
//! an access take is not visible, so [`HostLink::cycles`] counts the cycles that were given. The
//! interface shows nothing of the chip's inside, so there is no
//! [`Inspect`](tilework_driver::Inspect) and a deadlock cannot be told from a long run.

use crate::{Client, OpenError};
use std::ffi::OsStr;
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::convert::{high32, low32};
use tilework_abi::pci::iatu;
use tilework_abi::tlb::{self, Bar};
use tilework_driver::{HostLink, LinkError};

/// Cycles between two looks at a word of pinned memory: about the time in which a host notices a
/// change on a real card (estimate). A constant, so that a run is the same every time.
const POLL: Cycle = 500;
/// Polls after which [`HostLink::wait_word`] looks whether the chip still runs: a look takes time
/// of the chip, and a library may end a process that polls a stopped one for seconds.
const LOOK: u64 = 1 << 16;
/// Pinned regions start at multiples of this: a host's page.
const PAGE: usize = 4096;
/// What a bus answers for a device that is gone or stopped.
const GONE: u32 = u32::MAX;

/// A region of host memory that the device reaches.
#[derive(Clone, Copy, Debug)]
struct Region {
    /// First address.
    first: PcieAddr,
    /// Bytes.
    len: usize,
    /// Where it starts in the client's host memory.
    at: usize,
}

/// The chip of a library, ready for [`tilework_driver::Card`].
///
/// The interface is a process-wide singleton: a second link is refused while there is one.
pub struct LibraryChip {
    client: Client,
    regions: Vec<Region>,
    /// Cycles that were given to the chip.
    given: Cycle,
}

impl std::fmt::Debug for LibraryChip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LibraryChip").field("given", &self.given).finish_non_exhaustive()
    }
}

impl LibraryChip {
    /// Loads `library` and powers its chip on.
    ///
    /// # Errors
    /// A file that is not such a library, or a chip that is not a Blackhole.
    pub fn open(library: &OsStr) -> Result<Self, OpenError> {
        Ok(Self { client: Client::open(library, 0)?, regions: Vec::new(), given: 0 })
    }

    /// Where `len` bytes of pinned memory at `address` lie in the client's host memory.
    fn pinned(&self, address: PcieAddr, len: usize) -> Result<usize, LinkError> {
        let inside = |region: &Region| {
            let offset = usize::try_from(address.offset_from(region.first)?).ok()?;
            (offset.checked_add(len)? <= region.len).then_some(region.at + offset)
        };
        self.regions
            .iter()
            .find_map(inside)
            .ok_or_else(|| LinkError::Failed(format!("{len} bytes at {address} are not pinned")))
    }

    /// Opens outbound region `index` of the address translation: `region.first` leads to the host's
    /// bus address `region.at`. The order is that of tt-umd: off, addresses, on.
    fn open_outbound(&self, index: usize, region: &Region) {
        let (first, target) = (region.first.get(), region.at as u64);
        let last = first + region.len as u64 - 1;
        let words = [
            (iatu::CONTROL_2, 0),
            (iatu::CONTROL_1, if high32(first) == high32(last) { 0 } else { iatu::INCREASE_REGION_SIZE }),
            (iatu::BASE_LOW, low32(first)),
            (iatu::BASE_HIGH, high32(first)),
            (iatu::LIMIT_LOW, low32(last)),
            (iatu::LIMIT_HIGH, high32(last)),
            (iatu::TARGET_LOW, low32(target)),
            (iatu::TARGET_HIGH, high32(target)),
            (iatu::CONTROL_2, iatu::REGION_ENABLE),
        ];
        let base = iatu::BASE + iatu::STRIDE * index as u64;
        for (at, word) in words {
            self.client.bar_write(Bar::Bar2, base + at, &word.to_le_bytes());
        }
    }

    /// Whether the chip still answers: the registers of window 0 never read as ones.
    fn check_alive(&self) -> Result<(), LinkError> {
        let mut word = [0; 4];
        self.client.bar_read(Bar::Bar0, tlb::REGS, &mut word);
        match u32::from_le_bytes(word) {
            GONE => Err(LinkError::Failed(
                "the chip behind the library has stopped: reads answer with ones. What stopped it, the library \
                 tells on standard error, if at all"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    /// Lets `cycles` pass.
    fn clock(&mut self, cycles: Cycle) {
        let mut left = cycles;
        while left > 0 {
            let now = u32::try_from(left).unwrap_or(u32::MAX);
            self.client.clock(now);
            left -= u64::from(now);
        }
        self.given += cycles;
    }
}

impl HostLink for LibraryChip {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        // Registers take one word at a time, as on a card's bus; windows take any run of bytes.
        if bar == Bar::Bar2 || bar == Bar::Bar0 && offset >= tlb::REGS {
            for (word, at) in data.chunks(4).zip((offset..).step_by(4)) {
                self.client.bar_write(bar, at, word);
            }
        } else {
            self.client.bar_write(bar, offset, data);
        }
        Ok(())
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        self.client.bar_read(bar, offset, out);
        // Ones may be data; a register that is never ones decides.
        if out.iter().all(|&byte| byte == 0xFF) { self.check_alive() } else { Ok(()) }
    }
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        if let Some(same) = self.regions.iter().find(|region| region.first == wish && region.len == len) {
            Client::host_clear(same.at, len);
            return Ok(wish);
        }
        let index = self.regions.len();
        let end = wish.checked_add(len as u64);
        let overlaps = |region: &Region| {
            let last = region.first.checked_add(region.len as u64);
            end.is_none_or(|end| last.is_none_or(|last| wish < last) && region.first < end)
        };
        if len == 0 || end.is_none() || index >= iatu::REGIONS || self.regions.iter().any(overlaps) {
            let what = format!("{len} bytes cannot be pinned at {wish}, with {index} regions pinned already");
            return Err(LinkError::Failed(what));
        }
        let region = Region { first: wish, len, at: Client::host_grow(len.next_multiple_of(PAGE)) };
        self.open_outbound(index, &region);
        self.regions.push(region);
        Ok(wish)
    }
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        Client::host_read(self.pinned(address, out.len())?, out);
        Ok(())
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        Client::host_write(self.pinned(address, data.len())?, data);
        Ok(())
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        let at = self.pinned(address, 4)?;
        let mut left = budget;
        for poll in 1_u64.. {
            let mut word = [0; 4];
            Client::host_read(at, &mut word);
            let value = u32::from_le_bytes(word);
            if value != seen {
                return Ok(value);
            }
            if left == 0 {
                self.check_alive()?;
                return Err(LinkError::Budget { cycles: budget });
            }
            let step = left.min(POLL);
            self.clock(step);
            left -= step;
            if poll.is_multiple_of(LOOK) {
                self.check_alive()?;
            }
        }
        Err(LinkError::Budget { cycles: budget })
    }
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        self.clock(cycles);
        Ok(())
    }
    fn cycles(&self) -> Cycle {
        self.given
    }
}
