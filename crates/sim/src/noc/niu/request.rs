//! Starting a request: from the fields of an initiator to a checked [`Request`], and from there to
//! packets.
//!
//! Everything that can be checked when software writes `NOC_CMD_CTRL` is checked then, so that a
//! fault names the instruction. The rules for requests are in BlackholeA0/NoC/MemoryMap.md, those
//! for counters in BlackholeA0/NoC/Counters.md.

use super::pattern::Pattern;
use super::{COUNTERS_PAGE, Link, MAP_PAGE, Niu};
use crate::noc::responder::read_data;
use crate::noc::{Body, Data, Dest, Outbox, Outgoing, Packet, Place, Reply, TileKind, atomics};
use crate::probe::{self, RequestId, RequestKind};
use crate::{Cycle, Fault, FaultClass, Memory, timing};
use tilework_abi::noc::{MAX_PACKET_BYTES, NocXy, TAG_TRID_SHIFT, counter, ctrl, init};
use tilework_abi::tensix;

const CTRL_PAGE: &str = "BlackholeA0/NoC/MemoryMap.md, NOC_CTRL";
const LEN_PAGE: &str = "BlackholeA0/NoC/MemoryMap.md, NOC_AT_LEN_BE";
const SPLIT_PAGE: &str = "BlackholeA0/NoC/Counters.md, Automatic request splitting";
const ALIGN_PAGE: &str = "the alignments in the public firmware headers (noc_parameters.h)";
/// Low bits of both addresses that must agree, for reads of DRAM and host memory and for everything
/// else (same header).
const ALIGN_FAR_READ: u64 = 64;
const ALIGN: u64 = 16;
/// The header names no alignment for the ARC tile, whose registers are words.
const ALIGN_ARC: u64 = 4;
/// A request that hardware splits needs addresses aligned like this (Counters.md, "Automatic
/// request splitting").
const ALIGN_SPLIT: u64 = 64;
/// `NOC_PACKET_TAG` bits 6 and 9 (NoC/MemoryMap.md): delivery to the overlay, header store.
const TAG_UNIMPLEMENTED: u32 = 1 << 6 | 1 << 9;
/// Bytes of L1 of a Tensix tile.
const L1_BYTES: u64 = tensix::L1_SIZE as u64;
/// `NOC_CMD_L1_ACC_AT_EN` (NoC/MemoryMap.md).
const L1_ACC_AT_EN: u32 = 1 << 31;
/// The class bits of a static virtual channel number: 0 and 1 for unicast, 2 for multicast
/// (NoC/MemoryMap.md).
const VC_CLASS_SHIFT: u32 = ctrl::STATIC_VC_SHIFT + 1;
const VC_CLASS_MULTICAST: u32 = 2;
/// Address range of a Tensix tile's registers and local RAMs (BabyRISCV/README.md, "Memory map").
const MMIO: core::ops::Range<u64> = tensix::LOCAL_BASE as u64..1 << 32;

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
enum Action {
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

/// The kind of memory at an address of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Space {
    L1,
    Mmio,
    /// Memory of a tile without L1; the tile checks it.
    Device,
}

#[cold]
#[inline(never)]
fn bad(what: impl Into<String>, page: &'static str) -> Fault {
    Fault::new(FaultClass::UndefinedBehavior, what, page)
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

    /// Checks the rules of `NOC_CMD_VC_LINKED` and returns the transaction that is open afterwards.
    fn check_link(&self, buf: usize) -> Result<Option<Link>, Fault> {
        let fields = &self.initiators[buf];
        let control = fields.get(init::CTRL);
        let to_return = control & ctrl::CMD_MASK == ctrl::CMD_WR && control & ctrl::WR_INLINE == 0;
        let word = fields.get(if to_return { init::RET_ADDR_HI } else { init::TARG_ADDR_HI });
        let multicast = control & ctrl::BRCST != 0;
        let link = Link {
            dest: word & if multicast { 0xFF_FFFF } else { 0xFFF },
            multicast,
            y_major: multicast && control & ctrl::BRCST_XY != 0,
        };
        if self.link.is_some_and(|open| open != link) {
            return Err(bad(
                "a request goes elsewhere while a linked transaction is open (NOC_CMD_VC_LINKED)",
                CTRL_PAGE,
            ));
        }
        Ok((control & ctrl::VC_LINKED != 0).then_some(link))
    }

    fn decode(&self, buf: usize) -> Result<Action, Fault> {
        let fields = &self.initiators[buf];
        let control = fields.get(init::CTRL);
        check_flags(control, fields.get(init::PACKET_TAG))?;
        match control & ctrl::CMD_MASK {
            ctrl::CMD_RD => self.decode_read(buf),
            ctrl::CMD_AT => self.decode_atomic(buf),
            ctrl::CMD_WR if control & ctrl::WR_INLINE != 0 => self.decode_inline(buf),
            ctrl::CMD_WR => self.decode_write(buf),
            _ => Err(bad("request type 3 is reserved", CTRL_PAGE)),
        }
    }

    fn decode_read(&self, buf: usize) -> Result<Action, Fault> {
        let fields = &self.initiators[buf];
        let (addr, back) = (targ_addr(fields), ret_addr(fields));
        let len = fields.pair(init::AT_LEN_BE, init::AT_LEN_BE_1);
        let from = self.place_of(fields.get(init::TARG_ADDR_HI), "NOC_TARG_ADDR_HI")?;
        let reply = self.reply(buf, init::RET_ADDR_HI, "NOC_RET_ADDR_HI", back)?;
        let kind = self.kind_of(from);
        let source = Self::space(kind, addr, len, "read from NOC_TARG_ADDR")?;
        // Answers go to Tensix tiles only.
        let dest = Self::space(TileKind::Tensix, back, len, "read to NOC_RET_ADDR")?;
        check_length(len, addr, back, source, dest, read_align(kind))?;
        Ok(Action::Read { from, addr, len, reply })
    }

    fn decode_write(&self, buf: usize) -> Result<Action, Fault> {
        let fields = &self.initiators[buf];
        let (mut source, mut addr) = (targ_addr(fields), ret_addr(fields));
        let mut len = fields.pair(init::AT_LEN_BE, init::AT_LEN_BE_1);
        let (to, any) = self.dest(buf, init::RET_ADDR_HI, "NOC_RET_ADDR_HI")?;
        let mut mask = None;
        if fields.get(init::CTRL) & ctrl::WR_BE != 0 {
            if self.kind_of(any).l1_bytes().is_some() && MMIO.contains(&addr) {
                len = 4; // the mask is ignored
            } else {
                if len == 0 {
                    return Err(bad("a write whose byte-enable mask is empty", LEN_PAGE));
                }
                mask = Some(len).filter(|m| *m != u64::MAX);
                len = u64::from(64 - len.leading_zeros());
                source &= !(ALIGN - 1);
                addr &= !(ALIGN - 1);
            }
        }
        let from_space = Self::space(self.kind_of(self.place), source, len, "write from NOC_TARG_ADDR")?;
        let to_space = Self::space(self.kind_of(any), addr, len, "write to NOC_RET_ADDR")?;
        let align = match self.kind_of(any) {
            TileKind::Arc | TileKind::Other => ALIGN_ARC,
            _ => ALIGN,
        };
        check_length(len, source, addr, from_space, to_space, align)?;
        let answered = fields.get(init::CTRL) & ctrl::RESP_MARKED != 0;
        let reply = answered.then(|| self.reply(buf, init::TARG_ADDR_HI, "NOC_TARG_ADDR_HI", 0)).transpose()?;
        Ok(Action::Write { source, to, addr, len, mask, reply })
    }

    fn decode_inline(&self, buf: usize) -> Result<Action, Fault> {
        let fields = &self.initiators[buf];
        let addr = targ_addr(fields);
        let (to, any) = self.dest(buf, init::TARG_ADDR_HI, "NOC_TARG_ADDR_HI")?;
        if self.kind_of(any).l1_bytes().is_none() {
            return Err(bad("an inline write to a tile that is not Tensix or Ethernet", CTRL_PAGE).at_addr(addr));
        }
        match Self::space(self.kind_of(any), addr, 4, "inline write to NOC_TARG_ADDR")? {
            Space::Mmio if addr.is_multiple_of(4) => {}
            Space::Mmio => return Err(unaligned_register(addr)),
            _ => {
                let what = "an inline write to L1, which a hardware bug makes unsafe";
                return Err(bad(what, LEN_PAGE).at_addr(addr));
            }
        }
        // The page sends the acknowledgement to the initiating NIU, whatever NOC_RET_ADDR says.
        let trid = (fields.get(init::PACKET_TAG) >> TAG_TRID_SHIFT & 0xF) as u8;
        let reply =
            (fields.get(init::CTRL) & ctrl::RESP_MARKED != 0).then_some(Reply { to: self.place, trid, addr: 0 });
        Ok(Action::Inline { to, addr, data: fields.get(init::AT_DATA), reply })
    }

    fn decode_atomic(&self, buf: usize) -> Result<Action, Fault> {
        let fields = &self.initiators[buf];
        let addr = targ_addr(fields);
        let (to, any) = self.dest(buf, init::TARG_ADDR_HI, "NOC_TARG_ADDR_HI")?;
        let len_be = fields.get(init::AT_LEN_BE);
        atomics::Op::decode(len_be)?;
        atomics::check_address(addr, self.is_l1(any, addr))?;
        let back = ret_addr(fields);
        let reply = (fields.get(init::CTRL) & ctrl::RESP_MARKED != 0)
            .then(|| self.reply(buf, init::RET_ADDR_HI, "NOC_RET_ADDR_HI", back))
            .transpose()?;
        if let Some(reply) = reply {
            atomics::check_address(back, self.is_l1(reply.to, back))?;
        }
        Ok(Action::Atomic { to, addr, len_be, data: fields.get(init::AT_DATA), reply })
    }

    /// The destination in coordinate field `field`, and one of its tiles.
    fn dest(&self, buf: usize, field: u32, name: &str) -> Result<(Dest, Place), Fault> {
        let fields = &self.initiators[buf];
        let (word, control) = (fields.get(field), fields.get(init::CTRL));
        if control & ctrl::BRCST == 0 {
            let place = self.place_of(word, name)?;
            return Ok((Dest::Unicast(place), place));
        }
        let except = (control & ctrl::BRCST_SRC_INCLUDE == 0).then_some(self.place);
        let mut tiles = self.rectangle(word, except)?;
        let exclude = fields.get(init::BRCST_EXCLUDE);
        if exclude != 0 {
            // The corners have a translation, since the rectangle was found.
            let corner = |word| self.raw_of(word).unwrap_or(NocXy::decode(word));
            let (start, end) = (corner(word >> 12), corner(word));
            let pattern = Pattern::decode(exclude);
            pattern.check(start, end)?;
            tiles = tiles.iter().copied().filter(|&place| pattern.receives(start, self.raw(place))).collect();
            if tiles.is_empty() {
                return Err(bad("NOC_BRCST_EXCLUDE leaves no tile of the rectangle to receive", CTRL_PAGE));
            }
        }
        let any = tiles.first().copied().unwrap_or(self.place);
        let y_major = control & ctrl::BRCST_XY != 0;
        Ok((if y_major { Dest::MulticastY(tiles) } else { Dest::Multicast(tiles) }, any))
    }

    #[inline]
    fn reply(&self, buf: usize, field: u32, name: &str, addr: u64) -> Result<Reply, Fault> {
        let fields = &self.initiators[buf];
        let to = self.place_of(fields.get(field), name)?;
        let trid = (fields.get(init::PACKET_TAG) >> TAG_TRID_SHIFT & 0xF) as u8;
        if self.kind_of(to) != TileKind::Tensix {
            return Err(bad(format!("{name} sends an answer to a tile that is not Tensix"), MAP_PAGE));
        }
        Ok(Reply { to, trid, addr })
    }

    fn is_l1(&self, place: Place, addr: u64) -> bool {
        self.kind_of(place).l1_bytes().is_some_and(|bytes| addr < bytes)
    }

    /// The kind of memory that `len` bytes at `addr` of a tile lie in.
    #[inline]
    fn space(kind: TileKind, addr: u64, len: u64, what: &str) -> Result<Space, Fault> {
        let Some(l1) = kind.l1_bytes() else { return Ok(Space::Device) };
        match addr.checked_add(len) {
            Some(end) if end <= l1 => Ok(Space::L1),
            Some(end) if addr >= MMIO.start && end <= MMIO.end => Ok(Space::Mmio),
            _ => Err(in_no_space(addr, len, what)),
        }
    }
}

#[cold]
fn in_no_space(addr: u64, len: u64, what: &str) -> Fault {
    let why = "are neither in L1 nor in the registers of a Tensix or Ethernet tile";
    bad(format!("{what}: {len} bytes at {addr:#x} {why}"), LEN_PAGE).at_addr(addr)
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

/// Modulo this both addresses of a read from a tile of this kind must agree.
const fn read_align(kind: TileKind) -> u64 {
    match kind {
        TileKind::Dram | TileKind::Pcie => ALIGN_FAR_READ,
        TileKind::Tensix | TileKind::Ethernet => ALIGN,
        TileKind::Arc | TileKind::Other => ALIGN_ARC,
    }
}

fn targ_addr(fields: &super::Initiator) -> u64 {
    fields.pair(init::TARG_ADDR_LO, init::TARG_ADDR_MID)
}

fn ret_addr(fields: &super::Initiator) -> u64 {
    fields.pair(init::RET_ADDR_LO, init::RET_ADDR_MID)
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

/// Checks the flags that do not depend on addresses.
fn check_flags(control: u32, tag: u32) -> Result<(), Fault> {
    let multicast = control & ctrl::BRCST != 0;
    if control & L1_ACC_AT_EN != 0 {
        return Err(bad("NOC_CMD_L1_ACC_AT_EN, which a hardware bug makes unsafe", CTRL_PAGE));
    }
    if multicast && control & ctrl::CMD_MASK == ctrl::CMD_RD {
        return Err(bad("a multicast read request", CTRL_PAGE));
    }
    let class = control >> VC_CLASS_SHIFT & 3;
    let fits = if multicast { class == VC_CLASS_MULTICAST } else { class < VC_CLASS_MULTICAST };
    if control & ctrl::VC_STATIC != 0 && !fits {
        let kind = if multicast { "multicast" } else { "unicast" };
        return Err(bad(format!("a {kind} request on a static virtual channel of class {class}"), CTRL_PAGE));
    }
    if tag & TAG_UNIMPLEMENTED != 0 {
        let what = "NOC_PACKET_TAG with overlay delivery or header store";
        return Err(Fault::new(FaultClass::UnimplementedFunctionality, what, MAP_PAGE));
    }
    Ok(())
}

/// Checks the length of a read or write, and its alignment for the two addresses.
#[inline]
fn check_length(len: u64, targ: u64, ret: u64, a: Space, b: Space, align: u64) -> Result<(), Fault> {
    let in_memory = a != Space::Mmio && b != Space::Mmio;
    // Of one packet between memories, as most are.
    if in_memory && (1..=u64::from(MAX_PACKET_BYTES)).contains(&len) && (targ ^ ret) & (align - 1) == 0 {
        return Ok(());
    }
    check_rare_length(len, targ, ret, a, b, align)
}

#[inline(never)]
fn check_rare_length(len: u64, targ: u64, ret: u64, a: Space, b: Space, align: u64) -> Result<(), Fault> {
    if len == 0 {
        return Err(bad("a request of 0 bytes", LEN_PAGE).at_addr(targ));
    }
    for (space, addr) in [(a, targ), (b, ret)] {
        if space == Space::Mmio {
            if len != 4 {
                let what = format!("a request of {len} bytes on registers, which take 4 at a time");
                return Err(bad(what, LEN_PAGE).at_addr(addr));
            }
            if !addr.is_multiple_of(4) {
                return Err(unaligned_register(addr));
            }
        }
    }
    if a != Space::Mmio && b != Space::Mmio && (targ ^ ret) & (align - 1) != 0 {
        let what = format!("NOC_TARG_ADDR {targ:#x} and NOC_RET_ADDR {ret:#x} differ modulo {align}");
        return Err(bad(what, ALIGN_PAGE));
    }
    if len > u64::from(MAX_PACKET_BYTES) && (targ | ret) & (ALIGN_SPLIT - 1) != 0 {
        let what = format!("a request of {len} bytes, which hardware splits, at {targ:#x} and {ret:#x}");
        return Err(bad(what, SPLIT_PAGE));
    }
    if len.div_ceil(u64::from(MAX_PACKET_BYTES)) > 0xFF {
        return Err(bad(format!("a request of {len} bytes overflows its 8-bit counters"), COUNTERS_PAGE));
    }
    Ok(())
}

/// Whether a fault is that of a request whose addresses are not aligned alike.
pub(crate) fn is_misaligned(fault: &Fault) -> bool {
    fault.read == ALIGN_PAGE
}

#[cold]
fn unaligned_register(addr: u64) -> Fault {
    bad("a request on a register address that is not a multiple of 4", LEN_PAGE).at_addr(addr)
}
