//! The contract of host and kernel: where a kernel lies and what it finds when it starts.
//!
//! A kernel is entered at its first byte, on the firmware's stack, wherever the kernel
//! configuration puts its text, and ends by returning. The registers say nothing: firmware that
//! others built leaves anything in them (public sources of tt-metal, `brisc.cc` and `trisc.cc`: the
//! entry is called as `uint32_t (*)()`). Everything else it reads where the field keeps it: the
//! launch message in the mailbox has the offsets of its arguments, semaphores, circular buffers and
//! its NoC; the bank table has the DRAM banks.
//!
//! Where the mailbox is depends on the firmware ([`MemoryMap`]), and which core it runs on no
//! register says. The original compiles both into the kernel. Ours are built once, so the loader
//! writes them into the image: [`Binding`].

use crate::convert::u32_of;
use crate::l1::MemoryMap;
use crate::tensix::Processor;

/// The words that a loader stores at [`BINDING_SYMBOL`] in a kernel's image: what the original's
/// kernels have compiled in. A kernel without the symbol gets none. As linked, ours name
/// [`WORKER`](crate::l1::WORKER) and BRISC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Binding {
    /// Address of the index of the launch message in use (u32).
    pub launch_rd_ptr: u32,
    /// Address of the first launch message.
    pub launch: u32,
    /// Address of the first go message: the dispatcher sends them.
    pub go: u32,
    /// Address of the bank table.
    pub bank_table: u32,
    /// Overlay stream of circular buffer 0.
    pub cb_stream: u32,
    /// The core that runs the kernel: an index into [`Processor::ALL`].
    pub processor: u32,
}

/// Name of the symbol in a kernel's ELF file.
pub const BINDING_SYMBOL: &str = "__tilework_binding";
/// Words of a [`Binding`].
pub const BINDING_WORDS: usize = 6;
const _: () = assert!(core::mem::size_of::<Binding>() == 4 * BINDING_WORDS);

impl Binding {
    /// What a kernel of `processor` must know about firmware with this map.
    pub const fn new(map: &MemoryMap, processor: Processor) -> Self {
        Self {
            launch_rd_ptr: map.launch_rd_ptr().get(),
            launch: map.launch.get(),
            go: map.go.get(),
            bank_table: map.bank_table.get(),
            cb_stream: map.cb_stream,
            processor: u32_of(processor.index()),
        }
    }
    /// The words in their order.
    pub const fn words(&self) -> [u32; BINDING_WORDS] {
        [self.launch_rd_ptr, self.launch, self.go, self.bank_table, self.cb_stream, self.processor]
    }
}

/// Where our kernels' text is linked. Only nominal: the loader moves it to where the kernel
/// configuration puts it, by shifting the relocations whose symbol lies at or above this address
/// and below local RAM.
pub const KERNEL_LINK_BASE: u32 = 0x1_0000;

/// Backend configuration `RISCV_IC_INVALIDATE_InvalidateAll`, word 185 of Blackhole's `Config`
/// (public `cfg_defines.h`): bit i drops the instruction cache of B, T0, T1, T2, NC. Needed when
/// new kernel text has come into L1: the caches are not coherent
/// (WormholeB0/TensixTile/BabyRISCV/InstructionCache.md), and one core must drop the caches of the
/// others. NCRISC cannot reach it.
pub const IC_INVALIDATE: u32 = crate::tensix::CFG_BASE + 185 * 4;
/// All five instruction caches.
pub const IC_ALL: u32 = 0x1F;

/// CSR `cfg0` of a core (BabyRISCV/CSRs.md).
pub const CFG0: u32 = 0x7C0;
/// `DisLowCachePeriodicFlush` within [`CFG0`]: the L0 data cache is only flushed by `fence`.
pub const CFG0_NO_PERIODIC_FLUSH: u32 = 1 << 24;

/// Where data and bss of a kernel for BRISC or NCRISC are linked, in local RAM below the stack.
/// Nominal as well: where the firmware's own data reaches further, the loader moves the kernel's
/// behind it ([`MemoryMap::kernel_local`]).
pub const KERNEL_LOCAL_DM: u32 = crate::tensix::LOCAL_BASE + 0x400;
/// The same on a TRISC.
pub const KERNEL_LOCAL_TRISC: u32 = crate::tensix::LOCAL_BASE + 0x400;
/// Where data and bss of a kernel for `core` must end as linked, so that they end below the stack
/// when the loader has moved them behind our firmware's globals ([`crate::globals`]).
pub const fn kernel_local_end(core: Processor) -> u32 {
    let nominal = match core {
        Processor::Brisc | Processor::Ncrisc => KERNEL_LOCAL_DM,
        _ => KERNEL_LOCAL_TRISC,
    };
    let moved = crate::l1::WORKER.kernel_local[core.index()] - nominal;
    crate::tensix::LOCAL_BASE + core.local_size() - STACK_BYTES - moved
}
/// Bytes of stack at the top of local RAM.
pub const STACK_BYTES: u32 = 0x800;
