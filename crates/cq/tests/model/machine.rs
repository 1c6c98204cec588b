//! The state of the model and its steps: host, prefetcher, dispatcher and the packets between them.
//!
//! A step is one thing that one of them does, or the arrival of one packet. Packets arrive in any
//! order: the NoC promises write before read and atomic before atomic only
//! (WormholeB0/NoC/Ordering.md), and the model not even that. A packet's data is read from its
//! source when it arrives, which is the latest that hardware could do and so the hardest case for
//! whoever reuses the source.

use crate::dispatch::Dispatch;
use crate::host::Host;
use crate::prefetch::Prefetch;
use crate::relay::Memory;
use crate::script::{Buffer, CELL, Cell, Command, Script};
use crate::{Defect, Scenario};
use stateright::{Model, Property};
use tilework_abi::cq::completion::CompletionRange;
use tilework_abi::cq::count::WrapCount;
use tilework_cq_core::reader::PageReader;
use tilework_cq_core::writer::PageWriter;

/// Bytes of the issue region: three of the longest records.
pub(crate) const ISSUE_BYTES: u32 = 3 * MAX_RECORD;
/// The longest record.
pub(crate) const MAX_RECORD: u32 = 128;
/// Where the device sees the issue region.
pub(crate) const ISSUE_BASE: u32 = 0x4000_0100;
/// Entries of the prefetch queue.
pub(crate) const ENTRIES: usize = 3;
/// The command data queue: two of the longest records.
pub(crate) const CMDDAT: std::ops::Range<u32> = 0x440..0x440 + 2 * MAX_RECORD;
/// Bytes of neighbouring records that become one read.
pub(crate) const MAX_MERGED: u32 = MAX_RECORD;
/// Bytes of a command buffer that are read at once.
pub(crate) const CHUNK: u32 = 128;
/// Bytes of a half of the scratch buffer, and cells of all of it.
pub(crate) const HALF: u32 = 64;
pub(crate) const SCRATCH_CELLS: usize = (2 * HALF / CELL) as usize;
/// The completion FIFO.
pub(crate) const COMPLETIONS: CompletionRange = CompletionRange::with_pages(0x4400_0100, 2);
/// The dispatch ring: its base, the logarithm of its page size, its pages, and its blocks.
pub(crate) const RING: u32 = 0x1000;
const LOG_PAGE: u32 = 5;
pub(crate) const PAGES: u32 = 6;
const BLOCKS: u32 = 3;
/// Bytes of a relay that are written and announced at once, and pages that they may touch.
pub(crate) const PORTION: u32 = 64;
pub(crate) const PORTION_PAGES: u32 = (PORTION >> LOG_PAGE) + 1;
/// Pages that may be filled and not announced.
pub(crate) const MAX_HELD: u32 = Reader::MAX_COMMAND_PAGES;
/// Where the page counts start: they wrap within a script.
pub(crate) const COUNT: u32 = u32::MAX - 4;

/// The prefetcher's end of the dispatch ring.
pub(crate) type Writer = PageWriter<RING, LOG_PAGE, PAGES>;
/// The dispatcher's end.
pub(crate) type Reader = PageReader<RING, LOG_PAGE, PAGES, BLOCKS>;

/// Cells of a dispatch page.
pub(crate) const PAGE_CELLS: u32 = (1 << LOG_PAGE) / CELL;

/// A packet, or a read that is answered in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Packet {
    /// Read `read` of the command data queue: records from the host.
    Read { read: u32, from: u32, to: u32, bytes: u32 },
    /// Read `read` of the command data queue: bytes of the command buffer of step `exec`.
    Chunk { read: u32, exec: usize, from: u32, to: u32, bytes: u32 },
    /// A read of cells `first` and following of `step` into the scratch buffer.
    Scratch { id: u32, step: usize, first: usize, to: u32, bytes: u32 },
    /// Bytes of the prefetcher to the dispatch ring, under one of two ids.
    Relay { memory: Memory, from: u32, to: u32, bytes: u32, id: bool },
    /// Pages that are filled.
    Filled(u32),
    /// Pages that are free again.
    Freed(u32),
    /// `NOTIFY_PREFETCH`.
    Notify,
    /// Bytes of the dispatch ring to a worker, from a block of this parity: they are cells `first`
    /// and following of `command`.
    Worker { command: usize, first: usize, from: u32, bytes: u32, parity: bool },
    /// The cell at `from` to page `page` of the completion FIFO.
    Page { page: usize, from: u32 },
    /// The completion write pointer.
    Pointer(u32),
}

impl Packet {
    /// Whether it is a write of the dispatcher, which its barrier waits for.
    pub(crate) fn is_of_dispatcher(self) -> bool {
        matches!(self, Self::Worker { .. } | Self::Page { .. } | Self::Pointer(_))
    }
}

/// What went wrong, where a step can say so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wrong {
    /// The host wrote over an entry that was not free.
    EntryOverwritten(u32),
    /// The issue queue refused.
    Issue,
    /// A read passed the end of issue region or command data queue.
    Outside { from: u32, to: u32, bytes: u32 },
    /// The prefetcher met this cell at the start of a record, or a record of another length.
    Record(Cell),
    /// The dispatcher met this cell at the start of a command.
    Command(Cell),
    /// A worker was sent this cell in another's place.
    Worker(Cell),
    /// A worker was sent the same cell twice.
    Doubled,
    /// A completion pointer that cannot be.
    Pointer(u32),
    /// The host met this cell in the next page of the completion FIFO.
    Completion(Cell),
    /// Something was fetched behind a record with the stall flag (tt-metal#8062).
    FetchedPast,
    /// The prefetcher passed a `STALL` before everything in front of it was done.
    StallPassed,
}

/// The state of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) host: Host,
    pub(crate) prefetch: Prefetch,
    pub(crate) dispatch: Dispatch,
    /// The prefetch queue.
    pub(crate) entries: [u16; ENTRIES],
    /// Packets on their way, in a fixed order of no meaning.
    packets: Vec<Packet>,
    pub(crate) wrong: Option<Wrong>,
    /// [`Reached`] so far.
    pub(crate) reached: u32,
}

/// Situations that a script is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Reached {
    /// The issue region was started again.
    IssueWrap = 1,
    /// The host found ring or region full.
    HostBlocked = 2,
    /// A record went to the start of the command data queue although an older one was in it.
    CmddatWrap = 4,
    /// A read was answered before an older one.
    ReadOvertakes = 8,
    /// The prefetcher had to wait for pages.
    RingFull = 16,
    /// A relay was cut in two by the end of the dispatch ring.
    RingCut = 32,
    /// A finished block had to wait for its writes.
    BlockWaits = 64,
    /// The dispatcher had to wait for the host's read pointer.
    FifoFull = 128,
    /// The completion FIFO's toggle was flipped by the host.
    ToggleFlipped = 256,
    /// The prefetcher had to wait at a `STALL`.
    Stalled = 512,
    /// Neighbouring records became one read.
    ReadsMerged = 1024,
    /// A command buffer was executed.
    InBuffer = 2048,
    /// A payload passed the end of a chunk of a command buffer.
    ChunkCut = 4096,
    /// A command buffer ended while the rest of it was being read.
    LeftEarly = 8192,
    /// A relay from the ring buffer had to wait for its filling.
    RingPending = 16384,
}

impl State {
    pub(crate) fn send(&mut self, packet: Packet) {
        let at = self.packets.binary_search(&packet).unwrap_or_else(|at| at);
        self.packets.insert(at, packet);
    }
    /// Whether a packet that `which` selects is on its way.
    pub(crate) fn in_flight(&self, which: impl Fn(Packet) -> bool) -> bool {
        self.packets.iter().any(|&packet| which(packet))
    }
    pub(crate) fn reach(&mut self, what: Reached) {
        self.reached |= what as u32;
    }
    pub(crate) fn fail(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
    }
    fn sum(&self, of: impl Fn(Packet) -> Option<u32>) -> u32 {
        self.packets.iter().filter_map(|&packet| of(packet)).sum()
    }

    /// The arrival of a packet.
    fn arrive(&mut self, script: &Script, at: usize) {
        match self.packets.remove(at) {
            Packet::Read { read, from, to, bytes } => {
                if self.in_flight(|p| matches!(p, Packet::Read { read: other, .. } if other < read)) {
                    self.reach(Reached::ReadOvertakes);
                }
                let data = self.host.memory.get(cells(from - ISSUE_BASE, bytes));
                let into = self.prefetch.memory.get_mut(cells(to - CMDDAT.start, bytes));
                match data.zip(into) {
                    Some((data, into)) => into.copy_from_slice(data),
                    None => self.fail(Wrong::Outside { from, to, bytes }),
                }
            }
            Packet::Chunk { exec, from, to, bytes, .. } => {
                let data = script.buffers[exec].as_ref().map(|buffer| &buffer.cells[cells(from, bytes)]);
                self.prefetch.memory[cells(to - CMDDAT.start, bytes)].copy_from_slice(data.unwrap_or_default());
            }
            Packet::Scratch { step, first, to, bytes, .. } => {
                for (k, cell) in self.prefetch.scratch[cells(to, bytes)].iter_mut().enumerate() {
                    *cell = Cell::new(step, first + k);
                }
            }
            Packet::Relay { memory, from, to, bytes, .. } => {
                let data = match memory {
                    Memory::Cmddat => &self.prefetch.memory[cells(from - CMDDAT.start, bytes)],
                    Memory::Scratch => &self.prefetch.scratch[cells(from, bytes)],
                };
                self.dispatch.memory[cells(to - RING, bytes)].copy_from_slice(data);
            }
            Packet::Filled(pages) => self.dispatch.filled = self.dispatch.filled.plus(pages),
            Packet::Freed(pages) => self.prefetch.credits = self.prefetch.credits.plus(pages),
            Packet::Notify => self.prefetch.sync = self.prefetch.sync.plus(1),
            Packet::Worker { command, first, from, bytes, .. } => {
                let data = &self.dispatch.memory[cells(from - RING, bytes)];
                let expected = &script.commands[command].cells[first..][..data.len()];
                let differs = data.iter().zip(expected).find(|(found, expected)| found != expected);
                let wrong = differs.map(|(&found, _)| Wrong::Worker(found));
                let mask = ((1u32 << data.len()) - 1) << first;
                let doubled = (self.dispatch.workers[command] & mask != 0).then_some(Wrong::Doubled);
                self.dispatch.workers[command] |= mask;
                wrong.or(doubled).into_iter().for_each(|wrong| self.fail(wrong));
            }
            Packet::Page { page, from } => {
                self.host.pages[page] = self.dispatch.memory[cells(from - RING, CELL)][0];
            }
            Packet::Pointer(word) => self.host.written = word,
        }
    }
}

/// The cells of `bytes` bytes at `offset`.
pub(crate) fn cells(offset: u32, bytes: u32) -> std::ops::Range<usize> {
    (offset / CELL) as usize..((offset + bytes) / CELL) as usize
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The host puts the next record into the queue.
    Issue,
    /// The host reads a completion page and releases it.
    Collect,
    /// The prefetcher starts the read of the next record.
    Fetch,
    /// The prefetcher removes a record that is used up.
    Remove,
    /// The prefetcher takes the oldest record that has arrived.
    Take,
    /// The prefetcher executes its command, or goes on with it.
    Relay,
    /// The dispatcher moves to the next block.
    Block,
    /// The dispatcher looks for filled pages.
    Look,
    /// The dispatcher executes its command, or goes on with it.
    Execute,
    /// The arrival of a packet.
    Arrive(usize),
}

/// The command queue, a script for it, and perhaps a defect.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) script: Script,
    /// Situations that must come about in some order of events.
    pub(crate) expected: u32,
    /// Who takes its turn as soon as it can; the others at any time.
    pub(crate) prompt: &'static [Who],
    pub(crate) defect: Option<Defect>,
}

impl Queue {
    pub(crate) fn new(scenario: Scenario, defect: Option<Defect>) -> Self {
        let expected = scenario.reached.iter().fold(0, |bits, &what| bits | what as u32);
        Self { script: Script::new(scenario.steps), expected, prompt: scenario.prompt, defect }
    }
    /// The command buffer of an `EXEC_BUF`.
    pub(crate) fn buffer(&self, exec: usize) -> &Buffer {
        self.script.buffers[exec].as_ref().expect("a step that executes a buffer")
    }
    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }
}

impl Queue {
    /// The state behind a step, if it changes anything.
    fn step(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Issue => state.issue(self),
            Action::Collect => state.collect(self),
            Action::Fetch => state.fetch(self),
            Action::Remove => state.remove(),
            Action::Take => state.take(self),
            Action::Relay => state.relay(self),
            Action::Block => state.block(self),
            Action::Look => state.look(),
            Action::Execute => state.execute(self),
            Action::Arrive(at) => state.arrive(&self.script, at),
        }
        // A step that changes nothing is a wait.
        (state != *last).then_some(state)
    }
}

/// Who may be told to be prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The host's writing side, the reads of records and their taking.
    Fetch,
    /// The prefetcher's relays.
    Relay,
    /// The dispatcher, its writes and all credits.
    Dispatch,
    /// The host's reading side.
    Collect,
}

impl State {
    fn who(&self, action: Action) -> Who {
        match action {
            Action::Issue | Action::Fetch | Action::Remove | Action::Take => Who::Fetch,
            Action::Collect => Who::Collect,
            Action::Relay => Who::Relay,
            Action::Block | Action::Look | Action::Execute => Who::Dispatch,
            Action::Arrive(at) if matches!(self.packets[at], Packet::Read { .. } | Packet::Chunk { .. }) => Who::Fetch,
            Action::Arrive(_) => Who::Dispatch,
        }
    }
}

impl Model for Queue {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            host: Host::new(),
            prefetch: Prefetch::new(),
            dispatch: Dispatch::new(self.script.commands.len()),
            entries: [0; ENTRIES],
            packets: Vec::new(),
            wrong: None,
            reached: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        use Action::{Block, Collect, Execute, Fetch, Issue, Look, Relay, Remove, Take};
        if state.wrong.is_some() {
            return;
        }
        actions.extend([Issue, Collect, Fetch, Remove, Take, Relay, Block, Look, Execute]);
        // Equal packets have equal effects.
        let differs = |&i: &usize| i == 0 || state.packets[i] != state.packets[i - 1];
        actions.extend((0..state.packets.len()).filter(differs).map(Action::Arrive));
        let prompt = |&action: &Action| self.prompt.contains(&state.who(action)) && self.step(state, action).is_some();
        if let Some(action) = actions.iter().copied().find(prompt) {
            *actions = vec![action];
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        self.step(last, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(RIGHT, |_, state: &State| state.wrong.is_none()),
            Property::always(CONSERVED, |_, state: &State| state.is_conserved()),
            // No step leads in a circle, so this says that no order of events ends anywhere else.
            Property::eventually(ENDS, |queue, state: &State| state.wrong.is_some() || state.is_finished(queue)),
            Property::sometimes(REACHED, |queue: &Self, state: &State| {
                state.reached & queue.expected == queue.expected
            }),
        ]
    }
}

/// Nothing is lost, doubled, out of order or overwritten while it is needed.
pub(crate) const RIGHT: &str = "every byte arrives once, in order";
/// Pages are conserved.
pub(crate) const CONSERVED: &str = "credits are conserved";
/// There is no deadlock.
pub(crate) const ENDS: &str = "the script ends";
/// The check is not vacuous.
pub(crate) const REACHED: &str = "every situation is reached";

impl State {
    /// As many pages are announced as the prefetcher filled (tt-metal#37233), and as many given
    /// back as the dispatcher has read and does not hold on to. So the prefetcher never has more
    /// pages than there are.
    fn is_conserved(&self) -> bool {
        let (prefetch, dispatch) = (&self.prefetch, &self.dispatch);
        let start = WrapCount(COUNT);
        let announced = self.sum(|p| if let Packet::Filled(pages) = p { Some(pages) } else { None });
        let given = self.sum(|p| if let Packet::Freed(pages) = p { Some(pages) } else { None });
        dispatch.filled.since(start) + announced + prefetch.unannounced == prefetch.released
            && prefetch.credits.since(start.plus(PAGES)) + given + dispatch.held() == dispatch.pages_read
            && !prefetch.writer.can_acquire(prefetch.credits, PAGES + 1)
    }

    /// Whether the first `commands` commands have reached the workers whole.
    pub(crate) fn have_arrived(&self, queue: &Queue, commands: usize) -> bool {
        let whole =
            |(command, &mask): (&Command, &u32)| !command.kind.writes() || mask == (1 << command.cells.len()) - 1;
        queue.script.commands.iter().zip(&self.dispatch.workers).take(commands).all(whole)
    }

    fn is_finished(&self, queue: &Queue) -> bool {
        self.host.events == queue.script.events()
            && self.prefetch.done
            && self.dispatch.is_done()
            && self.packets.is_empty()
            && self.have_arrived(queue, queue.script.commands.len())
    }
}
