//! What anybody may do to the chip without breaking it: random host accesses, random firmware,
//! random NoC requests. And to the reader of netlists: random text; and to what runs them: netlists
//! of any kind.
//!
//! Each module has one function that takes any bytes and panics if the chip breaks its
//! promise: no panic of its own, no endless host call, every failure a
//! [`Fault`](tilework_sim::Fault) of the taxonomy that stays, and the same result whether
//! polling cores sleep or not. `cargo fuzz run bar` (or `firmware`, `noc`) searches with
//! coverage; `cargo test -p tilework-fuzz` plays a few seconds of random inputs and every
//! input that ever failed.

#![warn(missing_docs)]

pub mod bar;
pub mod firmware;
mod input;
pub mod netlist;
pub mod netlist_run;
pub mod noc;
mod rig;

pub use input::Input;
