//! Events: points in a device's command queue that a host can poll, wait for or be called at; and
//! buffer reads whose data has yet to come.
//!
//! An event is completed when the host *notices* that the device has reached it. The host looks at
//! the completion FIFO at the beginning of every call to the device and throughout every call that
//! waits, and nowhere else, so that call-backs run at a cycle that depends on the program alone.
//! [`Event::poll`] only tells what was noticed; [`Device::event_query`](crate::Device::event_query)
//! looks first.

use crate::RuntimeError;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use tilework_abi::addr::Cycle;
use tilework_abi::cq::layout::{QueueId, WORKER_SEMS};

/// How an event ended: the cycle at which the host noticed it, or why it was never reached.
pub type Outcome = Result<Cycle, RuntimeError>;

/// Whether a call waits for what it enqueues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocking {
    /// The call returns when the device has done it.
    Yes,
    /// The call returns when it is in the queue.
    No,
}

type Call = Box<dyn FnOnce(&Outcome)>;

enum State {
    Pending(Vec<Call>),
    Ended(Outcome),
}

/// Where an event was put.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Put {
    /// The queue.
    pub queue: QueueId,
    /// Its number among the queue's events; none for the end of a read.
    pub number: Option<u32>,
    /// The launches that it comes behind, by sub-device: so many of the queue's, counted since the
    /// device was opened.
    pub behind: Launches,
}

/// Counts of launches by sub-device.
pub(crate) type Launches = [u64; WORKER_SEMS as usize];

struct Shared {
    state: RefCell<State>,
    put: Cell<Put>,
}

/// A point in a command queue of one device. Clones are the same event.
#[derive(Clone)]
pub struct Event {
    device: u64,
    shared: Rc<Shared>,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("device", &self.device)
            .field("put", &self.place())
            .field("outcome", &self.poll())
            .finish()
    }
}

impl Event {
    /// An event of device number `device` that has yet to be reached.
    pub(crate) fn pending(device: u64) -> Self {
        let state = RefCell::new(State::Pending(Vec::new()));
        Self { device, shared: Rc::new(Shared { state, put: Cell::default() }) }
    }
    /// Notes where it was put.
    pub(crate) fn put(&self, queue: QueueId, number: Option<u32>) {
        self.shared.put.set(Put { queue, number, ..self.shared.put.get() });
    }
    /// Notes the launches that it comes behind.
    pub(crate) fn comes_behind(&self, behind: Launches) {
        self.shared.put.set(Put { behind, ..self.shared.put.get() });
    }
    /// Where it was put.
    pub(crate) fn place(&self) -> Put {
        self.shared.put.get()
    }
    /// The queue that it is in.
    pub fn queue(&self) -> QueueId {
        self.place().queue
    }
    /// The number of its device in this process.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }

    /// What the host has noticed; `None` while it has noticed nothing.
    pub fn poll(&self) -> Option<Outcome> {
        match &*self.shared.state.borrow() {
            State::Pending(_) => None,
            State::Ended(outcome) => Some(outcome.clone()),
        }
    }
    /// Whether the event has ended, well or not.
    pub fn is_done(&self) -> bool {
        matches!(*self.shared.state.borrow(), State::Ended(_))
    }

    /// Calls `f` when the host notices the event, or when the device stops before it; at once when
    /// either has happened. The calls of one event run in the order in which they were asked for,
    /// those of several in the order of the events in the queue. `f` cannot use the device, which
    /// is busy with the call that noticed the event.
    pub fn on_completion(&self, f: impl FnOnce(&Outcome) + 'static) {
        let outcome = match &mut *self.shared.state.borrow_mut() {
            State::Pending(calls) => {
                calls.push(Box::new(f));
                return;
            }
            State::Ended(outcome) => outcome.clone(),
        };
        f(&outcome);
    }

    /// Ends the event, once, and makes its calls.
    pub(crate) fn end(&self, outcome: Outcome) {
        let calls = match &mut *self.shared.state.borrow_mut() {
            State::Ended(_) => return,
            state => match std::mem::replace(state, State::Ended(outcome.clone())) {
                State::Pending(calls) => calls,
                State::Ended(_) => return,
            },
        };
        // Outside the borrow: a call may look at the event, or ask for another call.
        for call in calls {
            call(&outcome);
        }
    }
}

/// A buffer that is being read: its data is there when the host has taken its last completion page.
#[derive(Debug)]
pub struct BufferRead {
    pub(crate) event: Event,
    pub(crate) data: Rc<RefCell<Vec<u8>>>,
}

impl BufferRead {
    /// The event behind the read's last byte.
    pub fn event(&self) -> &Event {
        &self.event
    }
    /// Whether the read has ended, well or not, as far as the host has noticed.
    pub fn is_done(&self) -> bool {
        self.event.is_done()
    }
    /// The data, once the host has it; the read itself while it has not
    /// ([`Device::wait_for_read`](crate::Device::wait_for_read) waits).
    ///
    /// # Errors
    /// Inside: what stopped the device.
    pub fn into_data(self) -> Result<Result<Vec<u8>, RuntimeError>, Self> {
        match self.event.poll() {
            None => Err(self),
            Some(outcome) => Ok(outcome.map(|_| self.data.take())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_run_once_in_order_and_late_ones_at_once() {
        let event = Event::pending(0);
        let seen = Rc::new(RefCell::new(Vec::new()));
        for name in ["first", "second"] {
            let (seen, same) = (Rc::clone(&seen), event.clone());
            event.on_completion(move |outcome| {
                assert_eq!(same.poll().map(|o| o.ok()), Some(outcome.clone().ok()));
                seen.borrow_mut().push(name);
            });
        }
        assert!(event.poll().is_none() && seen.borrow().is_empty());
        event.end(Ok(7));
        event.end(Ok(8));
        let (late, value) = (Rc::clone(&seen), event.clone());
        event.on_completion(move |_| late.borrow_mut().push("late"));
        assert_eq!(*seen.borrow(), ["first", "second", "late"]);
        assert!(matches!(value.poll(), Some(Ok(7))));
    }

    #[test]
    fn a_read_gives_its_data_only_when_it_has_ended() {
        let read = BufferRead { event: Event::pending(0), data: Rc::new(RefCell::new(vec![1, 2])) };
        let event = read.event().clone();
        let read = read.into_data().unwrap_err();
        event.end(Ok(1));
        assert_eq!(read.into_data().unwrap().unwrap(), [1, 2]);
        let read = BufferRead { event: Event::pending(0), data: Rc::default() };
        read.event().end(Err(RuntimeError::Lost("it stopped".into())));
        assert!(matches!(read.into_data(), Ok(Err(RuntimeError::Lost(_)))));
    }
}
