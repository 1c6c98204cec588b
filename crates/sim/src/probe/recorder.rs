//! What a tile records.

use super::counters::{Counters, NIU_END, is_counter};
use super::counts::Counts;
use super::filter::{Access, Filter};
use super::gates::Gates;
use super::lines::{FieldStore, Lines, Word};
use super::{Agent, Event, Request, Spot, Unit, Unjudged, Wants, What};
use crate::{Cycle, NEVER};
use std::ops::Range;
use tilework_abi::noc::NIU0_BASE;
use tilework_abi::tensix::{L1_SIZE, LOCAL_BASE, Processor};

/// What a core loads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    pub(crate) addr: u32,
    pub(crate) bytes: u8,
    pub(crate) value: u32,
    pub(crate) cached: bool,
}

/// What a core stores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) addr: u32,
    pub(crate) bytes: u8,
    pub(crate) value: u32,
}

/// The events of a tile since it was last asked. What most accesses look at comes first, next to
/// each other, in whole lines of the host's caches.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Recorder {
    pub(crate) events: Vec<Event>,
    /// The lines that cores go through, when they are told as such.
    lines: Option<Box<Lines>>,
    /// Of each core, when instructions are counted.
    counts: Option<Box<[Counts; 5]>>,
    /// Registers of which nobody needs to see accesses.
    unseen: Range<u32>,
    spot: Spot,
    /// Accesses to L1 that are known are of no interest to anybody.
    leaves_out: bool,
    /// Nothing of what the tile's cores do is judged but what they read and write in memory.
    overlooked: bool,
    /// Fences need not be told, and what a unit reads at once is told at once.
    unfenced: bool,
    spans: bool,
    wants: Wants,
    /// What others want to see of accesses that are known.
    others: Wants,
    pub(crate) filter: Filter,
    counters: Counters,
    /// When each core last woke from a poll loop.
    woken: [Cycle; 5],
    /// Bytes of L1 of which all loads are recorded.
    loads: Vec<Range<u32>>,
    /// Registers of which the observer that is asked does not need to see accesses.
    unjudged: Range<u32>,
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
            woken: [0; 5],
            filter: Filter::new(),
            others: Wants::NOTHING,
            leaves_out: false,
            unseen: 0..0,
            unjudged: 0..0,
            overlooked: false,
            unfenced: false,
            spans: false,
            counters: Counters::default(),
            lines: None,
            working: Vec::new(),
            gates: None,
        }
    }

    /// Records these kinds of events from now on; of those that are known what `others` want.
    pub(crate) fn set_wants(&mut self, wants: Wants, others: Wants) {
        (self.wants, self.others) = (wants, others);
        self.leave_out();
        if wants.has(Wants::COUNTS) {
            self.counts.get_or_insert_default();
        }
    }

    /// Whether just this is recorded, as [`Recorder::set_wants`] has it.
    pub(crate) fn has_wants(&self, wants: Wants, others: Wants) -> bool {
        (self.wants, self.others) == (wants, others)
    }

    /// Whether any of such events are recorded.
    #[inline]
    pub(crate) fn wants_any(&self, wants: Wants) -> bool {
        self.wants.has_any(wants)
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
        self.leave_out();
    }

    /// From now on this need not be seen.
    pub(crate) fn set_unjudged(&mut self, unjudged: &Unjudged) {
        self.overlooked = matches!(self.spot, Spot::Tensix(xy) if unjudged.tiles.contains(&xy));
        self.filter.set_unjudged(unjudged, self.overlooked);
        self.unjudged = unjudged.registers.clone();
        (self.unfenced, self.spans) = (unjudged.fences, unjudged.spans);
        self.leave_out();
    }

    /// Whether and what is left out, by what is wanted now.
    fn leave_out(&mut self) {
        self.leaves_out = self.wants(Wants::ACCESSES) && !self.others.has(Wants::ACCESSES) && self.loads.is_empty();
        self.unseen = if self.others.has(Wants::REGISTERS) { 0..0 } else { self.unjudged.clone() };
    }

    /// Whether loads from some bytes are recorded.
    #[inline]
    pub(crate) fn has_loads(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Whether a load from this address may be recorded.
    #[inline]
    pub(crate) fn wants_load(&self, addr: u32) -> bool {
        self.wants(Wants::ACCESSES) || self.loads.iter().any(|range| range.contains(&addr))
    }

    /// From now on only the first load of a counter need be seen, or all.
    pub(crate) fn see_counters_once(&mut self, once: bool) {
        self.counters.see_once(once);
    }

    /// From now on lines of accesses that are known are told as such, or not.
    pub(crate) fn gather_lines(&mut self, gather: bool) {
        self.close_lines();
        self.lines = gather.then(|| Box::new(Lines::new(self.spot)));
    }

    /// Tells the lines that cores are going through as far as they have come.
    pub(crate) fn close_lines(&mut self) {
        if let Some(lines) = &mut self.lines {
            lines.close_all(&mut self.events);
        }
    }

    /// Tells those that began before this cycle. Gives the first cycle of the others.
    pub(crate) fn close_lines_before(&mut self, at: Cycle) -> Cycle {
        match &mut self.lines {
            Some(lines) => lines.close_before(at, &mut self.events),
            None => NEVER,
        }
    }

    /// A core that slept in a poll loop wakes at this cycle, at the beginning of the iteration that
    /// it is in then: what it does before was due while observers were told that it sleeps, and
    /// they may have been told that this time is over.
    pub(crate) fn wakes(&mut self, core: Processor, at: Cycle) {
        self.woken[core as usize] = at;
    }

    /// The cycle for which it is told what a core does at cycle `at`, and whether that comes before
    /// all else in that cycle.
    #[inline]
    fn as_told(&self, core: Processor, at: Cycle) -> (Cycle, bool) {
        let woken = self.woken[core as usize];
        (at.max(woken), at < woken)
    }

    /// A request is started.
    pub(crate) fn request(&mut self, at: Cycle, agent: Agent, pc: u32, request: Box<Request>) {
        let noc = usize::from(request.noc & 1);
        self.counters.started(noc);
        if self.overlooked && self.leaves_out && !self.others.has(Wants::ARRIVALS) {
            return;
        }
        self.record(at, agent, pc, What::Request(request));
    }

    /// Records an event.
    #[inline]
    pub(crate) fn record(&mut self, at: Cycle, agent: Agent, pc: u32, what: What) {
        let (at, early) = match agent {
            Agent::Core(core) => {
                if let Some(lines) = &mut self.lines {
                    lines.close(core, &mut self.events);
                }
                self.as_told(core, at)
            }
            _ => (at, false),
        };
        self.events.push(Event { at, spot: self.spot, agent, pc, known: false, early, what });
    }

    /// Records behind these events from now on, until they are given back: so that tiles need no
    /// memory each, nor copy what they have recorded. Not if there are some already.
    #[inline]
    pub(crate) fn lend(&mut self, events: &mut Vec<Event>) -> bool {
        let is_lent = self.events.is_empty();
        if is_lent {
            std::mem::swap(&mut self.events, events);
        }
        is_lent
    }

    /// Gives back what was lent, with what was recorded since.
    #[inline]
    pub(crate) fn give_back(&mut self, events: &mut Vec<Event>) {
        std::mem::swap(&mut self.events, events);
        if self.wants(Wants::UNITS) {
            self.working.clear();
        }
    }

    /// Hands over the events, but not their memory.
    #[inline]
    pub(crate) fn hand_over(&mut self, to: &mut Vec<Event>) {
        if !self.events.is_empty() {
            to.append(&mut self.events);
        }
        self.working.clear();
    }

    /// A core empties its cache.
    pub(crate) fn fence(&mut self, core: Processor, at: Cycle, pc: u32) {
        self.filter.fence(core);
        if !(self.leaves_out && self.unfenced) {
            self.record(at, Agent::Core(core), pc, What::Fence);
        }
    }

    // Accesses, of which some are left out

    /// Whether nothing needs to be recorded of a load from memory: what most loads pay.
    #[inline(always)]
    pub(crate) fn skips_load(&mut self, core: Processor, pc: u32, addr: u32, cached: bool) -> bool {
        self.leaves_out
            && match addr {
                0..L1_SIZE => self.filter.skips_load(core, addr, cached),
                LOCAL_BASE..NIU0_BASE => self.filter.local.skips_load(core, pc, addr),
                _ => self.overlooked || self.skips_outside(core, addr),
            }
    }

    /// Whether nothing needs to be recorded of a store to memory, likewise.
    #[inline(always)]
    pub(crate) fn skips_store(&self, core: Processor, addr: u32) -> bool {
        self.leaves_out
            && if addr < L1_SIZE { self.filter.skips_store(core, addr) } else { self.skips_outside(core, addr) }
    }

    /// Whether nothing needs to be recorded of an access to local RAM, or to a field of a request.
    #[inline(always)]
    fn skips_outside(&self, core: Processor, addr: u32) -> bool {
        match addr {
            LOCAL_BASE..NIU0_BASE => self.filter.local.skips(core, addr),
            NIU0_BASE..NIU_END => !self.wants(Wants::FIELDS) && !is_counter(addr),
            _ => self.unseen.contains(&addr),
        }
    }

    /// A core loads. Most of what [`Recorder::skips_load`] does not leave out is left out here.
    #[inline(never)]
    pub(crate) fn load(&mut self, core: Processor, at: Cycle, pc: u32, loaded: Loaded) {
        if !(self.leaves_out && self.says_nothing(core, pc, &loaded)) {
            self.record_load(core, at, pc, loaded);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_load(&mut self, core: Processor, at: Cycle, pc: u32, loaded: Loaded) {
        let Loaded { addr, bytes, value, cached } = loaded;
        let is_field = (NIU0_BASE..NIU_END).contains(&addr) && !is_counter(addr);
        if is_field && !self.wants(Wants::FIELDS) || !self.wants_load(addr) {
            return;
        }
        let (is_known, kind) = match addr < L1_SIZE {
            true => (self.filter.skips_load(core, addr, cached), Wants::ACCESSES),
            false if is_counter(addr) => (self.counters.skips(core, addr), Wants::ACCESSES),
            false => self.outside(core, addr),
        };
        if is_known && bytes == 4 && self.gathers(core, at, pc, Word { stores: false, addr, value, cached }) {
            return;
        }
        if self.records(is_known, kind) || self.has_loads() && self.wants_load(addr) {
            self.record_access(core, at, pc, is_known, What::Load { addr, bytes, value, cached });
        }
    }

    /// Whether a load that the filter does not leave out changes and shows nothing all the same.
    #[inline]
    fn says_nothing(&mut self, core: Processor, pc: u32, loaded: &Loaded) -> bool {
        match loaded.addr {
            0..L1_SIZE => self.filter.polls(core, pc, loaded),
            addr @ LOCAL_BASE..NIU0_BASE => self.filter.local.overlooks(core, pc, addr),
            addr => self.overlooked || is_counter(addr) && self.counters.has_seen(core, addr),
        }
    }

    /// A core stores.
    #[cold]
    #[inline(never)]
    pub(crate) fn store(&mut self, core: Processor, at: Cycle, pc: u32, stored: Stored) {
        let Stored { addr, bytes, value } = stored;
        if self.leaves_out && addr >= NIU0_BASE && self.skips_outside(core, addr) {
            return;
        }
        if (LOCAL_BASE..NIU0_BASE).contains(&addr) && self.leaves_out && self.filter.local.keeps(core, pc, addr, bytes)
        {
            return;
        }
        let (is_known, kind) = match addr < L1_SIZE {
            true => (self.filter.skips_store(core, addr), Wants::ACCESSES),
            false => self.outside(core, addr),
        };
        if kind == Wants::FIELDS
            && bytes == 4
            && let Some(lines) = &mut self.lines
        {
            return lines.set(core, at, FieldStore { after: 0, pc, addr, value }, &mut self.events);
        }
        if is_known && bytes == 4 && self.gathers(core, at, pc, Word { stores: true, addr, value, cached: false }) {
            return;
        }
        if self.records(is_known, kind) {
            self.record_access(core, at, pc, is_known, What::Store { addr, bytes, value });
        }
    }

    /// Whether an access outside L1 is known, and of which kind it is.
    #[inline(always)]
    fn outside(&self, core: Processor, addr: u32) -> (bool, Wants) {
        match addr {
            LOCAL_BASE..NIU0_BASE => (self.filter.local.skips(core, addr), Wants::LOCAL),
            NIU0_BASE..NIU_END if !is_counter(addr) => (false, Wants::FIELDS),
            _ => (false, Wants::ACCESSES),
        }
    }

    #[inline(always)]
    fn records(&self, is_known: bool, kind: Wants) -> bool {
        if is_known { self.others.has(kind) } else { self.wants.has(kind) }
    }

    /// Whether an access to a word that is known is one of those that are told as a line.
    #[inline]
    fn gathers(&mut self, core: Processor, at: Cycle, pc: u32, word: Word) -> bool {
        let Self { lines: Some(lines), loads, events, woken, .. } = self else { return false };
        let gathers = word.addr < L1_SIZE && loads.is_empty() && at >= woken[core as usize];
        gathers && lines.take(core, at, pc, word, events)
    }

    /// Records an access of a core behind what must be told before it.
    pub(crate) fn record_access(&mut self, core: Processor, at: Cycle, pc: u32, known: bool, what: What) {
        let (at, early) = self.as_told(core, at);
        let (agent, spot, events) = (Agent::Core(core), self.spot, &mut self.events);
        if let Some(lines) = &mut self.lines {
            lines.close(core, events);
        }
        let mut tell = |what| events.push(Event { at, spot, agent, pc, known: false, early, what });
        if let What::Load { addr, .. } | What::Store { addr, .. } | What::Atomic { addr, .. } = what
            && !known
        {
            let fills = matches!(what, What::Load { cached: false, .. });
            let access = Access { addr, stores: !matches!(what, What::Load { .. }), fills };
            if addr >= L1_SIZE {
                if (LOCAL_BASE..NIU0_BASE).contains(&addr) {
                    self.filter.local.tell_kept(core, &mut tell);
                }
            } else if self.filter.records(core, at, &access, &mut tell) {
                self.filter.passes(&what);
                // Perhaps for another program.
                if let Some(gates) = &mut self.gates {
                    gates.tell_again();
                }
                self.counters.forget();
            }
        }
        events.push(Event { at, spot, agent, pc, known, early, what });
    }

    /// Something other than a core is about to write to L1.
    #[inline]
    pub(crate) fn written(&mut self, at: Cycle, agent: Agent, span: Range<u32>) {
        let (spot, events) = (self.spot, &mut self.events);
        // A packet is recorded before it comes here, where it is routed.
        let early = matches!(agent, Agent::Niu(_));
        self.filter.written(span, |what| events.push(Event { at, spot, agent, pc: 0, known: false, early, what }));
    }

    /// All accesses are recorded until somebody knows something again.
    pub(crate) fn forget_known(&mut self, at: Cycle) {
        let (spot, events, agent) = (self.spot, &mut self.events, Agent::Core(Processor::Brisc));
        self.counters.forget();
        let told = |what| events.push(Event { at, spot, agent, pc: 0, known: false, early: false, what });
        self.filter.forget_all(told);
    }

    /// Somebody wants to see all stores to these bytes of L1 from now on, and nothing else that was
    /// not wanted before.
    pub(crate) fn watch(&mut self, at: Cycle, lines: &[Range<u32>]) {
        let (spot, events, agent) = (self.spot, &mut self.events, Agent::Core(Processor::Brisc));
        for line in lines {
            let told = |what| events.push(Event { at, spot, agent, pc: 0, known: false, early: false, what });
            self.filter.watch(line.clone(), told);
        }
    }

    // Units of the coprocessor

    /// Whether what a unit reads at once is told at once.
    #[inline]
    pub(crate) fn takes_spans(&self) -> bool {
        self.spans && (self.leaves_out || self.lines.is_some() && self.loads.is_empty())
    }

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
            counts[core.index()].issue(at.max(self.woken[core as usize]), pc, executed);
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
