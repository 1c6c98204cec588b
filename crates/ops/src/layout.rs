//! Tensors as tiles of 32 by 32 in device memory; [`tilework_tensor_layout`] has the layout.

use tilework_tensor_layout::{Layout, PageLayout, TileShape};

use crate::error::{OpError, Operands, Reason};
use crate::tensor::{ELEMENT_TYPES, Native, Tensor};
use crate::{DType, Shape};

/// Rows and columns of a tile.
pub const TILE: usize = TileShape::FULL.height();

/// The tiles of a tensor.
fn tiles(dtype: DType, shape: &Shape) -> Result<PageLayout, Reason> {
    Ok(PageLayout::new(shape.dims(), dtype, Layout::TILE, None)?)
}

/// The type that the values are stored in.
fn stored(dtype: DType) -> DType {
    if dtype.is_block() { DType::F32 } else { dtype }
}

/// The bytes of a tensor as tiles in device memory, padding zero.
pub fn tilize(tensor: &Tensor) -> Result<Vec<u8>, OpError> {
    let dtype = tensor.dtype();
    let bytes = |tiles: PageLayout| Ok(tiles.encode(stored(dtype), &tensor.to_le_bytes(), 0.0)?);
    tiles(dtype, tensor.shape()).and_then(bytes).map_err(|reason: Reason| reason.of("tilize", &[tensor]))
}

/// A tensor from its tiles in device memory.
pub fn untilize(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<Tensor, OpError> {
    let fail = |reason| OpError { op: "untilize", operands: Operands::default(), reason };
    if !ELEMENT_TYPES.contains(&dtype) {
        return Err(fail(Reason::Type(dtype)));
    }
    let tiles = tiles(dtype, &shape).map_err(fail)?;
    let values = tiles.decode(bytes, stored(dtype)).map_err(|error| fail(error.into()))?;
    if !dtype.is_block() {
        return Tensor::from_le_bytes(dtype, shape, &values);
    }
    let values = values.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    Ok(Tensor::wrap(dtype, shape, f32::store(values)))
}
