//! Races by order, not by luck: two accesses to the same bytes, at least one of them a write, that
//! nothing orders, whenever they happened.
//!
//! [`RaceObserver`] follows all accesses of a run with vector clocks (happens-before). Agents are
//! the cores, threads and units of the coprocessor, what each NIU has under way, and the host. What
//! orders them:
//!
//! - a core's own program, and the requests that it starts;
//! - counters and transaction ids of the NIU that a core loads, which show that requests are over
//!   (`niu`); writes on one channel of the NoC arrive in order;
//! - words by which agents tell each other something (`words`) and registers of streams;
//! - a core's stores reach L1 in order, but a request or a register may overtake them until the
//!   core has loaded what it stored (BabyRISCV/MemoryOrdering.md);
//! - pushes, waits, semaphores, mutexes, banks and queues of the coprocessor (`units`).
//!
//! Taken as ordered, so that nothing is reported that is right: resets, and what the host does one
//! after the other. docs/races.md has the rules, all that is taken as ordered, and the table of
//! bugs by which they are tested.

mod blocks;
mod clock;
mod coprocessor;
mod cores;
mod lines;
mod niu;
mod registers;
mod report;
mod requests;
mod shadow;
mod units;
mod words;

use crate::numbers::ByNumber;
use crate::{Checks, Code, Space};
use blocks::Blocks;
use clock::{Clock, Moment, Part, Stamp};
use coprocessor::Done;
use lines::Pending;
use niu::Niu;
use registers::Registers;
use report::{Owner, PartOf, Reports, Where};
use shadow::{Access, Conflict, Shadow};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tilework_abi::board::{Board, PCIE};
use tilework_abi::l1::{MemoryMap, WORKER};
use tilework_abi::noc::{self, NocXy};
use tilework_abi::stream;
use tilework_abi::tensix::{self, L1_SIZE, Processor};
use tilework_driver::Note;
use tilework_sim::{Agent, Cycle, Event, Observer, Spot, Wants, What};
use units::Units;
use words::Words;

/// Requests of the host that are kept: more than can be on their way.
const HOST_OPS: usize = 4096;

/// A core.
#[derive(Clone, Debug)]
struct Core {
    clock: Clock,
    /// What it does, counted by releases.
    own: Stamp,
    /// Its stores to L1; how many have left the store queue; and how many are surely in L1.
    stores: Stamp,
    emitted: u32,
    arrived: u32,
    /// Its last load of L1.
    last_load: (u32, u32),
    /// It has emptied its cache since.
    fenced: bool,
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
#[derive(Clone, Debug)]
struct Tile {
    xy: NocXy,
    cores: [Core; 5],
    nius: [Niu; 2],
    l1: Shadow,
    words: Words,
    units: Units,
    registers: Registers,
    /// What packer, scalar and configuration unit do in this cycle.
    doing: [Vec<Done>; 3],
    /// The thread whose instruction an unpacker starts, and when it passed the wait gate.
    starting: Option<(u8, Cycle)>,
    /// Lines of L1 that cores have gone through, to be done.
    lines: Vec<Pending>,
    /// It is among those that may have some ([`RaceObserver::behind`]).
    is_behind: bool,
}

/// Where each tile is among all, by its coordinates, which have six bits each.
#[derive(Clone, Debug, Default)]
struct Index(Vec<Option<usize>>);

impl Index {
    #[inline]
    fn place(xy: NocXy) -> usize {
        usize::from(xy.y) << 6 | usize::from(xy.x)
    }

    #[inline]
    fn get(&self, xy: &NocXy) -> Option<&usize> {
        self.0.get(Self::place(*xy))?.as_ref()
    }

    fn add(&mut self, xy: NocXy, at: usize) {
        let place = Self::place(xy);
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        self.0[place] = Some(at);
    }
}

/// A request that is under way.
#[derive(Clone, Debug)]
struct Op {
    moment: Moment,
    /// The access that it does at the other end.
    access: Access,
    /// Where it came from: tile, and the NIU that learns what a read brings.
    from: Option<(usize, usize)>,
    arrivals: u32,
}

/// Looks for races in the events of a run. [`RaceObserver::hand_over`] gives the findings.
#[derive(Clone, Debug)]
pub struct RaceObserver {
    /// The board: reports name a bank of DRAM by its first port.
    board: Board,
    /// Where the worker firmware keeps its mailboxes.
    map: MemoryMap,
    /// Whether launch messages are where this map has them.
    has_launches: bool,
    reserved: Vec<Range<u32>>,
    parts: Vec<PartOf>,
    tiles: Vec<Tile>,
    /// The tiles that may have lines to be done.
    behind: Vec<usize>,
    index: Index,
    dram: ByNumber<u8, Blocks>,
    /// What tiles do in the host's memory.
    system: Blocks,
    ops: ByNumber<u64, Op>,
    /// What the host knows, and its count.
    host: Clock,
    host_own: Stamp,
    /// Its requests, of which nobody says when they are over; only the last ones are kept.
    host_ops: VecDeque<u64>,
    reports: Reports,
    /// Who is told while the run goes on.
    checks: Option<Arc<Mutex<Checks>>>,
}

impl RaceObserver {
    /// An observer of a chip of this board that has not run yet.
    pub fn new(board: Board) -> Self {
        // Part 0 is nobody's, as of words that nobody has accessed.
        let nobody = PartOf { tile: NocXy::new(0, 0), owner: Owner::Host };
        Self {
            board,
            map: WORKER,
            has_launches: true,
            reserved: words::reserved(&WORKER),
            parts: vec![nobody, nobody],
            tiles: Vec::new(),
            behind: Vec::new(),
            index: Index::default(),
            dram: ByNumber::default(),
            system: Blocks::default(),
            ops: ByNumber::default(),
            host: Clock::default(),
            host_own: Stamp { part: 1, count: 0 },
            host_ops: VecDeque::new(),
            reports: Reports::default(),
            checks: None,
        }
    }

    /// An observer of a chip whose host says nothing of its firmware: what lies below all public
    /// firmware is taken for mailboxes, and a word that a core loads right after a `fence` for one
    /// that tells something, as it does before each look at a semaphore.
    pub fn of_stranger(board: Board) -> Self {
        Self { reserved: vec![words::MAILBOXES], has_launches: false, ..Self::new(board) }
    }

    /// Tells what it finds while the run goes on, in the order of cycles.
    #[must_use]
    pub fn telling(self, checks: Arc<Mutex<Checks>>) -> Self {
        Self { checks: Some(checks), ..self }
    }

    /// Knows what another observer of the same program knew, and tells those that it did before.
    pub fn put_back(&mut self, kept: &Self) {
        let checks = self.checks.take();
        *self = Self { checks, ..kept.clone() };
    }

    /// Hands over the races that were found and not told yet, at the end of a run.
    pub fn hand_over(&mut self, checks: &mut Checks) {
        self.catch_up_all(Cycle::MAX);
        self.reports.hand_over(checks);
    }

    #[inline]
    fn tile(&mut self, xy: NocXy) -> usize {
        match self.index.get(&xy) {
            Some(&at) => at,
            None => self.add_tile(xy),
        }
    }

    #[cold]
    fn add_tile(&mut self, xy: NocXy) -> usize {
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
            last_load: (0, 0),
            fenced: false,
            niu_versions: [0; 2],
        });
        let (nius, l1, mut words) = (Default::default(), Shadow::default(), Words::default());
        words.reserve(&self.reserved);
        let (units, registers, doing, starting, lines, is_behind) = Default::default();
        self.tiles.push(Tile { xy, cores, nius, l1, words, units, registers, doing, starting, lines, is_behind });
        self.index.add(xy, self.tiles.len() - 1);
        self.tiles.len() - 1
    }

    fn event(&mut self, event: &Event) {
        if !self.behind.is_empty()
            && let Spot::Tensix(xy) = event.spot
            && Self::matters(&event.what)
        {
            let tile = self.tile(xy);
            if !self.tiles[tile].lines.is_empty() {
                self.catch_up(tile, (event.at, event.agent));
            }
        }
        match (&event.what, event.spot, event.agent) {
            (What::Leaves(packet), Spot::Pcie, _) => self.host_sends(event, packet),
            (What::Arrives(packet), spot, _) => self.arrives(event.at, spot, packet),
            (_, Spot::Tensix(xy), Agent::Coprocessor(unit)) => {
                let tile = self.tile(xy);
                self.coprocessor(tile, unit, event);
            }
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
            What::Store { addr, value, .. } => self.store_register(tile, c, (event.at, event.pc), addr, value),
            What::Fields(ref stores) => {
                for store in stores {
                    let at = event.at + u64::from(store.after);
                    self.store_register(tile, c, (at, store.pc), store.addr, store.value);
                }
            }
            What::Atomic { addr, .. } => self.atomic(tile, c, addr),
            What::Line(ref line) => self.goes_through(tile, core, event, line),
            What::Pushes => self.pushes(tile, c, event.at),
            What::Fence => {
                let core = &mut self.tiles[tile].cores[c];
                core.emitted = core.stores.count;
                core.fenced = true;
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

    // ---- reports ----

    fn bank(&self, bank: u8, bytes: u64) -> Where {
        let banks = self.board.dram();
        let port = banks.banks().iter().find(|each| each.physical == bank).map(|each| each.first_port);
        Where { space: Space::Dram, tile: port.unwrap_or(NocXy::new(0, 0)), bytes }
    }

    fn in_host(bytes: u64) -> Where {
        Where { space: Space::Host, tile: PCIE, bytes }
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
        Some(Stamp { part: core.own.part, count: access.started })
    }
}

impl Observer for RaceObserver {
    fn wants(&self) -> Wants {
        Wants::ACCESSES | Wants::FIELDS | Wants::ARRIVALS | Wants::CORES | Wants::COPROCESSOR
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.event(event));
    }

    fn takes_lines(&self) -> bool {
        true
    }

    fn reached(&mut self, at: Cycle) {
        self.catch_up_all(at);
        if self.reports.is_ready()
            && let Some(mut checks) = self.checks.as_ref().and_then(|checks| checks.lock().ok())
        {
            self.reports.tell(&mut checks);
        }
    }

    fn note(&mut self, _at: Cycle, note: &Note) {
        if let Note::Firmware(firmware) = note {
            self.map = firmware.map;
            self.reserved = words::reserved(&self.map);
            self.tiles.iter_mut().for_each(|tile| tile.words.reserve(&self.reserved));
        }
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
            tensix::TDMA_BASE..tensix::DEBUG_BASE => Self::Coprocessor,
            tensix::LOCAL_BASE..noc::NIU0_BASE => Self::Own,
            _ => Self::Coprocessor,
        }
    }
}

fn number(at: usize) -> Part {
    Part::try_from(at).unwrap_or(Part::MAX)
}
