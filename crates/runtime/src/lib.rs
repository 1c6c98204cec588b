//! Device, memory, programs and the command queue: what runs a program on a chip.
//!
//! The crate knows programs, not commands' bytes (that is `tilework-cq`) and not how a host reaches
//! a chip (that is `tilework-driver`). A [`Device`] is opened once: firmware goes to every tile and
//! the two dispatch cores start ([`device`]). Kernels are ELF files ([`elf`]) that the loader
//! places into a worker's kernel configuration space; worker firmware is ours or another set with
//! its memory map ([`firmware`]). A [`Program`] says which kernels run where with which arguments,
//! circular buffers and semaphores ([`program`]). [`cache`] encodes its commands once and patches
//! them for each launch; [`lower`] turns it into writes and launches, and these into the commands
//! of fast dispatch or into plain window accesses. Commands go through the [`queue`]. After a
//! deadlock, [`explain`] reports who waits for whom.
//!
//! A program on a simulated chip, from the start of the chip to the result:
//!
//! ```
//! use std::sync::Arc;
//! use tilework_abi::board::Board;
//! use tilework_abi::tensix::Processor;
//! use tilework_runtime::{
//!     ArgSet, Cores, DType, Device, DeviceConfig, KernelImage, Program, Role, UniqueArgs,
//!     prebuilt,
//! };
//! use tilework_sim::{Chip, ChipConfig};
//!
//! // A chip with firmware on its tiles and a command queue.
//! let board = Board::P100;
//! let mut device = Device::open(Chip::new(ChipConfig::new(board))?, DeviceConfig::new(board))?;
//!
//! // 256 numbers in four pages of DRAM, as many for the result, three pages in every L1.
//! let x = device.alloc_dram("x", &[256], DType::U32, 256)?;
//! let y = device.alloc_dram("y", &[256], DType::U32, 256)?;
//! let slots = device.alloc_l1("slots", 3 * 256)?;
//! let numbers: Vec<u8> = (0..256u32).flat_map(u32::to_le_bytes).collect();
//! device.upload(&x, &numbers)?;
//!
//! // The kernel `increment` on four workers, each with arguments for one page.
//! let elf = prebuilt::kernel_elf("increment").ok_or("no such kernel")?;
//! let kernel = Arc::new(KernelImage::load("increment", elf, Processor::Brisc)?);
//! let (from, to, slot) = (x.address.word(), y.address.word(), slots.address.get());
//! let args = (0..4).map(|page| vec![from, to, page, 1, 256, 1, slot, 3]).collect();
//! let program = Program::new("increment", Cores::Count(4))
//!     .role(Role::all().named("workers").kernel(Processor::Brisc, kernel))
//!     .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args));
//!
//! let report = device.run(&[program])?;
//! let found = device.download(&y)?;
//! assert!(found.chunks_exact(4).zip(1u32..).all(|(word, n)| word == n.to_le_bytes()));
//! println!("{:?} cycles", report.cycles);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Follows seeds 000/001 (sections 1, 2, 6, 7, 8) and the original's `device.py` and `hw.py`.

#![forbid(unsafe_code)]
// The tests of this crate make their data by truncation.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod cache;
pub mod device;
pub mod elf;
pub mod event;
pub mod explain;
pub mod firmware;
pub mod log;
pub mod lower;
pub mod memory;
pub mod prebuilt;
pub mod prints;
pub mod program;
pub mod queue;
pub mod tensor;
pub mod trace;

mod error;

pub use cache::{CACHED_PROGRAMS, CacheCounts, Prepared};
pub use device::{
    BATCH_PROGRAMS, CodePlace, CoreTime, Device, DeviceConfig, Dispatch, OnQueue, ProgramReport, Progress, RunReport,
    Statistics, SubDevice, SubDeviceError, SubDeviceId, TimeSlot, Transfers, default_cycles,
};
pub use elf::{ElfError, FirmwareImage, KernelImage, SourceLocation};
pub use error::RuntimeError;
pub use event::{Blocking, BufferRead, Event};
pub use explain::{BudgetReport, DeadlockReport, FaultPlace};
pub use firmware::{FirmwareError, FirmwareFile, FirmwareSet, MapValues, QueueFirmware, QueueValues};
pub use memory::{
    Address, Allocator, Buffer, BufferConfig, BufferType, CoreCoord, CoreRange, CoreRangeSet, DType, L1Buffer,
    MemoryError, MemorySpace, WorkerCores,
};
pub use prints::PrintLine;
pub use program::{ArgSet, CircularBuffer, Cores, Names, Program, ProgramError, Role, UniqueArgs};
pub use queue::timing::HostCost;
pub use tilework_abi::cq::layout::QueueId;
pub use tilework_driver::ChipCounts;
pub use trace::{Trace, TraceCapture, TraceError};
