//! A whole session: inputs in, programs run, outputs out, by one thread or by three (seed 003,
//! sequential and concurrent mode).
//!
//! In both, inputs go into a queue in their order, and outputs come out in theirs; which queue is
//! served first does not matter to results, since operations wait for each operand. Rams are filled
//! before anything runs.

use super::calls::{Backend, Call, RunRecord, describe};
use super::error::BackendError;
use crate::epoch::{Arithmetic, EpochError};
use crate::queue::error::QueueProblem;
use crate::queue::shared::{Guarded, Role};
use crate::queue::{Monitor, QueueError, Queues, WaitKind, WaitOutcome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tilework_netlist::types::{InstructionKind, Netlist, Producer, QueueId, QueueKind, Source};

/// Entries for queues that the host fills.
pub type Inputs<E> = BTreeMap<QueueId, VecDeque<E>>;

/// Entries that were popped, in order.
pub type Popped<E> = BTreeMap<QueueId, Vec<E>>;

/// What a session has done.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<E> {
    /// Each call of a program.
    pub records: Vec<RunRecord>,
    /// What was popped, in order. One thread pops only when [`Popping`] lets it.
    pub popped: Popped<E>,
    /// Inputs for which no space was made.
    pub unpushed: BTreeMap<QueueId, usize>,
}

impl<E> Default for Outcome<E> {
    fn default() -> Self {
        Self { records: Vec::new(), popped: BTreeMap::new(), unpushed: BTreeMap::new() }
    }
}

/// Queues that only the host reads: the outputs of a netlist. Dynamic queues are none; their
/// contents go with them.
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

/// All entries that a queue has been given, as far as they are known at the end: those that were
/// popped and those that are still there, or else what is in its memory.
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

/// What a single thread does about outputs that are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Popping {
    /// Nothing: the program cannot go on.
    #[default]
    Never,
    /// Pops them when the program cannot go on otherwise.
    WhenFull,
}

/// Everything by the calling thread: it pushes what there is space for, runs, and pushes (and pops)
/// in between only when a program cannot go on otherwise.
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
            // Outputs stay where they are as long as they can.
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

/// Three threads.
pub fn concurrent<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    inputs: Inputs<A::Entry>,
    calls: &[Call],
    timeout: Option<Duration>,
) -> Result<Outcome<A::Entry>, BackendError> {
    let left = begin_concurrent(backend, inputs)?;
    let (unpushed, records, popped) = std::thread::scope(|scope| {
        let push = scope.spawn(|| push_all(backend, left, timeout));
        let pop = scope.spawn(|| pop_all(backend, timeout));
        let records = run_all(backend, calls);
        (join(push), records, join(pop))
    });
    // The run thread knows best what went wrong, unless it only ended because another one failed.
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

/// Fills rams and lets the three roles begin; gives what the push thread is to push.
pub fn begin_concurrent<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    inputs: Inputs<A::Entry>,
) -> Result<Inputs<A::Entry>, BackendError> {
    let left = prepare(backend, inputs)?;
    backend.shared().begin(&[Role::Push, Role::Run, Role::Pop]);
    Ok(left)
}

/// The push thread: pushes into whichever queue has space. Gives what nobody made space for.
pub fn push_all<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    mut left: Inputs<A::Entry>,
    timeout: Option<Duration>,
) -> Result<BTreeMap<QueueId, usize>, BackendError> {
    let mut part = Part::new(backend, Role::Push);
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
            // Nobody will make space: the programs are done, or stuck and about to say
            // so themselves.
            WaitOutcome::Stuck(_) | WaitOutcome::GivenUp => break Ok(()),
            WaitOutcome::TimedOut(wait) => break Err(BackendError::TimedOut(wait)),
        }
    };
    part.failed = result.is_err();
    result.map(|()| unpushed(left))
}

/// The run thread.
pub fn run_all<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    calls: &[Call],
) -> Result<Vec<RunRecord>, BackendError> {
    let mut part = Part::new(backend, Role::Run);
    let records: Result<_, _> = calls.iter().map(|call| backend.run_program(call)).collect();
    part.failed = records.is_err();
    records
}

/// The pop thread: pops outputs as they come, until the programs are done.
pub fn pop_all<A: Arithmetic, M: Monitor<Guarded<A::Entry>>>(
    backend: &Backend<A, M>,
    timeout: Option<Duration>,
) -> Result<Popped<A::Entry>, BackendError> {
    let mut part = Part::new(backend, Role::Pop);
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

/// A thread's part in a session. It ends with this value, also when the thread panics; if it has
/// failed, the others end, too.
struct Part<'b, A: Arithmetic, M: Monitor<Guarded<A::Entry>>> {
    backend: &'b Backend<A, M>,
    role: Role,
    failed: bool,
}

impl<'b, A: Arithmetic, M: Monitor<Guarded<A::Entry>>> Part<'b, A, M> {
    fn new(backend: &'b Backend<A, M>, role: Role) -> Self {
        // Until it is known better.
        Self { backend, role, failed: true }
    }
}

impl<A: Arithmetic, M: Monitor<Guarded<A::Entry>>> Drop for Part<'_, A, M> {
    fn drop(&mut self) {
        if self.failed {
            self.backend.shared().give_up();
        }
        self.backend.shared().leave(self.role);
    }
}

/// Checks and rounds inputs, and fills rams with them.
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

/// Pushes what there is space for; whether it was anything. A dynamic queue that does not
/// live has none.
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

/// Pops all that is there; whether it was anything.
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

/// Pops outputs that are full.
fn pop_full<E: crate::queue::Entry>(queues: &mut Queues<E>, outputs: &[QueueId], popped: &mut Popped<E>) -> bool {
    let full: Vec<QueueId> = outputs.iter().copied().filter(|queue| !queues.has_space(*queue)).collect();
    pop_some(queues, &full, popped)
}

fn unpushed<E>(left: Inputs<E>) -> BTreeMap<QueueId, usize> {
    left.into_iter().map(|(queue, entries)| (queue, entries.len())).filter(|(_, left)| *left > 0).collect()
}

/// What the host gets of what it has popped.
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
