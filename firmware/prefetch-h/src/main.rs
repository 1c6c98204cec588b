//! `cq_prefetch_h`: the host side of a split prefetcher. Reads records from host memory and passes
//! them on, whole and unread, to the device side on another tile, which executes them.
//!
//! Runs on the BRISC of its tile, on NoC 0, as a kernel in host mode. It reads records as the whole
//! prefetcher does, with the same source, and writes them into the ring of the device side
//! ([`tilework_cq_core::records`]). tt-metal's `cq_prefetch.cpp` also executes `RELAY_LINEAR_H` on
//! this side, for memory that the device side cannot reach; here both sides are on one NoC, and the
//! device side executes it.
//!
//! Behind a record with the stall flag it passes nothing on until the dispatcher has told it that
//! the `EXEC_BUF_END` of its command buffer was executed.
#![no_std]
#![no_main]

#[path = "../../prefetch/src/fetcher.rs"]
mod fetcher;
// What the fetcher reads a command buffer with; this side has none.
#[path = "../../prefetch/src/buffer.rs"]
#[expect(dead_code)]
mod buffer;
#[path = "../../prefetch/src/source.rs"]
#[expect(dead_code)]
mod source;

use fetcher::Fetcher;
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::prefetch_core::SEM_EXEC_BUF;
use tilework_abi::cq::layout::prefetch_d_core::{RECORD_HEADER, RECORDS, SEM_RECORD_PAGES, SEM_RECORD_PAGES_FREE};
use tilework_abi::cq::prefetch::PrefetchCmdId;
use tilework_abi::cq::status::Kernel;
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{CREDIT, CREDIT_ID, NIU, WRITE_IDS, WRITES};
use tilework_cq_core::peers::Peers;
use tilework_cq_core::records::RecordWriter;
use tilework_cq_core::span::packet;
use tilework_rt::niu::{ATOMIC, WRITE};
use tilework_rt::reg::{fence, publish, read, read8, wait, write};
use tilework_rt::{KernelContext, kernel};

/// Transaction id of all writes.
const WRITE_ID: u32 = WRITE_IDS[0];
/// Where headers are sent from: this core has no record ring of its own.
const HEADER: u32 = RECORDS.base().get();

kernel!(main);

fn main(ctx: &KernelContext) {
    let peers = Peers::told(ctx);
    let mut status = Status::new(Kernel::Prefetch);
    let mut fetcher = Fetcher::new(ctx, &peers);
    let mut device_side = DeviceSide::new(ctx, &peers);
    let ends = SEM_EXEC_BUF.addr(ctx.semaphores);
    let mut more = true;
    while more {
        let (at, bytes) = fetcher.next_command(&status);
        // A record that is for the prefetcher itself holds one command.
        more = read8(at) != PrefetchCmdId::Terminate as u8;
        // Nothing is fetched behind a record with the stall flag, so it is the only one here.
        let stalled = if fetcher.queue.is_single() { fetcher.stalled } else { 0 };
        fence();
        let before = read(ends);
        device_side.pass_on(at, bytes, stalled, || fetcher.start_reads(&status));
        if stalled != 0 {
            wait(ends, |count| count != before);
            fetcher.stalled = 0;
        }
        fetcher.advance(bytes, &status);
        status.count();
    }
    fetcher.finish();
    device_side.finish();
}

/// The ring of the device side.
struct DeviceSide {
    my_xy: u32,
    xy: u32,
    /// L1 address of the semaphore of free pages.
    credits: u32,
    ring: RecordWriter,
}

impl DeviceSide {
    /// The ring empty.
    fn new(ctx: &KernelContext, peers: &Peers) -> Self {
        WRITES.setup_writes(WRITE, WRITE_ID, 0);
        CREDIT.setup_increments(ATOMIC, CREDIT_ID, SEM_RECORD_PAGES.addr(ctx.semaphores));
        Self {
            my_xy: ctx.my_xy,
            xy: peers.prefetch,
            credits: SEM_RECORD_PAGES_FREE.addr(ctx.semaphores),
            ring: RecordWriter::new(peers.first_count),
        }
    }

    /// Writes the record of `bytes` bytes at `from`, with its entry if that has the stall flag, and
    /// announces it when it has arrived; meanwhile calls `others`.
    fn pass_on(&mut self, from: u32, bytes: u32, stalled: u32, mut others: impl FnMut()) {
        let pages = RecordWriter::pages(bytes);
        let over = self.ring.passed_over(pages);
        if over != 0 {
            self.take(over, [0, 0]);
            self.announce(over);
        }
        let (mut from, mut to, mut left) = (from, self.take(pages, [bytes, stalled]) + RECORD_HEADER, bytes);
        while left != 0 {
            let n = packet(left, left);
            WRITES.write(self.my_xy, from, self.xy, to, n);
            from += n;
            to += n;
            left -= n;
        }
        others();
        self.announce(pages);
    }

    /// Waits for `pages` and writes the header in front of what will be in them. Returns its
    /// address.
    fn take(&mut self, pages: u32, header: [u32; 2]) -> u32 {
        let ring = &self.ring;
        wait(self.credits, |count| ring.can_take(WrapCount(count), pages));
        let at = self.ring.take(pages);
        write(HEADER, header[0]);
        write(HEADER + 4, header[1]);
        publish(HEADER + 4);
        WRITES.write(self.my_xy, HEADER, self.xy, at, 8);
        at
    }

    /// Announces `pages` when everything has arrived. Then the header may change as well.
    fn announce(&self, pages: u32) {
        WRITES.wait_ready();
        NIU.wait_answered(WRITE_ID);
        CREDIT.increment(self.my_xy, self.xy, pages);
    }

    /// Waits until every page has come back and nothing is in flight.
    fn finish(&self) {
        wait(self.credits, |count| self.ring.all_back(WrapCount(count)));
        CREDIT.wait_ready();
        NIU.wait_answered(CREDIT_ID);
    }
}
