//! The L1 map of a worker tile.
//!
//! Follows the original's `hw.py`. Other firmware generations use other maps, so the map is a
//! value: [`MemoryMap`].

use crate::addr::L1Addr;
use crate::convert::u32_of;
use crate::globals;
use crate::tensix::{L1_SIZE, LOCAL_BASE, Processor};

/// Where a firmware generation keeps its things in L1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryMap {
    /// Start of the mailbox structure.
    pub mailbox: L1Addr,
    /// First of the eight launch messages.
    pub launch: L1Addr,
    /// Whether the firmware leaves a launch message as it is when its program has ended; the public
    /// firmware clears its `enables`.
    pub keeps_launch: bool,
    /// First of the go messages.
    pub go: L1Addr,
    /// Index of the go message in use.
    pub go_index: L1Addr,
    /// Profiler control block, 32 words.
    pub profiler_control: L1Addr,
    /// Rings of the cores' prints ([`crate::print`]); without bytes when there is no room for them.
    pub prints: L1Addr,
    /// Bytes of the rings: [`print::BYTES`](crate::print::BYTES), or 0 for none.
    pub prints_size: u32,
    /// Buffers of the device prints of tt-metal's kernels (`dprint_buf` of its mailbox), if it is
    /// known where this generation has them.
    pub dprint_buf: Option<L1Addr>,
    /// The buffer of a tile's device prints in their later form (`DEVICE_PRINT`), likewise.
    pub device_print_buf: Option<L1Addr>,
    /// Firmware text, in the order of [`Processor`].
    pub firmware_text: [L1Addr; 5],
    /// End of each firmware's text space, in the order of [`Processor`].
    pub firmware_end: [L1Addr; 5],
    /// Where each firmware's local-RAM initialisers are staged, in the order of [`Processor`].
    pub local_init: [L1Addr; 5],
    /// Run-time arguments, semaphores, circular-buffer configuration and kernel text.
    pub kernel_config: L1Addr,
    /// Bytes of the kernel configuration space.
    pub kernel_config_size: u32,
    /// Bank-to-NoC table: the DRAM banks' coordinates `[2][banks]`, then those of the L1 banks
    /// `[2][banks]`, as u16; [`bank_table::BYTES`] in all.
    pub bank_table: L1Addr,
    /// Where kernel text stays between programs; without bytes when the firmware leaves no room.
    pub text_cache: L1Addr,
    /// Bytes of the text cache, 0 for none.
    pub text_cache_size: u32,
    /// First byte for data buffers.
    pub data: L1Addr,
    /// One past the last byte for data buffers.
    pub data_end: L1Addr,
    /// First byte of local RAM behind the firmware's own data, in the order of [`Processor`] and in
    /// each core's own addresses.
    pub kernel_local: [u32; 5],
    /// Overlay stream with the counters of circular buffer 0; buffer i has the i-th behind it.
    pub cb_stream: u32,
}

impl MemoryMap {
    /// Index of the launch message that the firmware reads next.
    pub const fn launch_rd_ptr(&self) -> L1Addr {
        self.mailbox.offset(mailbox::LAUNCH_RD_PTR)
    }
    /// One byte per subordinate core.
    pub const fn subordinate_sync(&self) -> L1Addr {
        self.mailbox.offset(mailbox::SUBORDINATE_SYNC)
    }
}

/// The map of the seed's firmware, which ours uses too (the original's `hw.py`).
pub const WORKER: MemoryMap = MemoryMap {
    mailbox: L1Addr::new(0x60),
    launch: L1Addr::new(0x70),
    keeps_launch: true,
    go: L1Addr::new(0x370),
    go_index: L1Addr::new(0x3A0),
    profiler_control: L1Addr::new(0x9C0),
    // The buffers of the original's profiler are there (public `dev_msgs.h`, `profiler_msg_t`), and
    // unused unless its kernels are compiled with the profiler.
    prints: L1Addr::new(0xA40),
    prints_size: crate::print::BYTES,
    dprint_buf: None,
    device_print_buf: None,
    firmware_text: addresses([0x3840, 0x5440, 0x5A40, 0x6040, 0x6640]),
    firmware_end: addresses([0x5440, 0x5A40, 0x6040, 0x6640, 0x82B0]),
    local_init: addresses([0x82B0, 0xA2B0, 0xC2B0, 0xD2B0, 0xE2B0]),
    kernel_config: L1Addr::new(0x82B0),
    kernel_config_size: 0x112B0 - 0x82B0,
    bank_table: L1Addr::new(0x112B0),
    // Nothing of the original's map is between the bank table and the data; our firmware has
    // nothing there either.
    text_cache: L1Addr::new(0x12300),
    text_cache_size: 0x37000 - 0x12300,
    data: L1Addr::new(0x37000),
    data_end: L1Addr::new(L1_SIZE),
    // Our firmware has no data of its own there, only the globals.
    kernel_local: [
        LOCAL_BASE + globals::bytes(Processor::Brisc),
        LOCAL_BASE + globals::bytes(Processor::Ncrisc),
        LOCAL_BASE + globals::bytes(Processor::Trisc0),
        LOCAL_BASE + globals::bytes(Processor::Trisc1),
        LOCAL_BASE + globals::bytes(Processor::Trisc2),
    ],
    // Public sources of blackhole-py, `device.py`, "Operand->stream_id: 8 + operand"; its prebuilt
    // TRISC0 clears streams 8 to 39. Today's tt-metal begins at 0 (`stream_io_map.h`,
    // `OPERAND_START_STREAM`).
    cb_stream: 8,
};

const fn addresses(values: [u32; 5]) -> [L1Addr; 5] {
    let [brisc, ncrisc, trisc0, trisc1, trisc2] = values;
    [L1Addr::new(brisc), L1Addr::new(ncrisc), L1Addr::new(trisc0), L1Addr::new(trisc1), L1Addr::new(trisc2)]
}

/// The mailbox structure's words in front of the launch messages, relative to
/// [`MemoryMap::mailbox`].
pub mod mailbox {
    /// One byte per subordinate core: NCRISC, TRISC0, TRISC1, TRISC2.
    pub const SUBORDINATE_SYNC: u32 = 0x08;
    /// Index of the launch message that the firmware reads next (u32).
    pub const LAUNCH_RD_PTR: u32 = 0x0C;
}

/// Number of launch messages.
pub const LAUNCH_ENTRIES: u32 = 8;
/// Number of go messages.
pub const GO_ENTRIES: u32 = 9;
/// The bank-to-NoC table as our firmware reads it, relative to [`MemoryMap::bank_table`].
///
/// The seed's table is compiled for one number of banks each (a P100 with 7 of DRAM and 110 of L1);
/// ours carries the numbers, so that one firmware serves every board and dispatch layout.
pub mod bank_table {
    /// Logical DRAM banks (u32). Zero means [`SEED_BANKS`]: the seed's host does not
    /// write this word.
    pub const DRAM_BANKS: u32 = 0xFF0;
    /// L1 banks (u32). Zero means [`SEED_L1_BANKS`], likewise.
    pub const L1_BANKS: u32 = DRAM_BANKS + 4;
    /// The number of DRAM banks that the seed's firmware is compiled for.
    pub const SEED_BANKS: u32 = 7;
    /// The number of L1 banks that the seed's firmware is compiled for (the original's `hw.py`).
    pub const SEED_L1_BANKS: u32 = 110;
    /// Bytes of the table with these words.
    pub const BYTES: u32 = L1_BANKS + 4;
    /// Offset of the encoded coordinates (u16: y << 6 | x) of `bank` on NoC `noc`, of `banks`
    /// banks in all.
    pub const fn dram_xy(noc: u32, bank: u32, banks: u32) -> u32 {
        (noc * banks + bank) * 2
    }
    /// Offset of the encoded coordinates of L1 bank `bank` on NoC `noc`, of `banks` behind
    /// `dram_banks` DRAM banks. Translated coordinates of Tensix tiles are the same on both NoCs.
    pub const fn l1_xy(noc: u32, bank: u32, dram_banks: u32, banks: u32) -> u32 {
        dram_xy(2, 0, dram_banks) + (noc * banks + bank) * 2
    }
}

/// Zeros that kernels of tt-metal read from (public `dev_mem_map.h`, `MEM_ZEROS_BASE`; the prebuilt
/// BRISC of blackhole-py clears these bytes): between the mailbox and the firmware.
pub const ZEROS: L1Addr = L1Addr::new(0x3240);
/// Bytes of [`ZEROS`].
pub const ZEROS_BYTES: u32 = 512;
/// A word of L1 that atomics may return their old value to; nothing else uses it.
pub const ATOMIC_RETURN: u32 = 0x04;
/// L1 source word for the small writes of each processor (Blackhole's inline writes to L1 are
/// unsafe: NoC/MemoryMap.md), 16 bytes each, in the order of [`Processor`].
pub const SCRATCH_WORD: u32 = 0x10;
/// First byte behind the reset vector and these words, whatever the map.
pub const LOW_END: u32 = SCRATCH_WORD + 16 * 5;

/// Per-core timing: when the first word of the profiler control block is non-zero, the worker BRISC
/// writes the wall clock at kernel start and end to the host slots that the block names.
pub mod core_timing {
    /// Non-zero arms the timing (u32 index into the profiler control block).
    pub const ENABLE: u32 = 0;
    /// Low half of the NoC address of the start slot (8 bytes are written).
    pub const START_LO: u32 = 1;
    /// Low half of the NoC address of the end slot.
    pub const END_LO: u32 = 2;
    /// High half (bits 63..32) of both addresses.
    pub const ADDR_MID: u32 = 3;
    /// Encoded coordinates of the destination tile.
    pub const NOC_XY: u32 = 4;
    /// Words of the block in use.
    pub const WORDS: u32 = 5;
}

/// Bytes of the profiler control block (public `dev_msgs.h`: `control_vector`, 32 words).
pub const PROFILER_CONTROL_BYTES: u32 = 32 * 4;

/// States of a subordinate core's byte in `SUBORDINATE_SYNC` (the original's `brisc.cc`: all zero,
/// or 3 while NCRISC loads).
pub mod sync {
    /// Nothing to do.
    pub const DONE: u8 = 0x00;
    /// TRISC: clear the circular buffers' counters.
    pub const INIT_SYNC_REGISTERS: u8 = 0x03;
    /// The core was just released from reset.
    pub const INIT: u8 = 0x40;
    /// Run the kernel.
    pub const GO: u8 = 0x80;
}

const _: () = {
    let m = WORKER;
    assert!(m.mailbox.get() + 0x10 == m.launch.get());
    assert!(m.launch.get() + LAUNCH_ENTRIES * u32_of(crate::msg::LAUNCH_MSG_BYTES) == m.go.get());
    assert!(m.go.get() + GO_ENTRIES * 4 <= m.go_index.get());
    assert!(m.profiler_control.get() + PROFILER_CONTROL_BYTES == m.prints.get());
    assert!(m.prints.get() + m.prints_size <= ZEROS.get());
    assert!(LOW_END <= m.mailbox.get());
    assert!(m.cb_stream + crate::cb::COUNT <= crate::cq::layout::DONE_STREAM);
    let mut i = 0;
    while i < 5 {
        assert!(m.firmware_text[i].get() < m.firmware_end[i].get());
        assert!(m.firmware_end[i].get() <= m.kernel_config.get());
        if i < 4 {
            assert!(m.firmware_end[i].get() == m.firmware_text[i + 1].get());
            assert!(m.local_init[i + 1].get() - m.local_init[i].get() == Processor::ALL[i].local_size());
        }
        i += 1;
    }
    assert!(m.local_init[4].get() + Processor::Trisc2.local_size() <= m.bank_table.get());
    assert!(m.kernel_config.get() + m.kernel_config_size <= m.bank_table.get());
    assert!(m.bank_table.get() + bank_table::BYTES <= m.text_cache.get());
    assert!(m.text_cache.get() + m.text_cache_size <= m.data.get());
    // Every Tensix tile of the whole chip may be a bank; a word of offset for each bank follows.
    let (dram, l1) = (u32_of(crate::board::DRAM_BANKS), u32_of(crate::board::Board::P150.tensix_count()));
    assert!(bank_table::l1_xy(2, 0, dram, l1) + 4 * (dram + l1) <= bank_table::DRAM_BANKS);
};
