//! One NIU of a Tensix tile: four request initiators, configuration, counters, and both ends of
//! every transaction.
//!
//! Follows BlackholeA0/NoC/MemoryMap.md and Counters.md. A request passes three points: software
//! writes `NOC_CMD_CTRL` ([`Niu::write`]), the packet leaves ([`Niu::depart`]), the answer arrives
//! ([`Niu::receive`]). The page's "virtual channel number is assigned" and "packet leaves" are one
//! point here, and requests leave in the order in which software started them, one after the other:
//! a stricter order than hardware promises, and a legal one (WormholeB0/NoC/Ordering.md).
//!
//! Not modelled, each a fault when used: coordinate translation of DRAM columns by tables of its
//! own, request FIFOs, delivery to the overlay, header store, accumulating writes, security fences,
//! router flit counters. An interrupt gets as far as the interrupt controller, which cannot be
//! enabled. Starting a request does not write translated coordinates back to the initiator:
//! software that sets its own coordinates once and starts many requests on NoC 1, as the public
//! firmware does, would have them translated twice. An arbitration priority is accepted and has no
//! effect: packets that meet go in the network's own order.

mod coordinates;
mod decode;
mod pattern;
mod receive;
mod regs;
mod request;

pub(crate) use decode::is_misaligned;
pub(crate) use request::{Leaving, Start};

use super::{Grid, Packet, Place, TileKind};
use crate::{Cycle, Fault};
use coordinates::Coordinates;
use regs::Initiator;
use request::End;
use std::sync::Arc;
use tilework_abi::noc::{CMD_BUFS, NocXy, counter};

const COUNTERS_PAGE: &str = "BlackholeA0/NoC/Counters.md";
const MAP_PAGE: &str = "BlackholeA0/NoC/MemoryMap.md";
/// Width of the per-transaction-id counters (Counters.md: 8 bits).
const ID_COUNTER_MASK: u32 = 0xFF;

/// What the requests of an unfinished linked transaction must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link {
    dest: u32,
    multicast: bool,
    y_major: bool,
}

/// The NIU of one Tensix tile on one NoC.
#[derive(Clone, Debug)]
pub(crate) struct Niu {
    noc: u8,
    place: Place,
    logical: NocXy,
    endpoint_id: u32,
    grid: Arc<Grid>,
    initiators: [Initiator; CMD_BUFS as usize],
    config: [u32; regs::CONFIG_WORDS],
    coordinates: Coordinates,
    counters: [u32; counter::COUNT],
    /// `NIU_TRANS_COUNT_RTZ_SOURCE`: counts of outstanding requests that have returned to zero,
    /// one bit each.
    returned_to_zero: u32,
    /// The cycle at which the last request's last flit has left.
    free_at: Cycle,
    link: Option<Link>,
    /// Requests that software has started.
    requests: u64,
    /// What the last coordinate words of reads and of their answers mean.
    known_ends: [Option<(u32, End)>; 2],
    /// The memory of a packet that has been handled, for the next request.
    spare: Option<Box<Packet>>,
}

impl Niu {
    /// The NIU at `place` on NoC `noc` (0 or 1), with the coordinates `logical` in translated space
    /// and the given `NOC_ENDPOINT_ID`.
    pub(crate) fn new(noc: u8, place: Place, logical: NocXy, endpoint_id: u32, grid: Arc<Grid>) -> Self {
        let config = grid.niu_config(noc & 1, place);
        Self {
            noc: noc & 1,
            place,
            logical,
            endpoint_id,
            grid,
            initiators: Default::default(),
            config,
            coordinates: Coordinates::AsShipped,
            counters: [0; counter::COUNT],
            returned_to_zero: 0,
            free_at: 0,
            link: None,
            requests: 0,
            known_ends: [None; 2],
            spare: None,
        }
    }

    /// Status counter `index` ([`counter`]), as software reads it; 0 beyond the last.
    pub(crate) fn counter(&self, index: usize) -> u32 {
        self.counters.get(index).copied().unwrap_or(0)
    }

    fn count(&mut self, index: usize, by: u32) {
        self.counters[index] = self.counters[index].wrapping_add(by);
    }

    fn count_id(&mut self, first: usize, trid: u8, by: u32) {
        let slot = &mut self.counters[first + usize::from(trid & 0xF)];
        *slot = slot.wrapping_add(by) & ID_COUNTER_MASK;
    }

    fn uncount_id(&mut self, first: usize, trid: u8) {
        self.count_id(first, trid, ID_COUNTER_MASK); // minus 1 modulo 256
    }

    /// Counts an answer to a request with this transaction id.
    fn answered(&mut self, trid: u8) {
        self.uncount_id(counter::MST_REQS_OUTSTANDING_ID, trid);
        let id = usize::from(trid & 0xF);
        self.returned_to_zero |= u32::from(self.counters[counter::MST_REQS_OUTSTANDING_ID + id] == 0) << id;
    }

    fn kind_of(&self, place: Place) -> TileKind {
        // Places come from the grid; only in tests is this NIU's own tile missing there.
        self.grid.kind(place).unwrap_or(TileKind::Tensix)
    }

    fn send(&mut self, at: Cycle, packet: impl Into<Box<Packet>>, out: &mut super::Outbox) {
        out.push(at, packet);
    }

    #[cold]
    #[inline(never)]
    fn named(&self, fault: Fault, at: Cycle) -> Fault {
        fault.at_tile(self.logical).at_cycle(at)
    }
}
