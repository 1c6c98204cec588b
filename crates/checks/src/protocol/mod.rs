//! Rules between cores and NoC: requests that nobody waits for, links that stay open, requests
//! longer than a packet, transaction ids used again, counts that wrap.

mod counters;
mod ids;
mod rare;
mod state;
#[cfg(test)]
mod state_tests;

pub(crate) use ids::Ids;
pub(crate) use rare::By;
pub(crate) use state::{State, Used};

use crate::catalogue::protocol;
use crate::finding::Agent;
use crate::shadow::report::{Actor, Reports};
use crate::shadow::tile::Tile;
use std::sync::Arc;
use tilework_abi::noc::{COUNTERS, COUNTERS_END, NIU_SPAN, NIU0_BASE, counter};
use tilework_abi::tensix::Processor;
use tilework_driver::LaunchNote;
use tilework_sim::{PacketEvent, PacketKind, Request, RequestId, RequestKind};

/// Bytes of a packet (NoC/Counters.md, "Automatic request splitting").
pub(crate) const PACKET_BYTES: u64 = 16_384;

/// A request of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub actor: Actor,
    pub launch: Arc<LaunchNote>,
    pub request: Request,
}

impl Issued {
    /// The request as an agent of its own.
    pub(crate) fn agent(&self) -> Agent {
        match self.request.kind {
            RequestKind::Read => Agent::NocRead(self.request.noc),
            RequestKind::Write | RequestKind::Inline => Agent::NocWrite(self.request.noc),
            RequestKind::Atomic => Agent::NocAtomic(self.request.noc),
        }
    }
}

const fn kind_name(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Read => "read",
        RequestKind::Write => "write",
        RequestKind::Inline => "inline write",
        RequestKind::Atomic => "atomic",
    }
}

/// The requests of kernels that are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    /// By NIU in the order of their numbers, each with the bytes or answers that are missing: few.
    requests: Vec<Vec<(RequestId, Arc<Issued>, u64)>>,
}

impl InFlight {
    /// A request of a kernel.
    pub(crate) fn issue(&mut self, reports: &mut Reports, issued: &Arc<Issued>) {
        let request = &issued.request;
        if request.len > PACKET_BYTES && request.kind != RequestKind::Inline {
            reports.report(&protocol::NOC_TOO_LONG, issued.actor, None, || {
                let (len, packets) = (request.len, request.len.div_ceil(PACKET_BYTES));
                (
                    format!("a {} of {len} bytes, which the NIU counts as {packets} requests", kind_name(request.kind)),
                    None,
                )
            });
        }
        let answers = match request.kind {
            _ if !request.answered => return self.keep(issued, u64::MAX),
            RequestKind::Read => request.len.div_ceil(PACKET_BYTES).max(1),
            RequestKind::Write => request.len.div_ceil(PACKET_BYTES).max(1) * u64::from(request.receivers),
            RequestKind::Inline | RequestKind::Atomic => request.receivers.into(),
        };
        self.keep(issued, answers);
    }

    fn keep(&mut self, issued: &Arc<Issued>, answers: u64) {
        let id = issued.request.id;
        if self.requests.len() <= id.niu() {
            self.requests.resize_with(id.niu() + 1, Vec::new);
        }
        self.requests[id.niu()].push((id, Arc::clone(issued), answers));
    }

    /// Where a request is among those of its NIU.
    #[inline]
    fn find(&self, id: RequestId) -> Option<usize> {
        self.requests.get(id.niu())?.binary_search_by_key(&id, |(id, ..)| *id).ok()
    }

    /// The request that a packet belongs to, if it is a kernel's.
    pub(crate) fn of(&self, id: RequestId) -> Option<&Arc<Issued>> {
        let at = self.find(id)?;
        Some(&self.requests[id.niu()][at].1)
    }

    /// A packet has arrived.
    pub(crate) fn arrived(&mut self, packet: &PacketEvent) {
        let Some(at) = self.find(packet.id) else { return };
        let of_niu = &mut self.requests[packet.id.niu()];
        let answers = &mut of_niu[at].2;
        let last = match packet.kind {
            PacketKind::ReadResponse | PacketKind::WriteAck | PacketKind::AtomicResponse => {
                *answers = answers.saturating_sub(1);
                *answers == 0
            }
            // A request without an answer; of a multicast the others are not asked for.
            PacketKind::WriteRequest | PacketKind::AtomicRequest => *answers == u64::MAX,
            PacketKind::ReadRequest | PacketKind::Refusal => false,
        };
        if last {
            of_niu.remove(at);
        }
    }
}

/// A kernel has started a request: what its core must do before it ends.
pub(crate) fn started(tile: &mut Tile, core: Processor, issued: &Arc<Issued>, in_flight: &InFlight) {
    tile.ids.started(core, issued, in_flight);
    tile.asked |= 1 << core.index();
    let (noc, state) = (usize::from(issued.request.noc & 1), &mut tile.cores[core.index()]);
    if issued.request.answered {
        state.unwaited[noc] = Some(Arc::clone(issued));
    }
    state.unseen[noc] = Some(Arc::clone(issued));
    let link = issued.request.linked.then(|| Arc::clone(issued));
    // The link is the NIU's: whoever ends it, ends it for all initiators.
    state.linked[noc].fill(None);
    state.linked[noc][usize::from(issued.request.initiator & 3)] = link;
}

/// A core has loaded a register: a counter of an NIU tells it what has been answered.
#[inline]
pub(crate) fn looked(tile: &mut Tile, core: Processor, addr: u32, reports: &mut Reports) {
    let offset = addr.wrapping_sub(NIU0_BASE);
    if offset < 2 * NIU_SPAN && (COUNTERS..COUNTERS_END).contains(&(offset % NIU_SPAN)) {
        let noc = (offset / NIU_SPAN) as usize;
        let state = &mut tile.cores[core.index()];
        (state.unwaited[noc], state.unseen[noc]) = (None, None);
        let count = ((offset % NIU_SPAN - COUNTERS) / 4) as usize;
        if let Some(id) = count.checked_sub(counter::MST_REQS_OUTSTANDING_ID).filter(|&id| id < 16) {
            tile.ids.looked(noc, id, reports);
        }
    }
}

/// The kernels of a tile have ended.
pub(crate) fn ended(tile: &mut Tile, in_flight: &InFlight, reports: &mut Reports) {
    let asked = std::mem::take(&mut tile.asked);
    for (_, state) in tile.cores.iter_mut().enumerate().filter(|(core, _)| asked >> core & 1 != 0) {
        for issued in state.unwaited.iter_mut().filter_map(Option::take) {
            let still = in_flight.of(issued.request.id).is_some();
            reports.report(&protocol::NOC_NOT_WAITED, issued.actor, None, || {
                let Request { kind, len, noc, .. } = issued.request;
                let when = if still { "is still under way when the kernel ends" } else { "is not waited for" };
                (format!("the last {} of NoC {noc}, of {len} bytes, {when}", kind_name(kind)), None)
            });
        }
        for issued in state.linked.iter_mut().flatten().filter_map(Option::take) {
            reports.report(&protocol::NOC_LINK_OPEN, issued.actor, None, || {
                (format!("the last request of NoC {} is linked to one that never comes", issued.request.noc), None)
            });
        }
    }
}
