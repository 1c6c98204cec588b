//! The host: `tilework_cq`'s issue queue and completion FIFO, over the model's memories.

use crate::Defect;
use crate::machine::{COMPLETIONS, ENTRIES, ISSUE_BYTES, MAX_RECORD, Queue, Reached, State, Wrong, cells};
use crate::script::{CELL, Cell, Step, cells_of};
use std::convert::Infallible;
use tilework_abi::addr::PageCount;
use tilework_abi::cq::layout::PAGE_SIZE;
use tilework_abi::cq::layout::prefetch_core::PREFETCH_Q_STALL_BIT;
use tilework_cq::completion::CompletionError;
use tilework_cq::issue::QueueError;
use tilework_cq::{CompletionFifo, IssueQueue, IssueRegion, PrefetchPort, PrefetchRing};

/// The host and its memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Host {
    /// The script's next record.
    next: usize,
    queue: IssueQueue,
    fifo: CompletionFifo,
    /// Events that were read.
    pub(crate) events: usize,
    /// The issue region.
    pub(crate) memory: [Cell; (ISSUE_BYTES / CELL) as usize],
    /// The completion FIFO, the first cell of each page.
    pub(crate) pages: [Cell; COMPLETIONS.pages() as usize],
    /// The dispatcher's write pointer, as far as it is known here.
    pub(crate) written: u32,
}

impl Host {
    pub(crate) fn new() -> Self {
        let region = IssueRegion::new(ISSUE_BYTES, MAX_RECORD).unwrap();
        let fifo = CompletionFifo::new(COMPLETIONS);
        Self {
            next: 0,
            queue: IssueQueue::new(region, PrefetchRing::with_entries(ENTRIES as u32)),
            written: fifo.initial_word(),
            fifo,
            events: 0,
            memory: [Cell::EMPTY; (ISSUE_BYTES / CELL) as usize],
            pages: [Cell::EMPTY; COMPLETIONS.pages() as usize],
        }
    }
}

/// The entries. Writes over PCIe arrive in order and before the answer to a later read, so they may
/// arrive at once: that they are seen late is the prefetcher's part.
struct Port<'a> {
    entries: &'a mut [u16; ENTRIES],
    wrong: &'a mut Option<Wrong>,
    /// The stall flag, if the entry to be written has it.
    flag: u16,
}

impl PrefetchPort for Port<'_> {
    type Error = Infallible;

    fn read_slot(&mut self, index: u32) -> Result<u16, Infallible> {
        Ok(self.entries[index as usize])
    }
    fn write_slot(&mut self, index: u32, entry: u16) -> Result<(), Infallible> {
        if self.entries[index as usize] != 0 {
            self.wrong.get_or_insert(Wrong::EntryOverwritten(index));
        }
        self.entries[index as usize] = entry | self.flag;
        Ok(())
    }
}

impl State {
    /// Puts the next record into the queue, or learns that there is no room.
    pub(crate) fn issue(&mut self, queue: &Queue) {
        let host = &mut self.host;
        let Some((step, record)) = queue.script.records.get(host.next) else { return };
        let steps = &queue.script.steps;
        let flag = if matches!(steps[*step], Step::Exec(..)) { PREFETCH_Q_STALL_BIT } else { 0 };
        let mut port = Port { entries: &mut self.entries, wrong: &mut self.wrong, flag };
        let prepared = match host.queue.prepare(&mut port, record) {
            Ok(prepared) => prepared,
            Err(QueueError::Blocked { .. }) => return self.reach(Reached::HostBlocked),
            Err(_) => return self.fail(Wrong::Issue),
        };
        let placement = prepared.placement;
        for (at, cell) in cells(placement.offset.get(), record.size()).zip(cells_of(steps, *step)) {
            host.memory[at] = cell;
        }
        host.next += 1;
        if host.queue.publish(&mut port, prepared).is_err() {
            return self.fail(Wrong::Issue);
        }
        if placement.wrapped {
            self.reach(Reached::IssueWrap);
        }
    }

    /// Reads the next page of the completion FIFO, if there is one, and releases it.
    pub(crate) fn collect(&mut self, queue: &Queue) {
        let events = queue.script.steps.iter().enumerate().filter(|&(_, &step)| step == Step::Event);
        let expected = events.map(|(i, _)| Cell::new(i, 1)).nth(self.host.events);
        let toggle = self.host.fifo.read_word() >> 31;
        match self.host.next_page() {
            Err(_) => self.fail(Wrong::Pointer(self.host.written)),
            Ok(None) => {}
            Ok(Some((found, read))) => {
                self.dispatch.read = if queue.has(Defect::HostKeepsToggle) { read & !(1 << 31) } else { read };
                if expected != Some(found) {
                    return self.fail(Wrong::Completion(found));
                }
                if toggle != read >> 31 {
                    self.reach(Reached::ToggleFlipped);
                }
            }
        }
    }
}

impl Host {
    /// The first cell of the next completion page, and the read pointer behind it.
    fn next_page(&mut self) -> Result<Option<(Cell, u32)>, CompletionError> {
        self.fifo.observe(self.written)?;
        let Some(offset) = self.fifo.page_offset(0) else { return Ok(None) };
        self.events += 1;
        let read = self.fifo.release(PageCount::new(1))?;
        Ok(Some((self.pages[(offset / PAGE_SIZE) as usize], read)))
    }
}
