//! The scheduler: one virtual clock over nodes that only affect each other by packets.
//!
//! Time advances in windows. No packet arrives sooner than [`timing::LOOKAHEAD`] after it left, and
//! each node knows a cycle before which nothing can leave it ([`Outlook::sends`]). So within a
//! window that ends the look-ahead after the first of these cycles, every node can run alone, in
//! any order; at its end the network takes what left and delivers the arrivals. The node that can
//! send first is not limited by itself: it runs until the others could affect it. While only a few
//! nodes have work, the first one runs alone until the others could affect it, so that it does
//! mostly in one piece what it does between two packets. When no node has work, time jumps. When
//! many have, several threads share the window ([`crate::crew`]). All of this only batches the same
//! events differently: results and cycles do not depend on it.

mod busy;

use crate::active::{Active, ActiveNodes, FEW};
use crate::crew::{Crew, Span, Worked};
use crate::distance::Distances;
use crate::noc::{Departure, Network, NocStats, NodeId, Outbox, Packet};
use crate::node::Outlook;
use crate::probe::{Event, Packets};
use crate::{Cycle, Fault, NEVER, Node, timing};
use busy::{LEAST_BUSY, LEAST_WORK};
use std::collections::VecDeque;
use std::time::Duration;

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
    /// The nodes of the last window have run from the end of the list to its start.
    backwards: bool,
    /// The packets that the network has taken but that leave after all that has happened, with
    /// their cycles.
    ahead: VecDeque<(Cycle, NocStats)>,
    active: ActiveNodes,
    distances: Distances,
    /// When the last of the nodes that ran beyond their window fell asleep.
    rested: Cycle,
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
    /// Records packets for observers.
    packets: Option<Packets>,
    /// No node runs further than this in one step, so that what it records has an end.
    stride: Cycle,
}

/// With an observer, no node runs further than this in one step: some events a cycle.
const OBSERVED_STRIDE: Cycle = 1 << 16;

/// A fault of a node.
#[derive(Clone)]
struct Faulted {
    at: Cycle,
    node: usize,
    fault: Fault,
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

impl<N: Worked> Scheduler<N> {
    /// A clock at zero for nodes at these distances, which run on `threads` threads.
    pub(crate) fn new(network: Network, distances: Distances, threads: usize) -> Self {
        let nodes = distances.nodes();
        Self {
            now: 0,
            next: 0,
            network,
            out: Outbox::default(),
            routed: 0,
            fault: None,
            ahead: VecDeque::new(),
            active: ActiveNodes::new(nodes),
            distances,
            rested: 0,
            backwards: false,
            crew: (threads > 1).then(|| Crew::new(threads, nodes)),
            work: Duration::ZERO,
            unmeasured: 0,
            least_work: LEAST_WORK,
            spans: Vec::with_capacity(nodes),
            packets: None,
            stride: NEVER,
        }
    }

    /// A scheduler in the same state, with threads of its own.
    pub(crate) fn twin(&self) -> Self {
        Self {
            now: self.now,
            next: self.next,
            network: self.network.clone(),
            out: self.out.clone(),
            routed: self.routed,
            fault: self.fault.clone(),
            ahead: self.ahead.clone(),
            active: self.active.clone(),
            distances: self.distances.clone(),
            rested: self.rested,
            backwards: self.backwards,
            crew: self.crew.as_ref().map(Crew::twin),
            work: self.work,
            unmeasured: self.unmeasured,
            least_work: self.least_work,
            spans: Vec::with_capacity(self.distances.nodes()),
            packets: self.packets.clone(),
            stride: self.stride,
        }
    }

    /// Somebody takes [`Scheduler::events`] from now on; `packets` if they are to be among them.
    pub(crate) fn observe(&mut self, packets: Option<Packets>) {
        self.packets = packets;
        self.stride = OBSERVED_STRIDE;
    }

    /// What was recorded since this was last emptied.
    #[inline]
    pub(crate) fn events(&mut self) -> &mut Vec<Event> {
        &mut self.out.events
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

    /// The nodes that have work soon, as they are listed, for tests: which of two comes first may
    /// decide how time is divided into windows.
    #[cfg(test)]
    pub(crate) fn listed(&self) -> Vec<usize> {
        self.active.list().iter().map(|active| active.node).collect()
    }

    /// Asks a node that was changed from outside for its next cycle.
    pub(crate) fn touched(&mut self, index: usize, node: &N) {
        let outlook = node.outlook();
        self.next = self.next.min(outlook.next);
        self.active.set(index, outlook);
    }

    /// The first cycle at which something happens by itself, or [`NEVER`].
    pub(crate) fn next_event(&mut self) -> Cycle {
        self.active.front().next.min(self.out.earliest().unwrap_or(NEVER))
    }

    /// What has been put on the NoCs.
    pub(crate) fn noc_stats(&self) -> NocStats {
        let ahead = self.ahead.iter().filter(|&&(at, _)| at >= self.now);
        ahead.fold(self.network.stats(), |all, &(_, one)| all - one)
    }

    /// True when nothing will happen by itself.
    pub(crate) fn is_quiet(&self) -> bool {
        self.out.earliest().is_none() && self.active.is_asleep()
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

    /// Lets time pass up to `stop` if it is known that nothing happens before.
    #[inline]
    pub(crate) fn passes(&mut self, stop: Cycle) -> bool {
        let passes = self.next >= stop && self.next != NEVER;
        if passes {
            self.now = self.now.max(stop);
        }
        passes
    }

    /// How many cycles are known to pass without anything happening.
    #[inline]
    pub(crate) fn quiet_cycles(&self) -> Cycle {
        if self.next == NEVER { 0 } else { self.next.saturating_sub(self.now) }
    }

    /// Simulates one window.
    ///
    /// # Errors
    /// A fault of a node. The clock does not move any more then.
    pub(crate) fn step(&mut self, nodes: &mut [N], until: Until) -> Result<Step, Fault> {
        if self.passes(until.stop) {
            return Ok(Step::Reached);
        }
        if self.active.is_empty() && self.out.earliest().is_none() && self.fault.is_none() {
            return Ok(Step::Quiet);
        }
        self.step_on(nodes, until)
    }

    /// Simulates windows until the clock stands at the stop or nothing happens by itself.
    ///
    /// # Errors
    /// As [`Scheduler::step`].
    pub(crate) fn steps(&mut self, nodes: &mut [N], until: Until) -> Result<Step, Fault> {
        loop {
            let step = self.step(nodes, until)?;
            if step != Step::Ran || self.now >= until.stop {
                return Ok(step);
            }
        }
    }

    /// As [`Scheduler::step`], when something may happen. Not inlined: most steps of an idle chip
    /// end before it, and need few registers.
    #[inline(never)]
    fn step_on(&mut self, nodes: &mut [N], until: Until) -> Result<Step, Fault> {
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
            None => (until.stop, until.last().min(start.saturating_add(self.stride))),
        };
        if start >= stop {
            self.next = if self.fault.is_some() { 0 } else { start };
            self.now = self.now.max(stop);
            return Ok(Step::Reached);
        }
        let end_after = |sends: Cycle| sends.min(waiting).saturating_add(timing::LOOKAHEAD).min(last);
        let first = self.active.list().get(front.position).map_or(usize::MAX, |active| active.node);
        let limit = start.saturating_add(until.notice).min(last);
        let end = end_after(front.sends);
        let mut window = Window { start, stop, last, end, front: front.node, front_end: end, limit };
        self.next = 0;
        // Where the host could see it, time passes window by window.
        if self.active.list().len() <= FEW && first != usize::MAX && !nodes[first].faces_host() {
            let others_send = if front.node == first { front.others_send } else { front.sends };
            let end = self.active.reaches(front.position, &self.distances).min(last);
            window.front_end = self.out.affects(first, end, &self.distances);
            self.run_first(nodes, window, front.position, others_send);
            return Ok(Step::Ran);
        }
        if front.sends != NEVER && front.node != usize::MAX && nodes[front.node].computes() {
            window.front_end = end_after(front.others_send);
        }
        window.end = window.end.min(self.active.later_sends());
        self.run_window(nodes, window);
        Ok(Step::Ran)
    }

    /// Runs the nodes over one window and routes what leaves in it.
    #[inline(never)]
    fn run_window(&mut self, nodes: &mut [N], window: Window) {
        match self.crew {
            Some(_) if self.active.list().len() >= LEAST_BUSY => self.run_many(nodes, window),
            _ => self.run_in_turn(nodes, window),
        }
        let sends = self.active.tidy();
        self.now = self.now.max(window.end.min(window.stop));
        self.route(nodes, sends.min(window.last));
        self.end_window(&window);
    }

    /// Runs the node at `position` of the list, which has the first event, and routes what leaves
    /// before the others can send.
    #[inline(never)]
    fn run_first(&mut self, nodes: &mut [N], window: Window, position: usize, others_send: Cycle) {
        let Active { node: i, mut outlook } = self.active.list()[position];
        let node = &mut nodes[i];
        let end = if node.computes() { window.front_end } else { window.end };
        if outlook.next < end {
            outlook = self.run_node(nodes, i, end, &window);
            self.active.update(position, outlook);
        }
        // The others have come as far as the first one.
        self.now = self.now.max(window.start.min(window.stop));
        self.route(nodes, others_send.min(outlook.sends).min(window.last));
        self.end_window(&window);
    }

    /// Advances the clock if all sleep: as far as the last of them has come.
    #[inline]
    fn end_window(&mut self, window: &Window) {
        if self.active.is_empty() && self.out.earliest().is_none() {
            self.now = self.now.max(self.rested.max(window.end).min(window.stop));
        }
    }

    /// Runs a node up to `end`; returns what it does next.
    #[inline]
    fn run_node(&mut self, nodes: &mut [N], number: usize, end: Cycle, window: &Window) -> Outlook {
        let node = &mut nodes[number];
        self.out.begin();
        match node.run(end, &mut self.out) {
            Ok(()) => {
                node.speculate(self.out.horizon(end), window.limit);
                self.has_run(node, end, window)
            }
            Err(fault) => {
                self.faulted(number, window.start, fault);
                Outlook::ASLEEP
            }
        }
    }

    /// What a node does next that has run up to `end`.
    #[inline]
    fn has_run(&mut self, node: &N, end: Cycle, window: &Window) -> Outlook {
        let outlook = node.outlook();
        if outlook.next == NEVER && end > window.end {
            self.rested = self.rested.max(node.rested().min(end));
        }
        outlook
    }

    /// Hands to the network, in the order of time, what left before anything else can, which is not
    /// before `end`, and delivers it.
    fn route(&mut self, nodes: &mut [N], end: Cycle) {
        // What leaves far ahead, as the answers of a busy DRAM bank, may come after what the host
        // does about something that it sees.
        let mut end = end.min(self.out.noticed());
        let stopped = self.fault.as_ref().map(|f| f.node);
        while self.ahead.front().is_some_and(|&(at, _)| at < self.now) {
            self.ahead.pop_front();
        }
        while let Some(departure) = self.out.pop_before(end) {
            let at = departure.at;
            debug_assert!(self.routed <= at, "a packet of cycle {at} leaves after one of {}", self.routed);
            self.routed = at;
            let sees_leave = self.packets.as_ref().is_some_and(|packets| packets.sees_leave(&departure.packet));
            let one = if sees_leave { None } else { self.network.carry_one(at, &departure.packet) };
            let carried = match one {
                Some((arrival, node, carried)) => {
                    if let Some(packets) = &self.packets {
                        packets.arrives(arrival, &departure.packet, &mut self.out.events);
                    }
                    end = end.min(deliver(&mut self.active, nodes, stopped, (arrival, node, departure.packet)));
                    carried
                }
                None => self.route_other(nodes, departure, stopped, &mut end),
            };
            if at >= self.now {
                self.ahead.push_back((at, carried));
            }
        }
    }

    /// Hands a packet to the network that goes to several nodes or that observers see leave, and
    /// delivers it. Lowers `end` to the first cycle at which one of the receivers can send.
    #[inline(never)]
    fn route_other(
        &mut self,
        nodes: &mut [N],
        departure: Departure,
        stopped: Option<usize>,
        end: &mut Cycle,
    ) -> NocStats {
        let active = &mut self.active;
        let (packets, events) = (&self.packets, &mut self.out.events);
        if let Some(packets) = packets {
            packets.leaves(departure.at, &departure.packet, events);
        }
        self.network.carry(departure, |at, node, packet| {
            if let Some(packets) = packets {
                packets.arrives(at, &packet, events);
            }
            *end = (*end).min(deliver(active, nodes, stopped, (at, node, packet)));
        })
    }
}

/// Delivers a packet to a node; returns the first cycle at which that can send, if it has not
/// stopped.
#[inline(always)]
fn deliver<N: Node>(
    active: &mut ActiveNodes,
    nodes: &mut [N],
    stopped: Option<usize>,
    (at, node, packet): (Cycle, NodeId, Box<Packet>),
) -> Cycle {
    let node = usize::from(node);
    nodes[node].deliver(at, packet);
    if stopped == Some(node) {
        return NEVER;
    }
    let outlook = nodes[node].outlook();
    active.set(node, outlook);
    outlook.sends
}
