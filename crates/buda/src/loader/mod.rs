//! The loader: how a program's epochs reach the cores, and what they wait for (tt-budabackend,
//! `loader/epoch_loader.cpp`).
//!
//! It is a timing model beside the arithmetic: it follows the program step by step with a virtual
//! clock of its own, so that hits, misses, evictions and stalls are the same in every run and
//! mode. Each core has a command queue in DRAM ([`command_queue`]) and each device a binary cache
//! of 32 slots ([`cache`]); [`cost`] has the cost of an epoch, [`timing`] every duration.
//! Consecutive graphs on different devices share a temporal epoch (`temporal`), and their commands
//! are written together.
//!
//! Optimisation levels:
//!
//! | level | binaries | settings of queues | loops |
//! |---|---|---|---|
//! | 0 | written for each epoch; the host waits for it | written by the host | unrolled |
//! | 1 | cached and preloaded, least recently used goes | written by the host | unrolled |
//! | 2 | as 1, with the back-tracking policy | as 1, but not when they are in place | unrolled |
//! | 3 | as 2 | commands to the cores | unrolled |
//! | 4 | as 1 | as 3 | on the device when they fit; writes combined |

pub mod cache;
pub mod command_queue;
pub mod cost;
mod device;
mod issue;
mod model;
pub mod stats;
mod temporal;
pub mod timing;
pub mod trace;

pub use cache::{AllPinned, Policy};
pub use model::{Loader, LoaderConfig, LoaderError};
pub use stats::{Command, EventKind, LoaderEvent, LoaderStats, ModelCycle, StallReason, Stalls, Unrolled};
