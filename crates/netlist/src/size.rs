//! Bytes of tiles, entries and buffers in device memory (tt-budabackend, `common/size_lib.cpp`).
//!
//! A tile in memory is a header, the shared exponents of a block format and the data, rounded up to
//! the alignment of the architecture. A buffer of a queue is a queue header, which holds the
//! pointers, followed by the entries.

use crate::format::DataFormat;
use crate::types::{Arch, Blocks, Size};

/// Bytes of a tile's header.
pub const TILE_HEADER: u64 = 16;

impl Arch {
    /// Alignment of a tile in memory, and the size of a queue's header, in bytes.
    pub fn alignment(self) -> u64 {
        match self {
            Arch::Grayskull | Arch::Wormhole | Arch::WormholeB0 => 32,
            Arch::Blackhole => 64,
        }
    }
}

impl DataFormat {
    /// Bits of a datum, without the shared exponent.
    pub fn datum_bits(self) -> u64 {
        use DataFormat as F;
        match self {
            F::Float32 | F::Tf32 | F::Int32 | F::RawUInt32 => 32,
            F::Float16 | F::Float16B | F::UInt16 | F::RawUInt16 => 16,
            F::Lf8 | F::Fp8E4m3 | F::Int8 | F::UInt8 | F::RawUInt8 | F::Bfp8 | F::Bfp8B => 8,
            F::Bfp4 | F::Bfp4B => 4,
            F::Bfp2 | F::Bfp2B => 2,
        }
    }

    /// Whether data share exponents.
    pub fn is_block(self) -> bool {
        use DataFormat as F;
        matches!(self, F::Bfp8 | F::Bfp8B | F::Bfp4 | F::Bfp4B | F::Bfp2 | F::Bfp2B)
    }
}

/// Bytes of a tile's shared exponents: one for each 16 data of a row, at least 16 in a face.
pub fn exponent_bytes(format: DataFormat, tile: Size) -> u64 {
    if !format.is_block() {
        return 0;
    }
    let (h, w) = (u64::from(tile.r), u64::from(tile.c));
    if h < 16 { 16 } else { h.next_multiple_of(16) * w.div_ceil(16) }
}

/// Bytes of a tile's data.
pub fn payload_bytes(format: DataFormat, tile: Size) -> u64 {
    (u64::from(tile.r) * u64::from(tile.c) * format.datum_bits()).div_ceil(8)
}

/// Bytes of a tile with header, as in a tilized queue or in a core's memory.
pub fn tile_bytes(format: DataFormat, tile: Size, arch: Arch) -> u64 {
    (TILE_HEADER + exponent_bytes(format, tile) + payload_bytes(format, tile)).next_multiple_of(arch.alignment())
}

/// Bytes of a tile's data without a header, as in a flat queue.
pub fn raw_tile_bytes(format: DataFormat, tile: Size) -> u64 {
    exponent_bytes(format, tile) + payload_bytes(format, tile)
}

impl Blocks {
    /// Tiles of a macro block.
    pub fn mblock_tiles(&self) -> u64 {
        [self.mblock.r, self.mblock.c, self.ublock.r, self.ublock.c]
            .into_iter()
            .map(u64::from)
            .fold(1, u64::saturating_mul)
    }

    /// Tiles of an entry in one buffer.
    pub fn entry_tiles(&self) -> u64 {
        self.mblock_tiles().saturating_mul(u64::from(self.t))
    }
}

/// Bytes of an entry in one buffer of a tilized queue; `None` when 64 bits do not hold them.
pub fn entry_bytes(blocks: &Blocks, format: DataFormat, arch: Arch) -> Option<u64> {
    blocks.entry_tiles().checked_mul(tile_bytes(format, blocks.tile, arch))
}

/// Bytes of one buffer of a queue: its header and its entries.
pub fn buffer_bytes(blocks: &Blocks, format: DataFormat, entries: u32, arch: Arch) -> Option<u64> {
    entry_bytes(blocks, format, arch)?.checked_mul(u64::from(entries))?.checked_add(arch.alignment())
}
