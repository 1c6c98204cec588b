//! Relays into the rings of the dispatch core (seed 001 section 3.2).
//!
//! A relay acquires pages, writes, waits for the acknowledgements and releases the pages by an
//! atomic increment of the consumer's semaphore. The acknowledgements also mean that the bytes have
//! left this core, so that their source may be reused.
//!
//! What is longer than a portion goes in portions: each takes the pages that are free at its time,
//! and its full pages are announced while the next is being written. So a command may be longer
//! than the ring, and the dispatcher works on its start while its end is on the way. The page that
//! is being filled is announced with what fills it, or when a relay closes it.
//!
//! What is relayed without a flush is not announced until the flush, unless so much is held that
//! the ring could not take more.

use super::fetcher::Fetcher;
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::dispatch_core::{DISPATCH_CB, DISPATCH_S_CB, SEM_CB_PAGES, SEM_S_CB_PAGES};
use tilework_abi::cq::layout::prefetch_core::{SEM_DISPATCH_PAGES, SEM_DISPATCH_S_PAGES};
use tilework_abi::cq::layout::{PageRing, SemaphoreId};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::{MAX_PACKET_BYTES, TAG_TRID_SHIFT, init};
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{CREDIT, CREDIT_ID, CREDIT_S, NIU, WRITE_IDS, WRITES};
use tilework_cq_core::peers::Peers;
use tilework_cq_core::span::packet;
use tilework_cq_core::writer::PageWriter;
use tilework_rt::niu::{ATOMIC, WRITE};
use tilework_rt::reg::{fence, read, wait};

type DispatchRing =
    PageWriter<{ DISPATCH_CB.base().get() }, { DISPATCH_CB.log_page_size() }, { DISPATCH_CB.pages().get() }>;
type SubordinateRing =
    PageWriter<{ DISPATCH_S_CB.base().get() }, { DISPATCH_S_CB.log_page_size() }, { DISPATCH_S_CB.pages().get() }>;

/// Bytes that are written and announced at once. Only the newest portion is ever unacknowledged.
pub const PORTION: u32 = MAX_PACKET_BYTES;
/// Pages that a portion may begin or end in or fill.
const PORTION_PAGES: u32 = PORTION / DISPATCH_CB.page_size() + 1;
/// Pages that may be filled and not announced: the dispatcher gives the others back whatever it
/// holds (`PageReader::MAX_COMMAND_PAGES`).
const MAX_HELD: u32 = DISPATCH_CB.pages().get() - 2 * DISPATCH_CB.pages_per_block().get() + 1;

/// The prefetcher's ends of both rings.
pub struct Relay {
    my_xy: u32,
    dispatch_xy: u32,
    subordinate_xy: u32,
    semaphores: u32,
    dispatch: DispatchRing,
    subordinate: SubordinateRing,
    /// Which of [`WRITE_IDS`] the newest writes carry.
    newest: u32,
    /// Pages that the newest writes filled and that are not announced.
    unannounced: u32,
}

impl Relay {
    /// Both rings empty. The semaphores have the same addresses on all cores; credits are counted
    /// from what is in them now, the pages of each ring.
    pub fn new(my_xy: u32, peers: &Peers, semaphores: u32) -> Self {
        WRITES.setup_writes(WRITE, WRITE_IDS[0], 0);
        CREDIT.setup_increments(ATOMIC, CREDIT_ID, SEM_CB_PAGES.addr(semaphores));
        CREDIT_S.setup_increments(ATOMIC, CREDIT_ID, SEM_S_CB_PAGES.addr(semaphores));
        fence();
        let spent =
            |credits: SemaphoreId, ring: PageRing| WrapCount(read(credits.addr(semaphores))).minus(ring.pages().get());
        Self {
            my_xy,
            dispatch_xy: peers.dispatch,
            subordinate_xy: peers.subordinate,
            semaphores,
            dispatch: DispatchRing::new(spent(SEM_DISPATCH_PAGES, DISPATCH_CB)),
            subordinate: SubordinateRing::new(spent(SEM_DISPATCH_S_PAGES, DISPATCH_S_CB)),
            newest: WRITE_IDS[0],
            unannounced: 0,
        }
    }

    /// Whether the dispatcher has given all pages back, when the semaphore holds `credits`.
    pub fn dispatch_all_back(&self, credits: WrapCount) -> bool {
        self.dispatch.all_back(credits)
    }

    /// Waits until nothing of this kernel is in flight.
    pub fn finish(&self) {
        self.wait_acknowledged();
        CREDIT.wait_ready();
        CREDIT_S.wait_ready();
        NIU.wait_answered(CREDIT_ID);
    }

    /// Relays `payload` to the dispatcher; without `flush` the last page stays open for what
    /// follows.
    #[inline(always)]
    pub fn to_dispatch(&mut self, fetcher: &mut Fetcher, status: &Status, payload: Payload, flush: bool) {
        if payload.bytes > PORTION {
            self.stream(payload, flush);
        } else {
            let credits = SEM_DISPATCH_PAGES.addr(self.semaphores);
            let pages = self.dispatch.pages_needed(payload.bytes);
            if self.dispatch.held() + pages > MAX_HELD {
                self.unannounced = self.dispatch.release_full();
                self.announce();
            }
            wait(credits, |count| self.dispatch.can_acquire(WrapCount(count), pages));
            self.dispatch.acquire(pages);
            write(&mut self.dispatch, self.my_xy, self.dispatch_xy, payload);
        }
        self.close(fetcher, status, flush);
    }

    /// Appends `payload` in portions, as pages come free. Its last portion is neither acknowledged
    /// nor announced; without `flush` nothing is, while the ring bears it.
    #[inline(never)]
    pub fn stream(&mut self, payload: Payload, flush: bool) {
        let credits = SEM_DISPATCH_PAGES.addr(self.semaphores);
        let (mut from, mut left) = (payload.from, payload.bytes);
        while left != 0 {
            fence();
            let mut room = self.dispatch.room(WrapCount(read(credits)));
            if room == 0 {
                // Pages that the dispatcher does not know of cannot come back.
                self.announce();
                let count = wait(credits, |count| self.dispatch.can_acquire(WrapCount(count), 1));
                room = self.dispatch.room(WrapCount(count));
            }
            let bytes = left.min(room).min(PORTION);
            self.dispatch.acquire(self.dispatch.pages_needed(bytes));
            // Under the other id when the pages of the writes before wait to be announced.
            let waits = self.unannounced != 0;
            let id = if waits { WRITE_IDS[0] ^ WRITE_IDS[1] ^ self.newest } else { self.newest };
            WRITES.wait_ready();
            WRITES.set(init::PACKET_TAG, id << TAG_TRID_SHIFT);
            write(&mut self.dispatch, self.my_xy, self.dispatch_xy, Payload { from, bytes });
            let shown = flush || self.dispatch.held() > MAX_HELD - PORTION_PAGES;
            let full = if shown { self.dispatch.release_full() } else { 0 };
            if waits {
                self.announce();
            }
            self.newest = id;
            self.unannounced = full;
            from += bytes;
            left -= bytes;
        }
    }

    /// Waits until everything appended has arrived and, with `flush`, announces it.
    #[inline(always)]
    pub fn close(&mut self, fetcher: &mut Fetcher, status: &Status, flush: bool) {
        // While the acknowledgements are on their way, further reads are started.
        fetcher.start_reads(status);
        self.wait_acknowledged();
        let more = if flush { self.dispatch.release() } else { 0 };
        let pages = core::mem::take(&mut self.unannounced) + more;
        if pages != 0 {
            CREDIT.increment(self.my_xy, self.dispatch_xy, pages);
        }
    }

    /// Waits until the newest portion has arrived and announces its full pages.
    #[inline(never)]
    pub fn announce(&mut self) {
        self.wait_acknowledged();
        let pages = core::mem::take(&mut self.unannounced);
        if pages != 0 {
            CREDIT.increment(self.my_xy, self.dispatch_xy, pages);
        }
    }

    /// Relays `payload` to the subordinate, all at once: it gives all pages back after each
    /// command, not before.
    #[inline(never)]
    pub fn to_subordinate(&mut self, fetcher: &mut Fetcher, status: &Status, payload: Payload, flush: bool) {
        let credits = SEM_DISPATCH_S_PAGES.addr(self.semaphores);
        let pages = self.subordinate.pages_needed(payload.bytes);
        if self.subordinate.held() + pages > DISPATCH_S_CB.pages().get() {
            return status.halt(Fault::RelayTooLong, payload.bytes, payload.from);
        }
        wait(credits, |count| self.subordinate.can_acquire(WrapCount(count), pages));
        self.subordinate.acquire(pages);
        write(&mut self.subordinate, self.my_xy, self.subordinate_xy, payload);
        fetcher.start_reads(status);
        self.wait_acknowledged();
        if flush {
            let pages = self.subordinate.release();
            if pages != 0 {
                CREDIT_S.increment(self.my_xy, self.subordinate_xy, pages);
            }
        }
    }

    /// Waits for the acknowledgements of the newest writes; those before them have arrived.
    #[inline(always)]
    fn wait_acknowledged(&self) {
        WRITES.wait_ready();
        NIU.wait_answered(self.newest);
    }
}

/// What a relay carries: `bytes` bytes of L1 at `from`.
#[derive(Clone, Copy)]
pub struct Payload {
    /// First byte.
    pub from: u32,
    /// Bytes.
    pub bytes: u32,
}

/// Starts the writes of `payload` into pages of `ring` that are acquired.
#[inline(always)]
fn write<const BASE: u32, const LOG: u32, const PAGES: u32>(
    ring: &mut PageWriter<BASE, LOG, PAGES>,
    my_xy: u32,
    xy: u32,
    payload: Payload,
) {
    let (mut from, mut left) = (payload.from, payload.bytes);
    while left != 0 {
        let (to, here) = ring.piece(packet(left, left));
        WRITES.write(my_xy, from, xy, to, here);
        from += here;
        left -= here;
    }
}

const _: () = {
    const fn fits(ring: PageRing) -> bool {
        ring.base().get().is_multiple_of(ring.page_size())
    }
    assert!(fits(DISPATCH_CB) && fits(DISPATCH_S_CB));
};
