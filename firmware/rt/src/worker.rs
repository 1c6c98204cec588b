//! Shared parts of the worker firmware images: launch messages, and calling a kernel.
//!
//! Follows the original's `hw.py` and `dispatch.py`. Launch messages are read in place,
//! field by field, with loads of the fields' own width: they make up most of the time of an empty
//! program. A kernel reads its own parameters ([`crate::context`]).

use core::mem::offset_of;

use tilework_abi::cb::{COUNT, acked_addr, received_addr};
use tilework_abi::l1::{WORKER, sync};
use tilework_abi::msg::{LAUNCH_MSG_BYTES, LaunchMsg};
use tilework_abi::tensix::Processor;

use crate::globals;
use crate::reg::{read, read8, wait8, write, write8};

/// L1 address of the index of the next launch message.
pub const LAUNCH_RD_PTR: u32 = WORKER.launch_rd_ptr().get();
/// L1 address of the four subordinates' synchronisation bytes, which are also one word.
pub const SUBORDINATE_SYNC: u32 = WORKER.subordinate_sync().get();

/// L1 address of the synchronisation byte of a subordinate core.
#[inline(always)]
pub const fn sync_byte(core: Processor) -> u32 {
    SUBORDINATE_SYNC + core as u32 - Processor::Ncrisc as u32
}

/// A launch message in L1.
#[derive(Clone, Copy)]
pub struct Launch {
    addr: u32,
    base: u32,
}

impl Launch {
    /// The message that the read pointer names.
    #[inline(always)]
    pub fn current() -> Self {
        Self::at(read(LAUNCH_RD_PTR))
    }
    /// Message `index` of the ring.
    #[inline(always)]
    pub fn at(index: u32) -> Self {
        let addr = WORKER.launch.get() + index * LAUNCH_MSG_BYTES as u32;
        Self { addr, base: read(addr + offset_of!(LaunchMsg, kernel_config_base) as u32) }
    }
    #[inline(always)]
    fn word(&self, offset: usize) -> u32 {
        read(self.addr + offset as u32)
    }
    /// Bit i: processor i runs a kernel.
    #[inline(always)]
    pub fn enables(&self) -> u32 {
        self.word(offset_of!(LaunchMsg, enables))
    }
    /// The NoC that BRISC uses.
    #[inline(always)]
    pub fn brisc_noc(&self) -> u32 {
        u32::from(read8(self.addr + offset_of!(LaunchMsg, brisc_noc_id) as u32)) & 1
    }
    /// `MODE_DEV` or `MODE_HOST`.
    #[inline(always)]
    pub fn mode(&self) -> u8 {
        read8(self.addr + offset_of!(LaunchMsg, mode) as u32)
    }
    /// Bit i: circular buffer i is configured.
    #[inline(always)]
    pub fn cb_mask(&self) -> u32 {
        self.word(offset_of!(LaunchMsg, local_cb_mask))
    }
    /// Bit i: the kernel of processor i reads no global of the firmware.
    #[inline(always)]
    pub fn self_contained(&self) -> u32 {
        u32::from(read8(self.addr + offset_of!(LaunchMsg, self_contained) as u32))
    }
    /// Runs the kernel of `core` on this core and returns when it does.
    #[inline(always)]
    pub fn run(&self, core: Processor) {
        if self.self_contained() & 1 << core.index() == 0 {
            globals::fill(self.addr, core);
        }
        let entry = self.base + self.word(offset_of!(LaunchMsg, kernel_text_offset) + 4 * core.index());
        // SAFETY: the host put a kernel there and says so in `enables`; a kernel is entered at its
        // first byte without arguments and returns (abi `kernel`).
        let kernel = unsafe { ::core::mem::transmute::<*const (), extern "C" fn()>(entry as *const ()) };
        kernel();
    }
}

/// Sets the counters of the circular buffers in `mask` to zero.
#[inline(always)]
pub fn clear_cb_counters(mask: u32) {
    let mut left = mask;
    while left != 0 {
        let cb = left.trailing_zeros();
        write(received_addr(WORKER.cb_stream, cb), 0);
        write(acked_addr(WORKER.cb_stream, cb), 0);
        left &= left - 1;
    }
}

/// All circular buffers.
pub const ALL_CBS: u32 = u32::MAX;
const _: () = assert!(COUNT == 32);

/// Main loop of a subordinate core: reports that it is up, then runs its kernel whenever BRISC says
/// go.
#[inline(always)]
pub fn subordinate(core: Processor) -> ! {
    let state = sync_byte(core);
    globals::start(core);
    loop {
        write8(state, sync::DONE);
        let wanted = wait8(state, |v| v == sync::GO || core == Processor::Trisc0 && v == sync::INIT_SYNC_REGISTERS);
        if wanted == sync::GO {
            Launch::current().run(core);
        } else {
            clear_cb_counters(ALL_CBS);
        }
    }
}
