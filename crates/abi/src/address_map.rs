//! The memory map of a Tensix tile: what an address means.
//!
//! Follows BlackholeA0/TensixTile/BabyRISCV/README.md (memory map). The cores, the NoC, the debug
//! interface and the reports about waiting cores all decode an address here, with
//! [`Region::decode`]. Who may access a region, and how, is not the map's affair: a core's own
//! local RAM, for example, has an address that means nothing to anybody else.

use crate::convert::u32_of;
use crate::reg::TileRegister;
use crate::tensix::{
    CFG_BASE, DEBUG_BASE, DST_BASE, GPR_BASE, INSTRN_BUF_BASE, L1_SIZE, LOCAL_BASE, LOCAL_SIZE_DM, LOCAL_SLOW,
    MAILBOX_BASE, MOP_CFG_BASE, PC_BUF_BASE, PC_SNAPSHOT, Processor, TDMA_BASE,
};
use crate::{noc, stream};

/// Distance between the threads' instruction buffers, and between their PC buffers, as BRISC sees
/// them.
pub const THREAD_STRIDE: u32 = 0x1_0000;
/// Words of one thread's MOP configuration
/// (WormholeB0/TensixTile/TensixCoprocessor/MOPExpander.md).
pub const MOP_WORDS: u32 = 9;
/// The cores that have mailboxes, in the order of their addresses.
pub const MAILBOX_CORES: [Processor; 4] = [Processor::Brisc, Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];
/// Distance between the mailboxes of two cores.
const MAILBOX_STRIDE: u32 = 0x1000;

const LOCAL_END: u32 = LOCAL_BASE + LOCAL_SIZE_DM;
const TDMA_END: u32 = TDMA_BASE + 0x1000;
/// The program counter snapshots, one word for each core, are the last of the debug registers.
const DEBUG_END: u32 = PC_SNAPSHOT + 4 * u32_of(Processor::ALL.len());
const LOCAL_SLOW_FIRST: u32 = LOCAL_SLOW[0];
const STREAM_END: u32 = stream::BASE + stream::COUNT * stream::STRIDE;
const MOP_END: u32 = MOP_CFG_BASE + 4 * MOP_WORDS;
const DST_END: u32 = DST_BASE + 0x8000;
const GPR_END: u32 = GPR_BASE + 0x1000;
const INSTRN_BUF_END: u32 = INSTRN_BUF_BASE + 3 * THREAD_STRIDE;
const PC_BUF_END: u32 = PC_BUF_BASE + 3 * THREAD_STRIDE;
const MAILBOX_END: u32 = MAILBOX_BASE + u32_of(MAILBOX_CORES.len()) * MAILBOX_STRIDE;
/// The last address of the backend configuration; nothing is mapped above it.
const CFG_LAST: u32 = 0xFFEF_FFFF;

/// What an address of a Tensix tile means. Offsets and words count from the region's start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Region {
    /// L1, which is shared by everybody.
    L1 {
        /// Byte offset.
        offset: u32,
    },
    /// The accessing core's own local data RAM. A TRISC's is smaller than the region
    /// ([`Processor::local_size`]).
    Local {
        /// Byte offset.
        offset: u32,
    },
    /// TDMA-RISC registers.
    Tdma {
        /// Byte offset.
        offset: u32,
    },
    /// Tile control, debug and status, the interrupt controller and the program counter snapshots.
    Debug {
        /// Byte offset from [`DEBUG_BASE`].
        offset: u32,
    },
    /// A core's local data RAM as everybody sees it: the slow view.
    LocalOf {
        /// The core.
        core: Processor,
        /// Byte offset.
        offset: u32,
    },
    /// Registers of an NIU.
    Niu {
        /// 0 or 1.
        noc: usize,
        /// Byte offset.
        offset: u32,
    },
    /// Registers of the NoC overlay streams.
    Stream {
        /// Byte offset from [`stream::BASE`].
        offset: u32,
    },
    /// MOP expander configuration of the accessing core's own thread.
    Mop {
        /// Word.
        word: u32,
    },
    /// The window onto Dst.
    Dst {
        /// Byte offset.
        offset: u32,
    },
    /// Tensix general-purpose registers: BRISC sees those of all threads, a TRISC its own.
    Gpr {
        /// Word.
        word: u32,
    },
    /// Instruction buffers: BRISC has one for each thread, a TRISC the first one for its own.
    InstructionBuffer {
        /// Which one, 0 to 2.
        index: usize,
    },
    /// PC buffers, manual TTSync and Tensix semaphores: BRISC has a PC buffer for each thread, a
    /// TRISC the first one for its own.
    PcBuf {
        /// Which one, 0 to 2.
        index: usize,
        /// Byte offset within it.
        offset: u32,
    },
    /// A mailbox between the accessing core and another.
    Mailbox {
        /// The other: the sender for a load, the receiver for a store.
        peer: Processor,
        /// Whether the access asks for the state of the mailbox, not for its contents.
        query: bool,
    },
    /// Tensix backend configuration.
    Config {
        /// Word.
        word: u32,
    },
    /// Nothing is there.
    Unmapped,
}

impl Region {
    /// The region of `addr`.
    #[inline]
    pub const fn decode(addr: u32) -> Self {
        // Most accesses to registers are to an NIU.
        if let Some((noc, offset)) = niu_register(addr) {
            return Self::Niu { noc, offset };
        }
        match addr {
            0..L1_SIZE => Self::L1 { offset: addr },
            LOCAL_BASE..LOCAL_END => Self::Local { offset: addr - LOCAL_BASE },
            TDMA_BASE..TDMA_END => Self::Tdma { offset: addr - TDMA_BASE },
            DEBUG_BASE..DEBUG_END => Self::Debug { offset: addr - DEBUG_BASE },
            LOCAL_SLOW_FIRST..noc::NIU0_BASE => slow_view(addr),
            stream::BASE..STREAM_END => Self::Stream { offset: addr - stream::BASE },
            MOP_CFG_BASE..MOP_END => Self::Mop { word: (addr - MOP_CFG_BASE) / 4 },
            DST_BASE..DST_END => Self::Dst { offset: addr - DST_BASE },
            GPR_BASE..GPR_END => Self::Gpr { word: (addr - GPR_BASE) / 4 },
            INSTRN_BUF_BASE..INSTRN_BUF_END => {
                Self::InstructionBuffer { index: ((addr - INSTRN_BUF_BASE) / THREAD_STRIDE) as usize }
            }
            PC_BUF_BASE..PC_BUF_END => {
                let offset = addr - PC_BUF_BASE;
                Self::PcBuf { index: (offset / THREAD_STRIDE) as usize, offset: offset % THREAD_STRIDE }
            }
            MAILBOX_BASE..MAILBOX_END => {
                let offset = addr - MAILBOX_BASE;
                let peer = MAILBOX_CORES[(offset / MAILBOX_STRIDE) as usize];
                Self::Mailbox { peer, query: offset & 4 != 0 }
            }
            CFG_BASE..=CFG_LAST => Self::Config { word: (addr - CFG_BASE) / 4 },
            _ => Self::Unmapped,
        }
    }
}

/// The NIU and the offset in it, for an address that belongs to one. Cores poll NIUs, so this is
/// also the fast path of their loads.
#[inline(always)]
pub const fn niu_register(addr: u32) -> Option<(usize, u32)> {
    if addr < noc::NIU0_BASE || addr >= stream::BASE {
        return None;
    }
    Some((((addr - noc::NIU0_BASE) / noc::NIU_SPAN) as usize, addr % noc::NIU_SPAN))
}

const fn slow_view(addr: u32) -> Region {
    let mut i = 0;
    while i < Processor::ALL.len() {
        let (core, base) = (Processor::ALL[i], LOCAL_SLOW[i]);
        if addr >= base && addr < base + core.local_size() {
            return Region::LocalOf { core, offset: addr - base };
        }
        i += 1;
    }
    Region::Unmapped
}

impl Region {
    /// Its register that has a row, if it is one.
    fn register(self) -> Option<TileRegister> {
        let address = match self {
            Self::Tdma { offset } => TDMA_BASE + offset,
            Self::Debug { offset } => DEBUG_BASE + offset,
            Self::Niu { noc, offset } => noc::NIU0_BASE + u32_of(noc) * noc::NIU_SPAN + offset,
            Self::Stream { offset } => stream::BASE + offset,
            Self::PcBuf { index, offset } => PC_BUF_BASE + u32_of(index) * THREAD_STRIDE + offset,
            _ => return None,
        };
        TileRegister::at(address)
    }
}

/// What is there, for reports: the name of a register as [`TileRegister`] has it,
/// "NIU_MST_RD_RESP_RECEIVED of NIU 0", or a place in a region, "L1 at 0x20".
impl core::fmt::Display for Region {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if let Some(register) = self.register() {
            return write!(f, "{register}");
        }
        match *self {
            Self::L1 { offset } => write!(f, "L1 at {offset:#x}"),
            Self::Local { offset } => write!(f, "its own local RAM at {offset:#x}"),
            Self::Tdma { offset } => write!(f, "TDMA register {offset:#x}"),
            Self::Debug { offset } => write!(f, "tile control register {offset:#x}"),
            Self::LocalOf { core, offset } => write!(f, "the local RAM of {core} at {offset:#x}"),
            Self::Niu { noc, offset } => write!(f, "register {offset:#x} of NIU {noc}"),
            Self::Stream { offset } => {
                let (stream, register) = (offset / stream::STRIDE, offset % stream::STRIDE / 4);
                write!(f, "register {register} of stream {stream}")
            }
            Self::Mop { word } => write!(f, "word {word} of the MOP configuration"),
            Self::Dst { offset } => write!(f, "Dst at {offset:#x}"),
            Self::Gpr { word } => write!(f, "Tensix general-purpose register {word}"),
            Self::InstructionBuffer { index } => write!(f, "instruction buffer {index}"),
            Self::PcBuf { index, offset } => write!(f, "{offset:#x} of PC buffer {index}"),
            Self::Mailbox { peer, query: false } => write!(f, "the mailbox of {peer}"),
            Self::Mailbox { peer, query: true } => write!(f, "the state of the mailbox of {peer}"),
            Self::Config { word } => write!(f, "word {word} of the Tensix configuration"),
            Self::Unmapped => f.write_str("an address with nothing there"),
        }
    }
}

// The regions follow one another and do not overlap.
const _: () = {
    let ends = [
        (L1_SIZE, LOCAL_BASE),
        (LOCAL_END, TDMA_BASE),
        (TDMA_END, DEBUG_BASE),
        (DEBUG_END, LOCAL_SLOW_FIRST),
        (LOCAL_SLOW[4] + LOCAL_SIZE_DM, noc::NIU0_BASE),
        (STREAM_END, MOP_CFG_BASE),
        (MOP_END, DST_BASE),
        (DST_END, GPR_BASE),
        (GPR_END, INSTRN_BUF_BASE),
        (INSTRN_BUF_END, PC_BUF_BASE),
        (PC_BUF_END, MAILBOX_BASE),
        (MAILBOX_END, CFG_BASE),
    ];
    let mut i = 0;
    while i < ends.len() {
        assert!(ends[i].0 <= ends[i].1);
        i += 1;
    }
};

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn each_region_begins_and_ends_where_the_map_says() {
        let cases = [
            (0, Region::L1 { offset: 0 }),
            (0x17_FFFF, Region::L1 { offset: 0x17_FFFF }),
            (0x18_0000, Region::Unmapped),
            (0xFFB0_1FFF, Region::Local { offset: 0x1FFF }),
            (0xFFB1_1FFF, Region::Tdma { offset: 0xFFF }),
            (0xFFB1_2000, Region::Debug { offset: 0 }),
            (0xFFB1_3148, Region::Debug { offset: 0x1148 }),
            (0xFFB1_314C, Region::Unmapped),
            (0xFFB1_6004, Region::LocalOf { core: Processor::Ncrisc, offset: 4 }),
            (0xFFB1_8FFF, Region::LocalOf { core: Processor::Trisc0, offset: 0xFFF }),
            (0xFFB1_9000, Region::Unmapped),
            (0xFFB3_0208, Region::Niu { noc: 1, offset: 0x208 }),
            (0xFFB7_0438, Region::Stream { offset: 0x3_0438 }),
            (0xFFB8_0020, Region::Mop { word: 8 }),
            (0xFFB8_0024, Region::Unmapped),
            (0xFFBD_8000, Region::Dst { offset: 0 }),
            (0xFFE0_0104, Region::Gpr { word: 65 }),
            (0xFFE5_0000, Region::InstructionBuffer { index: 1 }),
            (0xFFEA_0004, Region::PcBuf { index: 2, offset: 4 }),
            (0xFFEB_0000, Region::Unmapped),
            (0xFFEC_1004, Region::Mailbox { peer: Processor::Trisc0, query: true }),
            (0xFFEF_0020, Region::Config { word: 8 }),
            (0xFFF0_0000, Region::Unmapped),
        ];
        for (addr, region) in cases {
            assert_eq!(Region::decode(addr), region, "{addr:#x}");
        }
    }

    #[test]
    fn a_region_has_a_name() {
        let cases = [
            (0xFFB7_0438, "STREAM_REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE of stream 48"),
            (0xFFE8_003C, "PC_BUF_SEMAPHORE(7)"),
            (0xFFEA_0010, "0x10 of PC buffer 2"),
            (0xFFB2_0208, "NIU_MST_RD_RESP_RECEIVED of NIU 0"),
            (0xFFB3_0038, "register 0x38 of NIU 1"),
            (0xFFB1_21F0, "RISCV_DEBUG_REG_WALL_CLOCK_0"),
            (0xFFB1_8000, "the local RAM of TRISC0 at 0x0"),
        ];
        for (addr, name) in cases {
            assert_eq!(Region::decode(addr).to_string(), name, "{addr:#x}");
        }
    }
}
