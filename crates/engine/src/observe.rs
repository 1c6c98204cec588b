//! Observers of a run: progress, dumps, profiles, and the search for the first wrong operation.
//!
//! The engine itself reads no clock. An observer that wants times reads one in [`Observer::before`]
//! and [`Observer::after`], as [`Profile`](crate::Profile) does.

use tilework_model::ttnn::{OpKind, Operation, TensorRef};

use crate::error::OperationPlace;
use crate::value::Value;

/// An operation that is about to run, or has run.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Index of its program in the file.
    pub program: usize,
    /// Name of its program.
    pub program_name: &'a str,
    /// Operations of its program.
    pub program_len: usize,
    /// Its index in the program.
    pub index: usize,
    /// The operation.
    pub operation: &'a Operation,
    /// The call depth of its program; 0 for the requested program.
    pub depth: usize,
    /// How many operations and loop iterations began before this one in the run, those of called
    /// programs included.
    pub sequence: u64,
    /// Bytes of the tensors that are alive.
    pub live_bytes: usize,
}

impl Event<'_> {
    /// Its kind.
    pub fn kind(&self) -> OpKind {
        self.operation.kind()
    }

    /// A name for files of its results: `p0-op12`. Executions of the same operation in a
    /// loop share it.
    pub fn label(&self) -> String {
        format!("p{}-op{}", self.program, self.index)
    }

    /// Its place in the file.
    pub fn place(&self) -> OperationPlace {
        OperationPlace {
            program: self.program,
            program_name: self.program_name.to_owned(),
            operation: self.index,
            kind: self.kind(),
            name: self.operation.name().map(str::to_owned),
            loc: self.operation.loc_info.clone(),
        }
    }
}

/// A tensor that an operation made or changed.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// Its name and description in the program.
    pub tensor: &'a TensorRef,
    /// Its value now.
    pub value: &'a Value,
}

/// Whether the run continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Continue.
    #[default]
    Continue,
    /// End the run with [`Reason::Stopped`](crate::Reason::Stopped).
    Stop,
}

/// Callbacks around each operation. By default all methods do nothing; `()` is an observer that
/// does nothing.
pub trait Observer {
    /// An operation is about to run.
    fn before(&mut self, event: &Event<'_>) {
        let _ = event;
    }

    /// Whether [`Observer::after`] looks at the results of this operation; without, it gets none.
    /// On a chip each look is a read.
    fn wants_results(&self, event: &Event<'_>) -> bool {
        let _ = event;
        true
    }

    /// An operation has run. A call is reported after the operations of the program that it called.
    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        let _ = (event, outputs);
        Flow::Continue
    }

    /// An operation for debugging reports a message, perhaps about a tensor.
    fn message(&mut self, event: &Event<'_>, text: &str, about: Option<&Value>) {
        let _ = (event, text, about);
    }
}

impl Observer for () {
    fn wants_results(&self, _: &Event<'_>) -> bool {
        false
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn before(&mut self, event: &Event<'_>) {
        (**self).before(event);
    }

    fn wants_results(&self, event: &Event<'_>) -> bool {
        (**self).wants_results(event)
    }

    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        (**self).after(event, outputs)
    }

    fn message(&mut self, event: &Event<'_>, text: &str, about: Option<&Value>) {
        (**self).message(event, text, about);
    }
}
