//! `.ttm` files: programs of commands for the chip itself.
//!
//! A program has one device program, whose command queues create buffers at addresses that the
//! compiler chose, run kernels (C++ text) and copy between host and device.
//!
//! Source: `TTMetal/**.fbs` of the schema ([`crate::schema`]).

pub mod binary;
pub mod commands;
pub mod kernels;
pub mod types;

pub use binary::{DeviceProgram, Program, TTMetalBinary};
pub use commands::{Command, CommandQueue, CommandType};
