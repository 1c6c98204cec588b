//! The simulated chip: a Tenstorrent Blackhole, executing firmware instruction by instruction.
//!
//! The crate knows registers, memories and packets, but no queues or programs. A [`Chip`] is a set
//! of nodes (Tensix tiles, DRAM banks, the PCIe tile, the ARC tile) on two NoCs under one virtual
//! clock. Nodes affect each other only by packets, and no packet arrives sooner than
//! `timing::LOOKAHEAD` cycles after it left, so every node can run that far alone: the scheduler
//! advances in such windows, and the result does not depend on the order within a window.

#![warn(missing_docs)]

mod chip;
#[cfg(test)]
mod chip_tests;
mod event_queue;
mod fault;
mod link;
mod node;
mod pipe;
mod sched;
#[cfg(test)]
mod speculation_tests;

pub mod arc;
pub mod dram;
pub mod inert;
pub mod noc;
pub mod pcie;
pub mod tensix;
pub mod tile;
pub mod timing;

pub use chip::{Chip, ChipConfig, ChipError, ChipStats};
pub use fault::{Fault, FaultClass, FaultReport, FaultSite};
pub use node::{Memory, NEVER, Node};
pub use tilework_riscv::Cycle;
