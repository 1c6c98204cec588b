//! What a tile records.

use super::counts::Counts;
use super::gates::Gates;
use super::{Agent, Event, Spot, Unit, Wants, What};
use crate::Cycle;
use std::ops::Range;
use tilework_abi::tensix::Processor;

/// The events of a tile since it was last asked.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    spot: Spot,
    wants: Wants,
    /// Bytes of L1 of which all loads are recorded.
    loads: Vec<Range<u32>>,
    pub(crate) events: Vec<Event>,
    /// Of each core, when instructions are counted.
    counts: Option<Box<[Counts; 5]>>,
    /// Where the last event of each unit's work is among [`Recorder::events`].
    working: Vec<(Unit, usize)>,
    /// Of the coprocessor, when what orders it is recorded.
    pub(super) gates: Option<Box<Gates>>,
}

impl Recorder {
    /// Records nothing yet.
    pub(crate) fn new(spot: Spot) -> Self {
        Self {
            spot,
            wants: Wants::NOTHING,
            loads: Vec::new(),
            events: Vec::new(),
            counts: None,
            working: Vec::new(),
            gates: None,
        }
    }

    /// Records these kinds of events from now on.
    pub(crate) fn set_wants(&mut self, wants: Wants) {
        self.wants = wants;
        if wants.has(Wants::COUNTS) {
            self.counts.get_or_insert_default();
        }
    }

    /// Whether such events are recorded.
    #[inline]
    pub(crate) fn wants(&self, wants: Wants) -> bool {
        self.wants.has(wants)
    }

    /// Records all loads from these bytes of L1 from now on, and from no others unless all
    /// accesses are recorded.
    pub(crate) fn set_loads(&mut self, loads: Vec<Range<u32>>) {
        self.loads = loads;
    }

    /// Whether loads from some bytes are recorded.
    #[inline]
    pub(crate) fn has_loads(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Whether a load from this address is recorded.
    #[inline]
    pub(crate) fn wants_load(&self, addr: u32) -> bool {
        self.wants(Wants::ACCESSES) || self.loads.iter().any(|range| range.contains(&addr))
    }

    /// Records an event.
    #[inline]
    pub(crate) fn record(&mut self, at: Cycle, agent: Agent, pc: u32, what: What) {
        self.events.push(Event { at, spot: self.spot, agent, pc, what });
    }

    /// Hands over the events.
    pub(crate) fn hand_over(&mut self, to: &mut Vec<Event>) {
        to.append(&mut self.events);
        self.working.clear();
    }

    // Units of the coprocessor

    /// A unit works for a thread from one cycle to another.
    #[inline]
    pub(crate) fn works(&mut self, unit: Unit, thread: usize, from: Cycle, until: Cycle) {
        if self.wants(Wants::UNITS) && from < until {
            self.record_work(unit, thread as u8, from, until);
        }
    }

    fn record_work(&mut self, unit: Unit, thread: u8, from: Cycle, until: Cycle) {
        let place = self.working.iter_mut().find(|(of, _)| *of == unit);
        if let Some((_, index)) = &place
            && let Some(Event { what: What::Busy { thread: last, until: end }, .. }) = self.events.get_mut(*index)
            && from <= *end
        {
            (*last, *end) = (thread, until.max(*end));
            return;
        }
        match place {
            Some((_, index)) => *index = self.events.len(),
            None => self.working.push((unit, self.events.len())),
        }
        self.record(from, Agent::Coprocessor(unit), 0, What::Busy { thread, until });
    }

    // Counts of instructions

    /// A core issues an instruction, after so many others.
    #[inline]
    pub(crate) fn issue(&mut self, core: Processor, at: Cycle, pc: u32, executed: u64) {
        if let Some(counts) = &mut self.counts {
            counts[core.index()].issue(at, pc, executed);
        }
    }

    /// A core waits from now on.
    pub(crate) fn pause(&mut self, core: Processor, at: Cycle) {
        if let Some(counts) = &mut self.counts {
            counts[core.index()].pause(at);
        }
    }

    /// Records what a core has executed so far.
    pub(crate) fn record_counts(&mut self, core: Processor, at: Cycle) {
        let Some(counts) = &mut self.counts else { return };
        let counts = counts[core.index()].take(at);
        if !counts.is_empty() {
            self.record(at, Agent::Core(core), 0, What::Counted(counts));
        }
    }
}
