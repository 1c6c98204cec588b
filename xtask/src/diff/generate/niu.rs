//! Shared parts of the NoC programs: issuing a request, waiting for its responses, and computing
//! the changes of all counters.
//!
//! Follows `BlackholeA0/NoC/MemoryMap.md` (request initiators) and `Counters.md`.

use std::fmt;

use tilework_abi::noc::{self, NocRect, NocXy, atomic, counter, ctrl, init};
use tilework_riscv::Op as Rv;

use super::super::rng::Rng;
use super::{POSTED_RETURNS, RETURNS};
use crate::asm::{Asm, Reg};

/// Base of the initiator; a value; another; a loop counter; base of the NIU.
const INIT: Reg = 5;
const VALUE: Reg = 6;
const OTHER: Reg = 7;
const TURNS: Reg = 8;
const NIU: Reg = 9;

/// Iterations of an empty loop, more than enough for any posted request to arrive.
const POSTED_TURNS: u32 = 4000;

/// The action of a request. Addresses are in L1 unless the other end is DRAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// `len` bytes of `from` to the sender's `to`.
    Read { from: ((u8, u8), u32), to: u32, len: u32 },
    /// `len` bytes of the sender's `from` to `to`.
    Write { from: u32, to: ((u8, u8), u32), len: u32 },
    /// The bytes under `mask` of the 32 at the sender's `from` to `to`.
    WriteMasked { from: u32, to: ((u8, u8), u32), mask: u32 },
    /// `len` bytes of the sender's `from` to `to` of every tile of a rectangle.
    Multicast { from: u32, rect: ((u8, u8), (u8, u8)), receivers: u32, to: u32, len: u32, with_sender: bool },
    /// One word to a register.
    Inline { to: ((u8, u8), u32), data: u32 },
    /// An atomic on a word; the old value goes to the sender's `back`.
    Atomic { on: ((u8, u8), u32), op: u32, data: u32, back: u32 },
}

/// A request with all its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// What it does.
    pub action: Action,
    /// The NoC.
    pub noc: u32,
    /// The initiator.
    pub buffer: u32,
    /// Posted: no response.
    pub posted: bool,
    /// Transaction id.
    pub id: u32,
    /// Static virtual channel instead of a dynamic one.
    pub static_vc: bool,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, noc, buffer, posted, id, static_vc } = self;
        write!(f, "NoC {noc} initiator {buffer} id {id}")?;
        if *posted {
            f.write_str(" posted")?;
        }
        if *static_vc {
            f.write_str(" static vc")?;
        }
        write!(f, ": {action:x?}")
    }
}

impl Request {
    /// A random way to send `action`.
    pub(crate) fn new(rng: &mut Rng, action: Action) -> Self {
        let posted = !matches!(action, Action::Read { .. }) && rng.one_in(4);
        let action = match action {
            Action::Atomic { on, op, data, back } if posted && back < POSTED_RETURNS => {
                Action::Atomic { on, op, data, back: back - RETURNS + POSTED_RETURNS }
            }
            other => other,
        };
        Self {
            action,
            noc: rng.within(0..2),
            buffer: rng.within(0..noc::CMD_BUFS),
            posted,
            id: if rng.one_in(2) { 0 } else { rng.within(0..16) },
            static_vc: rng.one_in(3),
        }
    }

    /// `NOC_CTRL`.
    fn control(&self) -> u32 {
        let mut bits = match self.action {
            Action::Read { .. } => ctrl::CMD_RD,
            Action::Write { .. } => ctrl::CMD_WR,
            Action::WriteMasked { .. } => ctrl::CMD_WR | ctrl::WR_BE,
            Action::Multicast { with_sender, .. } => {
                let sender = if with_sender { ctrl::BRCST_SRC_INCLUDE } else { 0 };
                ctrl::CMD_WR | ctrl::BRCST | ctrl::PATH_RESERVE | sender
            }
            Action::Inline { .. } => ctrl::CMD_WR | ctrl::WR_INLINE,
            Action::Atomic { .. } => ctrl::CMD_AT,
        };
        if !self.posted {
            bits |= ctrl::RESP_MARKED;
        }
        if self.static_vc {
            let vc =
                if matches!(self.action, Action::Multicast { .. }) { noc::vc::MULTICAST } else { noc::vc::UNICAST };
            bits |= ctrl::VC_STATIC | vc << ctrl::STATIC_VC_SHIFT;
        }
        bits
    }

    /// Target address and coordinates, return address and coordinates, length or opcode or mask,
    /// immediate data; sent by `own`.
    fn fields(&self, own: (u8, u8)) -> Fields {
        let xy = |(x, y)| NocXy::new(x, y).encode();
        let own = xy(own);
        match self.action {
            Action::Read { from, to, len } => Fields::new((from.1, xy(from.0)), (to, own), len, 0),
            Action::Write { from, to, len } => Fields::new((from, own), (to.1, xy(to.0)), len, 0),
            Action::WriteMasked { from, to, mask } => Fields::new((from, own), (to.1, xy(to.0)), mask, 0),
            Action::Multicast { from, rect: (a, b), to, len, .. } => {
                let rect = NocRect { start: NocXy::new(a.0, a.1), end: NocXy::new(b.0, b.1) };
                let rect = if self.noc == 0 { rect.encode() } else { rect.encode_noc1() };
                Fields::new((from, own), (to, rect), len, 0)
            }
            // The whole word; the mask is ignored for registers (MemoryMap.md).
            Action::Inline { to, data } => Fields::new((to.1, xy(to.0)), (0, own), 0xF << (to.1 & 0x1C), data),
            Action::Atomic { on, op, data, back } => Fields::new((on.1, xy(on.0)), (back, own), op, data),
        }
    }

    /// The counter that responses to this request increment, and by how much.
    fn answers(&self) -> Option<(usize, u32)> {
        match self.action {
            Action::Read { .. } => Some((counter::MST_RD_RESP_RECEIVED, 1)),
            _ if self.posted => None,
            Action::Atomic { .. } => Some((counter::MST_ATOMIC_RESP_RECEIVED, 1)),
            Action::Multicast { receivers, .. } => Some((counter::MST_WR_ACK_RECEIVED, receivers)),
            _ => Some((counter::MST_WR_ACK_RECEIVED, 1)),
        }
    }

    /// Appends the request, sent by tile `own`, and the wait for its responses or, if posted, for
    /// its arrival.
    pub(crate) fn emit(&self, asm: &mut Asm, own: (u8, u8)) {
        let niu = noc::niu_base(self.noc);
        asm.li(NIU, niu);
        asm.li(INIT, niu + self.buffer * noc::CMD_BUF_STRIDE);
        let answers = self.answers();
        if let Some((index, by)) = answers {
            asm.lw(OTHER, NIU, noc::COUNTERS + 4 * index as u32);
            asm.addi(OTHER, OTHER, by.cast_signed());
        }
        for (field, value) in self.fields(own).0 {
            asm.li(VALUE, value);
            asm.sw(VALUE, INIT, field);
        }
        asm.li(VALUE, self.id << noc::TAG_TRID_SHIFT);
        asm.sw(VALUE, INIT, init::PACKET_TAG);
        asm.li(VALUE, self.control());
        asm.sw(VALUE, INIT, init::CTRL);
        asm.li(VALUE, 1);
        asm.sw(VALUE, INIT, init::CMD_CTRL);
        let accepted = asm.here();
        asm.lw(VALUE, INIT, init::CMD_CTRL);
        asm.branch(Rv::Bne, VALUE, 0, accepted);
        match answers {
            Some((index, _)) => {
                let again = asm.here();
                asm.lw(VALUE, NIU, noc::COUNTERS + 4 * index as u32);
                asm.branch(Rv::Bne, VALUE, OTHER, again);
            }
            None => asm.delay(TURNS, POSTED_TURNS),
        }
        asm.fence();
    }
}

/// The fields of an initiator with their values.
struct Fields([(u32, u32); 8]);

impl Fields {
    fn new(target: (u32, u32), back: (u32, u32), length: u32, data: u32) -> Self {
        Self([
            (init::TARG_ADDR_LO, target.0),
            (init::TARG_ADDR_MID, 0),
            (init::TARG_ADDR_HI, target.1),
            (init::RET_ADDR_LO, back.0),
            (init::RET_ADDR_MID, 0),
            (init::RET_ADDR_HI, back.1),
            (init::AT_LEN_BE, length),
            (init::AT_DATA, data),
        ])
    }
}

/// A random atomic for the word at `addr`: opcode with operands, and data. Any kind if `rare`, else
/// a plain increment.
pub(crate) fn atomic(rng: &mut Rng, addr: u32, rare: bool) -> (u32, u32) {
    let word = addr >> 2 & 3;
    match if rare { rng.within(0..5) } else { 5 } {
        // Atomics.md: the mask has a bit for each 16 bits of the 16 bytes; only this word's two are
        // ours to change.
        0 => (atomic::SWAP << atomic::OP_SHIFT | rng.within(1..4) << (2 * word), rng.word()),
        1 => (atomic::SWAP_4B << atomic::OP_SHIFT | word, rng.word()),
        2 => {
            let (compare, set) = (rng.within(0..4), rng.within(0..16));
            (atomic::CAS << atomic::OP_SHIFT | set << 6 | compare << 2 | word, 0)
        }
        3 | 4 => (increment(rng.within(0..32), addr), rng.edge()),
        _ => (increment(31, addr), rng.edge()),
    }
}

/// The opcode of an increment within the low `width + 1` bits of the word at `addr`.
pub(crate) const fn increment(width: u32, addr: u32) -> u32 {
    atomic::INCR_GET << atomic::OP_SHIFT | width << atomic::WRAP_SHIFT | (addr >> 2 & 3)
}

/// Counters of a NIU that are compared: those that software uses to wait for its requests. ttsim
/// has only these; the tests of `tilework-sim` check the others against Counters.md.
pub(crate) fn counters() -> impl Iterator<Item = u32> {
    use counter::{
        MST_ATOMIC_RESP_RECEIVED, MST_NONPOSTED_WR_REQ_SENT, MST_POSTED_ATOMIC_SENT, MST_POSTED_WR_REQ_SENT,
        MST_RD_RESP_RECEIVED, MST_REQS_OUTSTANDING_ID, MST_WR_ACK_RECEIVED,
    };
    let single = [
        MST_ATOMIC_RESP_RECEIVED,
        MST_WR_ACK_RECEIVED,
        MST_RD_RESP_RECEIVED,
        MST_POSTED_ATOMIC_SENT,
        MST_NONPOSTED_WR_REQ_SENT,
        MST_POSTED_WR_REQ_SENT,
    ];
    // Outstanding and outgoing requests of 16 ids each.
    single.into_iter().chain(MST_REQS_OUTSTANDING_ID..MST_REQS_OUTSTANDING_ID + 32).map(|index| index as u32)
}

/// Bytes of the counters of both NIUs.
pub(crate) const COUNTER_BYTES: u32 = 2 * NIU_COUNTER_BYTES;
/// Bytes of the counters of one NIU; counter `i` is word `i`.
pub(crate) const NIU_COUNTER_BYTES: u32 = 4 * counter::COUNT as u32;

/// Appends code that stores the counters of both NIUs at `to`, less the values at `since` if given.
pub(crate) fn take_counters(asm: &mut Asm, to: u32, since: Option<u32>) {
    for noc in 0..2 {
        asm.li(NIU, noc::niu_base(noc) + noc::COUNTERS);
        asm.li(INIT, to + noc * NIU_COUNTER_BYTES);
        asm.li(TURNS, since.unwrap_or(to) + noc * NIU_COUNTER_BYTES);
        for i in counters() {
            asm.lw(VALUE, NIU, 4 * i);
            if since.is_some() {
                asm.lw(OTHER, TURNS, 4 * i);
                asm.insn(Rv::Sub, VALUE, VALUE, OTHER, 0);
            }
            asm.sw(VALUE, INIT, 4 * i);
        }
    }
}
