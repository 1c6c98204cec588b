//! What a tile records.

use super::{Agent, Event, Spot, Wants, What};
use crate::Cycle;

/// The events of a tile since it was last asked.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    spot: Spot,
    wants: Wants,
    pub(crate) events: Vec<Event>,
}

impl Recorder {
    /// Records nothing yet.
    pub(crate) fn new(spot: Spot) -> Self {
        Self { spot, wants: Wants::NOTHING, events: Vec::new() }
    }

    /// Records these kinds of events from now on.
    pub(crate) fn set_wants(&mut self, wants: Wants) {
        self.wants = wants;
    }

    /// Whether such events are recorded.
    #[inline]
    pub(crate) fn wants(&self, wants: Wants) -> bool {
        self.wants.has(wants)
    }

    /// Records an event.
    #[inline]
    pub(crate) fn record(&mut self, at: Cycle, agent: Agent, pc: u32, what: What) {
        self.events.push(Event { at, spot: self.spot, agent, pc, what });
    }
}
