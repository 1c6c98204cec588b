//! Run-time library of the code that runs on the chip's own cores: worker firmware and kernels.
//!
//! It has the start of an image ([`start`]), a kernel's parameters ([`context`]), the core's
//! registers and memory ([`reg`]), the NoC interface units ([`niu`]) and the network for kernels
//! ([`noc`]), interleaved DRAM buffers ([`dram`]), circular buffers ([`cb`]), semaphores ([`sem`]),
//! prints and assertions ([`print`](mod@print)), what the worker firmware images share ([`worker`])
//! and what they keep for kernels of tt-metal
//! ([`globals`]). Every address and layout comes from
//! `tilework_abi`; the behaviour it relies on is that of the public ISA documentation
//! (BlackholeA0/NoC, BlackholeA0/TensixTile/BabyRISCV).
//!
//! A kernel is a binary crate:
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//! use tilework_rt::{KernelContext, kernel};
//!
//! kernel!(main);
//!
//! fn main(ctx: &KernelContext) {
//!     // ...
//! }
//! ```
//!
//! **Polling.** The L0 data cache is not coherent with what other cores and the network write
//! (BabyRISCV/MemoryOrdering.md), so every poll of L1 fences. All poll loops here store nothing and
//! compute nothing but the comparison: the simulator puts such loops to sleep until the word they
//! look at changes.
#![no_std]

pub mod cb;
pub mod context;
pub mod dram;
pub mod globals;
pub mod niu;
pub mod noc;
pub mod print;
pub mod reg;
pub mod sem;
pub mod start;
pub mod worker;

pub use context::KernelContext;
pub use noc::{Noc, NocAddr};
pub use tilework_abi as abi;
use tilework_abi::walk::number;

/// Unique run-time argument `i` of the kernel.
///
/// Its existence is not checked: the launch message does not carry the number of arguments.
#[inline(always)]
pub fn rta(ctx: &KernelContext, i: u32) -> u32 {
    reg::read(ctx.rta + i * 4)
}

/// The number of this core among those that the common arguments from `first` on number
/// ([`number`]), if it has one.
#[inline(always)]
pub fn number(ctx: &KernelContext, first: u32) -> Option<u32> {
    number::of(crta(ctx, first + number::row(ctx.my_xy >> 6)), ctx.my_xy & 63)
}

/// Common run-time argument `i` of the kernel, the same on all cores. Its existence is not checked.
#[inline(always)]
pub fn crta(ctx: &KernelContext, i: u32) -> u32 {
    reg::read(ctx.crta + i * 4)
}

#[cfg(target_arch = "riscv32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    reg::stop()
}
