//! Tiles: how a tensor's values lie in device memory.
//!
//! The last two dimensions are padded to multiples of 32 and cut into tiles of 32x32, row by row; a tile is four faces
//! of 16x16 (upper left, upper right, lower left, lower right), each in row-major order. Block types put the 64
//! exponents of a tile before its values, one per row of a face (ISA documentation, Tensix tile layout and
//! FloatBitPatterns).

use half::{bf16, f16};

use crate::error::{OpError, Operands, Reason};
use crate::tensor::{Native, Tensor};
use crate::{DType, Shape, block};

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

/// The shape with its last two dimensions rounded up to whole tiles. A vector becomes a row of tiles.
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

/// Calls `f(index in the tiled order, index in row-major order)` for each element that is not padding.
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
        dtype @ (DType::Bfp8 | DType::Bfp4) => {
            tilize_values(tensor.shape(), tensor.values::<f32>().unwrap_or_default(), 0.0)
                .map(|tiles| tiles.chunks(TILE_ELEMENTS).flat_map(|tile| pack_tile(dtype, tile)).collect())
        }
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
    let tiled = if dtype.is_block() {
        let values = bytes.chunks(dtype.tile_bytes()).flat_map(|tile| unpack_tile(dtype, tile)).collect();
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
fn pack_tile(dtype: DType, tile: &[f32]) -> Vec<u8> {
    let mut exponents = Vec::with_capacity(dtype.tile_bytes());
    let mut packed = Vec::with_capacity(TILE_ELEMENTS);
    for row in tile.chunks(block::BLOCK) {
        let exponent = block::shared_exponent(row);
        exponents.push(exponent);
        packed.extend(row.iter().map(|&v| block::pack(dtype, v, exponent)));
    }
    match dtype {
        DType::Bfp4 => exponents.extend(packed.as_chunks::<2>().0.iter().map(|[low, high]| low | high << 4)),
        _ => exponents.extend(packed),
    }
    exponents
}

/// The 1024 values of one tile of a block type, in tiled order.
fn unpack_tile(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let (exponents, packed) = bytes.split_at(TILE_ELEMENTS / block::BLOCK);
    let value = |i: usize| match dtype {
        DType::Bfp4 => (packed[i / 2] >> (4 * (i % 2))) & 0xf,
        _ => packed[i],
    };
    (0..TILE_ELEMENTS).map(|i| block::unpack(dtype, value(i), exponents[i / block::BLOCK])).collect()
}
