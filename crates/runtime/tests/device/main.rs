//! A device end to end: programs, buffers, traces and queues on the simulated chip.
//!
//! One binary, because each one that opens a device compiles all of it anew.

#[path = "../common/mod.rs"]
mod common;

mod batches;
mod buffers;
mod cached_programs;
mod code_places;
mod compiled_kernels;
mod deadlocks;
mod faults;
mod invariants;
mod kept_text;
mod late;
mod layouts;
mod linked_kernels;
mod other_firmware;
mod prebuilt;
mod prints;
mod programs;
mod queue_api;
mod queue_api_faults;
mod queue_api_random;
mod sub_devices;
mod tensors;
mod traces;
mod traces_faults;
mod traces_regressions;
mod two_queues;
mod two_queues_faults;
mod two_queues_run;
mod worker_cores;
