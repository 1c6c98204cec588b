//! Command buffers, and what is the same for every source of commands: moving over the bytes that
//! are here.
//!
//! A command buffer takes the place of the host's records. It is read in chunks, many in flight,
//! which lie in the command data queue. A command may pass the end of its chunk; its header does
//! not, because both begin at multiples of 64 bytes.

use super::fetcher::Fetcher;
use super::source::{Pages, Reads};
use tilework_abi::PCIE_ALIGN;
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::MAX_PACKET_BYTES;
use tilework_cq_core::fetch::Record;
use tilework_cq_core::halt::Status;
use tilework_cq_core::initiators::prefetch::{FIRST_READ_ID, NIU, READS};
use tilework_cq_core::local::Table;

/// Bytes of a command buffer that are read at once.
const CHUNK: u32 = MAX_PACKET_BYTES;

/// A command buffer that is being executed.
pub struct Buffer {
    pages: Pages,
    /// Bytes that are not read.
    unread: u32,
    /// All of its pages.
    page_count: u32,
    /// Where the next record from the host goes.
    resume: u32,
}

impl Fetcher {
    /// Bytes of the next command that are here in one piece, and bytes of its record that follow.
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
    pub fn advance(&mut self, bytes: u32, status: &Status) {
        if bytes > self.end - self.at {
            self.skip(bytes, status);
        } else {
            self.at += bytes;
        }
    }

    /// Moves over bytes of a command buffer that are not all here.
    #[inline(never)]
    fn skip(&mut self, bytes: u32, status: &Status) {
        let mut left = bytes;
        while left > self.present() {
            left -= self.present();
            self.next_chunk(status);
        }
        self.at += left;
    }

    /// Leaves what is here of a command buffer and waits for the next of it, which there is.
    #[inline(never)]
    pub fn next_chunk(&mut self, status: &Status) {
        self.at = self.end;
        self.remove(status);
        self.start_chunks();
        self.open_oldest(status);
    }

    /// Copies the next `words` words of the record to the start of `table` and moves over them.
    #[inline(never)]
    pub fn take_words<const N: usize>(&mut self, table: &Table<N>, words: usize, status: &Status) {
        let mut taken = 0;
        while taken != words {
            if self.present() == 0 {
                self.next_chunk(status);
            }
            let here = (self.present() as usize / size_of::<u32>()).min(words - taken);
            table.fill(taken, self.at, here);
            self.at += (here * size_of::<u32>()) as u32;
            taken += here;
        }
    }

    /// A record with the stall flag, or the command buffer behind it, is used up, and nothing has
    /// said that this is its end.
    #[cold]
    #[inline(never)]
    pub(super) fn end_of_stalled(&mut self, status: &Status) {
        match &self.buffer {
            // More chunks follow.
            Some(buffer) if buffer.unread != 0 => {}
            Some(buffer) => {
                status.halt(Fault::NoExecBufEnd, buffer.page_count, self.at);
                self.leave();
            }
            None => {
                let entry = core::mem::take(&mut self.stalled);
                status.halt(Fault::StallEntry, entry, self.stalled_at());
            }
        }
    }

    /// Goes on with the commands of a buffer of `bytes` bytes in `page_count` pages, behind the
    /// command at the end of a record with the stall flag; false when this is no such record, or
    /// its buffer.
    pub fn enter(&mut self, pages: Pages, bytes: u32, page_count: u32) -> bool {
        if self.stalled == 0 || self.buffer.is_some() {
            return false;
        }
        // Nothing was fetched behind the record, so the queue is empty now.
        if core::mem::take(&mut self.open) {
            self.queue.remove();
        }
        self.at = self.end;
        self.behind = bytes;
        self.buffer = Some(Buffer { pages, unread: bytes, page_count, resume: self.queue.position() });
        true
    }

    /// Whether the commands come from a buffer.
    pub const fn in_buffer(&self) -> bool {
        self.buffer.is_some()
    }

    /// Leaves the buffer: the host's records follow. What was read of its rest is dropped.
    #[inline(never)]
    pub fn leave(&mut self) {
        while !self.queue.is_empty() {
            NIU.wait_answered(FIRST_READ_ID + self.queue.oldest().read_index());
            self.queue.remove();
        }
        if let Some(buffer) = self.buffer.take() {
            self.queue.resume(buffer.resume);
        }
        self.open = false;
        self.at = self.end;
        self.behind = 0;
        self.stalled = 0;
    }

    /// Starts the reads of all chunks that there is room for.
    #[inline(never)]
    pub(super) fn start_chunks(&mut self) {
        let Some(buffer) = &mut self.buffer else { return };
        while buffer.unread != 0 && self.queue.has_slot() && self.queue.has_read() {
            let bytes = buffer.unread.min(CHUNK);
            let Some(start) = self.queue.place(bytes) else { break };
            let record = Record { start, bytes, host_end: 0, read: self.queue.begin_read() };
            self.queue.start(record);
            buffer.unread -= bytes;
            buffer.pages.read(&mut Reads::new(self.my_xy, FIRST_READ_ID + record.read_index()), start, bytes);
        }
        READS.wait_ready();
    }
}

const _: () = assert!(CHUNK.is_multiple_of(PCIE_ALIGN));
