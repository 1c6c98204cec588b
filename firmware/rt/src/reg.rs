//! Loads, stores and the few instructions that Rust has no name for.
//!
//! Registers, L1 and local RAM share one flat address space (BabyRISCV/README.md, memory map), and
//! most of it is written by somebody else: all access goes through volatile loads and stores of
//! `u32` addresses. Ordering follows BabyRISCV/MemoryOrdering.md: stores are emitted in order, but
//! a store to L1 and a later store to a register are processed by different memories and may be
//! seen in either order. [`publish`] closes that gap.

use tilework_abi::tensix;

/// The volatile accesses, one row for each width: load, store, and poll.
macro_rules! accesses {
    ($($ty:ty, $what:literal: $read:ident, $write:ident $(, $wait:ident)?;)*) => {$(
        #[doc = concat!("Loads the ", $what, " at `addr`, a multiple of its size.")]
        #[inline(always)]
        pub fn $read(addr: u32) -> $ty {
            // SAFETY: the core has no memory protection; every aligned address is L1, local RAM or
            // a register, and what is read has no invalid values.
            unsafe { (addr as *const $ty).read_volatile() }
        }

        #[doc = concat!("Stores a ", $what, " at `addr`, a multiple of its size.")]
        #[inline(always)]
        pub fn $write(addr: u32, value: $ty) {
            // SAFETY: as the load; the caller names an address that the memory map gives it. No
            // Rust object lives there but `static`s, whose addresses callers do not compute.
            unsafe { (addr as *mut $ty).write_volatile(value) }
        }

        $(
            #[doc = concat!("Polls the ", $what, " at `addr`, which others write, until `done`")]
            /// holds; returns the value for which it did.
            #[inline(always)]
            pub fn $wait(addr: u32, done: impl Fn($ty) -> bool) -> $ty {
                loop {
                    fence();
                    let value = $read(addr);
                    if done(value) {
                        return value;
                    }
                }
            }
        )?
    )*};
}

accesses! {
    u32, "word": read, write, wait;
    u16, "half-word": read16, write16, wait16;
    u8, "byte": read8, write8, wait8;
}

/// Waits until all earlier stores are on their way and drops the L0 data cache, so that the next
/// loads see what others wrote.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "riscv32")]
    // SAFETY: `fence` changes no register and no memory. Without `nomem` the compiler keeps all
    // accesses on their side of it.
    unsafe {
        core::arch::asm!("fence", options(nostack, preserves_flags))
    }
}

/// Keeps the compiler from moving memory accesses across; no instruction.
#[inline(always)]
pub fn compiler_fence() {
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// Makes the last store to L1 by this core, at `addr`, and all earlier ones visible to the network
/// and the other cores before anything that follows: reads the word back and waits for it.
#[inline(always)]
pub fn publish(addr: u32) {
    compiler_fence();
    let seen = read(addr);
    #[cfg(target_arch = "riscv32")]
    // SAFETY: no instruction that touches memory; it only uses a register, which makes the core
    // wait for the load.
    unsafe {
        core::arch::asm!("mv zero, {0}", in(reg) seen, options(nostack, preserves_flags))
    }
    #[cfg(not(target_arch = "riscv32"))]
    let _ = seen;
}

/// Polls the register at `addr` until `done` holds; returns the value for which it did. Registers
/// are not cached: no fence.
#[inline(always)]
pub fn wait_reg(addr: u32, done: impl Fn(u32) -> bool) -> u32 {
    loop {
        let value = read(addr);
        if done(value) {
            return value;
        }
    }
}

/// The wall clock in AI clock cycles. The low half is read first, which latches the high half
/// (TensixTile/TileControlDebugStatus).
#[inline(always)]
pub fn wall_clock() -> u64 {
    let low = read(tensix::WALL_CLOCK_L);
    let high = read(tensix::WALL_CLOCK_H_LATCHED);
    u64::from(high) << 32 | u64::from(low)
}

/// Ends in an `ebreak`, which the simulator reports with the source line; on silicon the core stays
/// here.
#[cold]
pub fn stop() -> ! {
    loop {
        trap();
    }
}

#[inline(always)]
fn trap() {
    #[cfg(target_arch = "riscv32")]
    // SAFETY: traps or does nothing; nothing follows.
    unsafe {
        core::arch::asm!("ebreak", options(nostack, nomem))
    }
}
