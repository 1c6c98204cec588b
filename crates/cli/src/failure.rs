//! How the command ends when it does not end well.

use std::fmt;

/// A failure with the exit code that belongs to it.
#[derive(Debug)]
pub enum Failure {
    /// Wrong use: bad arguments, a missing or malformed file, a program that does not fit the board. Exit code 2.
    Usage(String),
    /// The work itself failed: a fault, a deadlock, a broken capture, an output that cannot be written. Exit code 1.
    Failed(String),
}

impl Failure {
    /// A wrong use.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }
    /// A failed run.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
    /// This failure, followed by the message of another that came with it; the exit code stays.
    pub fn and(self, other: &Self) -> Self {
        match self {
            Self::Usage(message) => Self::Usage(format!("{message}\n{other}")),
            Self::Failed(message) => Self::Failed(format!("{message}\n{other}")),
        }
    }
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) => f.write_str(message),
        }
    }
}

/// The result of a command.
pub type Outcome<T> = Result<T, Failure>;
