//! Observers: what they see of a chip, and what its tiles leave out because nobody needs it.

use super::Chip;
use super::node::{AnyNode, tiles_mut};
use crate::probe::{Hub, Observer, Packets, Wants};
use crate::{Cycle, NEVER};
use tilework_driver::Note;

/// Lines that a core has begun to go through more cycles ago are told as far as it has come.
const LINE_CYCLES: Cycle = 256;

impl Chip {
    /// Adds an observer. It sees what happens from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        let now = self.now();
        let hub = self.hub.get_or_insert_with(|| {
            let tile = |(number, node): (usize, &AnyNode)| match node {
                AnyNode::Tensix(tile) => Some((tile.xy(), number)),
                _ => None,
            };
            Box::new(Hub::new(self.nodes.iter().enumerate().filter_map(tile)))
        });
        hub.add(observer);
        let (wants, others, lines, once) = (hub.wants(), hub.others_want(), hub.lines(), hub.sees_counters_once());
        let gather = hub.gathers();
        for tile in tiles_mut(&mut self.nodes) {
            tile.observe((wants, others), once, &lines, now);
            tile.gather_lines(gather);
        }
        self.scheduler.observe(wants.has(Wants::ARRIVALS).then(|| Packets::new(&self.grid, wants)));
    }

    /// Whether there are observers.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.hub.is_some()
    }

    /// Hands a note of the host to the observers. It comes behind all events before the cycle that
    /// the chip has come to: the host may be ahead of it.
    pub fn note(&mut self, note: &Note) {
        let (now, reached) = (self.now(), self.scheduler.now);
        self.hand_over(reached, reached);
        if let Some(hub) = &mut self.hub {
            hub.note(now, note);
            match note {
                Note::Firmware(_) => {
                    let boundaries = hub.boundaries();
                    tiles_mut(&mut self.nodes).for_each(|tile| tile.set_boundaries(boundaries.clone()));
                    self.leave_unjudged();
                }
                Note::Queue(_) => {
                    self.observe_loads();
                    self.leave_unjudged();
                }
                Note::Launch(launch) => {
                    // Of other tiles nothing changes that concerns what they run.
                    let unjudged = hub.unjudged();
                    for node in launch.cores.iter().filter_map(|&core| hub.node(core)) {
                        if let Some(AnyNode::Tensix(tile)) = self.nodes.get_mut(node) {
                            tile.launches(&unjudged);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Has the tiles leave out what observers need to see little of.
    fn leave_unjudged(&mut self) {
        let Some(hub) = &self.hub else { return };
        let (unjudged, wants, others) = (hub.unjudged(), hub.wants(), hub.others_want());
        tiles_mut(&mut self.nodes).for_each(|tile| tile.set_unjudged(&unjudged));
        if wants.has(Wants::ARRIVALS) {
            let mut packets = Packets::new(&self.grid, wants);
            if !others.has(Wants::ARRIVALS) {
                packets.overlook(&unjudged.tiles);
            }
            self.scheduler.observe(Some(packets));
        }
    }

    /// Has the tiles record the loads that observers want to see.
    fn observe_loads(&mut self) {
        let loads = self.hub.as_ref().map_or(Vec::new(), |hub| hub.loads());
        for tile in tiles_mut(&mut self.nodes) {
            let of_tile = loads.iter().filter(|(xy, _)| *xy == tile.xy());
            tile.observe_loads(of_tile.map(|(_, range)| range.clone()).collect());
        }
    }

    /// Hands to the observers what they have not seen of the time before [`Chip::now`]; of a chip
    /// that a fault has stopped, everything.
    pub fn settle_observers(&mut self) {
        let (now, reached) = if self.fault.is_some() { (NEVER, NEVER) } else { (self.now(), self.scheduler.now) };
        let Some(hub) = &self.hub else { return };
        // What has been executed is told for a cycle that is not over.
        let until = now.max(hub.reached().saturating_add(1));
        let events = self.scheduler.events();
        for tile in tiles_mut(&mut self.nodes) {
            tile.settle_counts(until.saturating_sub(1), events);
        }
        self.hand_over(until, reached);
    }

    /// Hands over all that has happened before `until`, where nothing more will happen before
    /// `reached`: the host may be ahead of the chip.
    pub(super) fn hand_over(&mut self, until: Cycle, reached: Cycle) {
        if let Some(hub) = &mut self.hub {
            let events = self.scheduler.events();
            if hub.gathers() {
                tiles_mut(&mut self.nodes).for_each(|tile| tile.settle_lines(events));
            }
            hub.hand_over(events, until, reached);
        }
    }

    /// Hands over what has happened before `now`, except what comes after the first word of a line
    /// that a core has only begun to go through: told word by word it would cost far more.
    fn hand_over_most(&mut self, now: Cycle) {
        let Some(hub) = self.hub.as_mut().filter(|hub| hub.gathers() && !hub.is_judged()) else {
            return self.hand_over(now, now);
        };
        let events = self.scheduler.events();
        let mut until = now;
        for tile in tiles_mut(&mut self.nodes) {
            until = until.min(tile.settle_lines_before(now.saturating_sub(LINE_CYCLES), events));
        }
        hub.hand_over(events, until, until);
    }

    /// Hands over what has happened, if it `is_due`, and has the tiles leave out what is known.
    #[inline(never)]
    pub(super) fn serve_observers(&mut self, is_due: bool) {
        let now = self.scheduler.now;
        if is_due {
            self.hand_over_most(now);
        }
        if let Some(hub) = &mut self.hub {
            for (node, known) in hub.known() {
                if let Some(AnyNode::Tensix(tile)) = self.nodes.get_mut(node) {
                    tile.know(&known);
                }
            }
            if hub.ends() {
                self.ended.get_or_insert(now);
            }
        }
    }
}
