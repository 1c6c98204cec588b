//! Compiled models: `.ttnn`, `.ttm` and `.ttsys` files, as types.
//!
//! The tt-mlir compiler writes three kinds of files. All are size-prefixed flatbuffers; the
//! identifier at byte 8 distinguishes them:
//!
//! | identifier | file | holds |
//! |---|---|---|
//! | `TTNN` | `.ttnn` | programs of the tensor library's operations ([`ttnn`]) |
//! | `TTM0` | `.ttm` | programs of commands and kernels for the chip itself ([`metal`]) |
//! | `TTSY` | `.ttsys` | the description of a machine ([`system`]) |
//!
//! Each begins with a version (always 0.0.0), the hash of the schema that the compiler was built
//! with, and the compiler's commit. The first two kinds hold the machine that they were compiled
//! for and the program as text of the compiler's intermediate representation.
//!
//! [`Model::open`] reads a file as a whole, checks all of it, and returns owned types that need no
//! further checks of form, and no lifetime. The bytes of tensors and libraries are used in place in
//! the file's memory ([`bytes::Bytes`]). Numbers are as in the file: whether an index refers to an
//! existing program, or a shape is valid, is for the caller to check.
//!
//! ```no_run
//! let model = tilework_model::Model::open("program.ttnn")?;
//! for program in model.programs() {
//!     println!("{}: {} operations", program.name, program.operations.len());
//!     for operation in &program.operations {
//!         for operand in operation.operands() {
//!             let shape = &operand.tensor.desc.shape;
//!             println!("  {} {} {shape:?}", operation.kind().name(), operand.role);
//!         }
//!     }
//! }
//! # Ok::<(), tilework_model::ReadError>(())
//! ```
//!
//! # Sources
//!
//! The schema is public: `include/ttmlir/Target/**.fbs` of tt-mlir
//! (<https://github.com/tenstorrent/tt-mlir>), here as of commit 19c86fca45 (2026-08-21); each
//! module names its file. It is declared again in this crate by macros, a line for a table, because
//! the generators for Rust either refuse it (vectors of unions), or read without budgets, or refuse
//! genuine files (empty vectors that the C++ builder does not align), and because compilers of
//! other commits have other layouts, which one set of types must hold ([`schema`]). The encoding
//! itself is described where it is read, in the module `flat`.
//!
//! The kinds of operations that the compiler inside `jax-tt-plugin` adds to the public ones
//! (`CaseOp`, `WhileLoopOp`, `CumulativeOp`, `RowsGatherOp`, `RowsScatterOp`, and the angle apart)
//! were inferred from its files.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod bytes;
pub mod common;
pub mod data;
pub mod debug_info;
pub mod error;
pub mod metal;
pub mod model;
pub mod operand;
pub mod schema;
pub mod system;
pub mod ttnn;

mod flat;

pub use error::{ReadError, Reason};
pub use model::{Contents, MAX_FILE_BYTES, Model, Options};
pub use operand::{Direction, Operand};
