//! Fuzz targets: random host accesses, firmware and NoC requests for the chip, random text for the
//! netlist reader, and random netlists for the backend.
//!
//! Each module has one function that takes any bytes and panics if an invariant is violated:
//! the chip never panics, every host call ends, every failure is a permanent
//! [`Fault`](tilework_sim::Fault) of the taxonomy, and results do not depend on parking.
//! `cargo fuzz run bar` (or `firmware`, `noc`) searches with coverage;
//! `cargo test -p tilework-fuzz` runs a few seconds of random inputs and every input that
//! ever failed.

#![forbid(unsafe_code)]

pub mod bar;
pub mod firmware;
mod input;
pub mod netlist;
pub mod netlist_run;
pub mod noc;
mod rig;

pub use input::Input;
