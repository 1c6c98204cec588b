//! Tiles in memory: header, exponents, data (tt-budabackend, `common/size_lib.cpp`,
//! `common/tile_lib.cpp`).
//!
//! A tile is cut into faces of 16 columns and at most 16 rows, which follow one another row by row
//! of faces; within a face elements are in row-major order. A block format puts one exponent for
//! each row of each face before the data; elements narrower than a byte fill it from the low bits.
//! Tiles are aligned to 32 bytes on Grayskull and Wormhole, to 64 on Blackhole; gaps are zero.
//! Words are little-endian.
//!
//! The header holds the size of the tile in units of 16 bytes and the low four bits of the format's
//! code where the ISA documentation (WormholeB0/TensixTile/TensixCoprocessor/SETDMAREG_Special.md,
//! tile headers) has them; the rest is zero. Reading ignores the header: the netlist says what a
//! queue holds.

use rayon::prelude::*;
use tilework_dtype::block::{BLOCK, BlockFormat};
use tilework_dtype::{DType, element};
use tilework_netlist::size::{TILE_HEADER, exponent_bytes, payload_bytes, tile_bytes};
use tilework_netlist::types::{Arch, Size};
use tilework_tensor_layout::{FACE_WIDTH, TileShape};

use super::{FormatError, Options};

/// Bytes of a tile header.
const HEADER_BYTES: usize = TILE_HEADER as usize;

/// How the tiles of one format and size lie in memory.
#[derive(Debug, Clone)]
pub struct TileLayout {
    format: DType,
    code: u8,
    block: Option<BlockFormat>,
    /// Bits of an element.
    bits: usize,
    /// Bytes of the exponents, with padding.
    exponents: usize,
    /// Bytes of the elements.
    payload: usize,
    /// Bytes from one tile to the next.
    bytes: usize,
    /// Row and column of each element in the order of memory.
    places: Vec<(usize, usize)>,
}

impl TileLayout {
    /// The layout of tiles of this size on this architecture.
    pub fn new(format: DType, tile: Size, arch: Arch) -> Result<TileLayout, FormatError> {
        let Ok(shape) = TileShape::new(tile.r as usize, tile.c as usize) else {
            return Err(FormatError::TileSize(tile));
        };
        let block = BlockFormat::of(format);
        let bits = format.bits() as usize;
        let exponents = exponent_bytes(format, tile) as usize;
        let payload = payload_bytes(format, tile) as usize;
        let bytes = tile_bytes(format, tile, arch) as usize;
        let places = shape.places().flat_map(|(r, c)| (c..c + FACE_WIDTH).map(move |c| (r, c))).collect();
        let code = format.buda_code().unwrap_or(0);
        Ok(TileLayout { format, code, block, bits, exponents, payload, bytes, places })
    }

    /// Bytes from one tile to the next.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Row and column of each element in the order of memory.
    pub fn places(&self) -> &[(usize, usize)] {
        &self.places
    }

    /// Writes one tile. `value` and `word` give an element by row and column; words are what raw
    /// formats store if the tensor has them.
    pub(super) fn pack(
        &self,
        options: Options,
        value: impl Fn(usize, usize) -> f32,
        word: Option<impl Fn(usize, usize) -> u32>,
        bytes: &mut [u8],
    ) {
        bytes.fill(0);
        let size = (self.bytes / 16) as u16;
        bytes[..2].copy_from_slice(&size.to_le_bytes());
        bytes[6] = self.code & 0xf;
        let (exponents, data) = bytes[HEADER_BYTES..].split_at_mut(self.exponents);
        let data = &mut data[..self.payload];
        let values = || self.places.iter().map(|&(r, c)| value(r, c));
        if let Some(block) = self.block {
            let mut line = [0f32; BLOCK];
            for (i, places) in self.places.chunks(BLOCK).enumerate() {
                line.iter_mut().zip(places).for_each(|(v, &(r, c))| *v = value(r, c));
                exponents[i] = block.exponent(&line);
                let per_byte = 8 / self.bits;
                for (j, &v) in line.iter().enumerate() {
                    let at = i * BLOCK + j;
                    data[at / per_byte] |=
                        block.encode(v, exponents[i], options.truncate) << (at % per_byte * self.bits);
                }
            }
            return;
        }
        match (self.bits, word) {
            (8, _) => data.iter_mut().zip(values()).for_each(|(b, v)| *b = element::encode(self.format, v) as u8),
            (16, _) => data.as_chunks_mut().0.iter_mut().zip(values()).for_each(|(b, v)| {
                *b = (element::encode(self.format, v) as u16).to_le_bytes();
            }),
            (_, Some(word)) => data.as_chunks_mut().0.iter_mut().zip(&self.places).for_each(|(b, &(r, c))| {
                *b = word(r, c).to_le_bytes();
            }),
            _ => data.as_chunks_mut().0.iter_mut().zip(values()).for_each(|(b, v)| {
                *b = element::encode(self.format, v).to_le_bytes();
            }),
        }
    }

    /// Reads one tile: `put` gets row, column, bits and value of each element.
    pub(super) fn unpack(&self, bytes: &[u8], mut put: impl FnMut(usize, usize, u32, f32)) {
        let (exponents, data) = bytes[HEADER_BYTES..].split_at(self.exponents);
        for (i, &(r, c)) in self.places.iter().enumerate() {
            let bits = read(data, i, self.bits);
            let value = match self.block {
                Some(block) => block.decode(bits as u8, exponents[i / BLOCK]),
                None => element::decode(self.format, bits),
            };
            put(r, c, bits, value);
        }
    }
}

/// Reads element `i` of elements with this many bits.
pub(super) fn read(data: &[u8], i: usize, bits: usize) -> u32 {
    match bits {
        32 => u32::from_le_bytes([data[4 * i], data[4 * i + 1], data[4 * i + 2], data[4 * i + 3]]),
        16 => u32::from(u16::from_le_bytes([data[2 * i], data[2 * i + 1]])),
        _ => {
            let per_byte = 8 / bits;
            u32::from(data[i / per_byte] >> (i % per_byte * bits)) & ((1 << bits) - 1)
        }
    }
}

/// Runs `f` on each tile of a buffer with its index, on several threads where there are many.
pub(super) fn each_tile(buffer: &mut [u8], bytes: usize, f: impl Fn(usize, &mut [u8]) + Sync) {
    buffer.par_chunks_mut(bytes).with_min_len(8).enumerate().for_each(|(i, tile)| f(i, tile));
}
