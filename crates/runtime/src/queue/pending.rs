//! What the completion FIFO will bring: events and the data of reads, in the order of the queue.
//!
//! The dispatcher executes commands in order, so that the next page always belongs to the oldest
//! entry of the list. When an entry ends, all commands up to its own are completed.

use crate::RuntimeError;
use crate::event::{BufferRead, Event, Outcome};
use crate::queue::stream::Stream;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use tilework_cq::completion::DataPages;

/// How far the queue was filled when an entry was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Position {
    /// Dispatch commands.
    pub(super) commands: u64,
    /// Records.
    pub(super) records: u64,
    /// Programs of which the first command has been sent.
    pub(super) programs: u64,
}

/// What the pages of an entry are.
#[derive(Debug)]
pub(super) enum Expected {
    /// One page with this event number.
    Event(u32),
    /// Pages with data.
    Data(Incoming),
}

/// Data on its way to the host.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The position in it.
    pub(super) pages: DataPages,
    /// Where its bytes belong.
    pub(super) stream: Stream,
    /// The host's copy of the whole buffer.
    pub(super) data: Rc<RefCell<Vec<u8>>>,
}

impl Incoming {
    /// The data of `stream`, for the buffer that `read` reads.
    pub(super) fn new(stream: Stream, read: &BufferRead) -> Self {
        Self { pages: DataPages::new(stream.bytes()), stream, data: Rc::clone(&read.data) }
    }
}

/// An entry of the list.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) expected: Expected,
    /// Who waits for it; absent from the parts of a read but the last.
    pub(super) event: Option<Event>,
    /// The queue behind its command.
    pub(super) position: Position,
}

/// The list. What is left in it when it is dropped is answered with [`RuntimeError::Closed`].
#[derive(Debug, Default)]
pub(super) struct PendingList(VecDeque<Pending>);

impl PendingList {
    pub(super) fn push(&mut self, pending: Pending) {
        self.0.push_back(pending);
    }
    pub(super) fn front_mut(&mut self) -> Option<&mut Pending> {
        self.0.front_mut()
    }
    pub(super) fn pop(&mut self) -> Option<Pending> {
        self.0.pop_front()
    }
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The newest entry.
    pub(super) fn last(&self) -> Option<&Pending> {
        self.0.back()
    }
    /// The oldest event number that has yet to come.
    pub(super) fn event_number(&self) -> Option<u32> {
        self.0.iter().find_map(|pending| match pending.expected {
            Expected::Event(number) => Some(number),
            Expected::Data(_) => None,
        })
    }
    /// Answers all entries with `error`.
    pub(super) fn fail(&mut self, error: &RuntimeError) {
        // The list is empty before anybody is called.
        for pending in std::mem::take(&mut self.0) {
            if let Some(event) = pending.event {
                event.end(Outcome::Err(error.clone()));
            }
        }
    }
}

impl Drop for PendingList {
    fn drop(&mut self) {
        self.fail(&RuntimeError::Closed);
    }
}
