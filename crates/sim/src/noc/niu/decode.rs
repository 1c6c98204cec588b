//! What the fields of an initiator ask for, and all that may be wrong with it.
//!
//! Everything that can be checked when software writes `NOC_CMD_CTRL` is checked then, so that a
//! fault names the instruction. The rules for requests are in BlackholeA0/NoC/MemoryMap.md.

use super::pattern::Pattern;
use super::request::Action;
use super::{COUNTERS_PAGE, Initiator, Link, MAP_PAGE, Niu};
use crate::noc::{Dest, Place, Reply, TileKind, atomics};
use crate::{Fault, FaultClass};
use tilework_abi::noc::{MAX_PACKET_BYTES, NocXy, TAG_TRID_SHIFT, ctrl, init};
use tilework_abi::tensix;

const CTRL_PAGE: &str = "BlackholeA0/NoC/MemoryMap.md, NOC_CTRL";
const LEN_PAGE: &str = "BlackholeA0/NoC/MemoryMap.md, NOC_AT_LEN_BE";
pub(super) const SPLIT_PAGE: &str = "BlackholeA0/NoC/Counters.md, Automatic request splitting";
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
pub(super) const TAG_UNIMPLEMENTED: u32 = 1 << 6 | 1 << 9;
/// Bytes of L1 of a Tensix tile.
pub(super) const L1_BYTES: u64 = tensix::L1_SIZE as u64;
/// `NOC_CMD_L1_ACC_AT_EN` (NoC/MemoryMap.md).
pub(super) const L1_ACC_AT_EN: u32 = 1 << 31;
/// The class bits of a static virtual channel number: 0 and 1 for unicast, 2 for multicast
/// (NoC/MemoryMap.md).
pub(super) const VC_CLASS_SHIFT: u32 = ctrl::STATIC_VC_SHIFT + 1;
pub(super) const VC_CLASS_MULTICAST: u32 = 2;
/// Address range of a Tensix tile's registers and local RAMs (BabyRISCV/README.md, "Memory map").
const MMIO: core::ops::Range<u64> = tensix::LOCAL_BASE as u64..1 << 32;

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
pub(super) fn bad(what: impl Into<String>, page: &'static str) -> Fault {
    Fault::new(FaultClass::UndefinedBehavior, what, page)
}

impl Niu {
    /// Checks the rules of `NOC_CMD_VC_LINKED` and returns the transaction that is open afterwards.
    pub(super) fn check_link(&self, buf: usize) -> Result<Option<Link>, Fault> {
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

    pub(super) fn decode(&self, buf: usize) -> Result<Action, Fault> {
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

/// Modulo this both addresses of a read from a tile of this kind must agree.
pub(super) const fn read_align(kind: TileKind) -> u64 {
    match kind {
        TileKind::Dram | TileKind::Pcie => ALIGN_FAR_READ,
        TileKind::Tensix | TileKind::Ethernet => ALIGN,
        TileKind::Arc | TileKind::Other => ALIGN_ARC,
    }
}

pub(super) fn targ_addr(fields: &Initiator) -> u64 {
    fields.pair(init::TARG_ADDR_LO, init::TARG_ADDR_MID)
}

pub(super) fn ret_addr(fields: &Initiator) -> u64 {
    fields.pair(init::RET_ADDR_LO, init::RET_ADDR_MID)
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
