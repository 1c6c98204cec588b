//! The protocol between two command queues of one device, checked in every order of events.
//!
//! Two dispatchers execute their commands, each in order, and share the workers: data, go messages
//! and done counts travel as packets that arrive in any order, and so do the numbers of events that
//! one dispatcher writes to the other. Checked: no worker gets a go message while it runs, or with
//! the data of another program; a program comes behind whatever its queue has waited for; no order
//! of events ends in a deadlock; and what each script is there for comes about (two programs at the
//! same time, a queue that has to wait). Event numbers begin near their wrap. How each queue's
//! records come to its dispatcher is the subject of `model.rs`.
//!
//! What decides anything is the code that runs: the comparisons of
//! [`tilework_abi::cq::count`]. Each [`Defect`] puts one mistake in, and must be found.

use stateright::{Checker, HasDiscoveries, Model, Property};
use tilework_abi::cq::count::{StreamCount, WrapCount};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// An event is recorded without waiting for the programs before it.
    RecordsBeforeEnd,
    /// The number of an event is written without waiting for the one before it.
    RecordsWithoutBarrier,
    /// A queue that waits looks at the word of its own events.
    WaitsForOwnWord,
    /// Event numbers are compared as plain integers (tt-metal#9113).
    ComparesPlainly,
    /// The host launches a program that nothing orders (tt-metal: two queues own one sub-device).
    LaunchesUnordered,
    /// All workers report to the first queue.
    ReportsToFirstQueue,
    /// All sub-devices report to one stream.
    SharesStream,
    /// The data of a program goes out in front of the wait for the other queue.
    DataBeforeWait,
}

/// A program: its sub-device and its workers.
#[derive(Clone, Copy, Debug)]
struct Program {
    sub: usize,
    workers: &'static [usize],
}

/// What the host enqueues.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// A program, by its number.
    Launch(usize),
    /// The next event of the queue.
    Record,
    /// A wait for an event of the other queue, by its position among that queue's events.
    Wait(usize),
}

/// A command of a dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    /// Data of a program to its workers.
    Data(usize),
    /// A wait for so many workers of a sub-device, which clears their stream.
    Settle { sub: usize, count: u32 },
    /// The go messages of a program, when all data has arrived.
    Go(usize),
    /// A barrier, then the number of an event to both dispatchers.
    Show(u32),
    /// A wait for the number of an event of the other queue.
    Await(u32),
}

const QUEUES: usize = 2;
const WORKERS: usize = 3;
const SUBS: usize = 2;
/// The number before the first event.
const NUMBER: u32 = u32::MAX - 1;

/// A script for both queues and what it is there for.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    name: &'static str,
    programs: &'static [Program],
    calls: [&'static [Call]; QUEUES],
    /// Pairs of programs of which the second comes behind the end of the first.
    ordered: &'static [(usize, usize)],
    /// Programs that run at the same time in some order of events.
    together: Option<(usize, usize)>,
    /// Whether some queue has to wait for an event.
    waits: bool,
}

use Call::{Launch, Record, Wait};

/// The same workers, in turns: from one queue to the other and back.
const TURNS: Scenario = Scenario {
    name: "turns",
    programs: &[Program { sub: 0, workers: &[0, 1] }; 3],
    calls: [&[Launch(0), Record, Wait(0), Launch(2)], &[Wait(0), Launch(1), Record]],
    ordered: &[(0, 1), (1, 2)],
    together: None,
    waits: true,
};
/// Different workers, at the same time; then all of them.
const BESIDE: Scenario = Scenario {
    name: "beside",
    programs: &[
        Program { sub: 0, workers: &[0] },
        Program { sub: 0, workers: &[1, 2] },
        Program { sub: 0, workers: &[0, 1] },
    ],
    calls: [&[Launch(0), Record], &[Launch(1), Wait(0), Launch(2)]],
    ordered: &[(0, 2), (1, 2)],
    together: Some((0, 1)),
    waits: true,
};
/// Two sub-devices of one queue at the same time, and the other queue behind both.
const SUB_DEVICES: Scenario = Scenario {
    name: "sub-devices",
    programs: &[
        Program { sub: 0, workers: &[0] },
        Program { sub: 1, workers: &[1, 2] },
        Program { sub: 1, workers: &[2] },
        Program { sub: 0, workers: &[0] },
    ],
    calls: [&[Launch(0), Launch(1), Launch(2), Record], &[Wait(0), Launch(3)]],
    ordered: &[(1, 2), (0, 3), (2, 3)],
    together: Some((0, 2)),
    waits: true,
};
/// Several events one behind the other, over the wrap of their numbers.
const EVENTS: Scenario = Scenario {
    name: "events",
    programs: &[Program { sub: 0, workers: &[0] }; 2],
    calls: [&[Record, Record, Launch(0), Record, Record], &[Wait(1), Record, Wait(3), Launch(1)]],
    ordered: &[(0, 1)],
    together: None,
    waits: true,
};
const SCENARIOS: [Scenario; 4] = [TURNS, BESIDE, SUB_DEVICES, EVENTS];

/// The commands of each queue, as the host puts them together.
fn commands(scenario: &Scenario, defect: Option<Defect>) -> [Vec<Command>; QUEUES] {
    scenario.calls.map(|calls| {
        let mut out = Vec::new();
        let mut in_flight: [Option<usize>; SUBS] = [None; SUBS];
        let mut number = NUMBER;
        let settle = |out: &mut Vec<Command>, in_flight: &mut [Option<usize>; SUBS], sub: usize| {
            if let Some(program) = in_flight[sub].take() {
                out.push(Command::Settle { sub, count: scenario.programs[program].workers.len() as u32 });
            }
        };
        for &call in calls {
            match call {
                Launch(program) => {
                    let sub = scenario.programs[program].sub;
                    let data = Command::Data(program);
                    let waited = matches!(out.last(), Some(Command::Await(_)));
                    if defect == Some(Defect::DataBeforeWait) && waited {
                        out.insert(out.len() - 1, data);
                    } else {
                        // A worker of the program in flight still reads its own.
                        settle(&mut out, &mut in_flight, sub);
                        out.push(data);
                    }
                    out.push(Command::Go(program));
                    in_flight[sub] = Some(program);
                }
                Record => {
                    if defect != Some(Defect::RecordsBeforeEnd) {
                        (0..SUBS).for_each(|sub| settle(&mut out, &mut in_flight, sub));
                    }
                    number = number.wrapping_add(1);
                    out.push(Command::Show(number));
                }
                Wait(event) => {
                    (0..SUBS).for_each(|sub| settle(&mut out, &mut in_flight, sub));
                    if defect != Some(Defect::LaunchesUnordered) {
                        out.push(Command::Await(NUMBER.wrapping_add(1 + event as u32)));
                    }
                }
            }
        }
        (0..SUBS).for_each(|sub| settle(&mut out, &mut in_flight, sub));
        out
    })
}

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Packet {
    Data {
        queue: usize,
        program: usize,
        worker: usize,
    },
    Go {
        queue: usize,
        program: usize,
        worker: usize,
    },
    /// A worker's report to a stream of a dispatcher.
    Done {
        queue: usize,
        sub: usize,
    },
    /// The number of an event of `of` to dispatcher `to`.
    Event {
        of: usize,
        to: usize,
        number: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wrong {
    /// A go message for a worker that runs another program.
    Met(usize, usize),
    /// A go message for a worker with another program's data.
    Data(usize, usize),
    /// Data for a worker that runs another program.
    Overwritten(usize, usize),
    /// A program that started in front of the end of another.
    Early(usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Worker {
    data: Option<usize>,
    runs: Option<(usize, usize)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The next command of each dispatcher.
    next: [usize; QUEUES],
    streams: [[u32; SUBS]; QUEUES],
    /// The last events of each queue, as each dispatcher has them.
    events: [[u32; QUEUES]; QUEUES],
    workers: [Worker; WORKERS],
    packets: Vec<Packet>,
    /// Workers that have ended each program.
    ended: Vec<u32>,
    together: bool,
    waited: bool,
    wrong: Option<Wrong>,
}

#[derive(Clone, Debug)]
struct Queues {
    scenario: Scenario,
    commands: [Vec<Command>; QUEUES],
    defect: Option<Defect>,
}

impl Queues {
    fn new(scenario: Scenario, defect: Option<Defect>) -> Self {
        Self { scenario, commands: commands(&scenario, defect), defect }
    }
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }
    fn program(&self, program: usize) -> &Program {
        &self.scenario.programs[program]
    }
    /// Which stream counts a sub-device.
    fn stream(&self, sub: usize) -> usize {
        if self.has(Defect::SharesStream) { 0 } else { sub }
    }
}

impl State {
    fn send(&mut self, packet: Packet) {
        self.packets.push(packet);
        self.packets.sort_unstable();
    }
    fn fail(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
    }
    /// Whether a dispatcher's writes are all acknowledged.
    fn is_settled(&self, queue: usize) -> bool {
        !self.packets.iter().any(|packet| match *packet {
            Packet::Data { queue: of, .. } | Packet::Go { queue: of, .. } | Packet::Event { of, .. } => of == queue,
            Packet::Done { .. } => false,
        })
    }

    /// A dispatcher executes its next command, if it can.
    fn execute(&mut self, queues: &Queues, queue: usize) {
        let Some(&command) = queues.commands[queue].get(self.next[queue]) else { return };
        match command {
            Command::Data(program) => {
                for &worker in queues.program(program).workers {
                    self.send(Packet::Data { queue, program, worker });
                }
            }
            Command::Settle { sub, count } => {
                let stream = &mut self.streams[queue][queues.stream(sub)];
                if !StreamCount::new(*stream).wrap_ge(StreamCount::new(count)) {
                    return;
                }
                // As the firmware clears it: by what has been counted.
                *stream = 0;
            }
            Command::Go(program) => {
                if !self.is_settled(queue) {
                    return;
                }
                for &worker in queues.program(program).workers {
                    self.send(Packet::Go { queue, program, worker });
                }
            }
            Command::Show(number) => {
                if !self.is_settled(queue) && !queues.has(Defect::RecordsWithoutBarrier) {
                    return;
                }
                (0..QUEUES).for_each(|to| self.send(Packet::Event { of: queue, to, number }));
            }
            Command::Await(number) => {
                let of = if queues.has(Defect::WaitsForOwnWord) { queue } else { 1 - queue };
                let last = self.events[queue][of];
                let reached = match queues.has(Defect::ComparesPlainly) {
                    true => last >= number,
                    false => WrapCount(last).wrap_ge(WrapCount(number)),
                };
                if !reached {
                    self.waited = true;
                    return;
                }
            }
        }
        self.next[queue] += 1;
    }

    /// A packet arrives.
    fn arrive(&mut self, queues: &Queues, at: usize) {
        match self.packets.remove(at) {
            Packet::Data { program, worker, .. } => {
                if let Some((_, runs)) = self.workers[worker].runs {
                    self.fail(Wrong::Overwritten(runs, program));
                }
                self.workers[worker].data = Some(program);
            }
            Packet::Go { queue, program, worker } => self.start(queues, queue, program, worker),
            Packet::Done { queue, sub } => self.streams[queue][queues.stream(sub)] += 1,
            Packet::Event { of, to, number } => self.events[to][of] = number,
        }
    }

    fn start(&mut self, queues: &Queues, queue: usize, program: usize, worker: usize) {
        let Worker { data, runs } = self.workers[worker];
        if let Some((_, other)) = runs {
            return self.fail(Wrong::Met(other, program));
        }
        if data != Some(program) {
            return self.fail(Wrong::Data(data.unwrap_or(usize::MAX), program));
        }
        for &(first, second) in queues.scenario.ordered {
            let whole = queues.program(first).workers.len() as u32;
            if second == program && self.ended[first] != whole {
                self.fail(Wrong::Early(first, second));
            }
        }
        self.workers[worker].runs = Some((queue, program));
        let running = |wanted| self.workers.iter().any(|w| w.runs.is_some_and(|(_, program)| program == wanted));
        self.together |= queues.scenario.together.is_some_and(|(a, b)| running(a) && running(b));
    }

    /// A worker ends its program and reports it.
    fn end(&mut self, queues: &Queues, worker: usize) {
        let Some((queue, program)) = self.workers[worker].runs.take() else { return };
        self.ended[program] += 1;
        let queue = if queues.has(Defect::ReportsToFirstQueue) { 0 } else { queue };
        self.send(Packet::Done { queue, sub: queues.program(program).sub });
    }

    fn is_finished(&self, queues: &Queues) -> bool {
        self.packets.is_empty()
            && self.workers.iter().all(|worker| worker.runs.is_none())
            && (0..QUEUES).all(|queue| self.next[queue] == queues.commands[queue].len())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Execute(usize),
    Arrive(usize),
    End(usize),
}

const RIGHT: &str = "every program has its workers and its data to itself, in order";
const ENDS: &str = "both queues end";
const REACHED: &str = "every situation is reached";

impl Model for Queues {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            next: [0; QUEUES],
            streams: [[0; SUBS]; QUEUES],
            events: [[NUMBER; QUEUES]; QUEUES],
            workers: [Worker { data: None, runs: None }; WORKERS],
            packets: Vec::new(),
            ended: vec![0; self.scenario.programs.len()],
            together: false,
            waited: false,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.wrong.is_some() {
            return;
        }
        actions.extend((0..QUEUES).map(Action::Execute));
        actions.extend((0..WORKERS).map(Action::End));
        let differs = |&i: &usize| i == 0 || state.packets[i] != state.packets[i - 1];
        actions.extend((0..state.packets.len()).filter(differs).map(Action::Arrive));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Execute(queue) => state.execute(self, queue),
            Action::Arrive(at) => state.arrive(self, at),
            Action::End(worker) => state.end(self, worker),
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(RIGHT, |_, state: &State| state.wrong.is_none()),
            // No step leads in a circle, so this says that no order of events ends anywhere else.
            Property::eventually(ENDS, |queues, state: &State| state.wrong.is_some() || state.is_finished(queues)),
            Property::sometimes(REACHED, |queues: &Self, state: &State| {
                let scenario = &queues.scenario;
                (state.together || scenario.together.is_none()) && (state.waited || !scenario.waits)
            }),
        ]
    }
}

#[test]
fn two_queues_share_the_workers() {
    for scenario in SCENARIOS {
        let checker = Queues::new(scenario, None).checker().spawn_bfs().join();
        println!("{}: {} states", scenario.name, checker.unique_state_count());
        checker.assert_properties();
    }
}

/// Where each mistake shows, and as what.
const FOUND: [(Defect, Scenario, &str); 8] = [
    (Defect::RecordsBeforeEnd, TURNS, RIGHT),
    (Defect::RecordsWithoutBarrier, EVENTS, ENDS),
    (Defect::WaitsForOwnWord, TURNS, RIGHT),
    (Defect::ComparesPlainly, EVENTS, RIGHT),
    (Defect::LaunchesUnordered, BESIDE, RIGHT),
    (Defect::ReportsToFirstQueue, BESIDE, ENDS),
    (Defect::SharesStream, SUB_DEVICES, RIGHT),
    (Defect::DataBeforeWait, TURNS, RIGHT),
];

#[test]
fn every_defect_of_two_queues_is_found() {
    for (defect, scenario, property) in FOUND {
        let checker =
            Queues::new(scenario, Some(defect)).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let found = checker.discoveries();
        println!("{defect:?}: {:?} after {} states", found.keys(), checker.unique_state_count());
        assert!(found.contains_key(property), "{defect:?} does not show as a violation of \"{property}\"");
    }
}
