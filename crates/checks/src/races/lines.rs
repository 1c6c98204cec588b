//! Lines of L1 that a core has gone through word by word.
//!
//! Such a line is told as soon as its first word is accessed and done later: when something else
//! happens on its tile, or all before some cycle is known. If nothing came between its words, its
//! core knows of all earlier accesses to it, and none of its words tells anything, the order of its
//! accesses among those of others does not matter, and it is done as a whole. Otherwise its words
//! are done one by one, in the order of cycles: what is found is the same.

use super::clock::Stamp;
use super::shadow::Access;
use super::{Core, RaceObserver, Tile};
use tilework_abi::tensix::Processor;
use tilework_sim::{Agent, Cycle, Event, LineAccess, PacketKind, Spot, What};

/// Words of a line.
pub(super) const WORDS: u32 = 16;
/// The last of them.
const LAST: usize = WORDS as usize - 1;

/// The first agent of a tile.
const FIRST: Agent = Agent::Niu(0);

/// A line that is not done yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    spot: Spot,
    core: Processor,
    /// When its first word is accessed.
    at: Cycle,
    line: LineAccess,
    /// The words that are done.
    done: usize,
    /// It is done as a whole.
    is_whole: bool,
}

impl Pending {
    /// When a word is accessed, in the order of events of a tile.
    fn when(&self, word: usize) -> (Cycle, Agent) {
        (self.at + u64::from(self.line.steps.after[word]), Agent::Core(self.core))
    }
}

impl RaceObserver {
    /// A core goes through a line.
    pub(super) fn goes_through(&mut self, tile: usize, core: Processor, event: &Event, line: &LineAccess) {
        let Tile { lines, is_behind, .. } = &mut self.tiles[tile];
        if !std::mem::replace(is_behind, true) {
            self.behind.push(tile);
        }
        let (spot, at, line) = (event.spot, event.at, line.clone());
        lines.push(Pending { spot, core, at, line, done: 0, is_whole: false });
    }

    /// Whether an event of a tile may change, or ask for, anything of its cores or its L1.
    pub(super) fn matters(what: &What) -> bool {
        match what {
            What::Line(_) | What::Holds { .. } | What::Prepared { .. } | What::Leaves(_) => false,
            What::Arrives(packet) => {
                let asks = [PacketKind::ReadRequest, PacketKind::WriteRequest, PacketKind::AtomicRequest];
                asks.contains(&packet.kind)
            }
            _ => true,
        }
    }

    /// Does what all tiles' cores have done in lines before this cycle.
    pub(super) fn catch_up_all(&mut self, at: Cycle) {
        for tile in std::mem::take(&mut self.behind) {
            self.catch_up(tile, (at, FIRST));
            let Tile { lines, is_behind, .. } = &mut self.tiles[tile];
            *is_behind = !lines.is_empty();
            if *is_behind {
                self.behind.push(tile);
            }
        }
    }

    /// Does what the cores of a tile have done in lines before somebody does something else there.
    pub(super) fn catch_up(&mut self, tile: usize, before: (Cycle, Agent)) {
        let mut lines = std::mem::take(&mut self.tiles[tile].lines);
        self.decide(tile, &mut lines, before);
        let open = |(_, line): &(usize, &Pending)| line.done < WORDS as usize;
        let next = |lines: &[Pending]| {
            let next = lines.iter().enumerate().filter(open).min_by_key(|(_, line)| line.when(line.done))?;
            (next.1.when(next.1.done) < before).then_some(next.0)
        };
        while let Some(place) = next(&lines) {
            let Pending { spot, core, at, is_whole, done: word, .. } = lines[place];
            let now = lines[place].when(word);
            if is_whole {
                // Other lines that are done as a whole are ahead of this one.
                let ahead = stored_after(&lines, core, now);
                lines[place].done = WORDS as usize;
                self.tiles[tile].cores[core.index()].put_back(ahead);
                self.do_whole(tile, core, at, &lines[place].line);
                self.tiles[tile].cores[core.index()].put_forward(ahead);
                continue;
            }
            let event = lines[place].line.event((spot, core), at, word);
            let ahead = Processor::ALL.map(|core| stored_after(&lines, core, now));
            lines[place].done = word + 1;
            let cores = &mut self.tiles[tile].cores;
            cores.iter_mut().zip(ahead).for_each(|(core, ahead)| core.put_back(ahead));
            self.core(tile, core, &event, &event.what);
            let cores = &mut self.tiles[tile].cores;
            cores.iter_mut().zip(ahead).for_each(|(core, ahead)| core.put_forward(ahead));
        }
        lines.retain(|line| line.done < WORDS as usize);
        self.tiles[tile].lines = lines;
    }

    /// Does what the cores of `other` have done in lines before an event of `tile`.
    pub(super) fn catch_up_beside(&mut self, tile: usize, other: usize, at: Cycle) {
        // In a cycle tiles come in the order of their columns, then of their rows.
        let place = |tile: usize| (self.tiles[tile].xy.x, self.tiles[tile].xy.y);
        let until = at + u64::from(place(other) < place(tile));
        if other != tile {
            self.catch_up(other, (until, FIRST));
        }
    }

    /// Says of each of these lines whether it is done as a whole: none is that others of the same
    /// memory are not, and none that two cores have gone through.
    fn decide(&mut self, tile: usize, lines: &mut [Pending], before: (Cycle, Agent)) {
        for place in 0..lines.len() {
            let (earlier, rest) = lines.split_at_mut(place);
            let line = &mut rest[0];
            // What loads show of a line of stores before them depends on the word.
            let stored = |other: &Pending| other.line.stores && other.line.addr == line.line.addr;
            let is_over = line.done == 0 && line.when(LAST) < before;
            line.is_whole = is_over
                && (line.line.stores || !earlier.iter().any(stored))
                && self.may_be_whole(tile, line.core, line.at, &line.line);
        }
        for place in 0..lines.len() {
            let line = &lines[place];
            let divides = |other: &Pending| !other.is_whole || other.core != line.core;
            if lines.iter().any(|other| other.line.addr == line.line.addr && divides(other)) {
                lines[place].is_whole = false;
            }
        }
    }

    /// Whether a line, gone through from a cycle on, may be done as a whole.
    fn may_be_whole(&mut self, tile: usize, by: Processor, at: Cycle, line: &LineAccess) -> bool {
        let Tile { cores, words, l1, .. } = &mut self.tiles[tile];
        let core = &cores[by.index()];
        if words.any(&(line.addr..line.addr + 4 * WORDS)) {
            return false;
        }
        if !line.stores {
            // What a load of a core's own stores tells depends on the word.
            let asks = line.cached != u16::MAX && core.arrived < core.stores.count;
            let arrives = asks && l1.may_be_of(line.addr.into(), core.stores.part);
            // Of a stranger's first load behind a fence more is known.
            let looks = core.fenced && !self.has_launches;
            if looks || core.last_load == (line.steps.pcs[0], line.addr) || arrives {
                return false;
            }
        }
        l1.may_go_through(first(core, by, at, line), line, &|stamp| core.knows(stamp))
    }

    /// Does a line that may be done as a whole.
    fn do_whole(&mut self, tile: usize, by: Processor, at: Cycle, line: &LineAccess) {
        let Tile { cores, l1, .. } = &mut self.tiles[tile];
        let core = &mut cores[by.index()];
        l1.goes_through(first(core, by, at, line), line.clone());
        if line.stores {
            return core.put_forward(WORDS);
        }
        core.fenced = false;
        core.last_load = (line.steps.pcs[LAST], line.addr + 4 * (WORDS - 1));
        if line.cached != u16::MAX {
            core.arrived = core.arrived.max(core.emitted);
        }
    }
}

impl Core {
    /// Its counts are those before its last stores.
    fn put_back(&mut self, stores: u32) {
        self.own.count -= stores;
        self.stores.count -= stores;
    }

    /// It has done so many stores more.
    fn put_forward(&mut self, stores: u32) {
        self.own.count += stores;
        self.stores.count += stores;
    }
}

/// The access to the first word of a line.
fn first(core: &Core, by: Processor, at: Cycle, line: &LineAccess) -> Access {
    let stores = Stamp { count: core.stores.count + 1, ..core.stores };
    Access {
        stamp: if line.stores { stores } else { core.access() },
        pc: line.steps.pcs[0],
        by: by.index() as u8,
        small: true,
        started: core.own.count + 1,
        at,
        ..Access::default()
    }
}

/// How many words that are done a core has stored only later.
fn stored_after(lines: &[Pending], core: Processor, now: (Cycle, Agent)) -> u32 {
    let of = lines.iter().filter(|line| line.is_whole && line.line.stores && line.core == core);
    let done = of.filter(|line| line.done == WORDS as usize && line.when(LAST) > now);
    done.map(|line| (0..WORDS as usize).filter(|&word| line.when(word) > now).count() as u32).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checks, Policy, Word};
    use std::sync::Arc;
    use tilework_abi::board::Board;
    use tilework_abi::noc::NocXy;
    use tilework_rng::SplitMix64;
    use tilework_sim::{FieldStore, LineSteps, Observer};

    const CORES: [Processor; 3] = [Processor::Brisc, Processor::Ncrisc, Processor::Trisc0];
    /// Lines of data, and words that may be flags.
    const DATA: u32 = 0x2_0000;
    const FLAGS: u32 = 0x3_0000;

    struct Random(SplitMix64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0.bits() % end
        }
    }

    fn event(core: Processor, at: Cycle, what: What) -> Event {
        let spot = Spot::Tensix(NocXy::new(1, 2));
        Event { at, spot, agent: Agent::Core(core), pc: at as u32 % 7 * 4 + 0x4000, known: true, early: false, what }
    }

    fn load(addr: u32) -> What {
        What::Load { addr, bytes: 4, value: 0, cached: !addr.is_multiple_of(16) }
    }

    fn store(addr: u32) -> What {
        What::Store { addr, bytes: 4, value: 0 }
    }

    /// What a core does: passes over lines, and accesses to single words.
    fn random_steps(random: &mut Random) -> Vec<Vec<What>> {
        let step = |random: &mut Random| {
            let (line, other) = (DATA + 64 * random.below(3) as u32, DATA + 64 * random.below(3) as u32);
            let word = FLAGS + 4 * random.below(2) as u32;
            match random.below(12) {
                0..=2 => (0..WORDS).map(|word| load(line + 4 * word)).collect(),
                3..=4 => (0..WORDS).map(|word| store(line + 4 * word)).collect(),
                5..=6 => (0..WORDS).flat_map(|word| [load(line + 4 * word), store(other + 4 * word)]).collect(),
                7 => vec![load(line + 4 * random.below(16) as u32)],
                8 => vec![store(line + 4 * random.below(16) as u32)],
                9 => vec![What::Fence],
                10 => vec![load(word)],
                _ => vec![store(word)],
            }
        };
        (0..random.below(12) + 1).map(|_| step(random)).collect()
    }

    /// The events of a pass over lines, told as lines.
    fn as_lines(events: &[Event]) -> Vec<Event> {
        let mut told = Vec::new();
        for stores in [false, true] {
            let of: Vec<&Event> =
                events.iter().filter(|event| matches!(event.what, What::Store { .. }) == stores).collect();
            let Some(first) = of.first() else { continue };
            let (mut line, mut steps) = (LineAccess { stores, ..LineAccess::default() }, LineSteps::default());
            for (word, event) in of.iter().enumerate() {
                steps.after[word] = (event.at - first.at) as u32;
                steps.pcs[word] = event.pc;
                let is_store = |other: &&Event| matches!(other.what, What::Store { .. });
                let since = events.iter().filter(is_store).filter(|other| (first.at..event.at).contains(&other.at));
                steps.stored[word] = if stores { 0 } else { since.count() as u32 };
                match event.what {
                    What::Load { addr, cached, .. } => {
                        line.addr = addr & !63;
                        line.cached |= u16::from(cached) << word;
                    }
                    What::Store { addr, .. } => line.addr = addr & !63,
                    _ => unreachable!(),
                }
            }
            line.steps = Arc::new(steps);
            told.push(Event { what: What::Line(line), ..(*first).clone() });
        }
        told
    }

    /// What is found, in the order in which it is told.
    fn found(mut events: Vec<Event>, stranger: bool, random: &mut Random) -> Vec<String> {
        events.sort_by_key(|event| (event.at, event.agent));
        let observer = if stranger { RaceObserver::of_stranger } else { RaceObserver::new };
        let mut observer = observer(Board::P100);
        let mut rest = &events[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at((random.below(20) as usize + 1).min(rest.len()));
            observer.events(now);
            // All that comes before the next event is known.
            observer.reached(later.first().map_or(Cycle::MAX, |event| event.at));
            rest = later;
        }
        let mut checks = Checks::new(Policy::new(&[Word::Races], Vec::new()).unwrap());
        observer.hand_over(&mut checks);
        checks.findings().iter().map(|finding| format!("{finding:?}")).collect()
    }

    #[test]
    fn lines_find_what_their_words_find() {
        let (mut races, mut clean) = (0, 0);
        for seed in 0..3000 {
            let random = &mut Random(SplitMix64::new(seed));
            let cores = random.below(3) as usize + 1;
            let (mut words, mut lines) = (Vec::new(), Vec::new());
            for &core in &CORES[..cores] {
                let mut at = random.below(400);
                for step in random_steps(random) {
                    let slow = random.below(4) + 1;
                    let each = |what| {
                        at += 1 + random.below(slow);
                        event(core, at, what)
                    };
                    let events: Vec<Event> = step.into_iter().map(each).collect();
                    let is_pass = events.len() >= WORDS as usize;
                    lines.extend(if is_pass { as_lines(&events) } else { events.clone() });
                    words.extend(events);
                }
            }
            let stranger = random.below(3) == 0;
            let one_by_one = found(words, stranger, random);
            assert_eq!(found(lines, stranger, random), one_by_one, "seed {seed}");
            races += usize::from(!one_by_one.is_empty());
            clean += usize::from(one_by_one.is_empty());
        }
        assert!(races > 500 && clean > 500, "{races} with races, {clean} without");
    }

    /// Fields that are being set: by which core, the first event, all of them.
    type Setting = (usize, Event, Vec<FieldStore>);

    #[test]
    fn fields_find_what_their_stores_find() {
        const REGISTERS: u32 = tilework_abi::noc::NIU0_BASE;
        let (mut races, mut clean) = (0, 0);
        for seed in 0..3000 {
            let random = &mut Random(SplitMix64::new(seed));
            let mut stores: Vec<Event> = Vec::new();
            // As the chip tells them.
            let (mut fields, mut open): (Vec<Event>, Vec<Setting>) = (Vec::new(), Vec::new());
            let close = |fields: &mut Vec<Event>, open: &mut Vec<Setting>| {
                fields.extend(open.drain(..).map(|(_, first, all)| Event { what: What::Fields(all.into()), ..first }));
            };
            let (mut at, cores) = (100, random.below(2) as usize + 1);
            for _ in 0..random.below(40) + 2 {
                at += random.below(3) + 1;
                let core = random.below(cores as u64) as usize;
                let (word, value) = (FLAGS + 4 * random.below(2) as u32, random.below(2) as u32);
                let what = match random.below(8) {
                    0 => load(word),
                    1 => store(word),
                    _ => What::Store { addr: REGISTERS + 4 * random.below(4) as u32, bytes: 4, value },
                };
                let event = event(CORES[core], at, what);
                stores.push(event.clone());
                match event.what {
                    What::Store { addr: addr @ REGISTERS.., value, .. } => {
                        if open.first().is_some_and(|(other, ..)| *other != core) {
                            close(&mut fields, &mut open);
                        }
                        let first = open.first().map_or(at, |(_, first, _)| first.at);
                        let field = FieldStore { after: (at - first) as u32, pc: event.pc, addr, value };
                        match open.first_mut() {
                            Some((.., all)) => all.push(field),
                            None => open.push((core, event, vec![field])),
                        }
                    }
                    _ => {
                        if open.first().is_some_and(|(other, ..)| *other == core) {
                            close(&mut fields, &mut open);
                        }
                        fields.push(event);
                    }
                }
            }
            close(&mut fields, &mut open);
            let one_by_one = found(stores, false, random);
            assert_eq!(found(fields, false, random), one_by_one, "seed {seed}");
            races += usize::from(!one_by_one.is_empty());
            clean += usize::from(one_by_one.is_empty());
        }
        assert!(races > 500 && clean > 500, "{races} with races, {clean} without");
    }
}
