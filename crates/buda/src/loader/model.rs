//! The loader: its decisions for each step of a program.

use super::cache::{AllPinned, Policy};
use super::cost::{Core, GraphCost};
use super::device::Device;
use super::stats::{Command, EventKind, LoaderEvent, LoaderStats, ModelCycle, StallReason, Unrolled};
use super::{temporal, timing};
use crate::epoch::plan::Plan;
use crate::program::{Effect, Launch, LoopBody, Pointer, ResolvedSettings};
use crate::queue::life;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;
use tilework_netlist::types::{Arch, GraphId, Instruction, InstructionKind, Netlist, QueueId};

/// Configuration of the loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderConfig {
    /// Optimisation level, 0 to 4; more is 4.
    pub opt_level: u8,
    /// The architecture. Default: Blackhole if the netlist names it, else the first that it names.
    pub arch: Option<Arch>,
    /// Slots of a command queue. Default: the architecture's.
    pub command_slots: Option<usize>,
    /// Slots of a binary cache.
    pub binary_slots: usize,
    /// The most events that are kept for a timeline.
    pub events: usize,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self { opt_level: 4, arch: None, command_slots: None, binary_slots: timing::BINARY_SLOTS, events: 1 << 20 }
    }
}

impl LoaderConfig {
    fn policy(&self) -> Policy {
        match self.opt_level {
            0 => Policy::Off,
            2 | 3 => Policy::MruBacktrace,
            _ => Policy::Lru,
        }
    }

    /// The architecture for a netlist.
    pub fn arch_of(&self, netlist: &Netlist) -> Arch {
        let listed = |arch: &Arch| netlist.archs.contains(arch);
        let blackhole = Some(Arch::Blackhole).filter(listed);
        self.arch.or(blackhole).or(netlist.archs.first().copied()).unwrap_or(Arch::Blackhole)
    }
}

/// Why the loader cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum LoaderError {
    #[error("device {device}: {error}; it was to make room for graph {graph}")]
    Pinned { device: u32, graph: String, error: AllPinned },
}

/// The loader.
#[derive(Debug)]
pub struct Loader {
    pub(super) netlist: Arc<Netlist>,
    plan: Arc<Plan>,
    /// The temporal epoch of each graph.
    pub(super) epochs: Vec<usize>,
    pub(super) config: LoaderConfig,
    pub(super) devices: BTreeMap<u32, Device>,
    pub(super) costs: Vec<GraphCost>,
    /// The host's clock.
    pub(super) now: ModelCycle,
    /// By queue: when the data of the last epoch that writes it are available, and when the last
    /// epoch that uses it has ended.
    pub(super) ready: Vec<ModelCycle>,
    pub(super) used_until: Vec<ModelCycle>,
    /// Settings that are in place.
    pub(super) in_place: BTreeMap<QueueId, ResolvedSettings>,
    /// Pointers that variables have moved since headers were last written.
    pub(super) moved: BTreeSet<QueueId>,
    /// By id modulo the window: the last epoch with that id, and when it has passed.
    pub(super) ids: BTreeMap<usize, (usize, ModelCycle)>,
    /// Queues that were deallocated.
    deallocated: Vec<QueueId>,
    /// Graphs of a temporal epoch whose commands are not written yet, since more of its
    /// graphs may follow.
    pub(super) gathered: Vec<Gathered>,
    pub(super) device_loop: Option<DeviceLoop>,
    pub(super) stats: LoaderStats,
    pub(super) events: Vec<LoaderEvent>,
}

/// Linked graphs that have been executed and whose commands are written together with
/// those of others.
#[derive(Debug)]
pub(super) struct Gathered {
    pub launches: Vec<Launch>,
    /// Slots of their binaries.
    pub slots: Vec<usize>,
    /// Fill levels of their queues after they have run.
    pub levels: Vec<(QueueId, u32)>,
}

/// A loop that runs on the devices.
#[derive(Debug)]
pub(super) struct DeviceLoop {
    /// Iterations done, of this loop and the nested ones.
    turns: Vec<u64>,
    /// Graphs of its body.
    graphs: Vec<GraphId>,
    started: ModelCycle,
}

impl DeviceLoop {
    /// Whether the commands are in the queues already.
    pub(super) fn repeats(&self) -> bool {
        self.turns.iter().any(|turns| *turns > 0)
    }
}

impl Loader {
    /// A loader before [`Loader::initialize`].
    pub fn new(netlist: Arc<Netlist>, plan: Arc<Plan>, config: LoaderConfig) -> Self {
        let config = LoaderConfig { opt_level: config.opt_level.min(4), ..config };
        let arch = config.arch_of(&netlist);
        let cost = |graph| GraphCost::new(&netlist, GraphId(graph), arch);
        let costs: Vec<GraphCost> = (0..netlist.graphs.len()).map(cost).collect();
        let slots = config.command_slots.unwrap_or_else(|| timing::command_slots(arch));
        let mut cores: BTreeMap<u32, BTreeSet<Core>> = BTreeMap::new();
        for (graph, cost) in netlist.graphs.iter().zip(&costs) {
            cores.entry(graph.target_device).or_default().extend(&cost.cores);
        }
        let device = |more| Device::new(timing::grid(arch), more, slots, config.policy(), config.binary_slots);
        let devices = cores.iter().map(|(id, more)| (*id, device(more))).collect();
        let zeros = vec![0; netlist.queues.len()];
        let epochs = temporal::epochs(&netlist, &plan, arch);
        Self {
            netlist,
            plan,
            epochs,
            config,
            devices,
            costs,
            now: 0,
            ready: zeros.clone(),
            used_until: zeros,
            in_place: BTreeMap::new(),
            moved: BTreeSet::new(),
            ids: BTreeMap::new(),
            deallocated: Vec::new(),
            gathered: Vec::new(),
            device_loop: None,
            stats: LoaderStats::default(),
            events: Vec::new(),
        }
    }

    /// Writes the binaries of the first graphs of each device into its cache.
    pub fn initialize(&mut self) -> Result<(), LoaderError> {
        if self.config.opt_level == 0 {
            return Ok(());
        }
        for graph in (0..self.netlist.graphs.len()).map(GraphId) {
            let device = self.netlist.graph(graph).target_device;
            let cache = &self.devices[&device].cache;
            if cache.binaries().len() < cache.capacity() {
                self.write_binary(device, graph, true)?;
            }
        }
        Ok(())
    }

    /// Handles a change of a variable.
    pub fn changed(&mut self, effects: &[Effect]) {
        self.launch();
        match &self.device_loop {
            Some(running) if running.repeats() => self.on_all_devices(timing::DEVICE_INSTRUCTION),
            Some(_) => self.issue_to_all(Command::Varinst, timing::DEVICE_INSTRUCTION),
            None => {
                let moves = effects.iter().filter(|effect| effect.pointer == Pointer::Read);
                self.moved.extend(moves.map(|effect| effect.queue));
                if self.config.opt_level == 0 {
                    self.write_moved();
                }
            }
        }
    }

    /// Handles the execution of linked graphs. Immediately following graphs of the same temporal
    /// epoch on other devices are launched together with them.
    pub fn execute(&mut self, launches: Vec<Launch>) -> Result<(), LoaderError> {
        if self.device_loop.as_ref().is_some_and(DeviceLoop::repeats) {
            self.repeat(&launches);
            return Ok(());
        }
        if !self.joins(&launches) {
            self.launch();
        }
        self.gather(launches)?;
        if self.config.opt_level == 0 {
            self.launch();
        }
        Ok(())
    }

    /// Records the fill levels of the queues of the graphs that were executed last.
    pub fn levels(&mut self, graphs: &[GraphId], level: impl Fn(QueueId) -> u32) {
        let costs = graphs.iter().map(|graph| &self.costs[graph.0]);
        let queues: BTreeSet<QueueId> = costs.flat_map(|cost| cost.reads.union(&cost.writes)).copied().collect();
        let levels = queues.into_iter().map(|queue| (queue, level(queue)));
        match self.gathered.last_mut() {
            Some(last) => last.levels = levels.collect(),
            None => self.show_levels(&levels.collect::<Vec<_>>()),
        }
    }

    pub(super) fn show_levels(&mut self, levels: &[(QueueId, u32)]) {
        for &(queue, entries) in levels {
            let at = self.used_until[queue.0];
            self.event(at, at, EventKind::Level { queue, entries });
        }
    }

    /// Handles the start of a loop; `instructions` are those of the program.
    pub fn loop_start(&mut self, start: &LoopBody, instructions: &[Instruction]) {
        self.launch();
        if let Some(running) = &mut self.device_loop {
            let repeats = running.repeats();
            running.turns.push(0);
            match repeats {
                true => self.on_all_devices(timing::DEVICE_INSTRUCTION),
                false => self.issue_to_all(Command::LoopStart, timing::DEVICE_INSTRUCTION),
            }
            return;
        }
        if self.config.opt_level < 4 {
            return;
        }
        let body = instructions.get(start.body.clone()).unwrap_or_default();
        match self.fits(body) {
            Ok(graphs) => self.start_device_loop(graphs, commands(body)),
            Err(reason) => *self.stats.unrolled_loops.entry(reason).or_default() += 1,
        }
    }

    /// Handles the end of an iteration.
    pub fn loop_turn(&mut self, last: bool) {
        self.launch();
        let Some(running) = &mut self.device_loop else {
            if last {
                self.write_moved();
            }
            return;
        };
        let repeats = running.repeats();
        if let Some(turns) = running.turns.last_mut() {
            *turns += 1;
        }
        if last {
            running.turns.pop();
        }
        let over = running.turns.is_empty();
        match repeats {
            true => self.on_all_devices(timing::DEVICE_INSTRUCTION),
            false => self.issue_to_all(Command::LoopEnd, timing::DEVICE_INSTRUCTION),
        }
        if over {
            self.end_device_loop();
        }
    }

    /// Handles the allocation of queues.
    pub fn allocate(&mut self, queues: &[QueueId]) {
        self.launch();
        for &queue in queues {
            let over = |old: &&QueueId| **old == queue || life::overlap(&self.netlist, queue, **old).is_some();
            let until = self.deallocated.iter().filter(over).map(|old| self.used_until[old.0]).max();
            if until.is_some_and(|until| until > self.now) {
                self.full_sync(StallReason::DynamicQueue);
            }
        }
        self.deallocated.retain(|old| self.used_until[old.0] > self.now);
    }

    /// Handles the deallocation of queues.
    pub fn deallocate(&mut self, queues: &[QueueId]) {
        self.launch();
        self.deallocated.extend(queues);
    }

    /// Handles the end of the program.
    pub fn end_program(&mut self) {
        self.launch();
        self.write_moved();
    }

    /// Handles a failed program: its device loops end.
    pub fn abandon_program(&mut self) {
        self.launch();
        self.end_device_loop();
        self.moved.clear();
    }

    /// The host waits until all cores are done.
    pub fn wait_for_idle(&mut self) {
        let until = self.idle_at();
        self.stall(StallReason::Idle, until);
    }

    /// Ends all cores.
    pub fn finish(&mut self) {
        self.issue_to_all(Command::EndProgram, timing::DEVICE_INSTRUCTION);
        self.wait_for_idle();
    }

    /// Statistics so far.
    pub fn stats(&self) -> LoaderStats {
        let device_cycles = self.devices.values().map(Device::free_at).max().unwrap_or(0);
        LoaderStats { device_cycles, host_cycles: self.now, ..self.stats.clone() }
    }

    /// The architecture that is modelled.
    pub fn arch(&self) -> Arch {
        self.config.arch_of(&self.netlist)
    }

    /// Events so far, in the order of decisions.
    pub fn events(&self) -> &[LoaderEvent] {
        &self.events
    }

    /// Checks whether a loop of these instructions can run on the devices; returns its graphs
    /// or the reason.
    fn fits(&self, body: &[Instruction]) -> Result<Vec<GraphId>, Unrolled> {
        let mut graphs = BTreeSet::new();
        for instruction in body {
            match &instruction.kind {
                InstructionKind::Execute { graph, .. } => _ = graphs.insert(*graph),
                InstructionKind::AllocateQueue(_) | InstructionKind::DeallocateQueue(_) => {
                    return Err(Unrolled::Allocation);
                }
                _ => {}
            }
        }
        // Graphs gathered before the loop would be launched inside it, but only once.
        let whole = |graph: &GraphId| self.plan.group(self.plan.group_of(*graph)).iter().all(|of| graphs.contains(of));
        if !graphs.iter().all(whole) {
            return Err(Unrolled::LinkedGraphs);
        }
        let slots = self.devices.values().flat_map(|device| device.queues.values()).map(|queue| queue.slots()).min();
        if slots.is_some_and(|slots| commands(body) > slots) {
            return Err(Unrolled::CommandQueue);
        }
        let epochs: BTreeSet<usize> = graphs.iter().map(|graph| self.epochs[graph.0]).collect();
        let ids: BTreeSet<usize> = epochs.iter().map(|epoch| epoch % timing::EPOCH_ID_WINDOW).collect();
        if ids.len() < epochs.len() {
            return Err(Unrolled::EpochIds);
        }
        let of =
            |device: &u32| graphs.iter().filter(|graph| self.netlist.graph(**graph).target_device == *device).count();
        if self.devices.iter().any(|(id, device)| of(id) > device.cache.capacity()) {
            return Err(Unrolled::BinaryCache);
        }
        Ok(graphs.into_iter().collect())
    }

    fn start_device_loop(&mut self, graphs: Vec<GraphId>, commands: usize) {
        self.write_moved();
        self.wait_for_space(commands);
        let epochs: Vec<usize> = graphs.iter().map(|graph| self.epochs[graph.0]).collect();
        if epochs.iter().any(|epoch| self.alias(*epoch).is_some()) {
            self.full_sync(StallReason::EpochIdAlias);
        }
        self.devices.values_mut().for_each(|device| device.cache.pin(&graphs));
        self.stats.device_loops += 1;
        self.event(self.now, self.now, EventKind::LoopStart { graphs: graphs.clone() });
        self.device_loop = Some(DeviceLoop { turns: vec![0], graphs, started: self.now });
        self.issue_to_all(Command::LoopStart, timing::DEVICE_INSTRUCTION);
    }

    fn end_device_loop(&mut self) {
        let Some(ended) = self.device_loop.take() else { return };
        let mut end = ended.started;
        for device in self.devices.values_mut() {
            device.queues.values_mut().for_each(|queue| queue.end_loop());
            let free_at = device.free_at();
            end = end.max(free_at);
            device.cache.unpin();
            for graph in &ended.graphs {
                let slot = device.cache.binaries().iter().find(|binary| binary.graph == *graph).map(|b| b.slot);
                slot.into_iter().for_each(|slot| device.cache.use_until(slot, free_at));
            }
        }
        for graph in &ended.graphs {
            let epoch = self.epochs[graph.0];
            self.in_flight(epoch, end);
        }
        self.event(ended.started, end, EventKind::LoopEnd);
    }

    /// Writes the headers of queues whose pointers variables have moved.
    fn write_moved(&mut self) {
        let moved: Vec<QueueId> = std::mem::take(&mut self.moved).into_iter().collect();
        self.update_headers(&moved);
    }
}

/// The most commands that instructions become on the device, including those of the loop
/// around them.
fn commands(body: &[Instruction]) -> usize {
    let of = |instruction: &Instruction| match &instruction.kind {
        InstructionKind::Execute { settings, .. } => 1 + settings.len().div_ceil(timing::UPDATES_PER_COMMAND),
        InstructionKind::VarInst { .. } | InstructionKind::Loop(_) | InstructionKind::EndLoop => 1,
        _ => 0,
    };
    2 + body.iter().map(of).sum::<usize>()
}
