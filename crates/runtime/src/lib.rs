//! Device, memory, programs and the command queue: what runs a program on a chip.
//!
//! The crate knows programs, not commands' bytes (that is `tilework-cq`) and not how a host reaches
//! a chip (that is `tilework-driver`). A [`Device`] is opened once: firmware goes to every tile and
//! the two dispatch cores start ([`device`]). Kernels are ELF files ([`elf`]) that the loader
//! places into a worker's kernel configuration space; worker firmware is ours or another set with
//! its memory map ([`firmware`]). A [`Program`] says which kernels run where with which arguments,
//! circular buffers and semaphores ([`program`]); [`lower`] turns it into writes and launches, and
//! these into the commands of fast dispatch or into plain window accesses ([`queue`]). After a
//! deadlock, [`explain`] reports who waits for whom.
//!
//! Follows seeds 000/001 (sections 1, 2, 6, 7, 8) and the original's `device.py` and `hw.py`.

#![forbid(unsafe_code)]
// The tests of this crate make their data by truncation.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod device;
pub mod elf;
pub mod explain;
pub mod firmware;
pub mod lower;
pub mod memory;
pub mod prebuilt;
pub mod program;
pub mod queue;

mod error;

pub use device::{
    BATCH_PROGRAMS, CoreTime, Device, DeviceConfig, Dispatch, ProgramReport, Progress, RunReport, Statistics,
};
pub use elf::{ElfError, FirmwareImage, KernelImage, SourceLocation};
pub use error::RuntimeError;
pub use explain::{BudgetReport, DeadlockReport, FaultPlace};
pub use firmware::{FirmwareError, FirmwareFile, FirmwareSet, MapValues};
pub use memory::{Address, Allocator, Buffer, DType, L1Buffer, MemoryError};
pub use program::{ArgSet, CircularBuffer, Cores, Program, ProgramError, Role, UniqueArgs};
pub use tilework_driver::ChipCounts;
