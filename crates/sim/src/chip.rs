//! The whole chip: tiles on two NoCs under one clock, and the host's end of the PCIe link.
//!
//! The host is outside the chip but on the same clock. Its accesses take their modelled time: a
//! posted write costs the host little and arrives later; a read costs a round trip, during which
//! the chip continues; a wait for a word of pinned memory is an event, not a poll.

mod debug;
mod twin;

pub use debug::{Advanced, CoreView, ReadTicket, Thread};

use crate::arc::ArcTile;
use crate::bugs::Bugs;
use crate::coverage::Coverage;
use crate::crew::Worked;
use crate::distance::Distances;
use crate::dram::DramBank;
use crate::inert::InertTiles;
use crate::late::LateCores;
use crate::noc::{Grid, GridBuilder, GridError, LatePackets, Network, NodeId, Outbox, Packet, Place};
use crate::node::Outlook;
use crate::pcie::{Bar, HostBus, Pcie};
use crate::probe::{Hub, Observer, Packets, Wants};
use crate::sched::{Scheduler, Step, Until};
use crate::tile::{Activity, CodeBook, Tile, Waiting};
use crate::{Cycle, Fault, NEVER, Node, timing};
use std::num::NonZeroUsize;
use std::sync::Arc;
use tilework_abi::board::{self, Board, DramMap, Harvesting};
use tilework_abi::grid;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_driver::Note;

/// Lines that a core has begun to go through more cycles ago are told as far as it has come.
const LINE_CYCLES: Cycle = 256;

/// The configuration of a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChipConfig {
    /// The board.
    pub board: Board,
    /// The low word of the serial numbers of the board and its chip, which telemetry tells. Cards
    /// of one machine have different ones.
    pub serial: u32,
    /// What is fused off on its chip.
    pub harvesting: Harvesting,
    /// Whether the NIUs translate coordinates, as on every card as shipped.
    pub translation: bool,
    /// Whether polling cores sleep. It changes nothing but the time that a run takes; tests switch
    /// it off to show that.
    pub parking: bool,
    /// The documented bugs that it has.
    pub bugs: Bugs,
    /// How many threads run the tiles when many of them are busy; all of the machine's unless
    /// given. It changes nothing but the time that a run takes.
    pub threads: Option<NonZeroUsize>,
    /// Whether a wrong access of the host is answered with ones and told by [`Chip::bar_read`] and
    /// [`Chip::take_refused`], as the card of another program is to do it. Without this it is a
    /// fault like a program's, which no host can miss.
    pub answers_host_errors: bool,
    /// Whether the coprocessors count which instructions they execute, in which modes
    /// ([`Chip::coverage`]).
    pub coverage: bool,
    /// Whether packets are late, so that they overtake each other wherever the documents allow it.
    pub late: Option<LatePackets>,
    /// Whether cores that leave reset or a poll loop are late.
    pub late_cores: Option<LateCores>,
}

impl ChipConfig {
    /// The usual configuration of card `number` of a machine.
    pub fn of_card(number: usize, board: Board) -> Self {
        Self { serial: u32::try_from(number).unwrap_or(u32::MAX - 1) + 1, ..Self::new(board) }
    }

    /// The usual configuration of a board.
    pub const fn new(board: Board) -> Self {
        Self {
            board,
            serial: 1,
            harvesting: board.harvesting(),
            translation: true,
            parking: true,
            bugs: Bugs::AS_CHIP,
            threads: None,
            answers_host_errors: false,
            coverage: false,
            late: None,
            late_cores: None,
        }
    }
}

/// Why the chip could not do what the host asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChipError {
    /// A fault of a program. The chip is stopped for good.
    #[error("{0}")]
    Fault(Fault),
    /// The host waits, no core can run and nothing is in flight, so nothing will ever change.
    #[error("deadlock at cycle {cycle}: {} cores wait and nothing is in flight", waiting.len())]
    Deadlock {
        /// When the last thing happened.
        cycle: Cycle,
        /// The cores that wait, and what for.
        waiting: Vec<Waiting>,
    },
    /// The cycle budget that the host allowed is used up.
    #[error("still running after {cycles} cycles ({} cores busy)", busy.len())]
    Budget {
        /// How many were allowed.
        cycles: Cycle,
        /// The cores that execute.
        busy: Vec<(NocXy, Processor, u32)>,
    },
    /// An observer has ended the run. The chip is stopped for good.
    #[error("an observer ended the run at cycle {cycle}")]
    Ended {
        /// The end of the window with what it ended the run for.
        cycle: Cycle,
    },
}

impl From<Fault> for ChipError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Counts of a whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChipStats {
    /// Cycles since power-on.
    pub cycles: Cycle,
    /// Instructions executed by all cores.
    pub instructions: u64,
    /// Instructions of poll iterations that cost nothing because the core slept.
    pub skipped: u64,
    /// Payload bytes that both NoCs have carried.
    pub noc_bytes: u64,
    /// Packets that both NoCs have carried; a multicast counts once.
    pub noc_packets: u64,
    /// Bytes from host to device over PCIe.
    pub pcie_to_device: u64,
    /// Bytes from device to host over PCIe.
    pub pcie_to_host: u64,
}

/// A node of the chip.
#[derive(Clone)]
enum AnyNode {
    Tensix(Box<Tile>),
    Dram(Box<DramBank>),
    Pcie(Box<Pcie>),
    Arc(Box<ArcTile>),
    Inert(Box<InertTiles>),
    /// Another thread runs it.
    Away(Away),
}

/// In the place of a node that another thread runs. Nothing happens here, and nothing comes here.
#[derive(Clone)]
struct Away;

impl Node for Away {
    fn next(&self) -> Cycle {
        NEVER
    }
    fn deliver(&mut self, _at: Cycle, _packet: impl Into<Box<Packet>>) {}
    fn run(&mut self, _until: Cycle, _out: &mut Outbox) -> Result<(), Fault> {
        Ok(())
    }
}

impl Worked for AnyNode {
    fn away() -> Self {
        Self::Away(Away)
    }
}

macro_rules! each {
    ($any:expr, $node:ident => $body:expr) => {
        match $any {
            AnyNode::Tensix($node) => $body,
            AnyNode::Dram($node) => $body,
            AnyNode::Pcie($node) => $body,
            AnyNode::Arc($node) => $body,
            AnyNode::Inert($node) => $body,
            AnyNode::Away($node) => $body,
        }
    };
}

impl Node for AnyNode {
    #[inline(always)]
    fn next(&self) -> Cycle {
        each!(self, node => node.next())
    }
    fn outlook(&self) -> Outlook {
        each!(self, node => node.outlook())
    }
    #[inline]
    fn computes(&self) -> bool {
        matches!(self, Self::Tensix(_))
    }
    fn rested(&self) -> Cycle {
        each!(self, node => node.rested())
    }
    #[inline]
    fn deliver(&mut self, at: Cycle, packet: impl Into<Box<Packet>>) {
        each!(self, node => node.deliver(at, packet));
    }
    #[inline(always)]
    fn run(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault> {
        each!(self, node => node.run(until, out))
    }
    #[inline]
    fn faces_host(&self) -> bool {
        matches!(self, Self::Pcie(_))
    }
    fn speculate(&mut self, end: Cycle, limit: Cycle) {
        each!(self, node => node.speculate(end, limit));
    }
}

/// The chip with its host link.
pub struct Chip {
    config: ChipConfig,
    nodes: Vec<AnyNode>,
    pcie: usize,
    scheduler: Scheduler<AnyNode>,
    /// The host's own time; never behind the scheduler's when the host acts.
    host: Cycle,
    fault: Option<Fault>,
    grid: Arc<Grid>,
    /// The observers, if there are any.
    hub: Option<Box<Hub>>,
    /// When one of them has ended the run.
    ended: Option<Cycle>,
}

impl Chip {
    /// A chip just powered on: all cores held, memories zero.
    ///
    /// # Errors
    /// Harvesting that the coordinate translation has no place for.
    pub fn new(config: ChipConfig) -> Result<Self, GridError> {
        let layout = Layout::of(config.harvesting, config.translation);
        let grid = Arc::new(layout.grid(config.harvesting, config.translation)?);
        let book = CodeBook::new();
        let mut nodes = Vec::new();
        for (i, &(place, xy)) in layout.tensix.iter().enumerate() {
            let mut tile = Box::new(Tile::new(place, xy, i as u8, &grid, &book));
            tile.set_parking(config.parking);
            tile.set_bugs(config.bugs);
            tile.set_late(config.late_cores);
            if config.coverage {
                tile.count_modes();
            }
            nodes.push(AnyNode::Tensix(tile));
        }
        for bank in 0..board::DRAM_BANKS {
            nodes.push(AnyNode::Dram(Box::new(DramBank::new(bank as u8).with_nius(grid.clone()))));
        }
        let pcie = nodes.len();
        let mut host = Pcie::new(layout.pcie.0, grid.clone());
        if config.answers_host_errors {
            host.answer_errors();
        }
        nodes.push(AnyNode::Pcie(Box::new(host)));
        nodes.push(AnyNode::Arc(Box::new(ArcTile::new((config.board, config.serial), layout.arc.0, grid.clone()))));
        nodes.push(AnyNode::Inert(Box::new(InertTiles::new(layout.inert, &grid))));
        let machine = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = config.threads.unwrap_or_else(machine).get();
        let mut network = Network::new();
        if let Some(late) = config.late {
            network.make_late(late, pcie as NodeId);
        }
        let distances = Distances::new(&layout.places(nodes.len())).with_dram(pcie - board::DRAM_BANKS..pcie);
        let scheduler = Scheduler::new(network, distances, threads);
        Ok(Self { config, nodes, pcie, scheduler, host: 0, fault: None, grid, hub: None, ended: None })
    }

    /// Shares windows among the threads however little work they are.
    #[cfg(test)]
    pub(crate) fn share_every_window(&mut self) {
        self.scheduler.share_every_window();
    }

    /// Whether several threads have run tiles.
    #[cfg(test)]
    pub(crate) fn has_shared_windows(&self) -> bool {
        self.scheduler.has_shared_windows()
    }

    /// The board.
    pub fn board(&self) -> Board {
        self.config.board
    }
    /// The host's time, in cycles since power-on.
    pub fn now(&self) -> Cycle {
        self.host.max(self.scheduler.now)
    }
    /// The translated coordinates of the Tensix tiles, in the board's order.
    pub fn tiles(&self) -> impl Iterator<Item = NocXy> {
        self.tensix_tiles().map(Tile::xy)
    }
    /// L1 of the tile at `xy`, as it is now.
    pub fn l1(&self, xy: NocXy) -> Option<&[u8]> {
        self.tile(xy).map(Tile::l1)
    }
    fn tensix_tiles(&self) -> impl Iterator<Item = &Tile> {
        self.nodes.iter().filter_map(|node| match node {
            AnyNode::Tensix(tile) => Some(&**tile),
            _ => None,
        })
    }
    /// The tile at `xy`.
    pub(crate) fn tile(&self, xy: NocXy) -> Option<&Tile> {
        self.tensix_tiles().find(|tile| tile.xy() == xy)
    }
    /// The fault that stopped the chip.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }
    /// Counts so far.
    pub fn stats(&self) -> ChipStats {
        let mut stats = ChipStats { cycles: self.now(), ..ChipStats::default() };
        let noc = self.scheduler.noc_stats();
        stats.noc_bytes = noc.bytes;
        stats.noc_packets = noc.packets;
        for tile in self.tensix_tiles() {
            let counts = tile.stats();
            stats.instructions += counts.retired;
            stats.skipped += counts.skipped;
        }
        let pcie = self.pcie();
        stats.pcie_to_device = pcie.bytes_to_device();
        stats.pcie_to_host = pcie.bytes_to_host();
        stats
    }
    /// What the coprocessors have executed since the start; nothing unless the configuration says
    /// that they count.
    pub fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        self.tensix_tiles().filter_map(Tile::counted_modes).for_each(|counts| coverage.add(counts));
        coverage
    }
    /// Every core that waits.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.tensix_tiles().flat_map(Tile::waiting).collect()
    }
    /// True when the chip is quiescent: nothing will happen by itself any more.
    pub fn is_quiet(&self) -> bool {
        self.scheduler.is_quiet()
    }

    fn pcie(&self) -> &Pcie {
        match &self.nodes[self.pcie] {
            AnyNode::Pcie(pcie) => pcie,
            _ => unreachable!("the index is set together with the node"),
        }
    }
    fn pcie_mut(&mut self) -> &mut Pcie {
        match &mut self.nodes[self.pcie] {
            AnyNode::Pcie(pcie) => pcie,
            _ => unreachable!("the index is set together with the node"),
        }
    }
    fn pcie_touched(&mut self) {
        self.scheduler.touched(self.pcie, &self.nodes[self.pcie]);
    }
    fn alive(&self) -> Result<(), ChipError> {
        self.goes_on()?;
        self.fault.clone().map_or(Ok(()), |fault| Err(ChipError::Fault(fault)))
    }
    /// Whether no observer has ended the run.
    fn goes_on(&self) -> Result<(), ChipError> {
        self.ended.map_or(Ok(()), |cycle| Err(ChipError::Ended { cycle }))
    }
    fn failed(&mut self, fault: Fault) -> ChipError {
        self.fault.get_or_insert_with(|| fault.clone());
        ChipError::Fault(fault)
    }

    /// Writes to a BAR. The write is posted: it costs the host `timing::HOST_WRITE` cycles
    /// and reaches the chip later, in order. With `timing::PCIE_POSTED` writes in flight the
    /// host stalls.
    ///
    /// # Errors
    /// A fault now or earlier; a deadlock when there is no room and never will be.
    pub fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), ChipError> {
        self.begin_write(bar, offset, data)?;
        // The host stalls while more writes are in flight than there is room for. Writes whose
        // acknowledgement never arrives stall it forever.
        while !self.has_room() {
            self.step_for_host()?;
        }
        Ok(())
    }

    /// Adds an observer. It sees what happens from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        let now = self.now();
        let hub = self.hub.get_or_insert_with(|| {
            let tile = |(number, node): (usize, &AnyNode)| match node {
                AnyNode::Tensix(tile) => Some((tile.xy(), number)),
                _ => None,
            };
            Box::new(Hub::new(self.nodes.iter().enumerate().filter_map(tile)))
        });
        hub.add(observer);
        let (wants, others, lines, once) = (hub.wants(), hub.others_want(), hub.lines(), hub.sees_counters_once());
        let gather = hub.gathers();
        for node in &mut self.nodes {
            if let AnyNode::Tensix(tile) = node {
                tile.observe((wants, others), once, &lines, now);
                tile.gather_lines(gather);
            }
        }
        self.scheduler.observe(wants.has(Wants::ARRIVALS).then(|| Packets::new(&self.grid, wants)));
    }

    /// Whether there are observers.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.hub.is_some()
    }

    /// Hands a note of the host to the observers. It comes behind all events before the cycle that
    /// the chip has come to: the host may be ahead of it.
    pub fn note(&mut self, note: &Note) {
        let (now, reached) = (self.now(), self.scheduler.now);
        self.hand_over(reached, reached);
        if let Some(hub) = &mut self.hub {
            hub.note(now, note);
            match note {
                Note::Firmware(_) => {
                    let boundaries = hub.boundaries();
                    self.each_tile(|tile| tile.set_boundaries(boundaries.clone()));
                    self.leave_unjudged();
                }
                Note::Queue(_) => {
                    self.observe_loads();
                    self.leave_unjudged();
                }
                Note::Launch(launch) => {
                    // Of other tiles nothing changes that concerns what they run.
                    let unjudged = hub.unjudged();
                    for node in launch.cores.iter().filter_map(|&core| hub.node(core)) {
                        if let Some(AnyNode::Tensix(tile)) = self.nodes.get_mut(node) {
                            tile.launches(&unjudged);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn each_tile(&mut self, mut does: impl FnMut(&mut Tile)) {
        for node in &mut self.nodes {
            if let AnyNode::Tensix(tile) = node {
                does(tile);
            }
        }
    }

    /// Has the tiles leave out what observers need to see little of.
    fn leave_unjudged(&mut self) {
        let Some(hub) = &self.hub else { return };
        let (unjudged, wants, others) = (hub.unjudged(), hub.wants(), hub.others_want());
        self.each_tile(|tile| tile.set_unjudged(&unjudged));
        if wants.has(Wants::ARRIVALS) {
            let mut packets = Packets::new(&self.grid, wants);
            if !others.has(Wants::ARRIVALS) {
                packets.overlook(&unjudged.tiles);
            }
            self.scheduler.observe(Some(packets));
        }
    }

    /// Has the tiles record the loads that observers want to see.
    fn observe_loads(&mut self) {
        let loads = self.hub.as_ref().map_or(Vec::new(), |hub| hub.loads());
        for node in &mut self.nodes {
            if let AnyNode::Tensix(tile) = node {
                let of_tile = loads.iter().filter(|(xy, _)| *xy == tile.xy());
                tile.observe_loads(of_tile.map(|(_, range)| range.clone()).collect());
            }
        }
    }

    /// Hands to the observers what they have not seen of the time before [`Chip::now`]; of a chip
    /// that a fault has stopped, everything.
    pub fn settle_observers(&mut self) {
        let (now, reached) = if self.fault.is_some() { (NEVER, NEVER) } else { (self.now(), self.scheduler.now) };
        let Some(hub) = &self.hub else { return };
        // What has been executed is told for a cycle that is not over.
        let until = now.max(hub.reached().saturating_add(1));
        let events = self.scheduler.events();
        for node in &mut self.nodes {
            if let AnyNode::Tensix(tile) = node {
                tile.settle_counts(until.saturating_sub(1), events);
            }
        }
        self.hand_over(until, reached);
    }

    /// Hands over all that has happened before `until`, where nothing more will happen before
    /// `reached`: the host may be ahead of the chip.
    fn hand_over(&mut self, until: Cycle, reached: Cycle) {
        if let Some(hub) = &mut self.hub {
            let events = self.scheduler.events();
            for node in self.nodes.iter_mut().filter(|_| hub.gathers()) {
                if let AnyNode::Tensix(tile) = node {
                    tile.settle_lines(events);
                }
            }
            hub.hand_over(events, until, reached);
        }
    }

    /// Hands over what has happened before `now`, except what comes after the first word of a line
    /// that a core has only begun to go through: told word by word it would cost far more.
    fn hand_over_most(&mut self, now: Cycle) {
        let Some(hub) = self.hub.as_mut().filter(|hub| hub.gathers() && !hub.is_judged()) else {
            return self.hand_over(now, now);
        };
        let events = self.scheduler.events();
        let mut until = now;
        for node in &mut self.nodes {
            if let AnyNode::Tensix(tile) = node {
                until = until.min(tile.settle_lines_before(now.saturating_sub(LINE_CYCLES), events));
            }
        }
        hub.hand_over(events, until, until);
    }

    /// Simulates one window.
    fn step(&mut self, until: Until) -> Result<Step, Fault> {
        let result = self.scheduler.step(&mut self.nodes, until);
        if let Some(hub) = &self.hub {
            let is_due = hub.is_due(self.scheduler.events().len());
            if is_due || hub.has_known() {
                self.serve_observers(is_due);
            }
        }
        result
    }

    /// Hands over what has happened, if it `is_due`, and has the tiles leave out what is known.
    #[inline(never)]
    fn serve_observers(&mut self, is_due: bool) {
        let now = self.scheduler.now;
        if is_due {
            self.hand_over_most(now);
        }
        if let Some(hub) = &mut self.hub {
            for (node, known) in hub.known() {
                if let Some(AnyNode::Tensix(tile)) = self.nodes.get_mut(node) {
                    tile.know(&known);
                }
            }
            if hub.ends() {
                self.ended.get_or_insert(now);
            }
        }
    }

    /// Simulates one window while the host waits for something that reaches it over PCIe.
    fn step_for_host(&mut self) -> Result<(), ChipError> {
        let until = Until { stop: NEVER, ahead: 0, notice: timing::PCIE_HOST_ONE_WAY };
        match self.step(until) {
            Ok(Step::Ran | Step::Reached) => self.goes_on(),
            Ok(Step::Quiet) => Err(self.deadlock()),
            Err(fault) => Err(self.failed(fault)),
        }
    }

    /// How often the device has written the host's memory: while the number is the same, the host
    /// finds its memory as it was.
    pub fn device_writes(&self) -> u64 {
        self.pcie().device_writes()
    }

    /// What was wrong with a posted write that a tile has refused since the last call, if the chip
    /// answers errors of the host.
    pub fn take_refused(&mut self) -> Option<Fault> {
        self.pcie_mut().take_refused()
    }

    /// Reads from a BAR, 64 bytes a transaction, one after the other. The chip continues until the
    /// data has arrived.
    ///
    /// # Errors
    /// A fault now or earlier; a wrong access; a deadlock when no answer can come.
    pub fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), ChipError> {
        let ticket = self.begin_read(bar, offset, out.len())?;
        while !self.end_read(ticket, out)? {
            self.step_for_host()?;
        }
        Ok(())
    }

    /// Makes `len` bytes of host memory visible to the device at `noc` (below bit 60).
    ///
    /// # Errors
    /// A region that overlaps another.
    pub fn pin(&mut self, noc: u64, len: usize) -> Result<(), ChipError> {
        self.pcie_mut().pin(noc, len).map_err(ChipError::Fault)
    }
    /// Gives the device access to the memory of an external host: all bus addresses that
    /// are not pinned.
    pub fn attach_host_bus(&mut self, bus: Box<dyn HostBus>) {
        self.pcie_mut().host_memory_mut().attach(bus);
    }
    /// Reads pinned host memory.
    ///
    /// # Errors
    /// Addresses that are not pinned.
    pub fn pinned_read(&self, noc: u64, out: &mut [u8]) -> Result<(), ChipError> {
        self.pcie().host_memory().read(noc, out).map_err(ChipError::Fault)
    }
    /// Writes pinned host memory; the device sees it at once.
    ///
    /// # Errors
    /// Addresses that are not pinned.
    pub fn pinned_write(&mut self, noc: u64, data: &[u8]) -> Result<(), ChipError> {
        self.pcie_mut().host_memory_mut().write(noc, data).map_err(ChipError::Fault)
    }

    fn deadlock(&self) -> ChipError {
        ChipError::Deadlock { cycle: self.scheduler.now, waiting: self.waiting() }
    }
    /// The cores that execute, with the address of each one's next instruction.
    pub fn busy(&self) -> Vec<(NocXy, Processor, u32)> {
        let running = |tile: &Tile| {
            let xy = tile.xy();
            Processor::ALL
                .into_iter()
                .filter(|&p| tile.activity(p) == Activity::Running)
                .map(|p| (xy, p, tile.pc(p)))
                .collect::<Vec<_>>()
        };
        self.tensix_tiles().flat_map(running).collect()
    }

    /// Waits until the pinned word at `noc` is no longer `seen`; returns the new value.
    ///
    /// # Errors
    /// A fault; a deadlock, found at once; or that `budget` cycles passed.
    pub fn wait_word(&mut self, noc: u64, seen: u32, budget: Cycle) -> Result<u32, ChipError> {
        self.wait_words(&[(noc, seen)], budget).map(|(_, value)| value)
    }

    /// Waits until one of the pinned words is no longer what was seen of it; returns which, by its
    /// position, and its new value.
    ///
    /// # Errors
    /// As [`Chip::wait_word`].
    pub fn wait_words(&mut self, words: &[(u64, u32)], budget: Cycle) -> Result<(usize, u32), ChipError> {
        self.alive()?;
        let started = self.now();
        let stop = started.saturating_add(budget);
        let mut version = None;
        loop {
            if let Some(changed) = self.changed(words, &mut version)? {
                return Ok(changed);
            }
            let until = Until { stop, ahead: 0, notice: timing::HOST_NOTICE };
            match self.step(until) {
                Ok(Step::Ran) => self.goes_on()?,
                Ok(Step::Reached) => {
                    return Err(ChipError::Budget { cycles: budget, busy: self.busy() });
                }
                Ok(Step::Quiet) => return Err(self.deadlock()),
                Err(fault) => return Err(self.failed(fault)),
            }
        }
    }

    /// Simulates `cycles` cycles.
    ///
    /// # Errors
    /// A fault.
    pub fn run(&mut self, cycles: Cycle) -> Result<(), ChipError> {
        self.pass(cycles, 0)
    }

    /// As [`Chip::run`], for a host that lets time pass in small steps, often of one cycle, and
    /// sees the chip only through its BARs and through host memory: for it nothing differs. What
    /// only a simulator can report (counts, L1, the state of cores) may be that of a few hundred
    /// cycles later, because a window is not cut where a step ends.
    ///
    /// # Errors
    /// A fault.
    pub fn clock(&mut self, cycles: Cycle) -> Result<(), ChipError> {
        // What the host does next leaves the PCIe tile that much later.
        self.pass(cycles, timing::PCIE_HOST_ONE_WAY)
    }

    /// Lets cycles pass in which nothing happens; `false`: something may, and nothing has changed.
    /// Drivers let one cycle pass at a time, so that this is what most calls come to.
    #[inline]
    pub fn clock_quickly(&mut self, cycles: Cycle) -> bool {
        let stop = self.now().saturating_add(cycles);
        let goes_on = self.fault.is_none() && self.ended.is_none() && self.hub.is_none();
        let passes = goes_on && self.scheduler.passes(stop);
        if passes {
            self.host = stop;
        }
        passes
    }

    /// For how many cycles [`Chip::clock_quickly`] is known to do, if nothing else is done to the
    /// chip before.
    #[inline]
    pub fn quiet_cycles(&self) -> Cycle {
        let goes_on = self.fault.is_none() && self.ended.is_none() && self.hub.is_none();
        // The host may be ahead of the chip.
        let ahead = self.host.saturating_sub(self.scheduler.now);
        if goes_on { self.scheduler.quiet_cycles().saturating_sub(ahead) } else { 0 }
    }

    fn pass(&mut self, cycles: Cycle, ahead: Cycle) -> Result<(), ChipError> {
        self.alive()?;
        let stop = self.now().saturating_add(cycles);
        let until = Until { stop, ahead, notice: NEVER };
        loop {
            // Between two windows only observers do something.
            let step = match self.hub {
                None => self.scheduler.steps(&mut self.nodes, until),
                Some(_) => self.step(until),
            };
            match step {
                Ok(Step::Ran) if self.scheduler.now < stop => self.goes_on()?,
                Ok(Step::Ran | Step::Reached | Step::Quiet) => break,
                Err(fault) => return Err(self.failed(fault)),
            }
        }
        self.host = stop;
        Ok(())
    }
}

/// The place of each tile and its coordinates on NoC 0. Node indices: Tensix tiles that work,
/// column by column; the eight physical DRAM banks; PCIe; ARC; one for all inert tiles.
struct Layout {
    tensix: Vec<(Place, NocXy)>,
    dram: Vec<(Place, NocXy)>,
    pcie: (Place, NocXy),
    arc: (Place, NocXy),
    inert: NodeId,
}

impl Layout {
    fn of(harvesting: Harvesting, translation: bool) -> Self {
        let at = |node: usize, xy: NocXy| Place { node: node as NodeId, x: xy.x, y: xy.y };
        let rows = board::WORKER_Y_FIRST..=board::WORKER_Y_LAST;
        let tensix: Vec<_> = harvesting
            .columns()
            .zip(grid::TENSIX_COLUMNS)
            .flat_map(|(column, translated)| rows.clone().map(move |y| (column, translated, y)))
            .enumerate()
            .map(|(i, (column, translated, y))| {
                let x = if translation { translated } else { column };
                (at(i, NocXy::new(column, y)), NocXy::new(x, y))
            })
            .collect();
        let first = tensix.len();
        let map = DramMap::new(harvesting.dram_bank());
        let port = |bank: usize, port: usize| {
            let place = at(first + bank, grid::dram_port(bank, port));
            let logical = map.banks().iter().find(|b| usize::from(b.physical) == bank && translation);
            let xy = logical.map(|b| NocXy::new(b.first_port.x, b.first_port.y + port as u8));
            (place, xy.unwrap_or(NocXy::new(place.x, place.y)))
        };
        let banks = (0..board::DRAM_BANKS).filter(|&bank| harvesting.dram & 1 << bank == 0);
        let dram = banks.flat_map(|bank| (0..board::DRAM_PORTS).map(move |i| port(bank, i))).collect();
        let pcie = first + board::DRAM_BANKS;
        let pcie_xy = if translation { board::PCIE } else { board::PCIE_PHYSICAL };
        Self {
            tensix,
            dram,
            pcie: (at(pcie, board::PCIE_PHYSICAL), pcie_xy),
            arc: (at(pcie + 1, board::ARC), board::ARC),
            inert: (pcie + 2) as NodeId,
        }
    }
    /// The places of the NIUs of each node that packets reach often. The others have many, or, as
    /// the PCIe tile, are near the host, where no node is to run far ahead of the rest.
    fn places(&self, nodes: usize) -> Vec<Vec<Place>> {
        let mut places = vec![Vec::new(); nodes];
        self.tensix.iter().chain(&self.dram).for_each(|&(place, _)| places[usize::from(place.node)].push(place));
        places
    }
    fn grid(&self, harvesting: Harvesting, translation: bool) -> Result<Grid, GridError> {
        let tiles = self.tensix.iter().chain(&self.dram).chain([&self.pcie, &self.arc]);
        let builder = GridBuilder::new(harvesting, translation);
        tiles.fold(builder, |builder, &(place, xy)| builder.add(place, xy)).fill(self.inert).build()
    }
}
