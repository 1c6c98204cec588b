//! What firmware hands to a kernel of ours.
//!
//! A kernel is entered at its first byte as `extern "C" fn(&KernelContext)`, on the firmware's stack, wherever the kernel configuration
//! puts its text. The context lives in the core's local RAM, so reading it costs two cycles. Kernels built for other firmware are entered the
//! same way and ignore the argument.

/// Unchanging facts about a running kernel. All addresses are in the core's own address space.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelContext {
    /// Unique run-time arguments.
    pub rta: *const u32,
    /// Common run-time arguments.
    pub crta: *const u32,
    /// Semaphore 0; semaphore i is 16 bytes further each.
    pub semaphores: *mut u32,
    /// Circular-buffer configurations, 16 bytes each.
    pub cb_config: *const u32,
    /// Which circular buffers are configured.
    pub cb_mask: u32,
    /// The NoC that this core should use.
    pub noc: u32,
    /// The tile's translated coordinates, y << 6 | x.
    pub my_xy: u32,
    /// Number of logical DRAM banks.
    pub dram_banks: u32,
    /// Encoded coordinates of each DRAM bank's port on the core's NoC.
    pub dram_xy: *const u16,
    /// The host's number of the program.
    pub program_id: u32,
    /// The core that runs the kernel: an index into [`Processor::ALL`](crate::tensix::Processor::ALL).
    pub processor: u32,
}

/// Where our kernels' text is linked. Only nominal: the loader moves it to where the kernel configuration puts it, by
/// shifting the relocations whose symbol lies at or above this address and below local RAM.
pub const KERNEL_LINK_BASE: u32 = 0x1_0000;

/// Backend configuration `RISCV_IC_INVALIDATE_InvalidateAll`, word 185 of Blackhole's `Config` (public `cfg_defines.h`): bit i drops
/// the instruction cache of B, T0, T1, T2, NC. Needed when new kernel text has come into L1: the caches are not coherent
/// (WormholeB0/TensixTile/BabyRISCV/InstructionCache.md), and one core must drop the caches of the others. NCRISC cannot reach it.
pub const IC_INVALIDATE: u32 = crate::tensix::CFG_BASE + 185 * 4;
/// All five instruction caches.
pub const IC_ALL: u32 = 0x1F;

/// First byte of local RAM that belongs to the kernel on BRISC and NCRISC: initialised data and bss, below the stack.
pub const KERNEL_LOCAL_DM: u32 = crate::tensix::LOCAL_BASE + 0x400;
/// First byte of local RAM that belongs to the kernel on a TRISC.
pub const KERNEL_LOCAL_TRISC: u32 = crate::tensix::LOCAL_BASE + 0x400;
/// Bytes of stack at the top of local RAM.
pub const STACK_BYTES: u32 = 0x800;
