//! The tracker: turns the chip's events into activity.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::Arc;

use crate::activity::{Activity, Kernel, Listener, Place};
use crate::commands::Commands;
use crate::flight::Flight;
use crate::tables::ByTile;
use crate::why::{Scene, counter};
use crate::{ChipTimeline, Picture, Profile, Why};
use tilework_abi::addr::{Cycle, L1Addr};
use tilework_abi::cb;
use tilework_abi::cq::layout::prefetch_core::{PREFETCH_Q, PREFETCH_Q_ENTRY_SIZE};
use tilework_abi::cq::status::{STATUS, STATUS_BYTES, word};
use tilework_abi::l1::{GO_ENTRIES, MemoryMap, sync};
use tilework_abi::msg::RUN_DONE;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{L1_SIZE, Processor};
use tilework_driver::{CodeNote, LaunchNote, Note, QueueNote};
use tilework_sim::{Agent, Event, Observer, PacketEvent, PacketKind, Request, Spot, Wants, What};

/// Who listens.
#[derive(Default)]
pub struct Listeners {
    /// A timeline that is written.
    pub timeline: Option<ChipTimeline<Box<dyn Write + Send>>>,
    /// A profile.
    pub profile: Option<Profile>,
    /// What a page shows.
    pub picture: Option<Picture>,
}

impl Listeners {
    fn each(&mut self) -> impl Iterator<Item = &mut dyn Listener> {
        let timeline = self.timeline.as_mut().map(|it| it as &mut dyn Listener);
        let profile = self.profile.as_mut().map(|it| it as &mut dyn Listener);
        let picture = self.picture.as_mut().map(|it| it as &mut dyn Listener);
        timeline.into_iter().chain(profile).chain(picture)
    }

    fn tell(&mut self, at: Cycle, activity: &Activity<'_>) {
        self.each().for_each(|listener| listener.hear(at, activity));
    }
}

/// Observes a chip for those who listen.
pub struct Tracker {
    /// Who listens.
    pub listeners: Listeners,
    map: MemoryMap,
    wants: Wants,
    tiles: ByTile<Tile>,
    flight: Flight,
    /// Commands of the queues, for a timeline.
    commands: Option<Commands>,
}

/// What is known of a tile.
#[derive(Default)]
struct Tile {
    /// Launches that the host has announced and the tile has not started, in order.
    announced: VecDeque<Arc<LaunchNote>>,
    /// The one that runs.
    launch: Option<Arc<LaunchNote>>,
    /// A go message has come, and BRISC has not been seen to read it.
    go: bool,
    cores: [Core; 5],
    /// Whether it runs parts of a command queue.
    queue: bool,
    /// Entries in the prefetch queue.
    entries: i64,
    /// Counts of pages received and acknowledged, by circular buffer.
    counts: BTreeMap<u32, (u32, u32)>,
}

#[derive(Default)]
struct Core {
    kernel: Option<(Arc<Kernel>, Cycle)>,
    wait: Option<(Why, u32, Cycle)>,
    /// It is parked or held in an access.
    stopped: bool,
}

impl Tracker {
    /// A tracker of a chip with firmware that has this map.
    pub fn new(map: MemoryMap, mut listeners: Listeners) -> Self {
        let wanted = listeners.each().fold(Wants::NOTHING, |all, listener| all | listener.wants());
        let wants = wanted | Wants::CORES | Wants::NOC | Wants::REGISTERS;
        let commands = listeners.timeline.is_some().then(Commands::default);
        Self { listeners, map, wants, tiles: ByTile::default(), flight: Flight::default(), commands }
    }

    fn tell(&mut self, at: Cycle, activity: &Activity<'_>) {
        self.listeners.tell(at, activity);
    }

    fn tile(&mut self, xy: NocXy) -> &mut Tile {
        self.tiles.get_or_insert_with(xy, Tile::default)
    }

    // Kernels

    fn start(&mut self, at: Cycle, place: Place, kernel: Arc<Kernel>) {
        self.tell(at, &Activity::KernelStarts(place, &kernel));
        self.tile(place.tile).cores[place.core.index()].kernel = Some((kernel, at));
    }

    fn end(&mut self, at: Cycle, place: Place) {
        self.end_wait(at, place);
        self.end_command(at, place);
        if let Some((kernel, since)) = self.tile(place.tile).cores[place.core.index()].kernel.take() {
            self.tell(at, &Activity::KernelEnds(place, &kernel, since));
        }
    }

    /// The kernel of a core in the launch of its tile.
    fn kernel_of(&self, place: Place) -> Option<Arc<Kernel>> {
        let launch = self.tiles.get(place.tile)?.launch.as_ref()?;
        let role = launch.roles.iter().find(|role| role.cores.contains(&place.tile));
        let code = role.and_then(|role| role.kernels.iter().find(|code| code.processor == place.core));
        Some(Arc::new(Kernel {
            launch: Some(launch.number),
            program: launch.program.as_str().into(),
            role: role.map_or("", |role| role.name.trim_matches('"')).into(),
            name: code.map_or("(firmware)", |code| code.name.as_str()).into(),
            text: code.map_or(0..0, |code| code.text.clone()),
        }))
    }

    /// BRISC of a tile has read a go message.
    fn launched(&mut self, at: Cycle, tile: NocXy) {
        let state = self.tile(tile);
        state.go = false;
        state.launch = state.announced.pop_front();
        let place = Place { tile, core: Processor::Brisc };
        if let Some(kernel) = self.kernel_of(place) {
            self.start(at, place, kernel);
        }
    }

    /// BRISC waits for a program, although it has not ended the last one: what it read was not a go
    /// signal.
    fn not_launched(&mut self, at: Cycle, tile: NocXy) {
        self.end(at, Place { tile, core: Processor::Brisc });
        let state = self.tile(tile);
        if let Some(launch) = state.launch.take() {
            state.announced.push_front(launch);
        }
    }

    // Waits

    /// A core stops. There are many waits: the tile is looked for once, and its kernel stays there.
    fn wait(&mut self, at: Cycle, place: Place, pc: u32, why: impl FnOnce(&Scene<'_>) -> Why) {
        let Self { tiles, map, listeners, .. } = self;
        let tile = tiles.get_or_insert_with(place.tile, Tile::default);
        let scene = Scene { map, launch: tile.launch.as_deref(), queue: tile.queue, core: place.core };
        let why = why(&scene);
        let core = &mut tile.cores[place.core.index()];
        core.stopped = true;
        let Some((kernel, _)) = &core.kernel else { return };
        if why.kind != Why::IDLE {
            listeners.tell(at, &Activity::WaitStarts(place, kernel, &why, pc));
            core.wait = Some((why, pc, at));
        } else if place.core == Processor::Brisc && !tile.queue {
            self.not_launched(at, place.tile);
        }
    }

    fn end_wait(&mut self, at: Cycle, place: Place) {
        let Self { tiles, listeners, .. } = self;
        let core = &mut tiles.get_or_insert_with(place.tile, Tile::default).cores[place.core.index()];
        if let (Some((why, pc, since)), Some((kernel, _))) = (core.wait.take(), &core.kernel) {
            listeners.tell(at, &Activity::WaitEnds(place, kernel, &why, pc, since));
        }
    }

    fn resumed(&mut self, at: Cycle, place: Place) {
        self.tile(place.tile).cores[place.core.index()].stopped = false;
        self.end_wait(at, place);
        if place.core == Processor::Brisc && self.tiles.get(place.tile).is_some_and(|tile| tile.go) {
            self.launched(at, place.tile);
        }
    }

    // Words

    /// A core stores to an observed word or a register.
    fn stored(&mut self, at: Cycle, tile: NocXy, core: Option<Processor>, addr: u32, bytes: u8, value: u32) {
        if addr >= L1_SIZE {
            return self.counted_pages(at, tile, addr, value);
        }
        let Some(core) = core else { return };
        let place = Place { tile, core };
        if self.tiles.get(tile).is_some_and(|tile| tile.queue) {
            return self.stored_of_queue(at, place, addr, value);
        }
        let (sync_base, go) = (self.map.subordinate_sync().get(), self.map.go.get());
        for (byte, state) in (addr..).zip(value.to_le_bytes()).take(usize::from(bytes)) {
            if (sync_base..sync_base + 4).contains(&byte) {
                self.synced(at, place, Processor::ALL[(byte - sync_base) as usize + 1], state);
            } else if (go..go + 4 * GO_ENTRIES).contains(&byte) && (byte - go) % 4 == 3 && state == RUN_DONE {
                self.end(at, place);
            }
        }
    }

    /// A subordinate's byte is written, by BRISC or by itself.
    fn synced(&mut self, at: Cycle, by: Place, of: Processor, state: u8) {
        let place = Place { tile: by.tile, core: of };
        match state {
            sync::GO if by.core == Processor::Brisc => {
                if let Some(kernel) = self.kernel_of(place) {
                    self.end(at, place);
                    self.start(at, place, kernel);
                }
            }
            sync::DONE if by.core == of => self.end(at, place),
            _ => {}
        }
    }

    /// A counter of a circular buffer, perhaps.
    fn counted_pages(&mut self, at: Cycle, tile: NocXy, addr: u32, value: u32) {
        let Some((buffer, received)) = counter(&self.map, addr) else { return };
        let state = self.tile(tile);
        let counts = state.counts.entry(buffer).or_default();
        *(if received { &mut counts.0 } else { &mut counts.1 }) = value & cb::COUNTER_MASK;
        let pages = i64::from(counts.0.wrapping_sub(counts.1) & cb::COUNTER_MASK);
        let launch = state.launch.clone();
        let Some(note) = launch.as_ref().and_then(|launch| launch.cbs.iter().find(|cb| cb.index == buffer)) else {
            return;
        };
        // Between the two stores that clear both counters the difference means nothing.
        if pages <= i64::from(note.pages) {
            self.tell(at, &Activity::Level(tile, buffer, &note.name, pages));
        }
    }

    // Commands of a queue

    fn loaded(&mut self, at: Cycle, place: Place, addr: u32, bytes: u8, value: u32) {
        let command = self.commands.as_mut().and_then(|commands| commands.loaded(place, addr, bytes, value));
        if let Some(command) = command {
            self.tell(at, &Activity::CommandStarts(place, &command));
        }
    }

    fn end_command(&mut self, at: Cycle, place: Place) {
        if self.commands.as_mut().is_some_and(|commands| commands.counted(place)) {
            self.tell(at, &Activity::CommandEnds(place));
        }
    }

    fn stored_of_queue(&mut self, at: Cycle, place: Place, addr: u32, value: u32) {
        let within = L1Addr::new(addr);
        if STATUS.contains(within) && (addr - STATUS.base().get()) % STATUS_BYTES == word::COMMANDS {
            self.end_command(at, place);
            self.tell(at, &Activity::Commands(place, value));
        } else if PREFETCH_Q.contains(within) && value == 0 {
            self.queue_level(at, place.tile, -1);
        }
    }

    fn queue_level(&mut self, at: Cycle, tile: NocXy, change: i64) {
        let entries = &mut self.tile(tile).entries;
        *entries = (*entries + change).max(0);
        let level = *entries;
        self.tell(at, &Activity::QueueLevel(tile, level));
    }

    // Packets

    fn arrives(&mut self, at: Cycle, spot: Spot, packet: &PacketEvent) {
        if let (Spot::Tensix(tile), PacketKind::WriteRequest) = (spot, packet.kind) {
            self.written(at, tile, packet);
        }
        if let Some(tile) = self.flight.arrives(packet) {
            self.tell(at, &Activity::RequestEnds(packet.id, tile));
        }
    }

    /// A packet has written L1: perhaps a go message or entries of a prefetch queue.
    fn written(&mut self, at: Cycle, tile: NocXy, packet: &PacketEvent) {
        let Some(addr) = u32::try_from(packet.addr).ok().filter(|&addr| addr < L1_SIZE) else { return };
        let go = self.map.go.get();
        let Some(state) = self.tiles.get_mut(tile) else { return };
        if state.queue && PREFETCH_Q.contains(L1Addr::new(addr)) {
            // The host clears the whole queue with longer ones before it starts.
            if packet.len == PREFETCH_Q_ENTRY_SIZE {
                self.queue_level(at, tile, 1);
            }
            return;
        }
        let is_go = (go..go + 4 * GO_ENTRIES).contains(&addr) && packet.len <= 4 * GO_ENTRIES;
        let brisc = &state.cores[Processor::Brisc.index()];
        if is_go && !state.announced.is_empty() && brisc.kernel.is_none() {
            state.go = true;
            // A core that sleeps reads it when it wakes; the other ones are about to.
            if !brisc.stopped {
                self.launched(at, tile);
            }
        }
    }

    /// A request of a command queue's core may be a go signal.
    fn sends_go(&mut self, at: Cycle, place: Place, request: &Request) {
        let go = u64::from(self.map.go.get());
        let is_queue = self.tiles.get(place.tile).is_some_and(|tile| tile.queue);
        if let (Spot::Tensix(to), true) = (request.remote, is_queue)
            && (go..go + u64::from(4 * GO_ENTRIES)).contains(&request.remote_addr)
            && let Some(launch) = self.tiles.get(to).and_then(|tile| tile.announced.front().cloned())
        {
            self.tell(at, &Activity::Go(place, &launch));
        }
    }

    fn core_event(&mut self, event: &Event, place: Place) {
        let at = event.at;
        match &event.what {
            What::Parked(addrs) => self.wait(at, place, event.pc, |scene| scene.parked(addrs)),
            What::Blocked(addr) => self.wait(at, place, event.pc, |scene| scene.blocked(*addr)),
            What::Resumed => self.resumed(at, place),
            What::Held => self.end(at, place),
            What::Store { addr, bytes, value } => {
                self.stored(at, place.tile, Some(place.core), *addr, *bytes, *value);
            }
            What::Load { addr, bytes, value, .. } => self.loaded(at, place, *addr, *bytes, *value),
            What::Request(request) => {
                self.sends_go(at, place, request);
                self.flight.start(place.tile, request);
                let kernel = self.tiles.get(place.tile).and_then(|tile| tile.cores[place.core.index()].kernel.clone());
                let kernel = kernel.map(|(kernel, _)| kernel);
                self.tell(at, &Activity::RequestStarts(place, kernel.as_ref(), request));
            }
            What::Counted(counts) => {
                let kernel = self.tiles.get(place.tile).and_then(|tile| tile.cores[place.core.index()].kernel.clone());
                let kernel = kernel.map(|(kernel, _)| kernel);
                self.tell(at, &Activity::Counted(place, kernel.as_ref(), counts));
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event) {
        match (event.spot, event.agent) {
            (Spot::Tensix(tile), Agent::Core(core)) => self.core_event(event, Place { tile, core }),
            (spot, Agent::Niu(noc)) => match &event.what {
                What::Leaves(packet) => self.tell(event.at, &Activity::Packet(spot, noc, true, packet)),
                What::Arrives(packet) => {
                    self.tell(event.at, &Activity::Packet(spot, noc, false, packet));
                    self.arrives(event.at, spot, packet);
                }
                _ => {}
            },
            (Spot::Tensix(tile), Agent::Coprocessor(unit)) => match event.what {
                What::Busy { thread, until } => self.tell(event.at, &Activity::Works(tile, unit, thread, until)),
                What::UnitStore { addr, value, .. } => self.stored(event.at, tile, None, addr, 4, value),
                _ => {}
            },
            _ => {}
        }
    }

    fn queue_starts(&mut self, at: Cycle, note: &QueueNote) {
        self.tile(note.tile).queue = true;
        if let Some(commands) = &mut self.commands {
            commands.queue(note);
        }
        let program: Arc<str> = format!("command queue {}", note.queue).into();
        for code in &note.kernels {
            let CodeNote { name, processor, text, .. } = code;
            let (name, text) = (name.as_str().into(), text.clone());
            let kernel = Kernel { launch: None, program: program.clone(), role: "queue".into(), name, text };
            self.start(at, Place { tile: note.tile, core: *processor }, Arc::new(kernel));
        }
    }
}

impl Observer for Tracker {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn lines(&self) -> Vec<std::ops::Range<u32>> {
        let (sync, go) = (self.map.subordinate_sync().get(), self.map.go.get());
        let regions = [PREFETCH_Q, STATUS].map(|region| region.base().get()..region.end().get());
        [sync..sync + 4, go..go + 4 * GO_ENTRIES].into_iter().chain(regions).collect()
    }

    fn loads(&self) -> Vec<(NocXy, std::ops::Range<u32>)> {
        self.commands.iter().flat_map(Commands::rings).collect()
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.event(event));
    }

    fn note(&mut self, at: Cycle, note: &Note) {
        match note {
            Note::Launch(launch) => {
                self.tell(at, &Activity::Launch(launch));
                if let Some(commands) = &mut self.commands {
                    commands.launch(launch);
                }
                for &tile in &launch.cores {
                    self.tile(tile).announced.push_back(launch.clone());
                }
            }
            Note::Commands(sent) => {
                if let Some(commands) = &mut self.commands {
                    commands.commands(sent);
                }
            }
            Note::Queue(queue) => self.queue_starts(at, queue),
            Note::Firmware(firmware) => self.map = firmware.map,
            Note::Allocated(buffer) => self.tell(at, &Activity::Buffer(buffer)),
            Note::Freed(id) => self.tell(at, &Activity::Freed(*id)),
            Note::Within(_) => {}
        }
    }

    fn reached(&mut self, at: Cycle) {
        self.tell(at, &Activity::Reached);
    }
}
