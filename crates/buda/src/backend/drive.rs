//! Sessions: push inputs, run programs, pop outputs, with one thread or three (tt-budabackend,
//! `docs/public/overview.md`, sequential and concurrent mode).
//!
//! In both modes each queue receives its inputs and returns its outputs in order. The order between
//! queues does not affect results, since operations wait for each operand. Rams are filled before
//! anything runs.

use super::calls::{Backend, Call, RunRecord, describe};
use super::error::BackendError;
use crate::epoch::{Arithmetic, EpochError};
use crate::queue::error::QueueProblem;
use crate::queue::shared::{Guarded, Role};
use crate::queue::{Monitor, QueueError, Queues, WaitKind, WaitOutcome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tilework_netlist::types::{InstructionKind, Netlist, Producer, QueueId, QueueKind, Source};

/// Entries to push, by queue.
pub type Inputs<E> = BTreeMap<QueueId, VecDeque<E>>;

/// Entries that were popped, in order.
pub type Popped<E> = BTreeMap<QueueId, Vec<E>>;

/// Result of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<E> {
    /// One record for each call of a program.
    pub records: Vec<RunRecord>,
    /// Popped entries, in order. A single thread pops only as [`Popping`] allows.
    pub popped: Popped<E>,
    /// Number of inputs for which there was no space.
    pub unpushed: BTreeMap<QueueId, usize>,
}

impl<E> Default for Outcome<E> {
    fn default() -> Self {
        Self { records: Vec::new(), popped: BTreeMap::new(), unpushed: BTreeMap::new() }
    }
}

/// The outputs of a netlist: queues that only the host reads. Dynamic queues do not count; their
/// contents are lost when they are deallocated.
pub fn outputs(netlist: &Netlist) -> Vec<QueueId> {
    let sources =
        netlist.graphs.iter().flat_map(|graph| &graph.ops).flat_map(|op| &op.inputs).map(|input| input.source);
    let mut inner: BTreeSet<QueueId> = sources
        .filter_map(|source| match source {
            Source::Queue(queue) => Some(queue),
            Source::Op(_) => None,
        })
        .collect();
    for instruction in netlist.programs.iter().flat_map(|program| &program.instructions) {
        if let InstructionKind::AllocateQueue(queues) = &instruction.kind {
            inner.extend(queues);
        }
    }
    let is_output = |(i, queue): (usize, &tilework_netlist::types::Queue)| {
        let fed = matches!(queue.producer, Producer::Op(_)) && queue.kind == QueueKind::Queue;
        (fed && !inner.contains(&QueueId(i))).then_some(QueueId(i))
    };
    netlist.queues.iter().enumerate().filter_map(is_output).collect()
}

/// All entries that were written to a queue, as far as they are known at the end: popped ones and
/// remaining ones, or else the contents of its memory.
pub fn collected<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    outcome: &Outcome<A::Entry>,
    queue: QueueId,
) -> Result<Vec<A::Entry>, BackendError> {
    let Some(popped) = outcome.popped.get(&queue) else { return backend.memory(queue) };
    let rest = backend.shared().with(|queues| {
        let pointers = queues.pointers(queue);
        let left = (0..pointers.occupancy()).map(|i| pointers.advance(pointers.rd(), i.into()));
        left.map(|pointer| queues.peek(queue, pointer)).collect::<Result<Vec<_>, _>>()
    })?;
    let rest = rest.iter().flatten().map(|entry| backend.arithmetic().got(backend.netlist(), queue, entry));
    let rest = rest.collect::<Result<Vec<_>, _>>()?;
    Ok(popped.iter().cloned().chain(rest).collect())
}

/// What a single thread does if outputs are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Popping {
    /// Nothing: the program fails.
    #[default]
    Never,
    /// Pops them if the program cannot continue otherwise.
    WhenFull,
}

/// Runs a session on the calling thread: pushes as much as there is space for, runs the programs,
/// and pushes (and pops) in between only if a program cannot continue otherwise.
pub fn sequential<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    inputs: Inputs<A::Entry>,
    calls: &[Call],
    popping: Popping,
) -> Result<Outcome<A::Entry>, BackendError> {
    backend.shared().begin(&[Role::Run]);
    let mut left = prepare(backend, inputs)?;
    let outputs = outputs(backend.netlist());
    let mut outcome = Outcome::default();
    let mut popped: Popped<A::Entry> = BTreeMap::new();
    backend.shared().with(|queues| push_some(queues, &mut left))?;
    for call in calls {
        let mut failed = None;
        let mut host = |queues: &mut Queues<A::Entry>| match push_some(queues, &mut left) {
            // Pop outputs only if nothing could be pushed.
            Ok(pushed) => pushed || (popping == Popping::WhenFull && pop_full(queues, &outputs, &mut popped)),
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        let record = backend.run_with(call, Some(&mut host));
        if let Some(error) = failed {
            return Err(error.into());
        }
        outcome.records.push(record?);
        backend.shared().with(|queues| push_some(queues, &mut left))?;
    }
    outcome.popped = got(backend, popped)?;
    outcome.unpushed = unpushed(left);
    Ok(outcome)
}

/// Stack of each thread, whatever the environment says.
const STACK_BYTES: usize = 2 << 20;

/// Runs a session with three threads.
pub fn concurrent<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    inputs: Inputs<A::Entry>,
    calls: &[Call],
    timeout: Option<Duration>,
) -> Result<Outcome<A::Entry>, BackendError> {
    concurrent_with_stack(backend, inputs, calls, timeout, STACK_BYTES)
}

/// As [`concurrent`], with so many bytes of stack for each thread.
pub fn concurrent_with_stack<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    inputs: Inputs<A::Entry>,
    calls: &[Call],
    timeout: Option<Duration>,
    stack: usize,
) -> Result<Outcome<A::Entry>, BackendError> {
    let left = begin_concurrent(backend, inputs)?;
    let thread = || std::thread::Builder::new().stack_size(stack);
    let refused = |error: std::io::Error| {
        backend.shared().give_up();
        BackendError::Thread(error.to_string())
    };
    let (unpushed, records, popped) = std::thread::scope(|scope| {
        let push = thread().spawn_scoped(scope, || push_all(backend, left, timeout)).map_err(refused);
        let pop = thread().spawn_scoped(scope, || pop_all(backend, timeout)).map_err(refused);
        let records = if push.is_ok() && pop.is_ok() { run_all(backend, calls) } else { Err(BackendError::GivenUp) };
        (push.and_then(join), records, pop.and_then(join))
    });
    // Prefer the run thread's error, unless it ended only because another thread failed.
    let records = match records {
        Err(error @ (BackendError::GivenUp | BackendError::Epoch(EpochError::GivenUp))) => {
            return Err(unpushed.err().or(popped.err()).unwrap_or(error));
        }
        records => records?,
    };
    Ok(Outcome { records, popped: popped?, unpushed: unpushed? })
}

fn join<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Fills rams and starts the three roles; returns the inputs for the push thread.
pub fn begin_concurrent<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    inputs: Inputs<A::Entry>,
) -> Result<Inputs<A::Entry>, BackendError> {
    let left = prepare(backend, inputs)?;
    backend.shared().begin(&[Role::Push, Role::Run, Role::Pop]);
    Ok(left)
}

/// The push thread: pushes into any queue with space. Returns the inputs for which there was none.
pub fn push_all<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    mut left: Inputs<A::Entry>,
    timeout: Option<Duration>,
) -> Result<BTreeMap<QueueId, usize>, BackendError> {
    let mut part = RoleGuard::new(backend, Role::Push);
    left.retain(|_, entries| !entries.is_empty());
    let result = loop {
        let Some(first) = left.keys().next().copied() else { break Ok(()) };
        let outcome = backend.shared().wait(Role::Push, timeout, |queues| match push_some(queues, &mut left) {
            Ok(false) => Err(describe(Role::Push, queues, first, WaitKind::Space, None)),
            Ok(true) => Ok(Ok(())),
            Err(error) => Ok(Err(error)),
        });
        match outcome {
            WaitOutcome::Done(Err(error)) => break Err(error.into()),
            WaitOutcome::Done(Ok(())) => left.retain(|_, entries| !entries.is_empty()),
            // There will be no more space: the programs are done, or deadlocked and report
            // that themselves.
            WaitOutcome::Stuck(_) | WaitOutcome::GivenUp => break Ok(()),
            WaitOutcome::TimedOut(wait) => break Err(BackendError::TimedOut(wait)),
        }
    };
    part.failed = result.is_err();
    result.map(|()| unpushed(left))
}

/// The run thread: runs the programs.
pub fn run_all<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    calls: &[Call],
) -> Result<Vec<RunRecord>, BackendError> {
    let mut part = RoleGuard::new(backend, Role::Run);
    let records: Result<_, _> = calls.iter().map(|call| backend.run_program(call)).collect();
    part.failed = records.is_err();
    records
}

/// The pop thread: pops outputs until the programs are done.
pub fn pop_all<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    timeout: Option<Duration>,
) -> Result<Popped<A::Entry>, BackendError> {
    let mut part = RoleGuard::new(backend, Role::Pop);
    let outputs = outputs(backend.netlist());
    let mut popped: Popped<A::Entry> = BTreeMap::new();
    let result = loop {
        let Some(&first) = outputs.first() else { break Ok(()) };
        let outcome = backend.shared().wait(Role::Pop, timeout, |queues| {
            if pop_some(queues, &outputs, &mut popped) {
                return Ok(());
            }
            let pointer = queues.pointers(first).rd();
            Err(describe(Role::Pop, queues, first, WaitKind::Entry { pointer }, None))
        });
        match outcome {
            WaitOutcome::Done(()) => {}
            WaitOutcome::Stuck(_) | WaitOutcome::GivenUp => break Ok(()),
            WaitOutcome::TimedOut(wait) => break Err(BackendError::TimedOut(wait)),
        }
    };
    part.failed = result.is_err();
    drop(part);
    result?;
    got(backend, popped)
}

/// Guard of a thread's role. Dropping it ends the role, also after a panic; if the thread failed,
/// the others end as well.
struct RoleGuard<'b, A: Arithmetic, M: Monitor<Guarded<A::Entry>>> {
    backend: &'b Backend<A, M>,
    role: Role,
    failed: bool,
}

impl<'b, A: Arithmetic, M: Monitor<Guarded<A::Entry>>> RoleGuard<'b, A, M> {
    fn new(backend: &'b Backend<A, M>, role: Role) -> Self {
        // Cleared on success.
        Self { backend, role, failed: true }
    }
}

impl<A: Arithmetic, M: Monitor<Guarded<A::Entry>>> Drop for RoleGuard<'_, A, M> {
    fn drop(&mut self) {
        if self.failed {
            self.backend.shared().give_up();
        }
        self.backend.shared().leave(self.role);
    }
}

/// Checks and rounds the inputs, and writes those for rams.
fn prepare<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    inputs: Inputs<A::Entry>,
) -> Result<Inputs<A::Entry>, BackendError> {
    let netlist = backend.netlist();
    let mut left = Inputs::new();
    for (queue, entries) in inputs {
        backend.shared().with(|queues| queues.expect_host(queue))?;
        if netlist.queue(queue).kind == QueueKind::Ram {
            for (at, entry) in (0..).zip(entries) {
                backend.push_input(queue, &entry, None, Some(at))?;
            }
            continue;
        }
        let pushed = entries.iter().map(|entry| backend.arithmetic().pushed(netlist, queue, entry));
        left.insert(queue, pushed.collect::<Result<_, _>>()?);
    }
    Ok(left)
}

/// Pushes as much as there is space for; returns whether it pushed anything. A dynamic queue that
/// is not allocated has no space.
fn push_some<E: crate::queue::Entry>(queues: &mut Queues<E>, left: &mut Inputs<E>) -> Result<bool, QueueError> {
    let mut any = false;
    for (queue, entries) in left {
        while let Some(entry) = entries.front() {
            if !queues.has_space(*queue) {
                break;
            }
            match queues.push(*queue, entry.clone()) {
                Err(QueueError { problem: QueueProblem::NotAllocated, .. }) => break,
                pushed => pushed?,
            }
            entries.pop_front();
            any = true;
        }
    }
    Ok(any)
}

/// Pops all available entries; returns whether there were any.
fn pop_some<E: crate::queue::Entry>(queues: &mut Queues<E>, outputs: &[QueueId], popped: &mut Popped<E>) -> bool {
    let mut any = false;
    for &queue in outputs {
        while let Ok(Some(entry)) = queues.peek(queue, queues.pointers(queue).rd()) {
            if queues.pop(queue, 1).is_err() {
                break;
            }
            popped.entry(queue).or_default().push(entry);
            any = true;
        }
    }
    any
}

/// Pops from outputs that are full.
fn pop_full<E: crate::queue::Entry>(queues: &mut Queues<E>, outputs: &[QueueId], popped: &mut Popped<E>) -> bool {
    let full: Vec<QueueId> = outputs.iter().copied().filter(|queue| !queues.has_space(*queue)).collect();
    pop_some(queues, &full, popped)
}

fn unpushed<E>(left: Inputs<E>) -> BTreeMap<QueueId, usize> {
    left.into_iter().map(|(queue, entries)| (queue, entries.len())).filter(|(_, left)| *left > 0).collect()
}

/// Converts popped entries to what the host reads.
fn got<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    popped: Popped<A::Entry>,
) -> Result<Popped<A::Entry>, BackendError> {
    let of = |(queue, entries): (QueueId, Vec<A::Entry>)| {
        let got = entries.iter().map(|entry| backend.arithmetic().got(backend.netlist(), queue, entry));
        Ok((queue, got.collect::<Result<_, _>>()?))
    };
    popped.into_iter().map(of).collect()
}
