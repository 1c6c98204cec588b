//! Runs native code of a compiled model on the host, in a process of its own.
//!
//! A `.ttnn` file can carry shared libraries with functions that the compiler moved from the
//! device to the host (`CpuOp`). Such code can do whatever its user can, so that nothing runs it
//! unless it is asked to; and it can crash, hang, or write where it should not, so that it never
//! runs in the process that has the model. [`NativeHost::call`] starts a program for each call,
//! sends it the library, the function and the operands, and takes the results ([`wire`]). That
//! program is one that calls [`serve`]; its environment is empty and its time is limited.
//!
//! This is no sandbox: the code has all rights of the user.
//!
//! Source: the runtime of tt-mlir at commit 19c86fca45 (`runtime/lib/common/dylib.cpp`,
//! `runtime/lib/ttnn/operations/cpu/cpu.cpp`): a function takes an array of descriptors of tensors
//! and returns one.
#![warn(missing_docs)]

pub mod wire;

mod host;
mod serve;

pub use host::{CallError, NativeHost};
pub use serve::serve;
pub use wire::{Call, Operand};
