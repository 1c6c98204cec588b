//! Transaction ids: whether one is used again while it is in flight.
//!
//! Requests of one core with one id that follow one another are a group, which is waited for as
//! one. The id is used again when the core has started requests with another id since, or when
//! another core of the tile takes it. That alone does no harm: it is told when somebody looks at
//! the id's count, which is that of both groups (BlackholeA0/NoC/Counters.md).

use super::{InFlight, Issued};
use crate::catalogue::protocol;
use crate::finding::Place;
use crate::shadow::report::{Actor, Reports};
use tilework_abi::tensix::Processor;
use tilework_sim::RequestId;

/// Transaction ids of an NIU (NoC/MemoryMap.md, `NOC_PACKET_TAG`).
const IDS: usize = 16;
/// Requests of a group of which those that were answered are kept.
const KEPT: usize = 64;

/// The requests with one id that may be in flight.
#[derive(Clone, Debug)]
struct Group {
    core: Processor,
    /// The first of them.
    first: Actor,
    requests: Vec<RequestId>,
    /// Its core has used another id since.
    closed: bool,
    /// The first request of another group.
    again: Option<Actor>,
}

/// The ids of a tile's NIUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    groups: [[Option<Box<Group>>; IDS]; 2],
    /// There are some.
    any: bool,
}

impl Ids {
    /// A kernel has started a request. Id 0 is that of software without ids, and a multicast is
    /// answered more than once, so that nobody waits for it by its id.
    pub(super) fn started(&mut self, core: Processor, issued: &Issued, in_flight: &InFlight) {
        let request = &issued.request;
        let (own, groups) = (usize::from(request.trid) % IDS, &mut self.groups[usize::from(request.noc & 1)]);
        for (id, group) in groups.iter_mut().enumerate().filter(|_| self.any) {
            if let Some(group) = group.as_mut().filter(|group| id != own && group.core == core) {
                group.closed = true;
            }
        }
        if own == 0 || !request.answered || request.receivers != 1 {
            return;
        }
        let is_in_flight = |id: &RequestId| in_flight.of(*id).is_some();
        match &mut groups[own] {
            Some(group) if group.requests.iter().any(is_in_flight) => {
                if group.closed || group.core != core {
                    group.again.get_or_insert(issued.actor);
                }
                if group.requests.len() == KEPT {
                    group.requests.retain(is_in_flight);
                }
                group.requests.push(request.id);
            }
            group => {
                let (first, requests) = (issued.actor, vec![request.id]);
                self.any = true;
                *group = Some(Box::new(Group { core, first, requests, closed: false, again: None }));
            }
        }
    }

    /// Another program begins.
    pub(crate) fn forget(&mut self) {
        if self.any {
            *self = Self::default();
        }
    }

    /// Somebody looks at the count of an id.
    pub(super) fn looked(&mut self, noc: usize, id: usize, reports: &mut Reports) {
        let Some(group) = &mut self.groups[noc % 2][id % IDS] else { return };
        let Some(again) = group.again.take() else { return };
        let first: Place = group.first.place(None);
        reports.report(&protocol::NOC_TRID_REUSED, again, None, || {
            let what = format!("uses transaction id {id} of NoC {noc} again, which is waited for as one");
            (what, Some(first))
        });
    }
}
