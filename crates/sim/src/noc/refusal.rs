//! What becomes of a wrong request of the host.
//!
//! A core's wrong request is a fault of the program and stops the chip. A host is outside: what it
//! asks wrongly through a window travels to a tile like every request, is refused there and leaves
//! the tile as it was. The refusal travels back with what is wrong, in the place of the answer; the
//! PCIe tile decides what the host gets to know of it. Hardware has no such packet: there a request
//! that nobody serves is answered by ones, late or never.

use super::{Body, Dest, Outbox, Packet, Place, Reply};
use crate::probe::RequestId;
use crate::{Cycle, Fault};
use tilework_abi::board::PCIE_PHYSICAL;

/// A request of the host, as the tile that serves it remembers it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostRequest {
    noc: u8,
    id: RequestId,
    host: Place,
    here: Place,
    /// Whether it waits for data.
    read: bool,
    reply: Option<Reply>,
}

impl HostRequest {
    /// The request in a packet that has arrived, if the PCIe tile sent it: only the host does.
    #[inline]
    pub(crate) fn of(packet: &Packet) -> Option<Self> {
        let Place { x, y, .. } = packet.from;
        if (x, y) != (PCIE_PHYSICAL.x, PCIE_PHYSICAL.y) {
            return None;
        }
        let (Dest::Unicast(here) | Dest::Copy(here)) = packet.to else { return None };
        let (read, reply) = match &packet.body {
            Body::ReadRequest { reply, .. } => (true, Some(*reply)),
            Body::WriteRequest { reply, .. } => (false, *reply),
            _ => return None,
        };
        Some(Self { noc: packet.noc, id: packet.id, host: packet.from, here, read, reply })
    }

    fn refused(self, mut fault: Fault) -> Packet {
        // When and by whom is known where it arrives.
        (fault.site.cycle, fault.site.sender) = (None, None);
        let body = Body::Refused { read: self.read, reply: self.reply, fault };
        Packet { noc: self.noc, from: self.here, to: Dest::Unicast(self.host), id: self.id, body }
    }
}

/// Serves a packet by `serve`, which puts answers into the outbox that it gets. If the host has
/// sent it and it cannot be served, a refusal leaves at cycle `at` instead of any answer.
///
/// # Errors
/// The fault, if somebody else has sent the packet.
#[inline]
pub(crate) fn serve_or_refuse(
    host: Option<HostRequest>,
    at: Cycle,
    out: &mut Outbox,
    serve: impl FnOnce(&mut Outbox) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(request) = host else { return serve(out) };
    // An answer may have been made before it was clear that the request is wrong.
    let mut answers = Outbox::default();
    match serve(&mut answers) {
        Ok(()) => out.append(&mut answers),
        Err(fault) => out.push(at, request.refused(fault)),
    }
    Ok(())
}
