//! The card as a [`HostLink`].
//!
//! Windows are numbered by the host and taken from the driver when they are first aimed: a store to
//! a window's registers is `CONFIGURE_TLB` here. Nothing else of the BARs is reached. Time is the
//! counter's, so that budgets are cycles of the card, and a wait looks at its word until it changes
//! or the budget is used up.

use crate::counter::Counter;
use crate::kernel::Kernel;
use crate::memory::Region;
use crate::window::Slot;
use crate::{KmdCard, OpenError};
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::convert::{u32_of, usize_of};
use tilework_abi::tlb::{self, Bar, COUNT_2M, REG_BYTES, REGS, REGS_END, WindowSize};
use tilework_driver::{HostLink, LinkError};

/// Looks at a word of pinned memory between two looks at the counter: what such a look takes on a
/// card, about a microsecond (estimate), is then half of the time at most.
const LOOKS: u32 = 256;

impl From<OpenError> for LinkError {
    fn from(error: OpenError) -> Self {
        Self::Failed(error.to_string())
    }
}

fn nothing_there(bar: Bar, offset: u64) -> LinkError {
    LinkError::Failed(format!("{offset:#x} of {bar} is no place of a window that was aimed"))
}

impl<K: Kernel> KmdCard<K> {
    fn counter(&self) -> Result<&Counter<K::Mapping>, LinkError> {
        self.counter.as_ref().ok_or_else(|| LinkError::Failed("the card was released".into()))
    }

    /// The window at `offset` of `bar`, and where in it that is.
    fn slot(&self, bar: Bar, offset: u64, len: usize) -> Result<(&Slot<K::Mapping>, u64), LinkError> {
        let (index, at) = match bar {
            Bar::Bar0 => (offset / tlb::SIZE_2M, offset % tlb::SIZE_2M),
            Bar::Bar4 => (u64::from(COUNT_2M) + offset / tlb::SIZE_4G, offset % tlb::SIZE_4G),
            Bar::Bar2 => return Err(nothing_there(bar, offset)),
        };
        let slot = u32::try_from(index).ok().and_then(|index| self.slots.get(&index));
        let slot = slot.filter(|slot| slot.is_aimed() && at + len as u64 <= slot.bytes());
        slot.map(|slot| (slot, at)).ok_or_else(|| nothing_there(bar, offset))
    }

    /// A store to the registers of a window.
    fn aim(&mut self, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        let words: Vec<u32> = data.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        let (Ok(words), true) = (<[u32; 3]>::try_from(words), (offset - REGS).is_multiple_of(REG_BYTES)) else {
            return Err(nothing_there(Bar::Bar0, offset));
        };
        let index = u32_of(usize_of((offset - REGS) / REG_BYTES));
        let size = WindowSize::of_window(index);
        let slot = match self.slots.remove(&index) {
            Some(slot) => slot,
            None => Slot::take(&mut self.kernel, size)?,
        };
        self.slots.entry(index).or_insert(slot).aim(&mut self.kernel, tlb::Window::decode(words, size))?;
        Ok(())
    }

    fn region(&self, address: PcieAddr, len: usize) -> LinkError {
        LinkError::Failed(format!("{len} bytes at {address} are not pinned"))
    }
}

impl<K: Kernel> HostLink for KmdCard<K> {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        if bar == Bar::Bar0 && (REGS..REGS_END).contains(&offset) {
            return self.aim(offset, data);
        }
        let (slot, at) = self.slot(bar, offset, data.len())?;
        slot.write(at, data);
        Ok(())
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        let (slot, at) = self.slot(bar, offset, out.len())?;
        slot.read(at, out);
        // Ones may be data; the counter decides.
        if out.iter().all(|&byte| byte == 0xFF) {
            self.counter()?.read()?;
        }
        Ok(())
    }
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        if let Some(same) = self.regions.iter().find(|region| region.wish == wish && region.len == len) {
            same.clear();
            return Ok(same.first);
        }
        let region = Region::pin(&mut self.kernel, len, wish)?;
        let first = region.first;
        self.regions.push(region);
        Ok(first)
    }
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        let found = self.regions.iter().any(|region| region.read(address, out));
        if found { Ok(()) } else { Err(self.region(address, out.len())) }
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        let found = self.regions.iter().any(|region| region.write(address, data));
        if found { Ok(()) } else { Err(self.region(address, data.len())) }
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        let until = self.counter()?.read()?.saturating_add(budget);
        loop {
            for _ in 0..LOOKS {
                let mut word = [0; 4];
                self.pinned_read(address, &mut word)?;
                let value = u32::from_le_bytes(word);
                if value != seen {
                    return Ok(value);
                }
                std::hint::spin_loop();
            }
            if self.counter()?.read()? >= until {
                return Err(LinkError::Budget { cycles: budget });
            }
        }
    }
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        let until = self.counter()?.read()?.saturating_add(cycles);
        while self.counter()?.read()? < until {
            std::hint::spin_loop();
        }
        Ok(())
    }
    fn cycles(&self) -> Cycle {
        // What stopped the counter is told by the next wait.
        self.counter.as_ref().map_or(0, |counter| counter.read().unwrap_or_else(|_| counter.latest()))
    }
    fn measured(&self) -> Option<Cycle> {
        self.counter.as_ref().and_then(|counter| counter.read().ok())
    }
}
