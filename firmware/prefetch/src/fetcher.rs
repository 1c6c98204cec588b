//! The fetch state machine of figure 5: prefetch queue entries become reads, reads become commands.
//!
//! Figure 5's three questions are asked in this order. Is an entry ready and is there room: start
//! its read. Is a command ready: return it. Is a read pending: wait for the oldest, then look
//! again. Otherwise wait for an entry.

use tilework_abi::PCIE_ALIGN;
use tilework_abi::cq::layout::host;
use tilework_abi::cq::layout::prefetch_core::{
    CMDDAT_Q, MAX_RECORD_BYTES, PREFETCH_Q, PREFETCH_Q_ENTRY_SIZE, PREFETCH_Q_LOG_UNIT, PREFETCH_Q_PCIE_RD_PTR,
    PREFETCH_Q_RD_PTR, PREFETCH_Q_STALL_BIT,
};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::PCIE_HOST_MID;
use tilework_cq_core::fetch::{FetchQueue, IssueCursor, RECORDS, Record};
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{FIRST_READ_ID, NIU, READS};
use tilework_cq_core::peers::Peers;
use tilework_cq_core::span::packet;
use tilework_rt::KernelContext;
use tilework_rt::reg::{fence, read, read16, write, write16};

/// Fetches records and hands out their commands.
pub struct Fetcher {
    my_xy: u32,
    pcie: u32,
    /// The issue region; known once the first entry has appeared.
    issue: Option<IssueCursor>,
    queue: FetchQueue,
    /// Entry that the next read is started for.
    entry: u32,
    /// Entry of the oldest record that has not arrived.
    arriving: u32,
    /// The command to execute next, and the end of its record. Equal when the record is used up, or
    /// there is none.
    at: u32,
    end: u32,
    /// Whether `at` and `end` lie in the queue's oldest record.
    open: bool,
}

impl Fetcher {
    /// A fetcher that has taken no entry yet.
    pub fn new(ctx: &KernelContext, peers: &Peers) -> Self {
        READS.setup_reads(PCIE_HOST_MID);
        Self {
            my_xy: ctx.my_xy,
            pcie: peers.pcie,
            issue: None,
            queue: FetchQueue::new(CMDDAT_Q.base().get(), CMDDAT_Q.end().get()),
            entry: PREFETCH_Q.base().get(),
            arriving: PREFETCH_Q.base().get(),
            at: 0,
            end: 0,
            open: false,
        }
    }

    /// The next command and the bytes from it to the end of its record. Waits for it.
    #[inline(always)]
    pub fn next_command(&mut self, status: &Status) -> (u32, u32) {
        loop {
            self.start_reads(status);
            if self.at != self.end {
                return (self.at, self.end - self.at);
            }
            if self.open {
                self.queue.remove();
                self.open = false;
            }
            if self.queue.is_empty() {
                loop {
                    fence();
                    if read16(self.entry) != 0 {
                        break;
                    }
                }
            } else {
                let (index, record) = self.queue.oldest();
                while NIU.outstanding(FIRST_READ_ID + index as u32) {
                    self.start_reads(status);
                }
                self.arrived(record);
            }
        }
    }

    /// Moves over `bytes` of the record.
    #[inline(always)]
    pub fn advance(&mut self, bytes: u32) {
        self.at += bytes;
    }

    /// Waits until nothing is in flight.
    pub fn finish(&self) {
        READS.wait_ready();
        for index in 0..RECORDS as u32 {
            NIU.wait_answered(FIRST_READ_ID + index);
        }
    }

    /// Tells the host that the oldest record is here and makes its commands the next ones.
    #[inline(always)]
    fn arrived(&mut self, record: Record) {
        // The read wrote L1 behind the data cache's back.
        fence();
        write16(self.arriving, 0);
        write(PREFETCH_Q_RD_PTR, self.arriving);
        write(PREFETCH_Q_PCIE_RD_PTR, record.host_end);
        self.arriving = next_entry(self.arriving);
        self.at = record.start;
        self.end = record.start + record.bytes;
        self.open = true;
    }

    /// Starts the reads of all entries that are ready and have room.
    #[inline(always)]
    pub fn start_reads(&mut self, status: &Status) {
        fence();
        let entry = read16(self.entry);
        if entry != 0 && self.queue.has_slot() {
            self.start_ready(status, entry);
        }
    }

    #[inline(never)]
    fn start_ready(&mut self, status: &Status, first: u16) {
        let mut entry = first;
        while entry != 0 && self.queue.has_slot() {
            if entry & PREFETCH_Q_STALL_BIT != 0 {
                status.halt(Fault::StallEntry, u32::from(entry), self.entry);
            }
            let bytes = u32::from(entry & !PREFETCH_Q_STALL_BIT) << PREFETCH_Q_LOG_UNIT;
            if bytes > MAX_RECORD_BYTES {
                status.halt(Fault::RecordTooLong, u32::from(entry), self.entry);
            }
            let Some(start) = self.queue.place(bytes) else { return };
            self.start_read(start, bytes);
            self.entry = next_entry(self.entry);
            fence();
            entry = read16(self.entry);
        }
    }

    fn start_read(&mut self, start: u32, bytes: u32) {
        let issue = self.issue.get_or_insert_with(|| {
            let told = read(PREFETCH_Q_PCIE_RD_PTR);
            IssueCursor::new(if told != 0 { told } else { host::ISSUE.noc_addr() }, host::ISSUE.size())
        });
        let mut from = issue.take(bytes);
        let index = self.queue.start(Record { start, bytes, host_end: issue.position() });
        let id = FIRST_READ_ID + index as u32;
        let (mut to, mut left) = (start, bytes);
        while left != 0 {
            let n = packet(left, left);
            READS.read(self.my_xy, id, self.pcie, from, to, n);
            from += n;
            to += n;
            left -= n;
        }
        // Keeps a look at the counter of this id behind the start of the read.
        READS.wait_ready();
    }
}

/// The entry behind `entry` in the ring.
#[inline(always)]
fn next_entry(entry: u32) -> u32 {
    let next = entry + PREFETCH_Q_ENTRY_SIZE;
    if next == PREFETCH_Q.end().get() { PREFETCH_Q.base().get() } else { next }
}

const _: () =
    assert!(CMDDAT_Q.base().get().is_multiple_of(PCIE_ALIGN) && host::ISSUE.offset().is_multiple_of(PCIE_ALIGN));
