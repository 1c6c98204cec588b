//! The simulated chip: a Tenstorrent Blackhole, executing firmware instruction by instruction.
//!
//! The crate knows registers, memories and packets, but no queues or programs. A [`Chip`] is a set
//! of nodes (Tensix tiles, DRAM banks, the PCIe tile, the ARC tile) on two NoCs under one virtual
//! clock. Nodes affect each other only by packets, and no packet arrives sooner than
//! `timing::LOOKAHEAD` cycles after it left, so every node can run that far alone: the scheduler
//! advances in such windows, and the result does not depend on the order within a window.
//!
//! Clippy's cast lints stay off here: registers are fields cut out of words, and arithmetic is that
//! of hardware, so that `as` is the operation itself.

#![forbid(unsafe_code)]

mod active;
mod arc;
mod bits;
mod bugs;
mod chip;
#[cfg(test)]
mod chip_tests;
mod coverage;
mod crew;
mod distance;
mod dram;
mod endpoint;
mod event_queue;
mod fault;
mod in_order;
mod inert;
mod late;
mod link;
mod noc;
mod node;
mod pcie;
mod pipe;
mod probe;
mod sched;
mod sparse;
#[cfg(test)]
mod speculation_tests;
mod tensix;
#[cfg(test)]
mod thread_tests;
mod tile;
mod timing;

pub use bugs::{Bug, Bugs};
pub use chip::{Advanced, Chip, ChipConfig, ChipError, ChipStats, CoreView, ReadTicket, Thread};
pub use coverage::Coverage;
pub use fault::{Fault, FaultClass, FaultReport, FaultSite};
pub use late::LateCores;
pub use noc::{GridError, LatePackets};
pub use pcie::HostBus;
pub use probe::{
    Agent, Event, FieldStore, Known, KnownOf, LineAccess, LineSteps, Observer, PacketEvent, PacketKind, PcCount,
    Request, RequestId, RequestKind, Spans, Spot, Unit, Unjudged, Wants, Way, What,
};
pub use tensix::Origin;
pub use tile::{Activity, WaitWord, Waiting};
pub use tilework_abi::addr::Cycle;

pub(crate) use node::{Memory, NEVER, Node};
