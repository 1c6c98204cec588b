//! Worker threads that run the nodes of a window side by side.
//!
//! Within a window no node can affect another, so any thread may run any node. The busy nodes are
//! dealt out in portions, each with an outbox of its own; whoever is free takes the next portion,
//! the scheduler's own thread too. It then collects the nodes and their departures, which the
//! outbox puts in the same order whoever ran first. So neither bytes nor cycles depend on the
//! number of threads, and a thread that the machine keeps from running costs no more than the
//! portion that it holds.
//!
//! Nodes travel between threads as values. The place of a node that is away is taken by
//! [`Worked::away`].

use crate::noc::Outbox;
use crate::{Cycle, Fault, Node};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::vec::Drain;

/// Portions for each thread: more than one, because some nodes have more work than others.
const PORTIONS: usize = 4;
/// Portions at most: a chip has some 150 nodes.
const MOST_PORTIONS: usize = 64;
/// Stack of a worker, whatever the environment says.
const STACK_BYTES: usize = 2 << 20;
/// A worker is woken for so many busy nodes.
const WAKE_FOR: usize = 4;
/// How often an idle worker looks for work without giving up its processor: about a microsecond.
const SPINS: u32 = 300;
/// How long an idle worker looks for work before it sleeps. Waking it costs several microseconds.
const PATIENCE: Duration = Duration::from_micros(200);
/// How often the scheduler's thread looks whether the last portion has come back before it gives
/// its processor to others each time.
const WAITS: u32 = 3000;

/// A node that can be handed to another thread.
pub(crate) trait Worked: Node + 'static {
    /// What stands in its place meanwhile.
    fn away() -> Self;
}

/// How far a node runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The end of its part of the window.
    pub(crate) end: Cycle,
    /// The end of speculation.
    pub(crate) limit: Cycle,
}

/// A node with its number, and what came of its run.
struct Task<N> {
    number: usize,
    node: N,
    span: Span,
    outcome: Result<(), Fault>,
}

/// The number of a node that has run, and its fault.
pub(crate) type Finished = (usize, Result<(), Fault>);

/// The nodes that one thread runs in a row, and what left them.
struct Portion<N> {
    tasks: Vec<Task<N>>,
    out: Outbox,
    /// The time that it took.
    spent: Duration,
}

impl<N: Worked> Portion<N> {
    fn run(&mut self) {
        let started = Instant::now();
        for Task { node, span, outcome, .. } in &mut self.tasks {
            self.out.begin();
            *outcome = node.run(span.end, &mut self.out);
            if outcome.is_ok() {
                node.speculate(self.out.horizon(span.end), span.limit);
            }
        }
        self.spent = started.elapsed();
    }
}

/// What the threads share.
struct Desk<N> {
    portions: Box<[Mutex<Portion<N>>]>,
    /// Whether the portion waits for somebody to take it.
    open: Box<[AtomicBool]>,
    /// How many wait, at least.
    waiting: AtomicUsize,
    /// How many have not been finished.
    unfinished: AtomicUsize,
    /// Which workers sleep.
    asleep: Box<[AtomicBool]>,
    closed: AtomicBool,
}

/// Counts a portion as finished, even if running it panics.
struct Finish<'a>(&'a AtomicUsize);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl<N: Worked> Desk<N> {
    /// An empty desk for so many threads and nodes.
    fn new(threads: usize, nodes: usize) -> Arc<Self> {
        let count = (threads * PORTIONS).min(MOST_PORTIONS);
        let tasks = || Vec::with_capacity(nodes.div_ceil(count));
        let portion = || Portion { tasks: tasks(), out: Outbox::default(), spent: Duration::ZERO };
        Arc::new(Self {
            portions: (0..count).map(|_| Mutex::new(portion())).collect(),
            open: (0..count).map(|_| AtomicBool::new(false)).collect(),
            waiting: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            asleep: (1..threads).map(|_| AtomicBool::new(false)).collect(),
            closed: AtomicBool::new(false),
        })
    }

    fn portion(&self, number: usize) -> MutexGuard<'_, Portion<N>> {
        self.portions[number].lock().expect("no thread panics while it runs a portion")
    }

    /// Takes and runs portions until none waits, beginning with number `first`: so a node mostly
    /// stays with the thread whose caches hold it.
    fn work(&self, first: usize) {
        let count = self.portions.len();
        for number in (first..count).chain(0..first) {
            if self.waiting.load(Ordering::Acquire) == 0 {
                return;
            }
            if self.open[number].swap(false, Ordering::Acquire) {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                let _finish = Finish(&self.unfinished);
                self.portion(number).run();
            }
        }
    }

    /// The life of worker `number`: works, waits for work, sleeps.
    fn attend(&self, number: usize, first: usize) {
        let mut idle = Instant::now();
        let mut spins = 0;
        while !self.closed.load(Ordering::Acquire) {
            if self.waiting.load(Ordering::Acquire) > 0 {
                self.work(first);
                (idle, spins) = (Instant::now(), 0);
            } else if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else if idle.elapsed() < PATIENCE {
                thread::yield_now();
            } else {
                self.sleep(number);
                (idle, spins) = (Instant::now(), 0);
            }
        }
    }

    /// Sleeps until [`Crew::wake`]. Either this thread sees what was put out meanwhile, or the
    /// other one sees that this one sleeps.
    fn sleep(&self, number: usize) {
        self.asleep[number].store(true, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 0 && !self.closed.load(Ordering::SeqCst) {
            thread::park();
        }
        self.asleep[number].store(false, Ordering::SeqCst);
    }
}

/// The threads and their portions.
pub(crate) struct Crew<N> {
    desk: Arc<Desk<N>>,
    workers: Vec<JoinHandle<()>>,
    /// Threads with the caller's own.
    threads: usize,
    /// Of the chip.
    nodes: usize,
    /// The process that has the workers; zero before they start.
    process: u32,
    /// The portions of a window that have nodes.
    dealt: Vec<usize>,
    /// What became of the nodes of the last window.
    finished: Vec<Finished>,
}

impl<N: Worked> Crew<N> {
    /// A crew of `threads`, the caller's included, for so many nodes.
    pub(crate) fn new(threads: usize, nodes: usize) -> Self {
        let threads = threads.min(nodes.div_ceil(WAKE_FOR)).max(1);
        Self {
            desk: Desk::new(threads, nodes),
            workers: Vec::new(),
            threads,
            nodes,
            process: 0,
            dealt: Vec::with_capacity(MOST_PORTIONS),
            finished: Vec::with_capacity(nodes),
        }
    }

    /// A crew of as many, which has not started.
    pub(crate) fn twin(&self) -> Self {
        Self::new(self.threads, self.nodes)
    }

    /// Whether the workers were started.
    pub(crate) fn has_started(&self) -> bool {
        self.process != 0
    }

    /// Starts the workers. The machine may refuse some: the others do their work.
    pub(crate) fn start(&mut self) {
        // The workers of a process that has forked are not in the new one.
        self.workers.drain(..).for_each(std::mem::forget);
        self.desk = Desk::new(self.threads, self.nodes);
        self.process = std::process::id();
        for number in 0..self.threads - 1 {
            let desk = self.desk.clone();
            let name = format!("tilework-{number}");
            let first = (number + 1) * PORTIONS % desk.portions.len();
            let worker =
                thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || desk.attend(number, first));
            match worker {
                Ok(worker) => self.workers.push(worker),
                Err(_) => break,
            }
        }
    }

    /// Runs nodes to the end of a window; `out` gets what left them. Returns the time that it took,
    /// of all threads together, and what came of each node.
    pub(crate) fn run(
        &mut self,
        nodes: &mut [N],
        spans: impl Iterator<Item = (usize, Span)>,
        out: &mut Outbox,
    ) -> (Duration, Drain<'_, Finished>) {
        if self.process != std::process::id() {
            self.start();
        }
        let busy = self.put_out(nodes, spans);
        self.wake(busy / WAKE_FOR);
        self.desk.work(0);
        let mut waits = 0;
        while self.desk.unfinished.load(Ordering::Acquire) > 0 {
            if waits < WAITS {
                waits += 1;
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        let mut spent = Duration::ZERO;
        for number in self.dealt.drain(..) {
            let portion = &mut *self.desk.portion(number);
            spent += portion.spent;
            out.append(&mut portion.out);
            for Task { number, node, outcome, .. } in portion.tasks.drain(..) {
                nodes[number] = node;
                self.finished.push((number, outcome));
            }
        }
        (spent, self.finished.drain(..))
    }

    /// Deals out the nodes; returns how many there are.
    fn put_out(&mut self, nodes: &mut [N], spans: impl Iterator<Item = (usize, Span)>) -> usize {
        let mut busy = 0;
        for (number, span) in spans {
            let node = std::mem::replace(&mut nodes[number], N::away());
            let place = number % self.desk.portions.len();
            let tasks = &mut self.desk.portion(place).tasks;
            if tasks.is_empty() {
                self.dealt.push(place);
            }
            tasks.push(Task { number, node, span, outcome: Ok(()) });
            busy += 1;
        }
        // In this order: who takes a portion counts it as taken.
        self.desk.unfinished.store(self.dealt.len(), Ordering::Relaxed);
        self.desk.waiting.store(self.dealt.len(), Ordering::SeqCst);
        self.dealt.iter().for_each(|&place| self.desk.open[place].store(true, Ordering::Release));
        busy
    }

    /// Wakes those of the first workers that sleep.
    fn wake(&self, workers: usize) {
        for (asleep, worker) in self.desk.asleep.iter().zip(&self.workers).take(workers) {
            if asleep.load(Ordering::SeqCst) {
                worker.thread().unpark();
            }
        }
    }
}

impl<N> Drop for Crew<N> {
    fn drop(&mut self) {
        self.desk.closed.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            if self.process != std::process::id() {
                std::mem::forget(worker);
                continue;
            }
            worker.thread().unpark();
            // A worker that panicked has told so, and the chip is gone.
            let _ = worker.join();
        }
    }
}
