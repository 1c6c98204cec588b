//! Semaphores: words of L1, 16 bytes apart, that cores add to over the network.
//!
//! Follows the original's `device.py`. Adding to a semaphore is
//! [`crate::Noc::semaphore_inc`].

use tilework_abi::L1_ALIGN;

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

    /// Its L1 address.
    #[inline(always)]
    pub const fn addr(self) -> u32 {
        self.addr
    }

    /// Waits until the value is at least `value`; returns it.
    #[inline(always)]
    pub fn wait_min(self, value: u32) -> u32 {
        reg::wait(self.addr, |v| v >= value)
    }
}
