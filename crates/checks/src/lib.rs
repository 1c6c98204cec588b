//! Findings about kernels: which there are, what one says, and which of them a user wants to see.
//!
//! A fault ends a run, because the chip has no meaning for what a program did. A finding is about
//! what the chip does without complaint and what is wrong all the same: L1 that nobody wrote, a
//! page that was not reserved, two accesses without order. Analysers above the events of a chip
//! make [`Finding`]s.
//!
//! - [`catalogue`]: one row for each kind of finding, and for each way in which a run ends early.
//!   `tilework explain` and docs/checks.md are made from the rows.
//! - [`Finding`]: who did what, where and when, as plain data without strings that would have to be
//!   parsed. Source lines are added above, where the ELF files are known: [`Told`].
//! - [`CheckObserver`]: the shadow of the memories, and the rules of protocol.
//! - [`RaceObserver`]: accesses that nothing orders, by vector clocks.
//! - [`data`]: findings as JSON has them.
//! - [`Policy`]: what `--checks` and `--allow` say. [`Checks`] collects findings under a policy,
//!   equal ones once, and keeps a bounded number of them.

#![forbid(unsafe_code)]

pub mod catalogue;
mod checks;
pub mod data;
mod finding;
mod policy;
mod protocol;
mod races;
mod shadow;
mod told;

pub use catalogue::{Certainty, Kind, Row};
pub use checks::{Checks, MOST};
pub use finding::{Agent, Code, Finding, Place, Space, Target};
pub use policy::{Allow, BadPolicy, Level, Policy, Word};
pub use races::RaceObserver;
pub use shadow::CheckObserver;
pub use told::{Frame, Source, TellAll, Told};
