//! Races by order, not by luck: two accesses to the same bytes, at least one of them a write, that
//! nothing orders, whenever they happened.
//!
//! [`RaceObserver`] follows all accesses of a run with vector clocks (happens-before). Agents are
//! the cores, what each NIU has under way, and the host. What orders them:
//!
//! - a core's own program, and the requests that it starts;
//! - counters and transaction ids of the NIU that a core loads, which show that requests are over
//!   (`niu`); writes on one channel of the NoC arrive in order;
//! - words by which agents tell each other something (`words`) and registers of streams;
//! - a core's stores reach L1 in order, but a request or a register may overtake them until the
//!   core has loaded what it stored (BabyRISCV/MemoryOrdering.md).
//!
//! Taken as ordered, so that nothing is reported that is right: all that the coprocessor reads and
//! writes in L1, cores that use its registers, resets, and what the host does one after the other.
//! docs/races.md has the rules, and the table of bugs by which they are tested.

mod clock;
mod niu;
mod report;
mod shadow;
mod words;

use crate::{Checks, Code, Space};
use clock::{Clock, Moment, Part, Stamp};
use niu::{Does, Niu};
use report::{Owner, PartOf, Reports, Where};
use shadow::{Access, Conflict, Shadow};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::l1::{MemoryMap, WORKER};
use tilework_abi::noc::{self, NocXy, init};
use tilework_abi::stream;
use tilework_abi::tensix::{self, L1_SIZE, Processor};
use tilework_sim::{Agent, Event, Observer, PacketEvent, PacketKind, Request, RequestKind, Spot, Wants, What};
use words::{FLAG_BYTES, Words};

/// Requests of the host that are kept: more than can be on their way.
const HOST_OPS: usize = 4096;

/// What a run's chip is like.
#[derive(Clone, Copy, Debug)]
pub struct RaceConfig {
    /// The board: reports name a bank of DRAM by its first port.
    pub board: Board,
    /// Where the worker firmware keeps its mailboxes.
    pub map: MemoryMap,
}

impl RaceConfig {
    /// A board with our worker firmware.
    pub fn new(board: Board) -> Self {
        Self { board, map: WORKER }
    }
}

/// A core.
#[derive(Debug)]
struct Core {
    clock: Clock,
    /// What it does, counted by releases.
    own: Stamp,
    /// Its stores to L1; how many have left the store queue; and how many have certainly reached L1.
    stores: Stamp,
    emitted: u32,
    arrived: u32,
    /// What it knew when it last stored to a register of the coprocessor.
    pushed: Option<Moment>,
    /// Its last load of L1.
    last_load: (u32, u32),
    /// What it has learned of each NIU.
    niu_versions: [u32; 2],
}

impl Core {
    fn knows(&self, stamp: Stamp) -> bool {
        stamp.part == self.own.part || stamp.part == self.stores.part || self.clock.knows(stamp)
    }

    /// Begins a new count: what follows is not known to those who know of what was before.
    fn release(&mut self) {
        self.own.count += 1;
    }

    fn moment(&self, stores: u32) -> Moment {
        let stores = Stamp { count: stores, ..self.stores };
        Moment { clock: self.clock.clone(), own: [self.own, stores], before: Arc::default() }
    }

    /// The stamp of an access of its own that is no store to L1.
    fn access(&self) -> Stamp {
        Stamp { count: self.own.count + 1, ..self.own }
    }
}

/// A Tensix tile.
#[derive(Debug)]
struct Tile {
    xy: NocXy,
    cores: [Core; 5],
    nius: [Niu; 2],
    l1: Shadow,
    words: Words,
    /// The last value of each stream register that anybody but the coprocessor gave it.
    streams: HashMap<u32, u32>,
}

/// A request that is under way.
#[derive(Debug)]
struct Op {
    moment: Moment,
    /// The access that it does at the other end.
    access: Access,
    /// Where it came from: tile, and the NIU that learns what a read brings.
    from: Option<(usize, usize)>,
    arrivals: u32,
}

/// Looks for races in the events of a run. [`RaceObserver::hand_over`] gives the findings.
#[derive(Debug)]
pub struct RaceObserver {
    config: RaceConfig,
    reserved: Vec<Range<u32>>,
    parts: Vec<PartOf>,
    tiles: Vec<Tile>,
    index: HashMap<NocXy, usize>,
    dram: HashMap<u8, Shadow>,
    ops: HashMap<u64, Op>,
    /// What the host knows, and its count.
    host: Clock,
    host_own: Stamp,
    /// Its requests, of which nobody says when they are over; only the last ones are kept.
    host_ops: VecDeque<u64>,
    reports: Reports,
}

impl RaceObserver {
    /// An observer of a chip that has not run yet.
    pub fn new(config: RaceConfig) -> Self {
        // Part 0 is nobody's, as of words that nobody has accessed.
        let nobody = PartOf { tile: NocXy::new(0, 0), owner: Owner::Host };
        Self {
            config,
            reserved: words::reserved(&config.map),
            parts: vec![nobody, nobody],
            tiles: Vec::new(),
            index: HashMap::new(),
            dram: HashMap::new(),
            ops: HashMap::new(),
            host: Clock::default(),
            host_own: Stamp { part: 1, count: 0 },
            host_ops: VecDeque::new(),
            reports: Reports::default(),
        }
    }

    /// Hands over the races that were found, at the end of a run.
    pub fn hand_over(&mut self, checks: &mut Checks) {
        self.reports.hand_over(checks);
    }

    fn tile(&mut self, xy: NocXy) -> usize {
        if let Some(&at) = self.index.get(&xy) {
            return at;
        }
        let parts = &mut self.parts;
        let mut part = |owner| {
            parts.push(PartOf { tile: xy, owner });
            Stamp { part: number(parts.len() - 1), count: 0 }
        };
        let cores = std::array::from_fn(|core| Core {
            clock: Clock::default(),
            own: part(Owner::Core(core as u8)),
            stores: part(Owner::Stores(core as u8)),
            emitted: 0,
            arrived: 0,
            pushed: None,
            last_load: (0, 0),
            niu_versions: [0; 2],
        });
        let (nius, l1, words) = (Default::default(), Shadow::default(), Words::default());
        self.tiles.push(Tile { xy, cores, nius, l1, words, streams: HashMap::new() });
        self.index.insert(xy, self.tiles.len() - 1);
        self.tiles.len() - 1
    }

    fn event(&mut self, event: &Event) {
        match (&event.what, event.spot, event.agent) {
            (What::Leaves(packet), Spot::Pcie, _) => self.host_sends(event, packet),
            (What::Arrives(packet), spot, _) => self.arrives(event.at, spot, packet),
            (what, Spot::Tensix(xy), Agent::Core(core)) => {
                let tile = self.tile(xy);
                self.core(tile, core, event, what);
            }
            _ => {}
        }
    }

    fn core(&mut self, tile: usize, core: Processor, event: &Event, what: &What) {
        let c = core.index();
        match *what {
            What::Load { addr, value, cached, bytes } if addr < L1_SIZE => {
                self.load(tile, c, event, addr, bytes, value, cached);
            }
            What::Load { addr, value, .. } => self.load_register(tile, c, addr, value),
            What::Store { addr, bytes, .. } if addr < L1_SIZE => self.store(tile, c, event, addr, bytes),
            What::Store { addr, value, .. } => self.store_register(tile, c, addr, value),
            What::Atomic { addr, .. } => self.atomic(tile, c, addr),
            What::Fence => {
                let core = &mut self.tiles[tile].cores[c];
                core.emitted = core.stores.count;
            }
            What::Request(ref request) => self.request(tile, c, event, request),
            What::Parked(ref addrs) => {
                for &addr in addrs.iter().filter(|addr| **addr < L1_SIZE) {
                    self.tiles[tile].words.add(addr & !3);
                }
            }
            What::Released => self.released(tile, c),
            _ => {}
        }
    }

    // ---- what cores do in L1 ----

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn load(&mut self, tile: usize, c: usize, event: &Event, addr: u32, bytes: u8, value: u32, cached: bool) {
        let Tile { xy, cores, words, l1, .. } = &mut self.tiles[tile];
        let core = &mut cores[c];
        let word = addr & !3;
        words.launch(&self.config.map, addr, value);
        let code = Code { core: Processor::ALL[c], pc: event.pc };
        if core.last_load == (event.pc, addr) {
            words.add(word);
            self.reports.polls(code);
        }
        core.last_load = (event.pc, addr);
        if !cached {
            if core.arrived < core.stores.count {
                let last = l1.last_write(u64::from(addr)).stamp;
                if last.part == core.stores.part {
                    core.arrived = core.arrived.max(last.count);
                }
            }
            core.arrived = core.arrived.max(core.emitted);
        }
        if words.has(&self.reserved, word) {
            words.learn(word, tile * 8 + c, &mut core.clock);
            return;
        }
        let access = Access {
            stamp: core.access(),
            pc: event.pc,
            by: c as u8,
            small: true,
            started: core.own.count + 1,
            at: event.at,
            ..Access::default()
        };
        let conflict = l1.read(u64::from(addr), u64::from(bytes), access, &|stamp| core.knows(stamp));
        let Some(conflict) = conflict else { return };
        let place = Where { space: Space::L1, tile: *xy, bytes: u64::from(bytes) };
        let flag = conflict.earlier.small.then_some(code);
        self.race(conflict, access, place, Some((tile, c)), flag);
        if flag.is_some() {
            self.believe(tile, c, word, conflict.earlier);
        }
    }

    /// A core may have polled a flag and found it at once: what came with it is learned, so that
    /// not everything that follows is reported too.
    fn believe(&mut self, tile: usize, c: usize, word: u32, flag: Access) {
        let Some(of) = self.parts.get(flag.stamp.part as usize).copied() else { return };
        let by = usize::from(flag.by);
        let told = self
            .index
            .get(&of.tile)
            .and_then(|&other| self.tiles[other].cores.get(by))
            .map(|core| core.moment(core.stores.count));
        let Tile { words, cores, .. } = &mut self.tiles[tile];
        if !words.learn_flag(word, &mut cores[c].clock)
            && let Some(told) = told
        {
            told.tell(&mut cores[c].clock);
        }
        cores[c].clock.learn(flag.stamp);
    }

    fn store(&mut self, tile: usize, c: usize, event: &Event, addr: u32, bytes: u8) {
        let Self { tiles, parts, reserved, .. } = self;
        let Tile { xy, cores, words, l1, .. } = &mut tiles[tile];
        let core = &mut cores[c];
        core.release();
        core.stores.count += 1;
        let access = Access {
            stamp: core.stores,
            pc: event.pc,
            by: c as u8,
            small: true,
            started: core.own.count,
            at: event.at,
            ..Access::default()
        };
        let (at, len) = (u64::from(addr), u64::from(bytes));
        let found = if words.has(reserved, addr & !3) {
            words.tell(addr & !3, &core.moment(core.stores.count));
            // Whatever it tells, the NIU may still be reading what it was.
            let leaves = |stamp: Stamp| is_part(parts, stamp, |owner| matches!(owner, Owner::Niu(_, Does::Sources)));
            l1.write(at, len, access, &|stamp| core.knows(stamp) || !leaves(stamp))
        } else {
            l1.write(at, len, access, &|stamp| core.knows(stamp))
        };
        if let Some(conflict) = found {
            let place = Where { space: Space::L1, tile: *xy, bytes: len };
            self.race(conflict, access, place, Some((tile, c)), None);
        }
    }

    fn atomic(&mut self, tile: usize, c: usize, addr: u32) {
        let Tile { cores, words, .. } = &mut self.tiles[tile];
        let core = &mut cores[c];
        core.release();
        core.stores.count += 1;
        core.emitted = core.stores.count;
        core.arrived = core.stores.count;
        words.add(addr & !3);
        words.learn(addr & !3, tile * 8 + c, &mut core.clock);
        words.tell(addr & !3, &core.moment(core.stores.count));
    }

    // ---- registers ----

    fn load_register(&mut self, tile: usize, c: usize, addr: u32, value: u32) {
        let Tile { cores, nius, words, streams, .. } = &mut self.tiles[tile];
        match Register::of(addr) {
            Register::Niu(noc, offset) => {
                let niu = &mut nius[noc];
                let Some(counter) = offset.checked_sub(noc::COUNTERS).filter(|at| *at < noc::COUNTERS_END) else {
                    return;
                };
                if niu.shows(counter as usize / 4, value) && cores[c].niu_versions[noc] != niu.version {
                    cores[c].niu_versions[noc] = niu.version;
                    cores[c].clock.join(&niu.seen);
                    for (_, moment) in niu.started.iter().enumerate().filter(|(other, _)| *other != c) {
                        if let Some(moment) = moment {
                            moment.tell(&mut cores[c].clock);
                        }
                    }
                }
            }
            Register::Stream => {
                words.learn(words::stands_for(addr), tile * 8 + c, &mut cores[c].clock);
                // The coprocessor has changed it, on behalf of one of its threads.
                if streams.insert(addr, value) != Some(value) {
                    learn_of_coprocessor(cores, c);
                }
            }
            Register::Coprocessor => learn_of_coprocessor(cores, c),
            Register::Own => {}
        }
    }

    fn store_register(&mut self, tile: usize, c: usize, addr: u32, value: u32) {
        let Tile { cores, nius, words, streams, .. } = &mut self.tiles[tile];
        let core = &mut cores[c];
        match Register::of(addr) {
            Register::Niu(noc, offset) => {
                let (initiator, field) = (offset / noc::CMD_BUF_STRIDE, offset % noc::CMD_BUF_STRIDE);
                if let (init::CTRL, Some(control)) = (field, nius[noc].control.get_mut(initiator as usize)) {
                    *control = value;
                }
            }
            Register::Stream => {
                core.release();
                words.tell(words::stands_for(addr), &core.moment(core.arrived));
                streams.insert(addr, value);
            }
            Register::Coprocessor => {
                core.release();
                core.pushed = Some(core.moment(core.stores.count));
            }
            Register::Own => {}
        }
    }

    /// Whoever releases a core from reset has prepared what it finds.
    fn released(&mut self, tile: usize, c: usize) {
        let cores = &mut self.tiles[tile].cores;
        for other in 0..cores.len() {
            let moment = cores[other].moment(cores[other].stores.count);
            cores[other].release();
            moment.tell(&mut cores[c].clock);
        }
        cores[c].clock.join(&self.host);
        cores[c].clock.learn(self.host_own);
    }

    // ---- requests ----

    fn request(&mut self, tile: usize, c: usize, event: &Event, request: &Request) {
        let Self { tiles, parts, reserved, .. } = self;
        let Tile { xy, cores, nius, l1, words, .. } = &mut tiles[tile];
        let n = usize::from(request.noc & 1);
        let core = &mut cores[c];
        core.release();
        let stamps = nius[n].start(request, |does| {
            parts.push(PartOf { tile: *xy, owner: Owner::Niu(request.noc, does) });
            number(parts.len() - 1)
        });
        let moment = Moment { before: stamps.before, ..core.moment(core.arrived) };
        nius[n].started[c] = Some(moment.clone());
        let access = Access {
            stamp: stamps.main,
            pc: event.pc,
            by: c as u8,
            small: request.len <= FLAG_BYTES,
            started: core.own.count,
            at: event.at,
            ..Access::default()
        };
        let (at, len) = (request.local_addr, request.len);
        let source = Access { stamp: stamps.source, ..access };
        let own = core.own.part;
        // A core's own stores count only when they have reached L1; all else that it has seen does.
        let ordered = |stamp: Stamp| stamp.part == own || moment.knows(stamp);
        let conflict = match request.kind {
            RequestKind::Read if at < u64::from(L1_SIZE) => {
                l1.write(at, len, access, &ordered).map(|found| (found, access))
            }
            RequestKind::Write if at < u64::from(L1_SIZE) => {
                l1.read(at, len, source, &ordered).map(|found| (found, source))
            }
            _ => None,
        };
        // Of a word that tells something only its own stores matter, which may not be in L1 yet.
        let tells = |found: &Conflict| {
            words.has(reserved, found.addr as u32 & !3) && found.earlier.stamp.part != core.stores.part
        };
        let conflict = conflict.filter(|(found, _)| !tells(found));
        let place = Where { space: Space::L1, tile: *xy, bytes: len };
        let op = Op { moment, access, from: Some((tile, n)), arrivals: stamps.arrivals };
        self.ops.insert(request.id.0, op);
        if let Some((conflict, access)) = conflict {
            self.race(conflict, access, place, Some((tile, c)), None);
        }
    }

    /// The host starts something.
    fn host_sends(&mut self, event: &Event, packet: &PacketEvent) {
        let writes = match packet.kind {
            PacketKind::WriteRequest | PacketKind::AtomicRequest => true,
            PacketKind::ReadRequest => false,
            _ => return,
        };
        self.host_own.count += 1;
        let moment = Moment { clock: self.host.clone(), own: [self.host_own; 2], before: Arc::default() };
        let access = Access {
            stamp: self.host_own,
            by: Access::HOST,
            small: writes && u64::from(packet.len) <= FLAG_BYTES,
            started: self.host_own.count,
            at: event.at,
            ..Access::default()
        };
        self.host_ops.push_back(packet.id.0);
        if self.host_ops.len() > HOST_OPS
            && let Some(oldest) = self.host_ops.pop_front()
        {
            self.ops.remove(&oldest);
        }
        self.ops.entry(packet.id.0).or_insert(Op { moment, access, from: None, arrivals: u32::MAX });
    }

    fn arrives(&mut self, at: u64, spot: Spot, packet: &PacketEvent) {
        let id = packet.id.0;
        let Some(mut op) = self.ops.remove(&id) else { return };
        op.access.at = at;
        let last = match packet.kind {
            PacketKind::WriteRequest => self.write_arrives(spot, packet, &op),
            PacketKind::AtomicRequest => self.atomic_arrives(spot, packet, &op),
            PacketKind::ReadRequest => self.read_arrives(spot, packet, &op),
            _ => op.from.is_none(),
        };
        op.arrivals = op.arrivals.saturating_sub(u32::from(op.from.is_some() && is_request(packet.kind)));
        if !last && op.arrivals != 0 {
            self.ops.insert(id, op);
        }
    }

    fn write_arrives(&mut self, spot: Spot, packet: &PacketEvent, op: &Op) -> bool {
        let len = u64::from(packet.len);
        match spot {
            Spot::Tensix(xy) => {
                let tile = self.tile(xy);
                if packet.addr < u64::from(L1_SIZE) {
                    self.write_l1(tile, packet.addr, len, op);
                } else if let Ok(addr) = u32::try_from(packet.addr)
                    && Register::of(addr) == Register::Stream
                {
                    let moment = with_own(op);
                    self.tiles[tile].words.tell(words::stands_for(addr), &moment);
                }
            }
            Spot::Dram(bank) => {
                let ordered = |stamp| op.moment.knows(stamp);
                let shadow = self.dram.entry(bank).or_default();
                if let Some(conflict) = shadow.write(packet.addr, len, op.access, &ordered) {
                    self.race_of(conflict, op, self.bank(bank, len));
                }
            }
            // The host may look at it whenever it wants, and nobody sees it do so.
            Spot::Pcie => {
                with_own(op).tell(&mut self.host);
            }
            _ => {}
        }
        false
    }

    /// A write to L1, in parts that are data and words that tell something.
    fn write_l1(&mut self, tile: usize, addr: u64, len: u64, op: &Op) {
        let range = addr as u32..(addr + len) as u32;
        let Tile { xy, words, l1, .. } = &mut self.tiles[tile];
        let ordered = |stamp| op.moment.knows(stamp);
        let place = Where { space: Space::L1, tile: *xy, bytes: len };
        if !words.any(&self.reserved, &range) {
            if len <= FLAG_BYTES {
                for word in (range.start & !3..range.end).step_by(4) {
                    words.may_tell(word, with_own(op));
                }
            }
            if let Some(conflict) = l1.write(addr, len, op.access, &ordered) {
                self.race_of(conflict, op, place);
            }
            return;
        }
        let moment = with_own(op);
        let mut found = None;
        for word in (range.start & !3..range.end).step_by(4) {
            if words.has(&self.reserved, word) {
                words.tell(word, &moment);
                continue;
            }
            let (from, to) = (word.max(range.start), (word + 4).min(range.end));
            found = found.or(l1.write(u64::from(from), u64::from(to - from), op.access, &ordered));
        }
        if let Some(conflict) = found {
            self.race_of(conflict, op, place);
        }
    }

    fn atomic_arrives(&mut self, spot: Spot, packet: &PacketEvent, op: &Op) -> bool {
        if let Spot::Tensix(xy) = spot
            && let Ok(addr) = u32::try_from(packet.addr)
        {
            let tile = self.tile(xy);
            let words = &mut self.tiles[tile].words;
            words.add(addr & !3);
            words.tell(addr & !3, &with_own(op));
        }
        false
    }

    /// A read is at the memory that it reads: its data was written to the own tile when it began,
    /// as far as order goes.
    fn read_arrives(&mut self, spot: Spot, packet: &PacketEvent, op: &Op) -> bool {
        let (addr, len) = (packet.addr, u64::from(packet.len));
        let ordered = |stamp| op.moment.knows(stamp);
        let mut brought = Clock::default();
        // Its answer says that the writes before it on its channel have been done.
        op.moment.before.iter().for_each(|&stamp| brought.learn(stamp));
        match spot {
            Spot::Tensix(xy) => {
                let tile = self.tile(xy);
                let Tile { words, l1, .. } = &mut self.tiles[tile];
                let small = len <= FLAG_BYTES;
                let end = addr.saturating_add(len).min(1 << 32);
                for word in (addr & !3..end).step_by(4).take_while(|_| small) {
                    words.read(word as u32, &mut brought);
                }
                let is_word = small && words.has(&self.reserved, addr as u32 & !3);
                if addr < u64::from(L1_SIZE)
                    && !is_word
                    && let Some(conflict) = l1.read(addr, len, op.access, &ordered)
                {
                    self.race_of(conflict, op, Where { space: Space::L1, tile: xy, bytes: len });
                }
            }
            Spot::Dram(bank) => {
                let shadow = self.dram.entry(bank).or_default();
                if let Some(conflict) = shadow.read(addr, len, op.access, &ordered) {
                    self.race_of(conflict, op, self.bank(bank, len));
                }
            }
            Spot::Pcie => {
                brought.join(&self.host);
                brought.learn(self.host_own);
            }
            _ => {}
        }
        match op.from {
            Some((tile, noc)) => {
                let niu = &mut self.tiles[tile].nius[noc];
                niu.version += u32::from(niu.seen.join(&brought));
            }
            None => {
                self.host.join(&brought);
            }
        }
        false
    }

    // ---- reports ----

    fn bank(&self, bank: u8, bytes: u64) -> Where {
        let banks = self.config.board.dram();
        let port = banks.banks().iter().find(|each| each.physical == bank).map(|each| each.first_port);
        Where { space: Space::Dram, tile: port.unwrap_or(NocXy::new(0, 0)), bytes }
    }

    fn race_of(&mut self, conflict: Conflict, op: &Op, place: Where) {
        let started = self.start_of(&conflict.earlier).is_some_and(|stamp| op.moment.knows(stamp));
        self.reports.race(&self.parts, &conflict, op.access, place, started, None);
    }

    fn race(
        &mut self,
        conflict: Conflict,
        access: Access,
        place: Where,
        by: Option<(usize, usize)>,
        flag: Option<Code>,
    ) {
        let start = self.start_of(&conflict.earlier);
        let core = by.map(|(tile, c)| &self.tiles[tile].cores[c]);
        let started = start.zip(core).is_some_and(|(stamp, core)| core.knows(stamp));
        self.reports.race(&self.parts, &conflict, access, place, started, flag);
    }

    /// By which somebody knows that an access was begun.
    fn start_of(&self, access: &Access) -> Option<Stamp> {
        let of = self.parts.get(access.stamp.part as usize)?;
        let core = self.tiles.get(*self.index.get(&of.tile)?)?.cores.get(usize::from(access.by))?;
        report::start_of(access, Some(core.own.part))
    }
}

impl Observer for RaceObserver {
    fn wants(&self) -> Wants {
        Wants::ACCESSES | Wants::NOC | Wants::CORES
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.event(event));
    }
}

/// Whose register it is, as far as order is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Register {
    /// A core's own memory, clocks and resets.
    Own,
    /// Of an NIU, by its offset.
    Niu(usize, u32),
    /// Of a stream.
    Stream,
    /// Of the coprocessor, mailboxes and the like.
    Coprocessor,
}

impl Register {
    fn of(addr: u32) -> Self {
        match addr {
            noc::NIU0_BASE..noc::NIU1_BASE => Self::Niu(0, addr - noc::NIU0_BASE),
            noc::NIU1_BASE..stream::BASE => Self::Niu(1, addr - noc::NIU1_BASE),
            stream::BASE..tensix::MOP_CFG_BASE => Self::Stream,
            tensix::LOCAL_BASE..noc::NIU0_BASE => Self::Own,
            _ => Self::Coprocessor,
        }
    }
}

/// The coprocessor orders what its threads do in ways that are not followed yet: taken for ordered.
fn learn_of_coprocessor(cores: &mut [Core; 5], c: usize) {
    for other in 0..cores.len() {
        if other != c
            && let Some(moment) = cores[other].pushed.clone()
        {
            moment.tell(&mut cores[c].clock);
        }
    }
}

/// What arrives with a write: all that its core knew, and the write.
fn with_own(op: &Op) -> Moment {
    let before = op.moment.before.iter().copied().chain([op.access.stamp]).collect();
    Moment { before, ..op.moment.clone() }
}

fn is_part(parts: &[PartOf], stamp: Stamp, which: impl Fn(Owner) -> bool) -> bool {
    parts.get(stamp.part as usize).is_some_and(|part| which(part.owner))
}

fn is_request(kind: PacketKind) -> bool {
    matches!(kind, PacketKind::WriteRequest | PacketKind::AtomicRequest | PacketKind::ReadRequest)
}

fn number(at: usize) -> Part {
    Part::try_from(at).unwrap_or(Part::MAX)
}
