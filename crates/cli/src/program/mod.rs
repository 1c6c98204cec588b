//! Kernel programs: `program.toml` files. `docs/program.md` describes the format.
//!
//! A file goes through three steps. [`schema`] reads its form. [`Plan::new`] checks it against a board and the arrays of the
//! command line: every buffer gets its shape, every role its cores, every kernel its ELF file. Last, when the
//! device has placed the buffers, [`Plan::arguments`] gives every kernel of every core its argument words. All
//! of it is free of side effects but for reading files, and every refusal points at its place in the file.

mod check;
pub mod cores;
pub mod expr;
pub mod kernels;
pub mod plan;
pub mod schema;
pub mod scope;
pub mod source;

pub use plan::Plan;

#[cfg(test)]
mod properties;
