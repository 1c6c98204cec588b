//! Captures and replays of cached programs.
//!
//! A capture is made with an account of its own, which begins with what is true before every replay
//! (`account/trace`). Its launches are those of the launcher with one difference: the stream of
//! finished workers is not cleared between two programs, but each go signal waits for the number of
//! all workers that were started before. So an empty program is one command.

use super::account::Account;
use super::records::{Builder, Encoded};
use super::sequence::Compiled;
use super::{Launch, Launcher, Prepared};
use crate::RuntimeError;
use crate::program::{Layout, Program};
use crate::queue::Sequence;
use crate::trace::TraceError;
use std::sync::Arc;
use tilework_cq::EncodeError;

/// A capture under way.
#[derive(Debug)]
pub(crate) struct Capture {
    account: Account,
    sequence: Sequence,
    texts: Vec<(Arc<Compiled>, u32)>,
}

/// What the launcher keeps of a captured trace.
#[derive(Debug)]
pub(crate) struct Captured {
    /// What is known behind a replay.
    end: Account,
    /// Programs whose text must lie at an address.
    texts: Vec<(Arc<Compiled>, u32)>,
}

/// The error for a program that a capture does not find on the workers.
pub(super) fn cold(program: &Program) -> RuntimeError {
    TraceError::NotResident { program: program.name.clone() }.into()
}

impl Launcher {
    /// A capture that begins now.
    pub(crate) fn begin_trace(&self) -> Capture {
        Capture { account: self.account.for_trace(), sequence: Sequence::default(), texts: Vec::new() }
    }

    /// Whether a program was compiled before and is in the cache.
    pub(crate) fn is_compiled(&self, program: &Program) -> bool {
        self.cache.find(program).is_some()
    }

    /// Adds a launch to a capture; returns where the parts of the program lie. `program` is its
    /// number in the capture.
    ///
    /// # Errors
    /// A program whose text is not on all of its cores; as [`Launcher::launch`].
    pub(crate) fn capture(
        &mut self,
        capture: &mut Capture,
        prepared: &Prepared,
        program: usize,
    ) -> Result<Arc<Layout>, RuntimeError> {
        let compiled = &prepared.compiled;
        let text = self.account.resident(compiled).ok_or_else(|| cold(&prepared.program))?;
        if !capture.texts.iter().any(|(known, _)| Arc::ptr_eq(known, compiled)) {
            capture.texts.push((Arc::clone(compiled), text));
        }
        let executed = self.subordinate;
        std::mem::swap(&mut self.account, &mut capture.account);
        let launched = self.launch(prepared, &Launch { tag: Some(program), ..Launch::default() });
        std::mem::swap(&mut self.account, &mut capture.account);
        let launched = launched?;
        // Each replay counts them.
        capture.sequence.subordinate += std::mem::replace(&mut self.subordinate, executed) - executed;
        for (record, sent) in launched.records {
            capture.sequence.append(&record, sent);
            self.reuse(record);
        }
        Ok(launched.layout)
    }

    /// Ends a capture: behind its commands nothing is in flight, and the stream is clear.
    ///
    /// # Errors
    /// None with commands that can be written.
    pub(crate) fn end_trace(&self, capture: Capture) -> Result<(Sequence, Captured), EncodeError> {
        let Capture { account: end, mut sequence, texts } = capture;
        let mut out = Builder::default();
        if let Some(count) = end.counted.filter(|&count| count != 0) {
            self.wait_stream(&mut out, count, end.in_flight.as_ref().and_then(|last| last.tag))?;
        }
        let (records, subordinate) = out.finish()?;
        records.into_iter().for_each(|(record, sent)| sequence.append(&record, sent));
        sequence.subordinate += subordinate;
        Ok((sequence, Captured { end, texts }))
    }

    /// What must be put into the queue before the trace with this number is replayed: the wait for
    /// the program in flight, and text that makes room for others in the meantime. The account
    /// takes the trace for replayed.
    ///
    /// # Errors
    /// A kernel that cannot be moved to its place.
    pub(crate) fn replay(&mut self, number: u64, trace: &Captured) -> Result<Vec<Encoded>, RuntimeError> {
        if self.replayed == Some(number) {
            return Ok(Vec::new());
        }
        let mut out = Builder::default();
        self.settle_into(&mut out)?;
        for (compiled, at) in &trace.texts {
            let missing = self.account.bring_text(compiled, *at);
            for command in compiled.text(*at, &missing, &self.map, &self.workers, self.columns)? {
                out.command(command, None)?;
            }
        }
        self.account.replayed(&trace.end);
        self.replayed = Some(number);
        Ok(self.close(out)?)
    }
}
