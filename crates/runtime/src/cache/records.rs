//! Records of the queue, put together from encoded commands.

use super::sequence::relay;
use super::text::Relayed;
use crate::program::Program;
use crate::queue::{Sent, What};
use std::sync::Arc;
use tilework_abi::cq::layout::prefetch_core::MAX_RECORD_BYTES;
use tilework_cq::{DispatchCommand, EncodeError, Record};

/// Bytes from which on a launch takes more than one record: half of the prefetcher's queue of
/// records, so that the next is read while one is executed.
const RECORD_BYTES: usize = MAX_RECORD_BYTES as usize / 2;

/// A record with the commands that it completes.
pub type Encoded = (Record, Vec<Sent>);

/// Records being put together.
#[derive(Default)]
pub(super) struct Builder {
    bytes: Vec<u8>,
    sent: Vec<Sent>,
    done: Vec<Encoded>,
    /// Commands for the subordinate, which are in no list: an event says nothing of them.
    subordinate: u64,
}

impl Builder {
    /// Nothing yet, to be put together in the memory of `bytes`.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, sent: Vec::with_capacity(8), done: Vec::new(), subordinate: 0 }
    }
    /// Room for `bytes` more; returns where they go.
    fn room(&mut self, bytes: usize) -> Result<usize, EncodeError> {
        if !self.bytes.is_empty() && self.bytes.len() + bytes > RECORD_BYTES {
            self.close()?;
        }
        Ok(self.bytes.len())
    }
    /// Adds an encoded command and returns its bytes, to patch them.
    pub(super) fn add(&mut self, command: &[u8], program: Option<usize>, what: What) -> Result<&mut [u8], EncodeError> {
        let at = self.room(command.len())?;
        self.bytes.extend_from_slice(command);
        self.sent.push(Sent { program, trace: None, what });
        Ok(&mut self.bytes[at..])
    }
    /// Adds an encoded command for the subordinate.
    pub(super) fn add_subordinate(&mut self, command: &[u8]) -> Result<&mut [u8], EncodeError> {
        let at = self.room(command.len())?;
        self.bytes.extend_from_slice(command);
        self.subordinate += 1;
        Ok(&mut self.bytes[at..])
    }
    /// Adds relays of text.
    pub(super) fn relayed(
        &mut self,
        relays: Vec<Relayed>,
        program: &Arc<Program>,
        part: &'static str,
        tag: Option<usize>,
    ) -> Result<(), EncodeError> {
        for Relayed { bytes, writes } in relays {
            self.room(bytes.len())?;
            self.bytes.extend(bytes);
            let what = |cores| Sent { program: tag, trace: None, what: what(program, part, cores) };
            self.sent.extend(writes.map(what));
        }
        Ok(())
    }
    pub(super) fn command(&mut self, command: DispatchCommand, program: Option<usize>) -> Result<(), EncodeError> {
        let bytes = relay(&command)?;
        self.add(&bytes, program, What::Command(command.into()))?;
        Ok(())
    }
    fn close(&mut self) -> Result<(), EncodeError> {
        if !self.bytes.is_empty() {
            let record = Record::encoded(std::mem::take(&mut self.bytes))?;
            self.done.push((record, std::mem::take(&mut self.sent)));
        }
        Ok(())
    }
    /// The records, and the number of commands for the subordinate in them.
    pub(super) fn finish(mut self) -> Result<(Vec<Encoded>, u64), EncodeError> {
        self.close()?;
        Ok((self.done, self.subordinate))
    }
}

/// A part of a program, for lists of what was sent.
pub(super) fn what(program: &Arc<Program>, part: &'static str, cores: u32) -> What {
    What::Part { part, program: Arc::clone(program), cores }
}
