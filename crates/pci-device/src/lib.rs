//! The simulated card as a device on a PCI bus: configuration space, BARs, time, and what becomes
//! of faults and wrong accesses ([`Card`]).
//!
//! What is to be seen of it (checks, timelines, pictures, gdb) is asked for by the process's
//! environment (docs/card.md). Nothing else of the process is touched: no other files but, for the
//! source lines of findings, ELF files in the folder `TT_METAL_CACHE`, which are read; no signals,
//! no threads but the chip's, which work during a call only.

#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod card;
mod config;
mod environment;
mod host;
mod looking;
mod messages;
mod sources;

pub use card::{Card, End};
pub use messages::{Kind, say};
