//! Nodes: operations of a running epoch with their operands, outputs and progress.

use crate::program::ResolvedSettings;
use crate::queue::{Entry, QueueError, Queues};
use std::collections::VecDeque;
use tilework_netlist::types::{OpId, QueueId, QueueKind};

/// An operation of an epoch.
#[derive(Debug)]
pub(super) struct Node<E> {
    /// The operation.
    pub op: OpId,
    /// Inputs of the epoch.
    pub count: u32,
    /// Inputs done.
    pub done: u32,
    /// What it reads, in order.
    pub operands: Vec<Feed<E>>,
    /// Queues that it writes.
    pub outputs: Vec<QueueWriter<E>>,
    /// Whether it adds to its output ram (`gradient_op`).
    pub gradient: bool,
    /// Results that not all consumers have taken, from input `first` on.
    pub results: VecDeque<E>,
    /// See `results`.
    pub first: u32,
    /// Nodes that consume the results.
    pub consumers: Vec<usize>,
}

/// Where an operand comes from.
#[derive(Debug)]
pub(super) enum Feed<E> {
    /// The node with this index.
    Node(usize),
    /// A queue or ram.
    Queue(QueueReader<E>),
}

/// An operand read from a queue or ram.
#[derive(Debug)]
pub(super) struct QueueReader<E> {
    /// The queue.
    pub queue: QueueId,
    /// Queue or ram.
    pub kind: QueueKind,
    /// Local pointer of a queue, entry of a ram, for input 0.
    pub base: u32,
    /// By how much the pointer moves with each input.
    pub stride: i64,
    /// Prologue or epilogue: every input reads the first entry.
    pub holds: bool,
    /// With `holds`, the entry once it has been read.
    pub held: Option<Taken<E>>,
}

/// Result of a read.
#[derive(Debug, Clone)]
pub(super) enum Taken<E> {
    /// An entry.
    Entry(E),
    /// An entry of a ram that was never written.
    Unwritten(QueueId, u32),
}

/// A queue or ram that an operation writes.
#[derive(Debug)]
pub(super) struct QueueWriter<E> {
    /// The queue.
    pub queue: QueueId,
    /// Queue or ram.
    pub kind: QueueKind,
    /// Whether it is written once, after the last input.
    pub epilogue: bool,
    /// By how much the write pointer of a ram moves with each write.
    pub stride: i64,
    /// Whether the next gradient starts from zero.
    pub zero: bool,
    /// With `epilogue`, the latest result.
    pub last: Option<E>,
}

impl<E> QueueReader<E> {
    /// A reader with these settings; `base` for input 0.
    pub fn new(settings: &ResolvedSettings, kind: QueueKind, base: u32) -> Self {
        let holds = settings.prologue || settings.epilogue;
        let stride = match kind {
            QueueKind::Queue => settings.rd_ptr_autoinc,
            QueueKind::Ram => settings.global_rdptr_autoinc,
        };
        Self { queue: settings.queue, kind, base, stride: if holds { 0 } else { stride }, holds, held: None }
    }
}

impl<E: Entry> QueueReader<E> {
    /// Position of input `input`: a pointer of a queue, an entry of a ram.
    pub fn place(&self, queues: &Queues<E>, input: u32) -> u32 {
        let pointers = queues.pointers(self.queue);
        let by = i128::from(self.stride) * i128::from(input);
        let span = match self.kind {
            QueueKind::Queue => pointers.span(),
            QueueKind::Ram => pointers.entries(),
        };
        let place = (i128::from(self.base) + by).rem_euclid(i128::from(span));
        u32::try_from(place).expect("a remainder of a u32")
    }

    /// Reads input `input`; `None` if it is not available yet.
    pub fn take(&mut self, queues: &Queues<E>, input: u32) -> Result<Option<Taken<E>>, QueueError> {
        if let Some(held) = &self.held {
            return Ok(Some(held.clone()));
        }
        let place = self.place(queues, input);
        let taken = match self.kind {
            QueueKind::Queue => queues.peek(self.queue, place)?.map(Taken::Entry),
            QueueKind::Ram => Some(match queues.ram_read(self.queue, place)? {
                Some(entry) => Taken::Entry(entry),
                None => Taken::Unwritten(self.queue, place),
            }),
        };
        if self.holds {
            self.held.clone_from(&taken);
        }
        Ok(taken)
    }
}

impl<E> Node<E> {
    /// Whether all inputs are done.
    pub fn is_done(&self) -> bool {
        self.done == self.count
    }

    /// The result for an input, if it has been computed. Consumers never ask for one that all of
    /// them have taken.
    pub fn result(&self, input: u32) -> Option<&E> {
        let at = input.checked_sub(self.first)?;
        self.results.get(at as usize).filter(|_| input < self.done)
    }
}
