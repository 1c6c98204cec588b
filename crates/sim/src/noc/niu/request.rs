//! Starting a request, whose fields `decode.rs` checks, and sending its packets.
//!
//! The rules for counters are in BlackholeA0/NoC/Counters.md.

use super::Niu;
use super::decode::{
    L1_ACC_AT_EN, L1_BYTES, SPLIT_PAGE, TAG_UNIMPLEMENTED, VC_CLASS_MULTICAST, VC_CLASS_SHIFT, bad, read_align,
    ret_addr, targ_addr,
};
use crate::noc::responder::read_data;
use crate::noc::{Body, Data, Dest, Outbox, Outgoing, Packet, Place, Reply, TileKind};
use crate::probe::{self, RequestId, RequestKind};
use crate::{Cycle, Fault, Memory, timing};
use tilework_abi::noc::{MAX_PACKET_BYTES, NocXy, TAG_TRID_SHIFT, counter, ctrl, init};

/// A request whose packet leaves at a known cycle.
#[must_use = "a request leaves only when its start is handed to `Niu::depart`"]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    /// When its first flit leaves the NIU.
    pub at: Cycle,
    /// What leaves.
    pub leaving: Leaving,
}

/// What leaves an NIU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Leaving {
    /// The request of a read of one packet, of the initiator with this number.
    Read(u8, Box<Packet>),
    /// Another request, or a read that hardware splits.
    Request(Box<Request>),
}

impl Start {
    /// True when the departure reads and changes nothing but the NIU's own registers.
    #[inline]
    pub(crate) fn is_plain_read(&self) -> bool {
        matches!(self.leaving, Leaving::Read(..))
    }
}

/// A checked request of one initiator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    id: RequestId,
    initiator: u8,
    trid: u8,
    action: Action,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Read { from: Place, addr: u64, len: u64, reply: Reply },
    Write { source: u64, to: Dest, addr: u64, len: u64, mask: Option<u64>, reply: Option<Reply> },
    Inline { to: Dest, addr: u64, data: u32, reply: Option<Reply> },
    Atomic { to: Dest, addr: u64, len_be: u32, data: u32, reply: Option<Reply> },
}

impl Action {
    /// Length in bytes where hardware may split the request.
    fn len(&self) -> u64 {
        match self {
            Self::Read { len, .. } | Self::Write { len, .. } => *len,
            Self::Inline { .. } | Self::Atomic { .. } => 4,
        }
    }
    /// Flits of its first packet.
    fn flits(&self) -> u64 {
        let bytes = match self {
            Self::Read { .. } | Self::Atomic { .. } => 0,
            Self::Write { len, .. } => (*len).min(u64::from(MAX_PACKET_BYTES)),
            Self::Inline { .. } => 4,
        };
        1 + bytes.div_ceil(u64::from(tilework_abi::noc::FLIT_BYTES))
    }
}

impl Niu {
    /// Starts the request of a free initiator if it is a read of one packet that nothing is wrong
    /// with; `None`, without effect, for everything else. What [`Niu::start`] does, without what
    /// such a read does not need.
    pub(super) fn start_plain_read(&mut self, buf: usize, at: Cycle) -> Option<Start> {
        let fields = &self.initiators[buf];
        let (control, tag) = (fields.get(init::CTRL), fields.get(init::PACKET_TAG));
        let is_read = control & (ctrl::CMD_MASK | ctrl::BRCST | ctrl::VC_LINKED | L1_ACC_AT_EN) == ctrl::CMD_RD;
        let fits_class = control & ctrl::VC_STATIC == 0 || control >> VC_CLASS_SHIFT & 3 < VC_CLASS_MULTICAST;
        let splits = self.initiators.iter().fold(false, |splits, other| splits | other.splitting);
        if !is_read || !fits_class || tag & TAG_UNIMPLEMENTED != 0 || splits || self.link.is_some() {
            return None;
        }
        let (addr, back) = (targ_addr(fields), ret_addr(fields));
        let len = fields.pair(init::AT_LEN_BE, init::AT_LEN_BE_1);
        let [targ, ret] = [init::TARG_ADDR_HI, init::RET_ADDR_HI].map(|field| fields.get(field));
        let (source, dest) = (self.known_end(0, targ)?, self.known_end(1, ret)?);
        let is_one = (1..=u64::from(MAX_PACKET_BYTES)).contains(&len) && (addr ^ back) & (source.align - 1) == 0;
        let in_memory = addr.checked_add(len)? <= source.end && back.checked_add(len)? <= L1_BYTES;
        if !is_one || !in_memory || !dest.takes_answers {
            return None;
        }
        let trid = (tag >> TAG_TRID_SHIFT & 0xF) as u8;
        self.count_id(counter::MST_REQS_OUTSTANDING_ID, trid, 1);
        self.initiators[buf].busy = true;
        self.requests += 1;
        let id = RequestId::new(self.place.node, self.noc, self.requests);
        let reply = Reply { to: dest.place, trid, addr: back };
        let packet = self.read_packet(id, source.place, (addr, len as u32), reply);
        let at = self.next_turn(at + timing::NIU_ISSUE, 1);
        Some(Start { at, leaving: Leaving::Read(buf as u8, packet) })
    }

    /// The packet of a read of `len` bytes at `addr` of `from`.
    #[inline]
    fn read_packet(&mut self, id: RequestId, from: Place, (addr, len): (u64, u32), reply: Reply) -> Box<Packet> {
        let body = Body::ReadRequest { addr, len, reply };
        let packet = Packet { noc: self.noc, from: self.place, to: Dest::Unicast(from), id, body };
        match self.spare.take() {
            Some(mut spare) => {
                *spare = packet;
                spare
            }
            None => Box::new(packet),
        }
    }

    /// What coordinate word `word` means, of which the last one of this `side` is kept: 0 is where
    /// reads go to, 1 where their answers do.
    #[inline]
    fn known_end(&mut self, side: usize, word: u32) -> Option<End> {
        let word = NocXy::decode(word).encode();
        match &self.known_ends[side] {
            Some((known, end)) if *known == word => Some(*end),
            _ => self.learn_end(side, word),
        }
    }

    #[inline(never)]
    fn learn_end(&mut self, side: usize, word: u32) -> Option<End> {
        let place = self.place_of(word, "").ok()?;
        let kind = self.kind_of(place);
        let end = kind.l1_bytes().unwrap_or(u64::MAX);
        let end = End { place, end, align: read_align(kind), takes_answers: kind == TileKind::Tensix };
        self.known_ends[side] = Some((word, end));
        Some(end)
    }

    /// Starts the request of initiator `buf`, whose `NOC_CMD_CTRL` software set to 1 at cycle `at`.
    pub(super) fn start(&mut self, buf: usize, at: Cycle) -> Result<Start, Fault> {
        if self.initiators.iter().any(|i| i.splitting) {
            return Err(bad("a request starts while another one is being split", SPLIT_PAGE));
        }
        let action = self.decode(buf)?;
        let link = self.check_link(buf)?;
        let fields = &self.initiators[buf];
        let trid = (fields.get(init::PACKET_TAG) >> TAG_TRID_SHIFT & 0xF) as u8;
        let pieces = action.len().div_ceil(u64::from(MAX_PACKET_BYTES)) as u32;
        let answered = match &action {
            Action::Read { .. } => true,
            Action::Write { reply, .. } | Action::Inline { reply, .. } | Action::Atomic { reply, .. } => {
                reply.is_some()
            }
        };
        // Counters.md, "as software writes to NOC_CMD_CTRL".
        if answered {
            self.count_id(counter::MST_REQS_OUTSTANDING_ID, trid, pieces);
        }
        if let Action::Write { .. } = action {
            self.count_id(counter::MST_WRITE_REQS_OUTGOING_ID, trid, pieces);
        }
        self.link = link;
        self.initiators[buf].busy = true;
        self.initiators[buf].splitting = pieces > 1;
        self.requests += 1;
        let id = RequestId::new(self.place.node, self.noc, self.requests);
        Ok(self.schedule(at + timing::NIU_ISSUE, Request { id, initiator: buf as u8, trid, action }))
    }

    /// A request as observers are told of it.
    pub(crate) fn describe(&self, start: &Start) -> probe::Request {
        let request = match &start.leaving {
            Leaving::Request(request) => request,
            Leaving::Read(initiator, packet) => &Request::of_read(*initiator, packet),
        };
        let Request { id, initiator, trid, action } = request;
        let first = |to: &Dest| match to {
            Dest::Unicast(place) | Dest::Copy(place) => (*place, 1),
            Dest::Multicast(places) | Dest::MulticastY(places) => {
                (places.first().copied().unwrap_or(self.place), places.len() as u16)
            }
        };
        let (kind, (remote, receivers), remote_addr, local_addr, len, answered) = match action {
            Action::Read { from, addr, len, reply } => (RequestKind::Read, (*from, 1), *addr, reply.addr, *len, true),
            Action::Write { source, to, addr, len, reply, .. } => {
                (RequestKind::Write, first(to), *addr, *source, *len, reply.is_some())
            }
            Action::Inline { to, addr, reply, .. } => (RequestKind::Inline, first(to), *addr, 0, 4, reply.is_some()),
            Action::Atomic { to, addr, reply, .. } => {
                let back = reply.map_or(0, |reply| reply.addr);
                (RequestKind::Atomic, first(to), *addr, back, 4, reply.is_some())
            }
        };
        let (noc, linked, remote) = (self.noc, self.link.is_some(), self.grid.spot(remote));
        let (id, initiator, trid) = (*id, *initiator, *trid);
        probe::Request {
            id,
            kind,
            noc,
            initiator,
            trid,
            remote,
            receivers,
            remote_addr,
            local_addr,
            len,
            answered,
            linked,
        }
    }

    /// When a packet of so many flits leaves that is ready at cycle `at`: behind those before it.
    #[inline]
    fn next_turn(&mut self, at: Cycle, flits: u64) -> Cycle {
        let at = at.max(self.free_at);
        self.free_at = at + flits * timing::FLIT;
        at
    }

    fn schedule(&mut self, at: Cycle, request: Request) -> Start {
        let at = self.next_turn(at, request.action.flits());
        let leaving = match request.action {
            Action::Read { from, addr, len, reply } if len <= u64::from(MAX_PACKET_BYTES) => {
                Leaving::Read(request.initiator, self.read_packet(request.id, from, (addr, len as u32), reply))
            }
            _ => Leaving::Request(Box::new(request)),
        };
        Start { at, leaving }
    }

    /// Sends the packet of a request whose cycle has come, and updates the counters. Returns
    /// the next piece of a request that hardware splits, to be passed to this function at
    /// its own cycle.
    ///
    /// # Errors
    /// A fault of the memory that the data is read from.
    pub(crate) fn depart(
        &mut self,
        start: Start,
        mem: &mut (impl Memory + ?Sized),
        out: &mut Outbox,
    ) -> Result<Option<Start>, Fault> {
        let at = start.at;
        self.depart_at(start, mem, out).map_err(|fault| self.named(fault, at))
    }

    /// As [`Niu::depart`], of a [plain read](Start::is_plain_read): of this initiator, in this
    /// packet.
    pub(crate) fn depart_plain_read(&mut self, at: Cycle, initiator: u8, packet: Box<Packet>, out: &mut Outbox) {
        for index in [counter::MST_RD_REQ_STARTED, counter::MST_RD_REQ_SENT, counter::MST_CMD_ACCEPTED] {
            self.count(index, 1);
        }
        let initiator = &mut self.initiators[usize::from(initiator)];
        (initiator.busy, initiator.splitting) = (false, false);
        self.send(at, packet, out);
    }

    fn depart_at(
        &mut self,
        start: Start,
        mem: &mut (impl Memory + ?Sized),
        out: &mut Outbox,
    ) -> Result<Option<Start>, Fault> {
        use counter as c;
        let at = start.at;
        let request = match start.leaving {
            Leaving::Read(initiator, packet) => {
                self.depart_plain_read(at, initiator, packet, out);
                return Ok(None);
            }
            Leaving::Request(request) => *request,
        };
        let piece = request.action.len().min(u64::from(MAX_PACKET_BYTES));
        let rest = if request.action.len() > piece { request.rest(piece) } else { None };
        let (to, body) = match request.action {
            Action::Read { from, addr, reply, .. } => {
                self.count(c::MST_RD_REQ_STARTED, 1);
                self.count(c::MST_RD_REQ_SENT, 1);
                (Dest::Unicast(from), Body::ReadRequest { addr, len: piece as u32, reply })
            }
            Action::Write { source, to, addr, mask, reply, .. } => {
                let data = match mem.is_l1(source).then(|| mem.span(source, piece as usize)).flatten() {
                    Some(bytes) => match Outgoing::start(at, source, bytes) {
                        Some((outgoing, data)) => {
                            mem.leaves(self.noc, outgoing);
                            data
                        }
                        None => Data::from(bytes),
                    },
                    None => read_data(at, source, piece as u32, mem)?,
                };
                let body = Body::WriteRequest { addr, data, mask, reply };
                let (started, sent, words) = write_sent_counters(reply.is_some());
                self.count(started, 1);
                self.count(sent, 1);
                self.count(words, body.data_flits() as u32);
                self.uncount_id(c::MST_WRITE_REQS_OUTGOING_ID, request.trid);
                (to, body)
            }
            Action::Inline { to, addr, data, reply } => {
                let (started, sent, _) = write_sent_counters(reply.is_some());
                self.count(started, 1);
                self.count(sent, 1);
                let data = data.to_le_bytes().into();
                (to, Body::WriteRequest { addr, data, mask: None, reply })
            }
            Action::Atomic { to, addr, len_be, data, reply } => {
                if reply.is_some() {
                    self.count(c::MST_NONPOSTED_ATOMIC_STARTED, 1);
                    self.count(c::MST_NONPOSTED_ATOMIC_SENT, 1);
                } else {
                    self.count(c::MST_POSTED_ATOMIC_SENT, 1);
                }
                (to, Body::AtomicRequest { addr, len_be, data, reply })
            }
        };
        self.count(c::MST_CMD_ACCEPTED, 1);
        self.send(at, Packet { noc: self.noc, from: self.place, to, id: request.id, body }, out);
        let initiator = &mut self.initiators[usize::from(request.initiator)];
        let Some(rest) = rest else {
            initiator.busy = false;
            initiator.splitting = false;
            return Ok(None);
        };
        initiator.advance(piece);
        Ok(Some(self.schedule(at, rest)))
    }
}

impl Request {
    /// The request of initiator `initiator` that leaves as `packet`.
    fn of_read(initiator: u8, packet: &Packet) -> Self {
        let (&Dest::Unicast(from), &Body::ReadRequest { addr, len, reply }) = (&packet.to, &packet.body) else {
            unreachable!("a read leaves as the request of a read to one place");
        };
        let action = Action::Read { from, addr, len: len.into(), reply };
        Self { id: packet.id, initiator, trid: reply.trid, action }
    }

    /// The rest of a long request after its first `piece` bytes.
    #[cold]
    fn rest(&self, piece: u64) -> Option<Self> {
        let mut rest = self.clone();
        match &mut rest.action {
            Action::Read { addr, len, reply, .. } => {
                *len -= piece;
                *addr += piece;
                reply.addr += piece;
            }
            Action::Write { source, addr, len, .. } => {
                *len -= piece;
                *addr += piece;
                *source += piece;
            }
            Action::Inline { .. } | Action::Atomic { .. } => return None,
        }
        Some(rest)
    }
}

/// One end of a read, as far as what may be wrong with the read depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    place: Place,
    /// Where its memory ends, unless the tile checks that.
    end: u64,
    /// Modulo this both addresses of a read from there must agree.
    align: u64,
    /// Whether answers go there.
    takes_answers: bool,
}

/// Started, sent and data word counters of an outgoing write.
fn write_sent_counters(answered: bool) -> (usize, usize, usize) {
    use counter as c;
    if answered {
        (c::MST_NONPOSTED_WR_REQ_STARTED, c::MST_NONPOSTED_WR_REQ_SENT, c::MST_NONPOSTED_WR_DATA_WORD_SENT)
    } else {
        (c::MST_POSTED_WR_REQ_STARTED, c::MST_POSTED_WR_REQ_SENT, c::MST_POSTED_WR_DATA_WORD_SENT)
    }
}
