//! The Tensix tile: five cores, L1, two NIUs, overlay streams and the coprocessor.
//!
//! Within a tile everything happens in the order of (cycle, agent): first what arrives or leaves on
//! the NoC, then the cores in the order of [`Processor`], then the coprocessor. A parked core costs
//! nothing; an agent that is about to change a word that it sleeps on wakes it first, so that it
//! sees the change exactly as if it had polled all the time.
//!
//! The tile owns its parts side by side: the cores, what belongs to one core alone ([`Port`]), and
//! what all share ([`Shared`]). A running agent borrows its own part and, as a [`Reach`], those
//! that it can access.

mod access;
mod answers;
mod bus;
mod code;
mod debug;
mod debugger;
#[cfg(test)]
mod debugger_tests;
mod events;
mod fabric;
#[cfg(test)]
mod firmware_tests;
mod inspect;
mod memory;
mod observe;
mod port;
#[cfg(test)]
mod register_tests;
mod sleep;
mod speculation;
mod stale_code;
mod streams;
mod tensix;
#[cfg(test)]
mod tensix_tests;
#[cfg(test)]
mod tests;
mod turns;
mod wake;
#[cfg(test)]
mod watch_tests;
mod watches;

use crate::bits::members;
use crate::event_queue::EventQueue;
use crate::late::LateCores;
use crate::noc::{Body, Grid, HostRequest, Niu, Outbox, Packet, Place, Start, serve_or_refuse};
use crate::node::Outlook;
use crate::probe::What;
use crate::tensix::{Changed, Origin};
use crate::{Bugs, Fault, FaultClass, Node, timing};
use access::{Reach, Shared};
use debug::CoreView;
use events::Event;
use fabric::Fabric;
use port::{Port, Ports};
use speculation::Speculation;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::insn::Mode;
use tilework_abi::tensix::{self as map, Processor};
use tilework_riscv::{Core, CoreFault, Cycle, HartKind, Watch};
use watches::CoreSet;

pub(crate) use code::CodeBook;

// The core reports a blocked push with this address, although it does not know the
// tile's memory map.
const _: () = assert!(tilework_riscv::INSTRN_BUF_BASE == map::INSTRN_BUF_BASE);

/// What a core is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Held in soft reset.
    Held,
    /// Executing.
    Running,
    /// Parked in a poll loop.
    Parked,
    /// Held by a debugger between two instructions.
    Paused,
    /// Waiting in an access, for example to an empty mailbox.
    Blocked {
        /// The address of the access.
        addr: u32,
    },
}

#[derive(Clone)]
struct Slot {
    core: Core,
    activity: Activity,
}

/// A core that cannot continue by itself, for reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The tile.
    pub tile: NocXy,
    /// The core.
    pub core: Processor,
    /// The instruction at the head of its poll loop, or the blocked one.
    pub pc: u32,
    /// The words it waits for; empty for a loop that reads nothing.
    pub watched: Vec<WaitWord>,
    /// Its registers, for a backtrace.
    pub regs: [u32; 32],
    /// The address of a blocked access.
    pub blocked_on: Option<u32>,
    /// The Tensix threads whose wait gates block something that the core may be waiting
    /// for, as text, and where what stands there was pushed.
    pub coprocessor: Vec<(String, Origin)>,
}

/// A word that a sleeping core waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitWord {
    /// The load.
    pub watch: Watch,
    /// The core reads its cache's copy and will never see what others write: a fence is missing.
    pub stale: bool,
}

/// Activity counts of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TileStats {
    /// Instructions executed.
    pub retired: u64,
    /// Instructions of poll iterations that were skipped.
    pub skipped: u64,
    /// Instructions that the Tensix coprocessor executed.
    pub tensix: u64,
}

/// A Tensix tile.
///
/// What every window needs comes first and together: between two windows of one tile come those of
/// all others, so that each finds its state outside the processor's nearest caches.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Tile {
    /// The cores whose activity is [`Activity::Running`].
    running: CoreSet,
    xy: NocXy,
    speculation: Speculation,
    queue: EventQueue<Event>,
    /// The cycle of the last event that was applied.
    last_event: Cycle,
    shared: Shared,
    slots: [Slot; 5],
    /// In the order of [`Processor`].
    ports: Ports,
    /// Whether cores are late.
    late: Option<LateCores>,
}

impl Tile {
    /// A tile at `place` with translated coordinates `xy` and the `index`-th endpoint id, all cores
    /// held. All tiles of a chip share `book`.
    pub(crate) fn new(place: Place, xy: NocXy, index: u8, grid: &Arc<Grid>, book: &Arc<CodeBook>) -> Self {
        let niu = |noc: u8| {
            // NOC_ENDPOINT_ID: tile index, type 0x0100, NoC index (NoC/MemoryMap.md).
            let endpoint = u32::from(index) | 0x0100 << 8 | u32::from(noc) << 24;
            Niu::new(noc, place, xy, endpoint, grid.clone())
        };
        let kinds = [HartKind::B, HartKind::Nc, HartKind::T0, HartKind::T1, HartKind::T2];
        Self {
            xy,
            slots: kinds.map(|kind| Slot { core: Core::new(kind), activity: Activity::Held }),
            running: 0,
            ports: Processor::ALL.map(|core| Port::new(core.local_size())),
            shared: Shared { fabric: Fabric::new(book.clone()), nius: [niu(0), niu(1)], tensix: Box::default() },
            queue: EventQueue::new(),
            last_event: 0,
            speculation: Speculation::new(),
            late: None,
        }
    }

    /// The tile's translated coordinates.
    pub(crate) fn xy(&self) -> NocXy {
        self.xy
    }
    /// What a core is doing.
    pub(crate) fn activity(&self, core: Processor) -> Activity {
        self.slots[core.index()].activity
    }
    /// The address of a core's next instruction.
    pub(crate) fn pc(&self, core: Processor) -> u32 {
        self.slots[core.index()].core.pc
    }
    /// L1 as it is now.
    pub(crate) fn l1(&self) -> &[u8] {
        &self.shared.fabric.l1[..]
    }
    /// The coprocessor counts from now on what it executes.
    pub(crate) fn count_modes(&mut self) {
        self.shared.tensix.count_modes();
    }
    /// How often the coprocessor executed which mode, if it counts.
    pub(crate) fn counted_modes(&self) -> Option<&BTreeMap<Mode, u64>> {
        self.shared.tensix.counted_modes()
    }
    /// Switches parking and speculation on or off, for tests that show that results do not
    /// depend on them.
    pub(crate) fn set_parking(&mut self, on: bool) {
        self.speculation.enabled = on && self.late.is_none();
        for slot in &mut self.slots {
            slot.core.set_parking(on);
        }
    }
    /// How late its cores are.
    pub(crate) fn set_late(&mut self, late: Option<LateCores>) {
        self.late = late;
        // A rollback forgets poll loops: whether a core waits in one that it leaves would depend on
        // how far the tile speculates, and so on whether anybody observes.
        self.speculation.enabled &= late.is_none();
        self.shared.fabric.is_late = late.is_some();
    }

    /// Holds cores that could go on now.
    fn make_late(&mut self, cores: CoreSet) {
        let Some(late) = self.late else { return };
        for i in members(cores) {
            if let Some(Slot { core, activity: Activity::Running }) = self.slots.get_mut(i) {
                core.hold(late.delay(self.xy, i, core.now));
            }
        }
    }

    /// Which documented bugs the tile has.
    pub(crate) fn set_bugs(&mut self, bugs: Bugs) {
        self.shared.tensix.set_bugs(bugs);
    }
    /// Counts so far.
    pub(crate) fn stats(&self) -> TileStats {
        let start = TileStats { tensix: self.shared.tensix.instructions(), ..TileStats::default() };
        self.slots.iter().fold(start, |sum, slot| TileStats {
            retired: sum.retired + slot.core.retired,
            skipped: sum.skipped + slot.core.skipped,
            ..sum
        })
    }
    /// The cores that wait.
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        let mut list = Vec::new();
        for (slot, core) in self.slots.iter().zip(Processor::ALL) {
            let (watched, blocked_on, pc) = match slot.activity {
                Activity::Parked => match slot.core.parked() {
                    Some(poll) => {
                        // A core does not wait for its own stores.
                        let watched = poll
                            .watched
                            .iter()
                            .filter(|watch| !watch.stored)
                            .map(|&watch| WaitWord { stale: self.is_stale(core, watch.addr), watch });
                        (watched.collect(), None, poll.head_pc)
                    }
                    None => continue,
                },
                Activity::Blocked { addr } => (Vec::new(), Some(addr), slot.core.pc),
                Activity::Held | Activity::Running | Activity::Paused => continue,
            };
            let regs = slot.core.regs;
            let coprocessor = self.shared.tensix.explain(core);
            list.push(Waiting { tile: self.xy, core, pc, watched, regs, blocked_on, coprocessor });
        }
        list
    }

    /// Everything in the tile that a register access can reach.
    fn reach(&mut self) -> Reach<'_> {
        self.shared.reach(&mut self.ports)
    }

    /// True when `core` sleeps on a cached copy of `addr` (see [`Tile::park`]).
    fn is_stale(&self, core: Processor, addr: u32) -> bool {
        addr < map::L1_SIZE && !self.shared.fabric.watches.sleeps_on(core.index(), addr)
    }

    fn set_activity(&mut self, i: usize, activity: Activity) {
        if matches!(self.slots[i].activity, Activity::Blocked { .. }) {
            self.withdraw_row(i);
        }
        self.slots[i].activity = activity;
        let running = CoreSet::from(activity == Activity::Running);
        self.running = self.running & !(1 << i) | running << i;
    }

    /// The last cycle at which a core or an event did something.
    fn last_rest(&self) -> Cycle {
        let cores = self.slots.iter().filter(|slot| slot.activity != Activity::Held).map(|slot| slot.core.now);
        cores.fold(self.last_event.max(self.shared.tensix.last_step()), Cycle::max)
    }

    /// Handles the side effects of register accesses, each at its own cycle: a core may have
    /// continued since with private accesses.
    #[inline]
    fn handle_side_effects(&mut self) {
        if self.has_side_effects() {
            self.handle_pending();
        }
    }

    fn handle_pending(&mut self) {
        let started = &mut self.shared.fabric.started;
        if started.len() > 1 {
            started.reverse();
        }
        while let Some((noc, start)) = started.pop() {
            self.queue.push(start.at, Event::Depart(noc, start.leaving));
        }
        if let Some(at) = self.shared.fabric.reset_changed.take() {
            self.apply_soft_reset(at);
        }
        if let Some(Changed { at, what }) = self.shared.tensix.take_changed() {
            self.wake_blocked(at, what);
        }
    }

    fn apply_soft_reset(&mut self, at: Cycle) {
        self.shared.tensix.soft_reset(self.shared.fabric.debug.soft_reset(), at);
        for (i, core) in Processor::ALL.into_iter().enumerate() {
            let held = self.shared.fabric.debug.held(core);
            let was_held = self.slots[i].activity == Activity::Held;
            if held && !was_held {
                self.shared.fabric.unwatch(i);
                self.shared.tensix.reset_core(core, at);
                if !self.shared.fabric.debug.keeps_debug_registers(core) {
                    self.shared.fabric.debug.port.reset(core);
                }
                self.set_activity(i, Activity::Held);
                // A core that sleeps is still where it fell asleep.
                self.record_core_at(i, self.slots[i].core.now.max(at), |_| What::Held);
            } else if !held && was_held {
                let keep = self.shared.fabric.debug.keeps_local(core);
                self.ports[i].reset(keep);
                self.shared.fabric.stale_code.emptied(core);
                self.ports[i].code_seen = self.shared.fabric.code_generation;
                self.shared.tensix.release_core(core, at);
                let pc = self.shared.fabric.debug.reset_pc(core);
                self.slots[i].core.reset(pc, at + timing::RESET_RELEASE);
                self.set_activity(i, Activity::Running);
                self.make_late(1 << i);
                self.record_core(i, |_| What::Released);
            }
        }
    }

    fn core_fault(&self, i: usize, fault: CoreFault<Fault>) -> Fault {
        let slot = &self.slots[i];
        let (pc, inner) = match fault {
            CoreFault::Bus { pc, fault } | CoreFault::Fetch { pc, fault } => (pc, fault),
            other => {
                let what = other.to_string();
                let class = FaultClass::UndefinedBehavior;
                let read = "BlackholeA0/TensixTile/BabyRISCV/InstructionSet.md";
                (slot.core.pc, Fault::new(class, what, read))
            }
        };
        inner.at_tile(self.xy).at_core(Processor::ALL[i], pc).at_cycle(slot.core.now)
    }

    /// The cores as a packet sees them. None has passed the packet's cycle, and none
    /// sleeps through it.
    fn core_views(&self) -> [CoreView; 5] {
        self.slots.each_ref().map(|slot| CoreView { pc: slot.core.pc, running: slot.activity == Activity::Running })
    }

    fn apply(&mut self, at: Cycle, event: Event, out: &mut Outbox) -> Result<(), Fault> {
        let result = match event {
            Event::Depart(noc, leaving) => self.shared.depart(&mut self.ports, noc, Start { at, leaving }, out),
            Event::Packet(packet) if matches!(packet.body, Body::ReadResponse { .. }) => {
                let from = packet.from;
                let received = self.shared.receive_data(&mut self.ports, at, packet, out);
                received.map_err(|fault| fault.sent_by(from).at_tile(self.xy))
            }
            Event::Packet(packet) => {
                let (from, host) = (packet.from, HostRequest::of(&packet));
                serve_or_refuse(host, at + timing::SERVE_FIRST, out, |out| {
                    let served = self.serve(at, &packet, out);
                    served.map_err(|fault| fault.sent_by(from).at_tile(self.xy))
                })
            }
        };
        self.last_event = at;
        self.handle_side_effects();
        result.map_err(|fault| fault.at_tile(self.xy).at_cycle(at))
    }

    fn serve(&mut self, at: Cycle, packet: &Packet, out: &mut Outbox) -> Result<(), Fault> {
        let (asks, commands) = (shows_cores(packet), commands_cores(packet));
        if asks || commands {
            self.resume_early_blocked(at);
        }
        if asks {
            let views = self.core_views();
            self.shared.fabric.debug.show_cores(Some(views));
        }
        let result = self.shared.receive(&mut self.ports, at, packet, out);
        if asks {
            self.shared.fabric.debug.show_cores(None);
        }
        if commands { result.and_then(|()| self.debug_access(at)) } else { result }
    }
}

/// True for a packet that reads the state of the cores.
fn shows_cores(packet: &Packet) -> bool {
    matches!(packet.body, Body::ReadRequest { addr, .. } if debug::shows_cores(addr))
}

/// True for a packet that may tell the cores to pause or to continue.
fn commands_cores(packet: &Packet) -> bool {
    matches!(packet.body, Body::WriteRequest { addr, .. } if debug::commands_cores(addr))
}

impl Node for Tile {
    fn next(&self) -> Cycle {
        self.next_of_cores().min(self.queue.next()).min(self.shared.tensix.next())
    }

    #[inline]
    fn outlook(&self) -> Outlook {
        // A request of its own has its cycle; a packet is answered, a core or the coprocessor may
        // start a request.
        let (arrival, departure) = self.queue.firsts();
        let agents = self.next_of_cores().min(self.shared.tensix.next());
        let answer = arrival.saturating_add(timing::SERVE_FIRST);
        Outlook {
            next: arrival.min(departure).min(agents),
            sends: departure.min(answer).min(agents.saturating_add(timing::NIU_ISSUE)),
        }
    }

    #[inline]
    fn computes(&self) -> bool {
        true
    }

    fn rested(&self) -> Cycle {
        self.last_rest()
    }

    #[inline]
    fn speculate(&mut self, end: Cycle, limit: Cycle) {
        if self.running != 0 && self.speculation.wants_to() {
            self.run_speculatively(end, limit);
        }
    }

    #[inline]
    fn deliver(&mut self, at: Cycle, packet: impl Into<Box<Packet>>) {
        self.roll_back(at);
        self.queue.arrive(at, Event::Packet(packet.into()));
    }

    fn run(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault> {
        self.confirm();
        let is_lent = self.shared.fabric.recorder.as_mut().is_some_and(|recorder| recorder.lend(&mut out.events));
        let result = self.advance(until, out);
        if let Some(recorder) = &mut self.shared.fabric.recorder {
            match is_lent {
                true => recorder.give_back(&mut out.events),
                false => recorder.hand_over(&mut out.events),
            }
        }
        result
    }
}

impl Tile {
    /// Handles every event before cycle `until`.
    #[inline]
    fn advance(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault> {
        loop {
            let event = self.queue.next();
            if !self.run_agents(until.min(event), out)? {
                continue;
            }
            let until = out.horizon(until);
            if event >= until {
                return Ok(());
            }
            if self.takes_answer(event) {
                continue;
            }
            let Some(waiting) = self.queue.peek() else { return Ok(()) };
            let sleepers = self.sleepers_on_event(waiting);
            if sleepers != 0 {
                self.wake_for_event(sleepers, event);
                // Mostly they have nothing to do before it.
                if self.first_core().is_some_and(|now| now < event) || self.shared.tensix.next() < event {
                    continue;
                }
            }
            if let Some((at, due)) = self.queue.pop_before(until) {
                self.apply(at, due, out)?;
            }
        }
    }
}
