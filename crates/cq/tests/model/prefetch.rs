//! The prefetcher: the firmware's ring arithmetic, in the order in which `firmware/prefetch` calls
//! it.

use crate::Defect;
use crate::machine::{CMDDAT, COUNT, ENTRIES, ISSUE_BASE, ISSUE_BYTES, PAGES, Packet, Queue, Reached};
use crate::machine::{PAGE_CELLS, State, Writer, Wrong, cells};
use crate::script::{CELL, Cell, Step};
use tilework_abi::PCIE_ALIGN;
use tilework_abi::cq::count::WrapCount;
use tilework_cq_core::fetch::{FetchQueue, IssueCursor, RECORDS, Record};

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
    /// The command to execute next and the end of its record.
    at: u32,
    end: u32,
    open: bool,
    /// The script's next step.
    next: usize,
    /// Whether a relay waits for its acknowledgements.
    writing: bool,
    done: bool,
    /// The command data queue.
    pub(crate) memory: [Cell; ((CMDDAT.end - CMDDAT.start) / CELL) as usize],
    pub(crate) writer: Writer,
    /// Semaphore of free pages.
    pub(crate) credits: WrapCount,
    /// Pages released so far.
    pub(crate) released: u32,
    /// Semaphore of notifications, and how many were waited for.
    pub(crate) sync: WrapCount,
    stalls: WrapCount,
    /// Newest record, for [`Prefetch::is_older`].
    newest: usize,
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
            next: 0,
            writing: false,
            done: false,
            memory: [Cell::EMPTY; ((CMDDAT.end - CMDDAT.start) / CELL) as usize],
            writer: Writer::new(WrapCount(COUNT)),
            credits: WrapCount(COUNT).plus(PAGES),
            released: 0,
            sync: WrapCount(u32::MAX),
            stalls: WrapCount(u32::MAX),
            newest: 0,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the read of record `a` was started before that of record `b`.
    pub(crate) fn is_older(&self, a: usize, b: usize) -> bool {
        let age = |index: usize| (self.newest + RECORDS - index) % RECORDS;
        age(a) > age(b)
    }

    /// Whether another read may be started. An entry stays until its record has arrived, so that
    /// fewer records may be in flight than there are entries: the firmware has [`RECORDS`] of 1534.
    fn has_slot(&self, queue: &Queue) -> bool {
        self.queue.has_slot() && (self.started < ENTRIES || queue.has(Defect::LapsEntries))
    }

    /// Where a record goes: the firmware's rule, or one that forgets the records in the queue.
    fn place(&self, queue: &Queue, bytes: u32) -> Option<u32> {
        let place = self.queue.place(bytes);
        if queue.has(Defect::OverrunsCmddat) && place.is_none() { Some(CMDDAT.start) } else { place }
    }
}

impl State {
    /// Starts the read of the next record, if there is one and room for it.
    pub(crate) fn fetch(&mut self, queue: &Queue) {
        let prefetch = &mut self.prefetch;
        let entry = self.entries[prefetch.entry];
        if prefetch.done || entry == 0 || !prefetch.has_slot(queue) {
            return;
        }
        let bytes = u32::from(entry) * CELL;
        let Some(start) = prefetch.place(queue, bytes) else { return };
        let wraps = start == CMDDAT.start && !prefetch.queue.is_empty();
        if queue.has(Defect::OtherIssueRule) && prefetch.issue.position() + bytes == ISSUE_BASE + ISSUE_BYTES {
            // Starts again when a record would end at the end: the bytes are taken from the start.
            prefetch.issue = IssueCursor::new(ISSUE_BASE, ISSUE_BYTES);
        }
        let from = prefetch.issue.take(bytes);
        let record = Record { start, bytes, host_end: prefetch.issue.position() };
        let index = prefetch.queue.start(record);
        prefetch.newest = index;
        if queue.has(Defect::FreesEntryAtStart) {
            self.entries[prefetch.entry] = 0;
        }
        prefetch.entry = (prefetch.entry + 1) % ENTRIES;
        prefetch.started += 1;
        self.send(Packet::Read { index, from, to: start, bytes });
        if wraps {
            self.reach(Reached::CmddatWrap);
        }
    }

    /// Removes the record that is used up.
    pub(crate) fn remove(&mut self) {
        let prefetch = &mut self.prefetch;
        if prefetch.open && prefetch.at == prefetch.end && !prefetch.writing {
            prefetch.queue.remove();
            prefetch.open = false;
        }
    }

    /// Takes the oldest record once its read is answered, and frees its entry.
    pub(crate) fn take(&mut self, queue: &Queue) {
        let prefetch = &self.prefetch;
        if prefetch.open || prefetch.queue.is_empty() {
            return;
        }
        let (oldest, record) = prefetch.queue.oldest();
        // The defect: any answer is taken for the oldest's.
        let any = queue.has(Defect::TakesAnyAnswer) && self.any_answered();
        if self.is_pending(oldest) && !any {
            return;
        }
        let prefetch = &mut self.prefetch;
        if !queue.has(Defect::FreesEntryAtStart) {
            self.entries[prefetch.arriving] = 0;
        }
        prefetch.arriving = (prefetch.arriving + 1) % ENTRIES;
        prefetch.started -= 1;
        (prefetch.at, prefetch.end, prefetch.open) = (record.start, record.start + record.bytes, true);
    }

    /// Executes the command at hand.
    pub(crate) fn relay(&mut self, queue: &Queue) {
        let prefetch = &self.prefetch;
        if !prefetch.open || prefetch.at == prefetch.end || prefetch.done {
            return;
        }
        let step = queue.script.steps[prefetch.next];
        if prefetch.writing {
            return self.flush(queue, step);
        }
        let found = prefetch.memory[cells(prefetch.at - CMDDAT.start, CELL)][0];
        let bytes = CELL + step.payload() as u32 * CELL;
        if found != Cell::new(prefetch.next, 0) || bytes > prefetch.end - prefetch.at {
            return self.fail(Wrong::Record(found));
        }
        match step {
            Step::Stall => self.stall(queue),
            Step::Quit => {
                if prefetch.writer.all_back(prefetch.credits) {
                    self.prefetch.done = true;
                    self.advance();
                }
            }
            _ => self.append(queue, step),
        }
    }

    fn stall(&mut self, queue: &Queue) {
        let prefetch = &self.prefetch;
        let count = prefetch.stalls.plus(1);
        let first = WrapCount(u32::MAX).plus(1);
        // The defect: any notification since the start will do.
        let reached = prefetch.sync.wrap_ge(if queue.has(Defect::StallTakesOldNotice) { first } else { count });
        if reached {
            let before = queue.script.commands_before(prefetch.next);
            if !self.have_arrived(queue, before) {
                return self.fail(Wrong::StallPassed);
            }
            self.prefetch.stalls = count;
            self.advance();
        } else {
            self.reach(Reached::Stalled);
        }
    }

    /// Acquires the pages of a relay and starts its writes.
    fn append(&mut self, queue: &Queue, step: Step) {
        let bytes = step.payload() as u32 * CELL;
        let prefetch = &mut self.prefetch;
        let pages = match queue.has(Defect::CountsOpenPageTwice) {
            true => bytes.div_ceil(PAGE_CELLS * CELL),
            false => prefetch.writer.pages_needed(bytes),
        };
        let enough = match queue.has(Defect::ComparesPlainly) {
            true => prefetch.credits.0 >= COUNT.wrapping_add(prefetch.released + prefetch.writer.held() + pages),
            false => prefetch.writer.can_acquire(prefetch.credits, pages),
        };
        if !enough {
            return self.reach(Reached::RingFull);
        }
        prefetch.writer.acquire(pages);
        prefetch.writing = true;
        let (mut from, mut left) = (prefetch.at + CELL, bytes);
        while left != 0 {
            let (to, here) = self.prefetch.writer.piece(left);
            self.send(Packet::Relay { from, to, bytes: here });
            from += here;
            left -= here;
            if left != 0 {
                self.reach(Reached::RingCut);
            }
        }
    }

    /// Announces the pages of a relay when it is acknowledged.
    fn flush(&mut self, queue: &Queue, step: Step) {
        if self.in_flight(|p| matches!(p, Packet::Relay { .. })) && !queue.has(Defect::CreditBeforeData) {
            return;
        }
        self.prefetch.writing = false;
        if !matches!(step, Step::Part(_)) {
            let pages = self.prefetch.writer.release();
            self.prefetch.released += pages;
            let few = queue.has(Defect::ReleasesOnePageTooFew) && pages > 1;
            self.send(Packet::Filled(pages - u32::from(few)));
        }
        self.advance();
    }

    /// Moves to the next command: a record of the script holds one.
    fn advance(&mut self) {
        self.prefetch.next += 1;
        self.prefetch.at = self.prefetch.end;
    }

    /// Whether the read of record `record` is not answered.
    fn is_pending(&self, record: usize) -> bool {
        self.in_flight(|p| matches!(p, Packet::Read { index, .. } if index == record))
    }

    /// Whether the read of any record in the queue was answered.
    fn any_answered(&self) -> bool {
        let (oldest, _) = self.prefetch.queue.oldest();
        let living = |&i: &usize| i == oldest || self.prefetch.is_older(oldest, i);
        (0..RECORDS).filter(living).any(|i| !self.is_pending(i))
    }
}

const _: () = assert!(ISSUE_BYTES.is_multiple_of(PCIE_ALIGN) && CMDDAT.start.is_multiple_of(PCIE_ALIGN));
