//! The port of a core: its local data RAM, its L0 data cache and its store queue.
//!
//! Follows BabyRISCV/README.md ("L0 Data Cache", "Local Data RAM", "Load/Store Unit") and
//! BabyRISCV/MemoryOrdering.md. The cache is not coherent: it holds copies, and a NoC write to L1
//! does not touch them. Software can depend on that, so it is modelled.

use super::fabric::{get, put};
use crate::timing;
use tilework_riscv::{CsrFile, Cycle, Width};

/// Bytes of a cache line (BabyRISCV/README.md: 4 lines of 16 bytes).
const LINE: u32 = 16;
const LINES: usize = 4;
/// Tag of an empty line: no L1 address has it.
const EMPTY: u32 = u32::MAX;
/// A hit flushes the whole cache about once in this many hits (BabyRISCV/MemoryOrdering.md: about
/// 0.8 %). The hardware's choice is not documented; here it is every 128th hit.
const HITS_PER_FLUSH: u32 = 128;

/// The L0 data cache. Line `i` holds addresses with bits 5..4 equal to `i` (the replacement rule is
/// not documented).
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct L0 {
    tags: [u32; LINES],
    hits: u32,
    enabled: bool,
    flush_by_itself: bool,
    data: [[u8; LINE as usize]; LINES],
    filled: [Cycle; LINES],
    /// When an instruction last emptied it.
    flushed: Cycle,
}

impl L0 {
    fn new() -> Self {
        Self {
            tags: [EMPTY; LINES],
            data: [[0; LINE as usize]; LINES],
            filled: [0; LINES],
            flushed: 0,
            hits: 0,
            enabled: true,
            flush_by_itself: true,
        }
    }
    /// Takes over the cache's bits of `cfg0`.
    pub(super) fn configure(&mut self, csr: &CsrFile) {
        self.enabled = !csr.cfg0_dis_low_cache();
        self.flush_by_itself = !csr.cfg0_dis_low_cache_periodic_flush();
    }
    /// The cycle since which the line around `addr` is held.
    pub(super) fn held_since(&self, addr: u32) -> Option<Cycle> {
        let line = (addr / LINE) as usize % LINES;
        (self.tags[line] == addr / LINE).then_some(self.filled[line])
    }
    /// The cached copy of the aligned word around `addr`, and whether it stays by itself.
    #[inline(always)]
    pub(super) fn hit(&mut self, addr: u32) -> Option<(u32, bool)> {
        let line = (addr / LINE) as usize % LINES;
        if self.tags[line] != addr / LINE {
            return None;
        }
        let at = (addr & (LINE - 1) & !3) as usize;
        let word = u32::from_le_bytes(self.data[line][at..at + 4].try_into().expect("4 bytes"));
        if self.flush_by_itself {
            self.hits += 1;
            if self.hits == HITS_PER_FLUSH {
                self.hits = 0;
                self.tags = [EMPTY; LINES];
            }
        }
        Some((word, !self.flush_by_itself))
    }
    /// Fills the line around `addr`.
    #[inline(always)]
    pub(super) fn fill(&mut self, at: Cycle, addr: u32, l1: &[u8]) {
        if !self.enabled {
            return;
        }
        let line = (addr / LINE) as usize % LINES;
        let start = (addr & !(LINE - 1)) as usize;
        self.tags[line] = addr / LINE;
        self.filled[line] = at;
        self.data[line].copy_from_slice(&l1[start..start + LINE as usize]);
    }
    /// Drops the line around `addr`, as a store of this core does.
    #[inline(always)]
    pub(super) fn drop_line(&mut self, addr: u32) {
        let line = (addr / LINE) as usize % LINES;
        if self.tags[line] == addr / LINE {
            self.tags[line] = EMPTY;
        }
    }
    /// Empties the cache, as an instruction of cycle `at` does.
    #[inline]
    pub(super) fn flush(&mut self, at: Cycle) {
        self.tags = [EMPTY; LINES];
        self.flushed = at;
    }
    /// Whether no line that is held now can be hit again in a loop whose iterations are as the last
    /// one, which began at cycle `start` and loaded for the first time at `first_load`.
    pub(super) fn is_fresh(&self, start: Cycle, first_load: Cycle) -> bool {
        self.tags == [EMPTY; LINES] || (start..=first_load).contains(&self.flushed)
    }
    pub(super) fn tags(&self) -> [u32; 4] {
        self.tags
    }
}

/// The timing of the store queue: one store to L1 leaves per five cycles, unless stores coalesce.
///
/// The data itself is written at once: nothing in the simulated tile can see a store late. (A real
/// core may reorder accesses, see MemoryOrdering.md; this model keeps program order.)
#[derive(Clone, Debug, Default)]
pub(super) struct StoreQueue {
    drained: Cycle,
    /// The last store's address. Initially 0, without effect, as nothing is draining then.
    last: u32,
}

impl StoreQueue {
    /// Enters a store to L1; returns the cycles for which the core is held because the queue is
    /// full.
    #[inline(always)]
    pub(super) fn push(&mut self, at: Cycle, addr: u32) -> u32 {
        let last = std::mem::replace(&mut self.last, addr);
        if self.drained > at && last / LINE == addr / LINE && addr.abs_diff(last) <= 4 {
            return 0;
        }
        self.drained = self.drained.max(at) + timing::STORE_L1_INTERVAL;
        // At most one interval more than there is room for: the core is held until it fits.
        let room = timing::STORE_QUEUE * timing::STORE_L1_INTERVAL;
        (self.drained - at).saturating_sub(room) as u32
    }
    /// Delays what was in flight at cycle `at` by `skipped` cycles.
    pub(super) fn skip(&mut self, at: Cycle, skipped: Cycle) {
        if self.drained > at {
            self.drained += skipped;
        }
    }
    /// Cycles until the queue is empty.
    #[inline]
    pub(super) fn drain(&self, at: Cycle) -> u64 {
        self.drained.saturating_sub(at)
    }
}

/// What belongs to one core alone. What most accesses look at comes first and together.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Port {
    /// Local data RAM.
    pub(super) local: Box<[u8]>,
    /// The generation of decoded code that the core holds.
    pub(super) code_seen: u64,
    /// The store queue.
    pub(super) stores: StoreQueue,
    /// The data cache.
    pub(super) l0: L0,
    /// The local RAM may hold something: the core has run, or others have written to it.
    used: bool,
}

impl Port {
    pub(super) fn new(local_size: u32) -> Self {
        Self {
            local: vec![0; local_size as usize].into_boxed_slice(),
            used: false,
            l0: L0::new(),
            stores: StoreQueue::default(),
            code_seen: 0,
        }
    }
    /// The bytes at `offset` of the local RAM; `None` past its end.
    #[inline(always)]
    pub(super) fn peek(&self, offset: usize, width: Width) -> Option<u32> {
        (offset + width.bytes() as usize <= self.local.len()).then(|| get(&self.local, offset, width))
    }
    /// Writes the local RAM; `false` past its end.
    pub(super) fn poke(&mut self, offset: usize, width: Width, value: u32) -> bool {
        let fits = offset + width.bytes() as usize <= self.local.len();
        if fits {
            self.used = true;
            put(&mut self.local, offset, width, value);
        }
        fits
    }
    /// Applies the effects of leaving soft reset.
    pub(super) fn reset(&mut self, keep_local: bool) {
        if self.used && !keep_local {
            self.local.fill(0);
        }
        self.used = true;
        self.l0 = L0::new();
        self.stores = StoreQueue::default();
    }
}

/// The ports of a tile, in the order of [`tilework_abi::tensix::Processor`].
pub(super) type Ports = [Port; 5];
