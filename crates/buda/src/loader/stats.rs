//! Statistics of the loader and events for a timeline.

use std::collections::BTreeMap;
use tilework_netlist::types::{GraphId, QueueId};

/// A point or a length of the loader model's time, in AI clock cycles since the backend was
/// initialised. No time of the simulated chip, which netlists do not run on.
pub type ModelCycle = u64;

/// Kinds of commands with their codes (tt-budabackend, `src/firmware/riscv/*/epoch_q.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Run an epoch.
    Valid = 1,
    /// Skip an epoch that does not use this core.
    NotValid = 2,
    /// Write queue headers.
    IoQueueUpdate = 3,
    /// Change a variable.
    Varinst = 4,
    /// A loop begins.
    LoopStart = 5,
    /// An iteration ends.
    LoopEnd = 6,
    /// Nothing follows.
    EndProgram = 15,
}

impl Command {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Command::Valid => "valid",
            Command::NotValid => "not_valid",
            Command::IoQueueUpdate => "io_queue_update",
            Command::Varinst => "varinst",
            Command::LoopStart => "loop_start",
            Command::LoopEnd => "loop_end",
            Command::EndProgram => "end_program",
        }
    }
}

/// Why the host stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StallReason {
    /// No free slot in a core's command queue.
    CommandQueueFull,
    /// No free slot in a core's command queue, because a loop has run there: its cores write read
    /// pointers back at its end only.
    WriteBack,
    /// The binary to evict is in flight: the host reads read pointers until it is not.
    BinaryInFlight,
    /// Another epoch with the same id modulo the window is in flight.
    EpochIdAlias,
    /// A queue header must be written while an epoch uses the queue.
    QueueInUse,
    /// A queue is allocated over one whose last epoch has not ended.
    DynamicQueue,
    /// Optimisation level 0 waits for each epoch.
    Blocking,
    /// The caller waits for idle.
    Idle,
}

impl StallReason {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            StallReason::CommandQueueFull => "command_queue_full",
            StallReason::WriteBack => "write_back",
            StallReason::BinaryInFlight => "binary_in_flight",
            StallReason::EpochIdAlias => "epoch_id_alias",
            StallReason::QueueInUse => "queue_in_use",
            StallReason::DynamicQueue => "dynamic_queue",
            StallReason::Blocking => "blocking",
            StallReason::Idle => "idle",
        }
    }
}

/// Why a loop of a program does not run on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unrolled {
    /// Its commands do not fit into the command queue.
    CommandQueue,
    /// Its graphs do not fit into the binary cache.
    BinaryCache,
    /// Two of its epochs have the same id modulo the window.
    EpochIds,
    /// It allocates queues.
    Allocation,
    /// One of its graphs is linked to a graph outside of it.
    LinkedGraphs,
}

impl Unrolled {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Unrolled::CommandQueue => "command_queue",
            Unrolled::BinaryCache => "binary_cache",
            Unrolled::EpochIds => "epoch_ids",
            Unrolled::Allocation => "allocation",
            Unrolled::LinkedGraphs => "linked_graphs",
        }
    }
}

/// Waits of one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// How long altogether.
    pub cycles: ModelCycle,
}

/// Counts of a loader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoaderStats {
    /// Binaries written before the first program.
    pub preloads: u64,
    /// Temporal epochs whose commands were written; later iterations of a device loop do not count.
    pub epochs: u64,
    /// Temporal epochs of graphs that are not all linked.
    pub merged_epochs: u64,
    /// Epochs whose binaries were cached.
    pub hits: u64,
    /// Epochs whose binaries had to be written.
    pub misses: u64,
    /// Evicted binaries.
    pub evictions: u64,
    /// Commands by kind, over all cores.
    pub commands: BTreeMap<Command, u64>,
    /// Waits of the host by reason.
    pub stalls: BTreeMap<StallReason, Stalls>,
    /// Waits for all cores of all devices.
    pub full_syncs: u64,
    /// Reads of read pointers in DRAM.
    pub rd_ptr_reads: u64,
    /// Settings of queues that were in place already.
    pub settings_reused: u64,
    /// Queue headers written by the host.
    pub header_writes: u64,
    /// Loops that ran on devices.
    pub device_loops: u64,
    /// Loops that could not run on devices, by reason.
    pub unrolled_loops: BTreeMap<Unrolled, u64>,
    /// The most commands in the queue of a core.
    pub deepest_queue: usize,
    /// When the last core was done.
    pub device_cycles: ModelCycle,
    /// When the host was done.
    pub host_cycles: ModelCycle,
}

/// An event of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderEvent {
    /// When it began.
    pub start: ModelCycle,
    /// When it ended.
    pub end: ModelCycle,
    /// What it was.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// An epoch ran on a device; the times are those of its operations.
    Epoch {
        /// The device.
        device: u32,
        /// Its graph there.
        graph: GraphId,
        /// Number of its temporal epoch in the netlist; what is in a command is this
        /// modulo the window.
        epoch: usize,
        /// Slot of its binaries.
        slot: usize,
        /// When its commands were written.
        issued: ModelCycle,
        /// When every core had passed its commands.
        passed: ModelCycle,
    },
    /// Binaries were written into a slot.
    Binary {
        /// The device.
        device: u32,
        /// Their graph.
        graph: GraphId,
        /// Their slot.
        slot: usize,
        /// The graph that was evicted.
        evicted: Option<GraphId>,
        /// Whether they were preloaded before the first program.
        preload: bool,
    },
    /// Entries in a queue when an epoch had ended.
    Level {
        /// The queue.
        queue: QueueId,
        /// From its read to its write pointer.
        entries: u32,
    },
    /// The host waited.
    Stall(StallReason),
    /// A loop began on the devices; these graphs are pinned.
    LoopStart {
        /// The graphs of its body.
        graphs: Vec<GraphId>,
    },
    /// It has ended.
    LoopEnd,
}
