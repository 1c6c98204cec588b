//! Packets as they travel.

use std::collections::VecDeque;
use std::sync::Arc;
use tilework_riscv::Cycle;

use super::Data;
use crate::distance::Distances;
use crate::probe::{Event, RequestId};
use crate::timing::LOOKAHEAD;
use crate::{Fault, NEVER, dram, in_order};

/// Index of a node of the chip.
pub(crate) type NodeId = u16;

/// Where an NIU sits: its node and its physical NoC 0 coordinates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The node behind the NIU.
    pub node: NodeId,
    /// Physical column on NoC 0.
    pub x: u8,
    /// Physical row on NoC 0.
    pub y: u8,
}

/// Where a packet goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Dest {
    /// One NIU.
    Unicast(Place),
    /// One NIU, to which the network brings a copy of a multicast.
    Copy(Place),
    /// All of these, X being the major axis (`NOC_CMD_BRCST_XY` unset). A receiver gets its copy as
    /// [`Dest::Copy`].
    Multicast(Arc<[Place]>),
    /// All of these, Y being the major axis (`NOC_CMD_BRCST_XY` set).
    MulticastY(Arc<[Place]>),
}

/// Where the answer to a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    /// The NIU that counts the answer.
    pub to: Place,
    /// Transaction id, 0..15.
    pub trid: u8,
    /// The memory address that the answer's data goes to (reads and atomics).
    pub addr: u64,
}

/// The content of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// Read `len` bytes at `addr`.
    ReadRequest {
        /// Address in the receiver's space.
        addr: u64,
        /// Bytes, at most 16384.
        len: u32,
        /// Where the data goes.
        reply: Reply,
    },
    /// Write `data` at `addr`.
    WriteRequest {
        /// Address in the receiver's space.
        addr: u64,
        /// The bytes.
        data: Data,
        /// Byte enables over the first 64 bytes, when not all are written.
        mask: Option<u64>,
        /// Where the acknowledgement goes; `None` when posted.
        reply: Option<Reply>,
    },
    /// An atomic on the L1 word at `addr`.
    AtomicRequest {
        /// Address in the receiver's L1.
        addr: u64,
        /// `NOC_AT_LEN_BE`: opcode and operands.
        len_be: u32,
        /// `NOC_AT_DATA`.
        data: u32,
        /// Where the old value goes; `None` when posted.
        reply: Option<Reply>,
    },
    /// The data of a read.
    ReadResponse {
        /// Where it goes.
        reply: Reply,
        /// The bytes.
        data: Data,
    },
    /// The acknowledgement of a write.
    WriteAck {
        /// Where it goes.
        reply: Reply,
    },
    /// The answer to an atomic.
    AtomicResponse {
        /// Where the old value goes.
        reply: Reply,
        /// The old value.
        value: u32,
    },
    /// A request of the host was wrong ([`super::refusal`]).
    Refused {
        /// Whether it was a read.
        read: bool,
        /// Where its answer would have gone.
        reply: Option<Reply>,
        /// What is wrong.
        fault: Fault,
    },
}

impl Body {
    /// Data flits of the packet, without its header.
    pub(crate) fn data_flits(&self) -> u64 {
        // A write of at most 4 inline bytes still occupies one data flit here; requests without
        // data travel as a header alone.
        self.payload_bytes().div_ceil(u64::from(tilework_abi::noc::FLIT_BYTES))
    }
    /// All flits of the packet.
    pub(crate) fn flits(&self) -> u64 {
        Self::flits_for(self.payload_bytes())
    }
    /// All flits of a packet with so many bytes of data: one header and its data (NoC/README.md).
    #[inline]
    pub(crate) fn flits_for(bytes: u64) -> u64 {
        1 + bytes.div_ceil(u64::from(tilework_abi::noc::FLIT_BYTES))
    }
    /// True for a request, false for an answer.
    pub(crate) fn is_request(&self) -> bool {
        matches!(self, Body::ReadRequest { .. } | Body::WriteRequest { .. } | Body::AtomicRequest { .. })
    }
    /// Bytes of data in the packet.
    pub(crate) fn payload_bytes(&self) -> u64 {
        match self {
            Body::WriteRequest { data, .. } | Body::ReadResponse { data, .. } => data.len() as u64,
            _ => 0,
        }
    }
    /// The range of the receiver's address space that the packet changes, `None` when it changes
    /// counters only. Sleepers on a word of that range must be woken before the packet is applied.
    pub(crate) fn touches(&self) -> Option<Touch> {
        match self {
            Body::WriteRequest { addr, data, .. } => Some(Touch { addr: *addr, len: data.len() as u64 }),
            Body::ReadResponse { reply, data } => Some(Touch { addr: reply.addr, len: data.len() as u64 }),
            Body::AtomicRequest { addr, len_be, .. } => Some(super::atomics::touched(*addr, *len_be)),
            Body::AtomicResponse { reply, .. } => Some(Touch { addr: reply.addr, len: 4 }),
            Body::ReadRequest { .. } | Body::WriteAck { .. } | Body::Refused { .. } => None,
        }
    }
}

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    /// 0 or 1.
    pub noc: u8,
    /// The sending NIU.
    pub from: Place,
    /// The receiving NIU or NIUs.
    pub to: Dest,
    /// The request that it belongs to, for observers.
    pub id: RequestId,
    /// Its content.
    pub body: Body,
}

/// A range of a tile's address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
}

/// A departing packet. Packets are boxed from here to where they are handled: on the way they pass
/// through several queues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Departure {
    /// The cycle at which its first flit leaves the NIU.
    pub at: Cycle,
    /// The packet.
    pub packet: Box<Packet>,
}

/// A packet in an outbox.
#[derive(Clone, Debug)]
struct Waiting {
    at: Cycle,
    /// Its sender, as a number in the order of senders.
    sender: u32,
    packet: Box<Packet>,
}

impl Waiting {
    /// What departures are sorted by.
    #[inline]
    fn key(&self) -> (Cycle, u32) {
        (self.at, self.sender)
    }
}

/// Packets that have left the nodes. The network takes them at the end of a window, in the order of
/// (cycle, sender, order of departure).
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    /// In that order. There may be many, as a busy DRAM bank knows far ahead when its
    /// answers leave.
    departures: VecDeque<Waiting>,
    /// When the first leaves, or [`NEVER`].
    earliest: Cycle,
    /// When an answer to those that the running node has added may arrive at the earliest, because
    /// the look-ahead has passed, or [`NEVER`].
    answer: Cycle,
    /// The first cycle past which the host must have had a chance to react, or [`NEVER`].
    limit: Cycle,
    /// What the nodes have recorded for observers.
    pub(crate) events: Vec<Event>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self { departures: VecDeque::new(), earliest: NEVER, answer: NEVER, limit: NEVER, events: Vec::new() }
    }
}

impl Outbox {
    /// Adds a departure.
    pub(crate) fn push(&mut self, at: Cycle, packet: impl Into<Box<Packet>>) {
        self.add(at, packet.into());
    }
    fn add(&mut self, at: Cycle, packet: Box<Packet>) {
        let Place { node, x, y } = packet.from;
        let sender = u32::from(node) << 16 | u32::from(x) << 8 | u32::from(y);
        self.earliest = self.earliest.min(at);
        self.answer = self.answer.min(at.saturating_add(LOOKAHEAD));
        // Departures of one node and cycle keep their order.
        in_order::insert(&mut self.departures, Waiting { at, sender, packet }, Waiting::key);
    }
    /// Notes that the host can see something from cycle `at` on: no node runs further than
    /// [`crate::timing::HOST_NOTICE`] past it, so that the host can react in time.
    pub(crate) fn notice(&mut self, at: Cycle) {
        self.limit = self.limit.min(at + crate::timing::HOST_NOTICE);
    }
    /// Another node runs from now on.
    pub(crate) fn begin(&mut self) {
        self.answer = NEVER;
    }
    /// How far the running node may go towards `until`.
    #[inline]
    pub(crate) fn horizon(&self, until: Cycle) -> Cycle {
        until.min(self.answer).min(self.limit)
    }
    /// The first departure that has not been taken.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<Cycle> {
        (self.earliest != NEVER).then_some(self.earliest)
    }
    /// The first cycle, at most `bound`, at which one of the packets that wait may affect `node`:
    /// when it arrives there, or when another node has received it and sends something.
    pub(crate) fn affects(&self, node: usize, mut bound: Cycle, distances: &Distances) -> Cycle {
        for departure in &self.departures {
            if departure.at.saturating_add(LOOKAHEAD) >= bound {
                break;
            }
            let packet = &departure.packet;
            let from = usize::from(packet.from.node);
            let way = match packet.to {
                Dest::Unicast(to) | Dest::Copy(to) if usize::from(to.node) != node => {
                    let there = usize::from(to.node);
                    let stay = if distances.is_dram(there) { dram::answers_after(packet) } else { 0 };
                    distances.between(from, there) + stay + distances.between(there, node)
                }
                Dest::Unicast(_) | Dest::Copy(_) => distances.between(from, node),
                Dest::Multicast(_) | Dest::MulticastY(_) => LOOKAHEAD,
            };
            bound = bound.min(departure.at.saturating_add(way));
        }
        bound
    }
    /// Takes out the first departure, if it is before `end`, in the order in which the network
    /// handles them.
    pub(crate) fn pop_before(&mut self, end: Cycle) -> Option<Departure> {
        if self.earliest >= end {
            return None;
        }
        let first = self.departures.pop_front();
        self.answer = NEVER;
        self.earliest = self.departures.front().map_or(NEVER, |d| d.at);
        first.map(|Waiting { at, packet, .. }| Departure { at, packet })
    }
    /// Takes over everything of another outbox. No node may have put departures into both.
    pub(crate) fn append(&mut self, other: &mut Self) {
        while let Some(Departure { at, packet }) = other.pop_before(NEVER) {
            self.add(at, packet);
        }
        self.limit = self.limit.min(other.limit);
        other.limit = NEVER;
        match self.events.is_empty() {
            true => std::mem::swap(&mut self.events, &mut other.events),
            false => self.events.append(&mut other.events),
        }
    }
    /// The first cycle at which something may leave that the host does because of what it sees, or
    /// [`NEVER`]. Clears the limit: the host has its chance to react now.
    pub(crate) fn noticed(&mut self) -> Cycle {
        std::mem::replace(&mut self.limit, NEVER).saturating_add(crate::timing::PCIE_HOST_ONE_WAY)
    }
    /// Takes out everything.
    #[cfg(test)]
    pub(crate) fn take_all(&mut self) -> Vec<Departure> {
        std::iter::from_fn(|| self.pop_before(Cycle::MAX)).collect()
    }
}
