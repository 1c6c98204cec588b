//! NoC interface units (NIUs) and their request initiators: the register sequence of each request.
//!
//! Follows BlackholeA0/NoC/MemoryMap.md ("NIU Request Initiators") and BlackholeA0/NoC/Counters.md.
//! An initiator keeps its fields between requests, so each sequence has two parts: the *state*,
//! which a series of requests shares, and the *packet*, which is stored for each request and starts
//! it. [`Noc`](crate::Noc) stores both parts for each request; the command-queue kernels store the
//! state once (`setup_*`) and then only packets.
//!
//! The two coordinate fields are part of the packet: starting a request replaces them by their
//! translation (same page, `NOC_CMD_CTRL`), so they must be stored again each time.

use tilework_abi::l1::ATOMIC_RETURN;
use tilework_abi::noc::{self, atomic, counter, ctrl, init, vc};

use crate::reg::{read, wait_reg, write};

/// Bits of an encoded coordinate pair, `y << 6 | x`.
pub const XY_MASK: u32 = 0xFFF;

/// Static virtual channel of all unicast requests. Requests on different channels may overtake each
/// other, so there is only this one.
const UNICAST_VC: u32 = ctrl::VC_STATIC | vc::UNICAST << ctrl::STATIC_VC_SHIFT;

/// `NOC_CTRL` of a unicast write that is acknowledged.
pub const WRITE: u32 = ctrl::CMD_WR | ctrl::RESP_MARKED | UNICAST_VC;
/// `NOC_CTRL` of a unicast write that is not acknowledged.
pub const WRITE_POSTED: u32 = WRITE & !ctrl::RESP_MARKED;
/// `NOC_CTRL` of a multicast write that every recipient acknowledges; the sender is no recipient.
pub const MULTICAST: u32 = ctrl::CMD_WR
    | ctrl::RESP_MARKED
    | ctrl::BRCST
    | ctrl::PATH_RESERVE
    | ctrl::VC_STATIC
    | vc::MULTICAST << ctrl::STATIC_VC_SHIFT;
/// `NOC_CTRL` of a multicast write that further writes to the same rectangle follow; the last must
/// be a [`MULTICAST`].
pub const MULTICAST_LINKED: u32 = MULTICAST | ctrl::VC_LINKED;
/// `NOC_CTRL` of a multicast write that is not acknowledged.
pub const MULTICAST_POSTED: u32 = MULTICAST & !ctrl::RESP_MARKED;
/// `NOC_CTRL` of a read. It is always answered; the public firmware marks it so all the same.
pub const READ: u32 = ctrl::CMD_RD | ctrl::RESP_MARKED | UNICAST_VC;
/// `NOC_CTRL` of an inline write to a register that is not acknowledged.
pub const INLINE_POSTED: u32 = WRITE_POSTED | ctrl::WR_INLINE;
/// `NOC_CTRL` of an atomic that returns the old value.
pub const ATOMIC: u32 = ctrl::CMD_AT | ctrl::RESP_MARKED | UNICAST_VC;
/// `NOC_CTRL` of an atomic that returns nothing.
pub const ATOMIC_POSTED: u32 = ATOMIC & !ctrl::RESP_MARKED;

/// `AT_LEN_BE` of an inline write: all four bytes of the word. Writes to registers ignore the mask
/// (NoC/MemoryMap.md, `NOC_AT_LEN_BE`).
const ALL_BYTES: u32 = 0xF;

/// A NoC interface unit of this tile.
#[derive(Clone, Copy, Debug)]
pub struct Niu {
    base: u32,
}

impl Niu {
    /// The unit of NoC `noc`, 0 or 1.
    #[inline(always)]
    pub const fn new(noc: u32) -> Self {
        Self { base: noc::niu_base(noc) }
    }

    /// Its request initiator `index`, 0 to 3.
    #[inline(always)]
    pub const fn initiator(self, index: u32) -> Initiator {
        Initiator { base: self.base + index * noc::CMD_BUF_STRIDE }
    }

    /// Encoded translated coordinates of this tile.
    #[inline(always)]
    pub fn my_xy(self) -> u32 {
        read(self.base + noc::ID_LOGICAL) & XY_MASK
    }

    #[inline(always)]
    const fn counter_addr(self, index: usize) -> u32 {
        self.base + noc::COUNTERS + 4 * index as u32
    }

    /// Status counter `index` (`abi::noc::counter`).
    #[inline(always)]
    pub fn counter(self, index: usize) -> u32 {
        read(self.counter_addr(index))
    }

    /// Waits until `done` holds for status counter `index`.
    #[inline(always)]
    pub fn wait_counter(self, index: usize, done: impl Fn(u32) -> bool) {
        wait_reg(self.counter_addr(index), done);
    }

    /// Acknowledgements received, a count that wraps.
    #[inline(always)]
    pub fn acks(self) -> u32 {
        self.counter(counter::MST_WR_ACK_RECEIVED)
    }

    /// Whether a request of transaction id `id` is still unanswered. Not for multicasts, which are
    /// answered more than once.
    #[inline(always)]
    pub fn outstanding(self, id: u32) -> bool {
        self.counter(counter::MST_REQS_OUTSTANDING_ID + id as usize) != 0
    }

    /// Waits until every request of transaction id `id` is answered. Not for multicasts.
    #[inline(always)]
    pub fn wait_answered(self, id: u32) {
        self.wait_counter(counter::MST_REQS_OUTSTANDING_ID + id as usize, |n| n == 0);
    }

    /// Waits until at most `most` requests of transaction id `id` are unanswered. Not for
    /// multicasts.
    #[inline(always)]
    pub fn wait_at_most(self, id: u32, most: u32) {
        self.wait_counter(counter::MST_REQS_OUTSTANDING_ID + id as usize, |n| n <= most);
    }

    /// Waits until the data of every write of transaction id `id` has been read out of L1.
    #[inline(always)]
    pub fn wait_left(self, id: u32) {
        self.wait_counter(counter::MST_WRITE_REQS_OUTGOING_ID + id as usize, |n| n == 0);
    }

    /// Clears the counts of unanswered requests of the transaction ids in `mask`; after multicasts,
    /// whose answers make them wrong.
    pub fn clear_outstanding(self, mask: u32) {
        write(self.base + noc::CLEAR_OUTSTANDING, mask);
    }
}

/// One request initiator. Its fields may only be stored while it is ready.
#[derive(Clone, Copy, Debug)]
pub struct Initiator {
    base: u32,
}

impl Initiator {
    /// Stores a field.
    #[inline(always)]
    pub fn set(self, field: u32, value: u32) {
        write(self.base + field, value);
    }

    /// Waits until the last request was accepted. Also keeps later counter loads behind the start
    /// of that request: a load from `CMD_CTRL` stays behind the store to it, and later loads stay
    /// behind this one (NoC/Counters.md, the warning).
    #[inline(always)]
    pub fn wait_ready(self) {
        self.wait_status(|busy| busy == 0);
    }

    /// Waits until `ready` holds for `CMD_CTRL`, of which bit 0 is the busy bit.
    #[inline(always)]
    pub(crate) fn wait_status(self, ready: impl Fn(u32) -> bool) {
        wait_reg(self.base + init::CMD_CTRL, ready);
    }

    /// Starts the request.
    #[inline(always)]
    pub fn start(self) {
        self.set(init::CMD_CTRL, 1);
    }

    /// Leaves no tile out of multicasts: clears an exclusion that other firmware may have left.
    /// `AT_LEN_BE_1`, the upper half of a byte mask, keeps its reset value, zero: the public worker
    /// firmware never stores it, and not every chip behind the libttsim interface has it.
    #[inline(always)]
    pub(crate) fn clear_exclusion(self) {
        self.set(init::BRCST_EXCLUDE, 0);
    }

    // ---- writes ----

    /// State of a series of writes: `NOC_CTRL`, the transaction id, and `mid`, the high address
    /// word at the destination.
    #[inline(always)]
    pub(crate) fn write_state(self, control: u32, id: u32, mid: u32) {
        self.set(init::CTRL, control);
        self.set(init::TARG_ADDR_MID, 0);
        self.set(init::RET_ADDR_MID, mid);
        self.set(init::PACKET_TAG, id << noc::TAG_TRID_SHIFT);
    }

    /// Writes `len` bytes (1 to 16384) of this tile's L1 at `from` to address `to` of `xy`; `my_xy`
    /// gets the acknowledgement. The initiator is ready.
    #[inline(always)]
    pub(crate) fn write_packet(self, my_xy: u32, from: u32, xy: u32, to: u32, len: u32) {
        self.set(init::TARG_ADDR_HI, my_xy);
        self.set(init::RET_ADDR_HI, xy);
        self.set(init::TARG_ADDR_LO, from);
        self.set(init::RET_ADDR_LO, to);
        self.set(init::AT_LEN_BE, len);
        self.start();
    }

    /// Waits until ready and programs what a series of writes has in common.
    #[inline(always)]
    pub fn setup_writes(self, control: u32, id: u32, mid: u32) {
        self.wait_ready();
        self.write_state(control, id, mid);
        self.clear_exclusion();
    }

    /// Waits until ready and writes `len` bytes (1 to 16384) at `from` to address `to` of `xy`.
    #[inline(always)]
    pub fn write(self, my_xy: u32, from: u32, xy: u32, to: u32, len: u32) {
        self.wait_ready();
        self.write_packet(my_xy, from, xy, to, len);
    }

    // ---- reads ----

    /// State of a series of reads: `mid` is the high address word at the source.
    #[inline(always)]
    pub(crate) fn read_state(self, mid: u32) {
        self.set(init::CTRL, READ);
        self.set(init::TARG_ADDR_MID, mid);
        self.set(init::RET_ADDR_MID, 0);
    }

    /// Reads `len` bytes (1 to 16384) at address `from` of `xy` into this tile's L1 at `to`, as
    /// transaction `id`. The initiator is ready.
    #[inline(always)]
    pub(crate) fn read_packet(self, my_xy: u32, id: u32, xy: u32, from: u32, to: u32, len: u32) {
        self.set(init::PACKET_TAG, id << noc::TAG_TRID_SHIFT);
        self.set(init::RET_ADDR_HI, my_xy);
        self.set(init::TARG_ADDR_HI, xy);
        self.set(init::TARG_ADDR_LO, from);
        self.set(init::RET_ADDR_LO, to);
        self.set(init::AT_LEN_BE, len);
        self.start();
    }

    /// Waits until ready and programs what a series of reads has in common.
    #[inline]
    pub fn setup_reads(self, mid: u32) {
        self.wait_ready();
        self.read_state(mid);
        self.clear_exclusion();
    }

    /// Waits until ready and reads `len` bytes (1 to 16384) at address `from` of `xy` into this
    /// tile's L1 at `to`, as transaction `id`.
    #[inline(always)]
    pub fn read(self, my_xy: u32, id: u32, xy: u32, from: u32, to: u32, len: u32) {
        self.wait_ready();
        self.read_packet(my_xy, id, xy, from, to, len);
    }

    /// Programs what reads of `len` bytes as transaction `id` have in common, besides
    /// [`setup_reads`](Self::setup_reads). The initiator is ready.
    #[inline(always)]
    pub(crate) fn same_reads(self, id: u32, len: u32) {
        self.set(init::PACKET_TAG, id << noc::TAG_TRID_SHIFT);
        self.set(init::AT_LEN_BE, len);
    }

    /// Waits until ready and reads from address `from` of `xy` into this tile's L1 at `to`; length
    /// and transaction are those of [`same_reads`](Self::same_reads).
    #[inline(always)]
    pub(crate) fn read_same(self, my_xy: u32, xy: u32, from: u32, to: u32) {
        self.wait_ready();
        self.set(init::RET_ADDR_HI, my_xy);
        self.set(init::TARG_ADDR_HI, xy);
        self.set(init::TARG_ADDR_LO, from);
        self.set(init::RET_ADDR_LO, to);
        self.start();
    }

    // ---- atomics ----

    /// State of a series of increments of the L1 word `addr`, on whichever tile; answers go to a
    /// word of this tile that nothing uses.
    #[inline(always)]
    pub(crate) fn increment_state(self, control: u32, id: u32, addr: u32) {
        self.set(init::CTRL, control);
        self.set(init::TARG_ADDR_MID, 0);
        self.set(init::RET_ADDR_MID, 0);
        self.set(init::PACKET_TAG, id << noc::TAG_TRID_SHIFT);
        self.set(init::TARG_ADDR_LO, addr);
        self.set(init::RET_ADDR_LO, ATOMIC_RETURN);
        self.set(init::AT_LEN_BE, atomic::incr32(addr));
    }

    /// Adds `n` to the word of [`increment_state`](Self::increment_state) of `xy`. The initiator is
    /// ready.
    #[inline(always)]
    pub(crate) fn increment_packet(self, my_xy: u32, xy: u32, n: u32) {
        self.set(init::TARG_ADDR_HI, xy);
        self.set(init::RET_ADDR_HI, my_xy);
        self.set(init::AT_DATA, n);
        self.start();
    }

    /// Waits until ready and programs increments of the L1 word `addr`.
    #[inline]
    pub fn setup_increments(self, control: u32, id: u32, addr: u32) {
        self.wait_ready();
        self.increment_state(control, id, addr);
        self.clear_exclusion();
    }

    /// Waits until ready and adds `n` to the word of [`setup_increments`](Self::setup_increments)
    /// of `xy`.
    #[inline(always)]
    pub fn increment(self, my_xy: u32, xy: u32, n: u32) {
        self.wait_ready();
        self.increment_packet(my_xy, xy, n);
    }

    // ---- inline writes ----

    /// Waits until ready and writes `value` to the register at `register` of `xy`, without an
    /// acknowledgement. Never to L1: inline writes to L1 are unsafe on Blackhole.
    #[inline]
    pub fn post_register(self, my_xy: u32, xy: u32, register: u32, value: u32) {
        self.wait_ready();
        self.write_register(INLINE_POSTED, my_xy, xy, register, value);
    }

    /// Writes one word to the register at `lo` of `xy` (never to L1: inline writes to L1 are unsafe
    /// on Blackhole). The initiator is ready.
    ///
    /// Hardware does not use the return address of such a request, but not every chip behind the
    /// libttsim interface takes another tile in it than the sender, `my_xy`. The public firmware
    /// names the sender too: its `noc_init` does so for the initiator of atomics, which also sends
    /// these requests (tt-metal, noc_nonblocking_api.h).
    #[inline(always)]
    pub(crate) fn write_register(self, control: u32, my_xy: u32, xy: u32, lo: u32, value: u32) {
        self.set(init::CTRL, control);
        self.set(init::TARG_ADDR_MID, 0);
        self.set(init::TARG_ADDR_HI, xy);
        self.set(init::RET_ADDR_HI, my_xy);
        self.set(init::TARG_ADDR_LO, lo);
        self.set(init::PACKET_TAG, 0);
        self.set(init::AT_LEN_BE, ALL_BYTES);
        self.set(init::AT_DATA, value);
        self.start();
    }
}
