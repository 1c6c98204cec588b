//! The fetch state machine of figure 5: prefetch queue entries become reads, reads become commands.
//!
//! Figure 5's three questions: is an entry ready and is there room: start its read. Is a command
//! ready: return it. Is a read pending: wait for the oldest, then look again. Otherwise wait for an
//! entry. The first is asked wherever this core waits anyway, and for several entries at a time.
//!
//! A command buffer ([`buffer`](super::buffer)) takes the place of the entries; its chunks lie in
//! the command data queue as records do.

use super::buffer::Buffer;
use tilework_abi::PCIE_ALIGN;
use tilework_abi::cq::layout::host;
use tilework_abi::cq::layout::prefetch_core::{
    CMDDAT_Q, MAX_RECORD_BYTES, PREFETCH_Q, PREFETCH_Q_ENTRY_SIZE, PREFETCH_Q_LOG_UNIT, PREFETCH_Q_PCIE_RD_PTR,
    PREFETCH_Q_RD_PTR, PREFETCH_Q_STALL_BIT,
};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::{MAX_PACKET_BYTES, PCIE_HOST_MID, init};
use tilework_cq_core::fetch::{FetchQueue, IssueCursor, READS as MOST_READS, Record};
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{FIRST_READ_ID, NIU, READS};
use tilework_cq_core::peers::Peers;
use tilework_cq_core::span::packet;
use tilework_rt::KernelContext;
use tilework_rt::reg::{fence, read, read16, wait16, write, write16};

/// Fetches records and hands out their commands.
pub struct Fetcher {
    pub(super) my_xy: u32,
    pcie: u32,
    /// The issue region; known once the first entry has appeared.
    issue: Option<IssueCursor>,
    pub(super) queue: FetchQueue,
    /// Entry that the next read is started for.
    entry: u32,
    /// Entry of the oldest record that has not arrived.
    arriving: u32,
    /// The command to execute next, and the end of what is here of its record. Equal when that is
    /// used up, or there is none.
    pub(super) at: u32,
    pub(super) end: u32,
    /// Bytes of the command buffer behind `end`; zero for a record.
    pub(super) behind: u32,
    /// Whether `at` and `end` lie in the queue's oldest record.
    pub(super) open: bool,
    /// The entry with the stall flag behind which nothing is fetched, or zero.
    pub(super) stalled: u32,
    pub(super) buffer: Option<Buffer>,
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
            behind: 0,
            open: false,
            stalled: 0,
            buffer: None,
        }
    }

    /// The next command and the bytes from it to the end of its record. Waits for it.
    ///
    /// Reads are started by those who wait: here when nothing is ready, and by each relay.
    #[inline(always)]
    pub fn next_command(&mut self, status: &Status) -> (u32, u32) {
        while self.at == self.end {
            self.remove(status);
            if self.queue.is_empty() {
                self.wait_for_entry(status);
            } else {
                self.open_oldest(status);
            }
        }
        (self.at, self.end - self.at + self.behind)
    }

    /// Waits for an entry and starts its read; in a command buffer, that of the next chunk.
    #[inline(never)]
    fn wait_for_entry(&mut self, status: &Status) {
        if self.buffer.is_none() {
            wait16(self.entry, |entry| entry != 0);
        }
        self.start_reads(status);
    }

    /// Waits until nothing is in flight.
    pub fn finish(&self) {
        READS.wait_ready();
        for index in 0..MOST_READS {
            NIU.wait_answered(FIRST_READ_ID + index);
        }
    }

    /// Waits for the oldest record or chunk and makes its commands the next ones.
    #[inline(always)]
    pub(super) fn open_oldest(&mut self, status: &Status) {
        let record = self.queue.oldest();
        while NIU.outstanding(FIRST_READ_ID + record.read_index()) {
            self.look(status);
        }
        // The read wrote L1 behind the data cache's back.
        fence();
        if self.buffer.is_none() {
            // The host may have the place of what has arrived.
            write16(self.arriving, 0);
            write(PREFETCH_Q_RD_PTR, self.arriving);
            write(PREFETCH_Q_PCIE_RD_PTR, record.host_end);
            self.arriving = next_entry(self.arriving);
        } else {
            self.behind -= record.bytes;
        }
        self.at = record.start;
        self.end = record.start + record.bytes;
        self.open = true;
    }

    /// Gives back the place of the record that is used up, if one is open.
    #[inline(always)]
    pub(super) fn remove(&mut self, status: &Status) {
        if self.open {
            self.queue.remove();
            self.open = false;
            if self.stalled != 0 && self.queue.is_empty() {
                self.end_of_stalled(status);
            }
        }
    }

    /// Where the prefetch queue's entry with the stall flag lies.
    pub(super) fn stalled_at(&self) -> u32 {
        previous_entry(self.arriving)
    }

    // ---- records ----

    /// As [`start_reads`](Self::start_reads), where a call is not too slow.
    #[inline(never)]
    pub fn look(&mut self, status: &Status) {
        self.start_reads(status);
    }

    /// Starts the reads of all entries that are ready and have room; of all chunks in a buffer.
    #[inline(always)]
    pub fn start_reads(&mut self, status: &Status) {
        if self.buffer.is_some() {
            return self.start_chunks();
        }
        fence();
        let entry = read16(self.entry);
        if entry != 0 && self.queue.runs_low() {
            self.start_ready(status);
        }
    }

    #[inline(never)]
    fn start_ready(&mut self, status: &Status) {
        let issue = self.issue.get_or_insert_with(|| {
            let told = read(PREFETCH_Q_PCIE_RD_PTR);
            IssueCursor::new(if told != 0 { told } else { host::ISSUE.noc_addr() }, host::ISSUE.size())
        });
        // The records of one read: where they come from, and all of them together.
        let (mut from, mut together) = (0, Record::default());
        while self.stalled == 0 && self.queue.has_slot() {
            fence();
            let entry = read16(self.entry);
            if entry == 0 {
                break;
            }
            let bytes = u32::from(entry & !PREFETCH_Q_STALL_BIT) << PREFETCH_Q_LOG_UNIT;
            if bytes == 0 || bytes > MAX_RECORD_BYTES {
                status.halt(Fault::RecordTooLong, u32::from(entry), self.entry);
            }
            let Some(start) = self.queue.place(bytes) else { break };
            let source = issue.next(bytes);
            // Neighbours of one packet are one read.
            let beside = together.bytes != 0
                && together.bytes.is_multiple_of(PCIE_ALIGN)
                && together.bytes + bytes <= MAX_PACKET_BYTES
                && start == together.start + together.bytes
                && source == from + together.bytes;
            if !beside {
                if !self.queue.has_read() {
                    break;
                }
                start_read(self.my_xy, self.pcie, from, together);
                from = source;
                together = Record { start, bytes: 0, host_end: 0, read: self.queue.begin_read() };
            }
            together.bytes += bytes;
            issue.take(bytes);
            self.queue.start(Record { start, bytes, host_end: issue.position(), read: together.read });
            if entry & PREFETCH_Q_STALL_BIT != 0 {
                self.stalled = entry.into();
            }
            self.entry = next_entry(self.entry);
        }
        start_read(self.my_xy, self.pcie, from, together);
    }
}

/// Starts the read of records that lie at `from` in host memory of the tile `pcie`.
#[inline(never)]
fn start_read(my_xy: u32, pcie: u32, from: u32, records: Record) {
    let (mut from, mut to, mut left) = (from, records.start, records.bytes);
    READS.wait_ready();
    READS.set(init::TARG_ADDR_MID, PCIE_HOST_MID);
    while left != 0 {
        let n = packet(left, left);
        READS.read(my_xy, FIRST_READ_ID + records.read_index(), pcie, from, to, n);
        from += n;
        to += n;
        left -= n;
    }
    // Keeps a look at the counter of this id behind the start of the read.
    READS.wait_ready();
}

/// The entry behind `entry` in the ring.
#[inline(always)]
const fn next_entry(entry: u32) -> u32 {
    let next = entry + PREFETCH_Q_ENTRY_SIZE;
    if next == PREFETCH_Q.end().get() { PREFETCH_Q.base().get() } else { next }
}

/// The entry before `entry` in the ring.
const fn previous_entry(entry: u32) -> u32 {
    (if entry == PREFETCH_Q.base().get() { PREFETCH_Q.end().get() } else { entry }) - PREFETCH_Q_ENTRY_SIZE
}

const _: () =
    assert!(CMDDAT_Q.base().get().is_multiple_of(PCIE_ALIGN) && host::ISSUE.offset().is_multiple_of(PCIE_ALIGN));
