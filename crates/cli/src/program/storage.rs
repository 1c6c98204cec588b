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

/// The types of tiles, as a message names them.
const TILE_TYPES: &str = "f32, bf16, bfp8_b, i32, u32, u16, i8 or u8";
/// The chip's code of integers of 32 bits without sign (`DataFormat` of tt-llk), which netlists do
/// not have.
const UINT32: u64 = 24;

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
            Some(format!("there are no tiles of type {}; expected {TILE_TYPES}", dtype.name()))
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
    // The chip's code of a format, of which the netlists' is an extension.
    match buffer.dtype.buda_code() {
        Some(code) => numbers.push(("format", code.into())),
        None if buffer.dtype == DType::U32 => numbers.push(("format", UINT32)),
        None => {}
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
    if tile::has_integer_tiles(buffer.dtype) {
        return Cow::Owned(tile::store_integer_tiles(buffer.dtype, &array.data, columns(buffer)));
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
        Layout::Tile if tile::has_integer_tiles(dtype) => tile::load_integer_tiles(dtype, &data, columns(buffer)),
        Layout::Tile => tile::store_rows(DType::F32, &tile::load_tiles(buffer.dtype, &data, columns(buffer))),
    };
    Array { dtype, shape, data }
}
