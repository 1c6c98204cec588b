//! An operation in a running epoch: what it reads, what it writes, how far it is.

use crate::program::ResolvedSettings;
use crate::queue::{Entry, QueueError, Queues};
use std::collections::VecDeque;
use tilework_netlist::types::{OpId, QueueId, QueueKind};

/// An operation of an epoch.
#[derive(Debug)]
pub(super) struct Node<E> {
    /// Which.
    pub op: OpId,
    /// Inputs of the epoch.
    pub count: u32,
    /// Inputs done.
    pub done: u32,
    /// What it reads, in order.
    pub operands: Vec<Feed<E>>,
    /// Queues that it writes.
    pub outputs: Vec<Drain<E>>,
    /// It adds to what its ram holds.
    pub gradient: bool,
    /// Results that a consumer has yet to take; the first is that of input `first`.
    pub results: VecDeque<E>,
    /// See `results`.
    pub first: u32,
    /// Nodes that read the results.
    pub consumers: Vec<usize>,
}

/// Where an operand comes from.
#[derive(Debug)]
pub(super) enum Feed<E> {
    /// The node of that index.
    Node(usize),
    /// A queue or ram.
    Queue(Reader<E>),
}

/// A place of reading in a queue or ram.
#[derive(Debug)]
pub(super) struct Reader<E> {
    /// The queue.
    pub queue: QueueId,
    /// Which of the two it is.
    pub kind: QueueKind,
    /// Local pointer of a queue, entry of a ram, for input 0.
    pub base: u32,
    /// By how much it moves with each input.
    pub stride: i64,
    /// Prologue or epilogue: every input sees the first entry, kept here once it is there.
    pub holds: bool,
    /// See `holds`.
    pub held: Option<Taken<E>>,
}

/// What a reader got.
#[derive(Debug, Clone)]
pub(super) enum Taken<E> {
    /// An entry.
    Entry(E),
    /// Memory of a ram that nobody has written.
    Unwritten(QueueId, u32),
}

/// A queue or ram that an operation writes.
#[derive(Debug)]
pub(super) struct Drain<E> {
    /// The queue.
    pub queue: QueueId,
    /// Which of the two it is.
    pub kind: QueueKind,
    /// Written once, after the last input.
    pub epilogue: bool,
    /// By how much the write pointer of a ram moves with each write.
    pub stride: i64,
    /// The next gradient starts from nothing.
    pub zero: bool,
    /// With `epilogue`, the result so far.
    pub last: Option<E>,
}

impl<E> Reader<E> {
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

impl<E: Entry> Reader<E> {
    /// Where input `input` is: a pointer of a queue, an entry of a ram.
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

    /// Input `input`; `None` when it is not there yet.
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
    /// All inputs are done.
    pub fn is_done(&self) -> bool {
        self.done == self.count
    }

    /// The result for an input, when it has been computed; consumers ask for none that all of
    /// them have taken.
    pub fn result(&self, input: u32) -> Option<&E> {
        let at = input.checked_sub(self.first)?;
        self.results.get(at as usize).filter(|_| input < self.done)
    }
}
