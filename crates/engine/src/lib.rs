//! Runs the programs of a compiled model ([`tilework_model`]) on an engine. Today there is one, the
//! native engine: host arithmetic ([`tilework_ops`]) without a chip. It is the golden model for
//! engines with a chip, and enough when only the numbers matter.
//!
//! # How a program runs
//!
//! [`Session::run`] first makes a plan of the program and of all that it calls (`plan`): each
//! operation is lowered to a function of tensors (`lower`), and an operation that is not
//! supported is an error with its place before anything runs. The plan also proves that no
//! operation uses a tensor that does not exist or was deallocated, and that programs do not call
//! themselves. Then the operations run in order (`run`); tensors are named by their global ids
//! and live until they are deallocated. Each operation is parallel over the cores, with the same
//! bits for any number of threads.
//!
//! # What is promised
//!
//! - A program's inputs belong to the caller: deallocating one ends its name in the program, not
//!   the caller's tensor. What a program changes in place (key and value caches) is returned in
//!   [`RunResult::changed`].
//! - Results have the element type and shape that the program states; a result of another shape
//!   is an error.
//! - Programs are not trusted: operations, call depth and bytes have limits ([`Options`]). The time
//!   of one operation is limited only by the sizes of its tensors. Native libraries in a file are
//!   executed only if [`Options::native_code`] says where, and in processes of their own. Files
//!   that a program names are neither read nor written.
//!
//! Source: the runtime of tt-mlir at commit 19c86fca45 (`runtime/lib/ttnn`).
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// The clippy lints on casts stay off: lengths are bounded by `tilework_ops::MAX_ELEMENTS`, and
// numbers of a file go through `count`.

pub mod beside;
pub mod bisect;
pub mod compare;
pub mod error;
pub mod inputs;
pub mod machine;
pub mod observe;
pub mod profile;
pub mod sharding;
pub mod support;
pub mod value;

mod cache;
mod describe;
mod ledger;
mod lower;
mod names;
mod plan;
mod run;
mod session;

pub use beside::{Beside, Both, Feed, Findings};
pub use bisect::{Bisect, Candidate, Departure};
pub use compare::{Comparison, Tolerance};
pub use error::{OperationPlace, Reason, RunError};
pub use inputs::{Given, InputInfo};
pub use machine::{Arithmetic, Held, How, Machine, Native, Together, Wanted, Work};
pub use observe::{Event, Flow, Observer, Output};
pub use plan::Outline;
pub use profile::Profile;
pub use session::{Engine, Options, Placed, ProgramInfo, Rounding, RunResult, Session};
pub use support::{Support, support};
pub use tilework_native::NativeHost;
pub use value::Value;
