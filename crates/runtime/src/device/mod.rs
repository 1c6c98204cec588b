//! A device: a board with firmware on its tiles, ready for programs.
//!
//! [`Device::open`] does what a host does to a card that was just powered on (`start`);
//! [`Device::run`] takes programs through fast dispatch or slow dispatch (`run`); buffers move
//! through the command queue or by window accesses (`transfer`). The calls that do not wait are
//! tt-metal's (`enqueue`). After a fault, a deadlock or an exhausted budget the device is lost:
//! everybody who waits gets the error, and every further call says so.

mod bank_table;
mod blame;
mod close;
mod enqueue;
mod in_flight;
mod invariants;
mod notes;
mod on_queue;
mod order;
mod prints;
mod ran;
mod run;
mod semaphore;
mod start;
mod sub_device;
mod tensor;
mod tilize;
mod timed;
mod trace;
mod transfer;

pub use bank_table::{bank_table, l1_banks};
use in_flight::InFlight;
use on_queue::Lane;
pub use on_queue::OnQueue;
use order::Order;
pub use ran::CodePlace;
pub(crate) use run::Running;
pub use run::{BATCH_PROGRAMS, CoreTime, ProgramReport, RunReport};
pub(crate) use start::queue_kernels_at;
pub use start::{load_tiles, start_queue_kernels};
use sub_device::SubDevices;
pub use sub_device::{SubDevice, SubDeviceError, SubDeviceId};
pub use timed::TimeSlot;

use crate::RuntimeError;
use crate::cache::{CacheCounts, Launcher};
use crate::elf::{Exports, FirmwareImage};
use crate::explain::StoppedState;
use crate::firmware::FirmwareSet;
use crate::log;
use crate::lower::Lowering;
use crate::memory::{Allocator, AllocatorConfig, MemorySpace, WorkerCores};
use crate::prebuilt::{self, CqKernels};
use crate::prints::Prints;
use crate::queue::CommandQueue;
use crate::queue::timing::HostCost;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use tilework_abi::addr::{Cycle, DramAddr, L1Addr};
use tilework_abi::board::{Board, DramMap};
use tilework_abi::cq::layout::QueueId;
use tilework_abi::cq::tiles::{DispatchLayout, Queues};
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_driver::{Card, ChipCounts, HostLink, Inspect};
use tracing::{error, info};

/// How programs reach the workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dispatch {
    /// Through the command queue: prefetcher and dispatcher on two cores of the chip.
    #[default]
    Fast,
    /// By window accesses of the host, which polls the go messages. All Tensix tiles are workers.
    Slow,
}

impl Dispatch {
    /// The name that the command line uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
        }
    }
}

/// How buffers reach the device under fast dispatch; slow dispatch has windows only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transfers {
    /// Through the command queue, in order with programs and events.
    #[default]
    Queue,
    /// By window accesses of the host, which first waits for the queue.
    Windows,
}

impl Transfers {
    /// The name that the command line uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Windows => "windows",
        }
    }
}

/// How to open a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceConfig {
    /// The board.
    pub board: Board,
    /// How programs reach the workers.
    pub dispatch: Dispatch,
    /// How buffers reach the device.
    pub transfers: Transfers,
    /// Command queues: 1, or 2 of which each has its own host region and its own tiles
    /// ([`Device::on_queue`]). Another number is an error.
    pub queues: u8,
    /// Bytes at the end of each worker's L1 for buffers of L1-small; none unless given.
    pub l1_small_size: u32,
    /// Bytes at the end of each DRAM bank for traces. Unless given, traces take what they need from
    /// the end of DRAM.
    pub trace_region_size: u64,
    /// What a call that enqueues costs the host.
    pub host_cost: HostCost,
    /// Which tiles run the command queue; under fast dispatch only.
    pub layout: DispatchLayout,
    /// The tiles that run programs, of those that the dispatch leaves; all of them unless given. L1
    /// buffers are interleaved over these only.
    pub worker_cores: Option<WorkerCores>,
    /// Cycles that one [`Device::run`] may take; [`default_cycles`] of its programs unless given. A
    /// deadlock is found at once, whatever this is; the budget ends programs that never end.
    pub max_cycles: Option<Cycle>,
    /// Whether the dispatcher writes its clock before and after each program.
    pub timestamps: bool,
    /// Whether each worker writes the start and end of its kernel; under fast dispatch only, and
    /// while there are slots ([`ProgramReport::core_times`]).
    pub core_timing: bool,
    /// Whether all records are kept ([`Device::captured`]).
    pub capture: bool,
    /// Whether launched programs are remembered, and what the cores did when a call was stopped
    /// ([`Device::code_at`], [`Device::state`]).
    pub remember_programs: bool,
    /// How programs become commands.
    pub lowering: Lowering,
}

impl DeviceConfig {
    /// The usual configuration: fast dispatch, timestamps.
    pub const fn new(board: Board) -> Self {
        Self {
            board,
            dispatch: Dispatch::Fast,
            transfers: Transfers::Queue,
            queues: 1,
            l1_small_size: 0,
            trace_region_size: 0,
            host_cost: HostCost::None,
            layout: DispatchLayout::Dispatcher,
            worker_cores: None,
            max_cycles: None,
            timestamps: true,
            core_timing: false,
            capture: false,
            remember_programs: false,
            lowering: Lowering::Cached,
        }
    }

    /// The tiles of the command queues.
    ///
    /// # Panics
    /// On a number of queues that no device has.
    pub(crate) fn queue_tiles(&self) -> Queues {
        self.layout.queues(self.queues)
    }

    /// The tiles that run programs, in the board's order.
    ///
    /// # Panics
    /// On a number of queues that no device has.
    pub fn workers(&self) -> Vec<NocXy> {
        let mut workers = self.possible_workers();
        if let Some(chosen) = self.worker_cores {
            workers.retain(|&tile| chosen.has_tile(self.board, tile));
        }
        workers
    }

    /// The tiles that can run programs, in the board's order.
    fn possible_workers(&self) -> Vec<NocXy> {
        match self.dispatch {
            Dispatch::Fast => self.queue_tiles().workers(self.board).collect(),
            Dispatch::Slow => self.board.tensix_tiles().collect(),
        }
    }
}

/// Counts of what a device did. Those of a run are differences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Dispatch commands in the queue.
    pub commands: u64,
    /// Records in the issue region.
    pub records: u64,
    /// Bytes of these records.
    pub record_bytes: u64,
    /// Programs run to their end.
    pub programs: u64,
    /// Programs found in the cache, and kernel text found on the workers.
    pub cache: CacheCounts,
    /// What the chip did; absent for a chip that cannot be looked into.
    pub chip: Option<ChipCounts>,
    /// The chip's time by a counter of its own, if the link can read one.
    pub time: Option<Cycle>,
}

impl Statistics {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            commands: self.commands - earlier.commands,
            records: self.records - earlier.records,
            record_bytes: self.record_bytes - earlier.record_bytes,
            programs: self.programs - earlier.programs,
            cache: self.cache.since(&earlier.cache),
            chip: self.chip.zip(earlier.chip).map(|(now, earlier)| now.since(&earlier)),
            time: self.time.zip(earlier.time).map(|(now, earlier)| now.saturating_sub(earlier)),
        }
    }
}

/// Cycles of one kernel that the usual budget of a run is made of: a program with so many kernels
/// on so many cores gets them in equal parts. The simulator executes some 250 million instructions
/// a second and a busy kernel one in two cycles (docs/benchmarks.md), so that an endless loop ends
/// within a minute or two, on one core or on all.
pub const KERNEL_CYCLES: Cycle = 12_000_000_000;
/// The least usual budget of a program.
pub const LEAST_CYCLES: Cycle = 100_000_000;

/// The usual budget of a run of programs that have so many kernels each, all cores counted.
pub fn default_cycles(kernels: impl IntoIterator<Item = usize>) -> Cycle {
    kernels.into_iter().map(program_cycles).fold(0, Cycle::saturating_add).max(LEAST_CYCLES)
}

/// The part of the usual budget that a program with so many kernels has.
fn program_cycles(kernels: usize) -> Cycle {
    (KERNEL_CYCLES / (kernels.max(1) as Cycle)).max(LEAST_CYCLES)
}

/// The progress of a run, for the callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The device's time in cycles since power-on.
    pub cycles: Cycle,
    /// The device's time at which the budget of the run is used up.
    pub until: Cycle,
    /// Programs of this run that are known to be done.
    pub done: usize,
    /// Programs of this run.
    pub programs: usize,
}

/// What a run calls at intervals; [`ControlFlow::Break`] ends the run.
type ProgressCall = Box<dyn FnMut(Progress) -> ControlFlow<()>>;

/// An open device on a chip behind the link `C`.
pub struct Device<C> {
    config: DeviceConfig,
    card: Card<C>,
    map: MemoryMap,
    dram_map: DramMap,
    workers: Vec<NocXy>,
    memory: MemorySpace,
    firmware: [FirmwareImage; 5],
    /// What kernels may be linked with, of each processor.
    exports: [Exports; 5],
    cq_kernels: CqKernels,
    /// The queue that the present call is about, and what of it is under way; the other queue is in
    /// [`Device::parked`].
    queue: Option<CommandQueue>,
    at: QueueId,
    parked: Lane,
    /// Whether the kernels of the queues are ours, of which more is known than the protocol says.
    own_kernels: bool,
    /// Which launches come behind which, on a device with two queues.
    order: Option<Order>,
    sub_devices: SubDevices,
    /// Launches of cached programs; without it programs are lowered plainly.
    launcher: Option<Launcher>,
    /// Low 32 bits of the addresses at which the device sees the host regions of the queues.
    bases: [u32; QueueId::ALL.len()],
    tracing: trace::Tracing,
    /// Its number in this process, which its events carry.
    number: u64,
    /// Programs in the queue.
    in_flight: InFlight,
    /// Bytes of the transfers in the queue.
    transfer_bytes: usize,
    /// Programs run to their end.
    programs: u64,
    /// Launches that observers of the chip were told of.
    launches: u64,
    progress: Option<ProgressCall>,
    prints: Prints,
    /// The programs that were launched, if they are to be remembered.
    launched: Option<ran::Launched>,
    /// What the cores did when a call was stopped.
    state: Option<StoppedState>,
    /// Why the device is unusable.
    lost: Option<RuntimeError>,
}

/// The number of the next device of this process.
static NEXT_DEVICE: AtomicU64 = AtomicU64::new(0);

impl<C> std::fmt::Debug for Device<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("config", &self.config).field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl<C: HostLink> Device<C> {
    /// Starts firmware on all tiles of a chip that was just powered on and, for fast dispatch, the
    /// command queue.
    ///
    /// # Errors
    /// Firmware that does not start.
    pub fn open(chip: C, config: DeviceConfig) -> Result<Self, RuntimeError> {
        Self::open_with(chip, config, FirmwareSet::prebuilt()?, prebuilt::cq_kernels()?)
    }

    /// As [`Device::open`] with other worker firmware and other kernels of the command queue. Core
    /// times ([`DeviceConfig::core_timing`]) are taken by our own worker firmware only.
    ///
    /// # Errors
    /// As [`Device::open`]; firmware that does not fit the board.
    pub fn open_with(
        chip: C,
        config: DeviceConfig,
        firmware: FirmwareSet,
        cq_kernels: CqKernels,
    ) -> Result<Self, RuntimeError> {
        if !(1..=QueueId::ALL.len()).contains(&config.queues.into()) {
            return Err(RuntimeError::Queues { asked: config.queues });
        }
        if let Some(chosen) = config.worker_cores {
            chosen.check(config.board, &config.possible_workers())?;
        }
        firmware.check(config.board, (config.dispatch == Dispatch::Fast).then_some((config.layout, &cq_kernels)))?;
        let card = Card::open(chip).map_err(RuntimeError::Driver)?;
        let board = config.board;
        let workers = config.workers();
        let l1_banks = firmware.l1_banks(&workers)?;
        let exports = firmware.exports();
        if config.dispatch == Dispatch::Fast {
            for (_, parts) in config.layout.tiles(config.board) {
                for &part in parts {
                    cq_kernels.of(part).check_firmware(&exports[part.processor().index()])?;
                }
            }
        }
        let FirmwareSet { images: firmware, map, .. } = firmware;
        let cached =
            config.dispatch == Dispatch::Fast && config.lowering == Lowering::Cached && map.text_cache_size > 0;
        let mut launcher = cached.then(|| Launcher::new(board, config.layout, &map, &workers)).transpose()?;
        if let Some(launcher) = launcher.as_mut().filter(|_| config.queues > 1) {
            launcher.serve(board, config.queue_tiles())?;
        }
        let own_kernels = cq_kernels.are_ours();
        let mut device = Self {
            config,
            card,
            memory: MemorySpace::with(&AllocatorConfig {
                workers: workers.clone(),
                l1_banks,
                system_memory: config.dispatch == Dispatch::Fast,
                l1_small_size: config.l1_small_size,
                trace_region_size: config.trace_region_size,
                ..AllocatorConfig::new(board, &map)
            }),
            map,
            dram_map: board.dram(),
            workers,
            firmware,
            exports,
            cq_kernels,
            queue: None,
            at: QueueId::FIRST,
            parked: Lane::default(),
            own_kernels,
            order: (config.queues > 1).then(Order::default),
            sub_devices: SubDevices::default(),
            launcher,
            bases: QueueId::ALL.map(QueueId::region_noc_base),
            tracing: trace::Tracing::default(),
            number: NEXT_DEVICE.fetch_add(1, Ordering::Relaxed),
            in_flight: InFlight::default(),
            transfer_bytes: 0,
            programs: 0,
            launches: 0,
            progress: None,
            prints: Prints::default(),
            launched: config.remember_programs.then(ran::Launched::default),
            state: None,
            lost: None,
        };
        device.tell_firmware();
        device.start()?;
        let DeviceConfig { board, dispatch, layout, .. } = config;
        let (board, workers) = (board.name(), device.workers.len());
        info!(target: log::DEVICE, "opened a {board}: {dispatch:?} dispatch, layout {layout}, {workers} workers");
        Ok(device)
    }

    /// The configuration.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }
    /// The board.
    pub fn board(&self) -> Board {
        self.config.board
    }
    /// The cores that programs may use, in the board's order.
    pub fn workers(&self) -> &[NocXy] {
        &self.workers
    }
    /// Logical DRAM banks.
    pub fn dram_banks(&self) -> usize {
        self.dram_map.banks().len()
    }
    /// The workers' memory map.
    pub fn memory_map(&self) -> &MemoryMap {
        &self.map
    }
    /// The allocator of the workers' data space.
    pub fn l1(&self) -> &Allocator<L1Addr> {
        self.memory.l1()
    }
    /// The allocator of the DRAM banks, all of which are allocated alike.
    pub fn dram(&self) -> &Allocator<DramAddr> {
        self.memory.dram()
    }
    /// The memory of the board, to allocate in.
    ///
    /// # Errors
    /// A device that stopped earlier.
    pub fn memory(&mut self) -> Result<&mut MemorySpace, RuntimeError> {
        self.alive()?;
        Ok(&mut self.memory)
    }
    /// The link to the chip.
    pub fn chip(&self) -> &C {
        self.card.link()
    }
    /// The command queue, under fast dispatch; the first of two.
    pub fn queue(&self) -> Option<&CommandQueue> {
        self.queue.as_ref()
    }
    /// All records so far, if the configuration asks for them: what `tilework cq decode` reads.
    pub fn captured(&self) -> Option<&[u8]> {
        self.queue.as_ref()?.captured()
    }
    /// Calls `f` at intervals while a run waits. [`ControlFlow::Break`] ends the run with
    /// [`RuntimeError::Interrupted`].
    pub fn on_progress(&mut self, f: impl FnMut(Progress) -> ControlFlow<()> + 'static) {
        self.progress = Some(Box::new(f));
    }
    /// Counts since the device was opened.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            commands: self.queues().map(CommandQueue::commands).sum::<u64>()
                + self.launcher.as_ref().map_or(0, Launcher::subordinate_commands),
            records: self.queues().map(CommandQueue::records).sum(),
            record_bytes: self.queues().map(CommandQueue::record_bytes).sum(),
            programs: self.programs,
            cache: self.launcher.as_ref().map(Launcher::counts).unwrap_or_default(),
            chip: self.card.link().inspect().map(Inspect::counts),
            time: self.card.link().measured(),
        }
    }

    /// Refuses a new call to a device that stopped.
    fn alive(&self) -> Result<(), RuntimeError> {
        match &self.lost {
            Some(RuntimeError::Closed) => Err(RuntimeError::Closed),
            Some(why) => Err(RuntimeError::Lost(why.to_string().lines().next().unwrap_or_default().to_owned())),
            None => Ok(()),
        }
    }
    /// Tells who waits for a device that stopped what stopped it.
    fn stopped(&self) -> Result<(), RuntimeError> {
        self.lost.clone().map_or(Ok(()), Err)
    }
    /// Remembers an error after which the device cannot be used, and tells everybody who waits.
    fn note(&mut self, error: RuntimeError) -> RuntimeError {
        if error.is_fatal() {
            error!(target: log::DEVICE, "stopped: {error}");
            self.lost.get_or_insert_with(|| error.clone());
            for queue in [&mut self.queue, &mut self.parked.queue].into_iter().flatten() {
                queue.fail(&error);
            }
        }
        error
    }
}
