//! Programs of a netlist: variables, loops, and their effects on queues and graphs (tt-budabackend,
//! `docs/public/netlist.md`, section Programs).
//!
//! [`Interpreter`] runs one program and returns each effect as a [`Step`] with all values
//! resolved. It knows neither queues nor tensors: the caller carries out the steps. Every run is
//! bounded by [`Limits`].

mod error;
mod interpreter;
mod settings;
mod variables;

pub use error::{ProgramError, ProgramProblem};
pub use interpreter::{Interpreter, Limits, LoopBody, Statics, Step};
pub use settings::{Effect, Launch, Pointer, ResolvedSettings};
pub use variables::{Parameters, Variables};
