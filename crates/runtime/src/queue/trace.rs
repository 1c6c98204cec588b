//! Traces in the queue: one small record stands for all commands of a sequence that lies in DRAM.

use super::sent::{Batch, Sent};
use super::wait::{Patience, Waited};
use super::{CommandQueue, relay, told};
use crate::RuntimeError;
use crate::lower::Addressed;
use crate::trace::TraceName;
use std::sync::Arc;
use tilework_abi::convert::usize_of;
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_cq::prefetch::{ExecBuf, Inline};
use tilework_cq::{DispatchCommand, EncodeError, PrefetchCommand, Record};
use tilework_driver::{Card, CommandNote, HostLink};

/// Commands as an exec buffer holds them: encoded, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// Prefetch commands, each a multiple of 64 bytes.
    pub bytes: Vec<u8>,
    /// The dispatch commands in them; programs are counted within the sequence.
    pub sent: Vec<Sent>,
    /// Commands for the subordinate.
    pub subordinate: u64,
}

impl Sequence {
    /// Appends a record that is encoded already.
    pub(crate) fn append(&mut self, record: &Record, sent: impl IntoIterator<Item = Sent>) {
        self.bytes.extend_from_slice(record.bytes());
        self.sent.extend(sent);
    }

    /// Appends a command of program `program` of the sequence.
    ///
    /// # Errors
    /// A command that cannot be written.
    pub(crate) fn push(&mut self, program: usize, command: Addressed) -> Result<(), EncodeError> {
        let Addressed { to, command } = command;
        let record = relay(to, &command)?;
        self.subordinate += u64::from(to != DispatcherSelect::Master);
        self.append(&record, (to == DispatcherSelect::Master).then(|| Sent::command(Some(program), command)));
        Ok(())
    }

    /// Ends the sequence: behind this the prefetcher goes on with the host's records.
    ///
    /// # Errors
    /// None with a command that can be written.
    pub(crate) fn end(&mut self) -> Result<(), EncodeError> {
        let end = DispatchCommand::ExecBufEnd;
        let inline = Inline { dispatcher: DispatcherSelect::Master, payload: end.to_bytes()? };
        self.append(&Record::new(&PrefetchCommand::ExecBufEnd(inline))?, [Sent::command(None, end)]);
        Ok(())
    }
}

/// A sequence that lies in DRAM.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// The trace that it is of.
    pub name: TraceName,
    /// The record that executes it.
    pub record: Record,
    /// Its dispatch commands, for reports.
    pub sent: Arc<[Sent]>,
    /// Its commands for the subordinate.
    pub subordinate: u64,
    /// Its programs, as the commands name them.
    pub programs: u64,
    /// Its commands, for those who observe the chip.
    described: Vec<CommandNote>,
}

impl Stored {
    /// The sequence in `buffer`.
    ///
    /// # Errors
    /// A buffer that the prefetcher cannot execute.
    pub(crate) fn new(
        name: TraceName,
        sent: Vec<Sent>,
        subordinate: u64,
        programs: usize,
        buffer: ExecBuf,
    ) -> Result<Self, EncodeError> {
        let record = Record::new(&PrefetchCommand::ExecBuf(buffer))?.stalling();
        Ok(Self { name, record, sent: sent.into(), subordinate, programs: programs as u64, described: Vec::new() })
    }

    /// The same with its commands, whose bytes these are, for those who observe the chip.
    pub(crate) fn described(self, bytes: &[u8]) -> Self {
        Self { described: told::describe(bytes, &self.sent, None), ..self }
    }
}

impl CommandQueue {
    /// Has the prefetcher execute a sequence, behind everything in the queue. `noticed` says that
    /// the host has looked for completions and no time of the chip has passed since.
    ///
    /// # Errors
    /// A device that stopped.
    pub(crate) fn execute<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        stored: &Stored,
        noticed: bool,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        if card.link().listens() {
            let mut commands = told::describe(stored.record.bytes(), &[], None);
            commands.extend(told::replayed(&stored.described, &self.position));
            self.tell(card, commands);
        }
        self.write_record(card, &stored.record, noticed, patience)?;
        self.sent.push_back(Batch::Trace(usize_of(self.position.programs), stored.name, Arc::clone(&stored.sent)));
        self.position.commands += stored.sent.len() as u64;
        self.position.programs += stored.programs;
        self.subordinate += stored.subordinate;
        Ok(())
    }
}

/// The error for a sequence that cannot be written.
impl From<EncodeError> for Waited {
    fn from(error: EncodeError) -> Self {
        Self::Other(RuntimeError::Encode(error))
    }
}
