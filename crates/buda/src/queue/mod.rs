//! Queues and rams: pointers, entries, views, life of dynamic queues, and waiting for them
//! among threads.
//!
//! [`pointers`] is arithmetic only. [`store`] holds what is in the queues of a netlist; [`shared`]
//! lets several threads wait for each other on it and finds out when they wait for ever. None of
//! them knows tensors: an entry is anything that is [`Entry`].

pub mod error;
pub mod life;
pub mod monitor;
pub mod pointers;
pub mod shared;
pub mod store;

pub use error::QueueError;
pub use monitor::{Monitor, StdMonitor};
pub use pointers::{Fullness, Pointers};
pub use shared::{Shared, Stuck, Wait, WaitKind, WaitOutcome};
pub use store::{Entry, Queues};
