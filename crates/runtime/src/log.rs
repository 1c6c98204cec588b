//! What the runtime logs, with the crate `tracing`: nothing is formatted unless a subscriber wants
//! it. Targets are these names, so that a user need not know the modules. No line has a time of the
//! host; those of the queue have the chip's.

/// A device is opened or closed, firmware is loaded, a device stops (`info`, `error`).
pub const DEVICE: &str = "device";
/// Memory is allocated and freed (`debug`).
pub const MEMORY: &str = "memory";
/// Programs are placed and lowered, or found in the cache (`debug`).
pub const PROGRAM: &str = "program";
/// What is put into the command queue, and what comes back (`debug`; each record at `trace`).
pub const QUEUE: &str = "queue";

/// All targets.
pub const TARGETS: [&str; 4] = [DEVICE, MEMORY, PROGRAM, QUEUE];
