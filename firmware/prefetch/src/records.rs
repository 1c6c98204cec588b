//! Where the device side of a split prefetcher finds its commands: in the records that the host
//! side writes into its ring.
//!
//! The ring stands for prefetch queue and reads of records: what the prefetcher asks of its source
//! is the same. The command data queue is left for the chunks of command buffers.

use super::buffer::Buffer;
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::prefetch_core::{CMDDAT_Q, MAX_RECORD_BYTES, SEM_EXEC_BUF};
use tilework_abi::cq::layout::prefetch_d_core::{SEM_RECORD_PAGES, SEM_RECORD_PAGES_FREE};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::PCIE_HOST_MID;
use tilework_cq_core::fetch::FetchQueue;
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{FIRST_READ_ID, NIU, READS};
use tilework_cq_core::initiators::prefetch_d::{CREDIT, CREDIT_ID, CREDIT_NIU};
use tilework_cq_core::peers::Peers;
use tilework_cq_core::records::RecordReader;
use tilework_rt::KernelContext;
use tilework_rt::niu::ATOMIC;
use tilework_rt::reg::{fence, read, wait};

/// Hands out the commands of records.
pub struct Fetcher {
    pub(super) my_xy: u32,
    host_side: u32,
    semaphores: u32,
    reader: RecordReader,
    /// Address of the header of the present record.
    header: u32,
    /// Chunks of the command buffer.
    pub(super) queue: FetchQueue,
    /// The command to execute next, and the end of what is here of its record. Equal when that is
    /// used up.
    pub(super) at: u32,
    pub(super) end: u32,
    /// Bytes of the command buffer behind `end`; zero for a record.
    pub(super) behind: u32,
    /// Whether `at` and `end` lie in the queue's oldest chunk.
    pub(super) open: bool,
    /// The entry of the present record if it has the stall flag, or zero.
    pub(super) stalled: u32,
    pub(super) buffer: Option<Buffer>,
}

impl Fetcher {
    /// A fetcher that has taken no record yet.
    pub fn new(ctx: &KernelContext, peers: &Peers) -> Self {
        READS.setup_reads(PCIE_HOST_MID);
        let mut fetcher = Self {
            my_xy: ctx.my_xy,
            host_side: peers.issue,
            semaphores: ctx.semaphores,
            reader: RecordReader::new(peers.first_count),
            header: 0,
            queue: FetchQueue::new(CMDDAT_Q.base().get(), CMDDAT_Q.end().get()),
            at: 0,
            end: 0,
            behind: 0,
            open: false,
            stalled: 0,
            buffer: None,
        };
        fetcher.setup_credit();
        fetcher
    }

    fn setup_credit(&mut self) {
        CREDIT.setup_increments(ATOMIC, CREDIT_ID, SEM_RECORD_PAGES_FREE.addr(self.semaphores));
    }

    /// The next command and the bytes from it to the end of its record. Waits for it.
    #[inline(always)]
    pub fn next_command(&mut self, status: &Status) -> (u32, u32) {
        while self.at == self.end {
            self.next_part(status);
        }
        (self.at, self.end - self.at + self.behind)
    }

    /// Gives back what is used up, and waits for the next chunk or record.
    #[inline(never)]
    fn next_part(&mut self, status: &Status) {
        let stalled = self.stalled;
        self.remove(status);
        if self.buffer.is_some() {
            self.start_chunks();
            return self.open_oldest(status);
        }
        if self.stalled != 0 {
            self.end_of_stalled(status);
        }
        if stalled != 0 {
            // A debugger goes on behind a record without an EXEC_BUF, or a buffer without an end.
            self.tell_host_side();
        }
        self.next_record(status);
    }

    /// Waits for the next record.
    fn next_record(&mut self, status: &Status) {
        self.give_back();
        let reader = &self.reader;
        wait(SEM_RECORD_PAGES.addr(self.semaphores), |filled| reader.has_record(WrapCount(filled)));
        self.header = self.reader.header();
        let bytes = read(self.header);
        if bytes > MAX_RECORD_BYTES {
            status.halt(Fault::RecordTooLong, bytes, self.header);
        }
        if let Some((start, end)) = self.reader.take(bytes) {
            (self.at, self.end) = (start, end);
            self.stalled = read(self.header + size_of::<u32>() as u32);
        }
    }

    fn give_back(&mut self) {
        let pages = self.reader.give_back();
        if pages != 0 {
            CREDIT.increment(self.my_xy, self.host_side, pages);
        }
    }

    /// Lets the host side pass on what is behind the record with the stall flag, in place of the
    /// dispatcher.
    #[cold]
    fn tell_host_side(&mut self) {
        CREDIT.setup_increments(ATOMIC, CREDIT_ID, SEM_EXEC_BUF.addr(self.semaphores));
        CREDIT.increment(self.my_xy, self.host_side, 1);
        self.setup_credit();
    }

    /// Waits for the oldest chunk and makes its commands the next ones.
    pub(super) fn open_oldest(&mut self, status: &Status) {
        if self.queue.is_empty() {
            // No chunk follows: a command passes the end of its record.
            return status.halt(Fault::BadStride, self.end, self.at);
        }
        let chunk = self.queue.oldest();
        while NIU.outstanding(FIRST_READ_ID + chunk.read_index()) {
            self.start_chunks();
        }
        // The read wrote L1 behind the data cache's back.
        fence();
        self.behind -= chunk.bytes;
        self.at = chunk.start;
        self.end = chunk.start + chunk.bytes;
        self.open = true;
    }

    /// Gives back the place of the chunk that is used up, if one is open.
    pub(super) fn remove(&mut self, status: &Status) {
        if core::mem::take(&mut self.open) {
            self.queue.remove();
            if self.queue.is_empty() {
                self.end_of_stalled(status);
            }
        }
    }

    /// The place to name for a record with the stall flag.
    pub(super) const fn stalled_at(&self) -> u32 {
        self.header
    }

    /// Starts the reads of chunks. Records come by themselves.
    #[inline(always)]
    pub fn start_reads(&mut self, _: &Status) {
        if self.buffer.is_some() {
            self.start_chunks();
        }
    }

    /// As [`start_reads`](Self::start_reads).
    pub fn look(&mut self, status: &Status) {
        self.start_reads(status);
    }

    /// Gives everything back and waits until nothing is in flight.
    pub fn finish(&mut self) {
        self.give_back();
        CREDIT.wait_ready();
        CREDIT_NIU.wait_answered(CREDIT_ID);
    }
}
