//! Elements as the coprocessor has them in DRAM and L1: row by row, or as tiles.
//!
//! A tile is 32 x 32 elements: four faces of 16 x 16, upper left, upper right, lower left, lower
//! right, each row by row (ISA documentation, Tiles). In a block format the 64 exponents of a
//! tile's rows of 16 come before its elements. Tiles follow one another row of tiles by row of
//! tiles.
//!
//! Integers of tiles are those of arrays, but signed ones of eight bits: the coprocessor has them
//! with sign and magnitude (SrcASrcB.md), so that -128 becomes -127.

use super::DType;
use tilework_dtype::block::{BLOCK, BlockFormat};
use tilework_dtype::convert::bf16_from_f32;

/// Rows and columns of a tile, and of a face.
pub const TILE: usize = 32;
const FACE: usize = 16;
/// Rows of faces in a tile.
const BLOCKS: usize = TILE * TILE / BLOCK;

/// Whether tiles of a type can be stored and loaded here.
pub fn has_tiles(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::BF16 | DType::Bfp8B) || has_integer_tiles(dtype)
}

/// Whether these are tiles of integers.
pub fn has_integer_tiles(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::U32 | DType::U16 | DType::I8 | DType::U8)
}

/// Tiles of an array of integers, given as its bytes; both numbers of rows and columns are
/// multiples of 32.
pub fn store_integer_tiles(dtype: DType, array: &[u8], columns: usize) -> Vec<u8> {
    let size = dtype.bits() as usize / 8;
    let mut out = Vec::with_capacity(array.len());
    for tile in 0..array.len() / dtype.tile_bytes() {
        for block in 0..BLOCKS {
            out.extend_from_slice(&array[place(tile, block, columns) * size..][..BLOCK * size]);
        }
    }
    if dtype == DType::I8 {
        out.iter_mut().for_each(|byte| *byte = with_magnitude(*byte));
    }
    out
}

/// The array of tiles of integers: the inverse of [`store_integer_tiles`].
pub fn load_integer_tiles(dtype: DType, tiles: &[u8], columns: usize) -> Vec<u8> {
    let size = dtype.bits() as usize / 8;
    let mut array = vec![0; tiles.len()];
    for (tile, bytes) in tiles.chunks_exact(dtype.tile_bytes()).enumerate() {
        for (block, row) in bytes.chunks_exact(BLOCK * size).enumerate() {
            array[place(tile, block, columns) * size..][..BLOCK * size].copy_from_slice(row);
        }
    }
    if dtype == DType::I8 {
        array.iter_mut().for_each(|byte| *byte = with_complement(*byte));
    }
    array
}

/// Sign and magnitude of an integer in two's complement.
fn with_magnitude(byte: u8) -> u8 {
    if byte >> 7 == 0 { byte } else { 0x80 | byte.wrapping_neg().min(0x7F) }
}

/// The inverse of [`with_magnitude`].
fn with_complement(byte: u8) -> u8 {
    if byte >> 7 == 0 { byte } else { (byte & 0x7F).wrapping_neg() }
}

/// Tiles of an array, and tiles side by side; `None`: its last two dimensions are not multiples of
/// 32. Dimensions before them count like rows.
pub fn tiles_of(shape: &[u64]) -> Option<(u64, u64)> {
    let [.., rows, columns] = *shape else { return None };
    let tile = TILE as u64;
    if !rows.is_multiple_of(tile) || !columns.is_multiple_of(tile) {
        return None;
    }
    let elements = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?;
    Some((elements / (tile * tile), columns / tile))
}

/// Where block `block` of tile `tile` begins among the elements of rows of `columns`.
fn place(tile: usize, block: usize, columns: usize) -> usize {
    let across = columns / TILE;
    let (face, row) = (block / FACE, block % FACE);
    let row = tile / across * TILE + face / 2 * FACE + row;
    row * columns + tile % across * TILE + face % 2 * FACE
}

/// Tiles of `dtype` with these values, whose rows have `columns` elements; both numbers of rows and
/// columns are multiples of 32. A value becomes bf16 by rounding to the nearest, ties to even, and
/// bfp8_b by rounding half up on the magnitude (`tilework_dtype::block`). Types without tiles
/// ([`has_tiles`]) are stored as f32.
pub fn store_tiles(dtype: DType, values: &[f32], columns: usize) -> Vec<u8> {
    let tiles = values.len() / (TILE * TILE);
    let mut out = Vec::with_capacity(tiles * dtype.tile_bytes());
    for tile in 0..tiles {
        let rows = (0..BLOCKS).map(|block| &values[place(tile, block, columns)..][..BLOCK]);
        if let Some(format) = BlockFormat::of(dtype) {
            out.extend(rows.clone().map(|row| format.exponent(row)));
            for row in rows {
                let exponent = format.exponent(row);
                out.extend(row.iter().map(|&v| format.encode(v, exponent, false)));
            }
        } else {
            rows.for_each(|row| store_row(dtype, row, &mut out));
        }
    }
    out
}

/// The values of tiles: the inverse of [`store_tiles`], exact.
pub fn load_tiles(dtype: DType, bytes: &[u8], columns: usize) -> Vec<f32> {
    let size = dtype.tile_bytes();
    let tiles = bytes.len() / size;
    let mut values = vec![0.0; tiles * TILE * TILE];
    for (tile, bytes) in bytes.chunks_exact(size).enumerate() {
        let (exponents, elements) = bytes.split_at(size - TILE * TILE * dtype.bits() as usize / 8);
        for (block, row) in elements.chunks_exact(BLOCK * dtype.bits() as usize / 8).enumerate() {
            let to = &mut values[place(tile, block, columns)..][..BLOCK];
            match BlockFormat::of(dtype) {
                Some(format) => to.iter_mut().zip(row).for_each(|(v, &e)| *v = format.decode(e, exponents[block])),
                None => load_row(dtype, row, to),
            }
        }
    }
    values
}

/// Rows of `dtype`, row by row; as [`store_tiles`] rounds.
pub fn store_rows(dtype: DType, values: &[f32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() * 4);
    store_row(dtype, values, &mut out);
    out
}

/// The inverse of [`store_rows`].
pub fn load_rows(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / (dtype.bits() as usize / 8)];
    load_row(dtype, bytes, &mut values);
    values
}

fn store_row(dtype: DType, row: &[f32], out: &mut Vec<u8>) {
    match dtype {
        DType::BF16 => out.extend(row.iter().flat_map(|&v| bf16_from_f32(v).to_le_bytes())),
        _ => out.extend(row.iter().flat_map(|v| v.to_le_bytes())),
    }
}

fn load_row(dtype: DType, bytes: &[u8], row: &mut [f32]) {
    match dtype {
        DType::BF16 => {
            let (halves, _) = bytes.as_chunks::<2>();
            row.iter_mut().zip(halves).for_each(|(v, &b)| *v = f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16));
        }
        _ => {
            let (words, _) = bytes.as_chunks::<4>();
            row.iter_mut().zip(words).for_each(|(v, &b)| *v = f32::from_le_bytes(b));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| i as f32).collect()
    }

    #[test]
    fn a_tile_is_four_faces_row_by_row() {
        let bytes = store_tiles(DType::F32, &numbers(64 * 64), 64);
        let at = |element: usize| f32::from_le_bytes(bytes[4 * element..][..4].try_into().unwrap());
        // First tile: its first two rows, the face to the right, the face below.
        assert_eq!([0, 1, 15, 16, 256, 512].map(at), [0.0, 1.0, 15.0, 64.0, 16.0, 16.0 * 64.0]);
        // The tile to the right, the one below.
        assert_eq!([1024, 2048].map(at), [32.0, 32.0 * 64.0]);
    }

    #[test]
    fn tiles_are_read_back() {
        for dtype in [DType::F32, DType::BF16, DType::Bfp8B] {
            // Seven bits are enough for these, also next to one another.
            let values: Vec<f32> = (0..96 * 64).map(|i| ((i * 7) % 64) as f32 - 32.0).collect();
            let bytes = store_tiles(dtype, &values, 64);
            assert_eq!(bytes.len(), 6 * dtype.tile_bytes());
            assert_eq!(load_tiles(dtype, &bytes, 64), values, "{}", dtype.name());
        }
    }

    #[test]
    fn integers_are_read_back_and_lie_as_numbers_do() {
        for dtype in [DType::I32, DType::U32, DType::U16, DType::I8, DType::U8] {
            let size = dtype.bits() as usize / 8;
            let array: Vec<u8> = (0..96 * 64 * size).map(|i| (i % 251) as u8).collect();
            let array: Vec<u8> = array.into_iter().map(|b| if b == 128 { 0 } else { b }).collect();
            let tiles = store_integer_tiles(dtype, &array, 64);
            assert_eq!(tiles.len(), 6 * dtype.tile_bytes());
            assert_eq!(load_integer_tiles(dtype, &tiles, 64), array, "{}", dtype.name());
        }
        let words: Vec<u8> = (0..64 * 64u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
        assert_eq!(store_integer_tiles(DType::U32, &words, 64), store_tiles(DType::F32, &numbers(64 * 64), 64));
    }

    #[test]
    fn signed_integers_of_eight_bits_have_sign_and_magnitude() {
        let mut array = [0; 1024];
        array[..6].copy_from_slice(&[1, 127, 0xFF, 0x81, 0x80, 0]);
        let tiles = store_integer_tiles(DType::I8, &array, 32);
        assert_eq!(tiles[..6], [1, 127, 0x81, 0xFF, 0xFF, 0]);
        assert_eq!(load_integer_tiles(DType::I8, &tiles, 32)[..6], [1, 127, 0xFF, 0x81, 0x81, 0]);
        // A zero with a sign is a zero.
        assert_eq!(load_integer_tiles(DType::I8, &[0x80; 1024], 32), [0; 1024]);
    }

    #[test]
    fn exponents_come_first() {
        let mut values = vec![0.0; 1024];
        values[17] = 2.0;
        let bytes = store_tiles(DType::Bfp8B, &values, 32);
        assert_eq!(bytes.len(), 1088);
        assert_eq!(bytes.iter().position(|&b| b != 0), Some(16), "row 0 of face 1");
        assert_eq!((bytes[16], bytes[64 + 256 + 1]), (128, 64));
    }

    #[test]
    fn shapes_in_tiles() {
        assert_eq!(tiles_of(&[32, 64]), Some((2, 2)));
        assert_eq!(tiles_of(&[3, 64, 32]), Some((6, 1)));
        assert_eq!(tiles_of(&[0, 32]), Some((0, 1)));
        for wrong in [&[32][..], &[], &[33, 32], &[32, 16], &[1 << 40, 1 << 40]] {
            assert_eq!(tiles_of(wrong), None);
        }
    }

    #[test]
    fn rows_round_to_the_nearest() {
        let x = f32::from_bits(0x3F80_8000);
        assert_eq!(load_rows(DType::BF16, &store_rows(DType::BF16, &[x, 1.5])), [1.0, 1.5]);
    }
}
