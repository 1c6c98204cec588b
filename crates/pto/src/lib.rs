//! The Ascend cluster: one Cube core and two Vector cores that hand each other tiles through rings guarded by 4-bit
//! counting semaphores (seed 002; `pto-isa`).
#![warn(missing_docs)]
