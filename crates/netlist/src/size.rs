//! Bytes of tiles, entries and buffers in device memory (tt-budabackend, `common/size_lib.cpp`).
//!
//! A tile in memory is a header, the shared exponents of a block format and the data, rounded up to
//! the alignment of the architecture. A buffer of a queue is a queue header, which holds the
//! pointers, followed by the entries.

use crate::types::{Arch, Blocks, Size};
use tilework_dtype::DType;

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

/// Bytes of a tile's shared exponents: one for each 16 data of a row, at least 16 in a face.
pub fn exponent_bytes(format: DType, tile: Size) -> u64 {
    if !format.is_block() {
        return 0;
    }
    let (h, w) = (u64::from(tile.r), u64::from(tile.c));
    if h < 16 { 16 } else { h.next_multiple_of(16) * w.div_ceil(16) }
}

/// Bytes of a tile's data.
pub fn payload_bytes(format: DType, tile: Size) -> u64 {
    (u64::from(tile.r) * u64::from(tile.c) * u64::from(format.bits())).div_ceil(8)
}

/// Bytes of a tile with header, as in a tilized queue or in a core's memory.
pub fn tile_bytes(format: DType, tile: Size, arch: Arch) -> u64 {
    (TILE_HEADER + exponent_bytes(format, tile) + payload_bytes(format, tile)).next_multiple_of(arch.alignment())
}

/// Bytes of a tile's data without a header, as it lies in a queue of rows.
pub fn raw_tile_bytes(format: DType, tile: Size) -> u64 {
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
pub fn entry_bytes(blocks: &Blocks, format: DType, arch: Arch) -> Option<u64> {
    blocks.entry_tiles().checked_mul(tile_bytes(format, blocks.tile, arch))
}

/// Bytes of one buffer of a queue: its header and its entries.
pub fn buffer_bytes(blocks: &Blocks, format: DType, entries: u32, arch: Arch) -> Option<u64> {
    entry_bytes(blocks, format, arch)?.checked_mul(u64::from(entries))?.checked_add(arch.alignment())
}
