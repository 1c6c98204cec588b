//! Three threads give the same results as one: in a thousand schedules of shuttle, and on
//! real threads.

mod common;
#[path = "common/numbers.rs"]
mod numbers;

use numbers::{Number, Numbers};
use shuttle::sync::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tilework_buda::backend::drive::{self, Inputs, Outcome, Popping};
use tilework_buda::backend::{Backend, BackendError, BackendOptions, Call, Status};
use tilework_buda::epoch::Golden;
use tilework_buda::queue::shared::Guarded;
use tilework_buda::queue::{Monitor, StdMonitor};
use tilework_netlist::types::{Netlist, QueueId};

/// The monitor of shuttle's threads: it has no time, so that a wait ends by a change or not at all.
struct ShuttleMonitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T: Send> Monitor<T> for ShuttleMonitor<T> {
    fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    fn enter<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let result = act(&mut self.value.lock().unwrap());
        self.changed.notify_all();
        result
    }

    fn wait<R>(&self, _: Option<Duration>, mut try_act: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let mut value = self.value.lock().unwrap();
        loop {
            if let Some(result) = try_act(&mut value) {
                drop(value);
                self.changed.notify_all();
                return Some(result);
            }
            value = self.changed.wait(value).unwrap();
        }
    }
}

type Shuttled = Backend<Numbers, ShuttleMonitor<Guarded<Number>>>;
type Real = Backend<Numbers, StdMonitor<Guarded<Number>>>;

/// The case: an input of twenty entries for a ring of three, a constant, a relay of one entry
/// between two operations of a graph, a second graph behind a queue of two, an output of two.
fn case() -> (Arc<Netlist>, Vec<Call>) {
    let netlist = common::load("stages.yaml");
    let call = |n| Call { program: "run".into(), parameters: BTreeMap::from([("$n".to_string(), n)]) };
    (Arc::new(netlist), vec![call(3), call(2)])
}

fn inputs<A, M>(backend: &Backend<A, M>) -> Inputs<Number>
where
    A: tilework_buda::epoch::Arithmetic<Entry = Number>,
    M: Monitor<Guarded<Number>>,
{
    let entries = |name: &str, count: u64| {
        let queue = backend.queue(name).unwrap();
        (queue, (0..count).map(|i| Number(vec![1000 * queue.0 as u64 + i])).collect())
    };
    Inputs::from([entries("in", 20), entries("weights", 1), entries("constant", 1)])
}

/// Everything that all output queues were given, in order.
fn results<M: Monitor<Guarded<Number>>>(
    backend: &Backend<Numbers, M>,
    outcome: &Outcome<Number>,
) -> BTreeMap<QueueId, Vec<Number>> {
    let outputs = drive::outputs(backend.netlist());
    outputs.into_iter().map(|queue| (queue, drive::collected(backend, outcome, queue).unwrap())).collect()
}

fn ready<M: Monitor<Guarded<Number>>>(netlist: &Arc<Netlist>) -> Backend<Numbers, M> {
    let backend = Backend::with(netlist.clone(), Numbers, BackendOptions::default());
    backend.initialize().unwrap();
    backend
}

/// One thread.
fn expected() -> BTreeMap<QueueId, Vec<Number>> {
    let (netlist, calls) = case();
    let backend: Real = ready(&netlist);
    let outcome = drive::sequential(&backend, inputs(&backend), &calls, Popping::WhenFull).unwrap();
    let results = results(&backend, &outcome);
    // Two inputs for each of five turns; each entry is another one.
    let all: Vec<&Number> = results.values().flatten().collect();
    assert_eq!(all.len(), 10);
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 10);
    results
}

#[test]
fn a_thousand_orders_of_three_threads_give_what_one_thread_gives() {
    let (expected, (netlist, calls)) = (expected(), case());
    shuttle::check_random(
        move || {
            let backend: Arc<Shuttled> = Arc::new(ready(&netlist));
            let left = drive::begin_concurrent(&backend, inputs(&backend)).unwrap();
            let (push, pop) = (backend.clone(), backend.clone());
            let push = shuttle::thread::spawn(move || drive::push_all(&push, left, None).unwrap());
            let pop = shuttle::thread::spawn(move || drive::pop_all(&pop, None).unwrap());
            let records = drive::run_all(&backend, &calls).unwrap();
            let (unpushed, popped) = (push.join().unwrap(), pop.join().unwrap());
            // Ten are read, and three more fit.
            assert_eq!(unpushed.values().sum::<usize>(), 7);
            let outcome = Outcome { records, popped, unpushed };
            assert_eq!(results(&backend, &outcome), expected);
        },
        1000,
    );
}

/// The third input of a ring of three has no memory: that is the answer, not that somebody
/// waits for it.
#[test]
fn inputs_that_memory_cannot_hold_are_an_answer_of_each_mode() {
    let (netlist, calls) = case();
    let options = BackendOptions { most_bytes: 32, ..BackendOptions::default() };
    let backend = || -> Real {
        let backend = Backend::with(netlist.clone(), Numbers, options);
        backend.initialize().unwrap();
        backend
    };
    let one = backend();
    let alone = drive::sequential(&one, inputs(&one), &calls, Popping::WhenFull).unwrap_err().to_string();
    assert!(alone.contains("would hold more than 32 bytes"), "{alone}");
    for _ in 0..20 {
        let three = backend();
        let said = drive::concurrent(&three, inputs(&three), &calls, None).unwrap_err().to_string();
        assert!(said.contains("would hold more than 32 bytes"), "{said}");
    }
}

/// Nobody pushes enough: in every order all threads end, and the run thread says what it waits for.
#[test]
fn a_hundred_orders_of_a_stuck_run_end_with_its_reason() {
    let (netlist, calls) = case();
    shuttle::check_random(
        move || {
            let backend: Arc<Shuttled> = Arc::new(ready(&netlist));
            let mut few = inputs(&backend);
            few.get_mut(&backend.queue("in").unwrap()).unwrap().truncate(5);
            let left = drive::begin_concurrent(&backend, few).unwrap();
            let (push, pop) = (backend.clone(), backend.clone());
            let push = shuttle::thread::spawn(move || drive::push_all(&push, left, None).unwrap());
            let pop = shuttle::thread::spawn(move || drive::pop_all(&pop, None).unwrap());
            let error = drive::run_all(&backend, &calls).unwrap_err();
            push.join().unwrap();
            pop.join().unwrap();
            says_why(&error);
        },
        100,
    );
}

fn says_why(error: &BackendError) {
    assert_eq!(error.status(), Status::TimeoutError);
    let said = error.to_string();
    for part in [
        "run thread, epoch front, op head, input 2 of 2, waits for entry 5 of queue in (rd 4, wr 5, 3 entries)",
        "pop thread waits for entry",
        "the push thread has nothing left to do",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn real_threads_give_what_one_thread_gives() {
    let (expected, (netlist, calls)) = (expected(), case());
    for _ in 0..50 {
        let backend: Real = ready(&netlist);
        let outcome = drive::concurrent(&backend, inputs(&backend), &calls, None).unwrap();
        assert_eq!(results(&backend, &outcome), expected);
    }
}

#[test]
fn a_stuck_run_of_real_threads_is_found_without_a_clock() {
    let (netlist, calls) = case();
    let backend: Real = ready(&netlist);
    let mut few = inputs(&backend);
    few.get_mut(&backend.queue("in").unwrap()).unwrap().truncate(5);
    says_why(&drive::concurrent(&backend, few, &calls, None).unwrap_err());
}

/// A caller's own threads take no part, so that only the clock ends their waits.
#[test]
fn threads_of_the_caller_wait_by_the_clock() {
    let netlist = common::load("ring.yaml");
    let mut options = BackendOptions::default();
    options.engine.timeout = Some(Duration::from_millis(20));
    let backend: Backend = Backend::new(netlist, Golden::default(), options);
    backend.initialize().unwrap();
    let out = backend.queue("out").unwrap();
    let waits = std::thread::scope(|scope| {
        let pop = scope.spawn(|| backend.pop_output(out, Some(Duration::from_secs(20))));
        common::push(&backend, "in", &[1.0]);
        common::run(&backend, "once", &[]).unwrap();
        pop.join().unwrap()
    });
    assert_eq!(common::numbers(&waits.unwrap()), [1.0]);
}

/// The loader's clock knows nothing of threads.
#[test]
fn the_loader_counts_the_same_in_both_modes() {
    let (netlist, calls) = case();
    let (one, three): (Real, Real) = (ready(&netlist), ready(&netlist));
    drive::sequential(&one, inputs(&one), &calls, Popping::WhenFull).unwrap();
    drive::concurrent(&three, inputs(&three), &calls, None).unwrap();
    assert_eq!(one.loader(|loader| loader.stats()), three.loader(|loader| loader.stats()));
    assert_eq!(one.loader(|loader| loader.events().to_vec()), three.loader(|loader| loader.events().to_vec()));
}

/// No machine gives so large a stack.
#[test]
fn a_thread_that_cannot_be_had_ends_the_session() {
    let (netlist, calls) = case();
    let backend: Real = ready(&netlist);
    let refused = drive::concurrent_with_stack(&backend, inputs(&backend), &calls, None, usize::MAX / 2).unwrap_err();
    assert!(matches!(refused, BackendError::Thread(_)), "{refused}");
    assert!(refused.to_string().starts_with("a thread of the session cannot be started: "), "{refused}");
}
