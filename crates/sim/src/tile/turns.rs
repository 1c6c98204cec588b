//! Turns: the cores of a tile run in the order of (cycle, core), each until another must go first.
//!
//! While several cores work on shared data, a turn is a few instructions long. So side effects of a
//! turn are looked for only when there are any.

use super::access::Shared;
use super::bus::TileBus;
use super::port::Ports;
use super::{Activity, Tile};
use crate::bits::members;
use crate::noc::Outbox;
use crate::probe::What;
use crate::tensix::Awaits;
use crate::{Fault, NEVER};
use tilework_abi::tensix::{INSTRN_BUF_BASE, Processor};
use tilework_riscv::{Core, CoreFault, Cycle, Exit, Stop};

/// Bits of a core's index behind its cycle. No run comes to 2^61 cycles.
const INDEX_BITS: u32 = 3;
/// The cycle of [`NEVER`] as a place: that of a core that does not run.
const FAR: Cycle = NEVER >> INDEX_BITS;

/// A core's turn.
pub(super) struct Turn {
    /// The running core with the smallest (cycle, index).
    pub(super) core: usize,
    /// Its cycle.
    pub(super) now: Cycle,
    /// The cycle from which another core must go first.
    horizon: Cycle,
}

/// The place of core `i`, which is at cycle `now`, in the order of turns. Cycle and index are one
/// number.
#[inline]
const fn place(now: Cycle, i: usize) -> Cycle {
    now << INDEX_BITS | i as Cycle
}

/// The places of the running cores, in ascending order; behind them [`NEVER`].
struct Order([Cycle; 5]);

// Both ways of changing it do without branches, of which one would be mispredicted in most turns.
impl Order {
    /// Adds a core.
    #[inline]
    fn put(&mut self, mut place: Cycle) {
        for slot in &mut self.0 {
            (*slot, place) = ((*slot).min(place), (*slot).max(place));
        }
    }

    /// The first core comes to another place.
    #[inline]
    fn replace_first(&mut self, mut place: Cycle) {
        for i in 1..self.0.len() {
            let next = self.0[i];
            self.0[i - 1] = next.min(place);
            place = next.max(place);
        }
        self.0[self.0.len() - 1] = place;
    }

    /// The next turn, at [`FAR`] if no core runs. The coprocessor is at cycle `coprocessor`.
    #[inline]
    fn turn(&self, coprocessor: Cycle) -> Turn {
        let [first, second, ..] = self.0;
        let index = |place: Cycle| (place & ((1 << INDEX_BITS) - 1)) as usize;
        let core = index(first);
        // In the same cycle the lower index goes first.
        let others = (second >> INDEX_BITS) + Cycle::from(index(second) > core);
        // The coprocessor is the last agent of a cycle.
        Turn { core, now: first >> INDEX_BITS, horizon: others.min(coprocessor.saturating_add(1)) }
    }
}

impl Tile {
    /// The next turn, if a core runs.
    pub(super) fn turn(&self) -> Option<Turn> {
        let turn = self.order().turn(self.shared.tensix.next());
        (turn.now != FAR).then_some(turn)
    }

    /// The cycle of the running core that is first.
    #[inline]
    pub(super) fn first_core(&self) -> Option<Cycle> {
        members(self.running).map(|i| self.slots[i].core.now).min().filter(|&now| now != NEVER)
    }

    /// The running cores in their order.
    #[inline]
    fn order(&self) -> Order {
        let mut order = Order([NEVER; 5]);
        let first = self.running.trailing_zeros() as usize;
        if self.running & self.running.wrapping_sub(1) == 0 {
            // One at most, as mostly.
            if let Some(slot) = self.slots.get(first) {
                order.0[0] = place(slot.core.now, first);
            }
            return order;
        }
        for i in members(self.running) {
            order.put(place(self.slots[i].core.now, i));
        }
        order
    }

    /// Runs cores and coprocessor until one of them has a side effect that others must handle; true
    /// when instead all have come to `until`, or to where a departure ends the window.
    ///
    /// No event is due before `until`. Without a side effect nothing changes which cores run, so
    /// that their order is kept from turn to turn.
    pub(super) fn run_agents(&mut self, until: Cycle, out: &mut Outbox) -> Result<bool, Fault> {
        if self.running == 0 && self.shared.tensix.next() >= until {
            return Ok(true);
        }
        let mut order = self.order();
        let mut fault = None;
        let until = until.min(FAR);
        loop {
            let limit = out.horizon(until);
            let coprocessor = self.shared.tensix.next();
            let turn = order.turn(coprocessor);
            let goes_on = if turn.now < limit && turn.now <= coprocessor {
                let goes_on = self.run_core(&turn, limit, Some(&mut *out), &mut fault)?;
                order.replace_first(place(self.slots[turn.core].core.now, turn.core));
                goes_on
            } else if coprocessor < limit {
                self.step_coprocessor(limit.min(turn.now))?
            } else {
                return Ok(true);
            };
            if !goes_on {
                return Ok(false);
            }
        }
    }

    /// Runs a core until `limit` or until another must go first; without an outbox, until it would
    /// do something that others see. True when it stays running and has no side effect.
    ///
    /// `fault`: a place for one, empty before and after; made for many turns.
    ///
    /// Inlined, so that a turn of a few instructions enters one frame, that of [`interpret`]: 1 %
    /// of the instructions of an empty program.
    #[inline(always)]
    pub(super) fn run_core(
        &mut self,
        turn: &Turn,
        limit: Cycle,
        out: Option<&mut Outbox>,
        fault: &mut Option<CoreFault<Fault>>,
    ) -> Result<bool, Fault> {
        let i = turn.core;
        let core = Processor::ALL[i];
        let (slot, mut horizon) = (&mut self.slots[i].core, turn.horizon.min(limit));
        let (shared, ports) = (&mut self.shared, &mut self.ports);
        let within = (&mut horizon, limit);
        let stop = match shared.fabric.probes() {
            (false, false) => interpret::<false, false>(slot, core, shared, ports, within, out, fault),
            (true, false) => interpret::<true, false>(slot, core, shared, ports, within, out, fault),
            (_, true) => interpret::<true, true>(slot, core, shared, ports, within, out, fault),
        };
        if matches!(stop, Stop::Limit | Stop::Sync) && self.shared.fabric.wake == 0 && !self.has_side_effects() {
            return Ok(true);
        }
        self.end_turn(i, horizon, stop.exit(fault.take()))?;
        Ok(false)
    }

    /// Handles the side effects of a turn and the reason why it ended.
    fn end_turn(&mut self, i: usize, horizon: Cycle, exit: Exit<Fault>) -> Result<(), Fault> {
        let now = self.slots[i].core.now;
        self.handle_side_effects();
        if self.slots[i].activity != Activity::Running {
            return Ok(()); // it has put itself into reset
        }
        match exit {
            Exit::Limit | Exit::Sync => {
                let wake = std::mem::take(&mut self.shared.fabric.wake);
                self.wake(wake, now);
            }
            Exit::Parked => self.park(i),
            Exit::Blocked { addr } => {
                self.set_activity(i, Activity::Blocked { addr });
                self.record_core(i, |_| What::Blocked(addr));
                self.shared.tensix.core_blocks(Awaits::of(Processor::ALL[i], addr));
                if addr == INSTRN_BUF_BASE {
                    self.offer_row(i);
                }
            }
            // In what is private to it the core has passed the others, which may fault before it
            // does: it comes to its fault again.
            Exit::Fault(_) if now >= horizon => {}
            Exit::Fault(fault) => return Err(self.core_fault(i, fault)),
        }
        Ok(())
    }

    /// Whether there is something for [`Tile::handle_side_effects`].
    pub(super) fn has_side_effects(&self) -> bool {
        self.shared.fabric.has_side_effects() || self.shared.tensix.has_changed()
    }
}

/// Runs the interpreter's loop within the bus's horizon, which becomes what it is then, and the
/// limit; returns why it ended.
///
/// A function of its own: inlined, the compiler would address the core relative to its tile and
/// have fewer registers for what every instruction needs (4 % of the instructions of a busy loop).
/// It makes the bus in its own frame, where its fields need no pointer; a copy of a bus that was
/// made just before would wait for the stores of its parts, and most turns are short.
#[inline(never)]
fn interpret<const PROBED: bool, const COUNTED: bool>(
    core: &mut Core,
    who: Processor,
    shared: &mut Shared,
    ports: &mut Ports,
    (horizon, limit): (&mut Cycle, Cycle),
    out: Option<&mut Outbox>,
    fault: &mut Option<CoreFault<Fault>>,
) -> Stop {
    let mut bus = TileBus::<PROBED, COUNTED> { shared, core: who, ports, horizon: *horizon, out, due: NEVER };
    let stop = core.run_apart(&mut bus, limit, fault);
    *horizon = bus.horizon;
    stop
}
