//! Lines of L1 that a core loads or stores word by word, and fields of requests that it sets one
//! after the other, told as one event each.
//!
//! A loop that goes through memory makes an event of each word, and most of them are only kept in
//! case somebody else accesses the word too. Of accesses that are known
//! ([`Known`](super::Known)) a tile gathers those of one core that go through a line from its first
//! word to its last. Whatever else is recorded of the core comes after them: a line that is not
//! complete then is told word by word. So an observer of lines sees the same accesses with the same
//! cycles, those of a line as soon as its first one.

use super::{Agent, Event, Spot, What};
use crate::{Cycle, NEVER};
use std::sync::Arc;
use tilework_abi::tensix::Processor;

/// Words of a line, bytes of one, bytes of a line.
const WORDS: usize = 16;
const WORD: u32 = 4;
const LINE: u32 = WORDS as u32 * WORD;

/// All words of a line of 64 bytes of L1, which one core has loaded or stored one after the other.
/// Of the same core nothing else was recorded meanwhile but other lines. What values they have is
/// not told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineAccess {
    /// They are stored, otherwise loaded.
    pub stores: bool,
    /// The first byte.
    pub addr: u32,
    /// Which words were read from the core's own copy, a bit each.
    pub cached: u16,
    /// How the core goes through the line: mostly as through the one before, so they share it.
    pub steps: Arc<LineSteps>,
}

/// How a core goes through a line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineSteps {
    /// How many cycles after the event each word was accessed.
    pub after: [u32; WORDS],
    /// The instructions.
    pub pcs: [u32; WORDS],
    /// Of loads: how many words of lines the core has stored since the first one.
    pub stored: [u32; WORDS],
}

impl LineAccess {
    /// What was done to word `word`: a load or a store, with zero for its value.
    pub fn what(&self, word: usize) -> What {
        let addr = self.addr + WORD * word as u32;
        what(self.stores, self.cached >> word & 1 != 0, addr, 0)
    }

    /// The access of `core` to word `word` as an event of its own, of a line of tile `spot` that was
    /// told for cycle `at`.
    pub fn event(&self, (spot, core): (Spot, Processor), at: Cycle, word: usize) -> Event {
        let LineSteps { after, pcs, .. } = &*self.steps;
        let at = at + u64::from(after[word]);
        Event { at, spot, agent: Agent::Core(core), pc: pcs[word], known: true, early: false, what: self.what(word) }
    }
}

fn what(stores: bool, cached: bool, addr: u32, value: u32) -> What {
    match stores {
        true => What::Store { addr, bytes: 4, value },
        false => What::Load { addr, bytes: 4, value, cached },
    }
}

/// A line that is being gone through.
#[derive(Clone, Debug, Default)]
struct Open {
    first: Cycle,
    /// How many words have been accessed; zero: there is none.
    words: usize,
    /// How many words of lines the core had stored.
    stored: u32,
    stores: bool,
    addr: u32,
    cached: u16,
    steps: LineSteps,
    values: [u32; WORDS],
    /// How the core has gone through the last line.
    last: Arc<LineSteps>,
}

impl Open {
    fn has(&self, addr: u32) -> bool {
        addr.checked_sub(self.addr).is_some_and(|offset| offset < WORD * self.words as u32)
    }

    fn continues(&self, at: Cycle, addr: u32) -> bool {
        self.words != 0 && addr == self.addr + WORD * self.words as u32 && u32::try_from(at - self.first).is_ok()
    }

    /// Tells it: as a whole if it is complete.
    fn close(&mut self, (spot, agent): (Spot, Agent), events: &mut Vec<Event>) {
        let words = std::mem::take(&mut self.words);
        let Self { first, stores, addr, cached, steps, values, last, .. } = self;
        let told = |at, pc, what| Event { at, spot, agent, pc, known: true, early: false, what };
        if words == WORDS {
            if **last != *steps {
                *last = Arc::new(steps.clone());
            }
            let line = LineAccess { stores: *stores, addr: *addr, cached: *cached, steps: Arc::clone(last) };
            events.push(told(*first, steps.pcs[0], What::Line(line)));
            return;
        }
        for (word, &value) in values.iter().enumerate().take(words) {
            let (at, addr) = (*first + u64::from(steps.after[word]), *addr + WORD * word as u32);
            let what = what(*stores, *cached >> word & 1 != 0, addr, value);
            events.push(told(at, steps.pcs[word], what));
        }
    }
}

/// The lines that a core is going through.
#[derive(Clone, Debug, Default)]
struct OfCore {
    loads: Open,
    stores: Open,
    /// How many words of lines it has stored; only differences count.
    stored: u32,
}

/// A store of a core to a field of a request ([`What::Fields`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldStore {
    /// How many cycles after the event.
    pub after: u32,
    /// The instruction.
    pub pc: u32,
    /// The register.
    pub addr: u32,
    /// The value.
    pub value: u32,
}

/// An access to a word of L1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) stores: bool,
    pub(super) addr: u32,
    pub(super) value: u32,
    pub(super) cached: bool,
}

/// The lines that the cores of a tile are going through.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    spot: Spot,
    cores: [OfCore; 5],
    /// Fields that a core has set since something else was recorded of it. Only one core at a time
    /// has some, so that they are in order.
    fields: Vec<FieldStore>,
    /// Which core, and when it set the first one.
    setting: (Processor, Cycle),
}

impl Lines {
    pub(super) fn new(spot: Spot) -> Self {
        Self { spot, cores: Default::default(), fields: Vec::new(), setting: (Processor::Brisc, 0) }
    }

    /// A core sets a field of a request.
    pub(super) fn set(&mut self, core: Processor, at: Cycle, field: FieldStore, events: &mut Vec<Event>) {
        let OfCore { loads, stores, .. } = &mut self.cores[core.index()];
        loads.close((self.spot, Agent::Core(core)), events);
        stores.close((self.spot, Agent::Core(core)), events);
        let after = u32::try_from(at.saturating_sub(self.setting.1));
        if self.setting.0 != core || after.is_err() {
            self.close_fields(events);
        }
        if self.fields.is_empty() {
            self.setting = (core, at);
        }
        let after = after.ok().filter(|_| !self.fields.is_empty()).unwrap_or(0);
        self.fields.push(FieldStore { after, ..field });
    }

    fn close_fields(&mut self, events: &mut Vec<Event>) {
        let Some(first) = self.fields.first() else { return };
        let ((core, at), pc) = (self.setting, first.pc);
        let what = What::Fields(self.fields.as_slice().into());
        events.push(Event { at, spot: self.spot, agent: Agent::Core(core), pc, known: true, early: false, what });
        self.fields.clear();
    }

    /// Takes an access of `core` that is known; says whether it need not be told by itself.
    #[inline]
    pub(super) fn take(&mut self, core: Processor, at: Cycle, pc: u32, word: Word, events: &mut Vec<Event>) -> bool {
        let Word { stores, addr, value, cached } = word;
        if !self.fields.is_empty() && self.setting.0 == core {
            self.close_fields(events);
        }
        let OfCore { loads, stores: kept, stored } = &mut self.cores[core.index()];
        let (own, other) = if stores { (kept, loads) } else { (loads, kept) };
        let from = (self.spot, Agent::Core(core));
        let continues = own.continues(at, addr);
        if !continues {
            own.close(from, events);
        }
        // Of a word that is in a line of the other kind, too, that access must come first.
        let first = if continues { own.first } else { at };
        if other.has(addr) && other.first >= first {
            own.close(from, events);
            other.close(from, events);
        }
        if own.words == 0 {
            if !addr.is_multiple_of(LINE) {
                return false;
            }
            (own.first, own.stored) = (at, *stored);
            (own.stores, own.addr, own.cached) = (stores, addr, 0);
        }
        let word = own.words;
        own.cached |= u16::from(cached) << word;
        // Checked when it continues.
        own.steps.after[word] = (at - own.first) as u32;
        own.steps.pcs[word] = pc;
        own.values[word] = value;
        own.steps.stored[word] = if stores { 0 } else { stored.wrapping_sub(own.stored) };
        *stored = stored.wrapping_add(u32::from(stores));
        own.words += 1;
        if own.words == WORDS {
            own.close(from, events);
        }
        true
    }

    /// Something else is recorded of a core.
    pub(super) fn close(&mut self, core: Processor, events: &mut Vec<Event>) {
        if !self.fields.is_empty() && self.setting.0 == core {
            self.close_fields(events);
        }
        let OfCore { loads, stores, .. } = &mut self.cores[core.index()];
        loads.close((self.spot, Agent::Core(core)), events);
        stores.close((self.spot, Agent::Core(core)), events);
    }

    /// Tells what a core goes through since before this cycle. Gives the first cycle of what cores
    /// are still going through.
    pub(super) fn close_before(&mut self, at: Cycle, events: &mut Vec<Event>) -> Cycle {
        let mut first = NEVER;
        if !self.fields.is_empty() {
            self.close_fields(events);
        }
        for (core, of) in Processor::ALL.into_iter().zip(&mut self.cores) {
            let begun = |of: &OfCore| {
                let open = [&of.loads, &of.stores].into_iter().filter(|open| open.words != 0);
                open.map(|open| open.first).min().unwrap_or(NEVER)
            };
            if begun(of) < at {
                of.loads.close((self.spot, Agent::Core(core)), events);
                of.stores.close((self.spot, Agent::Core(core)), events);
            }
            first = first.min(begun(of));
        }
        first
    }

    /// What has been recorded so far is to be told.
    pub(super) fn close_all(&mut self, events: &mut Vec<Event>) {
        Processor::ALL.into_iter().for_each(|core| self.close(core, events));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::noc::NocXy;

    const CORE: Processor = Processor::Ncrisc;

    fn load(addr: u32) -> What {
        What::Load { addr, bytes: 4, value: addr, cached: !addr.is_multiple_of(16) }
    }

    fn store(addr: u32) -> What {
        What::Store { addr, bytes: 4, value: addr }
    }

    /// What is told of these accesses, one a cycle, in the order of cycles; line accesses are told
    /// word by word. And how many lines there were.
    fn told(accesses: &[What]) -> (Vec<(Cycle, What)>, usize) {
        let spot = Spot::Tensix(NocXy::new(1, 2));
        let (mut lines, mut events) = (Lines::new(spot), Vec::new());
        for (at, what) in (100..).zip(accesses) {
            let word = match *what {
                What::Load { addr, bytes: 4, value, cached } => Some(Word { stores: false, addr, value, cached }),
                What::Store { addr, bytes: 4, value } => Some(Word { stores: true, addr, value, cached: false }),
                _ => None,
            };
            if !word.is_some_and(|word| lines.take(CORE, at, at as u32, word, &mut events)) {
                lines.close(CORE, &mut events);
                let agent = Agent::Core(CORE);
                events.push(Event { at, spot, agent, pc: at as u32, known: true, early: false, what: what.clone() });
            }
        }
        lines.close_all(&mut events);
        let mut all = Vec::new();
        let mut whole = 0;
        for event in &events {
            match &event.what {
                What::Line(line) => {
                    whole += 1;
                    all.extend((0..WORDS).map(|word| line.event((spot, CORE), event.at, word)));
                }
                _ => all.push(event.clone()),
            }
        }
        all.sort_by_key(|event| event.at);
        assert!(all.iter().all(|event| event.pc == event.at as u32 && event.known));
        (all.into_iter().map(|event| (event.at, event.what)).collect(), whole)
    }

    /// The accesses as they were, and so many lines.
    fn check(accesses: &[What], lines: usize) {
        let (mut all, whole) = told(accesses);
        // The values of lines are not told.
        for ((_, told), what) in all.iter_mut().zip(accesses) {
            match (told, what) {
                (What::Load { value: told @ 0, .. }, What::Load { value, .. })
                | (What::Store { value: told @ 0, .. }, What::Store { value, .. })
                    if whole > 0 =>
                {
                    *told = *value;
                }
                _ => {}
            }
        }
        assert_eq!(all, (100..).zip(accesses.iter().cloned()).collect::<Vec<_>>());
        assert_eq!(whole, lines);
    }

    #[test]
    fn a_loop_through_memory_makes_a_line_each_of_loads_and_of_stores() {
        let both: Vec<What> = (0..48).flat_map(|word| [load(0x1000 + 4 * word), store(0x1000 + 4 * word)]).collect();
        check(&both, 6);
        let apart: Vec<What> = (0..32).flat_map(|word| [load(0x1000 + 4 * word), store(0x2000 + 4 * word)]).collect();
        check(&apart, 4);
    }

    #[test]
    fn what_is_not_a_whole_line_is_told_word_by_word() {
        let from = |first: u32, words| (0..words).map(move |word| load(first + 4 * word)).collect::<Vec<_>>();
        check(&from(0x1000, 15), 0);
        check(&from(0x1004, 20), 0);
        check(&from(0x1004, 40), 1);
        let bytes: Vec<What> =
            (0..64).map(|byte| What::Load { addr: 0x1000 + byte, bytes: 1, value: 0, cached: false }).collect();
        check(&bytes, 0);
        let mut jumps = from(0x1000, 10);
        jumps.extend(from(0x1000, 16));
        check(&jumps, 1);
        check(&[from(0x1000, 8), vec![What::Fence], from(0x1020, 8)].concat(), 0);
    }

    #[test]
    fn lines_that_have_only_begun_stay_until_they_are_whole() {
        let spot = Spot::Tensix(NocXy::new(1, 2));
        let (mut lines, mut events) = (Lines::new(spot), Vec::new());
        assert_eq!(lines.close_before(100, &mut events), NEVER);
        let word = |addr| Word { stores: false, addr, value: 0, cached: false };
        for at in 0..16 {
            assert!(lines.take(CORE, 100 + u64::from(at), 0, word(0x1000 + 4 * at), &mut events));
            if at < 15 {
                assert_eq!(lines.close_before(100, &mut events), 100);
                assert!(events.is_empty(), "word {at}");
            }
        }
        assert!(matches!(&events[..], [Event { at: 100, what: What::Line(_), .. }]), "{events:?}");
        events.clear();
        lines.take(CORE, 120, 0, word(0x1040), &mut events);
        assert_eq!(lines.close_before(121, &mut events), NEVER);
        assert!(matches!(&events[..], [Event { at: 120, what: What::Load { .. }, .. }]), "{events:?}");
    }

    #[test]
    fn a_word_that_is_stored_first_is_not_told_to_be_loaded_first() {
        let after: Vec<What> = (0..16).flat_map(|word| [store(0x1000 + 4 * word), load(0x1000 + 4 * word)]).collect();
        check(&after, 2);
        // The line of loads has begun before the word was stored that it comes to now.
        let mut crossed: Vec<What> = (0..8).map(|word| load(0x1000 + 4 * word)).collect();
        crossed.extend((0..9).map(|word| store(0x1000 + 4 * word)));
        crossed.extend((8..16).map(|word| load(0x1000 + 4 * word)));
        check(&crossed, 0);
    }

    #[test]
    fn fields_of_a_request_are_told_at_once_and_in_order() {
        let spot = Spot::Tensix(NocXy::new(1, 2));
        let (mut lines, mut events) = (Lines::new(spot), Vec::new());
        let field = |addr| FieldStore { after: 0, pc: addr, addr, value: 1 };
        lines.set(CORE, 10, field(4), &mut events);
        lines.set(CORE, 13, field(8), &mut events);
        assert!(events.is_empty());
        lines.set(Processor::Brisc, 14, field(4), &mut events);
        // Of a core that loads L1 meanwhile the fields come first.
        lines.take(Processor::Brisc, 15, 0, Word { stores: false, addr: 64, value: 0, cached: false }, &mut events);
        lines.set(Processor::Brisc, 16, field(8), &mut events);
        lines.close_all(&mut events);
        let fields = |event: &Event| match &event.what {
            What::Fields(fields) => fields.iter().map(|field| (field.after, field.addr)).collect(),
            _ => Vec::new(),
        };
        let told: Vec<_> = events.iter().map(|event| (event.at, event.agent, fields(event))).collect();
        let (own, other) = (Agent::Core(CORE), Agent::Core(Processor::Brisc));
        let wanted = [
            (10, own, vec![(0, 4), (3, 8)]),
            (14, other, vec![(0, 4)]),
            (15, other, vec![]),
            (16, other, vec![(0, 8)]),
        ];
        assert_eq!(told, wanted);
    }
}
