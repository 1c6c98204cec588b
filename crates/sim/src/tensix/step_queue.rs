//! When each agent of the coprocessor must look again.
//!
//! Cycle and agent are one number, so that the least one is the agent that comes first. While an
//! agent takes its step it is not among the others: what it changes for itself it says when the
//! step is over, and as long as it stays the first one, nothing has to be put in order.

use super::coprocessor::THREADS;
use super::unpack::UNPACKERS;
use crate::{Cycle, NEVER};

/// One that acts. Their numbers are the order in which they come within a cycle.
pub(super) type Agent = usize;
/// What `SFPLOADMACRO` has scheduled for the vector unit.
pub(super) const VECTOR: Agent = 0;
/// The mover with TDMA-RISC's command processor.
pub(super) const MOVER: Agent = 1;
/// The first thread; the others follow.
pub(super) const THREAD: Agent = 2;
/// The first unpacker; the other follows.
pub(super) const UNPACKER: Agent = THREAD + THREADS;
const AGENTS: usize = UNPACKER + UNPACKERS;
/// Bits of an agent's index behind its cycle. No run comes to 2^61 cycles.
const INDEX_BITS: u32 = 3;
/// Nobody is taking a step.
const NOBODY: Agent = AGENTS;

/// The place of `agent` at cycle `at` in the order of steps.
#[inline]
const fn place(at: Cycle, agent: Agent) -> Cycle {
    if at == NEVER { NEVER } else { at << INDEX_BITS | agent as Cycle }
}

/// The next cycle of each agent.
#[derive(Clone, Debug)]
pub(super) struct StepQueue {
    /// By agent; [`NEVER`] for the one that is taking its step.
    places: [Cycle; AGENTS],
    /// The first of these.
    first: Cycle,
    /// Who is taking its step.
    acting: Agent,
}

impl Default for StepQueue {
    fn default() -> Self {
        Self { places: [NEVER; AGENTS], first: NEVER, acting: NOBODY }
    }
}

impl StepQueue {
    /// The first cycle in which something can happen.
    #[inline]
    pub(super) fn next(&self) -> Cycle {
        if self.first == NEVER { NEVER } else { self.first >> INDEX_BITS }
    }

    #[inline]
    fn find_first(&mut self) {
        let [a, b, c, d, e, f, g] = self.places;
        self.first = a.min(b).min(c.min(d)).min(e.min(f).min(g));
    }

    /// The agent must look again at cycle `at`, or earlier if that is asked for already.
    #[inline]
    pub(super) fn ask(&mut self, agent: Agent, at: Cycle) {
        let place = place(at, agent);
        if place < self.places[agent] && agent != self.acting {
            self.places[agent] = place;
            self.first = self.first.min(place);
        }
    }

    /// The agent, which takes no step, must look again at cycle `at` and not before.
    #[inline]
    pub(super) fn set(&mut self, agent: Agent, at: Cycle) {
        let place = place(at, agent);
        if self.places[agent] != place {
            self.places[agent] = place;
            self.find_first();
        }
    }

    /// The first agent takes its step, at [`StepQueue::next`].
    #[inline]
    pub(super) fn begin(&mut self) -> Agent {
        let agent = self.first as usize & ((1 << INDEX_BITS) - 1);
        self.acting = agent;
        if let Some(place) = self.places.get_mut(agent) {
            *place = NEVER;
        }
        self.find_first();
        agent
    }

    /// Whether `agent`, whose step is over, is the first one again if it must look at cycle `at`.
    #[inline]
    pub(super) fn goes_on(&self, agent: Agent, at: Cycle) -> bool {
        place(at, agent) < self.first
    }

    /// `agent`'s step is over; it must look again at cycle `at`.
    #[inline]
    pub(super) fn end(&mut self, agent: Agent, at: Cycle) {
        let place = place(at, agent);
        self.places[agent] = place;
        self.first = self.first.min(place);
        self.acting = NOBODY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agents_come_in_the_order_of_cycles_and_then_of_agents() {
        let agents = [UNPACKER + 1, THREAD + 2, VECTOR, MOVER, UNPACKER];
        let mut steps = StepQueue::default();
        assert_eq!(steps.next(), NEVER);
        agents.into_iter().for_each(|agent| steps.ask(agent, 7));
        steps.ask(THREAD, 6);
        let mut came = Vec::new();
        while steps.next() != NEVER {
            let (at, agent) = (steps.next(), steps.begin());
            came.push((at, agent));
            steps.end(agent, NEVER);
        }
        let rest = [VECTOR, MOVER, THREAD + 2, UNPACKER, UNPACKER + 1];
        assert_eq!(came, [vec![(6, THREAD)], rest.map(|agent| (7, agent)).to_vec()].concat());
    }

    proptest! {
        /// Beside a list that is searched anew every time.
        #[test]
        fn it_is_what_a_list_would_be(
            changes in prop::collection::vec((0..4u8, 0..AGENTS, 0..40u64), 1..60),
        ) {
            let (mut steps, mut list) = (StepQueue::default(), [NEVER; AGENTS]);
            for (how, agent, at) in changes {
                let first = list.iter().enumerate().map(|(i, &at)| (at, i)).min().unwrap_or((NEVER, 0));
                prop_assert_eq!(steps.next(), first.0);
                match how {
                    0 => {
                        steps.set(agent, at);
                        list[agent] = at;
                    }
                    1 => {
                        steps.ask(agent, at);
                        list[agent] = list[agent].min(at);
                    }
                    _ if first.0 == NEVER => {}
                    _ => {
                        let acting = steps.begin();
                        prop_assert_eq!(acting, first.1);
                        // In its step it asks for another agent, and for itself: no matter.
                        steps.ask(agent, at);
                        steps.ask(acting, 0);
                        if agent != first.1 {
                            list[agent] = list[agent].min(at);
                        }
                        list[first.1] = NEVER;
                        let others = list.iter().enumerate().map(|(i, &at)| (at, i)).min().unwrap_or((NEVER, 0));
                        prop_assert_eq!(steps.goes_on(acting, at), (at, first.1) < others);
                        steps.end(acting, at);
                        list[first.1] = at;
                    }
                }
            }
        }
    }
}
