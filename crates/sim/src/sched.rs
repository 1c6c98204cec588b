//! The scheduler: one virtual clock over nodes that only affect each other by packets.
//!
//! Time advances in windows. No packet arrives sooner than [`timing::LOOKAHEAD`] after it left, so
//! within a window of that length every node can run alone, in any order; at its end the network
//! takes what left and delivers the arrivals. When only one node has work, the window extends to
//! the cycle at which another could affect it. When none has, time jumps. When many have, several
//! threads share the window ([`crate::crew`]). All of this only batches the same events differently:
//! results and cycles do not depend on it.

use crate::crew::{Crew, Span, Worked};
use crate::noc::{Network, NocStats, Outbox};
use crate::{Cycle, Fault, NEVER, Node, timing};
use std::time::{Duration, Instant};

/// With fewer busy nodes a window is not divided among threads.
const LEAST_BUSY: usize = 8;
/// Nor with less work than this: handing over and waiting cost some two microseconds when nothing
/// else uses the processors.
const LEAST_WORK: Duration = Duration::from_micros(6);

/// What a step did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Some events were handled; the clock stands at the window's end.
    Ran,
    /// Nothing happens before the given stop; the clock stands there.
    Reached,
    /// Nothing will ever happen by itself.
    Quiet,
}

/// The clock, the network and the packets that wait for it.
pub(crate) struct Scheduler<N> {
    /// Everything before this cycle has happened.
    pub(crate) now: Cycle,
    network: Network,
    out: Outbox,
    /// The last departure that was routed: the network sees departures in the order of time,
    /// whatever the windows.
    routed: Cycle,
    /// The earliest fault so far. It counts when all others have come to its cycle.
    fault: Option<Faulted>,
    active: ActiveNodes,
    /// The threads, if there are several.
    crew: Option<Crew<N>>,
    /// What a busy node mostly needs for a window of this kind.
    work: Duration,
    /// With less work a window is not divided.
    least_work: Duration,
}

/// A fault of a node.
struct Faulted {
    at: Cycle,
    node: usize,
    fault: Fault,
}

/// The nodes that have work, with their next cycles. Most of a chip sleeps most of the time.
struct ActiveNodes {
    /// The nodes that have work, and perhaps a few others, in no order.
    list: Vec<Active>,
    /// Per node: its position in `list`, if it is there.
    positions: Vec<Option<usize>>,
}

/// A node and its next cycle.
#[derive(Clone, Copy)]
struct Active {
    node: usize,
    next: Cycle,
}

/// A window of time.
#[derive(Clone, Copy)]
struct Window {
    start: Cycle,
    /// No node may pass this cycle.
    stop: Cycle,
    /// Speculative execution ends here: the host may act from then on.
    limit: Cycle,
}

impl ActiveNodes {
    fn new(nodes: usize) -> Self {
        Self { list: Vec::with_capacity(nodes), positions: vec![None; nodes] }
    }

    fn set(&mut self, node: usize, next: Cycle) {
        match self.positions[node] {
            Some(position) => self.list[position].next = next,
            None if next == NEVER => {}
            None => {
                self.positions[node] = Some(self.list.len());
                self.list.push(Active { node, next });
            }
        }
    }

    fn next(&self, node: usize) -> Cycle {
        self.positions[node].map_or(NEVER, |position| self.list[position].next)
    }

    fn forget_sleepers(&mut self) {
        let mut position = 0;
        while let Some(&Active { node, next }) = self.list.get(position) {
            if next != NEVER {
                position += 1;
                continue;
            }
            self.list.swap_remove(position);
            self.positions[node] = None;
            if let Some(moved) = self.list.get(position) {
                self.positions[moved.node] = Some(position);
            }
        }
    }

    /// The first two of the nodes' next cycles, and the node of the first.
    fn first_two(&self) -> (Cycle, usize, Cycle) {
        let (mut first, mut who, mut second) = (NEVER, 0, NEVER);
        for &Active { node, next } in &self.list {
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

impl<N: Worked> Scheduler<N> {
    /// A clock at zero for so many nodes, which run on `threads` threads.
    pub(crate) fn new(network: Network, nodes: usize, threads: usize) -> Self {
        Self {
            now: 0,
            network,
            out: Outbox::default(),
            routed: 0,
            fault: None,
            active: ActiveNodes::new(nodes),
            crew: (threads > 1).then(|| Crew::new(threads)),
            work: Duration::ZERO,
            least_work: LEAST_WORK,
        }
    }

    /// Divides windows however little work they are, for tests.
    #[cfg(test)]
    pub(crate) fn share_every_window(&mut self) {
        self.least_work = Duration::ZERO;
    }

    /// Whether several threads have run nodes, for tests.
    #[cfg(test)]
    pub(crate) fn has_shared_windows(&self) -> bool {
        self.crew.as_ref().is_some_and(Crew::has_started)
    }

    /// Asks a node that was changed from outside for its next cycle.
    pub(crate) fn touched(&mut self, index: usize, node: &N) {
        self.active.set(index, node.next());
    }

    /// What the NoCs have carried.
    pub(crate) fn noc_stats(&self) -> NocStats {
        self.network.stats()
    }

    /// True when nothing will happen by itself.
    pub(crate) fn is_quiet(&self) -> bool {
        self.out.earliest().is_none() && self.active.list.iter().all(|active| active.next == NEVER)
    }

    /// A node cannot continue. Others may have faulted before it in simulated time: they are run up
    /// to the same cycle, and then the earliest counts.
    fn faulted(&mut self, node: usize, start: Cycle, fault: Fault) {
        self.active.set(node, NEVER);
        let at = fault.site.cycle.unwrap_or(start);
        if self.fault.as_ref().is_none_or(|other| (at, node) < (other.at, other.node)) {
            self.fault = Some(Faulted { at, node, fault });
        }
    }

    /// Simulates one window, without passing `stop`. Nodes execute speculatively for less than
    /// `notice` after the window's start, which is the earliest cycle at which the host acts.
    ///
    /// # Errors
    /// A fault of a node. The clock does not move any more then.
    pub(crate) fn step(&mut self, nodes: &mut [N], stop: Cycle, notice: Cycle) -> Result<Step, Fault> {
        let (first, who, second) = self.active.first_two();
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
        let window = Window { start, stop, limit: start.saturating_add(notice).min(stop) };
        let alone = (first != NEVER).then_some(who);
        self.run_window(nodes, alone, second.min(waiting), window);
        Ok(Step::Ran)
    }

    /// Runs the nodes over one window and routes what leaves in it. `first` is the node with the
    /// first event, `others` the first cycle at which anything else happens.
    ///
    /// Not inlined: most calls of [`Scheduler::step`] on an idle chip end before it, and need few
    /// registers.
    #[inline(never)]
    fn run_window(&mut self, nodes: &mut [N], first: Option<usize>, others: Cycle, window: Window) {
        let end = window.start.saturating_add(timing::LOOKAHEAD).min(window.stop);
        let alone = first.filter(|&who| others >= end && nodes[who].rested().is_some());
        let end = match alone {
            Some(who) => match self.run_alone(nodes, who, others, window) {
                Some(end) => end,
                None => return, // a fault
            },
            None => self.run_all(nodes, end, window),
        };
        self.route(nodes, end);
        self.now = self.now.max(end);
    }

    /// Runs node `who`, which alone has work, until another, whose work begins at `others`, could
    /// affect it. Returns the window's end, or `None` after a fault.
    fn run_alone(&mut self, nodes: &mut [N], who: usize, others: Cycle, window: Window) -> Option<Cycle> {
        let until = others.saturating_add(timing::LOOKAHEAD).min(window.stop);
        if let Err(fault) = nodes[who].run(until, &mut self.out) {
            self.faulted(who, window.start, fault);
            return None;
        }
        nodes[who].speculate(self.out.horizon(until), window.limit);
        self.active.set(who, nodes[who].next());
        // The others stand where they were: what leaves at or after their next cycle waits for what
        // they may send before it.
        let end = self.out.horizon(until).min(others);
        if self.active.next(who) != NEVER {
            return Some(end);
        }
        // It went to sleep on the way: time has come as far as it did.
        Some(end.min(nodes[who].rested().unwrap_or(end).max(window.start + 1)))
    }

    /// Runs all nodes up to `end`. Returns the window's end.
    fn run_all(&mut self, nodes: &mut [N], end: Cycle, window: Window) -> Cycle {
        if self.crew.is_some() && self.active.list.len() >= LEAST_BUSY {
            self.run_many(nodes, end, window);
        } else {
            self.run_in_turn(nodes, end, window);
        }
        self.active.forget_sleepers();
        // What is to leave before anybody does anything else needs no window of its own, unless a
        // fault ends time here.
        if self.fault.is_none() && self.out.earliest().is_some_and(|at| at >= end) {
            let (next, ..) = self.active.first_two();
            return end.max(self.out.horizon(window.stop).min(next));
        }
        end
    }

    /// Runs the busy nodes up to `end`, one after the other.
    fn run_in_turn(&mut self, nodes: &mut [N], end: Cycle, window: Window) {
        // Who runs first does not matter: what leaves is put in order by `route`.
        for k in 0..self.active.list.len() {
            let Active { node: i, next } = self.active.list[k];
            if next < end {
                let node = &mut nodes[i];
                if let Err(fault) = node.run(end, &mut self.out) {
                    self.faulted(i, window.start, fault);
                    continue;
                }
                node.speculate(end, window.limit);
                self.active.list[k].next = node.next();
            }
        }
    }

    /// Runs the busy nodes up to `end`, on several threads if the last windows say that it pays.
    #[inline(never)]
    fn run_many(&mut self, nodes: &mut [N], end: Cycle, window: Window) {
        let busy = self.active.list.iter().filter(|active| active.next < end).count();
        if busy < LEAST_BUSY {
            return self.run_in_turn(nodes, end, window);
        }
        let share = |spent: Duration| spent / u32::try_from(busy).unwrap_or(u32::MAX);
        let work = match self.crew.take() {
            Some(mut crew) if self.work * busy as u32 >= self.least_work => {
                let work = share(self.run_together(&mut crew, nodes, end, window));
                self.crew = Some(crew);
                work
            }
            crew => {
                self.crew = crew;
                let started = Instant::now();
                self.run_in_turn(nodes, end, window);
                share(started.elapsed())
            }
        };
        self.work = (3 * self.work + work) / 4;
    }

    /// Runs the busy nodes up to `end` on the threads of the crew. None of them looks at what the
    /// others send: that is not earlier than `window.start`, and so limits nobody.
    fn run_together(&mut self, crew: &mut Crew<N>, nodes: &mut [N], end: Cycle, window: Window) -> Duration {
        let busy = self.active.list.iter().filter(|active| active.next < end).map(|active| active.node);
        let span = Span { end, limit: window.limit };
        let (spent, finished) = crew.run(nodes, busy, span, &mut self.out);
        for (node, outcome) in finished {
            match outcome {
                Ok(next) => self.active.set(node, next),
                Err(fault) => self.faulted(node, window.start, fault),
            }
        }
        spent
    }

    /// Hands what left before `end` to the network, in the order of time, and delivers it.
    fn route(&mut self, nodes: &mut [N], end: Cycle) {
        self.out.noticed();
        let stopped = self.fault.as_ref().map(|f| f.node);
        while let Some(departure) = self.out.pop_before(end) {
            let at = departure.at;
            debug_assert!(self.routed <= at, "a packet of cycle {at} leaves after one of {}", self.routed);
            self.routed = at;
            let active = &mut self.active;
            self.network.carry(departure, |at, node, packet| {
                let node = usize::from(node);
                nodes[node].deliver(at, packet);
                if stopped != Some(node) {
                    active.set(node, nodes[node].next());
                }
            });
        }
    }
}
