//! Tiles: their shapes, their faces, and the bytes of one tile.
//!
//! A tile is cut into faces of 16 columns and at most 16 rows, which follow one another row by row
//! of faces; each is in row-major order. So a tile is a sequence of runs: 16 elements of a row of a
//! face, which is also what shares an exponent in a block format.
//!
//! A block format puts the exponents of all runs before the elements, padded with zeros to 16
//! bytes; elements narrower than a byte fill it from the low bits (tt-metal,
//! `tt_metal/impl/data_format/blockfloat_common.cpp`). The mantissas are those of
//! [`tilework_dtype::block`]: nearest, ties away from zero, as the packers round (ISA
//! documentation, Packers/FormatConversion.md). tt-metal's host library rounds ties to even, so
//! that its last bit may differ for exact ties.

use crate::LayoutError;
use std::fmt;
use tilework_dtype::DType;
use tilework_dtype::block::{BLOCK, BlockFormat};

/// Columns of a face, and elements of a run.
pub const FACE_WIDTH: usize = BLOCK;
/// The most rows of a face.
const FACE_HEIGHT: usize = 16;
/// What the exponents of a tile are padded to: the alignment of L1 (tt-metal,
/// `Tile::get_tile_size`).
const EXPONENT_ALIGN: usize = 16;

/// Rows and columns of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileShape {
    height: usize,
    width: usize,
}

impl TileShape {
    /// The usual tile: 32 by 32, four faces.
    pub const FULL: Self = Self { height: 32, width: 32 };

    /// A tile of this shape, if the hardware has such tiles (tt-metal, `tile.cpp`: face choices).
    ///
    /// # Errors
    /// Another height than 1, 2, 4, 8, 16 or 32; another width than 16 or 32.
    pub const fn new(height: usize, width: usize) -> Result<Self, LayoutError> {
        match (height, width) {
            (1 | 2 | 4 | 8 | 16 | 32, 16 | 32) => Ok(Self { height, width }),
            _ => Err(LayoutError::TileShape { height, width }),
        }
    }

    /// All shapes, the usual one first.
    pub fn all() -> impl Iterator<Item = Self> {
        let heights = [32, 16, 8, 4, 2, 1];
        heights.into_iter().flat_map(|height| [32, 16].map(|width| Self { height, width }))
    }

    /// Rows.
    pub const fn height(self) -> usize {
        self.height
    }
    /// Columns.
    pub const fn width(self) -> usize {
        self.width
    }
    /// Elements.
    pub const fn elements(self) -> usize {
        self.height * self.width
    }
    /// Rows of a face.
    pub const fn face_height(self) -> usize {
        if self.height < FACE_HEIGHT { self.height } else { FACE_HEIGHT }
    }
    /// Faces beside each other.
    pub const fn faces_across(self) -> usize {
        self.width / FACE_WIDTH
    }
    /// Runs of 16 elements.
    pub const fn runs(self) -> usize {
        self.elements() / FACE_WIDTH
    }

    /// Which run of the tile holds row `row` of the faces in column `face` of faces.
    #[inline]
    pub const fn run(self, row: usize, face: usize) -> usize {
        let height = self.face_height();
        (row / height * self.faces_across() + face) * height + row % height
    }

    /// Row and first column of each run, in the order of memory.
    pub fn places(self) -> impl Iterator<Item = (usize, usize)> {
        let (height, across) = (self.face_height(), self.faces_across());
        (0..self.runs()).map(move |run| {
            let (face, within) = (run / height, run % height);
            (face / across * height + within, face % across * FACE_WIDTH)
        })
    }

    /// Position of the element at `row` and `column` in the order of memory.
    pub const fn index(self, row: usize, column: usize) -> usize {
        self.run(row, column / FACE_WIDTH) * FACE_WIDTH + column % FACE_WIDTH
    }
}

impl Default for TileShape {
    fn default() -> Self {
        Self::FULL
    }
}

impl fmt::Display for TileShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

/// The bytes of a tile of one shape and element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileFormat {
    shape: TileShape,
    dtype: DType,
    block: Option<BlockFormat>,
}

impl TileFormat {
    /// The format of tiles of this shape and type.
    pub const fn new(shape: TileShape, dtype: DType) -> Self {
        Self { shape, dtype, block: BlockFormat::of(dtype) }
    }

    /// Rows and columns.
    pub const fn shape(self) -> TileShape {
        self.shape
    }
    /// How the elements share exponents, if they do.
    pub const fn block(self) -> Option<BlockFormat> {
        self.block
    }
    /// Bytes of the exponents with their padding, before the elements.
    pub const fn exponent_bytes(self) -> usize {
        if self.block.is_some() { self.shape.runs().next_multiple_of(EXPONENT_ALIGN) } else { 0 }
    }
    /// Bytes of the 16 elements of a run.
    pub const fn run_bytes(self) -> usize {
        FACE_WIDTH * self.dtype.bits() as usize / 8
    }
    /// Bytes of a tile.
    pub const fn bytes(self) -> usize {
        self.exponent_bytes() + self.shape.runs() * self.run_bytes()
    }
    /// Where the elements of a run start in the tile.
    #[inline]
    pub const fn run_start(self, run: usize) -> usize {
        self.exponent_bytes() + run * self.run_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_lie_in_order() {
        let full = TileShape::FULL;
        for (row, column, wanted) in [(0, 0, 0), (0, 15, 15), (1, 0, 16), (0, 16, 256), (16, 0, 512), (31, 31, 1023)] {
            assert_eq!(full.index(row, column), wanted);
        }
        // Two faces beside each other, and two below each other.
        assert_eq!(TileShape::new(16, 32).unwrap().index(1, 17), 256 + 17);
        assert_eq!(TileShape::new(32, 16).unwrap().index(17, 1), 256 + 17);
        assert_eq!(TileShape::new(2, 32).unwrap().index(1, 16), 32 + 16);
    }

    #[test]
    fn every_element_has_one_place() {
        assert_eq!(TileShape::all().count(), 12);
        for shape in TileShape::all() {
            assert_eq!(TileShape::new(shape.height(), shape.width()), Ok(shape));
            let places: Vec<usize> = shape
                .places()
                .flat_map(|(row, column)| (column..column + FACE_WIDTH).map(move |c| shape.index(row, c)))
                .collect();
            assert_eq!(places, (0..shape.elements()).collect::<Vec<_>>(), "{shape}");
        }
    }

    #[test]
    fn tiles_have_their_sizes() {
        for &dtype in DType::ALL.iter().filter(|dtype| dtype.bits() <= 32) {
            assert_eq!(TileFormat::new(TileShape::FULL, dtype).bytes(), dtype.tile_bytes(), "{dtype:?}");
        }
        let bytes = |h, w, dtype| TileFormat::new(TileShape::new(h, w).unwrap(), dtype).bytes();
        assert_eq!(bytes(16, 32, DType::Bfp8B), 32 + 512);
        assert_eq!(bytes(32, 16, DType::Bfp4B), 32 + 256);
        // Four exponents, padded to 16 bytes.
        assert_eq!(bytes(2, 32, DType::Bfp8B), 16 + 64);
        assert_eq!(bytes(1, 16, DType::BF16), 32);
    }

    #[test]
    fn other_shapes_are_refused() {
        for (height, width) in [(0, 32), (3, 32), (64, 32), (32, 8), (32, 64), (32, 0)] {
            assert_eq!(TileShape::new(height, width), Err(LayoutError::TileShape { height, width }));
        }
        let message = TileShape::new(24, 32).unwrap_err().to_string();
        assert_eq!(message, "a tile of 24x32: tiles have 1, 2, 4, 8, 16 or 32 rows and 16 or 32 columns");
    }
}
