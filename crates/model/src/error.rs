//! Errors of reading a compiled model: file, path of fields, byte offset, what was expected and
//! what was found.
//!
//! A path is collected while the error is returned, one step per table, so that it costs nothing
//! without an error.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// One step of a path of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A field of a table, a struct, or the member that a union holds.
    Name(&'static str),
    /// An element of a vector.
    Index(usize),
}

/// A file that could not be read, and where and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    file: Option<PathBuf>,
    /// Innermost step first.
    steps: Vec<Step>,
    offset: Option<usize>,
    reason: Reason,
}

/// Why a file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// cannot be read: {0}
    #[error("cannot be read: {0}")]
    Io(String),
    /// The bytes contradict the format.
    #[error("expected {expected}, found {found}")]
    Format {
        /// What the format requires there.
        expected: Cow<'static, str>,
        /// What is there.
        found: String,
    },
    /// The bytes are well formed, but hold more than their size allows: tables that share others,
    /// which share others.
    #[error(
        "more {what} than the {limit} allowed for a file of {size} bytes: it refers to the same parts over and over"
    )]
    Budget {
        /// What ran out.
        what: &'static str,
        /// How much there was.
        limit: u64,
        /// Size of the file in bytes.
        size: usize,
    },
    /// The file follows a schema that this reader does not know.
    #[error(
        "schema {hash} of a {identifier} file is unknown (known: {known}); its layouts and ordinals may differ, so it is read, \
         by the names of its operations, only on request"
    )]
    UnknownSchema {
        /// Hash as the file states it.
        hash: String,
        /// The file's identifier.
        identifier: &'static str,
        /// Names of those that are known.
        known: String,
    },
    /// An operation whose kind follows neither from the schema's ordinal nor from its name.
    #[error("operation {name} (ordinal {ordinal}) of schema {hash} is unknown")]
    UnknownOperation {
        /// Its MLIR name, as its debug text states it.
        name: String,
        /// Its ordinal in the file's union of operations.
        ordinal: u8,
        /// Hash of the file's schema.
        hash: String,
    },
    /// One ordinal, two kinds.
    #[error("ordinal {ordinal} means {first} ({because}), but this operation is named {name}, which is {second}")]
    AmbiguousOrdinal {
        /// The ordinal.
        ordinal: u8,
        /// Kind that it had so far.
        first: &'static str,
        /// The source of that kind.
        because: String,
        /// Name of this operation.
        name: String,
        /// Kind that the name means.
        second: &'static str,
    },
    /// One kind, two ordinals.
    #[error("operations named {kind} have ordinal {first}, but this one has {second}")]
    AmbiguousKind {
        /// The kind.
        kind: &'static str,
        /// Its ordinal by the schema, or by the operations before.
        first: u8,
        /// This operation's ordinal.
        second: u8,
    },
}

impl ReadError {
    /// An error at a byte of the file.
    pub(crate) fn at(offset: usize, reason: Reason) -> Self {
        Self(Box::new(Inner { file: None, steps: Vec::new(), offset: Some(offset), reason }))
    }

    /// An error of the file as a whole.
    pub(crate) fn whole(reason: Reason) -> Self {
        Self(Box::new(Inner { file: None, steps: Vec::new(), offset: None, reason }))
    }

    /// Bytes that contradict the format.
    pub(crate) fn format(offset: usize, expected: impl Into<Cow<'static, str>>, found: impl Into<String>) -> Self {
        Self::at(offset, Reason::Format { expected: expected.into(), found: found.into() })
    }

    /// The same error, with a path from the table or vector that holds its place.
    #[cold]
    pub(crate) fn within(mut self, step: Step) -> Self {
        self.0.steps.push(step);
        self
    }

    /// The same error, with a path from the field of that name.
    #[cold]
    pub(crate) fn in_field(self, name: &'static str) -> Self {
        self.within(Step::Name(name))
    }

    /// The same error, with its file.
    pub(crate) fn of_file(mut self, file: &Path) -> Self {
        self.0.file = Some(file.to_owned());
        self
    }

    /// Why.
    pub fn reason(&self) -> &Reason {
        &self.0.reason
    }

    /// Offset of the byte at which it was found, from the start of the file.
    pub fn offset(&self) -> Option<usize> {
        self.0.offset
    }

    /// The file, when it was opened by name.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// Path of fields from the root, `programs[0].operations[12].type.Conv2dOp.weight.desc`; empty
    /// for the root itself.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.0.steps.iter().rev() {
            match step {
                Step::Name(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }
}

impl fmt::Display for ReadError {
    /// One line, whatever the names of the file are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        self.line(&mut line)?;
        f.write_str(&tilework_text::plain(&line))
    }
}

impl ReadError {
    fn line(&self, f: &mut impl fmt::Write) -> fmt::Result {
        if let Some(file) = &self.0.file {
            write!(f, "{}: ", file.display())?;
        }
        let path = self.path();
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, "byte {offset:#x}: ")?;
        }
        write!(f, "{}", self.0.reason)
    }
}

impl std::error::Error for ReadError {}

/// Result of reading.
pub type Result<T, E = ReadError> = std::result::Result<T, E>;
