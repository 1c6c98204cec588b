//! The fast-dispatch command queue: records out, completion events in.
//!
//! The rules of issue region, prefetch ring and completion FIFO are `tilework-cq`'s; this module
//! owns the memory behind them and the waiting. The host reads the device over PCIe only when
//! its own account shows no room; a completion event proves that everything before it has
//! been taken, so nothing is read back then.
//!
//! Source: seeds 000/001, sections 2.4, 7 and 8.

mod complete;
mod pending;
mod plan;
mod port;
mod sent;
mod stream;
pub mod timing;
mod told;
mod trace;
mod transfer;
mod wait;

pub(crate) use plan::runs;
use sent::Batch;
pub use sent::{Sent, Transfer, What};
pub(crate) use trace::{Sequence, Stored};
pub(crate) use wait::is_quiet;
pub use wait::{MakeRoom, Patience, Waited};

use crate::log::QUEUE;
use crate::lower::Addressed;
use pending::{PendingList, Position};
use port::Entries;
use std::collections::VecDeque;
use tilework_abi::board::Board;
use tilework_abi::convert::{low32, usize_of};
use tilework_abi::cq::completion::CompletionRange;
use tilework_abi::cq::layout::prefetch_core::PREFETCH_Q;
use tilework_abi::cq::layout::{QueueId, dispatch_core, host, prefetch_core};
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::cq::tiles::{DispatchLayout, QueueTiles, Queues};
use tilework_abi::noc::NocXy;
use tilework_cq::CompletionFifo;
use tilework_cq::issue::QueueError;
use tilework_cq::prefetch::Inline;
use tilework_cq::ring::RingError;
use tilework_cq::{DispatchCommand, EncodeError, IssueQueue, PrefetchCommand, Record};
use tilework_driver::{Card, DriverError, HostLink, Pinned, Target};
use tracing::trace;
use wait::protocol;

/// The record that relays `command`.
pub(crate) fn relay(to: DispatcherSelect, command: &DispatchCommand) -> Result<Record, EncodeError> {
    let inline = Inline { dispatcher: to, payload: command.to_bytes()? };
    Record::new(&PrefetchCommand::RelayInline(inline))
}

/// A command queue: its prefetch cores, its dispatch cores, its host region.
#[derive(Debug)]
pub struct CommandQueue {
    tiles: QueueTiles,
    /// The tile with the prefetch queue's entries.
    issue_tile: NocXy,
    board: Board,
    /// The tiles that execute dispatch commands, of all queues of the device; none where there is
    /// no other queue. The numbers of events are written to them.
    listeners: Vec<u32>,
    /// The number of its device in this process, which its events carry.
    device: u64,
    region: Pinned,
    issue: IssueQueue,
    completion: CompletionFifo,
    /// The completion write pointer's word when the host last looked.
    seen: u32,
    /// Number of the newest event.
    event: u32,
    /// What has been sent since the start.
    position: Position,
    /// What of it the device is known to have completed.
    completed: Position,
    /// What the completion FIFO will bring.
    pending: PendingList,
    /// Commands for the subordinate since the start.
    subordinate: u64,
    /// Bytes of all records since the start.
    record_bytes: u64,
    /// Commands that are not known to be completed.
    sent: VecDeque<Batch>,
    capture: Option<Vec<u8>>,
}

/// Low 32 bits of the address at which the device sees a host region: all that commands say of it.
fn base_of(region: &Pinned) -> u32 {
    low32(region.noc_address())
}

impl CommandQueue {
    /// A single queue over `region`; [`CommandQueue::initialise`] prepares the device's side.
    /// `device` is the number of its device in this process.
    pub fn new(board: Board, device: u64, region: Pinned, capture: bool) -> Self {
        Self::of(board, DispatchLayout::Dispatcher.queues(1), QueueId::FIRST, device, region, capture)
    }

    /// As [`CommandQueue::new`], queue `id` of `queues`.
    pub fn of(board: Board, queues: Queues, id: QueueId, device: u64, region: Pinned, capture: bool) -> Self {
        let completion = CompletionFifo::new(CompletionRange::new(base_of(&region), host::COMPLETION));
        let dispatcher = |id| queues.layout().queue(id).dispatch_tile(board).encode();
        let tiles = queues.layout().queue(id);
        Self {
            tiles,
            issue_tile: tiles.issue_tile(board),
            board,
            listeners: if queues.count() > 1 { queues.ids().map(dispatcher).collect() } else { Vec::new() },
            device,
            region,
            issue: IssueQueue::default(),
            seen: completion.initial_word(),
            completion,
            event: 0,
            position: Position::default(),
            completed: Position::default(),
            pending: PendingList::default(),
            subordinate: 0,
            record_bytes: 0,
            sent: VecDeque::new(),
            capture: capture.then(Vec::new),
        }
    }

    /// Writes the pointers and empties the rings on both sides, before the dispatch cores start
    /// (the original's `device.py`).
    ///
    /// # Errors
    /// The card cannot be reached.
    pub fn initialise<C: HostLink>(&mut self, card: &mut Card<C>) -> Result<(), DriverError> {
        let word = self.completion.initial_word();
        for offset in [host::CQ_WR.offset(), host::CQ_RD.offset()] {
            self.region.write32(card.link_mut(), offset.into(), word)?;
        }
        let prefetch = Target::tile(self.issue_tile);
        // The prefetcher increments the pointer before it uses it: it starts at the end.
        card.write32(&prefetch, prefetch_core::PREFETCH_Q_RD_PTR, PREFETCH_Q.end().get())?;
        let issue = self.base() + host::ISSUE.offset();
        card.write32(&prefetch, prefetch_core::PREFETCH_Q_PCIE_RD_PTR, issue)?;
        card.write(&prefetch, PREFETCH_Q.base(), &vec![0; PREFETCH_Q.size() as usize])?;
        let dispatch = Target::tile(self.tiles.completion_tile(self.board));
        for (address, value) in [(dispatch_core::COMPLETION_Q_WR_PTR, word), (dispatch_core::COMPLETION_Q_RD_PTR, word)]
        {
            card.write32(&dispatch, address, value)?;
        }
        let executes = Target::tile(self.tiles.dispatch_tile(self.board));
        for queue in QueueId::ALL {
            card.write32(&executes, dispatch_core::last_event(queue), 0)?;
        }
        let sems = dispatch_core::SYNC_SEMS;
        card.write(&dispatch, sems.base(), &vec![0; sems.size() as usize])
    }

    /// Its number.
    pub fn id(&self) -> QueueId {
        self.tiles.queue
    }
    /// Commands since the start, those for the subordinate included.
    pub fn commands(&self) -> u64 {
        self.position.commands + self.subordinate
    }
    /// Commands for the dispatcher that the device is known to have completed.
    pub fn completed(&self) -> u64 {
        self.completed.commands
    }
    /// Programs that the device is known to have completed, of those that
    /// [`CommandQueue::begin_program`] counted.
    pub(crate) fn completed_programs(&self) -> u64 {
        self.completed.programs
    }
    /// The number of the program whose commands come next; counts it.
    pub(crate) fn begin_program(&mut self) -> u64 {
        self.position.programs += 1;
        self.position.programs - 1
    }
    /// The number that [`CommandQueue::begin_program`] returns next.
    pub(crate) fn next_program(&self) -> u64 {
        self.position.programs
    }
    /// Records that went through the issue region since the start.
    pub fn records(&self) -> u64 {
        self.position.records
    }
    /// Bytes that went through the issue region since the start.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }
    /// Commands for the dispatcher that are not known to be completed, oldest first.
    pub fn sent(&self) -> Vec<Sent> {
        self.sent.iter().flat_map(Batch::commands).collect()
    }
    /// Commands behind everything that the host will be told about.
    pub(crate) fn unchecked_commands(&self) -> usize {
        let told = self.pending.last().map_or(self.completed, |last| last.position);
        usize_of(self.position.commands - told.commands)
    }
    /// Whether the device is known to have completed everything.
    pub fn is_idle(&self) -> bool {
        self.completed == self.position
    }
    /// The event that the host waits for, or waited for last.
    pub fn event(&self) -> u32 {
        self.pending.event_number().unwrap_or(self.event)
    }
    /// All records so far, when they are captured: what `tilework cq decode` reads.
    pub fn captured(&self) -> Option<&[u8]> {
        self.capture.as_deref()
    }
    /// The host region.
    pub fn region(&self) -> Pinned {
        self.region
    }
    /// Low 32 bits of the address at which the device sees the host region.
    pub fn base(&self) -> u32 {
        base_of(&self.region)
    }

    /// Puts a command into the queue, waiting for room if there is none.
    ///
    /// # Errors
    /// A command that cannot be written; a device that stopped.
    pub fn push<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        program: Option<usize>,
        command: impl Into<Addressed>,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let Addressed { to, command } = command.into();
        let record = relay(to, &command).map_err(|e| Waited::Other(e.into()))?;
        // What the subordinate does is not known to be completed by an event of the dispatcher.
        let sent = (to == DispatcherSelect::Master).then(|| Sent::command(program, command));
        self.subordinate += u64::from(sent.is_none());
        self.push_record_of(card, &record, sent, program, patience)
    }

    /// Puts an encoded record into the queue, waiting for room if there is none. `sent` are the
    /// dispatch commands that it completes, in their order.
    ///
    /// # Errors
    /// A device that stopped.
    pub fn push_record<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        record: &Record,
        sent: impl IntoIterator<Item = Sent>,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        self.push_record_of(card, record, sent, None, patience)
    }

    /// The same; commands that are not the dispatcher's are those of `program`.
    fn push_record_of<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        record: &Record,
        sent: impl IntoIterator<Item = Sent>,
        program: Option<usize>,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        if card.link().listens() {
            let sent: Vec<Sent> = sent.into_iter().collect();
            self.tell(card, told::describe(record.bytes(), &sent, program));
            return self.send_record(card, record, sent, patience);
        }
        self.send_record(card, record, sent, patience)
    }

    fn send_record<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        record: &Record,
        sent: impl IntoIterator<Item = Sent>,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        self.write_record(card, record, false, patience)?;
        let before = self.sent.len();
        self.sent.extend(sent.into_iter().map(Batch::One));
        self.position.commands += (self.sent.len() - before) as u64;
        Ok(())
    }

    /// Writes a record to the issue region and announces it. `noticed` says that the host has
    /// looked for completions and no time of the chip has passed since.
    fn write_record<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        record: &Record,
        noticed: bool,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let core = self.issue_tile;
        let mut look = !noticed;
        let prepared = loop {
            let quiet = is_quiet(card);
            // The device may have no room for what it has to tell.
            let noticed = look && self.notice(card)? | patience.notice_beside(card)?;
            look = true;
            match self.issue.prepare(&mut Entries::new(card, core), record) {
                Ok(prepared) => break prepared,
                Err(QueueError::Blocked { .. }) => patience.look_again(card, quiet && !noticed)?,
                Err(QueueError::Ring(RingError::Port { source, .. })) => return Err(source.into()),
                Err(error) => return Err(protocol(error)),
            }
        };
        let offset = prepared.placement.offset.in_host_region();
        self.region.write(card.link_mut(), offset, record.bytes())?;
        match self.issue.publish(&mut Entries::new(card, core), prepared) {
            Ok(_) => {}
            Err(QueueError::Ring(RingError::Port { source, .. })) => return Err(source.into()),
            Err(error) => return Err(protocol(error)),
        }
        if let Some(capture) = &mut self.capture {
            capture.extend_from_slice(record.bytes());
        }
        self.record_bytes += u64::from(record.size());
        trace!(target: QUEUE, "cycle {}: a record of {} bytes", card.link().cycles(), record.size());
        self.position.records += 1;
        Ok(())
    }
}
