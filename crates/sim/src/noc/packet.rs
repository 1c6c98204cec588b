//! Packets as they travel.

use std::collections::VecDeque;
use std::sync::Arc;
use tilework_riscv::Cycle;

/// Index of a node of the chip.
pub type NodeId = u16;

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
pub enum Dest {
    /// One NIU.
    Unicast(Place),
    /// One NIU, to which the network brings a copy of a multicast.
    Copy(Place),
    /// All of these, X being the major axis (`NOC_CMD_BRCST_XY` unset). A receiver gets its copy as [`Dest::Copy`].
    Multicast(Arc<[Place]>),
    /// All of these, Y being the major axis (`NOC_CMD_BRCST_XY` set).
    MulticastY(Arc<[Place]>),
}

/// Whom to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The NIU that counts the answer.
    pub to: Place,
    /// Transaction id, 0..15.
    pub trid: u8,
    /// The memory address that the answer's data goes to (reads and atomics).
    pub addr: u64,
}

/// Payload bytes, shared by the copies of a multicast.
pub type Data = Arc<[u8]>;

/// What a packet says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
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
        /// Who wants an acknowledgement; `None` when posted.
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
        /// Who wants the old value; `None` when posted.
        reply: Option<Reply>,
    },
    /// The data of a read.
    ReadResponse {
        /// Where it goes.
        reply: Reply,
        /// The bytes.
        data: Data,
    },
    /// A write was done.
    WriteAck {
        /// Who counts it.
        reply: Reply,
    },
    /// An atomic was done.
    AtomicResponse {
        /// Where the old value goes.
        reply: Reply,
        /// The old value.
        value: u32,
    },
}

impl Body {
    /// Data flits of the packet, without its header.
    pub fn data_flits(&self) -> u64 {
        // A write of at most 4 inline bytes still occupies one data flit here; requests without data travel as a header alone.
        self.payload_bytes().div_ceil(u64::from(tilework_abi::noc::FLIT_BYTES))
    }
    /// All flits of the packet: one header and its data (NoC/README.md).
    pub fn flits(&self) -> u64 {
        1 + self.data_flits()
    }
    /// True for what another NIU asks of the receiver, false for an answer.
    pub fn is_request(&self) -> bool {
        matches!(self, Body::ReadRequest { .. } | Body::WriteRequest { .. } | Body::AtomicRequest { .. })
    }
    /// Bytes of data in the packet.
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Body::WriteRequest { data, .. } | Body::ReadResponse { data, .. } => data.len() as u64,
            _ => 0,
        }
    }
    /// The range of the receiver's address space that the packet changes, `None` when it changes counters only. Whoever sleeps on
    /// a word of that range must be woken before the packet is applied.
    pub fn touches(&self) -> Option<Touch> {
        match self {
            Body::WriteRequest { addr, data, .. } => Some(Touch { addr: *addr, len: data.len() as u64 }),
            Body::ReadResponse { reply, data } => Some(Touch { addr: reply.addr, len: data.len() as u64 }),
            Body::AtomicRequest { addr, len_be, .. } => Some(super::atomics::touched(*addr, *len_be)),
            Body::AtomicResponse { reply, .. } => Some(Touch { addr: reply.addr, len: 4 }),
            Body::ReadRequest { .. } | Body::WriteAck { .. } => None,
        }
    }
}

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// 0 or 1.
    pub noc: u8,
    /// The sending NIU.
    pub from: Place,
    /// The receiving NIU or NIUs.
    pub to: Dest,
    /// What it says.
    pub body: Body,
}

/// A range of a tile's address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
}

/// A packet on its way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The cycle at which its first flit leaves the NIU.
    pub at: Cycle,
    /// The packet.
    pub packet: Packet,
}

/// What left the nodes. The network takes it at a window's end, ordered by (cycle, sender, order of leaving).
#[derive(Default, Debug)]
pub struct Outbox {
    /// In that order. A busy DRAM bank knows far ahead when its answers leave, and so there may be many.
    departures: VecDeque<Departure>,
    /// The first cycle past which the host must have had a chance to react.
    limit: Option<Cycle>,
}

impl Outbox {
    /// Adds a departure.
    pub fn push(&mut self, at: Cycle, packet: Packet) {
        // Behind its equals: departures of one node and cycle keep their order.
        let place = self.departures.partition_point(|d| (d.at, d.packet.from) <= (at, packet.from));
        self.departures.insert(place, Departure { at, packet });
    }
    /// Says that the host can see something since cycle `at`: nobody runs further than [`crate::timing::HOST_NOTICE`] past it, so that the
    /// host can react in time.
    pub fn notice(&mut self, at: Cycle) {
        let limit = at + crate::timing::HOST_NOTICE;
        self.limit = Some(self.limit.map_or(limit, |l| l.min(limit)));
    }
    /// How far a node that is alone may run when it wanted to run until `until`: an answer to its own packets may come after the look-ahead.
    pub fn horizon(&self, until: Cycle) -> Cycle {
        let until = self.earliest().map_or(until, |e| until.min(e + crate::timing::LOOKAHEAD));
        self.limit.map_or(until, |l| until.min(l))
    }
    /// The first departure that has not been taken.
    pub fn earliest(&self) -> Option<Cycle> {
        self.departures.front().map(|d| d.at)
    }
    /// Takes out the first departure, if it is before `end`: they come in the order in which the network handles them.
    pub fn pop_before(&mut self, end: Cycle) -> Option<Departure> {
        self.departures.pop_front_if(|d| d.at < end)
    }
    /// The host has had its chance.
    pub fn noticed(&mut self) {
        self.limit = None;
    }
    /// Takes out everything.
    #[cfg(test)]
    pub(crate) fn take_all(&mut self) -> Vec<Departure> {
        std::iter::from_fn(|| self.pop_before(Cycle::MAX)).collect()
    }
}
