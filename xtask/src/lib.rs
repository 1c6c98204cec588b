//! Development tasks, as a library so that tests can use the same checks as the commands.

#![forbid(unsafe_code)]

mod asm;
pub mod bench;
pub mod coverage;
pub mod diff;
mod example;
pub mod firmware;
pub mod own_library;
pub mod soak;
pub mod swap;
pub mod ttnn;
