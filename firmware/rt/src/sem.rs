//! Semaphores: words of L1, 16 bytes apart, that cores add to over the network.
//!
//! Follows facts ("Host start-up of a card", 3). Adding to another tile's semaphore is [`crate::Noc::semaphore_inc`].

use tilework_abi::L1_ALIGN;
use tilework_abi::cq::count::WrapCount;

use crate::KernelContext;
use crate::reg;

/// A semaphore of this tile.
#[derive(Clone, Copy)]
pub struct Semaphore {
    addr: u32,
}

impl Semaphore {
    /// Semaphore `id` of the running program; the address is the same on every tile that runs it.
    #[inline(always)]
    pub fn of(ctx: &KernelContext, id: u32) -> Self {
        Self { addr: ctx.semaphores + id * L1_ALIGN }
    }
    /// The semaphore at L1 address `addr`.
    #[inline(always)]
    pub const fn at(addr: u32) -> Self {
        Self { addr }
    }
    /// Its L1 address.
    #[inline(always)]
    pub const fn addr(self) -> u32 {
        self.addr
    }
    /// The value as it is now.
    #[inline(always)]
    pub fn get(self) -> u32 {
        reg::fence();
        reg::read(self.addr)
    }
    /// Stores a value. Not atomic: nobody else may add at the same time.
    #[inline(always)]
    pub fn set(self, value: u32) {
        reg::write(self.addr, value);
    }
    /// Waits until the value is exactly `value`.
    #[inline(always)]
    pub fn wait(self, value: u32) {
        reg::wait(self.addr, |v| v == value);
    }
    /// Waits until the value is at least `value`; returns it.
    #[inline(always)]
    pub fn wait_min(self, value: u32) -> u32 {
        reg::wait(self.addr, |v| v >= value)
    }
    /// Waits until the value, a count that wraps, has reached `value`; returns it.
    #[inline(always)]
    pub fn wait_wrap_ge(self, value: u32) -> u32 {
        reg::wait(self.addr, |v| WrapCount(v).wrap_ge(WrapCount(value)))
    }
    /// Adds `n` atomically to this tile's own semaphore (`amoadd.w`); returns the old value.
    #[inline(always)]
    pub fn fetch_add(self, n: u32) -> u32 {
        #[cfg(target_arch = "riscv32")]
        {
            let old: u32;
            // SAFETY: an atomic addition to a word of L1 that only volatile and atomic accesses touch.
            unsafe {
                core::arch::asm!(
                    "amoadd.w {old}, {n}, ({addr})",
                    old = out(reg) old, n = in(reg) n, addr = in(reg) self.addr,
                    options(nostack, preserves_flags)
                );
            }
            old
        }
        #[cfg(not(target_arch = "riscv32"))]
        {
            let old = reg::read(self.addr);
            reg::write(self.addr, old.wrapping_add(n));
            old
        }
    }
}
