//! Which counters of the NIUs each core of a tile has loaded since a request was started there: who
//! looks at them only to learn what has been answered needs to see no load but the first.

use tilework_abi::noc::{COUNTERS, COUNTERS_END, NIU_SPAN, NIU0_BASE, counter};
use tilework_abi::tensix::Processor;

/// The first of the counters that are a transaction id's.
const OUTSTANDING_ID: u32 = counter::MST_REQS_OUTSTANDING_ID as u32;

/// Behind the registers of the NIUs.
pub(super) const NIU_END: u32 = NIU0_BASE + 2 * NIU_SPAN;

/// Whether a register is a counter of an NIU.
#[inline(always)]
pub(super) fn is_counter(addr: u32) -> bool {
    (NIU0_BASE..NIU_END).contains(&addr) && (COUNTERS..COUNTERS_END).contains(&((addr - NIU0_BASE) % NIU_SPAN))
}

/// The counters that were loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Only first loads need be seen.
    once: bool,
    /// By core and NIU the counters of transaction ids, a bit each, and bit 0 for all others.
    seen: [[u64; 2]; 5],
}

impl Counters {
    /// From now on only the first load of a counter need be seen, or all.
    pub(super) fn see_once(&mut self, once: bool) {
        *self = Self { once, ..Self::default() };
    }

    /// All first loads are seen again.
    pub(super) fn forget(&mut self) {
        self.seen = Default::default();
    }

    /// A request is started at this NIU.
    pub(super) fn started(&mut self, noc: usize) {
        self.seen.iter_mut().for_each(|of_core| of_core[noc] = 0);
    }

    /// The place and the bit of a counter.
    #[inline]
    fn of(addr: u32) -> (usize, u64) {
        let (noc, counter) = ((addr - NIU0_BASE) / NIU_SPAN, ((addr - NIU0_BASE) % NIU_SPAN - COUNTERS) / 4);
        let is_of_id = (OUTSTANDING_ID..OUTSTANDING_ID + 16).contains(&counter);
        // There are no more than 64 (`COUNTERS_END`), and the first is of no id.
        (noc as usize & 1, 1 << if is_of_id { counter & 63 } else { 0 })
    }

    /// Whether a load of this counter need not be seen.
    #[inline]
    pub(super) fn has_seen(&self, core: Processor, addr: u32) -> bool {
        let (noc, bit) = Self::of(addr);
        self.once && self.seen[core.index()][noc] & bit != 0
    }

    /// The same, of a load that is seen if it need be.
    pub(super) fn skips(&mut self, core: Processor, addr: u32) -> bool {
        let skips = self.has_seen(core, addr);
        let (noc, bit) = Self::of(addr);
        self.seen[core.index()][noc] |= bit;
        skips
    }
}
