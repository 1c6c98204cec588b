//! Requests of NIUs and the packets that belong to them, as events name them.

use super::Spot;
use std::num::NonZeroU32;

/// The number of a request: of all packets that belong to it, answers included. Zero is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RequestId(pub u64);

impl RequestId {
    /// Bits for the number of the request among those of its NIU.
    const NUMBER_BITS: u32 = 40;

    /// The number of its NIU, below 2^24; requests of one NIU have ascending numbers.
    #[inline]
    pub const fn niu(self) -> usize {
        (self.0 >> Self::NUMBER_BITS) as usize
    }

    /// Request number `number`, from 1, of NIU `noc` of node `node`.
    pub(crate) const fn new(node: u16, noc: u8, number: u64) -> Self {
        Self((node as u64) << (Self::NUMBER_BITS + 1) | (noc as u64) << Self::NUMBER_BITS | number)
    }
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// Reads remote memory into local memory.
    Read,
    /// Writes local memory to remote memory.
    Write,
    /// Writes a word of the request itself to a remote register.
    Inline,
    /// An atomic operation on a remote word.
    Atomic,
}

/// A request as software started it, by its write of `NOC_CMD_CTRL`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its number.
    pub id: RequestId,
    /// What it does.
    pub kind: RequestKind,
    /// 0 or 1.
    pub noc: u8,
    /// The initiator (command buffer), 0 to 3.
    pub initiator: u8,
    /// The transaction id, 0 to 15.
    pub trid: u8,
    /// The tile at the other end; for a multicast the first of its receivers.
    pub remote: Spot,
    /// How many tiles receive it: more than one for a multicast.
    pub receivers: u16,
    /// The address at the other end.
    pub remote_addr: u64,
    /// The address in the own tile: where a write comes from, where data of an answer goes.
    pub local_addr: u64,
    /// Bytes.
    pub len: u64,
    /// Whether an answer is counted. A posted write has none.
    pub answered: bool,
    /// Whether the virtual channel stays reserved for the next one (`NOC_CMD_VC_LINKED`).
    pub linked: bool,
}

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// Asks for bytes.
    ReadRequest,
    /// Brings bytes to be written.
    WriteRequest,
    /// Asks for an atomic operation.
    AtomicRequest,
    /// Brings the bytes of a read.
    ReadResponse,
    /// Says that a write has been done.
    WriteAck,
    /// Brings the old value of an atomic.
    AtomicResponse,
    /// Says that a request of the host was wrong.
    Refusal,
}

/// A packet where it leaves or arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketEvent {
    /// The request that it belongs to.
    pub id: RequestId,
    /// What it carries.
    pub kind: PacketKind,
    /// The other end: the receiver of one that leaves (the first one of a multicast), the sender of
    /// one that arrives.
    pub peer: Spot,
    /// The address in the receiver's space that it reads or writes; zero for acknowledgements.
    pub addr: u64,
    /// Bytes that it reads, or carries.
    pub len: u32,
    /// Cycles for which it holds each link: its flits.
    pub flits: u32,
    /// Its way, if somebody wants [`Wants::NOC`](super::Wants::NOC); none for a multicast, whose
    /// way is a tree, where it leaves.
    pub way: Option<Way>,
}

/// The routers where a packet enters and leaves the NoC, in as few bytes as they need: there are
/// many events, and each of them has room for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way(NonZeroU32);

impl Way {
    /// Bits of a coordinate, of which six are needed.
    const BITS: u32 = 7;

    /// From a router to a router, each by its physical column and row as of NoC 0.
    #[inline]
    pub(crate) fn new(from: (u8, u8), to: (u8, u8)) -> Self {
        let add = |all: u32, coordinate: u8| (all << Self::BITS) | (u32::from(coordinate) % (1 << Self::BITS));
        Self(NonZeroU32::MIN | ([from.0, from.1, to.0, to.1].into_iter().fold(0, add) << 1))
    }

    /// The physical columns and rows of both routers, as of NoC 0.
    #[inline]
    pub fn ends(self) -> [(u8, u8); 2] {
        // Seven bits each.
        let coordinate = |number: u32| (self.0.get() >> (1 + Self::BITS * number)) as u8 % (1 << Self::BITS);
        [(coordinate(3), coordinate(2)), (coordinate(1), coordinate(0))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_has_its_ends() {
        for (from, to) in [((0, 0), (0, 0)), ((16, 11), (0, 63)), ((1, 2), (3, 4)), ((63, 63), (63, 63))] {
            assert_eq!(Way::new(from, to).ends(), [from, to]);
        }
    }
}
