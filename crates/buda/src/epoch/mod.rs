//! Epochs: executions of graphs, input by input, in data-flow order.
//!
//! An operation is ready when all its operands are available and its output queues have space. Of
//! several ready operations the one with the fewest inputs done runs first, and among those the
//! first in data-flow order. The only other ordering is by rams: operations that share a ram that
//! one of them writes take turns input by input. So results do not depend on when other threads
//! push and pop, and for each operation that is not ready the reason is known.
//!
//! Graphs with direct links between their operations form one temporal epoch: the engine holds them
//! until the last one is executed, then runs them together (tt-budabackend,
//! `netlist/netlist_workload_data.cpp`). Whether further graphs share the epoch's number and launch
//! is decided by the loader ([`crate::loader`]); it changes no result.

mod arithmetic;
mod deadline;
mod engine;
mod error;
mod fire;
mod launch;
mod node;
pub mod plan;

pub use arithmetic::{Arithmetic, ArithmeticError, Golden, Rounding};
pub use deadline::Deadline;
pub use engine::{Engine, EngineOptions, EpochRecord, Host, Uninitialised, Warning, Warnings};
pub use error::EpochError;
