//! What a kernel reads when it starts: arguments, semaphores, circular buffers, banks, its NoC.
//!
//! The firmware passes no arguments (abi `kernel`): the kernel reads the launch message in use, the
//! bank table and the NIU itself, so that it runs under any worker firmware of this generation, not
//! only under ours. Their addresses are written into the image by the loader ([`Binding`], defined
//! by [`kernel!`](crate::kernel!)).
//!
//! All of it is read with plain loads: nothing changes while the kernel runs, and the compiler
//! drops the loads of fields that a kernel does not use.

use core::mem::offset_of;

use tilework_abi::board::DRAM_BANKS;
use tilework_abi::kernel::Binding;
use tilework_abi::l1::bank_table;
use tilework_abi::msg::{LAUNCH_MSG_BYTES, LaunchMsg, RtaOffset};
use tilework_abi::noc::{ID_LOGICAL, niu_base};
use tilework_abi::tensix::Processor;

use crate::niu::XY_MASK;
use crate::reg::fence;

/// What does not change while the kernel runs. All addresses are in the core's own address space.
#[derive(Clone, Copy, Debug)]
pub struct KernelContext {
    /// Unique run-time arguments.
    pub rta: u32,
    /// Common run-time arguments.
    pub crta: u32,
    /// Semaphore 0; semaphore i is 16 bytes further each.
    pub semaphores: u32,
    /// Circular-buffer configurations, 16 bytes each.
    pub cb_config: u32,
    /// Which circular buffers are configured.
    pub cb_mask: u32,
    /// Overlay stream of circular buffer 0.
    pub cb_stream: u32,
    /// The NoC that this core should use.
    pub noc: u32,
    /// The tile's translated coordinates, y << 6 | x.
    pub my_xy: u32,
    /// Number of logical DRAM banks.
    pub dram_banks: u32,
    /// Encoded coordinates (u16) of each DRAM bank's port on the core's NoC.
    pub dram_xy: u32,
    /// Number of L1 banks.
    pub l1_banks: u32,
    /// Encoded coordinates (u16) of the tile of each L1 bank.
    pub l1_xy: u32,
    /// The first go message, on every worker.
    pub go: u32,
    /// The host's number of the program.
    pub program_id: u32,
    /// The core that runs the kernel: an index into [`Processor::ALL`].
    pub processor: u32,
}

impl KernelContext {
    /// Reads everything. `binding` is the image's own.
    #[inline(always)]
    pub fn load(binding: &Binding) -> Self {
        // The host and other cores wrote what follows.
        fence();
        let &Binding { launch_rd_ptr, launch, go, bank_table: table, cb_stream, processor } = binding;
        let message = launch + plain::<u32>(launch_rd_ptr) * LAUNCH_MSG_BYTES as u32;
        let word = |field: usize| plain::<u32>(message + field as u32);
        let half = |field: usize| u32::from(plain::<u16>(message + field as u32));
        let base = word(offset_of!(LaunchMsg, kernel_config_base));
        let rta = offset_of!(LaunchMsg, rta_offset) + processor as usize * size_of::<RtaOffset>();
        let brisc_noc = u32::from(plain::<u8>(message + offset_of!(LaunchMsg, brisc_noc_id) as u32)) & 1;
        // The data-movement cores share the NoCs between them; the TRISCs do not use them.
        let noc = if processor == Processor::Ncrisc as u32 { brisc_noc ^ 1 } else { brisc_noc };
        let told = plain::<u32>(table + bank_table::DRAM_BANKS);
        let banks = if told == 0 { bank_table::SEED_BANKS } else { told.min(DRAM_BANKS as u32) };
        let told = plain::<u32>(table + bank_table::L1_BANKS);
        let l1_banks = if told == 0 { bank_table::SEED_L1_BANKS } else { told };
        Self {
            rta: base + half(rta + offset_of!(RtaOffset, rta)),
            crta: base + half(rta + offset_of!(RtaOffset, crta)),
            semaphores: base + half(offset_of!(LaunchMsg, sem_offset)),
            cb_config: base + half(offset_of!(LaunchMsg, local_cb_offset)),
            cb_mask: word(offset_of!(LaunchMsg, local_cb_mask)),
            cb_stream,
            noc,
            my_xy: plain::<u32>(niu_base(0) + ID_LOGICAL) & XY_MASK,
            dram_banks: banks,
            dram_xy: table + bank_table::dram_xy(noc, 0, banks),
            l1_banks,
            l1_xy: table + bank_table::l1_xy(noc, 0, banks, l1_banks),
            go,
            program_id: word(offset_of!(LaunchMsg, host_assigned_id)),
            processor,
        }
    }
}

/// A load that the compiler may drop when the value is not used.
#[inline(always)]
fn plain<T: Copy>(addr: u32) -> T {
    // SAFETY: the core has no memory protection; the address is a word, half-word or byte of L1 or
    // a register that a load does not change, aligned by the layout of what is read (abi `msg`,
    // `l1`), and the integer types that are read have no invalid values.
    unsafe { core::ptr::with_exposed_provenance::<T>(addr as usize).read() }
}
