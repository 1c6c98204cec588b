//! Loads, stores and the few instructions that Rust has no name for.
//!
//! Registers, L1 and local RAM share one flat address space (BabyRISCV/README.md, memory map), and most of it is written by
//! somebody else: all access goes through volatile loads and stores of `u32` addresses. Ordering follows
//! BabyRISCV/MemoryOrdering.md: stores are emitted in order, but a store to L1 and a later store to a register are processed by
//! different memories and may be seen in either order. [`publish`] closes that gap.

use tilework_abi::tensix;

/// Loads the word at `addr`.
#[inline(always)]
pub fn read(addr: u32) -> u32 {
    // SAFETY: the core has no memory protection; every 4-aligned address is L1, local RAM or a register, and what is
    // read has no invalid values.
    unsafe { (addr as *const u32).read_volatile() }
}

/// Stores a word at `addr`.
#[inline(always)]
pub fn write(addr: u32, value: u32) {
    // SAFETY: as `read`; the caller names an address that the memory map gives it. No Rust object lives there but through
    // `static`s, whose addresses callers do not compute.
    unsafe { (addr as *mut u32).write_volatile(value) }
}

/// Loads the half-word at `addr`.
#[inline(always)]
pub fn read16(addr: u32) -> u16 {
    // SAFETY: as `read`.
    unsafe { (addr as *const u16).read_volatile() }
}

/// Stores a half-word at `addr`.
#[inline(always)]
pub fn write16(addr: u32, value: u16) {
    // SAFETY: as `write`.
    unsafe { (addr as *mut u16).write_volatile(value) }
}

/// Loads the byte at `addr`.
#[inline(always)]
pub fn read8(addr: u32) -> u8 {
    // SAFETY: as `read`.
    unsafe { (addr as *const u8).read_volatile() }
}

/// Stores a byte at `addr`.
#[inline(always)]
pub fn write8(addr: u32, value: u8) {
    // SAFETY: as `write`.
    unsafe { (addr as *mut u8).write_volatile(value) }
}

/// Waits until all earlier stores are on their way and drops the L0 data cache, so that the next loads see what others wrote.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "riscv32")]
    // SAFETY: `fence` changes no register and no memory. Without `nomem` the compiler keeps all accesses on their side of it.
    unsafe {
        core::arch::asm!("fence", options(nostack, preserves_flags))
    }
}

/// Keeps the compiler from moving memory accesses across; no instruction.
#[inline(always)]
pub fn compiler_fence() {
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// Makes the last store to L1 by this core, at `addr`, and all earlier ones visible to the network and the other cores before
/// anything that follows: reads the word back and waits for it.
#[inline(always)]
pub fn publish(addr: u32) {
    compiler_fence();
    let seen = read(addr);
    #[cfg(target_arch = "riscv32")]
    // SAFETY: no instruction that touches memory; it only uses a register, which makes the core wait for the load.
    unsafe {
        core::arch::asm!("mv zero, {0}", in(reg) seen, options(nostack, preserves_flags))
    }
    #[cfg(not(target_arch = "riscv32"))]
    let _ = seen;
}

/// Polls the word at `addr`, which others write, until `done` says so; returns the value that did.
#[inline(always)]
pub fn wait(addr: u32, done: impl Fn(u32) -> bool) -> u32 {
    loop {
        fence();
        let value = read(addr);
        if done(value) {
            return value;
        }
    }
}

/// Polls the byte at `addr`, which others write, until `done` says so; returns the value that did.
#[inline(always)]
pub fn wait8(addr: u32, done: impl Fn(u8) -> bool) -> u8 {
    loop {
        fence();
        let value = read8(addr);
        if done(value) {
            return value;
        }
    }
}

/// Polls the register at `addr` until `done` says so; returns the value that did. Registers are not cached: no fence.
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

/// Copies `words` words from L1 or local RAM to L1 or local RAM; both addresses are multiples of 4 and the ranges do not
/// overlap.
#[inline(always)]
pub fn copy_words(from: u32, to: u32, words: u32) {
    let end = from + words * 4;
    let (mut from, mut to) = (from, to);
    while from != end {
        write(to, read(from));
        from += 4;
        to += 4;
    }
}

/// Ends in an `ebreak`, which the simulator reports with the source line; on silicon the core stays here.
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
