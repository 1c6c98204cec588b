//! Writing commands, binaries and queue headers, and the waits before them.

use super::cost::GraphCost;
use super::model::{Gathered, Loader, LoaderError};
use super::stats::{Command, EventKind, LoaderEvent, ModelCycle, StallReason};
use super::timing;
use crate::program::{Launch, ResolvedSettings};
use tilework_netlist::types::{GraphId, QueueId};

impl Loader {
    /// Writes the queue settings of an execution, unless they are in place.
    pub(super) fn settings(&mut self, launch: &Launch) {
        let reuse = self.config.opt_level >= 2;
        let mut new = Vec::new();
        for settings in &launch.settings {
            // The position in the file does not count.
            let settings = ResolvedSettings { at: Default::default(), ..*settings };
            let old = self.in_place.insert(settings.queue, settings);
            match reuse && old == Some(settings) {
                true => self.stats.settings_reused += 1,
                false => new.push(settings.queue),
            }
        }
        self.update_headers(&new);
    }

    /// Writes headers of queues: by the host when no epoch uses them, or by a command to the cores.
    pub(super) fn update_headers(&mut self, queues: &[QueueId]) {
        if queues.is_empty() {
            return;
        }
        if self.config.opt_level >= 3 {
            for updates in queues.chunks(timing::UPDATES_PER_COMMAND) {
                self.issue_to_all(Command::IoQueueUpdate, timing::HEADER_UPDATE * updates.len() as u64);
            }
            return;
        }
        let until = queues.iter().map(|queue| self.used_until[queue.0]).max().unwrap_or(0);
        self.stall(StallReason::QueueInUse, until);
        let headers: u64 = queues.iter().map(|queue| self.netlist.queue(*queue).buffers.len().max(1) as u64).sum();
        self.stats.header_writes += headers;
        self.now += headers * timing::HOST_WRITE;
    }

    /// The same command to every core of every device.
    pub(super) fn issue_to_all(&mut self, command: Command, cycles: ModelCycle) {
        self.wait_for_space(1);
        let in_loop = self.device_loop.is_some();
        for device in self.devices.values_mut() {
            self.now += device.queues.len() as u64 * write_cost(self.config.opt_level);
            let arrival = self.now + timing::HOST_TO_CHIP;
            for queue in device.queues.values_mut() {
                queue.push(queue.free_at().max(arrival) + timing::POLL + cycles, in_loop);
            }
            *self.stats.commands.entry(command).or_default() += device.queues.len() as u64;
            self.stats.deepest_queue = self.stats.deepest_queue.max(device.deepest());
        }
    }

    /// Accounts for a command of a device loop that is executed again.
    pub(super) fn on_all_devices(&mut self, cycles: ModelCycle) {
        for queue in self.devices.values_mut().flat_map(|device| device.queues.values_mut()) {
            queue.busy(queue.free_at() + cycles);
        }
    }

    /// Whether linked graphs can be launched together with the gathered ones: they belong to the
    /// same temporal epoch, run on other devices, and have settings only for queues that the others
    /// do not use, so that these can be written first.
    pub(super) fn joins(&self, launches: &[Launch]) -> bool {
        let gathered = || self.gathered.iter().flat_map(|part| &part.launches);
        let device = |launch: &Launch| self.netlist.graph(launch.graph).target_device;
        let uses = |launch: &Launch, queue: QueueId| {
            let GraphCost { reads, writes, .. } = &self.costs[launch.graph.0];
            reads.contains(&queue) || writes.contains(&queue)
        };
        launches.iter().all(|launch| {
            gathered().all(|other| {
                self.epochs[other.graph.0] == self.epochs[launch.graph.0]
                    && device(other) != device(launch)
                    && !launch.settings.iter().any(|settings| uses(other, settings.queue))
            })
        })
    }

    /// Writes settings and binaries of linked graphs; [`Loader::launch`] writes their commands.
    pub(super) fn gather(&mut self, launches: Vec<Launch>) -> Result<(), LoaderError> {
        let Some(first) = launches.first() else { return Ok(()) };
        let epoch = self.epochs[first.graph.0];
        launches.iter().for_each(|launch| self.settings(launch));
        if let Some(passed) = self.alias(epoch) {
            match self.config.opt_level {
                4 => self.full_sync(StallReason::EpochIdAlias),
                _ => self.stall(StallReason::EpochIdAlias, passed),
            }
        }
        let slots = launches.iter().map(|launch| self.binary(launch.graph)).collect::<Result<_, _>>()?;
        self.gathered.push(Gathered { launches, slots, levels: Vec::new() });
        Ok(())
    }

    /// Writes the commands of all gathered graphs.
    pub(super) fn launch(&mut self) {
        let parts = std::mem::take(&mut self.gathered);
        if parts.is_empty() {
            return;
        }
        let all = || parts.iter().flat_map(|part| &part.launches);
        for launch in all() {
            self.wait_for_space_on(self.netlist.graph(launch.graph).target_device, 1);
        }
        for launch in all() {
            let device = self.netlist.graph(launch.graph).target_device;
            self.now += self.devices[&device].queues.len() as u64 * write_cost(self.config.opt_level);
        }
        self.stats.epochs += 1;
        self.stats.merged_epochs += u64::from(parts.len() > 1);
        let issued = self.now;
        for part in parts {
            let passed = self.run(&part.launches, &part.slots, issued + timing::HOST_TO_CHIP, Some(issued));
            self.show_levels(&part.levels);
            if self.config.opt_level == 0 {
                self.stall(StallReason::Blocking, passed + timing::HOST_TO_CHIP);
            }
        }
    }

    /// Accounts for an epoch of a device loop in a later iteration than the first.
    pub(super) fn repeat(&mut self, launches: &[Launch]) {
        let slots: Vec<usize> = launches.iter().filter_map(|launch| self.resident(launch.graph)).collect();
        self.stats.hits += slots.len() as u64;
        self.run(launches, &slots, 0, None);
    }

    fn resident(&self, graph: GraphId) -> Option<usize> {
        let device = self.netlist.graph(graph).target_device;
        let binaries = self.devices[&device].cache.binaries();
        binaries.iter().find(|binary| binary.graph == graph).map(|binary| binary.slot)
    }

    /// Runs linked graphs on the devices. Their operations begin when all of their cores are free
    /// and their inputs have been written. With `issued`, their commands are written as well.
    /// Returns when every core has passed them.
    fn run(
        &mut self,
        launches: &[Launch],
        slots: &[usize],
        arrival: ModelCycle,
        issued: Option<ModelCycle>,
    ) -> ModelCycle {
        let overhead = timing::POLL + timing::DECODE + timing::dram_read(timing::BINARY_BYTES) + timing::INIT;
        let (mut begin, mut cycles) = (0, 0);
        for launch in launches {
            let (cost, device) = (&self.costs[launch.graph.0], self.netlist.graph(launch.graph).target_device);
            let queues = &self.devices[&device].queues;
            let there = cost.cores.iter().filter_map(|core| queues.get(core)).map(|queue| queue.free_at().max(arrival));
            let data = cost.reads.iter().map(|queue| self.ready[queue.0]);
            begin =
                begin.max(there.max().unwrap_or(arrival) + overhead + timing::PROLOGUE).max(data.max().unwrap_or(0));
            cycles = cycles.max(cost.cycles);
        }
        let end = begin + cycles;
        let mut last = end;
        for (launch, &slot) in launches.iter().zip(slots) {
            let passed = self.pass(launch.graph, slot, arrival, end + timing::EPILOGUE, issued.is_some());
            last = last.max(passed);
            let epoch = self.epochs[launch.graph.0];
            let device = self.netlist.graph(launch.graph).target_device;
            let at = issued.unwrap_or(begin);
            let kind = EventKind::Epoch { device, graph: launch.graph, epoch, slot, issued: at, passed };
            self.event(begin, end, kind);
            self.used(launch.graph, end);
        }
        if let Some(launch) = launches.first() {
            let epoch = self.epochs[launch.graph.0];
            self.in_flight(epoch, last);
        }
        last
    }

    /// All cores of a device pass the commands of an epoch: those of its operations when it has
    /// ended, the others at once.
    fn pass(&mut self, graph: GraphId, slot: usize, arrival: ModelCycle, end: ModelCycle, write: bool) -> ModelCycle {
        let Self { netlist, devices, costs, device_loop, stats, .. } = self;
        let in_loop = device_loop.is_some();
        let device = devices.get_mut(&netlist.graph(graph).target_device).expect("every graph's device is known");
        let GraphCost { cores, .. } = &costs[graph.0];
        let (mut passed, mut valid) = (end, 0);
        for (core, queue) in &mut device.queues {
            let done = match cores.contains(core) {
                true => end,
                false => queue.free_at().max(arrival) + timing::POLL + timing::SKIP,
            };
            valid += u64::from(cores.contains(core));
            match write {
                true => queue.push(done, in_loop),
                false => queue.busy(done),
            }
            passed = passed.max(done);
        }
        device.cache.use_until(slot, passed);
        if write {
            *stats.commands.entry(Command::Valid).or_default() += valid;
            *stats.commands.entry(Command::NotValid).or_default() += device.queues.len() as u64 - valid;
            stats.deepest_queue = stats.deepest_queue.max(device.deepest());
        }
        passed
    }

    fn used(&mut self, graph: GraphId, end: ModelCycle) {
        let GraphCost { reads, writes, .. } = &self.costs[graph.0];
        for queue in writes {
            self.ready[queue.0] = self.ready[queue.0].max(end);
        }
        for queue in reads.iter().chain(writes) {
            self.used_until[queue.0] = self.used_until[queue.0].max(end);
        }
    }

    /// Returns the slot of a graph's binaries; writes them if they are not cached.
    fn binary(&mut self, graph: GraphId) -> Result<usize, LoaderError> {
        let device = self.netlist.graph(graph).target_device;
        let found = self.devices.get_mut(&device).and_then(|device| device.cache.hit(graph));
        match found {
            Some(slot) => {
                self.stats.hits += 1;
                Ok(slot)
            }
            None => {
                self.stats.misses += 1;
                self.write_binary(device, graph, false)
            }
        }
    }

    /// Writes binaries into the cache of a device; waits until the evicted ones are not in flight.
    pub(super) fn write_binary(&mut self, device: u32, graph: GraphId, preload: bool) -> Result<usize, LoaderError> {
        let cache = &self.devices[&device].cache;
        let (slot, evicted) = cache.victim(self.now).map_err(|error| LoaderError::Pinned {
            device,
            graph: self.netlist.graph(graph).name.clone(),
            error,
        })?;
        if let Some(evicted) = evicted {
            self.stats.evictions += 1;
            if evicted.busy_until > self.now {
                self.stats.rd_ptr_reads += 1;
                self.now += timing::HOST_READ;
                self.stall(StallReason::BinaryInFlight, evicted.busy_until);
            }
        }
        let start = self.now;
        self.now += timing::host_store(timing::BINARY_BYTES * self.costs[graph.0].cores.len() as u64);
        let pinned = self.device_loop.is_some();
        self.devices.get_mut(&device).expect("looked at above").cache.insert(graph, slot, pinned);
        self.stats.preloads += u64::from(preload);
        let evicted = evicted.map(|binary| binary.graph);
        self.event(start, self.now, EventKind::Binary { device, graph, slot, evicted, preload });
        Ok(slot)
    }

    /// Waits until every queue of every device has this many free slots.
    pub(super) fn wait_for_space(&mut self, slots: usize) {
        let devices: Vec<u32> = self.devices.keys().copied().collect();
        devices.into_iter().for_each(|device| self.wait_for_space_on(device, slots));
    }

    /// Waits until every queue of a device has this many free slots.
    fn wait_for_space_on(&mut self, device: u32, slots: usize) {
        if self.devices[&device].short_of(slots) == 0 {
            return;
        }
        self.read_pointers(device, slots);
        if self.devices[&device].short_of(slots) > 0 {
            let (until, in_loop) = self.devices[&device].free_by(slots);
            self.stall(if in_loop { StallReason::WriteBack } else { StallReason::CommandQueueFull }, until);
            self.read_pointers(device, slots);
        }
    }

    fn read_pointers(&mut self, device: u32, slots: usize) {
        let Some(device) = self.devices.get_mut(&device) else { return };
        let cores = device.short_of(slots) as u64;
        self.stats.rd_ptr_reads += cores;
        self.now += cores * timing::HOST_READ;
        device.refresh(slots, self.now);
    }

    /// Records that an issued epoch is in flight until `until`.
    pub(super) fn in_flight(&mut self, epoch: usize, until: ModelCycle) {
        let last = self.ids.entry(epoch % timing::EPOCH_ID_WINDOW).or_insert((epoch, 0));
        // The end of a device loop may come after that of a later epoch on another device.
        *last = if last.0 == epoch { (epoch, last.1.max(until)) } else { (epoch, until) };
    }

    /// If another epoch with the same id modulo the window is in flight: when it will have passed.
    pub(super) fn alias(&self, epoch: usize) -> Option<ModelCycle> {
        let (other, passed) = self.ids.get(&(epoch % timing::EPOCH_ID_WINDOW))?;
        (*other != epoch && *passed > self.now).then_some(*passed)
    }

    /// Waits for all cores of all devices.
    pub(super) fn full_sync(&mut self, reason: StallReason) {
        self.stats.full_syncs += 1;
        let until = self.idle_at();
        self.stall(reason, until);
    }

    pub(super) fn idle_at(&self) -> ModelCycle {
        self.devices.values().map(|device| device.free_at()).max().unwrap_or(0) + timing::HOST_TO_CHIP
    }

    pub(super) fn stall(&mut self, reason: StallReason, until: ModelCycle) {
        if until <= self.now {
            return;
        }
        let stalls = self.stats.stalls.entry(reason).or_default();
        stalls.count += 1;
        stalls.cycles += until - self.now;
        self.event(self.now, until, EventKind::Stall(reason));
        self.now = until;
    }

    pub(super) fn event(&mut self, start: ModelCycle, end: ModelCycle, kind: EventKind) {
        if self.events.len() < self.config.events {
            self.events.push(LoaderEvent { start, end, kind });
        }
    }
}

/// Host cycles to write a command to one core: the command and the write pointer, which level 4
/// writes with the next one.
fn write_cost(opt_level: u8) -> u64 {
    let command = timing::HOST_WRITE + timing::host_store(timing::COMMAND_BYTES);
    match opt_level {
        4 => command,
        _ => command + timing::HOST_WRITE,
    }
}
