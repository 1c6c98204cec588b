//! Errors of a run and their place: file, program, operation, its kind and its place in the
//! user's source.

use std::fmt;
use std::path::{Path, PathBuf};

use tilework_model::ttnn::OpKind;
use tilework_ops::OpError;
use tilework_text::plain;

/// An operation of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationPlace {
    /// Index of the program in the file.
    pub program: usize,
    /// Name of the program.
    pub program_name: String,
    /// Index of the operation in the program.
    pub operation: usize,
    /// Its kind.
    pub kind: OpKind,
    /// Its name in the compiler's intermediate representation (`ttnn.add`), if the file states it.
    pub name: Option<String>,
    /// Where in the user's source it comes from, `loc(...)`; empty if the file does not say.
    pub loc: String,
}

impl fmt::Display for OperationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, program_name, operation, kind, name, loc } = self;
        write!(f, "program {program} ({}), operation {operation}, {}", plain(program_name), kind.name())?;
        if let Some(name) = name {
            write!(f, " {}", plain(name))?;
        }
        if loc.is_empty() { Ok(()) } else { write!(f, ", {}", plain(loc)) }
    }
}

/// What part of a model an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// The model as a whole.
    #[default]
    Model,
    /// A program, by index and name.
    Program(usize, String),
    /// An operation.
    Operation(OperationPlace),
}

/// A program that cannot run, or did not run to its end.
#[derive(Debug)]
pub struct RunError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    file: Option<PathBuf>,
    subject: Subject,
    /// The operations that called the subject's program, innermost first.
    callers: Vec<OperationPlace>,
    /// How many more errors a check found.
    others: usize,
    reason: Reason,
}

/// Why a program cannot run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The file holds no programs of operations.
    #[error("not a .ttnn file: it holds no programs of operations")]
    NotTtnn,
    /// There is no such program.
    #[error("no program {index}: the file has {count}")]
    NoProgram {
        /// Index that was asked for.
        index: usize,
        /// Programs that there are.
        count: usize,
    },
    /// The native engine cannot do this.
    #[error("not supported by the native engine: {0}")]
    Unsupported(String),
    /// The operation is a call into a native library of the file, and the options do not allow it.
    #[error("it executes native code of the file, which is not allowed")]
    NativeCode,
    /// A call into a native library failed.
    #[error("{0}")]
    NativeFailed(String),
    /// The operation contradicts itself or the program.
    #[error("malformed: {0}")]
    Malformed(String),
    /// A tensor that nothing made.
    #[error("tensor {id} ({role}) does not exist: no input and no operation before this one makes it")]
    Unknown {
        /// Global id.
        id: u32,
        /// Its role in the operation.
        role: String,
    },
    /// A tensor that is used after it was deallocated.
    #[error("tensor {id} ({role}) is used after operation {by} deallocated it")]
    Freed {
        /// Global id.
        id: u32,
        /// Its role in the operation.
        role: String,
        /// The operation that deallocated it.
        by: usize,
    },
    /// A tensor that is made twice.
    #[error("tensor {id} ({role}) exists already: {by}")]
    Duplicate {
        /// Global id.
        id: u32,
        /// Its role in the operation.
        role: String,
        /// What made it.
        by: String,
    },
    /// A tensor that is described differently at two places.
    #[error("tensor {id} ({role}) is stated to be {here}, but it was made as {made}")]
    Disagreement {
        /// Global id.
        id: u32,
        /// Its role in the operation.
        role: String,
        /// Type and shape stated here.
        here: String,
        /// Type and shape stated where it was made.
        made: String,
    },
    /// What carries the operations out stopped.
    #[error("{0}")]
    Machine(String),
    /// An operation could not be computed.
    #[error("{0}")]
    Op(#[from] OpError),
    /// A result has another shape than the program states.
    #[error("result {role} has shape {found}, the program states {expected}")]
    Shape {
        /// Its role in the operation.
        role: String,
        /// Stated shape.
        expected: String,
        /// Shape of the computed result.
        found: String,
    },
    /// A value that was computed during the run cannot be used in this way.
    #[error("{0}")]
    Value(String),
    /// A limit of [`crate::Options`] was reached.
    #[error("more {what} than the allowed {limit}")]
    Budget {
        /// What ran out.
        what: &'static str,
        /// How much there was.
        limit: u64,
    },
    /// An input that does not fit the program.
    #[error("{0}")]
    Input(String),
    /// The observer asked to stop.
    #[error("stopped")]
    Stopped,
}

impl RunError {
    pub(crate) fn new(subject: Subject, reason: Reason) -> Self {
        Self(Box::new(Inner { file: None, subject, callers: Vec::new(), others: 0, reason }))
    }

    /// The same error, with its file.
    pub(crate) fn of_file(mut self, file: Option<&Path>) -> Self {
        if self.0.file.is_none() {
            self.0.file = file.map(Path::to_owned);
        }
        self
    }

    /// The same error, in a program that the operation at that place called.
    #[cold]
    pub(crate) fn called_from(mut self, place: OperationPlace) -> Self {
        self.0.callers.push(place);
        self
    }

    /// The same error, one of several.
    pub(crate) fn with_others(mut self, others: usize) -> Self {
        self.0.others = others;
        self
    }

    /// Why.
    pub fn reason(&self) -> &Reason {
        &self.0.reason
    }

    /// What it is about.
    pub fn subject(&self) -> &Subject {
        &self.0.subject
    }

    /// The operation it is about, if it is about one.
    pub fn place(&self) -> Option<&OperationPlace> {
        match &self.0.subject {
            Subject::Operation(place) => Some(place),
            _ => None,
        }
    }

    /// The operations through which the program was called, innermost first; of errors before the
    /// run there are none.
    pub fn callers(&self) -> &[OperationPlace] {
        &self.0.callers
    }

    /// The file, when the model was opened by name.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }
}

impl fmt::Display for RunError {
    /// One line, whatever the names of the file are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        self.0.line(&mut line)?;
        f.write_str(&plain(&line))
    }
}

impl Inner {
    fn line(&self, f: &mut impl fmt::Write) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        match &self.subject {
            Subject::Model => {}
            Subject::Program(index, name) => write!(f, "program {index} ({name}): ")?,
            Subject::Operation(place) => write!(f, "{place}: ")?,
        }
        write!(f, "{}", self.reason)?;
        if let Some(caller) = self.callers.first() {
            write!(f, " (called by {caller})")?;
        }
        match self.others {
            0 => Ok(()),
            1 => f.write_str("; and 1 more error"),
            n => write!(f, "; and {n} more errors"),
        }
    }
}

impl std::error::Error for RunError {}
