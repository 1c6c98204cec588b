//! The protocol of traces, checked in every order of events.
//!
//! A trace is stored through the queue, executed by the prefetcher out of its memory, released, and
//! its memory given to the next. Its go signals wait for the number of workers that were started
//! since its beginning; nothing clears the stream before its end. Checked: the programs run in the
//! order of the host's calls, each with its own data and behind the end of the one before it,
//! whoever sends the go signals; and no order of events ends in a deadlock. Each worker counts as
//! so many that a trace of four programs passes the wrap of the stream. How the bytes of records
//! and command buffers come through is the subject of `model.rs`.
//!
//! The comparison is the one that runs, [`tilework_abi::cq::count`]. Each [`Defect`] puts one
//! mistake in, and must be found.

use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::VecDeque;
use tilework_abi::cq::count::StreamCount;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// A trace is executed before the host knows that it is in memory.
    ExecutesBeforeStored,
    /// The memory of a released trace is written past the queue.
    StoresPastQueue,
    /// A go signal of a trace waits for nothing.
    GoesAtOnce,
    /// Go signals count from the beginning, and the stream is cleared in between.
    ClearsInBetween,
    /// The stream keeps its count at the end of a trace.
    KeepsCount,
    /// A replay does not wait for the program in flight.
    ReplaysUnsettled,
    /// Counts are compared as plain integers (tt-metal#9113).
    ComparesPlainly,
    /// Go messages are sent before all data is acknowledged.
    GoesBeforeData,
    /// The dispatcher goes on when it has notified the subordinate, without waiting itself.
    RunsAhead,
}

const WORKERS: usize = 2;
/// Configuration slots of a worker, which programs take by turns.
const SLOTS: usize = 2;
/// What a worker adds to the stream.
const WEIGHT: u32 = 20_000;
/// Chunks of a trace's memory that are read one by one.
const CHUNKS: usize = 2;
/// Commands that lie between prefetcher and dispatcher at most.
const RING: usize = 3;

/// What the host does.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// Stores a trace of so many programs in the memory of the one before it, which is released.
    Store(usize),
    /// Replays it.
    Replay,
    /// Launches a program by itself.
    Launch,
}

/// A command for the dispatcher, or its subordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Command {
    /// A chunk of a trace to memory.
    Store { chunk: usize, trace: usize },
    /// Data of the next program to its slot.
    Data { slot: usize },
    /// A wait for a count, which may clear the stream.
    Wait { count: u32, clear: bool },
    /// Lets the subordinate send its next go signal.
    Notify,
    /// The go signal of the next program, which waits for a count.
    Go { slot: usize, count: u32 },
    /// Tells the host that everything is done.
    Event,
}

/// A record of the host.
#[derive(Clone, Debug)]
enum Record {
    /// Commands.
    Relay(Vec<Command>),
    /// A trace, by its number.
    Execute(usize),
    /// A trace that the host writes to memory itself.
    Poke(usize),
}

#[derive(Clone, Copy, Debug)]
struct Scenario {
    name: &'static str,
    calls: &'static [Call],
    /// Whether the subordinate sends the go signals.
    subordinate: bool,
}

use Call::{Launch, Replay, Store};

/// One trace, twice, and programs by themselves around it.
const REPLAYS: Scenario = Scenario {
    name: "replays",
    calls: &[Launch, Store(4), Launch, Replay, Replay, Launch, Launch],
    subordinate: false,
};
/// A trace in the memory of another one that is replayed once more while it is stored.
const MEMORY: Scenario = Scenario { name: "memory", calls: &[Store(1), Replay, Store(2), Replay], subordinate: false };
/// Go signals by the subordinate.
const SUBORDINATE: Scenario =
    Scenario { name: "subordinate", calls: &[Launch, Store(4), Replay, Launch], subordinate: true };

/// What everybody executes.
#[derive(Clone, Debug)]
struct Traces {
    scenario: Scenario,
    defect: Option<Defect>,
    /// The host's records, each with the number of events that it waits for before it sends it.
    records: Vec<(usize, Record)>,
    /// The chunks of each trace.
    traces: Vec<[Vec<Command>; CHUNKS]>,
    /// The programs that run, all in all.
    programs: usize,
}

impl Traces {
    fn new(scenario: Scenario, defect: Option<Defect>) -> Self {
        let mut out = Self { scenario, defect, records: Vec::new(), traces: Vec::new(), programs: 0 };
        let (mut events, mut in_flight, mut slot, mut programs) = (0, false, 0, 0);
        for &call in scenario.calls {
            match call {
                Store(programs) => {
                    let (number, commands) = (out.traces.len(), out.trace(programs));
                    out.traces.push(commands);
                    if out.has(Defect::StoresPastQueue) && number > 0 {
                        out.records.push((events, Record::Poke(number)));
                        continue;
                    }
                    let settle = in_flight.then_some(Command::Wait { count: WORKERS as u32 * WEIGHT, clear: true });
                    in_flight = false;
                    let store = (0..CHUNKS).map(|chunk| Command::Store { chunk, trace: number });
                    let commands = settle.into_iter().chain(store).chain([Command::Event]).collect();
                    out.records.push((events, Record::Relay(commands)));
                    events += usize::from(!out.has(Defect::ExecutesBeforeStored));
                }
                Replay => {
                    if in_flight && !out.has(Defect::ReplaysUnsettled) {
                        let settle = Command::Wait { count: WORKERS as u32 * WEIGHT, clear: true };
                        out.records.push((events, Record::Relay(vec![settle])));
                    }
                    in_flight = false;
                    out.records.push((events, Record::Execute(out.traces.len() - 1)));
                    let stored = scenario.calls.iter().filter_map(|call| match call {
                        Store(programs) => Some(*programs),
                        _ => None,
                    });
                    programs += stored.clone().nth(out.traces.len() - 1).expect("a trace is stored");
                }
                Launch => {
                    let mut commands = vec![Command::Data { slot }];
                    if in_flight {
                        commands.push(Command::Wait { count: WORKERS as u32 * WEIGHT, clear: true });
                    }
                    commands.extend(out.go(slot, 0));
                    out.records.push((events, Record::Relay(commands)));
                    (in_flight, slot) = (true, 1 - slot);
                    programs += 1;
                }
            }
        }
        if in_flight {
            let settle = Command::Wait { count: WORKERS as u32 * WEIGHT, clear: true };
            out.records.push((events, Record::Relay(vec![settle])));
        }
        out.programs = programs;
        out
    }
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }
    /// The commands of a go signal behind so many workers.
    fn go(&self, slot: usize, count: u32) -> Vec<Command> {
        let go = Command::Go { slot, count };
        if self.scenario.subordinate { vec![Command::Notify, go] } else { vec![go] }
    }
    /// A trace: its programs take the slots by turns.
    fn trace(&self, programs: usize) -> [Vec<Command>; CHUNKS] {
        let mut commands = vec![Command::Wait { count: 0, clear: true }];
        for program in 0..programs {
            let (slot, started) = (program % SLOTS, (program * WORKERS) as u32 * WEIGHT);
            commands.push(Command::Data { slot });
            if self.scenario.subordinate && program > 0 && !self.has(Defect::RunsAhead) {
                commands.push(Command::Wait { count: started, clear: false });
            }
            if self.has(Defect::ClearsInBetween) && program == 1 {
                commands.push(Command::Wait { count: started, clear: true });
            }
            commands.extend(self.go(slot, if self.has(Defect::GoesAtOnce) { 0 } else { started }));
        }
        let clear = !self.has(Defect::KeepsCount);
        commands.push(Command::Wait { count: (programs * WORKERS) as u32 * WEIGHT, clear });
        let second = commands.split_off(commands.len() / 2);
        [commands, second]
    }
}

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Packet {
    Store { chunk: usize, trace: usize },
    Data { worker: usize, slot: usize, program: usize },
    Go { worker: usize, slot: usize, program: usize },
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wrong {
    /// A chunk of another trace, or of none, was executed.
    Stale(usize),
    /// A go message for a worker that runs, or in front of the end of the program before.
    Early(usize),
    /// A program found other data.
    Data(usize),
    /// Data for a slot that a program uses.
    Overwritten(usize),
}

/// A worker: what its slots hold, and the program that runs with its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Worker {
    slots: [usize; SLOTS],
    runs: Option<(usize, usize)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Events that the host has seen.
    events: usize,
    /// The next record, and the next command or chunk of it.
    record: usize,
    at: usize,
    memory: [Option<usize>; CHUNKS],
    ring: VecDeque<Command>,
    subordinate: VecDeque<Command>,
    allowed: usize,
    /// Programs whose data and whose go signals were sent.
    sent: [usize; 2],
    stream: u32,
    workers: [Worker; WORKERS],
    /// Workers that have ended, of all programs.
    ended: usize,
    packets: Vec<Packet>,
    wrong: Option<Wrong>,
}

impl State {
    fn send(&mut self, packet: Packet) {
        self.packets.push(packet);
        self.packets.sort_unstable();
    }
    fn fail(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
    }
    /// Whether the dispatcher's writes are all acknowledged.
    fn is_settled(&self) -> bool {
        !self.packets.iter().any(|packet| !matches!(packet, Packet::Done))
    }

    /// The prefetcher relays the next command, or reads the next chunk and relays all of it.
    fn prefetch(&mut self, traces: &Traces) {
        let Some((events, record)) = traces.records.get(self.record) else { return };
        if self.events < *events || self.ring.len() >= RING || self.subordinate.len() >= RING {
            return;
        }
        let (commands, whole) = match record {
            Record::Relay(commands) => (&commands[self.at..=self.at], commands.len()),
            Record::Execute(trace) => {
                if self.memory[self.at] != Some(*trace) {
                    return self.fail(Wrong::Stale(*trace));
                }
                (&traces.traces[*trace][self.at][..], CHUNKS)
            }
            Record::Poke(trace) => {
                self.memory = [Some(*trace); CHUNKS];
                (&[][..], 1)
            }
        };
        for &command in commands {
            let to_subordinate = traces.scenario.subordinate && matches!(command, Command::Go { .. });
            if to_subordinate { self.subordinate.push_back(command) } else { self.ring.push_back(command) }
        }
        self.at += 1;
        if self.at == whole {
            (self.record, self.at) = (self.record + 1, 0);
        }
    }

    /// A host that writes past the queue does so when its call comes, whatever the prefetcher does.
    fn poke(&mut self, traces: &Traces) {
        let poke = traces.records.iter().skip(self.record).find_map(|(events, record)| match record {
            Record::Poke(trace) if *events <= self.events => Some(*trace),
            _ => None,
        });
        if let Some(trace) = poke {
            self.memory = [Some(trace); CHUNKS];
        }
    }

    fn reached(&self, traces: &Traces, count: u32) -> bool {
        let (now, count) = (StreamCount::new(self.stream), StreamCount::new(count));
        if traces.has(Defect::ComparesPlainly) { now.get() >= count.get() } else { now.wrap_ge(count) }
    }

    /// The dispatcher executes its next command, if it can.
    fn dispatch(&mut self, traces: &Traces) {
        let Some(&command) = self.ring.front() else { return };
        match command {
            Command::Store { chunk, trace } => self.send(Packet::Store { chunk, trace }),
            Command::Data { slot } => {
                self.sent[0] += 1;
                let program = self.sent[0];
                (0..WORKERS).for_each(|worker| self.send(Packet::Data { worker, slot, program }));
            }
            Command::Wait { count, clear } => {
                if !self.reached(traces, count) {
                    return;
                }
                if clear {
                    // As the firmware clears it: by what has been counted.
                    self.stream = 0;
                }
            }
            Command::Notify => {
                if !self.is_settled() {
                    return;
                }
                self.allowed += 1;
            }
            Command::Go { .. } => {
                if !self.go(traces, command) {
                    return;
                }
            }
            Command::Event => {
                if !self.is_settled() {
                    return;
                }
                self.events += 1;
            }
        }
        self.ring.pop_front();
    }

    /// The subordinate sends its next go signal, if it may.
    fn subordinate(&mut self, traces: &Traces) {
        let Some(&command) = self.subordinate.front() else { return };
        if self.sent[1] < self.allowed && self.go(traces, command) {
            self.subordinate.pop_front();
        }
    }

    fn go(&mut self, traces: &Traces, command: Command) -> bool {
        let Command::Go { slot, count } = command else { return false };
        let ready = traces.scenario.subordinate || self.is_settled() || traces.has(Defect::GoesBeforeData);
        if !ready || !self.reached(traces, count) {
            return false;
        }
        self.sent[1] += 1;
        let program = self.sent[1];
        (0..WORKERS).for_each(|worker| self.send(Packet::Go { worker, slot, program }));
        true
    }

    /// A packet arrives.
    fn arrive(&mut self, at: usize) {
        match self.packets.remove(at) {
            Packet::Store { chunk, trace } => self.memory[chunk] = Some(trace),
            Packet::Data { worker, slot, program } => {
                if self.workers[worker].runs.is_some_and(|(_, used)| used == slot) {
                    self.fail(Wrong::Overwritten(program));
                }
                self.workers[worker].slots[slot] = program;
            }
            Packet::Go { worker, slot, program } => {
                if self.workers[worker].runs.is_some() || self.ended < (program - 1) * WORKERS {
                    return self.fail(Wrong::Early(program));
                }
                if self.workers[worker].slots[slot] != program {
                    return self.fail(Wrong::Data(program));
                }
                self.workers[worker].runs = Some((program, slot));
            }
            Packet::Done => self.stream = StreamCount::new(self.stream).plus(WEIGHT).get(),
        }
    }

    /// A worker ends its program and reports it.
    fn end(&mut self, worker: usize) {
        if self.workers[worker].runs.take().is_some() {
            self.ended += 1;
            self.send(Packet::Done);
        }
    }

    fn is_finished(&self, traces: &Traces) -> bool {
        self.record == traces.records.len()
            && self.ring.is_empty()
            && self.packets.is_empty()
            && self.ended == traces.programs * WORKERS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Prefetch,
    Poke,
    Dispatch,
    Subordinate,
    Arrive(usize),
    End(usize),
}

const RIGHT: &str = "every program runs in order, with its own data";
const ENDS: &str = "all programs end";
const WRAPS: &str = "the stream passes its wrap";

impl Model for Traces {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            events: 0,
            record: 0,
            at: 0,
            memory: [None; CHUNKS],
            ring: VecDeque::new(),
            subordinate: VecDeque::new(),
            allowed: 0,
            sent: [0; 2],
            stream: 0,
            workers: [Worker::default(); WORKERS],
            ended: 0,
            packets: Vec::new(),
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.wrong.is_some() {
            return;
        }
        actions.extend([Action::Prefetch, Action::Poke, Action::Dispatch, Action::Subordinate]);
        actions.extend((0..WORKERS).map(Action::End));
        let differs = |&i: &usize| i == 0 || state.packets[i] != state.packets[i - 1];
        actions.extend((0..state.packets.len()).filter(differs).map(Action::Arrive));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Prefetch => state.prefetch(self),
            Action::Poke => state.poke(self),
            Action::Dispatch => state.dispatch(self),
            Action::Subordinate => state.subordinate(self),
            Action::Arrive(at) => state.arrive(at),
            Action::End(worker) => state.end(worker),
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(RIGHT, |_, state: &State| state.wrong.is_none()),
            // No step leads in a circle, so this says that no order of events ends anywhere else.
            Property::eventually(ENDS, |traces, state: &State| state.wrong.is_some() || state.is_finished(traces)),
            Property::sometimes(WRAPS, |traces: &Self, state: &State| {
                let most = (4 * WORKERS) as u32 * WEIGHT;
                let long = traces.traces.iter().any(|trace| trace.concat().len() > 8);
                !long || state.stream == StreamCount::new(most).get()
            }),
        ]
    }
}

#[test]
fn traces_are_stored_replayed_and_released() {
    for scenario in [REPLAYS, MEMORY, SUBORDINATE] {
        let checker = Traces::new(scenario, None).checker().spawn_bfs().join();
        println!("{}: {} states", scenario.name, checker.unique_state_count());
        checker.assert_properties();
    }
}

/// Where each mistake shows, and as what.
const FOUND: [(Defect, Scenario, &str); 9] = [
    (Defect::ExecutesBeforeStored, MEMORY, RIGHT),
    (Defect::StoresPastQueue, MEMORY, RIGHT),
    (Defect::GoesAtOnce, REPLAYS, RIGHT),
    (Defect::ClearsInBetween, REPLAYS, ENDS),
    (Defect::KeepsCount, REPLAYS, RIGHT),
    (Defect::ReplaysUnsettled, REPLAYS, RIGHT),
    (Defect::ComparesPlainly, REPLAYS, RIGHT),
    (Defect::GoesBeforeData, REPLAYS, RIGHT),
    (Defect::RunsAhead, SUBORDINATE, RIGHT),
];

#[test]
fn every_defect_of_traces_is_found() {
    for (defect, scenario, property) in FOUND {
        let checker =
            Traces::new(scenario, Some(defect)).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let found = checker.discoveries();
        println!("{defect:?}: {:?} after {} states", found.keys(), checker.unique_state_count());
        assert!(found.contains_key(property), "{defect:?} does not show as a violation of \"{property}\"");
    }
}
