//! Explains a stopped chip: which core waits for what, and which core could end the wait.
//!
//! The chip knows cores and words. This module knows what the words are (the layout of commands,
//! mailboxes and programs), whose code looks at them, and who could change them, so that a deadlock
//! is reported as a chain of causes instead of a list of addresses (field.md 1.A: which op, which
//! program, which cores, the wait-for cycle, the last commands).

mod report;
mod scene;
mod words;

pub use report::{
    BudgetReport, BusyCore, ChainLink, DeadlockReport, FaultPlace, Mailboxes, QueueView, StoppedState, Waiter, Word,
};
pub(crate) use scene::{Lane, Looked, Scene};
