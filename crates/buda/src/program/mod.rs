//! Programs of a netlist: variables, loops, and what they ask of queues and graphs
//! (docs/public/netlist.md, section Programs).
//!
//! [`Interpreter`] runs one program instruction by instruction and gives each as a [`Step`] with
//! all values in place. It knows no queue and no tensor: whoever drives it does what the steps say.
//! Every run is bounded by [`Limits`].

mod error;
mod interpreter;
mod settings;
mod variables;

pub use error::{ProgramError, ProgramProblem};
pub use interpreter::{Interpreter, Limits, LoopBody, Statics, Step};
pub use settings::{Effect, Launch, Pointer, ResolvedSettings};
pub use variables::{Parameters, Variables};
