//! Turns: the cores of a tile run in the order of (cycle, core), each until another must go first.
//!
//! While several cores work on shared data, a turn is a few instructions long. So side effects of a
//! turn are looked for only when there are any.

use super::access::Shared;
use super::bus::TileBus;
use super::port::{Port, Ports};
use super::{Activity, Tile};
use crate::noc::Outbox;
use crate::probe::What;
use crate::tensix::Awaits;
use crate::{Fault, NEVER};
use tilework_abi::tensix::Processor;
use tilework_riscv::{Core, Cycle, Exit};

/// Bits of a core's index behind its cycle. No run comes to 2^61 cycles.
const INDEX_BITS: u32 = 3;

/// A core's turn.
pub(super) struct Turn {
    /// The running core with the smallest (cycle, index).
    pub(super) core: usize,
    /// Its cycle.
    pub(super) now: Cycle,
    /// The cycle from which another core must go first.
    horizon: Cycle,
}

impl Tile {
    /// The next turn, if a core runs.
    #[inline]
    pub(super) fn turn(&self) -> Option<Turn> {
        let (core, now, others) = match self.running {
            0 => return None,
            // One bit: counting bits takes many instructions on the least x86-64.
            one if one & (one - 1) == 0 => {
                let core = one.trailing_zeros() as usize;
                (core, self.slots[core].core.now, NEVER)
            }
            _ => self.first_of_several(),
        };
        // The coprocessor is the last agent of a cycle.
        let horizon = others.min(self.shared.tensix.next().saturating_add(1));
        (now != NEVER).then_some(Turn { core, now, horizon })
    }

    /// The running core with the smallest (cycle, index), its cycle, and the cycle from which
    /// others come before it.
    ///
    /// Without branches, of which one would be mispredicted in most turns: cycle and index are one
    /// number, and a core that does not run has the largest.
    #[inline]
    fn first_of_several(&self) -> (usize, Cycle, Cycle) {
        let (mut first, mut second) = (NEVER, NEVER);
        for (i, slot) in self.slots.iter().enumerate() {
            let place = slot.core.now << INDEX_BITS | i as Cycle;
            let place = if self.running >> i & 1 != 0 { place } else { NEVER };
            second = second.min(first.max(place));
            first = first.min(place);
        }
        let index = |place: Cycle| (place & ((1 << INDEX_BITS) - 1)) as usize;
        let (core, other) = (index(first), index(second));
        // In the same cycle the lower index goes first.
        let others = if second == NEVER { NEVER } else { (second >> INDEX_BITS) + Cycle::from(other > core) };
        (core, self.slots.get(core).map_or(NEVER, |slot| slot.core.now), others)
    }

    /// Runs the cores until one of them has a side effect that others must handle; true when
    /// instead all have come to `until`, or to where a departure ends the window.
    ///
    /// No event is due before `until`.
    pub(super) fn run_cores(&mut self, first: Turn, until: Cycle, out: &mut Outbox) -> Result<bool, Fault> {
        let mut turn = first;
        while self.run_core(&turn, out.horizon(until), Some(&mut *out))? {
            match self.turn() {
                Some(next) if next.now >= out.horizon(until) => return Ok(true),
                Some(next) if next.now <= self.shared.tensix.next() => turn = next,
                _ => break,
            }
        }
        Ok(false)
    }

    /// Runs a core until `limit` or until another must go first; without an outbox, until it would
    /// do something that others see. True when it stays running and has no side effect.
    ///
    /// Inlined, so that a turn of a few instructions enters one frame, that of [`interpret`]: 1 %
    /// of the instructions of an empty program.
    #[inline(always)]
    pub(super) fn run_core(&mut self, turn: &Turn, limit: Cycle, out: Option<&mut Outbox>) -> Result<bool, Fault> {
        let i = turn.core;
        let core = Processor::ALL[i];
        let (slot, horizon) = (&mut self.slots[i].core, turn.horizon.min(limit));
        let (shared, ports) = (&mut self.shared, &mut self.ports);
        let (exit, horizon) = match shared.fabric.probes() {
            (false, false) => interpret::<false, false>(slot, core, shared, ports, horizon, out, limit),
            (true, false) => interpret::<true, false>(slot, core, shared, ports, horizon, out, limit),
            (_, true) => interpret::<true, true>(slot, core, shared, ports, horizon, out, limit),
        };
        if matches!(exit, Exit::Limit | Exit::Sync) && self.shared.fabric.wake == 0 && !self.has_side_effects() {
            return Ok(true);
        }
        self.end_turn(i, horizon, exit)?;
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

/// Runs the interpreter's loop; returns why it ended, and the bus's horizon then.
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
    ports: &mut [Port; 5],
    horizon: Cycle,
    out: Option<&mut Outbox>,
    limit: Cycle,
) -> (Exit<Fault>, Cycle) {
    let mut bus =
        TileBus::<PROBED, COUNTED> { shared, core: who, ports: Ports::of(ports, who), horizon, out, due: NEVER };
    let exit = core.run(&mut bus, limit);
    (exit, bus.horizon)
}
