//! The fast-dispatch command queue: records out, completion events in.
//!
//! The rules of issue region, prefetch ring and completion FIFO are `tilework-cq`'s; this module
//! owns the memory behind them and the waiting. The host reads the device over PCIe only when
//! its own account shows no room; a completion event proves that everything before it has
//! been taken, so nothing is read back then.
//!
//! Source: seeds 000/001, sections 2.4, 7 and 8.

mod port;
mod sent;
mod wait;

pub use sent::{Sent, Transfer, What};
pub(crate) use wait::is_quiet;
pub use wait::{LOOK_AGAIN, Patience, Waited};

use port::{AllTaken, Entries};
use std::collections::VecDeque;
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::prefetch_core::PREFETCH_Q;
use tilework_abi::cq::layout::{PAGE_SIZE, dispatch_core, host, prefetch_core};
use tilework_cq::completion::{self, CompletionFifo};
use tilework_cq::issue::QueueError;
use tilework_cq::ring::RingError;
use tilework_cq::{DispatchCommand, IssueQueue, Record};
use tilework_driver::{Card, DriverError, HostLink, LinkError, Pinned, Target};
use wait::{PROGRESS, protocol};

/// A command queue: one prefetch core, one dispatch core, one host region.
#[derive(Debug)]
pub struct CommandQueue {
    board: Board,
    region: Pinned,
    issue: IssueQueue,
    completion: CompletionFifo,
    event: u32,
    /// Dispatch commands since the start.
    commands: u64,
    /// Commands up to the last completion event.
    completed: u64,
    /// Bytes of all records since the start.
    record_bytes: u64,
    /// Commands since the last completion event.
    sent: VecDeque<Sent>,
    capture: Option<Vec<u8>>,
}

impl CommandQueue {
    /// A queue over `region`; [`CommandQueue::initialise`] prepares the device's side.
    pub fn new(board: Board, region: Pinned, capture: bool) -> Self {
        Self {
            board,
            region,
            issue: IssueQueue::default(),
            completion: CompletionFifo::default(),
            event: 0,
            commands: 0,
            completed: 0,
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
        let prefetch = Target::tile(self.board.prefetch_core());
        // The prefetcher increments the pointer before it uses it: it starts at the end.
        card.write32(&prefetch, prefetch_core::PREFETCH_Q_RD_PTR, PREFETCH_Q.end().get())?;
        card.write32(&prefetch, prefetch_core::PREFETCH_Q_PCIE_RD_PTR, host::ISSUE.noc_addr())?;
        card.write(&prefetch, PREFETCH_Q.base(), &vec![0; PREFETCH_Q.size() as usize])?;
        let dispatch = Target::tile(self.board.dispatch_core());
        for (address, value) in [
            (dispatch_core::COMPLETION_Q_WR_PTR, word),
            (dispatch_core::COMPLETION_Q_RD_PTR, word),
            (dispatch_core::COMPLETION_Q0_EVENT, 0),
            (dispatch_core::COMPLETION_Q1_EVENT, 0),
        ] {
            card.write32(&dispatch, address, value)?;
        }
        let sems = dispatch_core::SYNC_SEMS;
        card.write(&dispatch, sems.base(), &vec![0; sems.size() as usize])
    }

    /// Commands since the start.
    pub fn commands(&self) -> u64 {
        self.commands
    }
    /// Commands up to the last completion event.
    pub fn completed(&self) -> u64 {
        self.completed
    }
    /// Bytes that went through the issue region since the start.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }
    /// Commands since the last completion event, oldest first.
    pub fn sent(&self) -> &VecDeque<Sent> {
        &self.sent
    }
    /// The event that the host waits for, or waited for last.
    pub fn event(&self) -> u32 {
        self.event
    }
    /// All records so far, when they are captured: what `tilework cq decode` reads.
    pub fn captured(&self) -> Option<&[u8]> {
        self.capture.as_deref()
    }
    /// The host region.
    pub fn region(&self) -> Pinned {
        self.region
    }

    /// Puts a command into the queue, waiting for room if there is none.
    ///
    /// # Errors
    /// A command that cannot be written; a device that stopped.
    pub fn push<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        program: Option<usize>,
        command: DispatchCommand,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let record = Record::dispatch(&command).map_err(|e| Waited::Other(e.into()))?;
        self.push_record(card, &record, [Sent::command(program, command)], patience)
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
        let core = self.board.prefetch_core();
        let prepared = loop {
            let quiet = is_quiet(card);
            match self.issue.prepare(&mut Entries::new(card, core), record) {
                Ok(prepared) => break prepared,
                Err(QueueError::Blocked { .. }) => patience.look_again(card, quiet)?,
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
        let before = self.sent.len();
        self.sent.extend(sent);
        self.commands += (self.sent.len() - before) as u64;
        Ok(())
    }

    /// Appends a completion event and waits for it.
    ///
    /// # Errors
    /// A device that stopped, or that answered with another event.
    pub fn finish<C: HostLink>(&mut self, card: &mut Card<C>, patience: &mut Patience) -> Result<(), Waited> {
        self.event = self.event.wrapping_add(1);
        self.push(card, None, DispatchCommand::host_event(self.event), patience)?;
        self.wait_page(card, patience)?;
        let offset = self.completion.host_offset(0).ok_or_else(|| protocol("no completion page is ready"))?;
        let mut page = vec![0; PAGE_SIZE as usize];
        self.region.read(card.link_mut(), offset.into(), &mut page)?;
        let found = completion::read_event(&page).map_err(protocol)?;
        let read = self.completion.release(PageCount::new(1)).map_err(protocol)?;
        let dispatch = Target::tile(self.board.dispatch_core());
        card.write32(&dispatch, dispatch_core::COMPLETION_Q_RD_PTR, read)?;
        self.region.write32(card.link_mut(), host::CQ_RD.offset().into(), read)?;
        if found != self.event {
            return Err(protocol(format!("completion event {found}, expected {}", self.event)));
        }
        self.issue.settle(&mut AllTaken).map_err(protocol)?;
        self.completed = self.commands;
        self.sent.clear();
        Ok(())
    }

    /// Waits until a completion page is ready.
    fn wait_page<C: HostLink>(&mut self, card: &mut Card<C>, patience: &mut Patience) -> Result<(), Waited> {
        let offset = u64::from(host::CQ_WR.offset());
        let mut word = self.region.read32(card.link_mut(), offset)?;
        while self.completion.observe(word).map_err(protocol)? == PageCount::default() {
            let left = patience.until.saturating_sub(card.link().cycles());
            if left == 0 {
                return Err(patience.spent());
            }
            match self.region.wait_change(card.link_mut(), offset, word, left.min(PROGRESS)).map_err(Waited::from) {
                Ok(changed) => word = changed,
                Err(Waited::Link(LinkError::Budget { .. })) => {
                    patience.tell(card.link().cycles())?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
