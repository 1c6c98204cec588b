//! Command buffers that stay programmed.
//!
//! A request initiator keeps its fields between requests, so what does not change is stored once and a request costs only what
//! differs (NoC/MemoryMap.md, "NIU Request Initiators"). The two coordinate fields always differ: starting a request replaces them by
//! their translation (same page, `NOC_CMD_CTRL`). Each kernel owns certain initiators of certain NIUs:
//!
//! | core | kernel | NIU | initiator | use | transaction ids |
//! |---|---|---|---|---|---|
//! | prefetch | prefetch | 0 | 0 | writes into both rings of the dispatch core | 1 |
//! | prefetch | prefetch | 0 | 1 | reads of host memory | 8..15 |
//! | prefetch | prefetch | 0 | 2, 3 | credits to the dispatcher, to its subordinate | 2 |
//! | dispatch | dispatch | 1 | 3 | all writes | 1, 2 by block |
//! | dispatch | dispatch | 0 | 0, 1 | credits, and STALL's count, to the prefetcher | 3 |
//! | dispatch | dispatch-s | 1 | 0 | go messages, posted | 4 |
//! | dispatch | dispatch-s | 1 | 2 | credits to the prefetcher, posted | 5 |
//!
//! Initiators 0 to 2 of NIU 1 are the subordinate's and 3 is the dispatcher's (seed 001 figure 8). The subordinate only makes posted
//! requests, so that the acknowledgements that NIU 1 counts are all the dispatcher's.
//!
//! **Data before credit.** A write and a later atomic are not ordered, not even on one virtual channel: the list of guarantees knows
//! write before *read* and atomic before atomic only (WormholeB0/NoC/Ordering.md, "Ordering properties of two packets"). So a credit, a go
//! message or a completion pointer is sent after the *acknowledgements* of the data it speaks of have arrived, never after a mere
//! "sent" (tt-metal#52233, field 1.B 20).

use tilework_abi::l1::ATOMIC_RETURN;
use tilework_abi::noc::{self, atomic, counter, ctrl, init};
use tilework_rt::noc::{ATOMIC, READ};
use tilework_rt::reg::{read, wait_reg, write};

/// `NOC_CTRL` of a posted multicast write that ends its transaction.
pub const MULTICAST_POSTED: u32 = tilework_rt::noc::MULTICAST & !ctrl::RESP_MARKED;
/// `NOC_CTRL` of a posted atomic.
pub const ATOMIC_POSTED: u32 = ATOMIC & !ctrl::RESP_MARKED;

/// A NoC interface unit of this tile.
#[derive(Clone, Copy, Debug)]
pub struct Niu {
    base: u32,
}

impl Niu {
    /// The unit of NoC `noc`, 0 or 1.
    pub const fn new(noc: u32) -> Self {
        Self { base: noc::niu_base(noc) }
    }

    /// Its request initiator `index`, 0 to 3.
    pub const fn initiator(self, index: u32) -> Initiator {
        Initiator { base: self.base + index * noc::CMD_BUF_STRIDE }
    }

    const fn counter_addr(self, index: usize) -> u32 {
        self.base + noc::COUNTERS + 4 * index as u32
    }

    /// Acknowledgements received, a count that wraps.
    #[inline(always)]
    pub fn acks(self) -> u32 {
        read(self.counter_addr(counter::MST_WR_ACK_RECEIVED))
    }

    /// Waits until `done` says so of the acknowledgements received.
    #[inline(always)]
    pub fn wait_acks(self, done: impl Fn(u32) -> bool) {
        wait_reg(self.counter_addr(counter::MST_WR_ACK_RECEIVED), done);
    }

    /// Whether a request of transaction id `id` is still unanswered. Not for multicasts, which are answered more than once.
    #[inline(always)]
    pub fn outstanding(self, id: u32) -> bool {
        read(self.counter_addr(counter::MST_REQS_OUTSTANDING_ID + id as usize)) != 0
    }

    /// Waits until every request of transaction id `id` is answered. Not for multicasts.
    #[inline(always)]
    pub fn wait_answered(self, id: u32) {
        wait_reg(self.counter_addr(counter::MST_REQS_OUTSTANDING_ID + id as usize), |n| n == 0);
    }

    /// Waits until the data of every write of transaction id `id` has been read out of L1.
    #[inline(always)]
    pub fn wait_left(self, id: u32) {
        wait_reg(self.counter_addr(counter::MST_WRITE_REQS_OUTGOING_ID + id as usize), |n| n == 0);
    }

    /// Forgets the unanswered requests of the transaction ids in `mask`; after multicasts, whose answers miscount them.
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

    /// Waits until the last request was accepted. Also keeps later counter loads behind the start of that request: a load from
    /// `CMD_CTRL` stays behind the store to it, and later loads stay behind this one (NoC/Counters.md, the warning).
    #[inline(always)]
    pub fn wait_ready(self) {
        wait_reg(self.base + init::CMD_CTRL, |busy| busy == 0);
    }

    /// Starts the request.
    #[inline(always)]
    pub fn start(self) {
        self.set(init::CMD_CTRL, 1);
    }

    /// Programs what a series of writes has in common: kind, transaction id, and `mid`, the high address word at the destination.
    #[inline(always)]
    pub fn setup_writes(self, control: u32, id: u32, mid: u32) {
        self.wait_ready();
        self.set(init::CTRL, control);
        self.set(init::PACKET_TAG, id << noc::TAG_TRID_SHIFT);
        self.set(init::TARG_ADDR_MID, 0);
        self.set(init::RET_ADDR_MID, mid);
        self.set(init::AT_LEN_BE_1, 0);
    }

    /// Writes `len` bytes (1 to 16384) of this tile's L1 at `from` to address `to` of `xy`; `my_xy` gets the acknowledgement.
    #[inline(always)]
    pub fn write(self, my_xy: u32, from: u32, xy: u32, to: u32, len: u32) {
        self.wait_ready();
        self.set(init::TARG_ADDR_LO, from);
        self.set(init::TARG_ADDR_HI, my_xy);
        self.set(init::RET_ADDR_LO, to);
        self.set(init::RET_ADDR_HI, xy);
        self.set(init::AT_LEN_BE, len);
        self.start();
    }

    /// Programs what reads have in common: `mid`, the high address word at the source.
    #[inline]
    pub fn setup_reads(self, mid: u32) {
        self.wait_ready();
        self.set(init::CTRL, READ);
        self.set(init::TARG_ADDR_MID, mid);
        self.set(init::RET_ADDR_MID, 0);
        self.set(init::AT_LEN_BE_1, 0);
    }

    /// Reads `len` bytes (1 to 16384) at address `from` of `xy` into this tile's L1 at `to`, as transaction `id`.
    #[inline(always)]
    pub fn read(self, my_xy: u32, id: u32, xy: u32, from: u32, to: u32, len: u32) {
        self.wait_ready();
        self.set(init::PACKET_TAG, id << noc::TAG_TRID_SHIFT);
        self.set(init::TARG_ADDR_LO, from);
        self.set(init::TARG_ADDR_HI, xy);
        self.set(init::RET_ADDR_LO, to);
        self.set(init::RET_ADDR_HI, my_xy);
        self.set(init::AT_LEN_BE, len);
        self.start();
    }

    /// Programs increments of the L1 word `addr`, wherever it is; answers go to a word of this tile that nothing uses.
    #[inline]
    pub fn setup_increments(self, control: u32, id: u32, addr: u32) {
        self.wait_ready();
        self.set(init::CTRL, control);
        self.set(init::PACKET_TAG, id << noc::TAG_TRID_SHIFT);
        self.set(init::TARG_ADDR_LO, addr);
        self.set(init::TARG_ADDR_MID, 0);
        self.set(init::RET_ADDR_LO, ATOMIC_RETURN);
        self.set(init::RET_ADDR_MID, 0);
        self.set(init::AT_LEN_BE, atomic::incr32(addr));
        self.set(init::AT_LEN_BE_1, 0);
    }

    /// Increments the word of [`setup_increments`](Self::setup_increments) of `xy` by `n`.
    #[inline(always)]
    pub fn increment(self, my_xy: u32, xy: u32, n: u32) {
        self.wait_ready();
        self.set(init::TARG_ADDR_HI, xy);
        self.set(init::RET_ADDR_HI, my_xy);
        self.set(init::AT_DATA, n);
        self.start();
    }
}
