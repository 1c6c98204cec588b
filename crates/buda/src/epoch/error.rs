//! Errors of epochs.

use super::arithmetic::ArithmeticError;
use crate::queue::{QueueError, Stuck, Wait};
use thiserror::Error;

/// Why an epoch cannot continue.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs)]
pub enum EpochError {
    #[error("epoch {epoch}: {error}")]
    Queue { epoch: String, error: Box<QueueError> },
    #[error("epoch {epoch}, op {op}, input {input}: {error}")]
    Arithmetic { epoch: String, op: String, input: u32, error: Box<ArithmeticError> },
    #[error(
        "deadlock: {0}. Push more inputs, pop outputs, or compare pointers and input_count with what was \
         pushed"
    )]
    Stuck(Stuck),
    #[error("timed out: {0}")]
    TimedOut(Wait),
    #[error("another thread has failed")]
    GivenUp,
    #[error("epoch {epoch}: operations {ops} wait for each other without a queue between them")]
    Circle { epoch: String, ops: String },
    #[error("epoch {epoch}: queue {queue} is to be zeroed without prologue")]
    ZeroWithoutPrologue { epoch: String, queue: String },
    #[error("epoch {epoch}: queue {queue} has settings of another use: {why}")]
    Settings { epoch: String, queue: String, why: &'static str },
    #[error("graph {graph} is executed again before {missing}, of the same temporal epoch; they must launch together")]
    TemporalTwice { graph: String, missing: String },
    #[error("graph {graph} needs device {device}, on which graph {waiting} waits for {missing} of its temporal epoch")]
    TemporalDevice { graph: String, device: u32, waiting: String, missing: String },
    #[error("the program ends while graph {waiting} waits for {missing}, of the same temporal epoch")]
    TemporalIncomplete { waiting: String, missing: String },
    #[error(
        "epoch {epoch}: results that wait for a consumer take more than {most} bytes; raise the limit if \
         the machine has them"
    )]
    ResultMemory { epoch: String, most: u64 },
    #[error("more than {0} operations have run; raise the limit if the program is meant to be that long")]
    Budget(u64),
    #[error("the run has not ended within {} s, the time that it was given", .0.as_secs_f64())]
    OutOfTime(std::time::Duration),
}
