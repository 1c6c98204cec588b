//! Where the bytes of a relay come from when they are not in the record: reads into the scratch
//! buffer, many in flight.

use tilework_abi::cq::layout::PCIE_NOC_XY_MARK;
use tilework_abi::cq::prefetch::{
    RELAY_PAGED_PACKED_MAX_SUBS, RELAY_RINGBUFFER_MAX_SUBS, RelayPagedPackedSub, RelayRingbufferSub,
};
use tilework_abi::noc::{PCIE_HOST_MID, init};
use tilework_abi::{DRAM_ALIGN, L1_ALIGN, PCIE_ALIGN};
use tilework_cq_core::initiators::prefetch::{NIU, READS};
use tilework_cq_core::local::Table;
use tilework_cq_core::paged::PageWalk;
use tilework_cq_core::span::packet;
use tilework_rt::KernelContext;
use tilework_rt::niu::XY_MASK;
use tilework_rt::reg::read16;

/// Requests of one transaction id after which the unanswered ones are counted, and how many may be
/// left then: the NIU counts those of an id in eight bits (NoC/Counters.md).
const COUNT_EVERY: u32 = 64;
const MOST_UNANSWERED: u32 = 128;

/// Starts reads under one transaction id.
pub struct Reads {
    my_xy: u32,
    id: u32,
    started: u32,
}

impl Reads {
    /// Reads under `id` into the L1 of this tile, `my_xy`.
    #[inline(never)]
    pub fn new(my_xy: u32, id: u32) -> Self {
        READS.wait_ready();
        NIU.wait_at_most(id, MOST_UNANSWERED);
        Self { my_xy, id, started: 0 }
    }

    /// Starts the read of `bytes` bytes (1 to 16384) at `from` of `xy` to `to`.
    #[inline(always)]
    fn start(&mut self, xy: u32, from: u32, to: u32, bytes: u32) {
        READS.read(self.my_xy, self.id, xy, from, to, bytes);
        self.started += 1;
        if self.started.is_multiple_of(COUNT_EVERY) {
            READS.wait_ready();
            NIU.wait_at_most(self.id, MOST_UNANSWERED);
        }
    }
}

/// The bank-to-NoC table: number of banks, and where their coordinates are.
#[derive(Clone, Copy)]
pub struct Banks {
    dram: (u32, u32),
    l1: (u32, u32),
}

impl Banks {
    /// The banks as this core's NoC sees them.
    pub const fn new(ctx: &KernelContext) -> Self {
        Self { dram: (ctx.dram_banks, ctx.dram_xy), l1: (ctx.l1_banks, ctx.l1_xy) }
    }
}

/// Bytes of one node.
#[derive(Clone, Copy)]
pub struct Linear {
    xy: u32,
    mark: u32,
    at: u64,
}

impl Linear {
    /// The bytes from `at` on of the node that a coordinate word names, which may carry the mark of
    /// host memory.
    pub const fn new(xy: u32, at: u64) -> Self {
        let mark = if xy & PCIE_NOC_XY_MARK != 0 { PCIE_HOST_MID } else { 0 };
        Self { xy: xy & XY_MASK, mark, at }
    }

    fn read(&mut self, reads: &mut Reads, to: u32, bytes: u32) {
        let (mut to, mut left) = (to, bytes);
        while left != 0 {
            let low = self.at as u32;
            // No packet passes a border of 4 GiB.
            let n = packet(left, (!low).saturating_add(1));
            READS.wait_ready();
            READS.set(init::TARG_ADDR_MID, (self.at >> 32) as u32 | self.mark);
            reads.start(self.xy, low, to, n);
            self.at = self.at.wrapping_add(u64::from(n));
            to += n;
            left -= n;
        }
    }
}

/// Pages of an interleaved buffer, in order.
#[derive(Clone, Copy)]
pub struct Pages {
    walk: PageWalk,
    table: u32,
    page_size: u32,
    /// Bytes of the current page that were read.
    done: u32,
}

impl Pages {
    /// The pages from `first` on of the buffer at `base` of each bank. `None` when it does not lie
    /// as reads of its memory must: in units of 64 bytes in DRAM, of 16 in L1 (NoC/Alignment.md).
    #[inline(never)]
    pub fn new(banks: &Banks, is_dram: bool, first: u32, base: u32, page_size: u32) -> Option<Self> {
        let ((banks, table), unit) = if is_dram { (banks.dram, DRAM_ALIGN) } else { (banks.l1, L1_ALIGN) };
        if page_size == 0 || banks == 0 || (base | page_size) & (unit - 1) != 0 {
            return None;
        }
        Some(Self { walk: PageWalk::new(first, base, page_size, banks), table, page_size, done: 0 })
    }

    /// Starts the reads of the next `bytes` bytes to `to`.
    #[inline(never)]
    pub fn read(&mut self, reads: &mut Reads, to: u32, bytes: u32) {
        READS.wait_ready();
        READS.set(init::TARG_ADDR_MID, 0);
        let (mut to, mut left) = (to, bytes);
        while left != 0 {
            let xy = u32::from(read16(self.table + 2 * self.walk.bank()));
            let n = packet(left, self.page_size - self.done);
            reads.start(xy, self.walk.addr().wrapping_add(self.done), to, n);
            to += n;
            left -= n;
            self.done += n;
            if self.done == self.page_size {
                self.done = 0;
                self.walk.step();
            }
        }
    }
}

/// Sub-commands that were taken out of the record: those of `RELAY_PAGED_PACKED`, or of
/// `RELAY_RINGBUFFER`.
pub static SUBS: Table<SUB_WORDS> = Table::new();
/// Words of a sub-command of `RELAY_PAGED_PACKED`.
pub const PACKED_WORDS: usize = size_of::<RelayPagedPackedSub>() / size_of::<u32>();
/// Words of a sub-command of `RELAY_RINGBUFFER`.
pub const PIECE_WORDS: usize = size_of::<RelayRingbufferSub>() / size_of::<u32>();
const SUB_WORDS: usize = RELAY_PAGED_PACKED_MAX_SUBS * PACKED_WORDS;

/// The pages of several interleaved DRAM buffers, the [`SUBS`].
#[derive(Clone, Copy)]
pub struct Packed {
    banks: Banks,
    /// First word of the sub-command behind the current.
    next: usize,
    pages: Option<Pages>,
    /// Bytes of the current sub-command that are not read.
    left: u32,
}

impl Packed {
    /// The buffers of the first `count` sub-commands; `None` when one of them does not lie as reads
    /// of DRAM must, or they are not `total` bytes.
    pub fn new(banks: &Banks, count: usize, total: u32) -> Option<Self> {
        let mut sum = 0;
        for i in 0..count {
            let &[first, base, length] = SUBS.words(i * PACKED_WORDS, PACKED_WORDS) else { return None };
            let log = first >> 16;
            if log >= u32::BITS || (base | length | 1 << log) & (DRAM_ALIGN - 1) != 0 || length > total - sum {
                return None;
            }
            sum += length;
        }
        (sum == total).then_some(Self { banks: *banks, next: 0, pages: None, left: 0 })
    }

    fn read(&mut self, reads: &mut Reads, to: u32, bytes: u32) {
        let (mut to, mut left) = (to, bytes);
        while left != 0 {
            if self.left == 0 {
                let &[first, base, length] = SUBS.words(self.next, PACKED_WORDS) else { return };
                self.next += PACKED_WORDS;
                self.left = length;
                self.pages = Pages::new(&self.banks, true, first & 0xFFFF, base, 1 << (first >> 16));
            }
            let n = left.min(self.left);
            if let Some(pages) = &mut self.pages {
                pages.read(reads, to, n);
            }
            to += n;
            left -= n;
            self.left -= n;
        }
    }
}

const _: () = assert!(RELAY_RINGBUFFER_MAX_SUBS * PIECE_WORDS <= SUB_WORDS);

/// A source of bytes.
pub enum Source {
    /// One node.
    Linear(Linear),
    /// An interleaved buffer.
    Pages(Pages),
    /// Several interleaved buffers.
    Packed(Packed),
}

impl Source {
    /// Starts the reads of the next `bytes` bytes to `to`.
    #[inline(never)]
    pub fn read(&mut self, reads: &mut Reads, to: u32, bytes: u32) {
        match self {
            Self::Linear(linear) => linear.read(reads, to, bytes),
            Self::Pages(pages) => pages.read(reads, to, bytes),
            Self::Packed(packed) => packed.read(reads, to, bytes),
        }
    }

    /// Bytes by which the first byte must lie behind a multiple of the largest alignment: source
    /// and destination of a read agree there (NoC/Alignment.md).
    pub const fn skew(&self) -> u32 {
        match self {
            Self::Linear(linear) => linear.at as u32 & (PCIE_ALIGN - 1),
            Self::Pages(_) | Self::Packed(_) => 0,
        }
    }
}
