//! The prefetcher's fetching: the firmware's arithmetic, in the order in which `firmware/prefetch`
//! calls it. Its relaying is in [`crate::relay`].

use crate::Defect;
use crate::machine::{CHUNK, CMDDAT, COUNT, ENTRIES, ISSUE_BASE, ISSUE_BYTES, MAX_MERGED, PAGES, SCRATCH_CELLS};
use crate::machine::{Packet, Queue, Reached, State, Writer, Wrong, cells};
use crate::relay::Phase;
use crate::script::{CELL, Cell, Step};
use tilework_abi::PCIE_ALIGN;
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::prefetch_core::PREFETCH_Q_STALL_BIT;
use tilework_cq_core::fetch::{FetchQueue, IssueCursor, Record};

/// The prefetcher and its memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Prefetch {
    issue: IssueCursor,
    queue: FetchQueue,
    /// Entry whose read is started next, and entry of the oldest record that has not been taken.
    entry: usize,
    arriving: usize,
    /// Entries whose read was started and that are not free.
    started: usize,
    /// The command to execute next, and the end of what is here of its record.
    pub(crate) at: u32,
    pub(crate) end: u32,
    open: bool,
    /// Bytes to move over that are not here yet.
    skip: u32,
    /// Whether an entry with the stall flag was taken and is not over.
    stalled: bool,
    buffer: Option<InBuffer>,
    /// The script's next step.
    pub(crate) next: usize,
    pub(crate) phase: Phase,
    pub(crate) done: bool,
    /// The command data queue.
    pub(crate) memory: [Cell; ((CMDDAT.end - CMDDAT.start) / CELL) as usize],
    /// The scratch buffer.
    pub(crate) scratch: [Cell; SCRATCH_CELLS],
    pub(crate) writer: Writer,
    /// Which of two ids the newest writes carry, and the pages that they filled and that are not
    /// announced.
    pub(crate) newest: bool,
    pub(crate) unannounced: u32,
    /// Semaphore of free pages.
    pub(crate) credits: WrapCount,
    /// Pages released so far.
    pub(crate) released: u32,
    /// Semaphore of notifications, and how many were waited for.
    pub(crate) sync: WrapCount,
    pub(crate) stalls: WrapCount,
}

/// The command buffer that is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct InBuffer {
    /// Its `EXEC_BUF`.
    exec: usize,
    /// Bytes whose read was started.
    read: u32,
    /// Where the next record from the host goes.
    resume: u32,
}

impl Prefetch {
    pub(crate) fn new() -> Self {
        Self {
            issue: IssueCursor::new(ISSUE_BASE, ISSUE_BYTES),
            queue: FetchQueue::new(CMDDAT.start, CMDDAT.end),
            entry: 0,
            arriving: 0,
            started: 0,
            at: 0,
            end: 0,
            open: false,
            skip: 0,
            stalled: false,
            buffer: None,
            next: 0,
            phase: Phase::Idle,
            done: false,
            memory: [Cell::EMPTY; ((CMDDAT.end - CMDDAT.start) / CELL) as usize],
            scratch: [Cell::EMPTY; SCRATCH_CELLS],
            writer: Writer::new(WrapCount(COUNT)),
            newest: false,
            unannounced: 0,
            credits: WrapCount(COUNT).plus(PAGES),
            released: 0,
            sync: WrapCount(u32::MAX),
            stalls: WrapCount(u32::MAX),
        }
    }

    /// Bytes that are here.
    pub(crate) fn present(&self) -> u32 {
        self.end - self.at
    }

    /// Moves over bytes, some of which may not be here.
    pub(crate) fn advance(&mut self, bytes: u32) {
        let here = bytes.min(self.present());
        self.at += here;
        self.skip += bytes - here;
    }

    /// Whether another read may be started. An entry stays until its record has arrived, so that
    /// fewer records may be in flight than there are entries: the firmware has 16 of 1534.
    fn has_slot(&self, queue: &Queue) -> bool {
        self.queue.has_slot() && (self.started < ENTRIES || queue.has(Defect::LapsEntries))
    }

    /// Where a record goes: the firmware's rule, or one that forgets the records in the queue.
    fn place(&self, queue: &Queue, bytes: u32) -> Option<u32> {
        let place = self.queue.place(bytes);
        if queue.has(Defect::OverrunsCmddat) && place.is_none() { Some(CMDDAT.start) } else { place }
    }

    /// Adds the record of the next entry, which lies at `start`; returns its bytes.
    fn add(&mut self, entry: u16, start: u32, read: u32) -> u32 {
        let bytes = bytes_of(entry);
        self.issue.take(bytes);
        self.queue.start(Record { start, bytes, host_end: self.issue.position(), read });
        self.stalled |= entry & PREFETCH_Q_STALL_BIT != 0;
        self.entry = (self.entry + 1) % ENTRIES;
        self.started += 1;
        bytes
    }
}

fn bytes_of(entry: u16) -> u32 {
    u32::from(entry & !PREFETCH_Q_STALL_BIT) * CELL
}

impl State {
    /// Starts the read of the next records, if there is one and room for it; of the next chunk of a
    /// command buffer.
    pub(crate) fn fetch(&mut self, queue: &Queue) {
        if self.prefetch.done {
            return;
        }
        if self.prefetch.buffer.is_some() {
            return self.fetch_chunk(queue);
        }
        let behind_stall = self.prefetch.stalled && !queue.has(Defect::FetchesPastStall);
        let entry = self.entries[self.prefetch.entry];
        let prefetch = &mut self.prefetch;
        if entry == 0 || behind_stall || !prefetch.has_slot(queue) || !prefetch.queue.has_read() {
            return;
        }
        let bytes = bytes_of(entry);
        let Some(start) = prefetch.place(queue, bytes) else { return };
        let wraps = start == CMDDAT.start && !prefetch.queue.is_empty();
        if queue.has(Defect::OtherIssueRule) && prefetch.issue.position() + bytes == ISSUE_BASE + ISSUE_BYTES {
            // Starts again when a record would end at the end: the bytes are taken from the start.
            prefetch.issue = IssueCursor::new(ISSUE_BASE, ISSUE_BYTES);
        }
        let from = prefetch.issue.next(bytes);
        let read = prefetch.queue.begin_read();
        let mut free = vec![prefetch.entry];
        let mut total = prefetch.add(entry, start, read);
        // Neighbours of one packet are one read.
        loop {
            let entry = self.entries[prefetch.entry];
            let bytes = bytes_of(entry);
            let beside = total + bytes <= MAX_MERGED
                && prefetch.place(queue, bytes) == Some(start + total)
                && prefetch.issue.next(bytes) == from + total;
            if entry == 0
                || (prefetch.stalled && !queue.has(Defect::FetchesPastStall))
                || !prefetch.has_slot(queue)
                || !beside
            {
                break;
            }
            free.push(prefetch.entry);
            total += prefetch.add(entry, start + total, read);
        }
        if queue.has(Defect::FreesEntryAtStart) {
            free.iter().for_each(|&entry| self.entries[entry] = 0);
        }
        self.send(Packet::Read { read, from, to: start, bytes: total });
        if wraps {
            self.reach(Reached::CmddatWrap);
        }
        if free.len() > 1 {
            self.reach(Reached::ReadsMerged);
        }
    }

    /// Starts the read of the next chunk of the command buffer.
    fn fetch_chunk(&mut self, queue: &Queue) {
        let prefetch = &mut self.prefetch;
        let Some(buffer) = &mut prefetch.buffer else { return };
        let unread = queue.buffer(buffer.exec).cells.len() as u32 * CELL - buffer.read;
        let bytes = unread.min(CHUNK);
        if bytes == 0 || !prefetch.queue.has_slot() || !prefetch.queue.has_read() {
            return;
        }
        let Some(start) = prefetch.queue.place(bytes) else { return };
        let read = prefetch.queue.begin_read();
        prefetch.queue.start(Record { start, bytes, host_end: 0, read });
        let (exec, from) = (buffer.exec, buffer.read);
        buffer.read += bytes;
        self.send(Packet::Chunk { read, exec, from, to: start, bytes });
    }

    /// Removes the record or chunk that is used up.
    pub(crate) fn remove(&mut self) {
        let prefetch = &mut self.prefetch;
        if prefetch.open && prefetch.at == prefetch.end && prefetch.phase.is_between() {
            prefetch.queue.remove();
            prefetch.open = false;
        }
    }

    /// Takes the oldest record once its read is answered, and frees its entry.
    pub(crate) fn take(&mut self, queue: &Queue) {
        let prefetch = &self.prefetch;
        if prefetch.open || prefetch.queue.is_empty() || !prefetch.phase.is_between() {
            return;
        }
        let record = prefetch.queue.oldest();
        // The defect: any answer is taken for the oldest's.
        let any = queue.has(Defect::TakesAnyAnswer) && self.newer_is_answered(record.read);
        if self.is_pending(record.read) && !any {
            return;
        }
        let prefetch = &mut self.prefetch;
        if prefetch.buffer.is_none() {
            if !queue.has(Defect::FreesEntryAtStart) {
                self.entries[prefetch.arriving] = 0;
            }
            prefetch.arriving = (prefetch.arriving + 1) % ENTRIES;
            prefetch.started -= 1;
        }
        (prefetch.at, prefetch.end, prefetch.open) = (record.start, record.start + record.bytes, true);
        let skip = std::mem::take(&mut prefetch.skip);
        prefetch.advance(skip);
    }

    /// `EXEC_BUF`: the next commands are those of a buffer.
    pub(crate) fn enter(&mut self) {
        let prefetch = &mut self.prefetch;
        prefetch.queue.remove();
        prefetch.open = false;
        prefetch.at = prefetch.end;
        if !prefetch.queue.is_empty() {
            return self.fail(Wrong::FetchedPast);
        }
        let (exec, resume) = (prefetch.next, prefetch.queue.position());
        prefetch.buffer = Some(InBuffer { exec, read: 0, resume });
        prefetch.next += 1;
        self.reach(Reached::InBuffer);
    }

    /// `EXEC_BUF_END`: drops what was read of the rest of the buffer.
    pub(crate) fn leave(&mut self, queue: &Queue) {
        let chunks = self.in_flight(|p| matches!(p, Packet::Chunk { .. }));
        if chunks {
            self.reach(Reached::LeftEarly);
            if !queue.has(Defect::LeavesReadsInFlight) {
                return;
            }
        }
        let prefetch = &mut self.prefetch;
        while !prefetch.queue.is_empty() {
            prefetch.queue.remove();
        }
        if let Some(buffer) = prefetch.buffer.take() {
            prefetch.queue.resume(buffer.resume);
        }
        (prefetch.open, prefetch.stalled, prefetch.skip) = (false, false, 0);
        prefetch.at = prefetch.end;
        prefetch.phase = Phase::Idle;
        prefetch.next += 1;
    }

    /// Whether step `step` ends the command buffer that is executed.
    pub(crate) fn ends_buffer(&self, queue: &Queue, step: usize) -> bool {
        self.prefetch.buffer.is_some_and(|buffer| queue.buffer(buffer.exec).last == step)
    }

    /// Whether read `number` is not answered.
    fn is_pending(&self, number: u32) -> bool {
        let is = |p| matches!(p, Packet::Read { read, .. } | Packet::Chunk { read, .. } if read == number);
        self.in_flight(is)
    }

    /// Whether a read behind `oldest` was answered.
    fn newer_is_answered(&self, oldest: u32) -> bool {
        let next = self.prefetch.queue.clone().begin_read();
        (oldest + 1..next).any(|read| !self.is_pending(read))
    }
}

/// The step and its header, if the prefetcher is to execute it next.
pub(crate) fn header(state: &State, queue: &Queue) -> Result<Step, Wrong> {
    let prefetch = &state.prefetch;
    let step = queue.script.steps[prefetch.next];
    let found = prefetch.memory[cells(prefetch.at - CMDDAT.start, CELL)][0];
    // A record holds whole commands; a command may pass the end of a chunk.
    let whole = prefetch.buffer.is_some() || step.stride() <= prefetch.present();
    if found == Cell::new(prefetch.next, 0) && whole { Ok(step) } else { Err(Wrong::Record(found)) }
}

const _: () = assert!(ISSUE_BYTES.is_multiple_of(PCIE_ALIGN) && CMDDAT.start.is_multiple_of(PCIE_ALIGN));
