//! Runs Buda netlists: queues, programs, epochs, the loader's command queues and binary caches, and
//! golden arithmetic (tt-budabackend; docs/sources.md).
//!
//! ```text
//! backend      the calls of the original; sessions of one thread or three
//!   program    variables, loops, queue settings: one step after another
//!   epoch      graphs, input by input        loader   command queues, binary caches, a clock
//!     queue    pointers, entries, waiting
//!     golden   operations on tensors (op, fused, tm, format, tensor)
//! ```
//!
//! Clippy's cast lints stay off here: golden arithmetic converts between formats, which round and
//! truncate by definition.

#![forbid(unsafe_code)]

pub mod backend;
pub mod costed;
pub mod epoch;
pub mod format;
pub mod fused;
pub mod golden;
pub mod loader;
pub mod op;
pub mod program;
pub mod queue;
pub mod tensor;
pub mod tm;

pub use tensor::Tensor;
