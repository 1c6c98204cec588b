//! What an NIU's requests are ordered by: its counters, its transaction ids and its channels.
//!
//! Follows BlackholeA0/NoC/Counters.md and WormholeB0/NoC/Ordering.md. Answers may change places,
//! so a count of answers says something only when nothing is outstanding. Requests leave in the
//! order in which they were started, so a count of those that have left tells which ones have.
//! `..._REQ_SENT` counts a write a little before its last byte has been read (Counters.md); all
//! public kernels take it for the end of that, and so do we.

use super::clock::{Clock, Moment, Part, Stamp};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tilework_abi::noc::{MAX_PACKET_BYTES, counter as c, ctrl};
use tilework_sim::{Request, RequestKind, Spot};

/// What a part of an NIU does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Does {
    /// Reads remote memory and writes it to the own tile.
    Reads,
    /// Reads the sources of writes.
    Sources,
    /// Writes remote memory.
    Writes,
}

/// What is waited for at once, and so has one count: a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Group {
    pub does: Does,
    trid: u8,
    answered: bool,
    /// Of writes the receivers: another receiver's channel proves nothing.
    to: Option<(Spot, u16)>,
}

/// Between the same tiles on the same virtual channel the order is kept (Ordering.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Channel {
    to: (Spot, u16),
    /// The static channel, or that of an open link.
    vc: u32,
}

/// The channel of linked requests, which stay on one whatever it is.
const LINK: u32 = 0xFF;

/// Answers of one kind: how many there will have been.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    expected: u32,
    /// What the counter showed when observing began.
    base: u32,
}

impl Answers {
    /// Whether a counter that shows `value` says that all have come.
    fn all(&mut self, value: u32) -> bool {
        let ahead = value.wrapping_sub(self.base).wrapping_sub(self.expected);
        if ahead != 0 && ahead < u32::MAX / 2 {
            self.base = self.base.wrapping_add(ahead);
        }
        value.wrapping_sub(self.base) == self.expected
    }
}

/// Writes of one kind whose sources are being read, in the order in which they leave.
#[derive(Clone, Debug, Default)]
struct Leaving {
    sent: Answers,
    queue: VecDeque<(u32, Stamp)>,
}

/// One NIU.
#[derive(Clone, Debug, Default)]
pub(super) struct Niu {
    /// `NOC_CTRL` of each initiator.
    pub control: [u32; 4],
    linked: bool,
    channels: HashMap<Channel, Arc<[Stamp]>>,
    groups: HashMap<Group, usize>,
    parts: Vec<(Group, Stamp)>,
    /// Parts of which something may be in flight.
    open: Vec<usize>,
    reads: Answers,
    acks: Answers,
    leaving: [Leaving; 2],
    /// What some core has seen to be over, and what came with it.
    pub seen: Clock,
    /// Which change of `seen` this is.
    pub version: u32,
    /// When each core last started something.
    pub started: [Option<Moment>; 5],
}

/// The stamps of a new request.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    /// Of the memory that it writes, or of both sides of a read.
    pub main: Stamp,
    /// Of the source of a write.
    pub source: Stamp,
    /// What comes before it on its channel.
    pub before: Arc<[Stamp]>,
    /// How many packets will arrive.
    pub arrivals: u32,
}

/// Packets of a request.
fn pieces(request: &Request) -> u32 {
    u32::try_from(request.len.div_ceil(u64::from(MAX_PACKET_BYTES))).unwrap_or(u32::MAX).max(1)
}

impl Niu {
    /// A core starts a request. `part` makes a part for a group that is new.
    pub(super) fn start(&mut self, request: &Request, mut part: impl FnMut(Does) -> Part) -> Stamps {
        let pieces = pieces(request);
        let to = (request.remote, request.receivers);
        let (trid, answered) = (request.trid, request.answered);
        let arrivals = pieces * u32::from(request.receivers).max(1);
        let mut stamps = Stamps { arrivals, ..Stamps::default() };
        let mut group = |does, to| self.count(Group { does, trid, answered, to }, &mut part);
        match request.kind {
            RequestKind::Read => stamps.main = group(Does::Reads, None),
            RequestKind::Write => {
                stamps.source = group(Does::Sources, None);
                stamps.main = group(Does::Writes, Some(to));
            }
            RequestKind::Inline => stamps.main = group(Does::Writes, Some(to)),
            RequestKind::Atomic => {}
        }
        match request.kind {
            RequestKind::Read => self.reads.expected = self.reads.expected.wrapping_add(pieces),
            RequestKind::Write | RequestKind::Inline => {
                if answered {
                    self.acks.expected = self.acks.expected.wrapping_add(arrivals);
                }
                let leaving = &mut self.leaving[usize::from(answered)];
                leaving.sent.expected = leaving.sent.expected.wrapping_add(pieces);
                if request.kind == RequestKind::Write {
                    leaving.queue.push_back((leaving.sent.expected, stamps.source));
                }
            }
            RequestKind::Atomic => {}
        }
        stamps.before = self.order(request, to, stamps.main);
        stamps
    }

    /// The next count of a group.
    fn count(&mut self, group: Group, part: &mut impl FnMut(Does) -> Part) -> Stamp {
        let parts = &mut self.parts;
        let at = *self.groups.entry(group).or_insert_with(|| {
            parts.push((group, Stamp { part: part(group.does), count: 0 }));
            parts.len() - 1
        });
        if !self.open.contains(&at) {
            self.open.push(at);
        }
        let stamp = &mut parts[at].1;
        stamp.count += 1;
        *stamp
    }

    /// What comes before a request on its channel; the request comes before the next ones.
    fn order(&mut self, request: &Request, to: (Spot, u16), stamp: Stamp) -> Arc<[Stamp]> {
        let control = self.control[usize::from(request.initiator) % self.control.len()];
        let in_link = std::mem::replace(&mut self.linked, request.linked) || request.linked;
        let vc = match control & ctrl::VC_STATIC {
            0 if in_link => LINK,
            0 => return Arc::default(),
            _ => control >> ctrl::STATIC_VC_SHIFT & 7,
        };
        let before = self.channels.entry(Channel { to, vc }).or_default();
        let earlier = before.clone();
        if matches!(request.kind, RequestKind::Write | RequestKind::Inline) {
            let others = earlier.iter().filter(|other| other.part != stamp.part);
            *before = others.copied().chain([stamp]).collect();
        }
        earlier
    }

    /// A core loads counter `index`. Says whether it learns all that is [`Niu::seen`].
    pub(super) fn shows(&mut self, index: usize, value: u32) -> bool {
        let trid = |first: usize| u8::try_from(index - first).unwrap_or(0);
        match index {
            c::MST_RD_RESP_RECEIVED => {
                let all = self.reads.all(value);
                all && self.over(|group| group.does == Does::Reads)
            }
            c::MST_WR_ACK_RECEIVED => {
                let all = self.acks.all(value);
                all && self.over(|group| group.does != Does::Reads && group.answered)
            }
            c::MST_NONPOSTED_WR_REQ_SENT => self.left(1, value),
            c::MST_POSTED_WR_REQ_SENT => self.left(0, value),
            c::MST_REQS_OUTSTANDING_ID..c::MST_WRITE_REQS_OUTGOING_ID => {
                let id = trid(c::MST_REQS_OUTSTANDING_ID);
                // The first of several answers to a multicast already makes the count zero.
                let one = |group: &Group| group.to.is_none_or(|(_, receivers)| receivers <= 1);
                value == 0 && self.over(|group| group.trid == id && group.answered && one(group))
            }
            c::MST_WRITE_REQS_OUTGOING_ID..c::SLV_ATOMIC_RESP_SENT => {
                let id = trid(c::MST_WRITE_REQS_OUTGOING_ID);
                value == 0 && self.over(|group| group.does == Does::Sources && group.trid == id)
            }
            _ => false,
        }
    }

    /// All requests of some groups are over.
    fn over(&mut self, which: impl Fn(&Group) -> bool) -> bool {
        let (parts, seen, version) = (&self.parts, &mut self.seen, &mut self.version);
        self.open.retain(|&at| {
            let (group, stamp) = &parts[at];
            let over = which(group);
            if over {
                seen.learn(*stamp);
                *version += 1;
            }
            !over
        });
        true
    }

    /// So many writes have left.
    fn left(&mut self, answered: usize, value: u32) -> bool {
        let Leaving { sent, queue } = &mut self.leaving[answered];
        sent.all(value);
        let count = value.wrapping_sub(sent.base);
        while let Some(&(number, stamp)) = queue.front() {
            if count.wrapping_sub(number) > u32::MAX / 2 {
                break;
            }
            self.seen.learn(stamp);
            self.version += 1;
            queue.pop_front();
        }
        true
    }
}
