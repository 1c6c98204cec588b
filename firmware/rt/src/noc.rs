//! The network on chip, through one of the tile's two interface units (NIUs).
//!
//! Follows BlackholeA0/NoC/MemoryMap.md (request initiators, called command buffers here as in all firmware) and
//! BlackholeA0/NoC/Counters.md. A [`Noc`] counts what it has issued; a barrier waits until the NIU's own counter has come as
//! far. Both wrap, so they are compared by the sign of their difference. The NIU counts for all cores of the tile together: two
//! cores that use one NIU at the same time must keep to requests that they can tell apart (command buffers, transaction ids).
//!
//! Three things about Blackhole shape this module:
//! - an inline write must not target L1, so small writes to L1 go through a scratch word ([`Noc::write_word`]);
//! - the NIU replaces the coordinates of a request by translated ones, so coordinates are written anew for every request,
//!   also by the stateful variants;
//! - requests on different virtual channels may overtake each other, so all unicast requests use one static channel.

use tilework_abi::cq::count::WrapCount;
use tilework_abi::l1;
use tilework_abi::noc::{
    self, CMD_BUF_STRIDE, MAX_PACKET_BYTES, PCIE_HOST_MID, TAG_TRID_SHIFT, atomic, counter, ctrl, init, niu_base, vc,
};

use crate::KernelContext;
use crate::reg::{compiler_fence, publish, read, write};

/// One of a NIU's four command buffers (request initiators), 0 to 3.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CmdBuf(pub u32);

/// Which command buffer a core uses for what.
#[derive(Clone, Copy)]
pub struct CmdBufs {
    /// Writes from L1.
    pub write: CmdBuf,
    /// Reads.
    pub read: CmdBuf,
    /// Inline writes to registers.
    pub reg: CmdBuf,
    /// Atomics.
    pub atomic: CmdBuf,
}

impl CmdBufs {
    /// The partition of a core that has the NIU for itself.
    pub const STANDARD: Self = Self { write: CmdBuf(0), read: CmdBuf(1), reg: CmdBuf(2), atomic: CmdBuf(3) };
    /// The dispatcher's share of NoC 1 (seed figure 8): everything through buffer 3.
    pub const DISPATCH_D: Self = Self { write: CmdBuf(3), read: CmdBuf(3), reg: CmdBuf(3), atomic: CmdBuf(3) };
    /// The dispatch subordinate's share of NoC 1 (seed figure 8): buffers 0 to 2.
    pub const DISPATCH_S: Self = Self { write: CmdBuf(0), read: CmdBuf(0), reg: CmdBuf(1), atomic: CmdBuf(2) };
}

/// A place in some tile's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NocAddr {
    /// Encoded translated coordinates, y << 6 | x; a rectangle for multicasts.
    pub xy: u32,
    /// Bits 63..32 of the address within the tile.
    pub mid: u32,
    /// Bits 31..0 of the address within the tile.
    pub lo: u32,
}

impl NocAddr {
    /// Address `lo` of the tile at `xy`.
    #[inline(always)]
    pub const fn new(xy: u32, lo: u32) -> Self {
        Self { xy, mid: 0, lo }
    }
    /// Pinned host memory behind the PCIe tile at `xy`.
    #[inline(always)]
    pub const fn host(xy: u32, lo: u32) -> Self {
        Self { xy, mid: PCIE_HOST_MID, lo }
    }
    /// The place `bytes` further.
    #[inline(always)]
    #[must_use]
    pub const fn plus(self, bytes: u32) -> Self {
        Self { lo: self.lo.wrapping_add(bytes), ..self }
    }
}

/// Encodes the destination rectangle of a multicast on NoC `noc`: the coordinates of two opposite corners, the smaller first.
/// NoC 1 runs the other way, so there the corners change places.
#[inline(always)]
pub const fn multicast_xy(noc: u32, (x0, y0): (u32, u32), (x1, y1): (u32, u32)) -> u32 {
    let (start, end) = (y0 << 6 | x0, y1 << 6 | x1);
    if noc == 0 { start << 12 | end } else { end << 12 | start }
}

/// `NOC_CTRL` of a unicast write that is acknowledged.
pub const WRITE: u32 = ctrl::CMD_WR | ctrl::RESP_MARKED | ctrl::VC_STATIC | vc::UNICAST << ctrl::STATIC_VC_SHIFT;
/// `NOC_CTRL` of a unicast write that is not acknowledged.
pub const WRITE_POSTED: u32 = WRITE & !ctrl::RESP_MARKED;
/// `NOC_CTRL` of a multicast write that every recipient acknowledges; the sender is no recipient.
pub const MULTICAST: u32 = ctrl::CMD_WR
    | ctrl::RESP_MARKED
    | ctrl::BRCST
    | ctrl::PATH_RESERVE
    | ctrl::VC_STATIC
    | vc::MULTICAST << ctrl::STATIC_VC_SHIFT;
/// `NOC_CTRL` of a multicast write that further writes to the same rectangle follow; the last must be a [`MULTICAST`].
pub const MULTICAST_LINKED: u32 = MULTICAST | ctrl::VC_LINKED;
/// `NOC_CTRL` of a read.
pub const READ: u32 = ctrl::CMD_RD | ctrl::VC_STATIC | vc::UNICAST << ctrl::STATIC_VC_SHIFT;
/// `NOC_CTRL` of an inline write to a register that is acknowledged.
pub const INLINE: u32 = WRITE | ctrl::WR_INLINE;
/// `NOC_CTRL` of an atomic that answers with the old value.
pub const ATOMIC: u32 = ctrl::CMD_AT | ctrl::RESP_MARKED | ctrl::VC_STATIC | vc::UNICAST << ctrl::STATIC_VC_SHIFT;

/// Writes one word to a register of another tile, not acknowledged and not counted: for firmware, which takes no part in the kernels'
/// counting.
#[inline(always)]
pub fn post_reg(index: u32, buf: CmdBuf, dst: NocAddr, value: u32) {
    inline_write(niu_base(index), buf, dst, value, INLINE & !ctrl::RESP_MARKED);
}

#[inline(always)]
fn inline_write(niu: u32, buf: CmdBuf, dst: NocAddr, value: u32, ctrl: u32) {
    let fields = niu + buf.0 * CMD_BUF_STRIDE;
    crate::reg::wait_reg(fields + init::CMD_CTRL, |v| v & 1 == 0);
    write(fields + init::CTRL, ctrl);
    write(fields + init::TARG_ADDR_MID, dst.mid);
    write(fields + init::TARG_ADDR_HI, dst.xy);
    write(fields + init::TARG_ADDR_LO, dst.lo);
    write(fields + init::PACKET_TAG, 0);
    // A byte mask, which writes to registers ignore (NoC/MemoryMap.md, `NOC_AT_LEN_BE`).
    write(fields + init::AT_LEN_BE, 0xF);
    write(fields + init::AT_DATA, value);
    compiler_fence();
    write(fields + init::CMD_CTRL, 1);
}

/// One core's use of one NoC.
pub struct Noc {
    niu: u32,
    index: u32,
    my_xy: u32,
    scratch: u32,
    bufs: CmdBufs,
    reads: u32,
    writes: u32,
    acks: u32,
    posted: u32,
    atomics: u32,
}

impl Noc {
    /// Takes over NoC `index` (0 or 1) for core `processor` (an index into `Processor::ALL`), with the given command buffers. The
    /// software counters start at what the NIU shows, so no request of this core may be under way.
    #[inline(always)]
    pub fn new(index: u32, processor: u32, bufs: CmdBufs) -> Self {
        let niu = niu_base(index);
        let mut noc = Self {
            niu,
            index,
            my_xy: read(niu + noc::ID_LOGICAL) & 0xFFF,
            scratch: l1::SCRATCH_WORD + 16 * processor,
            bufs,
            reads: 0,
            writes: 0,
            acks: 0,
            posted: 0,
            atomics: 0,
        };
        // Kernels of other firmware may have left a 64-bit byte mask here; lengths are 32 bits.
        for buf in [bufs.read, bufs.write] {
            noc.wait_ready(buf);
            noc.set(buf, init::AT_LEN_BE_1, 0);
        }
        noc.resync();
        noc
    }

    /// The NoC that the launch message gives to this core, with the standard command buffers.
    #[inline(always)]
    pub fn of(ctx: &KernelContext) -> Self {
        Self::new(ctx.noc, ctx.processor, CmdBufs::STANDARD)
    }

    /// Sets the software counters to what the NIU shows now.
    #[inline(always)]
    pub fn resync(&mut self) {
        self.reads = self.counter(counter::MST_RD_RESP_RECEIVED);
        self.writes = self.counter(counter::MST_NONPOSTED_WR_REQ_SENT);
        self.acks = self.counter(counter::MST_WR_ACK_RECEIVED);
        self.posted = self.counter(counter::MST_POSTED_WR_REQ_SENT);
        self.atomics = self.counter(counter::MST_ATOMIC_RESP_RECEIVED);
    }

    /// 0 or 1.
    #[inline(always)]
    pub fn index(&self) -> u32 {
        self.index
    }
    /// Encoded translated coordinates of this tile.
    #[inline(always)]
    pub fn my_xy(&self) -> u32 {
        self.my_xy
    }
    /// The command buffers in use.
    #[inline(always)]
    pub fn bufs(&self) -> CmdBufs {
        self.bufs
    }
    /// Address `lo` of this tile as the network sees it.
    #[inline(always)]
    pub fn local(&self, lo: u32) -> NocAddr {
        NocAddr::new(self.my_xy, lo)
    }
    /// Number of acknowledged (non-posted) write requests issued so far; wraps.
    #[inline(always)]
    pub fn writes_issued(&self) -> u32 {
        self.writes
    }

    // ---- registers -------------------------------------------------------------------------------------------------

    /// Status counter `i` of the NIU (`abi::noc::counter`).
    #[inline(always)]
    pub fn counter(&self, i: usize) -> u32 {
        read(self.niu + noc::COUNTERS + 4 * i as u32)
    }
    #[inline(always)]
    fn set(&self, buf: CmdBuf, field: u32, value: u32) {
        write(self.niu + buf.0 * CMD_BUF_STRIDE + field, value);
    }
    /// Waits until command buffer `buf` has accepted its last request and may be written again.
    #[inline(always)]
    pub fn wait_ready(&self, buf: CmdBuf) {
        crate::reg::wait_reg(self.niu + buf.0 * CMD_BUF_STRIDE + init::CMD_CTRL, |v| v & 1 == 0);
    }
    #[inline(always)]
    fn go(&self, buf: CmdBuf) {
        compiler_fence();
        self.set(buf, init::CMD_CTRL, 1);
    }
    #[inline(always)]
    fn wait_counter(&self, i: usize, target: u32) {
        crate::reg::wait_reg(self.niu + noc::COUNTERS + 4 * i as u32, |v| WrapCount(v).wrap_ge(WrapCount(target)));
    }

    // ---- reads -----------------------------------------------------------------------------------------------------

    /// Starts reading `len` bytes (any number) from `src` to L1 address `dst`.
    #[inline(always)]
    pub fn read(&mut self, src: NocAddr, dst: u32, len: u32) {
        self.read_tagged(0, src, dst, len);
    }

    /// Starts reading `len` bytes (any number) under transaction id `tag` (0..15), for [`Noc::wait_tag`].
    #[inline(always)]
    pub fn read_tagged(&mut self, tag: u32, src: NocAddr, dst: u32, len: u32) {
        let (mut src, mut dst, mut len) = (src, dst, len);
        while len > MAX_PACKET_BYTES {
            self.read_packet(tag, src, dst, MAX_PACKET_BYTES);
            src = src.plus(MAX_PACKET_BYTES);
            dst += MAX_PACKET_BYTES;
            len -= MAX_PACKET_BYTES;
        }
        self.read_packet(tag, src, dst, len);
    }

    /// Starts reading at most 16 KiB.
    #[inline(always)]
    pub fn read_one_packet(&mut self, src: NocAddr, dst: u32, len: u32) {
        self.read_packet(0, src, dst, len);
    }

    #[inline(always)]
    fn read_packet(&mut self, tag: u32, src: NocAddr, dst: u32, len: u32) {
        let buf = self.bufs.read;
        self.wait_ready(buf);
        self.set(buf, init::CTRL, READ);
        self.set(buf, init::TARG_ADDR_MID, src.mid);
        self.set(buf, init::RET_ADDR_MID, 0);
        self.set(buf, init::PACKET_TAG, tag << TAG_TRID_SHIFT);
        self.set(buf, init::RET_ADDR_HI, self.my_xy);
        self.set(buf, init::TARG_ADDR_HI, src.xy);
        self.set(buf, init::TARG_ADDR_LO, src.lo);
        self.set(buf, init::RET_ADDR_LO, dst);
        self.set(buf, init::AT_LEN_BE, len);
        self.go(buf);
        self.reads = self.reads.wrapping_add(1);
    }

    /// Stateful reads: sets once what [`Noc::read_with_state`] leaves as it is.
    #[inline(always)]
    pub fn read_set_state(&self, buf: CmdBuf, src_mid: u32) {
        self.wait_ready(buf);
        self.set(buf, init::CTRL, READ);
        self.set(buf, init::TARG_ADDR_MID, src_mid);
        self.set(buf, init::RET_ADDR_MID, 0);
        self.set(buf, init::PACKET_TAG, 0);
    }

    /// Starts reading at most 16 KiB with the state of [`Noc::read_set_state`].
    #[inline(always)]
    pub fn read_with_state(&mut self, buf: CmdBuf, src_xy: u32, src_lo: u32, dst: u32, len: u32) {
        self.wait_ready(buf);
        self.set(buf, init::RET_ADDR_HI, self.my_xy);
        self.set(buf, init::TARG_ADDR_HI, src_xy);
        self.set(buf, init::TARG_ADDR_LO, src_lo);
        self.set(buf, init::RET_ADDR_LO, dst);
        self.set(buf, init::AT_LEN_BE, len);
        self.go(buf);
        self.reads = self.reads.wrapping_add(1);
    }

    // ---- writes ----------------------------------------------------------------------------------------------------

    /// Starts writing `len` bytes (any number) from L1 address `src` to `dst`; acknowledged.
    #[inline(always)]
    pub fn write(&mut self, src: u32, dst: NocAddr, len: u32) {
        let (mut src, mut dst, mut len) = (src, dst, len);
        while len > MAX_PACKET_BYTES {
            self.write_one_packet(src, dst, MAX_PACKET_BYTES);
            src += MAX_PACKET_BYTES;
            dst = dst.plus(MAX_PACKET_BYTES);
            len -= MAX_PACKET_BYTES;
        }
        self.write_one_packet(src, dst, len);
    }

    /// Starts writing at most 16 KiB; acknowledged.
    #[inline(always)]
    pub fn write_one_packet(&mut self, src: u32, dst: NocAddr, len: u32) {
        self.write_set_state(self.bufs.write, WRITE, dst.mid);
        self.write_packet(self.bufs.write, dst.xy, src, dst.lo, len);
        self.count_writes(1, 1);
    }

    /// Starts writing at most 16 KiB; not acknowledged, so only [`Noc::posted_flushed`] knows about it.
    #[inline(always)]
    pub fn write_posted(&mut self, src: u32, dst: NocAddr, len: u32) {
        self.write_set_state(self.bufs.write, WRITE_POSTED, dst.mid);
        self.write_packet(self.bufs.write, dst.xy, src, dst.lo, len);
        self.posted = self.posted.wrapping_add(1);
    }

    /// Starts writing `len` bytes (any number) to the same address of all tiles of a rectangle ([`multicast_xy`]) with `recipients`
    /// tiles. With `linked`, another multicast to the same rectangle must follow at once, and the last must not be linked.
    #[inline(always)]
    pub fn multicast(&mut self, src: u32, rect_xy: u32, dst: u32, len: u32, recipients: u32, linked: bool) {
        let (mut src, mut dst, mut len) = (src, dst, len);
        let buf = self.bufs.write;
        while len > MAX_PACKET_BYTES {
            self.write_set_state(buf, MULTICAST_LINKED, 0);
            self.write_packet(buf, rect_xy, src, dst, MAX_PACKET_BYTES);
            self.count_writes(1, recipients);
            src += MAX_PACKET_BYTES;
            dst += MAX_PACKET_BYTES;
            len -= MAX_PACKET_BYTES;
        }
        self.write_set_state(buf, if linked { MULTICAST_LINKED } else { MULTICAST }, 0);
        self.write_packet(buf, rect_xy, src, dst, len);
        self.count_writes(1, recipients);
    }

    /// Stateful writes: sets once what [`Noc::write_with_state`] leaves as it is. `ctrl` is [`WRITE`], [`WRITE_POSTED`],
    /// [`MULTICAST`] or [`MULTICAST_LINKED`]; `dst_mid` is 0 or `PCIE_HOST_MID`.
    #[inline(always)]
    pub fn write_set_state(&self, buf: CmdBuf, ctrl: u32, dst_mid: u32) {
        self.wait_ready(buf);
        self.set(buf, init::CTRL, ctrl);
        self.set(buf, init::TARG_ADDR_MID, 0);
        self.set(buf, init::RET_ADDR_MID, dst_mid);
        self.set(buf, init::PACKET_TAG, 0);
    }

    /// Starts writing at most 16 KiB from L1 address `src` with the state of [`Noc::write_set_state`], which must be an acknowledged
    /// one. `acks` is the number of tiles that will acknowledge: 1, or the recipients of a multicast.
    #[inline(always)]
    pub fn write_with_state(&mut self, buf: CmdBuf, src: u32, dst_xy: u32, dst_lo: u32, len: u32, acks: u32) {
        self.wait_ready(buf);
        self.write_packet(buf, dst_xy, src, dst_lo, len);
        self.count_writes(1, acks);
    }

    /// As [`Noc::write_with_state`], `len` being any number.
    #[inline(always)]
    pub fn write_any_with_state(&mut self, buf: CmdBuf, src: u32, dst_xy: u32, dst_lo: u32, len: u32, acks: u32) {
        let (mut src, mut dst_lo, mut len) = (src, dst_lo, len);
        while len > MAX_PACKET_BYTES {
            self.write_with_state(buf, src, dst_xy, dst_lo, MAX_PACKET_BYTES, acks);
            src += MAX_PACKET_BYTES;
            dst_lo += MAX_PACKET_BYTES;
            len -= MAX_PACKET_BYTES;
        }
        self.write_with_state(buf, src, dst_xy, dst_lo, len, acks);
    }

    #[inline(always)]
    fn write_packet(&self, buf: CmdBuf, dst_xy: u32, src: u32, dst_lo: u32, len: u32) {
        self.set(buf, init::TARG_ADDR_HI, self.my_xy);
        self.set(buf, init::RET_ADDR_HI, dst_xy);
        self.set(buf, init::TARG_ADDR_LO, src);
        self.set(buf, init::RET_ADDR_LO, dst_lo);
        self.set(buf, init::AT_LEN_BE, len);
        self.go(buf);
    }

    #[inline(always)]
    fn count_writes(&mut self, requests: u32, acks: u32) {
        self.writes = self.writes.wrapping_add(requests);
        self.acks = self.acks.wrapping_add(acks);
    }

    /// Writes one word to the L1, DRAM or host memory at `dst` (a multiple of 4), through this core's scratch word; acknowledged. Returns
    /// when the word has left L1.
    pub fn write_word(&mut self, dst: NocAddr, value: u32) {
        // Source and destination must agree in the low four bits (NoC/Alignment.md).
        let src = self.scratch + (dst.lo & 0xC);
        write(src, value);
        publish(src);
        self.write_one_packet(src, dst, 4);
        self.writes_flushed();
    }

    /// Writes two words to `dst` (a multiple of 8), through this core's scratch word; acknowledged. Returns when they have left
    /// L1.
    pub fn write_two_words(&mut self, dst: NocAddr, value: u64) {
        let src = self.scratch + (dst.lo & 0x8);
        write(src, value as u32);
        write(src + 4, (value >> 32) as u32);
        publish(src + 4);
        self.write_one_packet(src, dst, 8);
        self.writes_flushed();
    }

    /// Writes one word to a register (never L1: inline writes to L1 are unsafe on Blackhole) of the tile that `dst` names; acknowledged.
    #[inline(always)]
    pub fn write_reg(&mut self, dst: NocAddr, value: u32) {
        self.inline(dst, value, INLINE);
        self.count_writes(1, 1);
    }

    /// As [`Noc::write_reg`], not acknowledged.
    #[inline(always)]
    pub fn write_reg_posted(&mut self, dst: NocAddr, value: u32) {
        self.inline(dst, value, INLINE & !ctrl::RESP_MARKED);
        self.posted = self.posted.wrapping_add(1);
    }

    #[inline(always)]
    fn inline(&self, dst: NocAddr, value: u32, ctrl: u32) {
        inline_write(self.niu, self.bufs.reg, dst, value, ctrl);
    }

    // ---- atomics ---------------------------------------------------------------------------------------------------

    /// Adds `n` to the word of L1 at `dst`; answered, so that [`Noc::atomic_barrier`] can wait for it.
    #[inline(always)]
    pub fn semaphore_inc(&mut self, dst: NocAddr, n: u32) {
        self.atomic(self.bufs.atomic, dst, n, ATOMIC);
        self.atomics = self.atomics.wrapping_add(1);
    }

    /// Adds `n` to the word of L1 at `dst`; not answered.
    #[inline(always)]
    pub fn semaphore_inc_posted(&mut self, dst: NocAddr, n: u32) {
        self.atomic(self.bufs.atomic, dst, n, ATOMIC & !ctrl::RESP_MARKED);
    }

    #[inline(always)]
    fn atomic(&self, buf: CmdBuf, dst: NocAddr, n: u32, ctrl: u32) {
        self.wait_ready(buf);
        self.set(buf, init::CTRL, ctrl);
        self.set(buf, init::TARG_ADDR_MID, 0);
        self.set(buf, init::RET_ADDR_MID, 0);
        self.set(buf, init::PACKET_TAG, 0);
        self.set(buf, init::TARG_ADDR_LO, dst.lo);
        self.set(buf, init::TARG_ADDR_HI, dst.xy);
        self.set(buf, init::RET_ADDR_LO, l1::ATOMIC_RETURN);
        self.set(buf, init::RET_ADDR_HI, self.my_xy);
        self.set(buf, init::AT_LEN_BE, atomic::incr32(dst.lo));
        self.set(buf, init::AT_DATA, n);
        self.go(buf);
    }

    // ---- barriers --------------------------------------------------------------------------------------------------

    /// Waits until all reads have arrived in L1. Drops the L0 data cache, so that loads see them.
    #[inline(always)]
    pub fn read_barrier(&self) {
        self.wait_counter(counter::MST_RD_RESP_RECEIVED, self.reads);
        crate::reg::fence();
    }
    /// Waits until the reads issued under transaction id `tag` have arrived in L1. Drops the L0 data cache.
    #[inline(always)]
    pub fn wait_tag(&self, tag: u32) {
        // The count goes up when the request is started: make sure that the start has been processed.
        self.wait_ready(self.bufs.read);
        let counter = noc::COUNTERS + 4 * (counter::MST_REQS_OUTSTANDING_ID as u32 + tag);
        crate::reg::wait_reg(self.niu + counter, |v| v == 0);
        crate::reg::fence();
    }
    /// Waits until the data of all acknowledged writes has left L1, so that their sources may be reused.
    #[inline(always)]
    pub fn writes_flushed(&self) {
        self.writes_flushed_up_to(self.writes);
    }
    /// Waits until the data of the first writes, up to [`Noc::writes_issued`] at an earlier time, has left L1.
    #[inline(always)]
    pub fn writes_flushed_up_to(&self, issued: u32) {
        self.wait_counter(counter::MST_NONPOSTED_WR_REQ_SENT, issued);
    }
    /// Waits until the data of all unacknowledged writes has left L1.
    #[inline(always)]
    pub fn posted_flushed(&self) {
        self.wait_counter(counter::MST_POSTED_WR_REQ_SENT, self.posted);
    }
    /// Waits until all acknowledged writes have been acknowledged.
    #[inline(always)]
    pub fn write_barrier(&self) {
        self.wait_counter(counter::MST_WR_ACK_RECEIVED, self.acks);
    }
    /// Waits until all answered atomics have been answered.
    #[inline(always)]
    pub fn atomic_barrier(&self) {
        self.wait_counter(counter::MST_ATOMIC_RESP_RECEIVED, self.atomics);
    }
    /// Waits for everything. A kernel ends with this: the next one takes its counters from the NIU.
    #[inline(always)]
    pub fn full_barrier(&self) {
        self.read_barrier();
        self.write_barrier();
        self.writes_flushed();
        self.posted_flushed();
        self.atomic_barrier();
    }
}
