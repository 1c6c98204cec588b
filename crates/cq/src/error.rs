//! Errors of encoding and decoding commands.
//!
//! Both directions apply the same limits: those of the firmware that executes the command. A limit
//! that only the firmware knew would show as a corrupted L1 on the device.

use tilework_abi::cq::wire::Violation;

/// A command that cannot be written as bytes, or that the firmware could not execute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{command}: {error}")]
pub struct EncodeError {
    /// The command.
    pub command: &'static str,
    /// Its field.
    pub error: FieldError,
}

/// A field outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {field} {found}, expected {expected}")]
pub struct FieldError {
    /// Name of the field.
    pub field: &'static str,
    /// Its value.
    pub found: u64,
    /// What it may be.
    pub expected: String,
}

impl FieldError {
    pub(crate) fn new(field: &'static str, found: impl TryInto<u64>, expected: impl Into<String>) -> Self {
        // A usize that does not fit u64 does not exist; the conversion is for the caller's
        // convenience.
        let found = found.try_into().unwrap_or(u64::MAX);
        Self { field, found, expected: expected.into() }
    }

    pub(crate) fn in_command(self, command: &'static str) -> EncodeError {
        EncodeError { command, error: self }
    }
}

impl From<Violation> for FieldError {
    fn from(found: Violation) -> Self {
        Self::new(found.field.name, found.found, found.field.limit.to_string())
    }
}

/// Bytes that are not a command: where, in which command, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset:#x}: {context}: {kind}")]
pub struct DecodeError {
    /// Offset of the first bad byte, or of the field it belongs to, from the start of what was
    /// decoded.
    pub offset: usize,
    /// The command (or "record") that was being read.
    pub context: &'static str,
    /// What is wrong.
    pub kind: DecodeErrorKind,
}

impl DecodeError {
    /// The same error seen from `base` bytes further out.
    #[must_use]
    pub fn shifted(mut self, base: usize) -> Self {
        self.offset = self.offset.saturating_add(base);
        self
    }
}

/// What is wrong with the bytes of a [`DecodeError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeErrorKind {
    /// The first byte names no command.
    #[error("found command id {found}, expected 1 to {last}")]
    UnknownId {
        /// The byte.
        found: u8,
        /// The highest id of the set.
        last: u8,
    },
    /// The bytes end inside the command.
    #[error("{field} needs {needed} bytes, found {found}")]
    Truncated {
        /// What was to be read.
        field: &'static str,
        /// Its size in bytes.
        needed: u64,
        /// Bytes left.
        found: u64,
    },
    /// A field is outside its limits.
    #[error("{0}")]
    Field(FieldError),
    /// There is something behind the last command where only padding may be.
    #[error("found byte {found:#04x} behind the command, expected zero padding")]
    Trailing {
        /// The byte.
        found: u8,
    },
}
