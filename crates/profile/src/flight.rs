//! Requests in flight: when all of one has arrived.

use crate::tables::ByRequest;
use tilework_abi::noc::NocXy;
use tilework_sim::{PacketEvent, PacketKind, Request, RequestKind};

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    tile: NocXy,
    kind: RequestKind,
    answered: bool,
    /// Bytes that have to arrive at all receivers together, at least one.
    needed: u64,
    arrived: u64,
    /// Packets that have arrived, and answers.
    packets: u64,
    answers: u64,
}

/// All requests of cores that are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight(ByRequest<Open>);

impl Flight {
    /// A core of a tile starts a request.
    pub(crate) fn start(&mut self, tile: NocXy, request: &Request) {
        let Request { kind, answered, .. } = *request;
        let receivers = if kind == RequestKind::Read { 1 } else { u64::from(request.receivers.max(1)) };
        let needed = request.len.max(1).saturating_mul(receivers);
        self.0.insert(request.id, Open { tile, kind, answered, needed, arrived: 0, packets: 0, answers: 0 });
    }

    /// A packet has arrived. Returns the tile of its request, if that is the last one of it.
    pub(crate) fn arrives(&mut self, packet: &PacketEvent) -> Option<NocXy> {
        let open = self.0.get_mut(packet.id)?;
        let bytes = u64::from(packet.len.max(1));
        match packet.kind {
            PacketKind::ReadResponse if open.kind == RequestKind::Read => open.arrived += bytes,
            PacketKind::WriteRequest | PacketKind::AtomicRequest => {
                (open.arrived, open.packets) = (open.arrived + bytes, open.packets + 1);
            }
            PacketKind::WriteAck | PacketKind::AtomicResponse => open.answers += 1,
            _ => {}
        }
        let answers = match (open.kind, open.answered) {
            (RequestKind::Read, _) | (_, false) => true,
            (_, true) => open.answers >= open.packets.max(1),
        };
        let whole = open.kind == RequestKind::Atomic || open.arrived >= open.needed;
        let tile = open.tile;
        (whole && answers).then(|| {
            self.0.remove(packet.id);
            tile
        })
    }
}
