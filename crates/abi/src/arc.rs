//! Registers of the ARC tile: the reset unit and the MSI catcher, as drivers use them.
//!
//! Addresses are those of the tile's NoC address space. Follows WormholeB0/ARCTile/ResetUnit.md and
//! the public drivers, tt-umd and tt-kmd. Telemetry and message queues, which are memory, are in
//! [`crate::telemetry`].

use crate::reg::registers;
use crate::telemetry::{APB_BASE, CSM_BASE};

/// First byte of the reset unit (tt-umd `ARC_RESET_UNIT_OFFSET`).
const RESET_UNIT_BASE: u64 = APB_BASE + 0x3_0000;
/// First byte of the MSI catcher (tt-kmd `ARC_MSI_FIFO`).
const MSI_BASE: u64 = APB_BASE + 0xB_0000;
const RESET_PAGE: &str = "WormholeB0/ARCTile/ResetUnit.md";
const WORD: u32 = 4;
/// The bits of `ARC_MISC_CNTL` that interrupt the ARC, whose firmware clears them and looks at its
/// queues (tt-umd `ARC_FW_INT_ADDR`).
pub const MISC_CNTL_IRQ0: u32 = 0xF << 16;
/// `MSI_STATUS`: the FIFO takes more.
pub const MSI_READY: u32 = 1;

/// Where the simulated firmware puts the telemetry table; drivers only require that it lies in the
/// shared memory.
pub const TELEMETRY_TABLE: u64 = CSM_BASE + 0x1000;
/// Where it puts the control block of the message queues, which only has to lie there, too.
pub const QUEUE_CONTROL: u64 = CSM_BASE + 0x2000;

registers! {
    /// The ARC tile's reset unit. Words without a row are not built.
    pub static RESET_UNIT = {
        name: "ARC reset unit", base: RESET_UNIT_BASE, span: 0x500, copies: 1, stride: 0,
        unit: 1, page: RESET_PAGE,
        const u64 = |at| RESET_UNIT_BASE + at,
    };
    /// Scratch registers; the ARC leaves its post code in the first.
    SCRATCH "ARC_RESET_SCRATCH"[6; WORD] = 0x60, Rw;
    /// Low half of a counter of the 50 MHz reference clock.
    REFCLK_LOW "ARC_RESET_REFCLK_LOW" = 0xE0, Ro, page "tt-umd, blackhole_implementation.hpp";
    /// Its high half.
    REFCLK_HIGH "ARC_RESET_REFCLK_HIGH" = 0xE4, Ro, page "tt-umd, blackhole_implementation.hpp";
    /// Bits 16 to 19 interrupt the ARC, whose firmware clears them.
    MISC_CNTL "ARC_MISC_CNTL" = 0x100, Rw, mask !MISC_CNTL_IRQ0;
    /// Scratch RAM (drivers use words 0 to 23; the length is an estimate).
    SCRATCH_RAM "SCRATCH_RAM"[64; WORD] = 0x400, Rw, page "tt-kmd, blackhole.c";
}

registers! {
    /// The MSI catcher, which is the doorbell of the message queues.
    pub static MSI_CATCHER = {
        name: "ARC MSI catcher", base: MSI_BASE, span: 0xC, copies: 1, stride: 0,
        unit: 1, page: "tt-kmd, blackhole.c",
        const u64 = |at| MSI_BASE + at,
    };
    /// A write of 0 makes the firmware look at its queues.
    MSI_FIFO "ARC_MSI_FIFO" = 0x0, WoFault;
    /// Bit 0: the FIFO takes more; bit 8, never set: it is not empty.
    MSI_STATUS "ARC_MSI_STATUS" = 0x8, Ro, reset MSI_READY;
}
