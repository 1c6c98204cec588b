//! The fast-dispatch command queue: records out, completion events in.
//!
//! The rules of issue region, prefetch ring and completion FIFO are `tilework-cq`'s; this module
//! owns the memory behind them and the waiting. The host reads the device over PCIe only when
//! its own account shows no room; a completion event proves that everything before it has
//! been taken, so nothing is read back then.
//!
//! Source: seeds 000/001, sections 2.4, 7 and 8.

use crate::RuntimeError;
use crate::lower::Addressed;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::ControlFlow;
use tilework_abi::addr::{L1Addr, PageCount};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::prefetch_core::{PREFETCH_Q, PREFETCH_Q_ENTRY_SIZE};
use tilework_abi::cq::layout::{PAGE_SIZE, dispatch_core, host, prefetch_core};
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::noc::NocXy;
use tilework_cq::completion::{self, CompletionFifo};
use tilework_cq::issue::QueueError;
use tilework_cq::prefetch::Inline;
use tilework_cq::ring::RingError;
use tilework_cq::{DispatchCommand, EncodeError, IssueQueue, PrefetchCommand, PrefetchPort, Record};
use tilework_driver::{Card, DriverError, HostLink, LinkError, Pinned, Target};

/// Cycles between two looks at a word of the device, and between two calls of a progress function.
pub const LOOK_AGAIN: u64 = 2_000;
/// Cycles between two reports of progress of a waiting host: a quarter of a second of a machine on
/// which all cores of a board are busy.
const PROGRESS: u64 = 200_000;

/// A command for the dispatcher in the queue and the program it belongs to.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Position of the program in the run; `None` for the queue's own commands.
    pub program: Option<usize>,
    /// The command.
    pub command: DispatchCommand,
}

/// How long the host may wait: the cycles of a run, and the callback for its progress.
pub struct Patience<'a> {
    /// The device's time at which the host gives up.
    pub until: u64,
    /// Cycles that were allowed, for the message.
    pub budget: u64,
    /// Called at intervals with the device's time; says whether to go on.
    pub progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

impl Patience<'_> {
    /// The error for a run whose cycles are used up.
    fn spent(&self) -> Waited {
        Waited::Link(LinkError::Budget { cycles: self.budget })
    }

    /// Lets some cycles pass on a device whose word has not changed yet. `quiet` says that the
    /// chip was quiescent before the host looked.
    pub fn look_again<C: HostLink>(&mut self, card: &mut Card<C>, quiet: bool) -> Result<(), Waited> {
        let now = card.link().cycles();
        if quiet {
            return Err(Waited::Link(LinkError::Deadlock { cycle: now }));
        }
        if now >= self.until {
            return Err(self.spent());
        }
        self.tell(now)?;
        Ok(card.link_mut().idle(LOOK_AGAIN)?)
    }

    /// Reports progress; an error when the host does not want to go on.
    fn tell(&mut self, now: u64) -> Result<(), Waited> {
        match (self.progress)(now) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                Err(Waited::Interrupted { cycles: self.budget.saturating_sub(self.until.saturating_sub(now)) })
            }
        }
    }
}

/// Whether the chip is known to be quiescent: no core can run and nothing is in flight.
pub(crate) fn is_quiet<C: HostLink>(card: &Card<C>) -> bool {
    card.link().inspect().is_some_and(tilework_driver::Inspect::is_quiet)
}

/// Why a wait failed; the device turns this into a [`RuntimeError`] with names.
#[derive(Debug)]
pub enum Waited {
    /// The chip stopped, or the link to it failed.
    Link(LinkError),
    /// The caller ended the run, after so many cycles of it.
    Interrupted {
        /// Cycles since the start of the run.
        cycles: u64,
    },
    /// Anything else.
    Other(RuntimeError),
}

impl From<LinkError> for Waited {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

impl From<DriverError> for Waited {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Link(error) => error.into(),
            other => Self::Other(RuntimeError::Driver(other)),
        }
    }
}

fn protocol(error: impl ToString) -> Waited {
    Waited::Other(RuntimeError::Protocol(error.to_string()))
}

/// The ring's entries through a window onto the prefetch core.
struct Entries<'a, C> {
    card: &'a mut Card<C>,
    core: NocXy,
}

/// Where entry `index` of the prefetch queue lies in the prefetch core's L1.
fn entry_address(index: u32) -> L1Addr {
    PREFETCH_Q.base().offset(index * PREFETCH_Q_ENTRY_SIZE)
}

impl<C: HostLink> PrefetchPort for Entries<'_, C> {
    type Error = DriverError;

    fn read_slot(&mut self, index: u32) -> Result<u16, DriverError> {
        let mut entry = [0; 2];
        self.card.read(&Target::tile(self.core), entry_address(index), &mut entry)?;
        Ok(u16::from_le_bytes(entry))
    }
    fn write_slot(&mut self, index: u32, entry: u16) -> Result<(), DriverError> {
        self.card.write(&Target::tile(self.core), entry_address(index), &entry.to_le_bytes())
    }
}

/// The entries after a completion event: all taken, because the event's own record was the last.
struct AllTaken;

impl PrefetchPort for AllTaken {
    type Error = Infallible;

    fn read_slot(&mut self, _: u32) -> Result<u16, Infallible> {
        Ok(0)
    }
    fn write_slot(&mut self, _: u32, _: u16) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The record that relays `command`.
fn record(to: DispatcherSelect, command: &DispatchCommand) -> Result<Record, EncodeError> {
    let inline = Inline { dispatcher: to, payload: command.to_bytes()? };
    Record::new(&PrefetchCommand::RelayInline(inline))
}

/// A command queue: one prefetch core, one dispatch core, one host region.
#[derive(Debug)]
pub struct CommandQueue {
    board: Board,
    region: Pinned,
    issue: IssueQueue,
    completion: CompletionFifo,
    event: u32,
    /// Commands for the dispatcher since the start.
    commands: u64,
    /// Commands for the subordinate since the start.
    subordinate: u64,
    /// Commands for the dispatcher up to the last completion event.
    completed: u64,
    /// Bytes of all records since the start.
    record_bytes: u64,
    /// Commands for the dispatcher since the last completion event.
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
            subordinate: 0,
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

    /// Commands since the start, those for the subordinate included.
    pub fn commands(&self) -> u64 {
        self.commands + self.subordinate
    }
    /// Commands for the dispatcher up to the last completion event.
    pub fn completed(&self) -> u64 {
        self.completed
    }
    /// Bytes that went through the issue region since the start.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }
    /// Commands for the dispatcher since the last completion event, oldest first.
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
        command: impl Into<Addressed>,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let Addressed { to, command } = command.into();
        let record = record(to, &command).map_err(|e| Waited::Other(e.into()))?;
        let core = self.board.prefetch_core();
        let prepared = loop {
            let quiet = is_quiet(card);
            match self.issue.prepare(&mut Entries { card, core }, &record) {
                Ok(prepared) => break prepared,
                Err(QueueError::Blocked { .. }) => patience.look_again(card, quiet)?,
                Err(QueueError::Ring(RingError::Port { source, .. })) => return Err(source.into()),
                Err(error) => return Err(protocol(error)),
            }
        };
        let offset = prepared.placement.offset.in_host_region();
        self.region.write(card.link_mut(), offset, record.bytes())?;
        match self.issue.publish(&mut Entries { card, core }, prepared) {
            Ok(_) => {}
            Err(QueueError::Ring(RingError::Port { source, .. })) => return Err(source.into()),
            Err(error) => return Err(protocol(error)),
        }
        if let Some(capture) = &mut self.capture {
            capture.extend_from_slice(record.bytes());
        }
        self.record_bytes += u64::from(record.size());
        if to == DispatcherSelect::Subordinate {
            self.subordinate += 1;
            return Ok(());
        }
        self.commands += 1;
        self.sent.push_back(Sent { program, command });
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
