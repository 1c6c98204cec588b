//! Everything that host, firmware and chip must agree on.
//!
//! One fact, one place: register addresses, L1 maps, message and command layouts, board tables. The
//! crate is `no_std` and has no behaviour beyond arithmetic on its own constants, because the same
//! source is compiled into the RISC-V firmware, the host library and the simulated chip. Every
//! constant names the document it comes from; `docs/sources.md` says what the names mean.
#![forbid(unsafe_code)]
#![no_std]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

pub mod addr;
pub mod address_map;
pub mod arc;
pub mod board;
pub mod cb;
pub mod conv;
pub mod convert;
pub mod cq;
pub mod edges;
pub mod eltwise;
pub mod flash;
pub mod globals;
pub mod grid;
pub mod kernel;
pub mod kmd;
pub mod l1;
pub mod lines;
pub mod msg;
pub mod noc;
pub mod pci;
pub mod print;
pub mod random;
pub mod rearrange;
pub mod reg;
mod reg_tile;
pub mod rowwise;
pub mod simlib;
pub mod stream;
pub mod telemetry;
pub mod tensix;
pub mod tlb;
pub mod walk;

/// Rounds `value` up to a multiple of `align` (a power of two).
pub const fn align_up(value: u32, align: u32) -> u32 {
    (value + (align - 1)) & !(align - 1)
}

/// Alignment of everything in L1 that a NoC transfer touches, in bytes (seed 1.4, `L1_ALIGN`).
pub const L1_ALIGN: u32 = 16;
/// Alignment of records that the prefetcher reads over PCIe, in bytes (seed 1.4, `PCIE_ALIGN`).
pub const PCIE_ALIGN: u32 = 64;
/// Alignment of DRAM transfers, in bytes (NoC/README.md).
pub const DRAM_ALIGN: u32 = 64;
