//! The whole chip: tiles on two NoCs under one clock, and the host's end of the PCIe link.
//!
//! The host is outside the chip but on the same clock. Its accesses take their modelled time: a
//! posted write costs the host little and arrives later; a read costs a round trip, during which
//! the chip continues; a wait for a word of pinned memory is an event, not a poll.

mod debug;
mod layout;
mod node;
mod observe;
mod twin;

pub use debug::{Advanced, CoreView, ReadTicket, Thread};

use layout::Layout;
use node::AnyNode;

use crate::arc::ArcTile;
use crate::bugs::Bugs;
use crate::coverage::Coverage;
use crate::distance::Distances;
use crate::dram::DramBank;
use crate::inert::InertTiles;
use crate::late::LateCores;
use crate::noc::{Grid, GridError, LatePackets, Network, NodeId};
use crate::pcie::{Bar, HostBus, Pcie};
use crate::probe::Hub;
use crate::sched::{Scheduler, Step, Until};
use crate::tile::{Activity, CodeBook, Tile, Waiting};
use crate::{Cycle, Fault, NEVER, timing};
use std::num::NonZeroUsize;
use std::sync::Arc;
use tilework_abi::board::{self, Board, Harvesting};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

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

    /// The nodes that have work soon, in the scheduler's order, for tests.
    #[cfg(test)]
    pub(crate) fn listed(&self) -> Vec<usize> {
        self.scheduler.listed()
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
