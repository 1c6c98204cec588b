//! Buffers: arrays of pages in the banks of a memory, and where each page lies.
//!
//! One mapping serves everything that moves pages: [`Buffer::place`] says where a page is, and
//! [`Buffer::runs`] which pages follow one another in memory. Page `p` of an interleaved buffer is
//! in bank `p % banks`, `p / banks` pages behind the buffer's address (seed's system, DRAM buffers;
//! the firmware's `rt::dram` computes the same). A sharded buffer has its shards at its address in
//! the banks of its cores (docs/memory.md).

use super::shard::{Line, Shards};
use super::{AllocationId, BufferType, MemoryError, ShardSpecBuffer, TensorMemoryLayout};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::addr::{L1Addr, PageCount};
use tilework_abi::convert::{addr32_of, u32_of};
use tilework_abi::noc::NocXy;

pub use tilework_dtype::DType;

/// An address in a bank: in DRAM, in the L1 of a core, or of host memory as the chip's NoC has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BankAddr(u64);

impl BankAddr {
    /// The address `value`.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }
    /// The address as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The address of a byte as an argument of a kernel, which has 32 bits.
    ///
    /// # Panics
    /// At the end of a DRAM bank and beyond.
    #[track_caller]
    pub const fn word(self) -> u32 {
        addr32_of(self.0)
    }
    /// The address `bytes` further on, in the bank by the caller's bounds.
    #[must_use]
    pub const fn offset(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }
}

impl From<BankAddr> for u64 {
    fn from(address: BankAddr) -> Self {
        address.0
    }
}

impl fmt::Display for BankAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Where a part of a buffer is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bank {
    /// A logical DRAM bank.
    Dram(u32),
    /// The L1 of a core, by its coordinates in packets.
    Core(NocXy),
    /// Host memory behind the PCIe tile.
    Host,
}

impl fmt::Display for Bank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dram(bank) => write!(f, "DRAM bank {bank}"),
            Self::Core(tile) => write!(f, "core {tile}"),
            Self::Host => f.write_str("host"),
        }
    }
}

/// Where a page lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The bank.
    pub bank: Bank,
    /// The address of the page's first byte there.
    pub address: BankAddr,
}

/// Pages that follow one another in a bank, at the distance [`Buffer::aligned_page_size`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Where the first one lies.
    pub place: Place,
    /// The first one.
    pub first_page: u32,
    /// How many.
    pub pages: u32,
    /// From one to the next in the buffer: page `i` of the run is `first_page + i * stride`.
    pub stride: u32,
}

impl Run {
    /// The pages of the buffer, in the order of their addresses.
    pub fn page_numbers(&self) -> impl Iterator<Item = u32> {
        let Self { first_page, pages, stride, .. } = *self;
        // The last one is a page of the buffer, so that nothing overflows.
        (0..pages).map(move |i| first_page + i * stride)
    }
}

/// An array of pages in the banks of a memory.
///
/// Interleaved in DRAM, as [`Device::alloc_dram`](crate::Device::alloc_dram) makes it, and over the
/// L1 of all workers:
///
/// ```
/// use tilework_abi::board::Board;
/// use tilework_abi::l1::WORKER;
/// use tilework_runtime::memory::{Bank, BankAddr, BufferConfig, BufferType, MemorySpace};
///
/// let mut memory = MemorySpace::new(Board::P100, &WORKER);
/// // 20 pages of 2 KiB over the seven DRAM banks of a P100: page 7 is in bank 0 again.
/// let x = memory.alloc(&BufferConfig::interleaved("x", BufferType::Dram, 20 * 2048, 2048))?;
/// assert_eq!(x.place(7).bank, Bank::Dram(0));
/// assert_eq!(x.place(7).address, x.address.offset(2048));
/// // The same over L1: one page in each of 20 cores.
/// let y = memory.alloc(&BufferConfig::interleaved("y", BufferType::L1, 20 * 2048, 2048))?;
/// assert!(matches!(y.place(7).bank, Bank::Core(_)));
/// assert_eq!(y.place(7).address, y.address);
/// memory.free(&x)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Its name in messages.
    pub name: String,
    /// The memory.
    pub buffer_type: BufferType,
    /// How pages are distributed.
    pub memory_layout: TensorMemoryLayout,
    /// Bytes of a page.
    pub page_size: u32,
    /// Its address in each bank. That of a view is the whole buffer's.
    pub address: BankAddr,
    pub(super) aligned_page_size: u32,
    pub(super) bytes: u64,
    /// The first page, in the buffer that this is a view of.
    pub(super) first_page: u32,
    /// Where pages can be: all banks, or those of the shards in their order.
    pub(super) banks: Arc<[Bank]>,
    pub(super) sharding: Option<Arc<Sharding>>,
    /// Its memory, unless it is a part of another buffer.
    pub(super) allocation: Option<AllocationId>,
}

/// How a sharded buffer is divided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sharding {
    pub(super) shards: Shards,
    pub(super) spec: ShardSpecBuffer,
}

impl Buffer {
    /// Bytes of the array.
    pub fn bytes(&self) -> usize {
        // Its pages are below 2^32, so that it fits wherever it can be held.
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }
    /// Pages of the array; the last may be partly used.
    pub fn pages(&self) -> PageCount {
        PageCount::new(self.count())
    }
    fn count(&self) -> u32 {
        // Checked when the buffer was laid out.
        u32::try_from(self.bytes.div_ceil(self.page_size.into())).unwrap_or(u32::MAX)
    }
    /// Bytes from one page to the next in a bank: those of a page, aligned.
    pub fn aligned_page_size(&self) -> u32 {
        self.aligned_page_size
    }
    /// The banks that pages can be in: for an interleaved buffer all of the memory in the order of
    /// their numbers, for a sharded one those of the shards in their order.
    pub fn banks(&self) -> &[Bank] {
        &self.banks
    }
    /// The division into shards, if it is sharded.
    pub fn shard_spec(&self) -> Option<&ShardSpecBuffer> {
        self.sharding.as_ref().map(|sharding| &sharding.spec)
    }
    /// The first page, in the buffer that this is a view of; 0 for others.
    pub fn first_page(&self) -> u32 {
        self.first_page
    }
    /// Bytes that the array occupies in each bank, a view's those of the whole.
    pub fn bytes_per_bank(&self) -> u64 {
        let pages = match &self.sharding {
            Some(sharding) => sharding.shards.shard_pages(),
            None => (u64::from(self.first_page) + u64::from(self.count())).div_ceil(self.banks.len().max(1) as u64),
        };
        pages.saturating_mul(self.aligned_page_size.into())
    }
    /// Where page `page` lies. A page that the buffer does not have has no place; the answer for
    /// one means nothing, but is given, so that a loop may compute it before it ends.
    pub fn place(&self, page: u32) -> Place {
        let page = self.first_page.saturating_add(page);
        let banks = u32_of(self.banks.len()).max(1);
        let (bank, row) = match &self.sharding {
            Some(sharding) if sharding.shards.pages() > 0 => sharding.shards.place(page),
            _ => (page % banks, page / banks),
        };
        Place {
            bank: self.banks.get(bank as usize).copied().unwrap_or(Bank::Host),
            address: self.address.offset(PageCount::new(row).bytes(self.aligned_page_size)),
        }
    }
    /// The bytes of the array that page `page` holds.
    pub fn page_bytes(&self, page: u32) -> Range<usize> {
        let bytes = self.bytes();
        let start = (page as usize).saturating_mul(self.page_size as usize).min(bytes);
        start..start.saturating_add(self.page_size as usize).min(bytes)
    }

    /// The buffer in pieces that follow one another in a bank: each as long as it can be with pages
    /// evenly spaced in the buffer. An interleaved buffer has one run for each bank, a sharded one
    /// one for each shard or for each of its rows. Places that hold no page of the buffer, as those
    /// at the end of an edge shard, are in none.
    ///
    /// ```
    /// # use tilework_abi::{board::Board, l1::WORKER};
    /// # use tilework_runtime::memory::{BufferConfig, BufferType, MemorySpace};
    /// # let mut memory = MemorySpace::new(Board::P100, &WORKER);
    /// // 9 pages over seven banks: pages 0 and 7 in the first, 1 and 8 in the second.
    /// let x = memory.alloc(&BufferConfig::interleaved("x", BufferType::Dram, 9 * 64, 64))?;
    /// let runs: Vec<Vec<u32>> = x.runs().map(|run| run.page_numbers().collect()).collect();
    /// assert_eq!(runs, [vec![0, 7], vec![1, 8], vec![2], vec![3], vec![4], vec![5], vec![6]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        let lines = match &self.sharding {
            Some(sharding) => sharding.shards.lines(),
            None => u64::from(self.count()).min(self.banks.len() as u64),
        };
        (0..lines).map(|line| self.line(line)).filter(|line| line.pages > 0).map(|Line { first, pages, stride }| {
            let first_page = first - self.first_page;
            Run { place: self.place(first_page), first_page, pages, stride }
        })
    }
    /// Line number `line`, by the page numbers of the whole buffer.
    fn line(&self, line: u64) -> Line {
        let (from, to) = (self.first_page, self.first_page.saturating_add(self.count()));
        match &self.sharding {
            Some(sharding) => sharding.shards.line(line).within(from, to),
            None => {
                let stride = u32_of(self.banks.len());
                // Lines are fewer than pages.
                let first = from.saturating_add(u32::try_from(line).unwrap_or(u32::MAX));
                Line { first, pages: to.saturating_sub(first).div_ceil(stride), stride }
            }
        }
    }

    /// The bytes of `data`, which is the whole array, that lie in a run; pages are padded with
    /// zeros to their distance.
    ///
    /// # Panics
    /// When `data` is shorter than the array.
    pub fn gather<'a>(&self, run: &Run, data: &'a [u8]) -> Cow<'a, [u8]> {
        let distance = self.aligned_page_size as usize;
        let whole = (run.pages as usize).saturating_mul(distance);
        let start = self.page_bytes(run.first_page).start;
        if run.stride == 1
            && self.aligned_page_size == self.page_size
            && let Some(slice) = data.get(start..start.saturating_add(whole))
        {
            return Cow::Borrowed(slice);
        }
        let mut out = Vec::with_capacity(whole);
        for page in run.page_numbers() {
            out.extend_from_slice(&data[self.page_bytes(page)]);
            out.resize(out.len().next_multiple_of(distance), 0);
        }
        Cow::Owned(out)
    }
    /// The inverse of [`Buffer::gather`].
    ///
    /// # Panics
    /// When `data` is shorter than the array.
    pub fn scatter(&self, run: &Run, bytes: &[u8], data: &mut [u8]) {
        for (page, chunk) in run.page_numbers().zip(bytes.chunks(self.aligned_page_size as usize)) {
            let range = self.page_bytes(page);
            let n = range.len().min(chunk.len());
            data[range][..n].copy_from_slice(&chunk[..n]);
        }
    }

    /// A part of the buffer as one of its own: the same memory, pages counted from the region's
    /// first (tt-metal's `Buffer::view`). It owns no memory and is not freed.
    ///
    /// # Errors
    /// A region that is not made of whole pages of the buffer.
    ///
    /// ```
    /// # use tilework_abi::{board::Board, l1::WORKER};
    /// # use tilework_runtime::memory::{BufferConfig, BufferRegion, BufferType, MemorySpace};
    /// # let mut memory = MemorySpace::new(Board::P100, &WORKER);
    /// let x = memory.alloc(&BufferConfig::interleaved("x", BufferType::Dram, 20 * 64, 64))?;
    /// let tail = x.view(BufferRegion { offset: 15 * 64, size: 5 * 64 })?;
    /// assert_eq!(tail.pages().get(), 5);
    /// assert_eq!(tail.place(0), x.place(15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn view(&self, region: BufferRegion) -> Result<Self, MemoryError> {
        let BufferRegion { offset, size } = region;
        let page_size = u64::from(self.page_size);
        let end = offset.checked_add(size).filter(|&end| end <= self.bytes);
        // The last page may be partly used.
        let whole = |at: u64| at.is_multiple_of(page_size) || at == self.bytes;
        let first = u32::try_from(offset / page_size).ok();
        match (first, end) {
            (Some(first), Some(end)) if offset.is_multiple_of(page_size) && whole(end) => {
                let first_page = self.first_page.saturating_add(first);
                Ok(Self { first_page, bytes: size, allocation: None, ..self.clone() })
            }
            _ => {
                let (name, bytes) = (self.name.clone(), self.bytes);
                Err(MemoryError::Region { name, offset, size, page_size: self.page_size, bytes })
            }
        }
    }

    /// What each core of a buffer in L1 has of it: a range at one address, over which a circular
    /// buffer can lie ([`Program::circular_buffer_over`](crate::Program::circular_buffer_over)).
    /// `None` for other memory, and for a view, which has no range of its own.
    pub fn local(&self) -> Option<L1Range> {
        let whole = self.first_page == 0 && self.allocation.is_some() && self.buffer_type.is_l1();
        let bytes = u32::try_from(self.bytes_per_bank()).ok().filter(|_| whole)?;
        let cores = self.sharding.as_ref().map(|_| Arc::clone(&self.banks));
        Some(L1Range { name: self.name.clone(), address: L1Addr::new(self.address.word()), bytes, cores })
    }
}

/// A range of L1 at one address on several cores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct L1Range {
    /// Whose it is.
    pub name: String,
    /// First byte.
    pub address: L1Addr,
    /// Bytes.
    pub bytes: u32,
    /// The cores that have it, each a [`Bank::Core`]; all workers unless given.
    pub cores: Option<Arc<[Bank]>>,
}

impl L1Range {
    /// Whether `core` has it.
    pub fn is_on(&self, core: NocXy) -> bool {
        self.cores.as_ref().is_none_or(|cores| cores.contains(&Bank::Core(core)))
    }
}

/// A part of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BufferRegion {
    /// First byte, a multiple of the page size.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// A range of L1 that every worker has at the same address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct L1Buffer {
    /// Its name in messages.
    pub name: String,
    /// First byte.
    pub address: L1Addr,
    /// Bytes.
    pub bytes: u32,
    pub(super) allocation: AllocationId,
}

impl L1Buffer {
    /// The range of each worker, over which a circular buffer can lie.
    pub fn local(&self) -> L1Range {
        L1Range { name: self.name.clone(), address: self.address, bytes: self.bytes, cores: None }
    }
}

#[cfg(test)]
mod tests;
