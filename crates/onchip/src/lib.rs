//! Compiled models on the chip.
//!
//! [`OnChip`] is a machine ([`tilework_engine::Machine`]) whose tensors are in the memory of a
//! device, where the program wants them and in the layout that it states. Each family of operations
//! has a module (`families`) that plans a *recipe* from the operation and the descriptions of its
//! tensors alone: scratch tensors and device programs, one after the other. What has no recipe is
//! computed by the host, and said so: its operands are read and its results written through the
//! queue, and the record of the operation has the reason ([`Record`]).
//!
//! Reference semantics are those of `tilework-ops`; the numbers of a recipe are the chip's.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod chips;
mod describe;
mod families;
mod grid;
mod machine;
mod memory;
mod placed;
mod plan;
mod prepared;
#[cfg(test)]
mod properties;
mod queued;
mod recipe;
mod record;
mod roofline;
mod shards;
#[cfg(test)]
mod support;
mod together;
mod trace;

pub use chips::{Chips, PlacedOn};
pub use machine::OnChip;
pub use memory::{MemoryPlan, MemoryStep, Peak, memory_plan};
pub use placed::{Placed, PlacedMark};
pub use plan::forecast;
pub use record::{Carried, Record, Stage as RecordedStage};
pub use roofline::Bounds;
pub use trace::TraceCounts;
