//! The chip with what the debugger knows of it, and what is looked at after each window.

use crate::arch::PC;
use crate::code::{Code, ImageKind};
use crate::files::OpenFiles;
use crate::goal::{Back, Goal, Moment, Stop};
use crate::history::History;
use crate::watch::{Watch, Watcher};
use crate::witness::{Found, Witness};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tilework_abi::addr::Cycle;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_sim::{Activity, Advanced, Chip, Thread};

/// A window in which nothing is looked for: shorter than what the host takes to notice anything.
const LONG: Cycle = 64;

/// The chip and the debugger's state, which gdb sees together.
pub(crate) struct Machine {
    pub(crate) chip: Chip,
    pub(crate) state: State,
    /// Sees the accesses, from the first watchpoint on.
    pub(crate) watcher: Option<Arc<Mutex<Watcher>>>,
    /// Looks for what is wrong.
    pub(crate) witness: Option<Box<dyn Witness>>,
    /// How much of what it has found was looked at.
    pub(crate) looked_at: usize,
    /// The cycle of the checkpoint from which the run was repeated.
    pub(crate) base: Option<Cycle>,
}

/// What a core was doing when it was last looked at.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// Its instructions since power-on.
    pub(crate) count: u64,
    /// The code that it is in.
    region: Range<u32>,
}

/// What the user has changed, and when: done again when the run is repeated.
struct Edit {
    cycle: Cycle,
    thread: Thread,
    what: Change,
}

enum Change {
    Register(usize, u32),
    Memory(u32, Vec<u8>),
}

/// What the debugger knows; it outlives a run that is repeated.
pub(crate) struct State {
    pub(crate) code: Code,
    pub(crate) files: OpenFiles,
    pub(crate) breakpoints: BTreeSet<u32>,
    /// Breakpoints that gdb has taken away since the last stop: it does so for single steps, and
    /// others may arrive meanwhile.
    pub(crate) lifted: BTreeSet<u32>,
    pub(crate) goal: Goal,
    /// The thread that the last stop was about.
    pub(crate) focus: Thread,
    /// What the last stop was, in words.
    pub(crate) why: String,
    /// The chip stands where the last arrival was; otherwise behind all arrivals of its cycle.
    at_arrival: bool,
    /// Threads that have arrived at a breakpoint, and of which gdb does not know yet.
    pending: BTreeSet<Thread>,
    /// Where they arrived, if gdb had taken that breakpoint away to step another thread over it.
    passed: BTreeMap<Thread, u32>,
    /// Stops of this cycle of which gdb does not know yet.
    queued: VecDeque<Stop>,
    pub(crate) seen: Vec<Seen>,
    edits: Vec<Edit>,
    /// What memory is watched.
    pub(crate) watches: Vec<Watch>,
    /// The thread whose memory gdb has read last: the one whose memory it means.
    pub(crate) reader: Thread,
    /// Whose memory each watchpoint of gdb's is about, by address and length: gdb takes them away
    /// at each stop, and sets them again.
    pub(crate) owners: BTreeMap<(u32, u32), Thread>,
    /// What was found and gdb was told of.
    pub(crate) told: BTreeSet<Found>,
    /// Where the window ends that is being run.
    window: Option<Cycle>,
    /// The program is about to start: its kernels may run from then on.
    pub(crate) armed: Arc<AtomicBool>,
    /// A cycle to which the next command that continues goes.
    pub(crate) until: Option<Cycle>,
    /// The threads whose registers gdb has read since the last stop, in this order.
    shown: Vec<Thread>,
    /// What is kept to go back.
    pub(crate) history: History,
}

impl State {
    pub(crate) fn new(code: Code, armed: Arc<AtomicBool>) -> Self {
        Self {
            code,
            files: OpenFiles::default(),
            breakpoints: BTreeSet::new(),
            lifted: BTreeSet::new(),
            goal: Goal::Start,
            focus: Thread::new(0),
            why: "not started".into(),
            at_arrival: false,
            pending: BTreeSet::new(),
            passed: BTreeMap::new(),
            queued: VecDeque::new(),
            seen: Vec::new(),
            edits: Vec::new(),
            watches: Vec::new(),
            reader: Thread::new(0),
            owners: BTreeMap::new(),
            told: BTreeSet::new(),
            window: None,
            armed,
            until: None,
            shown: Vec::new(),
            history: History::default(),
        }
    }
}

impl State {
    /// Whether there is nothing at which the chip would stop for gdb.
    fn stops_nowhere(&self) -> bool {
        self.breakpoints.is_empty() && self.lifted.is_empty() && self.watches.is_empty() && self.code.is_unknown()
    }
}

impl Machine {
    /// A chip just powered on, with what is known of earlier runs of the same program.
    pub(crate) fn new(mut chip: Chip, mut state: State, witness: Option<Box<dyn Witness>>) -> Self {
        state.seen = vec![Seen::default(); chip.threads().count()];
        state.pending.clear();
        state.queued.clear();
        state.window = None;
        if let Goal::Back(Back::Count { thread, .. }) = state.goal {
            chip.set_thread_parking(thread, false);
        }
        for observer in witness.iter().flat_map(|witness| witness.observers()) {
            chip.observe(observer);
        }
        let mut machine = Self { chip, state, watcher: None, witness, looked_at: 0, base: None };
        machine.watch();
        machine
    }

    /// Tells the watcher what is watched.
    pub(crate) fn watch(&mut self) {
        // What happened before is nothing that the user waits for.
        self.chip.show_past();
        let watches = &self.state.watches;
        if self.watcher.is_none() && !watches.is_empty() {
            let watcher = Arc::new(Mutex::new(Watcher::default()));
            self.chip.observe(Box::new(Arc::clone(&watcher)));
            self.watcher = Some(watcher);
        }
        if let Some(Ok(mut watcher)) = self.watcher.as_ref().map(|watcher| watcher.lock()) {
            watcher.watches.clone_from(watches);
            watcher.hits.clear();
        }
    }

    /// Watches memory.
    pub(crate) fn add_watch(&mut self, watch: Watch) {
        if !self.state.watches.contains(&watch) {
            self.state.watches.push(watch);
        }
        self.watch();
    }

    /// Watches it no more; false if nobody did.
    pub(crate) fn remove_watch(&mut self, is_it: impl Fn(&Watch) -> bool) -> bool {
        let before = self.state.watches.len();
        self.state.watches.retain(|watch| !is_it(watch));
        self.watch();
        before != self.state.watches.len()
    }

    /// The accesses to watched memory since the last look, as stops and when they were.
    fn watched(&mut self) -> Vec<(Moment, Stop)> {
        let Some(watcher) = &self.watcher else { return Vec::new() };
        self.chip.show_past();
        let Ok(mut watcher) = watcher.lock() else { return Vec::new() };
        let hits = std::mem::take(&mut watcher.hits);
        drop(watcher);
        hits.into_iter()
            .map(|hit| {
                let by = hit.core.map(|(xy, core)| self.thread_of(Some(xy), Some(core)));
                // gdb reads the memory of the thread that it is told of.
                let own = hit.watch.thread;
                let thread = by.filter(|by| own.is_some_and(|own| own.tile() == by.tile())).or(own).or(by);
                let thread = thread.unwrap_or(self.state.focus);
                (Moment { cycle: hit.at, thread }, Stop::Watch { thread, gdb: hit.watch.gdb, what: hit.what })
            })
            .collect()
    }

    /// The thread of a core; that of the last stop if it is not known.
    pub(crate) fn thread_of(&self, tile: Option<NocXy>, core: Option<Processor>) -> Thread {
        let number = tile
            .and_then(|xy| self.chip.tiles().position(|tile| tile == xy))
            .map(|tile| tile * Processor::ALL.len() + core.map_or(0, Processor::index));
        number.map_or(self.state.focus, Thread::new)
    }

    /// Where a core stands: its next instruction and its count of instructions.
    pub(crate) fn progress(&self, thread: Thread) -> (u32, u64) {
        self.chip.core(thread).map_or((0, 0), |core| (core.pc, core.instructions))
    }

    /// Where the next window ends, at most at `limit`.
    pub(crate) fn window_end(&mut self, limit: Cycle) -> Cycle {
        if self.state.goal == Goal::Back(Back::Begin) {
            return self.chip.clock_now();
        }
        if self.state.window.is_none() {
            let next = self.chip.next_event();
            let end = next.saturating_add(self.window_length());
            let edit = self.state.edits.iter().map(|edit| edit.cycle).find(|&at| at > self.chip.clock_now());
            let goal = match &self.state.goal {
                Goal::Until(cycle) | Goal::Back(Back::Cycle(cycle)) => Some(*cycle),
                Goal::Back(Back::To(moment, _)) => {
                    let before = moment.cycle.saturating_sub(1);
                    Some(if self.chip.clock_now() < before { before } else { moment.cycle })
                }
                Goal::Back(Back::LastBefore { before, .. }) => Some(before.cycle),
                _ => None,
            };
            let stops = edit.into_iter().chain(goal).filter(|&at| at > self.chip.clock_now());
            self.state.window = Some(stops.fold(end, Cycle::min));
        }
        self.state.window.map_or(limit, |end| end.min(limit))
    }

    fn window_length(&self) -> Cycle {
        match &self.state.goal {
            Goal::Start if !self.state.armed.load(Ordering::Relaxed) => LONG,
            Goal::Back(Back::Count { thread, count }) => count.saturating_sub(self.progress(*thread).1).clamp(1, LONG),
            Goal::Back(Back::Cycle(_)) => LONG,
            // Nothing stops the chip but gdb's interrupt, whose cycle nobody knows.
            Goal::Free | Goal::Until(_) if self.state.stops_nowhere() => LONG,
            Goal::Back(Back::To(moment, _)) if self.chip.clock_now() + 1 < moment.cycle => LONG,
            _ => 1,
        }
    }

    /// Looks at the chip after a window; why it stops there, if it does.
    pub(crate) fn check(&mut self) -> Option<Stop> {
        self.state.window = None;
        let now = self.chip.clock_now();
        self.edit_again(now);
        if matches!(self.state.goal, Goal::Start) && !self.state.armed.load(Ordering::Relaxed) {
            return None;
        }
        let arrived = self.look(now);
        let watched = self.watched();
        let found = self.found();
        if let Goal::Back(Back::LastBefore { before, last }) = &mut self.state.goal {
            let events = watched.into_iter().filter(|(moment, _)| moment < before);
            for (moment, stop) in events {
                if last.as_ref().is_none_or(|(last, _)| *last < moment) {
                    *last = Some((moment, Box::new(stop)));
                }
            }
        } else if !(matches!(self.state.goal, Goal::Back(_)) || watched.is_empty() && found.is_empty()) {
            let watched = watched.into_iter().map(|(_, stop)| stop);
            self.state.queued.extend(watched.chain(found).chain(arrived));
            return self.state.queued.pop_front();
        }
        match self.state.goal.clone() {
            Goal::Start | Goal::Free => arrived.or_else(|| self.take_pending()),
            Goal::Step { thread, count, range, alone } => {
                let (pc, executed) = self.progress(thread);
                if arrived.is_some() {
                    return arrived;
                }
                if executed >= count && !range.contains(&pc) {
                    // Of its own breakpoint gdb knows by the program counter.
                    self.state.pending.remove(&thread);
                    return Some(Stop::Done(thread));
                }
                // gdb expects no other stop during a step over a breakpoint that it has taken away.
                if alone { None } else { self.take_pending() }
            }
            Goal::Until(cycle) if now >= cycle => Some(Stop::Done(self.state.focus)),
            Goal::Until(_) => arrived.or_else(|| self.take_pending()),
            Goal::Back(back) => self.check_back(back, now),
        }
    }

    fn check_back(&mut self, back: Back, now: Cycle) -> Option<Stop> {
        match back {
            Back::Begin => Some(Stop::Begin(self.state.focus)),
            Back::Cycle(cycle) if now >= cycle => Some(Stop::Done(self.state.focus)),
            Back::Count { thread, count } if self.progress(thread).1 >= count => {
                self.chip.set_thread_parking(thread, true);
                self.state.pending.clear();
                Some(Stop::Done(thread))
            }
            Back::LastBefore { before, last } if now >= before.cycle => {
                let to = match (last, self.base) {
                    (Some((moment, stop)), _) => Back::To(moment, stop),
                    (None, None) => Back::Begin,
                    // What happened up to the checkpoint.
                    (None, Some(base)) => {
                        let before = Moment { cycle: base.saturating_add(1), thread: Thread::new(0) };
                        Back::LastBefore { before, last: None }
                    }
                };
                self.state.goal = Goal::Back(to);
                Some(Stop::Again)
            }
            Back::To(moment, stop) if now >= moment.cycle => {
                self.state.pending.retain(|&thread| thread > moment.thread);
                self.state.at_arrival = true;
                Some(*stop)
            }
            _ => None,
        }
    }

    /// Looks at every core that has executed something: whether it has arrived at a breakpoint, and
    /// whether it is in code that nobody knows.
    fn look(&mut self, now: Cycle) -> Option<Stop> {
        let State { seen, breakpoints, lifted, .. } = &mut self.state;
        let (mut strangers, mut arrivals) = (Vec::new(), Vec::new());
        self.chip.executing(|thread, pc, count| {
            let Some(seen) = seen.get_mut(thread.number()).filter(|seen| seen.count != count) else { return };
            seen.count = count;
            if !seen.region.contains(&pc) {
                strangers.push((thread, pc));
            }
            if breakpoints.contains(&pc) || lifted.contains(&pc) {
                arrivals.push((thread, pc));
            }
        });
        let is_alone = matches!(self.state.goal, Goal::Step { alone: true, .. });
        for (thread, pc) in arrivals {
            if is_alone {
                self.state.passed.insert(thread, pc);
            }
            self.chip.keep_awake(thread);
            self.state.pending.insert(thread);
            let moment = Moment { cycle: now, thread };
            if let Goal::Back(Back::LastBefore { before, last }) = &mut self.state.goal
                && moment < *before
            {
                *last = Some((moment, Box::new(Stop::Break(thread))));
            }
        }
        strangers.into_iter().filter_map(|(thread, pc)| self.enter(thread, pc)).next()
    }

    /// A core is in code of which it is not known what it is.
    fn enter(&mut self, thread: Thread, pc: u32) -> Option<Stop> {
        let (place, region, is_new) = self.state.code.enter(&self.chip, thread, pc);
        self.state.seen[thread.number()].region = region;
        let is_kernel = place.is_some_and(|place| self.state.code.kind(place) == ImageKind::Kernel);
        match self.state.goal {
            Goal::Start => is_kernel.then_some(Stop::Kernel(thread)),
            Goal::Back(_) => None,
            _ => is_new.then_some(Stop::Library(thread)),
        }
    }

    /// The first of the threads that have arrived at a breakpoint that is still there.
    pub(crate) fn take_pending(&mut self) -> Option<Stop> {
        while let Some(thread) = self.state.pending.pop_first() {
            let pc = self.progress(thread).0;
            let passed = self.state.passed.remove(&thread);
            if self.state.breakpoints.contains(&pc) {
                self.state.at_arrival = true;
                return Some(Stop::Break(thread));
            }
            if let Some(at) = passed.filter(|at| self.state.breakpoints.contains(at)) {
                return Some(Stop::Passed(thread, at));
            }
        }
        self.state.passed.clear();
        None
    }

    /// gdb has read the registers of a thread.
    pub(crate) fn note_shown(&mut self, thread: Thread) {
        self.state.shown.retain(|&other| other != thread);
        self.state.shown.push(thread);
    }

    /// The thread that the user has probably selected, which gdb does not say when it goes back:
    /// that of the last stop, or another one whose registers it has read since, unless it has read
    /// those of many (`info threads`).
    pub(crate) fn selected(&self) -> Thread {
        match self.state.shown[..] {
            [selected] | [_, selected] => selected,
            _ => self.state.focus,
        }
    }

    /// What a thread executes, in words.
    pub(crate) fn place(&mut self, thread: Thread) -> String {
        let Some(core) = self.chip.core(thread) else { return "no such core".into() };
        let doing = match core.activity {
            Activity::Held => return "held in reset".into(),
            Activity::Running => String::new(),
            Activity::Parked => ", polling".into(),
            Activity::Paused => ", paused over the debug bus".into(),
            Activity::Blocked { addr } => format!(", waits in an access to {addr:#x}"),
        };
        let (place, ..) = self.state.code.enter(&self.chip, thread, core.pc);
        let name = place.map_or("unknown code", |place| self.state.code.name(place));
        format!("{name} at {:#x}{doing}", core.pc)
    }

    /// gdb lets the chip go on. It stops again at once if more threads stand at breakpoints.
    pub(crate) fn resumed(&mut self) -> Option<Stop> {
        let alone = matches!(self.state.goal, Goal::Step { alone: true, .. });
        if !alone {
            self.state.lifted.clear();
        }
        let goes_on = !matches!(self.state.goal, Goal::Back(_)) && !alone;
        if goes_on && let Some(stop) = self.state.queued.pop_front().or_else(|| self.take_pending()) {
            return Some(stop);
        }
        self.state.at_arrival = false;
        None
    }

    /// The moment at which the chip stands: after all arrivals of its cycle but those of later
    /// threads, if it stands at one.
    pub(crate) fn moment(&self) -> Moment {
        let cycle = self.chip.clock_now();
        let thread = if self.state.at_arrival { self.state.focus } else { Thread::new(0) };
        Moment { cycle, thread }
    }

    /// Wakes a thread that is parked and lets it come to the chip's time, so that its next
    /// instruction is one of this time.
    pub(crate) fn settle(&mut self, thread: Thread) {
        if self.chip.core(thread).is_some_and(|core| core.activity == Activity::Parked) {
            self.chip.keep_awake(thread);
            let now = self.chip.clock_now();
            while matches!(self.chip.advance(now), Ok(Advanced::Ran)) {}
        }
    }

    /// All threads look at a breakpoint again that was set now: those that sleep in a loop may be
    /// at it.
    pub(crate) fn add_breakpoint(&mut self, address: u32) {
        if self.state.breakpoints.insert(address) && !self.state.lifted.remove(&address) {
            for thread in self.chip.threads().collect::<Vec<_>>() {
                self.chip.keep_awake(thread);
            }
        }
    }

    pub(crate) fn remove_breakpoint(&mut self, address: u32) -> bool {
        let was_there = self.state.breakpoints.remove(&address);
        if was_there {
            self.state.lifted.insert(address);
        }
        was_there
    }

    pub(crate) fn set_register(&mut self, thread: Thread, index: usize, value: u32) {
        if index <= PC {
            self.chip.set_register(thread, index, value);
            self.note_edit(thread, Change::Register(index, value));
        }
    }

    pub(crate) fn set_memory(&mut self, thread: Thread, address: u32, data: &[u8]) -> bool {
        let is_stored = self.chip.poke(thread, address, data).is_ok();
        if is_stored {
            self.note_edit(thread, Change::Memory(address, data.to_vec()));
        }
        is_stored
    }

    fn note_edit(&mut self, thread: Thread, what: Change) {
        let cycle = self.chip.clock_now();
        self.state.edits.push(Edit { cycle, thread, what });
        self.state.history.forget_after(cycle.saturating_sub(1));
    }

    /// What the user changed at this cycle in an earlier run.
    fn edit_again(&mut self, now: Cycle) {
        if !matches!(self.state.goal, Goal::Back(_)) {
            return;
        }
        for edit in self.state.edits.iter().filter(|edit| edit.cycle == now) {
            match &edit.what {
                Change::Register(index, value) => self.chip.set_register(edit.thread, *index, *value),
                // It was stored before, in the same state of the chip.
                Change::Memory(address, data) => drop(self.chip.poke(edit.thread, *address, data)),
            }
        }
    }

    /// The chip has stopped where the user sees it: what was changed later is forgotten.
    pub(crate) fn stopped(&mut self, thread: Thread) {
        let now = self.chip.clock_now();
        self.state.focus = thread;
        self.state.shown.clear();
        let edits = self.state.edits.len();
        self.state.edits.retain(|edit| edit.cycle <= now);
        if self.state.edits.len() < edits {
            self.state.history.forget_after(now);
        }
        self.state.history.stopped = true;
    }
}
