//! The dispatcher: the firmware's reader of the ring, in the order in which `firmware/dispatch`
//! calls it.

use crate::Defect;
use crate::machine::{
    COMPLETIONS, COUNT, PAGE_CELLS, PAGES, Packet, Queue, RING, Reached, Reader, State, Wrong, cells,
};
use crate::script::{CELL, Cell, Step};
use tilework_abi::cq::completion::CompletionPtr;
use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::PAGE_SIZE;

/// The dispatcher, its memory and the workers behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dispatch {
    ring: Reader,
    /// Semaphore of filled pages.
    pub(crate) filled: WrapCount,
    /// The dispatch ring.
    pub(crate) memory: [Cell; (PAGES * PAGE_CELLS) as usize],
    /// The script's next command, and how many of its cells were executed.
    next: usize,
    executed: usize,
    /// The completion FIFO's write pointer, and the host's read pointer.
    write: CompletionPtr,
    pub(crate) read: u32,
    /// Whether a page of the completion FIFO was written and not announced.
    page_open: bool,
    done: bool,
    /// Pages that were read.
    pub(crate) pages_read: u32,
    /// Cells of each command that have reached the worker, one bit each.
    pub(crate) workers: Vec<u32>,
}

impl Dispatch {
    pub(crate) fn new(commands: usize) -> Self {
        Self {
            ring: Reader::new(WrapCount(COUNT)),
            filled: WrapCount(COUNT),
            memory: [Cell::EMPTY; (PAGES * PAGE_CELLS) as usize],
            next: 0,
            executed: 0,
            write: COMPLETIONS.start(),
            read: COMPLETIONS.start().word(),
            page_open: false,
            done: false,
            pages_read: 0,
            workers: vec![0; commands],
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Pages that were read and are not given back.
    pub(crate) fn held(&self) -> u32 {
        if self.done { 0 } else { { self.ring }.drain() }
    }

    /// The page that is read.
    fn page(&self) -> u32 {
        (self.ring.at() - RING) / (PAGE_CELLS * CELL)
    }

    fn needs_data(&self) -> bool {
        self.ring.available() == 0 && !self.done
    }
}

impl State {
    /// Moves to the next block and gives the one before the finished one back, when its writes have
    /// left.
    pub(crate) fn block(&mut self, queue: &Queue) {
        if !self.dispatch.needs_data() || !self.dispatch.ring.block_done() {
            return;
        }
        let mut ring = self.dispatch.ring;
        let mut release = ring.next_block();
        let id = ring.parity();
        if queue.has(Defect::GivesBlockBackAtOnce) {
            // The block just finished, whose writes carry the other id.
            release = true;
        } else if release && self.in_flight(|p| matches!(p, Packet::Worker { parity, .. } if parity == id)) {
            self.reach(Reached::BlockWaits);
            if !queue.has(Defect::SourcesMayBeInFlight) {
                return;
            }
        }
        self.dispatch.ring = ring;
        if release {
            let twice = if queue.has(Defect::GivesBlockBackTwice) { 2 } else { 1 };
            self.send(Packet::Freed(twice * Reader::BLOCK_PAGES));
        }
    }

    /// Looks for filled pages.
    pub(crate) fn look(&mut self) {
        let dispatch = &mut self.dispatch;
        if !dispatch.needs_data() || dispatch.ring.block_done() {
            return;
        }
        if !dispatch.ring.knows_more() {
            if !dispatch.ring.would_take(dispatch.filled) {
                return;
            }
            dispatch.ring.note(dispatch.filled);
        }
        dispatch.ring.take();
    }

    /// Executes what is present of the command at hand.
    pub(crate) fn execute(&mut self, queue: &Queue) {
        let dispatch = &self.dispatch;
        if dispatch.done || dispatch.ring.available() == 0 {
            return;
        }
        let at = dispatch.ring.at();
        let found = dispatch.memory[cells(at - RING, CELL)][0];
        let Some(command) = queue.script.commands.get(dispatch.next) else { return self.fail(Wrong::Command(found)) };
        if found != command.cells[dispatch.executed] {
            return self.fail(Wrong::Command(found));
        }
        match command.kind {
            kind if kind.writes() => self.write(command.cells.len()),
            Step::Event => self.event(queue),
            Step::Barrier => {
                if !self.in_flight(Packet::is_of_dispatcher) || queue.has(Defect::NotifiesWithoutBarrier) {
                    self.send(Packet::Notify);
                    self.executed(1, 1);
                }
            }
            Step::End => self.end(),
            kind => unreachable!("no command ends with {kind:?}"),
        }
    }

    /// Writes the cells that are present to the worker.
    fn write(&mut self, cells: usize) {
        let dispatch = &self.dispatch;
        let here = (dispatch.ring.available() / CELL) as usize;
        let count = here.min(cells - dispatch.executed);
        self.send(Packet::Worker {
            command: dispatch.next,
            first: dispatch.executed,
            from: dispatch.ring.at(),
            bytes: count as u32 * CELL,
            parity: dispatch.ring.parity(),
        });
        self.executed(count, cells);
    }

    /// Moves over `count` cells of a command of `all`, and at its end to the next page.
    fn executed(&mut self, count: usize, all: usize) {
        let dispatch = &mut self.dispatch;
        let before = dispatch.page();
        dispatch.ring.advance(count as u32 * CELL);
        dispatch.executed += count;
        if dispatch.executed == all {
            dispatch.ring.next_page();
            dispatch.next += 1;
            dispatch.executed = 0;
        }
        dispatch.pages_read += dispatch.page() - before;
    }

    /// A page of the completion FIFO: room, data, acknowledgements, pointer.
    fn event(&mut self, queue: &Queue) {
        let dispatch = &self.dispatch;
        if !dispatch.page_open {
            let read = CompletionPtr::from_word(dispatch.read);
            if COMPLETIONS.free_pages(dispatch.write, read) == 0 {
                self.reach(Reached::FifoFull);
                if !queue.has(Defect::IgnoresFullFifo) {
                    return;
                }
            }
            let page = (self.dispatch.write.noc_addr() - COMPLETIONS.base_addr()) / PAGE_SIZE;
            self.send(Packet::Page { page: page as usize, from: self.dispatch.ring.at() });
            self.dispatch.page_open = true;
            return;
        }
        if self.in_flight(Packet::is_of_dispatcher) && !queue.has(Defect::PointerBeforePage) {
            return;
        }
        let mut next = COMPLETIONS.advance(dispatch.write, 1);
        if queue.has(Defect::ForgetsToggle) {
            next = CompletionPtr::from_word(next.word() & !CompletionPtr::TOGGLE);
        }
        self.dispatch.write = next;
        self.dispatch.page_open = false;
        self.send(Packet::Pointer(next.word()));
        self.executed(1, 1);
    }

    /// `TERMINATE`: gives everything back.
    fn end(&mut self) {
        if self.in_flight(Packet::is_of_dispatcher) {
            return;
        }
        self.executed(1, 1);
        let pages = self.dispatch.ring.drain();
        if pages != 0 {
            self.send(Packet::Freed(pages));
        }
        self.dispatch.done = true;
    }
}
