//! Every size and duration of the loader's model, with its source.
//!
//! Durations are AI clock cycles of 1.35 GHz. Numbers marked "estimate" are not documented. They
//! make stalls comparable, not absolute: the loader's decisions (hits, evictions, kinds of stalls)
//! depend on the order of events, and on durations only in races.

use tilework_netlist::types::{Arch, Fidelity, Op, OpKind, Size, UnaryKind};

/// Bytes of a command (`epoch_q.h`: EPOCH_Q_SLOT_SIZE).
pub const COMMAND_BYTES: u64 = 64;
/// Slots of a core's binary cache (`epoch_q.h`: EPOCH_BIN_NUM_SLOTS).
pub const BINARY_SLOTS: usize = 32;
/// Updates of queue headers that one command carries (`epoch_q.h`: 120 entries of 8 bytes).
pub const UPDATES_PER_COMMAND: usize = 120;
/// Epochs with equal ids modulo this must not be in flight together (`loader/epoch_loader.cpp`: ids
/// of 5 bits, window 31).
pub const EPOCH_ID_WINDOW: usize = 31;

/// Slots of a core's command queue (`epoch_q.h`: EPOCH_Q_NUM_SLOTS; the 32 slots of
/// `docs/public/overview.md` are those of the binary cache).
pub fn command_slots(arch: Arch) -> usize {
    match arch {
        Arch::Grayskull | Arch::Blackhole => 128,
        Arch::Wormhole | Arch::WormholeB0 => 256,
    }
}

/// Rows and columns of Tensix cores of a chip without harvested rows (tt-budabackend,
/// `device/*.yaml`: 120, 80 and 140 cores).
pub fn grid(arch: Arch) -> Size {
    match arch {
        Arch::Grayskull => Size { r: 10, c: 12 },
        Arch::Wormhole | Arch::WormholeB0 => Size { r: 10, c: 8 },
        Arch::Blackhole => Size { r: 10, c: 14 },
    }
}

/// What one posted write through a BAR costs the host (as the chip's model, `tilework-sim`: 20 ns).
pub const HOST_WRITE: u64 = 27;
/// From a host write to its effect on the chip (as the chip's model: 379 to the NIU, about 30
/// on the NoC).
pub const HOST_TO_CHIP: u64 = 410;
/// A host read of one word on the chip: there and back.
pub const HOST_READ: u64 = 2 * HOST_TO_CHIP;
/// Host stores in bulk: bytes in 27 cycles (as the chip's model: 21.5 GB/s).
pub const HOST_STORE_BYTES_PER_27: u64 = 430;
/// Bytes of a core's binaries: five programs and the overlay blob (estimate: 5 x 16 KiB + 64 KiB).
pub const BINARY_BYTES: u64 = 144 << 10;
/// Bytes of a DRAM bank in 27 cycles (as the chip's model: 64 GB/s).
pub const DRAM_BYTES_PER_27: u64 = 1280;
/// NCRISC sees a new command in its queue in DRAM: half a turn of its poll loop, one DRAM
/// read (estimate).
pub const POLL: u64 = 200;
/// NCRISC reads and decodes a command (estimate: one DRAM read of 64 bytes).
pub const DECODE: u64 = 200;
/// NCRISC passes over a command that is not for it, and moves the read pointer (estimate).
pub const SKIP: u64 = 150;
/// Initialisation of streams and kernels (estimate).
pub const INIT: u64 = 1500;
/// Prologue and epilogue around an epoch (estimate).
pub const PROLOGUE: u64 = 300;
/// Epilogue and the new read pointer in DRAM (estimate).
pub const EPILOGUE: u64 = 300;
/// One entry of an update command: a write to a queue header in DRAM (estimate).
pub const HEADER_UPDATE: u64 = 120;
/// A variable instruction or a loop's turn on the device (estimate).
pub const DEVICE_INSTRUCTION: u64 = 60;

/// Cycles to move bytes between the host and the chip in bulk.
pub fn host_store(bytes: u64) -> u64 {
    (bytes * 27).div_ceil(HOST_STORE_BYTES_PER_27)
}

/// Cycles to move bytes out of a DRAM bank.
pub fn dram_read(bytes: u64) -> u64 {
    (bytes * 27).div_ceil(DRAM_BYTES_PER_27)
}

/// Cycles per tile of output on one core (estimates, but for the matrix product: 32 x 32 x 32
/// products, 2048 in a cycle, one phase for each step of fidelity).
pub fn tile(op: &Op) -> u64 {
    let phases = match op.fidelity {
        Fidelity::LoFi => 1,
        Fidelity::HiFi2 | Fidelity::HiFi2A | Fidelity::HiFi2B => 2,
        Fidelity::HiFi3 => 3,
        Fidelity::HiFi4 => 4,
    };
    match &op.kind {
        OpKind::Unary(UnaryKind::Copy) | OpKind::EthernetDatacopy | OpKind::Tilizer | OpKind::Drainer => 64,
        OpKind::Unary(_) | OpKind::Quant { .. } | OpKind::TopK { .. } => 400,
        OpKind::Binary(_) | OpKind::Splice { .. } | OpKind::Embedding { .. } => 96,
        OpKind::Matmul(matmul) | OpKind::Depthwise(matmul) => {
            16 * phases * u64::from(matmul.m_k.max(1)).saturating_mul(matmul.u_kt.max(1).into())
        }
        OpKind::Reduce { k, .. } => k.map_or(96, |(m_k, u_kt)| 96 * u64::from(m_k).saturating_mul(u_kt.into())),
        OpKind::Fused(_) => 600,
    }
}
