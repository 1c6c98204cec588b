//! Tilised layout of a tensor in device memory.
//!
//! The last two dimensions are padded to multiples of 32 and cut into tiles of 32x32, row by row; a
//! tile is four faces of 16x16 (upper left, upper right, lower left, lower right), each in
//! row-major order. Block types put the 64 exponents of a tile before its values, one per row of a
//! face (ISA documentation, Tensix tile layout and FloatBitPatterns).

use half::{bf16, f16};
use tilework_dtype::block::{BLOCK, BlockFormat};

use crate::error::{OpError, Operands, Reason};
use crate::tensor::{Native, Tensor};
use crate::{DType, Shape};

/// Rows and columns of a tile.
pub const TILE: usize = 32;
/// Rows and columns of a face.
pub const FACE: usize = 16;
/// Elements of a tile.
const TILE_ELEMENTS: usize = TILE * TILE;

/// Position within a tile of the element at `row` and `column`.
pub fn index_in_tile(row: usize, column: usize) -> usize {
    let face = (row / FACE) * 2 + column / FACE;
    face * FACE * FACE + (row % FACE) * FACE + column % FACE
}

/// The shape with its last two dimensions rounded up to whole tiles. A vector becomes a
/// row of tiles.
pub fn padded(shape: &Shape) -> Result<Shape, Reason> {
    let mut dims = shape.dims().to_vec();
    while dims.len() < 2 {
        dims.insert(0, 1);
    }
    let n = dims.len();
    for d in &mut dims[n - 2..] {
        *d = d.next_multiple_of(TILE);
    }
    Shape::new(dims)
}

/// Calls `f(index in the tiled order, index in row-major order)` for each element that is
/// not padding.
fn each(shape: &Shape, padded: &Shape, mut f: impl FnMut(usize, usize)) {
    let n = padded.rank();
    let (rows, columns) = (padded[n - 2], padded[n - 1]);
    let columns_used = shape.last();
    let rows_used = if shape.rank() < 2 { 1 } else { shape[shape.rank() - 2] };
    let matrices: usize = padded[..n - 2].iter().product();
    let tiles_across = columns / TILE;
    for m in 0..matrices {
        for r in 0..rows_used {
            for c in 0..columns_used {
                let tile = (m * rows / TILE + r / TILE) * tiles_across + c / TILE;
                let tiled = tile * TILE_ELEMENTS + index_in_tile(r % TILE, c % TILE);
                f(tiled, (m * rows_used + r) * columns_used + c);
            }
        }
    }
}

/// The values of a tensor in tiles, padding filled with `fill`.
pub fn tilize_values<T: Native>(shape: &Shape, values: &[T], fill: T) -> Result<Vec<T>, Reason> {
    if values.len() != shape.elements() {
        return Err(Reason::Count { values: values.len(), shape: shape.clone() });
    }
    let padded = padded(shape)?;
    let mut tiles = vec![fill; padded.elements()];
    each(shape, &padded, |tiled, flat| tiles[tiled] = values[flat]);
    Ok(tiles)
}

/// The values of a tensor from its tiles, padding dropped.
pub fn untilize_values<T: Native>(shape: &Shape, tiles: &[T]) -> Result<Vec<T>, Reason> {
    let padded = padded(shape)?;
    if tiles.len() != padded.elements() {
        return Err(Reason::Count { values: tiles.len(), shape: padded });
    }
    let mut values = vec![T::default(); shape.elements()];
    each(shape, &padded, |tiled, flat| values[flat] = tiles[tiled]);
    Ok(values)
}

/// The bytes of a tensor as tiles in device memory, padding zero.
pub fn tilize(tensor: &Tensor) -> Result<Vec<u8>, OpError> {
    fn bytes<T: Native, const N: usize>(t: &Tensor, to: fn(T) -> [u8; N]) -> Result<Vec<u8>, Reason> {
        let tiles = tilize_values(t.shape(), t.values::<T>().unwrap_or_default(), T::default())?;
        Ok(tiles.into_iter().flat_map(to).collect())
    }
    let result = match tensor.dtype() {
        DType::F32 => bytes(tensor, f32::to_le_bytes),
        DType::F16 => bytes(tensor, f16::to_le_bytes),
        DType::BF16 => bytes(tensor, bf16::to_le_bytes),
        DType::I32 => bytes(tensor, i32::to_le_bytes),
        DType::U32 => bytes(tensor, u32::to_le_bytes),
        DType::U16 => bytes(tensor, u16::to_le_bytes),
        DType::U8 | DType::Bool => bytes(tensor, u8::to_le_bytes),
        dtype => match BlockFormat::of(dtype) {
            Some(block) => tilize_values(tensor.shape(), tensor.values::<f32>().unwrap_or_default(), 0.0)
                .map(|tiles| tiles.chunks(TILE_ELEMENTS).flat_map(|tile| pack_tile(block, tile)).collect()),
            None => Err(Reason::Type(dtype)),
        },
    };
    result.map_err(|reason| reason.of("tilize", &[tensor]))
}

/// A tensor from its tiles in device memory.
pub fn untilize(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<Tensor, OpError> {
    let fail = |reason| OpError { op: "untilize", operands: Operands::default(), reason };
    let padded = padded(&shape).map_err(fail)?;
    let tiles = padded.elements() / TILE_ELEMENTS;
    if bytes.len() != tiles * dtype.tile_bytes() {
        return Err(fail(Reason::Count { values: bytes.len(), shape: padded }));
    }
    let tiled = if let Some(block) = BlockFormat::of(dtype) {
        let values = bytes.chunks(dtype.tile_bytes()).flat_map(|tile| unpack_tile(block, tile)).collect();
        let values = untilize_values::<f32>(&shape, &Vec::from_iter::<Vec<f32>>(values)).map_err(fail)?;
        return Ok(Tensor::wrap(dtype, shape, f32::store(values)));
    } else {
        Tensor::from_le_bytes(dtype, padded, bytes)?
    };
    let storage =
        crate::tensor::with_storage!(tiled.storage(), |v| Native::store(untilize_values(&shape, v).map_err(fail)?));
    Ok(Tensor::wrap(dtype, shape, storage))
}

/// One tile of 1024 values in tiled order as the bytes of a block type.
fn pack_tile(block: BlockFormat, tile: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(TILE_ELEMENTS / BLOCK + TILE_ELEMENTS);
    let mut packed = Vec::with_capacity(TILE_ELEMENTS);
    for row in tile.chunks(BLOCK) {
        let exponent = block.exponent(row);
        bytes.push(exponent);
        packed.extend(row.iter().map(|&v| block.encode(v, exponent, false)));
    }
    let bits = block.bits() as usize;
    let together = |bytes: &[u8]| bytes.iter().rev().fold(0, |byte, value| byte << (bits % 8) | value);
    bytes.extend(packed.chunks(8 / bits).map(together));
    bytes
}

/// The 1024 values of one tile of a block type, in tiled order.
fn unpack_tile(block: BlockFormat, bytes: &[u8]) -> Vec<f32> {
    let (exponents, packed) = bytes.split_at(TILE_ELEMENTS / BLOCK);
    let (bits, mask) = (block.bits() as usize, u8::MAX >> (8 - block.bits()));
    let value = |i: usize| packed[i * bits / 8] >> (i * bits % 8) & mask;
    (0..TILE_ELEMENTS).map(|i| block.decode(value(i), exponents[i / BLOCK])).collect()
}
