//! The memory that programs of a board share: an allocator for each kind, and the buffers made
//! there. It is a value of its own, so that a program can be placed without a chip.

use super::buffer::Sharding;
use super::journal::Journal;
use super::pins::Pins;
use super::shard::Shards;
use super::{
    Address, Allocation, AllocationId, Allocator, Bank, BankAddr, Banks, Buffer, BufferConfig, BufferType, CoreCoord,
    CoreGrid, DType, Fit, Fits, GlobalSemaphore, GlobalSemaphoreConfig, L1Buffer, Leaks, MemoryError, MemoryStatistics,
    ShardError, ShardOrientation,
};
use crate::device::l1_banks;
use crate::trace::CallSite;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::addr::{DramAddr, L1Addr};
use tilework_abi::board::{Board, DRAM_BANK_BYTES};
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::{HOST_REGION_NOC_BASE, host};
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::{DRAM_ALIGN, L1_ALIGN, PCIE_ALIGN};

/// The first bytes of each bank hold the flags that a host's barrier uses (seed's system,
/// `Dram.WRITE_OFFSET`).
const DRAM_START: u64 = 0x40;
/// Alignment of what is allocated in L1. 64 rather than 16: data often goes straight to and from
/// DRAM.
const L1_BUFFER_ALIGN: u32 = if L1_ALIGN > DRAM_ALIGN { L1_ALIGN } else { DRAM_ALIGN };

/// What the memory of a device is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllocatorConfig {
    /// The board.
    pub board: Board,
    /// The workers' memory map.
    pub map: MemoryMap,
    /// The cores that buffers may be sharded over.
    pub workers: Vec<NocXy>,
    /// The cores that buffers are interleaved over, as in the bank table.
    pub l1_banks: Vec<NocXy>,
    /// Bytes at the end of each worker's L1 for [`BufferType::L1Small`].
    pub l1_small_size: u32,
    /// Bytes at the end of each DRAM bank for [`BufferType::Trace`].
    pub trace_region_size: u64,
    /// Whether there is pinned host memory for [`BufferType::SystemMemory`]: that behind
    /// the queue's.
    pub system_memory: bool,
}

impl AllocatorConfig {
    /// The memory of `board` under fast dispatch and firmware with `map`; no L1-small, no trace
    /// region.
    pub fn new(board: Board, map: &MemoryMap) -> Self {
        Self::of_workers(board, map, board.workers().collect())
    }

    /// The same when these are the workers, as in another dispatch layout.
    pub fn of_workers(board: Board, map: &MemoryMap, workers: Vec<NocXy>) -> Self {
        let l1_banks = l1_banks(&workers);
        Self { board, map: *map, workers, l1_banks, l1_small_size: 0, trace_region_size: 0, system_memory: true }
    }
}

/// The allocators of a board's memory, one for each kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemorySpace {
    pub(super) l1: Allocator<L1Addr>,
    pub(super) l1_small: Allocator<L1Addr>,
    pub(super) dram: Allocator<DramAddr>,
    pub(super) trace: Allocator<DramAddr>,
    pub(super) system: Allocator<u64>,
    pub(super) pins: Pins,
    grid: CoreGrid,
    workers: Vec<NocXy>,
    l1_banks: Arc<[Bank]>,
    l1_tiles: Vec<NocXy>,
    dram_banks: Arc<[Bank]>,
    /// The regions of kernel text in DRAM.
    text: Vec<AllocationId>,
    /// The physical numbers of the DRAM banks.
    pub(super) physical: Vec<u8>,
    pub(super) journal: Journal,
}

/// System memory of a host region that the device sees at `base`.
fn system_at(base: u64) -> Range<u64> {
    base + u64::from(host::SYSTEM.offset())..base + u64::from(host::SYSTEM.end())
}

fn system_memory(range: Range<u64>) -> Allocator<u64> {
    Allocator::new("system memory", range, PCIE_ALIGN.into())
}

impl MemorySpace {
    /// Says that the device sees the host region at `base`. Before anything is allocated there.
    pub(crate) fn place_system(&mut self, base: u64) {
        if !self.system.is_empty() {
            self.system = system_memory(system_at(base));
        }
    }

    /// The memory of `board` under fast dispatch and firmware with `map`, all free.
    pub fn new(board: Board, map: &MemoryMap) -> Self {
        Self::with(&AllocatorConfig::new(board, map))
    }

    /// The memory that `config` describes, all free.
    pub fn with(config: &AllocatorConfig) -> Self {
        let (data, end) = (config.map.data.get(), config.map.data_end.get());
        // A larger L1-small than there is takes all.
        let small = end - config.l1_small_size.next_multiple_of(L1_BUFFER_ALIGN).min(end - data);
        let trace = config.trace_region_size.next_multiple_of(DRAM_ALIGN.into()).min(DRAM_BANK_BYTES - DRAM_START);
        let trace = DRAM_BANK_BYTES - trace;
        let system = system_at(HOST_REGION_NOC_BASE.into());
        let system = if config.system_memory { system } else { system.start..system.start };
        let (dram, align) = (|a, b| DramAddr::new(a)..DramAddr::new(b), u64::from(L1_BUFFER_ALIGN));
        let l1 = |a, b| L1Addr::new(a)..L1Addr::new(b);
        let banks = 0..u32_of(config.board.dram().banks().len());
        Self {
            l1: Allocator::new("L1", l1(data, small), align),
            l1_small: Allocator::new("L1-small", l1(small, end), align),
            dram: Allocator::new("DRAM (each bank)", dram(DRAM_START, trace), DRAM_ALIGN.into()),
            trace: Allocator::new("trace region (each bank)", dram(trace, DRAM_BANK_BYTES), DRAM_ALIGN.into()),
            pins: Pins::default(),
            system: system_memory(system),
            grid: CoreGrid::new(config.board),
            workers: config.workers.clone(),
            l1_banks: config.l1_banks.iter().copied().map(Bank::Core).collect(),
            l1_tiles: config.l1_banks.clone(),
            dram_banks: banks.map(Bank::Dram).collect(),
            text: Vec::new(),
            physical: config.board.dram().banks().iter().map(|bank| bank.physical).collect(),
            journal: Journal::default(),
        }
    }

    /// The allocator of the workers' data space, which ends where L1-small begins.
    pub fn l1(&self) -> &Allocator<L1Addr> {
        &self.l1
    }
    /// The allocator of the DRAM banks, all of which are allocated alike.
    pub fn dram(&self) -> &Allocator<DramAddr> {
        &self.dram
    }
    /// The cores that buffers are interleaved over, in the order of the bank table.
    pub fn l1_banks(&self) -> &[NocXy] {
        &self.l1_tiles
    }
    /// Logical coordinates of the board's cores.
    pub fn grid(&self) -> CoreGrid {
        self.grid
    }
    /// How full a kind of memory is.
    pub fn statistics(&self, kind: BufferType) -> MemoryStatistics {
        match kind {
            BufferType::Dram => self.dram.statistics(kind),
            BufferType::L1 => self.l1.statistics(kind),
            BufferType::L1Small => self.l1_small.statistics(kind),
            BufferType::SystemMemory => self.system.statistics(kind),
            BufferType::Trace => self.trace.statistics(kind),
        }
    }
    /// What is allocated now: leaks, if everything should have been freed.
    pub fn leaks(&self) -> Leaks {
        let of = |kind| self.statistics(kind).owners.into_iter().map(move |owned| (kind, owned));
        Leaks(BufferType::ALL.into_iter().flat_map(of).collect())
    }

    /// Allocates a region of kernel text, `bytes` at the end of each DRAM bank, or of what is free
    /// of it. `None` when there is no room.
    pub(crate) fn alloc_text(&mut self, bytes: u32) -> Option<DramAddr> {
        let (id, base) = self.dram.allocate("kernel text", bytes.into(), &Banks::All, Fit::Highest).ok()?;
        self.text.push(id);
        Some(base)
    }
    /// Frees the regions of kernel text.
    pub(crate) fn free_text(&mut self) {
        for id in std::mem::take(&mut self.text) {
            self.dram.free_id(id);
        }
    }

    /// Allocates a buffer.
    ///
    /// # Errors
    /// No room, with who has it and what would fit; a layout whose parts do not fit together; an
    /// address that is taken.
    ///
    /// Sharded by height over eight cores, 2 tiles each:
    ///
    /// ```
    /// use tilework_abi::{board::Board, l1::WORKER};
    /// use tilework_runtime::memory::{
    ///     Bank, BufferConfig, BufferType, CoreCoord, CoreRange, CoreRangeSet, MemorySpace,
    ///     ShardOrientation, ShardSpec, ShardSpecBuffer, TensorMemoryLayout,
    /// };
    ///
    /// let mut memory = MemorySpace::new(Board::P100, &WORKER);
    /// let row = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(7, 0));
    /// let shard = ShardSpecBuffer {
    ///     tensor_shard_spec: ShardSpec {
    ///         grid: CoreRangeSet::new([row])?,
    ///         shape: [64, 32],
    ///         orientation: ShardOrientation::RowMajor,
    ///     },
    ///     page_shape: [32, 32],
    ///     tensor2d_shape_in_pages: [16, 1],
    /// };
    /// let layout = TensorMemoryLayout::HeightSharded;
    /// let x = memory.alloc(&BufferConfig::sharded("x", BufferType::L1, layout, 2048, shard))?;
    /// let second = memory.grid().tile(CoreCoord::new(1, 0)).map(Bank::Core);
    /// assert_eq!(Some(x.place(3).bank), second);
    /// assert_eq!(x.place(3).address, x.address.offset(2048));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// At an explicit address, in L1-small, and in host memory that the chip reaches:
    ///
    /// ```
    /// use tilework_abi::{board::Board, l1::WORKER};
    /// use tilework_runtime::memory::{Bank, BufferConfig, BufferType, AllocatorConfig, MemorySpace};
    ///
    /// let config = AllocatorConfig { l1_small_size: 0x4000, ..AllocatorConfig::new(Board::P100,
    /// &WORKER) }; let mut memory = MemorySpace::with(&config); let x =
    /// memory.alloc(&BufferConfig::interleaved("x", BufferType::Dram, 4096, 64).at(0x10_0000))?;
    /// assert_eq!(x.address.get(), 0x10_0000); let flags =
    /// memory.alloc(&BufferConfig::interleaved("flags", BufferType::L1Small, 64, 64))?;
    /// assert!(flags.address.get() >= 0x18_0000 - 0x4000); let log =
    /// memory.alloc(&BufferConfig::interleaved("log", BufferType::SystemMemory, 4096, 4096))?;
    /// assert_eq!(log.place(0).bank, Bank::Host);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn alloc(&mut self, config: &BufferConfig) -> Result<Buffer, MemoryError> {
        let at = CallSite::here();
        let mut buffer = self.lay_out(config)?;
        let (bytes, kind) = (buffer.bytes_per_bank(), config.buffer_type);
        let banks = match config.allocation {
            Allocation::CoreRange if buffer.sharding.is_some() => self.numbers(&buffer.banks),
            _ => Banks::All,
        };
        if self.is_empty(kind) {
            return Err(MemoryError::NoMemory { name: config.name.clone(), memory: kind });
        }
        let place = Request { name: &config.name, bytes, banks: &banks, address: config.address, kind };
        let allocated = match kind {
            BufferType::Dram => place.of(&mut self.dram),
            BufferType::L1 => place.of(&mut self.l1),
            BufferType::L1Small => place.of(&mut self.l1_small),
            BufferType::SystemMemory => place.of(&mut self.system),
            BufferType::Trace => place.of(&mut self.trace),
        };
        let (id, address) = allocated.map_err(|error| with_fits(error, &buffer))?;
        self.check_allocated(&buffer.name, kind, (address.get(), bytes), (id, at))?;
        (buffer.allocation, buffer.address) = (Some(id), address);
        self.note_buffer(id, &buffer);
        Ok(buffer)
    }

    /// A buffer of another layout in the memory of `parent`, `offset` bytes behind its address in
    /// each bank. It owns no memory and is not freed.
    ///
    /// # Errors
    /// As [`MemorySpace::alloc`]; a buffer that leaves the banks or the range of `parent`.
    ///
    /// ```
    /// # use tilework_abi::{board::Board, l1::WORKER};
    /// # use tilework_runtime::memory::{BufferConfig, BufferType, MemorySpace};
    /// # let mut memory = MemorySpace::new(Board::P100, &WORKER);
    /// // Two small arrays in one pool.
    /// let pool = memory.alloc(&BufferConfig::interleaved("pool", BufferType::Dram, 7 * 4096, 4096))?;
    /// let config = BufferConfig::interleaved("second", BufferType::Dram, 7 * 1024, 1024);
    /// let second = memory.sub_buffer(&pool, 2048, &config)?;
    /// assert_eq!(second.address, pool.address.offset(2048));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sub_buffer(&self, parent: &Buffer, offset: u64, config: &BufferConfig) -> Result<Buffer, MemoryError> {
        let mut buffer = self.lay_out(config)?;
        let (bytes, room) = (buffer.bytes_per_bank(), parent.bytes_per_bank());
        let align = u64::from(buffer.aligned_page_size.min(align_of(config.buffer_type)));
        let fits = parent.buffer_type == buffer.buffer_type
            && buffer.banks.iter().all(|bank| parent.banks.contains(bank))
            && offset.is_multiple_of(align.max(1))
            && offset.checked_add(bytes).is_some_and(|end| end <= room);
        if !fits {
            let (name, parent) = (config.name.clone(), parent.name.clone());
            return Err(MemoryError::SubBuffer { name, parent, offset, bytes, room });
        }
        buffer.address = parent.address.offset(offset);
        self.note_within(parent, &buffer);
        Ok(buffer)
    }

    /// Frees the memory of a buffer.
    ///
    /// # Errors
    /// A buffer that owns none: freed before, or a part of another one. One that a trace uses.
    #[track_caller]
    pub fn free(&mut self, buffer: &Buffer) -> Result<(), MemoryError> {
        let span = (buffer.address.get(), if buffer.allocation.is_some() { buffer.bytes_per_bank() } else { 0 });
        self.check_free(&buffer.name, buffer.buffer_type, span, CallSite::here())?;
        let freed = buffer.allocation.is_some_and(|id| self.free_id(buffer.buffer_type, id));
        if freed { Ok(()) } else { Err(MemoryError::NotOwned { name: buffer.name.clone() }) }
    }

    pub(super) fn free_id(&mut self, kind: BufferType, id: AllocationId) -> bool {
        self.note_freed(kind, id);
        match kind {
            BufferType::Dram => self.dram.free_id(id),
            BufferType::L1 => self.l1.free_id(id),
            BufferType::L1Small => self.l1_small.free_id(id),
            BufferType::SystemMemory => self.system.free_id(id),
            BufferType::Trace => self.trace.free_id(id),
        }
    }

    /// Allocates DRAM for an array, interleaved over the banks in pages of `page_size` bytes (a
    /// multiple of 64).
    ///
    /// # Errors
    /// No room; an invalid page size or shape.
    #[track_caller]
    pub fn alloc_dram(
        &mut self,
        name: &str,
        shape: &[usize],
        dtype: DType,
        page_size: u32,
    ) -> Result<Buffer, MemoryError> {
        // Kernels take the page size for the distance between pages, so that it must be aligned.
        if page_size == 0 || !page_size.is_multiple_of(DRAM_ALIGN) {
            return Err(page_size_error(name, page_size, DRAM_ALIGN));
        }
        let Some(element) = dtype.bytes() else {
            return Err(MemoryError::Type { name: name.to_owned(), dtype: dtype.name() });
        };
        let bytes = shape
            .iter()
            .try_fold(element, |n, &d| n.checked_mul(d))
            .filter(|&n| u32::try_from(n.div_ceil(page_size as usize)).is_ok());
        let Some(bytes) = bytes else {
            return Err(MemoryError::Shape { name: name.to_owned(), shape: shape.to_vec() });
        };
        self.alloc(&BufferConfig::interleaved(name, BufferType::Dram, bytes as u64, page_size))
    }

    /// Frees the memory of a buffer; nothing if it owns none.
    ///
    /// # Errors
    /// A buffer that a trace uses.
    #[track_caller]
    pub fn free_dram(&mut self, buffer: &Buffer) -> Result<(), MemoryError> {
        match self.free(buffer) {
            // A buffer that was freed is free.
            Err(MemoryError::NotOwned { .. }) => Ok(()),
            freed => freed,
        }
    }

    /// Allocates `bytes` bytes of every worker's L1, at the same address on all.
    ///
    /// # Errors
    /// No room; the message lists the owners.
    #[track_caller]
    pub fn alloc_l1(&mut self, name: &str, bytes: u32) -> Result<L1Buffer, MemoryError> {
        let at = CallSite::here();
        let (allocation, address) = self.l1.allocate(name, bytes.into(), &Banks::All, Fit::BestHigh)?;
        let span = (address.get().into(), bytes.into());
        self.check_allocated(name, BufferType::L1, span, (allocation, at))?;
        self.note_l1((BufferType::L1, allocation), name, span.0..span.0 + span.1, &self.workers);
        Ok(L1Buffer { name: name.to_owned(), address, bytes, allocation })
    }

    /// Frees the memory of an L1 buffer; nothing if it was freed before.
    ///
    /// # Errors
    /// A buffer that a trace uses.
    #[track_caller]
    pub fn free_l1(&mut self, buffer: &L1Buffer) -> Result<(), MemoryError> {
        let span = (buffer.address.get().into(), buffer.bytes.into());
        self.check_free(&buffer.name, BufferType::L1, span, CallSite::here())?;
        self.free_id(BufferType::L1, buffer.allocation);
        Ok(())
    }

    /// Allocates a word on each core of a set. The caller writes its initial value.
    ///
    /// # Errors
    /// No room; cores that are no workers; a memory that is not L1.
    #[track_caller]
    pub fn alloc_global_semaphore(&mut self, config: &GlobalSemaphoreConfig) -> Result<GlobalSemaphore, MemoryError> {
        let at = CallSite::here();
        let GlobalSemaphoreConfig { name, initial, buffer_type, .. } = config;
        let refused = |kind| MemoryError::Shard { name: name.clone(), kind };
        let cores: Vec<CoreCoord> = config.cores.cores(ShardOrientation::RowMajor).collect();
        if cores.is_empty() {
            return Err(refused(ShardError::NoCores));
        }
        let cores = cores.into_iter().map(|core| self.worker(core)).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let banks: Vec<Bank> = cores.iter().copied().map(Bank::Core).collect();
        let banks = match config.allocation {
            Allocation::LockStep => Banks::All,
            Allocation::CoreRange => self.numbers(&banks),
        };
        let l1 = match buffer_type {
            BufferType::L1 => &mut self.l1,
            BufferType::L1Small if !self.l1_small.is_empty() => &mut self.l1_small,
            _ => return Err(MemoryError::NoMemory { name: name.clone(), memory: *buffer_type }),
        };
        let (allocation, address) = l1.allocate(name, L1_ALIGN.into(), &banks, Fit::BestHigh)?;
        self.check_allocated(name, *buffer_type, (address.get().into(), L1_ALIGN.into()), (allocation, at))?;
        let (name, initial, buffer_type) = (name.clone(), *initial, *buffer_type);
        let range = address.get().into()..u64::from(address.get()) + u64::from(L1_ALIGN);
        self.note_l1((buffer_type, allocation), &name, range, &cores);
        Ok(GlobalSemaphore { name, address, cores, initial, buffer_type, allocation })
    }

    /// Frees the memory of a global semaphore.
    ///
    /// # Errors
    /// One that was freed before, or that a trace uses.
    #[track_caller]
    pub fn free_global_semaphore(&mut self, semaphore: &GlobalSemaphore) -> Result<(), MemoryError> {
        let span = (semaphore.address.get().into(), L1_ALIGN.into());
        self.check_free(&semaphore.name, semaphore.buffer_type, span, CallSite::here())?;
        match self.free_id(semaphore.buffer_type, semaphore.allocation) {
            true => Ok(()),
            false => Err(MemoryError::NotOwned { name: semaphore.name.clone() }),
        }
    }

    /// The worker at a logical coordinate.
    fn worker(&self, core: CoreCoord) -> Result<NocXy, ShardError> {
        let tile = self.grid.tile(core).filter(|tile| self.workers.contains(tile));
        tile.ok_or(ShardError::NotWorker(core))
    }

    /// The numbers of banks for an allocator: a DRAM bank's own, a core's place among the workers.
    fn numbers(&self, banks: &[Bank]) -> Banks {
        Banks::of(banks.iter().filter_map(|bank| match bank {
            Bank::Dram(bank) => Some(*bank),
            Bank::Core(tile) => self.workers.iter().position(|worker| worker == tile).map(u32_of),
            Bank::Host => None,
        }))
    }

    fn is_empty(&self, kind: BufferType) -> bool {
        match kind {
            BufferType::Dram => self.dram.is_empty(),
            BufferType::L1 => self.l1.is_empty(),
            BufferType::L1Small => self.l1_small.is_empty(),
            BufferType::SystemMemory => self.system.is_empty(),
            BufferType::Trace => self.trace.is_empty(),
        }
    }

    /// A buffer that has no address yet.
    pub(super) fn lay_out(&self, config: &BufferConfig) -> Result<Buffer, MemoryError> {
        let BufferConfig { name, size, page_size, buffer_type, memory_layout, .. } = config;
        let align = align_of(*buffer_type);
        let Some(aligned_page_size) = page_size.checked_next_multiple_of(align).filter(|&size| size > 0) else {
            return Err(page_size_error(name, *page_size, 1));
        };
        if u32::try_from(size.div_ceil((*page_size).into())).is_err() {
            return Err(MemoryError::Pages { name: name.clone(), bytes: *size, page_size: *page_size });
        }
        let refused = |kind| MemoryError::Shard { name: name.clone(), kind };
        let sharding = self.sharding(config).map_err(refused)?;
        let banks = match &sharding {
            Some(sharding) => self.shard_banks(config, sharding).map_err(refused)?,
            None if buffer_type.is_dram() => Arc::clone(&self.dram_banks),
            None if buffer_type.is_l1() => Arc::clone(&self.l1_banks),
            None => Arc::new([Bank::Host]),
        };
        Ok(Buffer {
            name: name.clone(),
            buffer_type: *buffer_type,
            memory_layout: *memory_layout,
            page_size: *page_size,
            address: BankAddr::default(),
            aligned_page_size,
            bytes: *size,
            first_page: 0,
            banks,
            sharding: sharding.map(Arc::new),
            allocation: None,
        })
    }

    fn sharding(&self, config: &BufferConfig) -> Result<Option<Sharding>, ShardError> {
        let spec = match (config.memory_layout.is_sharded(), &config.shard) {
            (false, None) => return Ok(None),
            (false, Some(_)) => return Err(ShardError::Unexpected),
            (true, None) => return Err(ShardError::Missing),
            (true, Some(spec)) => spec,
        };
        if matches!(config.buffer_type, BufferType::SystemMemory | BufferType::Trace) {
            return Err(ShardError::Memory(config.buffer_type));
        }
        let shards = Shards::new(config.memory_layout, spec)?;
        let expected = shards.pages().saturating_mul(config.page_size.into());
        if expected != config.size {
            return Err(ShardError::Bytes { found: config.size, expected, pages: shards.tensor });
        }
        Ok(Some(Sharding { shards, spec: spec.clone() }))
    }

    /// The banks of the shards, in their order.
    fn shard_banks(&self, config: &BufferConfig, sharding: &Sharding) -> Result<Arc<[Bank]>, ShardError> {
        let cores = sharding.shards.cores(config.memory_layout, &sharding.spec)?;
        // Cores beyond the shards must exist, too.
        let grid = &sharding.spec.tensor_shard_spec.grid;
        let bank = |core: CoreCoord| match config.buffer_type.is_l1() {
            true => self.worker(core).map(Bank::Core),
            false if core.y == 0 && (core.x as usize) < self.dram_banks.len() => Ok(Bank::Dram(core.x)),
            false => Err(ShardError::NotBank { found: core, banks: u32_of(self.dram_banks.len()) }),
        };
        grid.cores(ShardOrientation::RowMajor).try_for_each(|core| bank(core).map(drop))?;
        cores.into_iter().map(bank).collect()
    }
}

/// What is asked of an allocator.
struct Request<'a> {
    name: &'a str,
    bytes: u64,
    banks: &'a Banks,
    address: Option<u64>,
    kind: BufferType,
}

impl Request<'_> {
    fn of<A: Address>(&self, allocator: &mut Allocator<A>) -> Result<(AllocationId, BankAddr), MemoryError> {
        let &Self { name, bytes, banks, address, kind } = self;
        if let Some(address) = address {
            return Ok((allocator.allocate_at(name, bytes, banks, address)?, BankAddr::new(address)));
        }
        // tt-metal's default: L1 from the top, DRAM from the bottom (`Buffer`, `bottom_up`).
        let fit = if kind.is_l1() { Fit::BestHigh } else { Fit::BestLow };
        let (id, address) = allocator.allocate(name, bytes, banks, fit)?;
        Ok((id, BankAddr::new(address.into())))
    }
}

/// Alignment of pages in a memory.
const fn align_of(kind: BufferType) -> u32 {
    match kind {
        BufferType::Dram | BufferType::Trace => DRAM_ALIGN,
        BufferType::L1 | BufferType::L1Small => L1_ALIGN,
        BufferType::SystemMemory => PCIE_ALIGN,
    }
}

fn page_size_error(name: &str, found: u32, align: u32) -> MemoryError {
    let max = u64::from(u32::MAX / DRAM_ALIGN * DRAM_ALIGN);
    MemoryError::PageSize { name: name.to_owned(), found: found.into(), align: align.into(), max }
}

/// An overflow that says how much of an interleaved buffer would fit.
fn with_fits(error: MemoryError, buffer: &Buffer) -> MemoryError {
    let MemoryError::Overflow(mut overflow) = error else { return error };
    if buffer.sharding.is_none() && buffer.banks.len() > 1 {
        let (page_size, banks) = (u64::from(buffer.aligned_page_size), buffer.banks.len() as u64);
        let most = (overflow.largest.end - overflow.largest.start) / page_size * banks;
        let pages = buffer.pages().get().into();
        overflow.fits = Some(Fits { pages, most, page_size, banks });
    }
    MemoryError::Overflow(overflow)
}

#[cfg(test)]
mod tests;
