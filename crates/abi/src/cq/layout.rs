//! Memory maps of the command queue: the host region, and the L1 of the two dispatch cores.
//!
//! Host, prefetcher and dispatcher each hold half of every ring, so one map serves all three
//! (tt-metal#13484 is what happens otherwise). Regions are values that know their base, size and
//! end; that none overlap and all fit is asserted at compile time (tt-metal#7892).
//!
//! Sources: seed 001 section 1 and figure 2; the original's `device.py`.

use crate::L1_ALIGN;
use crate::addr::{L1Addr, PageCount};
use crate::noc::PCIE_HOST_BIT;
use crate::tensix::L1_SIZE;

/// Bytes of a page of the dispatch ring and of the completion FIFO, and of a host page.
pub const PAGE_SIZE: u32 = 4096;

/// A range of addresses in the L1 of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L1Region {
    base: L1Addr,
    size: u32,
}

impl L1Region {
    /// The region of `size` bytes at `base`. Evaluation fails (at compile time for a constant) when
    /// it is empty or leaves L1.
    pub const fn new(base: u32, size: u32) -> Self {
        assert!(size > 0 && base < L1_SIZE && size <= L1_SIZE - base);
        Self { base: L1Addr::new(base), size }
    }

    /// First address.
    pub const fn base(self) -> L1Addr {
        self.base
    }

    /// Bytes.
    pub const fn size(self) -> u32 {
        self.size
    }

    /// First address behind the region.
    pub const fn end(self) -> L1Addr {
        // Inside L1: `new` has checked it.
        L1Addr::new(self.base.get() + self.size)
    }

    /// Bytes from the region's start to `addr`; `None` outside.
    pub const fn offset_of(self, addr: L1Addr) -> Option<u32> {
        match addr.offset_from(self.base) {
            Some(offset) if offset < self.size => Some(offset),
            _ => None,
        }
    }

    /// Whether `addr` lies inside.
    pub const fn contains(self, addr: L1Addr) -> bool {
        self.offset_of(addr).is_some()
    }

    /// Whether the two regions share a byte.
    pub const fn overlaps(self, other: Self) -> bool {
        self.contains(other.base) || other.contains(self.base)
    }
}

/// A ring of equal pages in L1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRing {
    region: L1Region,
    log_page_size: u32,
    blocks: u32,
}

impl PageRing {
    /// The ring over `region` with pages of `1 << log_page_size` bytes in `blocks` equal blocks.
    pub const fn new(region: L1Region, log_page_size: u32, blocks: u32) -> Self {
        let pages = region.size >> log_page_size;
        assert!(pages << log_page_size == region.size && blocks.is_power_of_two());
        assert!(pages.is_multiple_of(blocks));
        Self { region, log_page_size, blocks }
    }

    /// The bytes of the ring.
    pub const fn region(self) -> L1Region {
        self.region
    }

    /// First address.
    pub const fn base(self) -> L1Addr {
        self.region.base
    }

    /// First address behind the ring.
    pub const fn end(self) -> L1Addr {
        self.region.end()
    }

    /// Bytes of a page.
    pub const fn page_size(self) -> u32 {
        1 << self.log_page_size
    }

    /// Binary logarithm of the page size.
    pub const fn log_page_size(self) -> u32 {
        self.log_page_size
    }

    /// Pages of the ring.
    pub const fn pages(self) -> PageCount {
        PageCount::new(self.region.size >> self.log_page_size)
    }

    /// Blocks in which pages are given back.
    pub const fn blocks(self) -> u32 {
        self.blocks
    }

    /// Pages of a block.
    pub const fn pages_per_block(self) -> PageCount {
        PageCount::new(self.pages().get() / self.blocks)
    }

    /// Pages that `bytes` bytes need.
    pub const fn pages_for(self, bytes: u32) -> PageCount {
        PageCount::new(bytes.div_ceil(self.page_size()))
    }
}

/// Number of a hardware command queue of a device: tt-metal's `cq_id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct QueueId(u8);

impl QueueId {
    /// The queue that every device has.
    pub const FIRST: Self = Self(0);
    /// The queue that a device may have beside it.
    pub const SECOND: Self = Self(1);
    /// All that a device can have (tt-metal's `MAX_NUM_HW_CQS`).
    pub const ALL: [Self; 2] = [Self::FIRST, Self::SECOND];

    /// The queue with that number.
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::ALL.len() { Some(Self(number)) } else { None }
    }

    /// Its number, from 0 on.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Low 32 bits at which the device sees the queue's host region. The regions of the queues lie
    /// one behind the other and have the same map ([`host`]), as tt-metal's do
    /// (`get_absolute_cq_offset`: `cq_id` times the size of a queue's region).
    pub const fn region_noc_base(self) -> u32 {
        HOST_REGION_NOC_BASE + self.0 as u32 * host::REGION_SIZE
    }
}

impl core::fmt::Display for QueueId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Number of a semaphore on a dispatch core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SemaphoreId(pub u32);

impl SemaphoreId {
    /// Semaphores that the command queue's cores have.
    pub const COUNT: u32 = 4;

    /// Address of the semaphore word, given the core's semaphore base (kernel config base plus the
    /// launch message's `sem_offset`, which is [`SEMAPHORE_OFFSET`] on the dispatch cores).
    pub const fn addr(self, semaphore_base: u32) -> u32 {
        semaphore_base + self.0 * L1_ALIGN
    }
}

/// `sem_offset` of the dispatch cores' launch messages: the first 16 bytes of their image are the
/// (empty) run-time arguments. Source: the original's `device.py`.
pub const SEMAPHORE_OFFSET: u32 = 16;

/// Where the first kernel may be placed behind the kernel config base of a dispatch core, so that
/// all [`SemaphoreId::COUNT`] semaphores have room. The original places it at 48, where semaphore 2
/// (the one that `STALL` waits for) is the first word of the kernel's text.
pub const KERNEL_TEXT_OFFSET: u32 = SEMAPHORE_OFFSET + SemaphoreId::COUNT * L1_ALIGN;

/// Stream of the dispatch tile that workers add to when they are done; semaphore `i` of
/// [`WORKER_SEMS`] is stream `DONE_STREAM + i`.
pub const DONE_STREAM: u32 = 48;

/// Worker-completion streams.
pub const WORKER_SEMS: u32 = 8;

/// Rings and words in the L1 of the prefetch core (seed 001 section 1.1).
pub mod prefetch_core {
    use super::{L1Region, PAGE_SIZE, PageRing, SemaphoreId, dispatch_core};

    /// Word: address of the ring entry last taken. Before the first it holds the ring's end.
    pub const PREFETCH_Q_RD_PTR: u32 = 0x196c0;
    /// Word: host address (low 32 bits, NoC view) that the next record is read from.
    pub const PREFETCH_Q_PCIE_RD_PTR: u32 = 0x196c4;
    /// Entries of the prefetch queue.
    pub const PREFETCH_Q_ENTRIES: u32 = 1534;
    /// Bytes of an entry.
    pub const PREFETCH_Q_ENTRY_SIZE: u32 = 2;
    /// Entry bit that stalls the prefetcher after this record (for `EXEC_BUF`).
    pub const PREFETCH_Q_STALL_BIT: u16 = 1 << 15;
    /// Sizes in entries are counted in units of `1 << PREFETCH_Q_LOG_UNIT` bytes.
    pub const PREFETCH_Q_LOG_UNIT: u32 = 4;
    /// The prefetch queue: a ring of [`PREFETCH_Q_ENTRIES`] sizes, zero for a free entry.
    pub const PREFETCH_Q: L1Region = L1Region::new(0x19840, PREFETCH_Q_ENTRIES * PREFETCH_Q_ENTRY_SIZE);
    /// Where records land; a record never wraps in it.
    pub const CMDDAT_Q: PageRing = PageRing::new(L1Region::new(0x1a440, 256 * 1024), 12, 4);
    /// Bounce buffer of the paged and linear relays, used in two halves; also the ring buffer.
    pub const SCRATCH_DB: L1Region = L1Region::new(0x5a440, 128 * 1024);

    /// The longest record: it must lie in [`CMDDAT_Q`] in one piece. (Fifteen bits of an entry
    /// could say twice as much, and the prefetcher would write past the queue.)
    pub const MAX_RECORD_BYTES: u32 = CMDDAT_Q.region().size();

    /// Semaphore: pages free in the dispatch ring; starts at its page count.
    pub const SEM_DISPATCH_PAGES: SemaphoreId = SemaphoreId(0);
    /// Semaphore: pages free in the subordinate's ring; starts at its page count. The original
    /// starts it at 0 and never relays to the subordinate.
    pub const SEM_DISPATCH_S_PAGES: SemaphoreId = SemaphoreId(1);
    /// Semaphore: counts the dispatcher's `NOTIFY_PREFETCH`; `STALL` waits for it.
    pub const SEM_SYNC: SemaphoreId = SemaphoreId(2);
    /// Semaphore: counts the dispatcher's `EXEC_BUF_END`, on the core that reads records: from then
    /// on nothing of the exec buffer is left to be executed.
    pub const SEM_EXEC_BUF: SemaphoreId = SemaphoreId(3);
    /// What the host stores in the semaphores before it starts the core, by id.
    pub const SEM_INIT: [u32; SemaphoreId::COUNT as usize] =
        [dispatch_core::DISPATCH_CB.pages().get(), dispatch_core::DISPATCH_S_CB.pages().get(), 0, 0];

    const _: () = assert!(CMDDAT_Q.page_size() == PAGE_SIZE && CMDDAT_Q.pages().get() == 64);
}

/// The record ring of a split prefetcher: the half on the host side writes whole records into the
/// L1 of the half on the device side, which else has the map of [`prefetch_core`].
///
/// tt-metal's device half keeps its records where the whole prefetcher keeps its command data
/// queue; there the longest record would not fit with its header, so this ring lies behind.
pub mod prefetch_d_core {
    use super::{L1Region, PageRing, SemaphoreId, prefetch_core};

    /// The ring: each record begins on a page, with a header in front of it.
    pub const RECORDS: PageRing = PageRing::new(L1Region::new(0x80000, 512 * 1024), 12, 1);
    /// Bytes of a header: the size of the record in its first word, or zero when the rest of the
    /// ring is passed over; in the second the record's entry if that has the stall flag, else zero.
    /// As long as PCIe's alignment, which records keep.
    pub const RECORD_HEADER: u32 = crate::PCIE_ALIGN;
    /// Most pages of a record.
    pub const MAX_RECORD_PAGES: u32 = RECORDS.pages_for(prefetch_core::MAX_RECORD_BYTES + RECORD_HEADER).get();

    /// Semaphore of the host half: pages free in [`RECORDS`]; starts at its page count.
    pub const SEM_RECORD_PAGES_FREE: SemaphoreId = SemaphoreId(0);
    /// Semaphore of the device half: pages filled in [`RECORDS`].
    pub const SEM_RECORD_PAGES: SemaphoreId = SemaphoreId(3);
    /// What the host stores in the semaphores of the host half before it starts the core, by id.
    pub const SEM_INIT_H: [u32; SemaphoreId::COUNT as usize] = [RECORDS.pages().get(), 0, 0, 0];

    const _: () = assert!(MAX_RECORD_PAGES <= RECORDS.pages().get());
    const _: () = assert!(prefetch_core::SCRATCH_DB.end().get() <= RECORDS.base().get());
}

/// Rings and words in the L1 of the dispatch core, which the dispatcher (BRISC) shares with its
/// subordinate (NCRISC) (seed 001 sections 1.2 and 1.3).
pub mod dispatch_core {
    use super::{L1Region, PageRing, QueueId, SemaphoreId, WORKER_SEMS};
    use crate::L1_ALIGN;
    use crate::addr::L1Addr;

    /// Word: the dispatcher's completion write pointer, a
    /// [`CompletionPtr`](crate::cq::completion::CompletionPtr).
    pub const COMPLETION_Q_WR_PTR: u32 = 0x196d0;
    /// Word: the host's completion read pointer, written by the host.
    pub const COMPLETION_Q_RD_PTR: u32 = 0x196e0;
    /// Word: last event of queue 0.
    pub const COMPLETION_Q0_EVENT: u32 = 0x196f0;
    /// Word: last event of queue 1.
    pub const COMPLETION_Q1_EVENT: u32 = 0x19700;
    /// Sync semaphores from the dispatcher to its subordinate, one per worker semaphore, 16 bytes
    /// apart.
    pub const SYNC_SEMS: L1Region = L1Region::new(0x19710, WORKER_SEMS * L1_ALIGN);
    /// The dispatch ring: 128 pages of 4 KiB in 4 blocks.
    pub const DISPATCH_CB: PageRing = PageRing::new(L1Region::new(0x1a000, 512 * 1024), 12, 4);
    /// The subordinate's ring: 128 pages of 256 bytes.
    pub const DISPATCH_S_CB: PageRing = PageRing::new(L1Region::new(0x9a000, 32 * 1024), 8, 1);

    /// Semaphore: pages filled in the dispatch ring, counted up by the prefetcher.
    pub const SEM_CB_PAGES: SemaphoreId = SemaphoreId(0);
    /// Semaphore: pages filled in the subordinate's ring. The original gives both rings semaphore
    /// 0, so that its subordinate wakes for the dispatcher's pages and executes its own empty ring.
    pub const SEM_S_CB_PAGES: SemaphoreId = SemaphoreId(1);
    /// Semaphore of the device half of a split dispatcher: pages free in the dispatch ring of the
    /// host half; starts at its page count.
    pub const SEM_H_PAGES: SemaphoreId = SemaphoreId(2);
    /// What the host stores in the semaphores before it starts the core, by id.
    pub const SEM_INIT: [u32; SemaphoreId::COUNT as usize] = [0; SemaphoreId::COUNT as usize];
    /// The same for the device half of a split dispatcher.
    pub const SEM_INIT_D: [u32; SemaphoreId::COUNT as usize] = [0, 0, DISPATCH_CB.pages().get(), 0];

    /// Address of the word with the last event of `queue`. Every dispatch core that executes
    /// commands has one for each queue of the device, so that a `WAIT` for memory waits for an
    /// event of another queue (tt-metal's `COMPLETION_Q0_LAST_EVENT`, `COMPLETION_Q1_LAST_EVENT`).
    pub const fn last_event(queue: QueueId) -> u32 {
        [COMPLETION_Q0_EVENT, COMPLETION_Q1_EVENT][queue.index()]
    }

    /// Address of sync semaphore `index`, below [`WORKER_SEMS`].
    pub const fn sync_sem(index: u32) -> L1Addr {
        L1Addr::new(SYNC_SEMS.base().get() + index * L1_ALIGN)
    }

    const _: () = assert!(DISPATCH_CB.pages().get() == 128 && DISPATCH_CB.pages_per_block().get() == 32);
    const _: () = assert!(DISPATCH_S_CB.pages().get() == 128);
    const _: () = assert!(DISPATCH_CB.base().get().is_multiple_of(DISPATCH_CB.page_size()));
}

/// Low 32 bits at which the device sees the host region. A real driver may place it anywhere; the
/// original's firmware has this value built in, and every host address below derives from it.
pub const HOST_REGION_NOC_BASE: u32 = 0x4000_0000;

/// [`PCIE_HOST_BIT`] as it appears in a `noc_xy_addr` word, whose full NoC address is
/// `noc_xy_addr << 36 | addr`.
pub const PCIE_NOC_XY_MARK: u32 = (PCIE_HOST_BIT >> 36) as u32;

/// A range of the host region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRange {
    offset: u32,
    size: u32,
}

impl HostRange {
    /// The range of `size` bytes at `offset`. Evaluation fails (at compile time for a constant)
    /// when it leaves the host region.
    pub const fn new(offset: u32, size: u32) -> Self {
        assert!(size > 0 && offset < host::REGION_SIZE && size <= host::REGION_SIZE - offset);
        Self { offset, size }
    }

    /// Bytes from the start of the host region.
    pub const fn offset(self) -> u32 {
        self.offset
    }

    /// Bytes.
    pub const fn size(self) -> u32 {
        self.size
    }

    /// Offset of the first byte behind the range.
    pub const fn end(self) -> u32 {
        self.offset + self.size
    }

    /// Low 32 bits of the address at which the device sees the start of the range.
    pub const fn noc_addr(self) -> u32 {
        HOST_REGION_NOC_BASE + self.offset
    }
}

/// The pinned host region (seed 001 section 1.4).
pub mod host {
    use super::{HostRange, PAGE_SIZE};
    use crate::PCIE_ALIGN;

    /// Bytes of the whole region.
    pub const REGION_SIZE: u32 = 128 << 20;
    /// Word: completion write pointer, written by the dispatcher.
    pub const CQ_WR: HostRange = HostRange::new(2 * PCIE_ALIGN, 4);
    /// Word: completion read pointer, a copy of what the host wrote to the dispatch core.
    pub const CQ_RD: HostRange = HostRange::new(3 * PCIE_ALIGN, 4);
    /// The issue region: records for the prefetcher.
    pub const ISSUE: HostRange = HostRange::new(4 * PCIE_ALIGN, 64 << 20);
    /// The completion FIFO.
    pub const COMPLETION: HostRange = HostRange::new(ISSUE.end(), 32 << 20);
    /// Pages of the completion FIFO.
    pub const COMPLETION_PAGES: u32 = COMPLETION.size() / PAGE_SIZE;
    /// Slots of [`TIMESTAMPS`] and of [`CORE_TIMING`].
    pub const SLOTS: u32 = 4096;
    /// Bytes of a slot.
    pub const SLOT_SIZE: u32 = 16;
    /// Where `TIMESTAMP` commands write: a little-endian u64 at the start of each slot.
    pub const TIMESTAMPS: HostRange = HostRange::new(COMPLETION.end(), SLOTS * SLOT_SIZE);
    /// Start and end of each core's BRISC kernel: two little-endian u64 per slot.
    pub const CORE_TIMING: HostRange = HostRange::new(TIMESTAMPS.end(), SLOTS * SLOT_SIZE);
    /// The rest: buffers of programs in host memory.
    pub const SYSTEM: HostRange = HostRange::new(CORE_TIMING.end(), REGION_SIZE - CORE_TIMING.end());
}

// The figures of seed 001 section 1, and no overlap.
const _: () = {
    use dispatch_core as d;
    use prefetch_core as p;
    assert!(p::PREFETCH_Q.size() == 0xbfc && p::PREFETCH_Q.end().get() == 0x1a43c);
    assert!(p::PREFETCH_Q_PCIE_RD_PTR + 4 <= p::PREFETCH_Q.base().get());
    assert!(p::PREFETCH_Q.end().get() <= p::CMDDAT_Q.base().get());
    assert!(p::CMDDAT_Q.end().get() == p::SCRATCH_DB.base().get());
    assert!(!p::PREFETCH_Q.overlaps(p::CMDDAT_Q.region()));
    assert!(!p::PREFETCH_Q.overlaps(p::SCRATCH_DB));
    assert!(!p::CMDDAT_Q.region().overlaps(p::SCRATCH_DB));
    assert!(p::SCRATCH_DB.end().get() <= L1_SIZE);

    assert!(d::COMPLETION_Q_WR_PTR + L1_ALIGN == d::COMPLETION_Q_RD_PTR);
    assert!(d::COMPLETION_Q_RD_PTR + L1_ALIGN == d::COMPLETION_Q0_EVENT);
    assert!(d::COMPLETION_Q0_EVENT + L1_ALIGN == d::COMPLETION_Q1_EVENT);
    assert!(d::COMPLETION_Q1_EVENT + L1_ALIGN == d::SYNC_SEMS.base().get());
    assert!(d::SYNC_SEMS.end().get() <= d::DISPATCH_CB.base().get());
    assert!(d::DISPATCH_CB.end().get() == d::DISPATCH_S_CB.base().get());
    assert!(!d::DISPATCH_CB.region().overlaps(d::DISPATCH_S_CB.region()));
    assert!(d::DISPATCH_S_CB.end().get() <= L1_SIZE);

    assert!(host::CQ_WR.offset() == 128 && host::CQ_RD.offset() == 192);
    assert!(host::CQ_WR.end() <= host::CQ_RD.offset() && host::CQ_RD.end() <= host::ISSUE.offset());
    assert!(host::ISSUE.noc_addr() == 0x4000_0100);
    assert!(host::COMPLETION.noc_addr() == 0x4400_0100);
    assert!(host::COMPLETION_PAGES == 8192);
    assert!(host::ISSUE.end() == host::COMPLETION.offset());
    assert!(host::COMPLETION.end() == host::TIMESTAMPS.offset());
    assert!(host::TIMESTAMPS.end() == host::CORE_TIMING.offset());
    assert!(host::CORE_TIMING.end() == host::SYSTEM.offset() && host::SYSTEM.end() == host::REGION_SIZE);
    assert!(host::REGION_SIZE.is_multiple_of(PAGE_SIZE));
    // The region ends below 4 GiB and its addresses in 16-byte units fit the completion pointer.
    assert!(HOST_REGION_NOC_BASE <= u32::MAX - host::REGION_SIZE);
    let mut i = 0;
    while i < QueueId::ALL.len() {
        assert!(QueueId::ALL[i].index() == i);
        assert!(QueueId::ALL[i].region_noc_base() <= u32::MAX - host::REGION_SIZE);
        i += 1;
    }
};
