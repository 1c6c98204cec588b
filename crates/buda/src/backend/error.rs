//! Errors and status codes of the backend's calls.

use crate::epoch::{ArithmeticError, EpochError};
use crate::loader::LoaderError;
use crate::program::ProgramError;
use crate::queue::shared::Role;
use crate::queue::{QueueError, Stuck, Wait};
use thiserror::Error;

/// Status codes of the original's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Done.
    Success = 0,
    /// It failed.
    RuntimeError = 1,
    /// A wait timed out.
    TimeoutError = 2,
}

impl Status {
    /// The status code that the original would return for a result.
    pub fn of<T>(result: &Result<T, BackendError>) -> Self {
        result.as_ref().err().map_or(Status::Success, BackendError::status)
    }
}

/// A call has failed.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs)]
pub enum BackendError {
    #[error("the backend is not initialised: call initialize first")]
    NotInitialised,
    #[error("the backend has finished")]
    Finished,
    #[error("there is no program {name}; the netlist has {known}")]
    UnknownProgram { name: String, known: String },
    #[error("program {program} has no parameter {parameter}")]
    UnknownParameter { program: String, parameter: String },
    #[error("there is no queue {name}")]
    UnknownQueue { name: String },
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Epoch(#[from] EpochError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Loader(#[from] LoaderError),
    #[error(transparent)]
    Arithmetic(#[from] ArithmeticError),
    #[error("{0}; give a time to wait for it")]
    WouldWait(Wait),
    #[error("timed out: {0}")]
    TimedOut(Wait),
    #[error("deadlock: {0}")]
    Stuck(Stuck),
    #[error("a thread of the session cannot be started: {0}")]
    Thread(String),
    #[error("another thread has failed")]
    GivenUp,
}

impl BackendError {
    /// The status code that the original would return; a deadlock among threads is a
    /// time-out there.
    pub fn status(&self) -> Status {
        let stuck = |stuck: &Stuck| match stuck.waits.iter().all(|wait| wait.role == Role::Run) && stuck.done.is_empty()
        {
            true => Status::RuntimeError,
            false => Status::TimeoutError,
        };
        match self {
            BackendError::TimedOut(_) => Status::TimeoutError,
            BackendError::Epoch(EpochError::TimedOut(_) | EpochError::OutOfTime(_)) => Status::TimeoutError,
            BackendError::Stuck(waits) | BackendError::Epoch(EpochError::Stuck(waits)) => stuck(waits),
            _ => Status::RuntimeError,
        }
    }
}
