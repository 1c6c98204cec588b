//! Packets as events: recorded where they are routed, at the cycles at which they leave and arrive.

use super::{Agent, Event, PacketEvent, PacketKind, Spot, Wants, Way, What};
use crate::Cycle;
use crate::noc::{Body, Dest, Grid, Packet, Place};
use std::sync::Arc;
use tilework_abi::noc::{GRID_X, GRID_Y, NocXy};

/// Makes events of packets.
#[derive(Clone, Debug)]
pub(crate) struct Packets {
    /// The tiles as events name them, row by row.
    spots: Arc<[Spot]>,
    /// Those of all tiles that leave are wanted, not only those of the host.
    leave: bool,
    /// The tiles for which nobody wants to see what is read, or that what was written arrived.
    overlooked: Vec<Spot>,
}

impl Packets {
    /// For a chip with this grid, as `wants` says, which includes some.
    pub(crate) fn new(grid: &Grid, wants: Wants) -> Self {
        // Coordinates have six bits.
        let places = (0..GRID_Y as u8).flat_map(|y| (0..GRID_X as u8).map(move |x| Place { node: 0, x, y }));
        Self {
            spots: places.map(|place| grid.spot(place)).collect(),
            leave: wants.has(Wants::NOC),
            overlooked: Vec::new(),
        }
    }

    /// Requests to read of these tiles, and acknowledgements of their writes, are left out from now
    /// on.
    pub(crate) fn overlook(&mut self, tiles: &[NocXy]) {
        self.overlooked = tiles.iter().map(|&tile| Spot::Tensix(tile)).collect();
    }

    fn is_overlooked(&self, packet: &Packet) -> bool {
        let of = match &packet.body {
            Body::ReadRequest { .. } => packet.from,
            Body::WriteAck { .. } => receiver(packet),
            _ => return false,
        };
        self.overlooked.contains(&self.spot(of))
    }

    fn spot(&self, place: Place) -> Spot {
        let at = usize::from(place.y) * GRID_X as usize + usize::from(place.x);
        self.spots.get(at).copied().unwrap_or(Spot::Inert)
    }

    /// Whether it is an event that this packet leaves.
    #[inline]
    pub(crate) fn sees_leave(&self, packet: &Packet) -> bool {
        self.leave || self.spot(packet.from) == Spot::Pcie
    }

    /// A packet leaves.
    pub(crate) fn leaves(&self, at: Cycle, packet: &Packet, events: &mut Vec<Event>) {
        if self.sees_leave(packet) {
            let spot = self.spot(packet.from);
            let what = What::Leaves(self.describe(packet, receiver(packet)));
            events.push(Event { at, spot, agent: Agent::Niu(packet.noc), pc: 0, known: false, early: false, what });
        }
    }

    /// A packet's last flit arrives.
    #[inline(never)]
    pub(crate) fn arrives(&self, at: Cycle, packet: &Packet, events: &mut Vec<Event>) {
        if !self.overlooked.is_empty() && self.is_overlooked(packet) {
            return;
        }
        let what = What::Arrives(self.describe(packet, packet.from));
        let spot = self.spot(receiver(packet));
        events.push(Event { at, spot, agent: Agent::Niu(packet.noc), pc: 0, known: false, early: false, what });
    }

    fn describe(&self, packet: &Packet, peer: Place) -> PacketEvent {
        let touched = packet.body.touches().map_or((0, 0), |touch| (touch.addr, touch.len as u32));
        let (kind, (addr, len)) = match &packet.body {
            Body::ReadRequest { addr, len, .. } => (PacketKind::ReadRequest, (*addr, *len)),
            Body::WriteRequest { .. } => (PacketKind::WriteRequest, touched),
            Body::AtomicRequest { .. } => (PacketKind::AtomicRequest, touched),
            Body::ReadResponse { .. } => (PacketKind::ReadResponse, touched),
            Body::AtomicResponse { .. } => (PacketKind::AtomicResponse, touched),
            Body::WriteAck { .. } => (PacketKind::WriteAck, touched),
            Body::Refused { .. } => (PacketKind::Refusal, touched),
        };
        let way = match &packet.to {
            // Only of use to who sees all packets that leave.
            _ if !self.leave => None,
            Dest::Unicast(to) => Some(Way::new((packet.from.x, packet.from.y), (to.x, to.y))),
            Dest::Copy(_) | Dest::Multicast(_) | Dest::MulticastY(_) => None,
        };
        let flits = u32::try_from(packet.body.flits()).unwrap_or(u32::MAX);
        PacketEvent { id: packet.id, kind, peer: self.spot(peer), addr, len, flits, way }
    }
}

/// Where a packet goes; of a multicast that has not been divided yet, its first receiver.
fn receiver(packet: &Packet) -> Place {
    match &packet.to {
        Dest::Unicast(place) | Dest::Copy(place) => *place,
        Dest::Multicast(places) | Dest::MulticastY(places) => places.first().copied().unwrap_or(packet.from),
    }
}
