//! Relays into the rings of the dispatch core (seed 001 section 3.2).
//!
//! A relay acquires the pages it needs, writes, waits for the acknowledgements and releases the
//! pages by an atomic increment of the consumer's semaphore. The acknowledgements also mean that
//! the bytes have left the command data queue, so its space may be reused.

use super::fetcher::Fetcher;
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::PageRing;
use tilework_abi::cq::layout::dispatch_core::{DISPATCH_CB, DISPATCH_S_CB, SEM_CB_PAGES, SEM_S_CB_PAGES};
use tilework_abi::cq::layout::prefetch_core::{SEM_DISPATCH_PAGES, SEM_DISPATCH_S_PAGES};
use tilework_abi::cq::status::Fault;
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{CREDIT, CREDIT_ID, CREDIT_S, NIU, WRITE_ID, WRITES};
use tilework_cq_core::peers::Peers;
use tilework_cq_core::span::packet;
use tilework_cq_core::writer::PageWriter;
use tilework_rt::niu::{ATOMIC, Initiator, WRITE};
use tilework_rt::reg::wait;

type DispatchRing =
    PageWriter<{ DISPATCH_CB.base().get() }, { DISPATCH_CB.log_page_size() }, { DISPATCH_CB.pages().get() }>;
type SubordinateRing =
    PageWriter<{ DISPATCH_S_CB.base().get() }, { DISPATCH_S_CB.log_page_size() }, { DISPATCH_S_CB.pages().get() }>;

/// Pages that a relay to the dispatcher may hold at once: see `PageReader::MAX_COMMAND_PAGES`.
const MAX_DISPATCH_PAGES: u32 = DISPATCH_CB.pages().get() - 2 * DISPATCH_CB.pages_per_block().get() + 1;
/// Pages that a relay to the subordinate may hold at once: it gives all of them back after each
/// command.
const MAX_SUBORDINATE_PAGES: u32 = DISPATCH_S_CB.pages().get();

/// The prefetcher's ends of both rings.
pub struct Relay {
    my_xy: u32,
    dispatch_xy: u32,
    subordinate_xy: u32,
    semaphores: u32,
    dispatch: DispatchRing,
    subordinate: SubordinateRing,
}

impl Relay {
    /// Both rings empty. The semaphores have the same addresses on all cores.
    pub fn new(my_xy: u32, peers: &Peers, semaphores: u32) -> Self {
        WRITES.setup_writes(WRITE, WRITE_ID, 0);
        CREDIT.setup_increments(ATOMIC, CREDIT_ID, SEM_CB_PAGES.addr(semaphores));
        CREDIT_S.setup_increments(ATOMIC, CREDIT_ID, SEM_S_CB_PAGES.addr(semaphores));
        Self {
            my_xy,
            dispatch_xy: peers.dispatch,
            subordinate_xy: peers.subordinate,
            semaphores,
            dispatch: DispatchRing::new(WrapCount(0)),
            subordinate: SubordinateRing::new(WrapCount(0)),
        }
    }

    /// Whether the dispatcher has given all pages back, when the semaphore holds `credits`.
    pub fn dispatch_all_back(&self, credits: WrapCount) -> bool {
        self.dispatch.all_back(credits)
    }

    /// Waits until nothing of this kernel is in flight.
    pub fn finish(&self) {
        WRITES.wait_ready();
        CREDIT.wait_ready();
        CREDIT_S.wait_ready();
        NIU.wait_answered(WRITE_ID);
        NIU.wait_answered(CREDIT_ID);
    }

    /// Relays `payload` to the dispatcher; without `flush` the last page stays open for what
    /// follows.
    #[inline(always)]
    pub fn to_dispatch(&mut self, fetcher: &mut Fetcher, status: &Status, payload: Payload, flush: bool) {
        let credits = SEM_DISPATCH_PAGES.addr(self.semaphores);
        let target =
            Target { credits, credit: CREDIT, max_pages: MAX_DISPATCH_PAGES, my_xy: self.my_xy, xy: self.dispatch_xy };
        relay(&mut self.dispatch, target, fetcher, status, payload, flush);
    }

    /// Relays `payload` to the subordinate.
    #[inline(never)]
    pub fn to_subordinate(&mut self, fetcher: &mut Fetcher, status: &Status, payload: Payload, flush: bool) {
        let credits = SEM_DISPATCH_S_PAGES.addr(self.semaphores);
        let target = Target {
            credits,
            credit: CREDIT_S,
            max_pages: MAX_SUBORDINATE_PAGES,
            my_xy: self.my_xy,
            xy: self.subordinate_xy,
        };
        relay(&mut self.subordinate, target, fetcher, status, payload, flush);
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

/// The consumer of a ring.
#[derive(Clone, Copy)]
struct Target {
    /// This tile and the consumer's.
    my_xy: u32,
    xy: u32,
    /// L1 address of the semaphore of free pages.
    credits: u32,
    /// Initiator that announces filled pages.
    credit: Initiator,
    /// Pages that one relay may hold at once.
    max_pages: u32,
}

/// Relays `payload` into `ring`.
#[inline(always)]
fn relay<const BASE: u32, const LOG: u32, const PAGES: u32>(
    ring: &mut PageWriter<BASE, LOG, PAGES>,
    target: Target,
    fetcher: &mut Fetcher,
    status: &Status,
    payload: Payload,
    flush: bool,
) {
    if !append(ring, target, payload) {
        status.halt(Fault::RelayTooLong, payload.bytes, payload.from);
        return;
    }
    // While the acknowledgements are on their way, further reads are started.
    fetcher.start_reads(status);
    WRITES.wait_ready();
    NIU.wait_answered(WRITE_ID);
    if flush {
        let pages = ring.release();
        if pages != 0 {
            target.credit.increment(target.my_xy, target.xy, pages);
        }
    }
}

/// Acquires pages and starts the writes; false when the ring could never take so much at once.
#[inline(always)]
fn append<const BASE: u32, const LOG: u32, const PAGES: u32>(
    ring: &mut PageWriter<BASE, LOG, PAGES>,
    target: Target,
    payload: Payload,
) -> bool {
    let pages = ring.pages_needed(payload.bytes);
    if ring.held() + pages > target.max_pages {
        return false;
    }
    wait(target.credits, |count| ring.can_acquire(WrapCount(count), pages));
    ring.acquire(pages);
    let (mut from, mut left) = (payload.from, payload.bytes);
    while left != 0 {
        let (to, here) = ring.piece(packet(left, left));
        WRITES.write(target.my_xy, from, target.xy, to, here);
        from += here;
        left -= here;
    }
    true
}

const _: () = {
    const fn fits(ring: PageRing) -> bool {
        ring.base().get().is_multiple_of(ring.page_size())
    }
    assert!(fits(DISPATCH_CB) && fits(DISPATCH_S_CB));
};
