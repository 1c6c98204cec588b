//! The busy nodes of a window: they run one after the other, or on several threads.

use super::{Scheduler, Window};
use crate::active::{Active, FEW};
use crate::crew::{Crew, Span, Worked};
use std::time::{Duration, Instant};

/// With fewer busy nodes a window is not divided among threads.
pub(super) const LEAST_BUSY: usize = FEW + 1;
/// Nor with less work than this: handing over and waiting cost some two microseconds when nothing
/// else uses the processors.
pub(super) const LEAST_WORK: Duration = Duration::from_micros(6);
/// Of the windows that are not divided, one of so many is measured.
const MEASURE: u32 = 4;

impl<N: Worked> Scheduler<N> {
    /// Runs the busy nodes, one after the other. The list of nodes keeps its order, whichever
    /// theirs was: windows may depend on it.
    pub(super) fn run_in_turn(&mut self, nodes: &mut [N], window: Window) {
        // Who runs first does not matter: what leaves is put in order by `route`, and is not early
        // enough to limit another node. To and fro, windows begin with the nodes that the host's
        // cache still holds; always the same way, those would be replaced before their turn comes.
        self.backwards = !self.backwards;
        let count = self.active.list().len();
        for i in 0..count {
            let position = if self.backwards { count - 1 - i } else { i };
            let Active { node: number, outlook } = self.active.list()[position];
            let end = window.end_of(number, &nodes[number]);
            if outlook.next < end {
                let outlook = self.run_node(nodes, number, end, &window);
                self.active.set(number, outlook);
            }
        }
    }

    /// As [`Scheduler::run_in_turn`], on several threads if the last windows say that it pays.
    #[inline(never)]
    pub(super) fn run_many(&mut self, nodes: &mut [N], window: Window) {
        // At once, and not when it first pays: when that is depends on the machine.
        if let Some(crew) = self.crew.as_mut().filter(|crew| !crew.has_started()) {
            crew.start();
        }
        let busy = self.active.list().iter().filter(|active| active.outlook.next < window.end).count();
        if busy < LEAST_BUSY {
            return self.run_in_turn(nodes, window);
        }
        let spent = match self.crew.take() {
            Some(mut crew) if self.work * busy as u32 >= self.least_work => {
                let spent = self.run_together(&mut crew, nodes, window);
                self.crew = Some(crew);
                spent
            }
            crew => {
                self.crew = crew;
                self.unmeasured = (self.unmeasured + 1) % MEASURE;
                if self.unmeasured != 0 {
                    return self.run_in_turn(nodes, window);
                }
                let started = Instant::now();
                self.run_in_turn(nodes, window);
                started.elapsed()
            }
        };
        self.work = (3 * self.work + spent / busy as u32) / 4;
    }

    /// Runs the busy nodes on the threads of the crew.
    fn run_together(&mut self, crew: &mut Crew<N>, nodes: &mut [N], window: Window) -> Duration {
        let span = |active: &Active| {
            let end = window.end_of(active.node, &nodes[active.node]);
            (active.outlook.next < end).then_some((active.node, Span { end, limit: window.limit }))
        };
        self.spans.extend(self.active.list().iter().filter_map(span));
        let (spent, finished) = crew.run(nodes, self.spans.drain(..), &mut self.out);
        for (node, outcome) in finished {
            match outcome {
                Ok(()) => {
                    let outlook = self.has_run(&nodes[node], window.end_of(node, &nodes[node]), &window);
                    self.active.set(node, outlook);
                }
                Err(fault) => self.faulted(node, window.start, fault),
            }
        }
        spent
    }
}
