//! Code that was written after cores had fetched it: their instruction caches may have it as it
//! was.
//!
//! The simulated cores always execute what is in memory (docs/timing.md). That a core of the chip
//! may not is told to observers. A cache is emptied by `fence.i`, by `RISCV_IC_INVALIDATE` and by
//! a reset of its core.

use std::collections::VecDeque;
use std::ops::Range;
use tilework_abi::tensix::Processor;

/// Spans that are kept; older ones are forgotten.
const MOST: usize = 64;

/// A bit for each core.
const ALL: u8 = (1 << Processor::ALL.len()) - 1;

/// Cores in the order of the bits of `RISCV_IC_INVALIDATE_InvalidateAll` (public `cfg_defines.h`).
const CACHES: [Processor; 5] =
    [Processor::Brisc, Processor::Trisc0, Processor::Trisc1, Processor::Trisc2, Processor::Ncrisc];

/// The spans of a tile that have changed.
#[derive(Clone, Debug, Default)]
pub(super) struct StaleCode(VecDeque<(Range<u32>, u8)>);

impl StaleCode {
    /// Code was written.
    pub(super) fn changed(&mut self, addr: u32, len: u32) {
        let end = addr + len;
        match self.0.back_mut() {
            Some((last, ALL)) if last.start <= addr && addr <= last.end => last.end = last.end.max(end),
            _ => self.0.push_back((addr..end, ALL)),
        }
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// The instruction cache of a core is empty.
    pub(super) fn emptied(&mut self, core: Processor) {
        if !self.0.is_empty() {
            self.empty(1 << core.index());
        }
    }

    /// The instruction caches of these cores are emptied through the register.
    pub(super) fn invalidated(&mut self, mask: u32) {
        let bits = CACHES.into_iter().enumerate().filter(|(bit, _)| mask >> bit & 1 != 0);
        self.empty(bits.fold(0, |all, (_, core)| all | 1 << core.index()));
    }

    fn empty(&mut self, cores: u8) {
        self.0.iter_mut().for_each(|(_, stale)| *stale &= !cores);
        self.0.retain(|(_, stale)| *stale != 0);
    }

    /// Whether a core that executes at `pc` may execute what was there before.
    #[inline]
    pub(super) fn at(&self, core: Processor, pc: u32) -> bool {
        self.0.iter().any(|(span, stale)| stale >> core.index() & 1 != 0 && span.contains(&pc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_has_a_cache_of_its_own() {
        let (one, other) = (Processor::Brisc, Processor::Ncrisc);
        let mut stale = StaleCode::default();
        stale.changed(0x100, 8);
        stale.changed(0x108, 8);
        assert!(stale.at(one, 0x10C) && stale.at(other, 0x100) && !stale.at(one, 0x110));
        stale.emptied(one);
        assert!(!stale.at(one, 0x100) && stale.at(other, 0x100));
        stale.changed(0x100, 4);
        assert!(stale.at(one, 0x100), "changed again");
        stale.invalidated(1 << 4);
        assert!(stale.at(one, 0x100) && !stale.at(other, 0x100), "bit 4 is NCRISC's");
        stale.invalidated(0x1F);
        assert!(stale.0.is_empty());
        for i in 0..200 {
            stale.changed(0x100 * i, 4);
        }
        assert_eq!(stale.0.len(), MOST);
    }
}
