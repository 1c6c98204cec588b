//! The globals of worker firmware that kernels of tt-metal read, in each core's local RAM.
//!
//! Such a kernel is linked against the firmware's symbols (`--just-symbols`): the run-time argument
//! bases, the circular buffers' interfaces, the bank tables and so on are the firmware's variables,
//! which it fills in for each launch. Here is where ours has them; `firmware/link` gives the places
//! their names, `firmware/rt` fills them in, and a loader compares the names and addresses that a
//! kernel was linked with.
//!
//! Source: public firmware sources of tt-metal (`brisc.cc`, `ncrisc.cc`, `trisc.cc`,
//! `circular_buffer_interface.h`) of the generation of the seed's firmware.

use crate::board::{Board, DRAM_BANKS};
use crate::convert::u32_of;
use crate::tensix::{LOCAL_BASE, Processor};
use crate::{cb, noc};

/// A global of the firmware.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Global {
    /// The symbol that kernels are linked with.
    pub symbol: &'static str,
    /// Bytes from the start of local RAM.
    pub offset: u32,
    /// Bytes, rounded up to whole words.
    pub bytes: u32,
}

impl Global {
    const fn first(symbol: &'static str, bytes: u32) -> Self {
        Self { symbol, offset: 0, bytes: bytes.next_multiple_of(4) }
    }
    const fn next(self, symbol: &'static str, bytes: u32) -> Self {
        Self { symbol, offset: self.offset + self.bytes, bytes: bytes.next_multiple_of(4) }
    }
    /// Its address on the core itself.
    pub const fn addr(self) -> u32 {
        LOCAL_BASE + self.offset
    }
    const fn end(self) -> u32 {
        self.offset + self.bytes
    }
}

/// L1 banks that the tables have room for: every Tensix tile of the whole chip.
pub const MAX_L1_BANKS: u32 = u32_of(Board::P150.tensix_count());
/// DRAM banks that the tables have room for.
pub const MAX_DRAM_BANKS: u32 = u32_of(DRAM_BANKS);

/// Unique run-time arguments: an address in L1.
pub const RTA_L1_BASE: Global = Global::first("rta_l1_base", 4);
/// Common run-time arguments: an address in L1.
pub const CRTA_L1_BASE: Global = RTA_L1_BASE.next("crta_l1_base", 4);
/// Column of the tile among the board's workers (u8).
pub const MY_LOGICAL_X: Global = CRTA_L1_BASE.next("my_logical_x_", 1);
/// Row of the tile among the board's workers (u8).
pub const MY_LOGICAL_Y: Global = MY_LOGICAL_X.next("my_logical_y_", 1);
/// Column within the sub-device (u8).
pub const MY_RELATIVE_X: Global = MY_LOGICAL_Y.next("my_relative_x_", 1);
/// Row within the sub-device (u8).
pub const MY_RELATIVE_Y: Global = MY_RELATIVE_X.next("my_relative_y_", 1);
/// Which half of the coprocessor's configuration a TRISC uses; kernels keep it.
pub const CFG_STATE_ID: Global = MY_RELATIVE_Y.next("_ZN7ckernel12cfg_state_idE", 4);
/// Which half of Dst a TRISC uses; kernels keep it.
pub const DEST_OFFSET_ID: Global = CFG_STATE_ID.next("_ZN7ckernel14dest_offset_idE", 4);
/// Kernels' own.
pub const OP_INFO_OFFSET: Global = DEST_OFFSET_ID.next("_ZN7ckernel14op_info_offsetE", 4);
/// The circular buffers' configurations: an address in L1.
pub const CB_L1_BASE: Global = OP_INFO_OFFSET.next("cb_l1_base", 4);
/// The circular buffers' interfaces, [`INTERFACE_BYTES`] each.
pub const CB_INTERFACE: Global = CB_L1_BASE.next("cb_interface", cb::COUNT * INTERFACE_BYTES);
/// Bytes of local RAM that all cores have so.
pub const COMMON_BYTES: u32 = CB_INTERFACE.end();

/// Semaphores of each kind of programmable core: addresses in L1.
pub const SEM_L1_BASE: Global = CB_INTERFACE.next("sem_l1_base", 3 * 4);
/// Column of the tile on each NoC (u8).
pub const MY_X: Global = SEM_L1_BASE.next("my_x", 2);
/// Row of the tile on each NoC (u8).
pub const MY_Y: Global = MY_X.next("my_y", 2);
/// The NoC of the core (u8).
pub const NOC_INDEX: Global = MY_Y.next("noc_index", 1);
/// Reads that the kernel has started, on each NoC.
pub const NOC_READS: Global = NOC_INDEX.next("noc_reads_num_issued", 8);
/// Writes to be acknowledged that it has started.
pub const NOC_WRITES: Global = NOC_READS.next("noc_nonposted_writes_num_issued", 8);
/// Acknowledgements of writes that it expects.
pub const NOC_ACKS: Global = NOC_WRITES.next("noc_nonposted_writes_acked", 8);
/// Answers to atomics that it expects.
pub const NOC_ATOMICS: Global = NOC_ACKS.next("noc_nonposted_atomics_acked", 8);
/// Writes without acknowledgement that it has started.
pub const NOC_POSTED: Global = NOC_ATOMICS.next("noc_posted_writes_num_issued", 8);
/// The kernel's counts, with the counter of the NIU that each starts from.
pub const NOC_COUNTS: [(Global, usize); 5] = [
    (NOC_READS, noc::counter::MST_RD_RESP_RECEIVED),
    (NOC_WRITES, noc::counter::MST_NONPOSTED_WR_REQ_SENT),
    (NOC_ACKS, noc::counter::MST_WR_ACK_RECEIVED),
    (NOC_ATOMICS, noc::counter::MST_ATOMIC_RESP_RECEIVED),
    (NOC_POSTED, noc::counter::MST_POSTED_WR_REQ_SENT),
];
/// Translated column of each logical column of workers (u8).
pub const COLUMNS: Global = NOC_POSTED.next("worker_logical_col_to_virtual_col", 20);
/// Translated row of each logical row of workers (u8).
pub const ROWS: Global = COLUMNS.next("worker_logical_row_to_virtual_row", 12);
/// Coordinates (u16) of each DRAM bank on NoC 0, then on NoC 1.
pub const DRAM_BANK_XY: Global = ROWS.next("dram_bank_to_noc_xy", 2 * 2 * MAX_DRAM_BANKS);
/// Coordinates (u16) of each L1 bank on NoC 0, then on NoC 1.
pub const L1_BANK_XY: Global = DRAM_BANK_XY.next("l1_bank_to_noc_xy", 2 * 2 * MAX_L1_BANKS);
/// What is added to an address in each DRAM bank (i32): nothing.
pub const DRAM_BANK_OFFSET: Global = L1_BANK_XY.next("bank_to_dram_offset", 4 * MAX_DRAM_BANKS);
/// What is added to an address in each L1 bank (i32): nothing.
pub const L1_BANK_OFFSET: Global = DRAM_BANK_OFFSET.next("bank_to_l1_offset", 4 * MAX_L1_BANKS);

/// The globals of every core, in their order.
pub const COMMON: [Global; 11] = [
    RTA_L1_BASE,
    CRTA_L1_BASE,
    MY_LOGICAL_X,
    MY_LOGICAL_Y,
    MY_RELATIVE_X,
    MY_RELATIVE_Y,
    CFG_STATE_ID,
    DEST_OFFSET_ID,
    OP_INFO_OFFSET,
    CB_L1_BASE,
    CB_INTERFACE,
];

/// Those that only the cores that move data have, in their order.
pub const DATA_MOVEMENT: [Global; 15] = [
    SEM_L1_BASE,
    MY_X,
    MY_Y,
    NOC_INDEX,
    NOC_READS,
    NOC_WRITES,
    NOC_ACKS,
    NOC_ATOMICS,
    NOC_POSTED,
    COLUMNS,
    ROWS,
    DRAM_BANK_XY,
    L1_BANK_XY,
    DRAM_BANK_OFFSET,
    L1_BANK_OFFSET,
];

/// Whether `core` has the globals of [`DATA_MOVEMENT`].
pub const fn moves_data(core: Processor) -> bool {
    matches!(core, Processor::Brisc | Processor::Ncrisc)
}

/// Bytes of local RAM that the globals of `core` take.
pub const fn bytes(core: Processor) -> u32 {
    let end = if moves_data(core) { L1_BANK_OFFSET.end() } else { COMMON_BYTES };
    end.next_multiple_of(16)
}

/// Bytes of a circular buffer's interface.
pub const INTERFACE_BYTES: u32 = 32;
/// Words of a circular buffer's interface (`LocalCBInterface`). On the TRISCs addresses and sizes
/// count units of 16 bytes.
pub mod interface {
    /// Bytes of the buffer.
    pub const SIZE: u32 = 0;
    /// One past its last byte.
    pub const LIMIT: u32 = 4;
    /// Bytes of a page.
    pub const PAGE_SIZE: u32 = 8;
    /// Pages.
    pub const PAGES: u32 = 12;
    /// Address of the next page to read.
    pub const READ: u32 = 16;
    /// Address of the next page to write.
    pub const WRITE: u32 = 20;
    /// Counts of pages acknowledged and received (u16 each).
    pub const COUNTS: u32 = 24;
    /// Position of the packer within a page.
    pub const WRITE_TILE: u32 = 28;
    /// Shift from bytes to the units of the TRISCs.
    pub const TRISC_SHIFT: u32 = 4;
}

/// The end of the firmware's text: where a kernel of tt-metal is linked.
pub const TEXT_END_SYMBOL: &str = "__fw_export_text_end";
/// The end of the firmware's part of local RAM: where such a kernel's data begins.
pub const LOCAL_END_SYMBOL: &str = "__fw_export_ldm_end";
/// The global pointer, to which such a kernel's references are relative; the firmware sets it.
pub const GLOBAL_POINTER_SYMBOL: &str = "__global_pointer$";
/// Its value (tt-metal's linker scripts).
pub const GLOBAL_POINTER: u32 = LOCAL_BASE + 0x7F0;
/// Where a TRISC pushes instructions (tt-metal's linker scripts of the TRISCs).
pub const INSTRUCTION_BUFFER_SYMBOL: &str = "__instrn_buffer";
/// In our images: where they read the bank table. With another map the tables are not filled in.
pub const BANK_TABLE_SYMBOL: &str = "__tilework_bank_table";
