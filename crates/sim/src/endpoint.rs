//! Nodes that only answer: ARC, DRAM banks and inert tiles.
//!
//! Nothing computes in them. They have a queue of events: packets that have arrived, and events
//! that they have scheduled themselves. [`Node`] is implemented for all of them in terms of
//! handling one event.

use crate::event_queue::EventQueue;
use crate::noc::{Outbox, Packet};
use crate::node::Outlook;
use crate::{Cycle, Fault, Node};

/// A node that only handles events.
pub(crate) trait Endpoint: Send {
    /// What can happen in it.
    type Event: From<Box<Packet>>;

    /// The pending events.
    fn events(&self) -> &EventQueue<Self::Event>;
    /// As [`Endpoint::events`].
    fn events_mut(&mut self) -> &mut EventQueue<Self::Event>;
    /// The node's [`Node::outlook`].
    fn expects(&self) -> Outlook {
        let next = self.events().next();
        Outlook { next, sends: next }
    }
    /// Takes in a packet that arrives at cycle `at`.
    fn accept(&mut self, at: Cycle, packet: Box<Packet>) {
        self.events_mut().arrive(at, packet.into());
    }
    /// Handles an event at its cycle.
    ///
    /// # Errors
    /// A fault of the program, without the cycle.
    fn handle(&mut self, at: Cycle, event: Self::Event, out: &mut Outbox) -> Result<(), Fault>;
}

impl<T: Endpoint> Node for T {
    fn next(&self) -> Cycle {
        self.expects().next
    }
    fn outlook(&self) -> Outlook {
        self.expects()
    }
    #[inline]
    fn deliver(&mut self, at: Cycle, packet: impl Into<Box<Packet>>) {
        self.accept(at, packet.into());
    }
    fn run(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault> {
        while let Some((at, event)) = self.events_mut().pop_before(out.horizon(until)) {
            self.handle(at, event, out).map_err(|fault| fault.at_cycle(at))?;
        }
        Ok(())
    }
}
