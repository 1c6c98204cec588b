//! The backend: queues, programs, epochs and loader behind the calls of the original
//! (tt-budabackend, `docs/public/tt_backend.hpp`, `tt_backend` and `tt::backend`).
//!
//! All calls take `&self` and may come from different threads: one runs programs, others push and
//! pop. [`drive`] has sessions with one thread or three.

mod calls;
pub mod drive;
mod error;
pub mod stimulus;

pub use calls::{Backend, BackendOptions, Call, RunRecord, parameters};
pub use error::{BackendError, Status};
