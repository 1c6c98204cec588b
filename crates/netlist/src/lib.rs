//! Buda netlists as types (seed 003, section Netlist): the language with positions, the checks, sizes and memory.
//!
//! [`types`] is what a checked netlist is; everything that a reference names is there. Nothing here runs anything.
#![warn(missing_docs)]

pub mod format;
pub mod types;

pub use format::DataFormat;
