//! How the elements of a buffer lie on the chip, and what becomes of arrays on the way there and
//! back.
//!
//! Arrays are row by row and of NumPy's types. A buffer of a type that only the chip has takes and
//! gives float32: rounded on the way in as `tilework_runtime::memory::tile` says, exact on the way
//! out.

use super::plan::PlannedBuffer;
use super::schema::Layout;
use crate::array::{Array, CHIP_DTYPES, array_bytes, shape_text};
use std::borrow::Cow;
use tilework_dtype::DType;
use tilework_runtime::memory::tile;

/// The element type of a buffer's array.
pub fn array_dtype(dtype: DType) -> DType {
    if CHIP_DTYPES.contains(&dtype) { DType::F32 } else { dtype }
}

/// Why a buffer cannot lie so; `None`: it can.
pub fn refuse(dtype: DType, layout: Layout, shape: &[u64]) -> Option<String> {
    match layout {
        Layout::Row if dtype.is_block() => {
            Some(format!("elements of type {} share exponents; give layout = \"tile\"", dtype.name()))
        }
        Layout::Row => None,
        Layout::Tile if !tile::has_tiles(dtype) => {
            Some(format!("there are no tiles of type {}; expected f32, bf16 or bfp8_b", dtype.name()))
        }
        Layout::Tile if tile::tiles_of(shape).is_none() => {
            let shape = shape_text(shape);
            Some(format!("tiles are 32 x 32; the last two dimensions of {shape} are not multiples of 32"))
        }
        Layout::Tile => None,
    }
}

/// Bytes on the chip of a buffer that is not refused; `None`: more than there are.
pub fn bytes(dtype: DType, layout: Layout, shape: &[u64]) -> Option<u64> {
    match layout {
        Layout::Row => array_bytes(dtype, shape),
        Layout::Tile => tile::tiles_of(shape)?.0.checked_mul(dtype.tile_bytes() as u64),
    }
}

/// What expressions can say of a buffer.
pub fn numbers(buffer: &PlannedBuffer) -> Vec<(&'static str, u64)> {
    let elements = if buffer.shape.contains(&0) { 0 } else { buffer.shape.iter().product() };
    let mut numbers = vec![
        ("pages", buffer.pages.into()),
        ("page_size", buffer.page_size.into()),
        ("bytes", buffer.bytes),
        ("elements", elements),
        ("element_size", u64::from(buffer.dtype.bits() / 8)),
    ];
    if let Some(code) = buffer.dtype.buda_code() {
        // The chip's code of a format, of which the netlists' is an extension.
        numbers.push(("format", code.into()));
    }
    if let (Layout::Tile, Some((tiles, columns))) = (buffer.layout, tile::tiles_of(&buffer.shape)) {
        numbers.push(("tile_columns", columns));
        numbers.push(("tile_rows", tiles.checked_div(columns).unwrap_or(0)));
    }
    numbers
}

fn columns(buffer: &PlannedBuffer) -> usize {
    buffer.shape.last().map_or(1, |&n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// The bytes of an array on the chip.
pub fn on_chip<'a>(buffer: &PlannedBuffer, array: &'a Array) -> Cow<'a, [u8]> {
    let (row, same) = (buffer.layout == Layout::Row, buffer.dtype == array.dtype);
    if row && same {
        return Cow::Borrowed(&array.data);
    }
    let values = tile::load_rows(DType::F32, &array.data);
    Cow::Owned(match row {
        true => tile::store_rows(buffer.dtype, &values),
        false => tile::store_tiles(buffer.dtype, &values, columns(buffer)),
    })
}

/// The array of what a buffer has on the chip.
pub fn array(buffer: &PlannedBuffer, data: Vec<u8>) -> Array {
    let (dtype, shape) = (array_dtype(buffer.dtype), buffer.shape.clone());
    let data = match buffer.layout {
        Layout::Row if dtype == buffer.dtype => data,
        Layout::Row => tile::store_rows(DType::F32, &tile::load_rows(buffer.dtype, &data)),
        Layout::Tile => tile::store_rows(DType::F32, &tile::load_tiles(buffer.dtype, &data, columns(buffer))),
    };
    Array { dtype, shape, data }
}
