//! Queues and rams: pointers, entries, views, lifetimes of dynamic queues, and waits of threads.
//!
//! [`pointers`] is arithmetic only. [`store`] holds the contents of a netlist's queues; [`shared`]
//! lets several threads wait on them and detects deadlocks. None of them depends on tensors: any
//! [`Entry`] will do.

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
