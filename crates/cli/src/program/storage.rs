//! How the elements of a buffer lie on the chip, and what becomes of arrays on the way there and
//! back.
//!
//! Arrays are row by row and of NumPy's types. A buffer of a type that only the chip has takes and
//! gives float32: rounded on the way in as [`tilework_runtime::tensor`] says, exact on the way out.
//!
//! Integers of tiles are those of arrays, but signed ones of eight bits: the coprocessor has them
//! with sign and magnitude (SrcASrcB.md), so that -128 becomes -127.

use super::plan::{Home, PlannedBuffer};
use super::schema::Layout;
use crate::array::{Array, CHIP_DTYPES, shape_text};
use std::borrow::Cow;
use tilework_dtype::DType;
use tilework_runtime::tensor::{self, LayoutError, PageLayout, TileShape};

/// The types of tiles.
const TILE_TYPES: [DType; 9] =
    [DType::F32, DType::BF16, DType::Bfp8B, DType::Bfp4B, DType::I32, DType::U32, DType::U16, DType::I8, DType::U8];
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
        Layout::Tile if !TILE_TYPES.contains(&dtype) => {
            let names = TILE_TYPES.map(DType::name);
            let (last, others) = names.split_last().unwrap_or((&"", &[]));
            let expected = format!("{} or {last}", others.join(", "));
            Some(format!("there are no tiles of type {}; expected {expected}", dtype.name()))
        }
        Layout::Tile if !is_whole(shape) => {
            let shape = shape_text(shape);
            Some(format!("tiles are 32 x 32; the last two dimensions of {shape} are not multiples of 32"))
        }
        Layout::Tile => None,
    }
}

/// Whether a shape is made of whole tiles: kernels would compute with what pads it.
fn is_whole(shape: &[u64]) -> bool {
    let tile = TileShape::FULL;
    let [.., rows, columns] = *shape else { return false };
    rows.is_multiple_of(tile.height() as u64) && columns.is_multiple_of(tile.width() as u64)
}

/// The pages of a buffer that is not refused, as a tensor has them: a tile, or a row of elements of
/// which a page has `width` if that is given.
pub fn pages(dtype: DType, layout: Layout, shape: &[u64], width: Option<usize>) -> Result<PageLayout, LayoutError> {
    let dims: Vec<usize> = shape.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect();
    let layout = match layout {
        Layout::Row => tensor::Layout::RowMajor,
        Layout::Tile => tensor::Layout::TILE,
    };
    PageLayout::new(&dims, dtype, layout, width)
}

/// What expressions can say of a buffer.
pub fn numbers(buffer: &PlannedBuffer) -> Vec<(&'static str, u64)> {
    let mut numbers = vec![
        ("pages", buffer.pages.into()),
        ("page_size", buffer.page_size.into()),
        ("bytes", buffer.bytes),
        ("elements", buffer.elements.elements() as u64),
        ("element_size", u64::from(buffer.dtype.bits() / 8)),
    ];
    // The chip's code of a format, of which the netlists' is an extension.
    match buffer.dtype.buda_code() {
        Some(code) => numbers.push(("format", code.into())),
        None if buffer.dtype == DType::U32 => numbers.push(("format", UINT32)),
        None => {}
    }
    if buffer.layout == Layout::Tile {
        let tiles = buffer.elements.pages_by_side();
        numbers.push(("tile_columns", tiles.width as u64));
        numbers.push(("tile_rows", tiles.height as u64));
    }
    if let Home::Sharded(shards) = &buffer.home {
        numbers.push(("shard_pages", shards.pages()));
    }
    numbers
}

/// Whether a type has another form in tiles than in arrays.
fn has_magnitude(buffer: &PlannedBuffer) -> bool {
    buffer.layout == Layout::Tile && buffer.dtype == DType::I8
}

/// Sign and magnitude of an integer in two's complement.
fn with_magnitude(byte: u8) -> u8 {
    if byte >> 7 == 0 { byte } else { 0x80 | byte.wrapping_neg().min(0x7F) }
}

/// The inverse of [`with_magnitude`].
fn with_complement(byte: u8) -> u8 {
    if byte >> 7 == 0 { byte } else { (byte & 0x7F).wrapping_neg() }
}

/// The bytes of an array on the chip.
///
/// # Errors
/// Not enough memory.
pub fn on_chip<'a>(buffer: &PlannedBuffer, array: &'a Array) -> Result<Cow<'a, [u8]>, LayoutError> {
    if buffer.layout == Layout::Row && buffer.dtype == array.dtype && buffer.bytes == array.data.len() as u64 {
        return Ok(Cow::Borrowed(&array.data));
    }
    let mut bytes = buffer.elements.encode(array.dtype, &array.data, 0.0)?;
    if has_magnitude(buffer) {
        bytes.iter_mut().for_each(|byte| *byte = with_magnitude(*byte));
    }
    Ok(Cow::Owned(bytes))
}

/// The array of what a buffer has on the chip.
///
/// # Errors
/// Not enough memory.
pub fn array(buffer: &PlannedBuffer, mut data: Vec<u8>) -> Result<Array, LayoutError> {
    let (dtype, shape) = (array_dtype(buffer.dtype), buffer.shape.clone());
    if has_magnitude(buffer) {
        data.iter_mut().for_each(|byte| *byte = with_complement(*byte));
    }
    Ok(Array { dtype, shape, data: buffer.elements.decode(&data, dtype)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_integers_of_eight_bits_have_sign_and_magnitude() {
        let stored = [1u8, 127, 0xFF, 0x81, 0x80, 0].map(with_magnitude);
        assert_eq!(stored, [1, 127, 0x81, 0xFF, 0xFF, 0]);
        assert_eq!(stored.map(with_complement), [1, 127, 0xFF, 0x81, 0x81, 0]);
        // A zero with a sign is a zero.
        assert_eq!(with_complement(0x80), 0);
    }

    #[test]
    fn shapes_in_tiles() {
        assert!([&[32, 64][..], &[3, 64, 32], &[0, 32]].into_iter().all(is_whole));
        assert!(![&[32][..], &[], &[33, 32], &[32, 16]].into_iter().any(is_whole));
    }
}
