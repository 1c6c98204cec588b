//! Epochs: executions of graphs, input by input, in the order of the data.
//!
//! An operation fires when all its operands are there and its output queues have space; of several
//! that can fire, the one that is behind fires first, and of those the first in the order of the
//! data. Nothing else orders them, except rams: operations that share a ram of which one writes it
//! take turns input by input. So results do not depend on when other threads push and pop, and what
//! cannot fire has a reason with a name.
//!
//! Graphs that hand results to each other without a queue are one temporal epoch: the engine holds
//! the first until the last of them is executed, then runs all together (facts, buda.md, section
//! 4). Which graphs without links share its number and its launch is the loader's
//! ([`crate::loader`]); it changes no result.

mod arithmetic;
mod engine;
mod error;
mod fire;
mod launch;
mod node;
pub mod plan;

pub use arithmetic::{Arithmetic, ArithmeticError, Golden, Rounding};
pub use engine::{Engine, EngineOptions, EpochRecord, Host, Uninitialised, Warning, Warnings};
pub use error::EpochError;
