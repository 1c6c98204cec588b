//! What the worker firmwares have in common: launch messages, the bank table, calling a kernel.
//!
//! Follows facts ("Worker L1", "Launch message", "Go message"). Launch messages are read in place, field by field, with loads of the fields'
//! own width: that is the time that an empty program takes.

use core::mem::offset_of;

use tilework_abi::board::DRAM_BANKS;
use tilework_abi::cb::{COUNT, acked_addr, received_addr};
use tilework_abi::kernel::KernelContext;
use tilework_abi::l1::{WORKER, bank_table, mailbox, sync};
use tilework_abi::msg::{LAUNCH_MSG_BYTES, LaunchMsg, RtaOffset};
use tilework_abi::noc::{ID_LOGICAL, niu_base};
use tilework_abi::tensix::Processor;

use crate::reg::{read, read8, read16, wait8, write, write8};

/// L1 address of the index of the next launch message.
pub const LAUNCH_RD_PTR: u32 = WORKER.mailbox + mailbox::LAUNCH_RD_PTR;
/// L1 address of the four subordinates' synchronisation bytes, which are also one word.
pub const SUBORDINATE_SYNC: u32 = WORKER.mailbox + mailbox::SUBORDINATE_SYNC;

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
        let addr = WORKER.launch + index * LAUNCH_MSG_BYTES as u32;
        Self { addr, base: read(addr + offset_of!(LaunchMsg, kernel_config_base) as u32) }
    }
    #[inline(always)]
    fn word(&self, offset: usize) -> u32 {
        read(self.addr + offset as u32)
    }
    #[inline(always)]
    fn half(&self, offset: usize) -> u32 {
        u32::from(read16(self.addr + offset as u32))
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
    /// Marks the message as used: nothing enabled, nothing to load ahead.
    #[inline(always)]
    pub fn clear(&self) {
        write(self.addr + offset_of!(LaunchMsg, enables) as u32, 0);
        write8(self.addr + offset_of!(LaunchMsg, preload) as u32, 0);
    }
    /// Runs the kernel of `core` on this core and returns when it does.
    #[inline(always)]
    pub fn run(&self, core: Processor, noc: u32, tile: &Tile) {
        let i = core.index();
        let rta = offset_of!(LaunchMsg, rta_offset) + i * size_of::<RtaOffset>();
        let ctx = KernelContext {
            rta: (self.base + self.half(rta + offset_of!(RtaOffset, rta))) as *const u32,
            crta: (self.base + self.half(rta + offset_of!(RtaOffset, crta))) as *const u32,
            semaphores: (self.base + self.half(offset_of!(LaunchMsg, sem_offset))) as *mut u32,
            cb_config: (self.base + self.half(offset_of!(LaunchMsg, local_cb_offset))) as *const u32,
            cb_mask: self.cb_mask(),
            noc,
            my_xy: tile.my_xy,
            dram_banks: tile.dram_banks,
            dram_xy: tile.dram_xy[noc as usize & 1].as_ptr(),
            program_id: self.word(offset_of!(LaunchMsg, host_assigned_id)),
            processor: i as u32,
        };
        let entry = self.base + self.word(offset_of!(LaunchMsg, kernel_text_offset) + 4 * i);
        // SAFETY: the host put a kernel there and says so in `enables`; a kernel is entered at its first byte with this signature
        // (abi `kernel`).
        let kernel = unsafe { core::mem::transmute::<*const (), extern "C" fn(&KernelContext)>(entry as *const ()) };
        kernel(&ctx);
    }
}

/// What a core knows about its tile and its board from the start; kept in local RAM.
pub struct Tile {
    my_xy: u32,
    dram_banks: u32,
    dram_xy: [[u16; DRAM_BANKS]; 2],
}

impl Tile {
    /// Reads the tile's coordinates from the NIU and the DRAM banks from the host's bank table.
    #[inline(always)]
    pub fn load() -> Self {
        let told = read(WORKER.bank_table + bank_table::DRAM_BANKS);
        let banks = if told == 0 { bank_table::SEED_BANKS } else { told.min(DRAM_BANKS as u32) };
        // Entries past the last bank hold what follows in the table; nobody asks for them.
        let row =
            |noc| core::array::from_fn(|bank| read16(WORKER.bank_table + bank_table::dram_xy(noc, bank as u32, banks)));
        Self { my_xy: read(niu_base(0) + ID_LOGICAL) & 0xFFF, dram_banks: banks, dram_xy: [row(0), row(1)] }
    }
}

/// Sets the counters of the circular buffers in `mask` to zero.
#[inline(always)]
pub fn clear_cb_counters(mask: u32) {
    let mut left = mask;
    while left != 0 {
        let cb = left.trailing_zeros();
        write(received_addr(cb), 0);
        write(acked_addr(cb), 0);
        left &= left - 1;
    }
}

/// All circular buffers.
pub const ALL_CBS: u32 = u32::MAX;
const _: () = assert!(COUNT == 32);

/// The whole life of a subordinate core: reports that it is up, then runs its kernel whenever BRISC says so.
#[inline(always)]
pub fn subordinate(core: Processor) -> ! {
    let tile = Tile::load();
    let state = sync_byte(core);
    loop {
        write8(state, sync::DONE);
        let wanted = wait8(state, |v| v == sync::GO || core == Processor::Trisc0 && v == sync::INIT_SYNC_REGISTERS);
        if wanted == sync::GO {
            let launch = Launch::current();
            // The data-movement cores share the NoCs between them; the TRISCs do not use them.
            let noc = if core == Processor::Ncrisc { launch.brisc_noc() ^ 1 } else { 0 };
            launch.run(core, noc, &tile);
        } else {
            clear_cb_counters(ALL_CBS);
        }
    }
}
