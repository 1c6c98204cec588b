//! The scheduler: one virtual clock over nodes that only affect each other by packets.
//!
//! Time advances in windows. No packet arrives sooner than [`timing::LOOKAHEAD`] after it left, and
//! each node knows a cycle before which nothing can leave it ([`Node::sends`]). So within a window
//! that ends the look-ahead after the first of these cycles, every node can run alone, in any
//! order; at its end the network takes what left and delivers the arrivals. The node that can send
//! first is not limited by itself: it runs until the others could affect it. When no node has work,
//! time jumps. When many have, several threads share the window ([`crate::crew`]). All of this only
//! batches the same events differently: results and cycles do not depend on it.

use crate::crew::{Crew, Span, Worked};
use crate::noc::{Network, NocStats, Outbox};
use crate::node::Outlook;
use crate::{Cycle, Fault, NEVER, Node, timing};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// With fewer busy nodes a window is not divided among threads.
const LEAST_BUSY: usize = 8;
/// Nor with less work than this: handing over and waiting cost some two microseconds when nothing
/// else uses the processors.
const LEAST_WORK: Duration = Duration::from_micros(6);
/// Of the windows that are not divided, one of so many is measured.
const MEASURE: u32 = 4;

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

/// How far a step may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    /// The clock does not pass this cycle, and no node at which the host could see it
    /// ([`Node::faces_host`]).
    pub(crate) stop: Cycle,
    /// The other nodes may run so many cycles past it. What the host does from then on must not
    /// leave the node that faces it earlier.
    pub(crate) ahead: Cycle,
    /// Nodes execute speculatively for less than this after the window's start, which is the
    /// earliest cycle at which the host acts.
    pub(crate) notice: Cycle,
}

impl Until {
    /// The cycle that no node may pass.
    fn last(self) -> Cycle {
        self.stop.saturating_add(self.ahead)
    }
}

/// The clock, the network and the packets that wait for it.
pub(crate) struct Scheduler<N> {
    /// Everything before this cycle has happened.
    pub(crate) now: Cycle,
    /// Nothing happens before this cycle, unless a node is touched.
    next: Cycle,
    network: Network,
    out: Outbox,
    /// The last departure that was routed: the network sees departures in the order of time,
    /// whatever the windows.
    routed: Cycle,
    /// The earliest fault so far. It counts when all others have come to its cycle.
    fault: Option<Faulted>,
    /// The packets that the network has taken but that leave after all that has happened, with
    /// their cycles.
    ahead: VecDeque<(Cycle, NocStats)>,
    active: ActiveNodes,
    /// The threads, if there are several.
    crew: Option<Crew<N>>,
    /// What a busy node mostly needs for a window of this kind.
    work: Duration,
    /// The windows since one was measured.
    unmeasured: u32,
    /// With less work a window is not divided.
    least_work: Duration,
    /// The busy nodes of a window that is divided.
    spans: Vec<(usize, Span)>,
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

/// A node and what it does next.
#[derive(Clone, Copy)]
struct Active {
    node: usize,
    outlook: Outlook,
}

/// What the nodes with work do next.
#[derive(Clone, Copy)]
struct Front {
    /// The first of their next cycles.
    next: Cycle,
    /// The node that can send first.
    node: usize,
    /// When it can.
    sends: Cycle,
    /// When another can.
    others_send: Cycle,
}

/// A window of time.
#[derive(Clone, Copy)]
struct Window {
    /// The first event.
    start: Cycle,
    /// The clock and the nodes that face the host do not pass this cycle.
    stop: Cycle,
    /// No node may pass this cycle.
    last: Cycle,
    /// How far the nodes run.
    end: Cycle,
    /// The node that runs further, and how far.
    front: usize,
    front_end: Cycle,
    /// Speculative execution ends here: the host may act from then on.
    limit: Cycle,
}

impl Window {
    /// How far a node runs.
    #[inline]
    fn end_of(&self, number: usize, node: &impl Node) -> Cycle {
        let end = if number == self.front { self.front_end } else { self.end };
        if node.faces_host() { end.min(self.stop) } else { end }
    }
}

impl ActiveNodes {
    fn new(nodes: usize) -> Self {
        Self { list: Vec::with_capacity(nodes), positions: vec![None; nodes] }
    }

    fn set(&mut self, node: usize, outlook: Outlook) {
        match self.positions[node] {
            Some(position) => self.list[position].outlook = outlook,
            None if outlook.next == NEVER => {}
            None => {
                self.positions[node] = Some(self.list.len());
                self.list.push(Active { node, outlook });
            }
        }
    }

    /// Takes the node at `position` of the list off it.
    fn remove(&mut self, position: usize) {
        let Active { node, .. } = self.list.swap_remove(position);
        self.positions[node] = None;
        if let Some(moved) = self.list.get(position) {
            self.positions[moved.node] = Some(position);
        }
    }

    /// Forgets the nodes that sleep; returns the first cycle at which another can send.
    fn forget_sleepers(&mut self) -> Cycle {
        let (mut position, mut first) = (0, NEVER);
        while let Some(&Active { outlook, .. }) = self.list.get(position) {
            if outlook.next == NEVER {
                self.remove(position);
            } else {
                first = first.min(outlook.sends);
                position += 1;
            }
        }
        first
    }

    fn front(&self) -> Front {
        let mut front = Front { next: NEVER, node: 0, sends: NEVER, others_send: NEVER };
        for &Active { node, outlook: Outlook { next, sends } } in &self.list {
            front.next = front.next.min(next);
            if sends < front.sends {
                (front.others_send, front.sends, front.node) = (front.sends, sends, node);
            } else {
                front.others_send = front.others_send.min(sends);
            }
        }
        front
    }
}

impl<N: Worked> Scheduler<N> {
    /// A clock at zero for so many nodes, which run on `threads` threads.
    pub(crate) fn new(network: Network, nodes: usize, threads: usize) -> Self {
        Self {
            now: 0,
            next: 0,
            network,
            out: Outbox::default(),
            routed: 0,
            fault: None,
            ahead: VecDeque::new(),
            active: ActiveNodes::new(nodes),
            crew: (threads > 1).then(|| Crew::new(threads, nodes)),
            work: Duration::ZERO,
            unmeasured: 0,
            least_work: LEAST_WORK,
            spans: Vec::with_capacity(nodes),
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
        let outlook = node.outlook();
        self.next = self.next.min(outlook.next);
        self.active.set(index, outlook);
    }

    /// What has been put on the NoCs.
    pub(crate) fn noc_stats(&self) -> NocStats {
        let ahead = self.ahead.iter().filter(|&&(at, _)| at >= self.now);
        ahead.fold(self.network.stats(), |all, &(_, one)| all - one)
    }

    /// True when nothing will happen by itself.
    pub(crate) fn is_quiet(&self) -> bool {
        self.out.earliest().is_none() && self.active.list.iter().all(|active| active.outlook.next == NEVER)
    }

    /// A node cannot continue. Others may have faulted before it in simulated time: they are run up
    /// to the same cycle, and then the earliest counts.
    fn faulted(&mut self, node: usize, start: Cycle, fault: Fault) {
        self.active.set(node, Outlook::ASLEEP);
        let at = fault.site.cycle.unwrap_or(start);
        if self.fault.as_ref().is_none_or(|other| (at, node) < (other.at, other.node)) {
            self.fault = Some(Faulted { at, node, fault });
        }
    }

    /// Simulates one window.
    ///
    /// # Errors
    /// A fault of a node. The clock does not move any more then.
    pub(crate) fn step(&mut self, nodes: &mut [N], until: Until) -> Result<Step, Fault> {
        if self.next >= until.stop && self.next != NEVER {
            self.now = self.now.max(until.stop);
            return Ok(Step::Reached);
        }
        let front = self.active.front();
        let waiting = self.out.earliest().unwrap_or(NEVER);
        let start = front.next.min(waiting);
        let (stop, last) = match &self.fault {
            Some(Faulted { at, fault, .. }) if start > *at && *at < until.stop => {
                self.now = self.now.max(*at);
                return Err(fault.clone());
            }
            Some(Faulted { at, .. }) if start > *at => (until.stop, until.stop),
            Some(Faulted { at, .. }) => (until.stop.min(at + 1), until.last().min(at + 1)),
            None if start == NEVER => return Ok(Step::Quiet),
            None => (until.stop, until.last()),
        };
        if start >= stop {
            self.next = if self.fault.is_some() { 0 } else { start };
            self.now = self.now.max(stop);
            return Ok(Step::Reached);
        }
        let end_after = |sends: Cycle| sends.min(waiting).saturating_add(timing::LOOKAHEAD).min(last);
        let limit = start.saturating_add(until.notice).min(last);
        let end = end_after(front.sends);
        let mut window = Window { start, stop, last, end, front: front.node, front_end: end, limit };
        if front.sends != NEVER && nodes[front.node].rested().is_some() {
            window.front_end = end_after(front.others_send);
        }
        self.next = 0;
        self.run_window(nodes, window);
        Ok(Step::Ran)
    }

    /// Runs the nodes over one window and routes what leaves in it.
    ///
    /// Not inlined: most calls of [`Scheduler::step`] on an idle chip end before it, and need few
    /// registers.
    #[inline(never)]
    fn run_window(&mut self, nodes: &mut [N], window: Window) {
        let sends = match self.crew {
            Some(_) if self.active.list.len() >= LEAST_BUSY => self.run_many(nodes, window),
            _ => self.run_in_turn(nodes, window),
        };
        self.now = self.now.max(window.end.min(window.stop));
        self.route(nodes, sends.min(window.last));
        if self.active.list.is_empty() && self.out.earliest().is_none() {
            // All sleep: time has come as far as the last of them.
            let rested = nodes[window.front].rested().unwrap_or(0);
            self.now = self.now.max(rested.min(window.front_end).min(window.stop));
        }
    }

    /// Runs the busy nodes, one after the other; returns the first cycle at which one can send.
    fn run_in_turn(&mut self, nodes: &mut [N], window: Window) -> Cycle {
        let (mut position, mut first) = (0, NEVER);
        // Who runs first does not matter: what leaves is put in order by `route`, and is not early
        // enough to limit another node.
        while let Some(&Active { node: i, mut outlook }) = self.active.list.get(position) {
            let node = &mut nodes[i];
            let end = window.end_of(i, node);
            if outlook.next < end {
                outlook = match node.run(end, &mut self.out) {
                    Ok(()) => {
                        node.speculate(self.out.horizon(end), window.limit);
                        node.outlook()
                    }
                    Err(fault) => {
                        self.faulted(i, window.start, fault);
                        Outlook::ASLEEP
                    }
                };
                self.active.list[position].outlook = outlook;
            }
            if outlook.next == NEVER {
                self.active.remove(position);
            } else {
                first = first.min(outlook.sends);
                position += 1;
            }
        }
        first
    }

    /// As [`Scheduler::run_in_turn`], on several threads if the last windows say that it pays.
    #[inline(never)]
    fn run_many(&mut self, nodes: &mut [N], window: Window) -> Cycle {
        // At once, and not when it first pays: when that is depends on the machine.
        if let Some(crew) = self.crew.as_mut().filter(|crew| !crew.has_started()) {
            crew.start();
        }
        let busy = self.active.list.iter().filter(|active| active.outlook.next < window.end).count();
        if busy < LEAST_BUSY {
            return self.run_in_turn(nodes, window);
        }
        let (spent, sends) = match self.crew.take() {
            Some(mut crew) if self.work * busy as u32 >= self.least_work => {
                let spent = self.run_together(&mut crew, nodes, window);
                self.crew = Some(crew);
                (spent, self.active.forget_sleepers())
            }
            crew => {
                self.crew = crew;
                self.unmeasured = (self.unmeasured + 1) % MEASURE;
                if self.unmeasured != 0 {
                    return self.run_in_turn(nodes, window);
                }
                let started = Instant::now();
                let sends = self.run_in_turn(nodes, window);
                (started.elapsed(), sends)
            }
        };
        self.work = (3 * self.work + spent / busy as u32) / 4;
        sends
    }

    /// Runs the busy nodes on the threads of the crew.
    fn run_together(&mut self, crew: &mut Crew<N>, nodes: &mut [N], window: Window) -> Duration {
        let span = |active: &Active| {
            let end = window.end_of(active.node, &nodes[active.node]);
            (active.outlook.next < end).then_some((active.node, Span { end, limit: window.limit }))
        };
        self.spans.extend(self.active.list.iter().filter_map(span));
        let (spent, finished) = crew.run(nodes, self.spans.drain(..), &mut self.out);
        for (node, outcome) in finished {
            match outcome {
                Ok(()) => self.active.set(node, nodes[node].outlook()),
                Err(fault) => self.faulted(node, window.start, fault),
            }
        }
        spent
    }

    /// Hands to the network, in the order of time, what left before anything else can, which is not
    /// before `end`, and delivers it.
    fn route(&mut self, nodes: &mut [N], mut end: Cycle) {
        self.out.noticed();
        let stopped = self.fault.as_ref().map(|f| f.node);
        while self.ahead.front().is_some_and(|&(at, _)| at < self.now) {
            self.ahead.pop_front();
        }
        while let Some(departure) = self.out.pop_before(end) {
            let at = departure.at;
            debug_assert!(self.routed <= at, "a packet of cycle {at} leaves after one of {}", self.routed);
            self.routed = at;
            if at >= self.now {
                self.ahead.push_back((at, NocStats::of(&departure.packet)));
            }
            let active = &mut self.active;
            self.network.carry(departure, |at, node, packet| {
                let node = usize::from(node);
                nodes[node].deliver(at, packet);
                if stopped != Some(node) {
                    let outlook = nodes[node].outlook();
                    active.set(node, outlook);
                    end = end.min(outlook.sends);
                }
            });
        }
    }
}
