//! Where the device side of a split prefetcher finds its commands: in the records that the host side
//! writes into its ring.
//!
//! The ring stands for prefetch queue, reads and command data queue: what the prefetcher asks of its
//! source is the same.

use super::source::Pages;
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::prefetch_core::MAX_RECORD_BYTES;
use tilework_abi::cq::layout::prefetch_d_core::{SEM_RECORD_PAGES, SEM_RECORD_PAGES_FREE};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::PCIE_HOST_MID;
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::READS;
use tilework_cq_core::initiators::prefetch_d::{CREDIT, CREDIT_ID, CREDIT_NIU};
use tilework_cq_core::local::Table;
use tilework_cq_core::peers::Peers;
use tilework_cq_core::records::RecordReader;
use tilework_rt::KernelContext;
use tilework_rt::niu::ATOMIC;
use tilework_rt::reg::{read, wait};

/// Hands out the commands of records.
pub struct Fetcher {
    my_xy: u32,
    host_side: u32,
    /// L1 address of the semaphore of filled pages.
    filled: u32,
    reader: RecordReader,
    /// The command to execute next, and the end of its record. Equal when the record is used up.
    at: u32,
    end: u32,
}

impl Fetcher {
    /// A fetcher that has taken no record yet.
    pub fn new(ctx: &KernelContext, peers: &Peers) -> Self {
        READS.setup_reads(PCIE_HOST_MID);
        CREDIT.setup_increments(ATOMIC, CREDIT_ID, SEM_RECORD_PAGES_FREE.addr(ctx.semaphores));
        Self {
            my_xy: ctx.my_xy,
            host_side: peers.issue,
            filled: SEM_RECORD_PAGES.addr(ctx.semaphores),
            reader: RecordReader::new(WrapCount(0)),
            at: 0,
            end: 0,
        }
    }

    /// The next command and the bytes from it to the end of its record. Waits for it.
    #[inline(always)]
    pub fn next_command(&mut self, status: &Status) -> (u32, u32) {
        while self.at == self.end {
            self.next_record(status);
        }
        (self.at, self.end - self.at)
    }

    /// Gives the record back that is used up, and waits for the next.
    #[inline(never)]
    fn next_record(&mut self, status: &Status) {
        self.give_back();
        let reader = &self.reader;
        wait(self.filled, |filled| reader.has_record(WrapCount(filled)));
        let header = self.reader.header();
        let bytes = read(header);
        if bytes > MAX_RECORD_BYTES {
            status.halt(Fault::RecordTooLong, bytes, header);
        }
        if let Some((start, end)) = self.reader.take(bytes) {
            (self.at, self.end) = (start, end);
        }
    }

    fn give_back(&mut self) {
        let pages = self.reader.give_back();
        if pages != 0 {
            CREDIT.increment(self.my_xy, self.host_side, pages);
        }
    }

    /// Bytes from the next command to the end of its record, all of which is here.
    #[inline(always)]
    pub const fn present(&self) -> u32 {
        self.end - self.at
    }

    /// Address of the next byte.
    #[inline(always)]
    pub const fn at(&self) -> u32 {
        self.at
    }

    /// Moves over `bytes` of the record.
    #[inline(always)]
    pub fn advance(&mut self, bytes: u32, _: &Status) {
        self.at += bytes;
    }

    /// Goes on behind the end of what is here: there is nothing, which ends a relay of it.
    pub fn next_chunk(&mut self, status: &Status) {
        status.halt(Fault::BadStride, self.end, self.at);
    }

    /// Copies the next `words` words of the record to the start of `table` and moves over them.
    #[inline(never)]
    pub fn take_words<const N: usize>(&mut self, table: &Table<N>, words: usize, _: &Status) {
        table.fill(0, self.at, words);
        self.at += (words * size_of::<u32>()) as u32;
    }

    /// Whether the commands come from a command buffer, of which this side has none.
    pub const fn in_buffer(&self) -> bool {
        false
    }

    /// Goes on with the commands of a buffer: false, because there are none here.
    pub fn enter(&mut self, _: Pages, _: u32, _: u32) -> bool {
        false
    }

    /// Leaves a command buffer.
    pub fn leave(&mut self) {}

    /// Nothing has to be started: records come by themselves.
    #[inline(always)]
    pub fn start_reads(&mut self, _: &Status) {}

    /// As [`start_reads`](Self::start_reads).
    pub fn look(&mut self, _: &Status) {}

    /// Gives everything back and waits until nothing is in flight.
    pub fn finish(&mut self) {
        self.give_back();
        CREDIT.wait_ready();
        CREDIT_NIU.wait_answered(CREDIT_ID);
    }
}
