//! The dispatcher's state: its position in the ring, its writes, and the pages to give back to the
//! prefetcher.

use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::dispatch::WRITE_OFFSETS;
use tilework_abi::cq::layout::dispatch_core::{DISPATCH_CB, SEM_CB_PAGES, SEM_H_PAGES};
use tilework_abi::cq::layout::prefetch_core::SEM_DISPATCH_PAGES;
use tilework_abi::cq::layout::{SemaphoreId, WORKER_SEMS};
use tilework_abi::cq::status::{Fault, Kernel};
use tilework_abi::noc::{TAG_TRID_SHIFT, counter, init};
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::dispatch::{CREDIT, CREDIT_ID, CREDIT_NIU, NIU, NOTIFY, WRITE_IDS, WRITES};
use tilework_cq_core::peers::Peers;
use tilework_cq_core::reader::PageReader;
use tilework_rt::KernelContext;
use tilework_rt::niu::ATOMIC;
use tilework_rt::reg::{fence, read, wait};

use crate::host::Completion;
use crate::relay::HostSide;

type Ring = PageReader<
    { DISPATCH_CB.base().get() },
    { DISPATCH_CB.log_page_size() },
    { DISPATCH_CB.pages().get() },
    { DISPATCH_CB.blocks() },
>;

/// The dispatcher.
pub struct Core {
    /// This tile.
    pub my_xy: u32,
    /// The other cores of the command queue.
    pub peers: Peers,
    /// Progress and errors.
    pub status: Status,
    /// Added to destination addresses by index.
    pub write_offset: [u32; WRITE_OFFSETS],
    /// The completion FIFO; known once it was used.
    pub completion: Option<Completion>,
    /// Banks of DRAM, and where their coordinates on this NoC are.
    pub dram: (u32, u32),
    /// Banks of L1, and where their coordinates are.
    pub l1: (u32, u32),
    /// The first go message of every worker.
    pub go: u32,
    /// Worker semaphores in use.
    pub worker_sems: u32,
    /// The ring of the host side; on the device side of a split dispatcher only.
    pub host_side: Option<HostSide>,
    /// Semaphore 0, on all cores of the queue.
    semaphores: u32,
    /// The core that fills the ring.
    upstream: u32,
    ring: Ring,
    filled: u32,
    /// What the NIU's count of acknowledgements will be when all writes are acknowledged.
    acks: WrapCount,
}

impl Core {
    /// At the ring's base, with nothing in flight.
    pub fn new(ctx: &KernelContext) -> Self {
        let semaphores = ctx.semaphores;
        let peers = Peers::told(ctx);
        // All queue cores have their semaphores at the same address.
        let (upstream, credit) = if ctx.my_xy == peers.dispatch {
            (peers.prefetch, SEM_DISPATCH_PAGES)
        } else {
            (peers.dispatch, SEM_H_PAGES)
        };
        CREDIT.setup_increments(ATOMIC, CREDIT_ID, credit.addr(semaphores));
        let host_side =
            (ctx.my_xy != peers.completion).then(|| HostSide::new(SEM_H_PAGES.addr(semaphores), peers.first_count));
        Self {
            my_xy: ctx.my_xy,
            peers,
            status: Status::new(Kernel::Dispatch),
            write_offset: [0; WRITE_OFFSETS],
            completion: None,
            dram: (ctx.dram_banks, ctx.dram_xy),
            l1: (ctx.l1_banks, ctx.l1_xy),
            go: ctx.go,
            worker_sems: WORKER_SEMS,
            host_side,
            semaphores,
            upstream,
            ring: Ring::new(peers.first_count),
            filled: SEM_CB_PAGES.addr(semaphores),
            acks: WrapCount(NIU.acks()),
        }
    }

    // ---- the ring ----

    /// L1 address of the next byte.
    #[inline(always)]
    pub fn at(&self) -> u32 {
        self.ring.at()
    }

    /// Waits until there is at least one byte; returns how many there are in one piece.
    #[inline(always)]
    pub fn wait_for_data(&mut self) -> u32 {
        if self.ring.available() == 0 {
            self.more();
        }
        self.ring.available()
    }

    /// Moves over bytes that are present.
    #[inline(always)]
    pub fn advance(&mut self, bytes: u32) {
        self.ring.advance(bytes);
    }

    /// Moves over bytes that need not be present.
    pub fn skip(&mut self, bytes: u32) {
        let mut left = bytes;
        while left != 0 {
            let n = self.wait_for_data().min(left);
            self.advance(n);
            left -= n;
        }
    }

    /// Moves to the next page, where the next command begins.
    #[inline(always)]
    pub fn next_page(&mut self) {
        self.ring.next_page();
    }

    /// The bytes present at the next address, without waiting.
    #[inline(always)]
    pub fn present(&self) -> u32 {
        self.ring.available()
    }

    /// Whether the next byte has yet to come.
    pub fn is_starved(&self) -> bool {
        if self.ring.available() != 0 || self.ring.knows_more() {
            return false;
        }
        fence();
        !self.ring.would_take(WrapCount(read(self.filled)))
    }

    /// Waits for more pages; at the end of a block, first releases the block before it.
    #[inline(never)]
    fn more(&mut self) {
        if self.ring.block_done() {
            let release = self.ring.next_block();
            WRITES.wait_ready();
            if release {
                NIU.wait_left(self.id());
                CREDIT.increment(self.my_xy, self.upstream, Ring::BLOCK_PAGES);
            }
            // A command that goes on in the new block keeps its registers but for this one.
            WRITES.set(init::PACKET_TAG, self.id() << TAG_TRID_SHIFT);
        }
        if !self.ring.knows_more() {
            let filled = wait(self.filled, |count| self.ring.would_take(WrapCount(count)));
            self.ring.note(WrapCount(filled));
        }
        self.ring.take();
    }

    // ---- writes ----

    /// The transaction id for writes from the present block.
    #[inline(always)]
    fn id(&self) -> u32 {
        if self.ring.parity() { WRITE_IDS[1] } else { WRITE_IDS[0] }
    }

    /// Programs a series of writes.
    #[inline(always)]
    pub fn setup_writes(&self, control: u32, mid: u32) {
        WRITES.setup_writes(control, self.id(), mid);
    }

    /// Writes `bytes` (1 to 16384) at `from`; `acks` tiles will acknowledge.
    #[inline(always)]
    pub fn write(&mut self, from: u32, xy: u32, to: u32, bytes: u32, acks: u32) {
        WRITES.write(self.my_xy, from, xy, to, bytes);
        self.expect(acks);
    }

    /// Counts acknowledgements to come.
    #[inline(always)]
    pub fn expect(&mut self, acks: u32) {
        self.acks = self.acks.plus(acks);
    }

    /// Waits until all writes are acknowledged.
    #[inline(always)]
    pub fn barrier(&self) {
        WRITES.wait_ready();
        NIU.wait_counter(counter::MST_WR_ACK_RECEIVED, |count| WrapCount(count).wrap_ge(self.acks));
    }

    /// Adds `n` to the word `addr` of the core `xy`.
    #[inline(never)]
    pub fn notify(&self, xy: u32, addr: u32, n: u32) {
        NOTIFY.setup_increments(ATOMIC, CREDIT_ID, addr);
        NOTIFY.increment(self.my_xy, xy, n);
    }

    /// Adds `n` to semaphore `id` of the core `xy`.
    pub fn notify_semaphore(&self, xy: u32, id: SemaphoreId, n: u32) {
        self.notify(xy, id.addr(self.semaphores), n);
    }

    // ---- checks ----

    /// The write offset with `index`.
    #[inline(always)]
    pub fn offset(&self, index: u32) -> u32 {
        match self.write_offset.get(index as usize) {
            Some(&offset) => offset,
            None => {
                self.status.halt(Fault::BadIndex, index, self.at());
                0
            }
        }
    }

    /// Stops at the present command, which cannot be executed, and skips its header when a debugger
    /// continues it.
    #[cold]
    #[inline(never)]
    pub fn refuse(&mut self, fault: Fault, detail: u32) {
        self.status.halt(fault, detail, self.at());
        self.skip(crate::HEADER);
    }

    /// Gives everything back and waits until nothing is in flight.
    pub fn finish(&mut self) {
        WRITES.wait_ready();
        for id in WRITE_IDS {
            NIU.wait_left(id);
        }
        let pages = self.ring.drain();
        if pages != 0 {
            CREDIT.increment(self.my_xy, self.upstream, pages);
        }
        self.barrier();
        // Multicasts are answered more often than they are counted: leave no miscount behind.
        NIU.clear_outstanding(1 << WRITE_IDS[0] | 1 << WRITE_IDS[1]);
        // Whatever came behind TERMINATE was not executed: waiting here for ever is where a
        // superfluous command shows.
        wait(self.filled, |count| !self.ring.would_take(WrapCount(count)));
        CREDIT.wait_ready();
        NOTIFY.wait_ready();
        CREDIT_NIU.wait_answered(CREDIT_ID);
        if let Some(host_side) = &self.host_side {
            host_side.wait_all_back();
        }
    }
}
