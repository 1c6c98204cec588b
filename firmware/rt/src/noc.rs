//! The network on chip for kernels, through one of the tile's two interface units (NIUs).
//!
//! The requests themselves are those of [`crate::niu`]. A [`Noc`] counts what it has issued; a
//! barrier waits until the NIU's own counter has reached that count (BlackholeA0/NoC/Counters.md).
//! Both wrap, so they are compared by the sign of their difference. The NIU counts for all cores of
//! the tile together: two cores that use one NIU at the same time must keep to requests that they
//! can tell apart (initiators, transaction ids).
//!
//! An inline write must not target L1 on Blackhole, so small writes to L1 go through a scratch word
//! ([`Noc::write_word`]).

use tilework_abi::cq::count::WrapCount;
use tilework_abi::noc::{MAX_PACKET_BYTES, NocRect, NocXy, counter};
use tilework_abi::{L1_ALIGN, l1};

use crate::KernelContext;
use crate::niu::{ATOMIC, INLINE_POSTED, Initiator, MULTICAST, MULTICAST_LINKED, Niu, WRITE};
use crate::reg::{compiler_fence, publish, write};

/// The request initiators of a core that has the NIU for itself.
pub(crate) mod initiator {
    /// Writes from L1.
    pub(crate) const WRITE: u32 = 0;
    /// Reads.
    pub(crate) const READ: u32 = 1;
    /// Inline writes to registers.
    pub(crate) const REGISTER: u32 = 2;
    /// Atomics.
    pub(crate) const ATOMIC: u32 = 3;
}

/// Transaction id of multicasts, whose several answers make its count wrong: no read has it.
const MULTICAST_TAG: u32 = 15;

/// An address in some tile's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NocAddr {
    /// Encoded translated coordinates, `y << 6 | x`.
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

    /// The address `bytes` further.
    #[inline(always)]
    #[must_use]
    pub const fn plus(self, bytes: u32) -> Self {
        Self { lo: self.lo.wrapping_add(bytes), ..self }
    }
}

/// Waits until `through` has accepted its last request.
///
/// Looks at the busy bit alone, as the public kernels do. (The command-queue kernels compare the
/// whole word, which saves an instruction for each request.)
#[inline(always)]
fn wait_ready(through: Initiator) {
    through.wait_status(|status| status & 1 == 0);
}

/// Writes one word to register `lo` of the tile at `xy` through NoC `noc`; neither acknowledged nor
/// counted: for firmware, which takes no part in the kernels' counting.
#[inline(always)]
pub fn post_register(noc: u32, xy: u32, lo: u32, value: u32) {
    let niu = Niu::new(noc);
    let my_xy = niu.my_xy();
    let through = niu.initiator(initiator::REGISTER);
    wait_ready(through);
    compiler_fence();
    through.write_register(INLINE_POSTED, my_xy, xy, lo, value);
}

/// One core's use of one NoC.
pub struct Noc {
    niu: Niu,
    my_xy: u32,
    scratch: u32,
    reads: WrapCount,
    writes: WrapCount,
    acks: WrapCount,
    posted: WrapCount,
    atomics: WrapCount,
    /// Which NoC it is.
    index: u32,
}

impl Noc {
    /// Takes over NoC `index` (0 or 1) for core `processor` (an index into `Processor::ALL`). The
    /// software counters start at what the NIU shows, so no request of this core may be in flight.
    #[inline(always)]
    pub fn new(index: u32, processor: u32) -> Self {
        let niu = Niu::new(index);
        let my_xy = niu.my_xy();
        for index in [initiator::READ, initiator::WRITE] {
            wait_ready(niu.initiator(index));
            niu.initiator(index).clear_exclusion();
        }
        let count = |index| WrapCount(niu.counter(index));
        Self {
            niu,
            my_xy,
            scratch: l1::SCRATCH_WORD + 16 * processor,
            reads: count(counter::MST_RD_RESP_RECEIVED),
            writes: count(counter::MST_NONPOSTED_WR_REQ_SENT),
            acks: count(counter::MST_WR_ACK_RECEIVED),
            posted: count(counter::MST_POSTED_WR_REQ_SENT),
            atomics: count(counter::MST_ATOMIC_RESP_RECEIVED),
            index,
        }
    }

    /// The NoC that the launch message gives to this core.
    #[inline(always)]
    pub fn of(ctx: &KernelContext) -> Self {
        Self::new(ctx.noc, ctx.processor)
    }

    /// Initiator `index` when it is ready for the next request.
    #[inline(always)]
    fn ready(&self, index: u32) -> Initiator {
        let through = self.niu.initiator(index);
        wait_ready(through);
        through
    }

    #[inline(always)]
    fn wait_counter(&self, index: usize, target: WrapCount) {
        self.niu.wait_counter(index, |count| WrapCount(count).wrap_ge(target));
    }

    // ---- reads ----

    /// Starts reading `len` bytes (any number) from `src` to L1 address `dst`.
    #[inline(always)]
    pub fn read(&mut self, src: NocAddr, dst: u32, len: u32) {
        self.read_tagged(0, src, dst, len);
    }

    /// Starts reading `len` bytes (any number) under transaction id `tag` (0 to 14), for
    /// [`Noc::wait_tag`].
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

    #[inline(always)]
    fn read_packet(&mut self, tag: u32, src: NocAddr, dst: u32, len: u32) {
        let through = self.ready(initiator::READ);
        through.read_state(src.mid);
        compiler_fence();
        through.read_packet(self.my_xy, tag, src.xy, src.lo, dst, len);
        self.reads = self.reads.plus(1);
    }

    /// Programs a series of reads of `len` bytes each, at most 16 KiB, under transaction id `tag`
    /// (0 to 14): what they have in common is stored once, so that a request takes half as long.
    #[inline(always)]
    pub fn same_reads(&mut self, tag: u32, len: u32) {
        let through = self.ready(initiator::READ);
        through.read_state(0);
        through.same_reads(tag, len);
    }

    /// Starts the next read of the series, from `src`, whose upper address word is zero, to L1
    /// address `dst`. Nothing else may be read since [`Noc::same_reads`].
    #[inline(always)]
    pub fn read_same(&mut self, src: NocAddr, dst: u32) {
        self.niu.initiator(initiator::READ).read_same(self.my_xy, src.xy, src.lo, dst);
        self.reads = self.reads.plus(1);
    }

    // ---- writes ----

    /// Starts writing `len` bytes (any number) from L1 address `src` to `dst`; acknowledged.
    #[inline(always)]
    pub fn write(&mut self, src: u32, dst: NocAddr, len: u32) {
        let (mut src, mut dst, mut len) = (src, dst, len);
        while len > MAX_PACKET_BYTES {
            self.write_packet(src, dst, MAX_PACKET_BYTES);
            src += MAX_PACKET_BYTES;
            dst = dst.plus(MAX_PACKET_BYTES);
            len -= MAX_PACKET_BYTES;
        }
        self.write_packet(src, dst, len);
    }

    /// Starts writing at most 16 KiB; acknowledged.
    #[inline(always)]
    fn write_packet(&mut self, src: u32, dst: NocAddr, len: u32) {
        let through = self.ready(initiator::WRITE);
        through.write_state(WRITE, 0, dst.mid);
        compiler_fence();
        through.write_packet(self.my_xy, src, dst.xy, dst.lo, len);
        self.writes = self.writes.plus(1);
        self.acks = self.acks.plus(1);
    }

    /// Writes one word to the L1, DRAM or host memory at `dst` (a multiple of 4), through this
    /// core's scratch word; acknowledged. Returns when the word has left L1.
    pub fn write_word(&mut self, dst: NocAddr, value: u32) {
        let src = self.scratch_for(dst, 4);
        write(src, value);
        publish(src);
        self.write_packet(src, dst, 4);
        self.writes_flushed();
    }

    /// Writes two words to `dst` (a multiple of 8), through this core's scratch word; acknowledged.
    /// Returns when they have left L1.
    pub fn write_two_words(&mut self, dst: NocAddr, value: u64) {
        let src = self.scratch_for(dst, 8);
        write(src, value as u32);
        write(src + 4, (value >> 32) as u32);
        publish(src + 4);
        self.write_packet(src, dst, 8);
        self.writes_flushed();
    }

    /// Where to store `bytes` (4 or 8) that are written to `dst`: source and destination must agree
    /// in the low four bits (NoC/Alignment.md).
    #[inline(always)]
    const fn scratch_for(&self, dst: NocAddr, bytes: u32) -> u32 {
        self.scratch + (dst.lo % L1_ALIGN & !(bytes - 1))
    }

    // ---- multicasts ----

    /// The rectangle of tiles between two encoded corners, of which `start` has the smaller
    /// coordinates, for [`Noc::multicast`].
    #[inline(always)]
    pub fn rectangle(&self, start: u32, end: u32) -> u32 {
        let rect = NocRect { start: NocXy::decode(start), end: NocXy::decode(end) };
        if self.index == 0 { rect.encode() } else { rect.encode_noc1() }
    }

    /// Writes `len` bytes (any number) from L1 address `src` to L1 address `dst` of the
    /// `recipients` workers of a rectangle, and then the word at L1 address `flag` to the same
    /// address there; this tile is none of them, even when it lies inside. The flag arrives after
    /// the data. Returns when all have started. Waits for all earlier writes, because nothing of
    /// this tile may be in flight when a multicast reserves its path.
    #[inline(always)]
    pub fn multicast(&mut self, src: u32, rect: u32, dst: u32, len: u32, flag: u32, recipients: u32) {
        self.write_barrier();
        let mut done = 0;
        while done < len {
            let bytes = (len - done).min(MAX_PACKET_BYTES);
            // A link: the path stays reserved for what follows.
            self.multicast_packet(MULTICAST_LINKED, src + done, rect, dst + done, bytes, recipients);
            done += bytes;
        }
        self.multicast_packet(MULTICAST, flag, rect, flag, size_of::<u32>() as u32, recipients);
    }

    #[inline(always)]
    fn multicast_packet(&mut self, control: u32, src: u32, rect: u32, dst: u32, len: u32, recipients: u32) {
        let through = self.ready(initiator::WRITE);
        through.write_state(control, MULTICAST_TAG, 0);
        compiler_fence();
        through.write_packet(self.my_xy, src, rect, dst, len);
        self.writes = self.writes.plus(1);
        self.acks = self.acks.plus(recipients);
    }

    // ---- atomics ----

    /// Adds `n` to the word of L1 at `dst`; answered, so that [`Noc::atomic_barrier`] can wait for
    /// it.
    #[inline(always)]
    pub fn semaphore_inc(&mut self, dst: NocAddr, n: u32) {
        let through = self.ready(initiator::ATOMIC);
        through.increment_state(ATOMIC, 0, dst.lo);
        compiler_fence();
        through.increment_packet(self.my_xy, dst.xy, n);
        self.atomics = self.atomics.plus(1);
    }

    // ---- barriers ----

    /// Waits until all reads have arrived in L1. Drops the L0 data cache, so that loads see them.
    #[inline(always)]
    pub fn read_barrier(&self) {
        self.wait_counter(counter::MST_RD_RESP_RECEIVED, self.reads);
        crate::reg::fence();
    }

    /// Waits until the reads issued under transaction id `tag` have arrived in L1. Drops the L0
    /// data cache.
    #[inline(always)]
    pub fn wait_tag(&self, tag: u32) {
        // The count goes up when the request is started: make sure that the start was processed.
        self.ready(initiator::READ);
        self.niu.wait_answered(tag);
        crate::reg::fence();
    }

    /// Waits until the data of all acknowledged writes has left L1, so that their sources may be
    /// reused.
    #[inline(always)]
    pub fn writes_flushed(&self) {
        self.wait_counter(counter::MST_NONPOSTED_WR_REQ_SENT, self.writes);
    }

    /// Waits until the data of all unacknowledged writes has left L1. This driver starts none; a
    /// kernel's end looks at their counter all the same, as `noc_async_full_barrier` of public
    /// kernels does, so that it costs as much.
    #[inline(always)]
    fn posted_flushed(&self) {
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
