//! The scheduler: one virtual clock over nodes that only touch each other by packets.
//!
//! Time advances in windows. No packet arrives sooner than [`timing::LOOKAHEAD`] after it left, so within a window of that length every
//! node can run alone, in any order; at its end the network takes what left and hands out the arrivals. When only one node has anything to
//! do the window stretches until another could matter. When none has, time jumps. All of this only chooses in which portions the same
//! events are worked off: results and cycles do not depend on it.

use crate::noc::{Network, NocStats, Outbox};
use crate::{Cycle, Fault, NEVER, Node, timing};

/// What a step did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Something was worked off; the clock stands at the window's end.
    Ran,
    /// Nothing happens before the given stop; the clock stands there.
    Reached,
    /// Nothing will ever happen by itself.
    Quiet,
}

/// The clock, the network and the packets that wait for it.
pub(crate) struct Scheduler {
    /// Everything before this cycle has happened.
    pub(crate) now: Cycle,
    network: Network,
    out: Outbox,
    /// The departure that was routed last: the network sees them in the order of time, whatever the windows.
    routed: Cycle,
    /// The earliest fault so far. It counts when all others have come to its cycle.
    fault: Option<Faulted>,
    agenda: Agenda,
}

/// A fault of a node.
struct Faulted {
    at: Cycle,
    node: usize,
    fault: Fault,
}

/// When each node has something to do. Most of a chip sleeps most of the time.
struct Agenda {
    /// The nodes that have something to do, and perhaps a few others, in no order.
    active: Vec<Active>,
    /// Per node: its place in `active`, if it is there.
    places: Vec<Option<usize>>,
}

/// A node and its next cycle.
#[derive(Clone, Copy)]
struct Active {
    node: usize,
    next: Cycle,
}

impl Agenda {
    fn set(&mut self, node: usize, next: Cycle) {
        match self.places[node] {
            Some(place) => self.active[place].next = next,
            None if next == NEVER => {}
            None => {
                self.places[node] = Some(self.active.len());
                self.active.push(Active { node, next });
            }
        }
    }

    fn next(&self, node: usize) -> Cycle {
        self.places[node].map_or(NEVER, |place| self.active[place].next)
    }

    fn forget_sleepers(&mut self) {
        let mut place = 0;
        while let Some(&Active { node, next }) = self.active.get(place) {
            if next != NEVER {
                place += 1;
                continue;
            }
            self.active.swap_remove(place);
            self.places[node] = None;
            if let Some(moved) = self.active.get(place) {
                self.places[moved.node] = Some(place);
            }
        }
    }

    /// The first two of the nodes' next cycles, and the node of the first.
    fn first_two(&self) -> (Cycle, usize, Cycle) {
        let (mut first, mut who, mut second) = (NEVER, 0, NEVER);
        for &Active { node, next } in &self.active {
            if next < second {
                if next < first {
                    (second, first, who) = (first, next, node);
                } else {
                    second = next;
                }
            }
        }
        (first, who, second)
    }
}

impl Scheduler {
    pub(crate) fn new(network: Network, nodes: usize) -> Self {
        Self {
            now: 0,
            network,
            out: Outbox::default(),
            routed: 0,
            fault: None,
            agenda: Agenda { active: Vec::with_capacity(nodes), places: vec![None; nodes] },
        }
    }

    /// Looks again at a node that was touched from outside.
    pub(crate) fn touched(&mut self, index: usize, node: &impl Node) {
        self.agenda.set(index, node.next());
    }

    /// What the NoCs have carried.
    pub(crate) fn noc_stats(&self) -> NocStats {
        self.network.stats()
    }

    /// True when nothing will happen by itself.
    pub(crate) fn is_quiet(&self) -> bool {
        self.out.earliest().is_none() && self.agenda.active.iter().all(|active| active.next == NEVER)
    }

    /// A node cannot go on. Others may have faulted before it, as time goes: they are run up to the same cycle, and then the earliest counts.
    fn faulted(&mut self, node: usize, start: Cycle, fault: Fault) {
        self.agenda.set(node, NEVER);
        let at = fault.site.cycle.unwrap_or(start);
        if self.fault.as_ref().is_none_or(|other| (at, node) < (other.at, other.node)) {
            self.fault = Some(Faulted { at, node, fault });
        }
    }

    /// Works off one window, without passing `stop`. What nodes do in advance lies less than `notice` after the window's start: so
    /// much later at the earliest does the host act.
    ///
    /// # Errors
    /// A fault of a node. The clock does not move any more then.
    pub(crate) fn step<N: Node>(&mut self, nodes: &mut [N], stop: Cycle, notice: Cycle) -> Result<Step, Fault> {
        let (first, who, second) = self.agenda.first_two();
        let waiting = self.out.earliest().unwrap_or(NEVER);
        let start = first.min(waiting);
        let stop = match &self.fault {
            Some(Faulted { at, fault, .. }) if start > *at => {
                self.now = self.now.max(*at);
                return Err(fault.clone());
            }
            Some(Faulted { at, .. }) => stop.min(at + 1),
            None => stop,
        };
        if start == NEVER {
            return Ok(Step::Quiet);
        }
        if start >= stop {
            self.now = self.now.max(stop);
            return Ok(Step::Reached);
        }
        let others = second.min(waiting);
        let ahead = start.saturating_add(notice).min(stop);
        let mut end = start.saturating_add(timing::LOOKAHEAD).min(stop);
        if others >= end && first != NEVER && nodes[who].rested().is_some() {
            // Only `who` runs, until someone else could matter to it.
            let until = others.saturating_add(timing::LOOKAHEAD).min(stop);
            if let Err(fault) = nodes[who].run(until, &mut self.out) {
                self.faulted(who, start, fault);
                return Ok(Step::Ran);
            }
            nodes[who].run_ahead(self.out.horizon(until), ahead);
            self.agenda.set(who, nodes[who].next());
            // The others stand where they were: what leaves at or after their next cycle waits for what they may send before it.
            end = self.out.horizon(until).min(others);
            if self.agenda.next(who) == NEVER {
                // It went to sleep on the way: time has come as far as it did.
                end = end.min(nodes[who].rested().unwrap_or(end).max(start + 1));
            }
        } else {
            // Who runs first does not matter: what leaves is put in order below.
            for k in 0..self.agenda.active.len() {
                let Active { node: i, next } = self.agenda.active[k];
                if next < end {
                    let node = &mut nodes[i];
                    if let Err(fault) = node.run(end, &mut self.out) {
                        self.faulted(i, start, fault);
                        continue;
                    }
                    node.run_ahead(end, ahead);
                    self.agenda.active[k].next = node.next();
                }
            }
            self.agenda.forget_sleepers();
            // What is to leave before anybody does anything else needs no window of its own, unless a fault ends time here.
            if self.fault.is_none() && self.out.earliest().is_some_and(|at| at >= end) {
                let (next, ..) = self.agenda.first_two();
                end = end.max(self.out.horizon(stop).min(next));
            }
        }
        self.out.noticed();
        let stopped = self.fault.as_ref().map(|f| f.node);
        while let Some(departure) = self.out.pop_before(end) {
            let at = departure.at;
            debug_assert!(self.routed <= at, "a packet of cycle {at} leaves after one of {}", self.routed);
            self.routed = at;
            let agenda = &mut self.agenda;
            self.network.carry(departure, |at, node, packet| {
                let node = usize::from(node);
                nodes[node].deliver(at, packet);
                if stopped != Some(node) {
                    agenda.set(node, nodes[node].next());
                }
            });
        }
        self.now = self.now.max(end);
        Ok(Step::Ran)
    }
}
