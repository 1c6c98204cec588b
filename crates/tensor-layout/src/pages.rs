//! The pages of a tensor: its matrix padded, converted and divided, and the reverse.
//!
//! In tile layout a page is a tile, and the pages follow the tiles row by row. In row-major layout
//! a page is a row, or a part of one where shards divide the width. Heights are padded for each
//! matrix of the last two dimensions, so that no tile has rows of two matrices (tt-metal,
//! `TensorLayout::compute_physical_shape` and `PageConfig::get_page_shape`).

use crate::convert::number;
use crate::{Converter, FACE_WIDTH, LayoutError, TileFormat, TileShape};
use tilework_dtype::DType;
use tilework_dtype::block::{BLOCK, BlockFormat};

/// How elements are ordered in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Rows of elements.
    RowMajor,
    /// Tiles of this shape.
    Tile(TileShape),
}

impl Layout {
    /// Tiles of 32 by 32.
    pub const TILE: Self = Self::Tile(TileShape::FULL);
}

/// Rows and columns of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// How a tensor of one shape and element type is divided into pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLayout {
    dims: Vec<usize>,
    dtype: DType,
    layout: Layout,
    /// Matrices of the last two dimensions.
    matrices: usize,
    /// One of them, without and with padding.
    used: Extent,
    padded: Extent,
    page: Extent,
    page_bytes: usize,
}

impl PageLayout {
    /// The pages of a tensor of `dims`, outermost first. Row-major pages are rows, padded to a
    /// multiple of `page_width` columns and divided into pages of so many, if it is given; tiles
    /// ignore it.
    ///
    /// # Errors
    /// A block format outside of tiles; more bytes than can be addressed; pages without columns.
    pub fn new(dims: &[usize], dtype: DType, layout: Layout, page_width: Option<usize>) -> Result<Self, LayoutError> {
        let too_large = || LayoutError::TooLarge(dims.to_vec());
        let (outer, used) = match *dims {
            [] => (&dims[..0], Extent { height: 1, width: 1 }),
            [width] => (&dims[..0], Extent { height: 1, width }),
            [ref outer @ .., height, width] => (outer, Extent { height, width }),
        };
        let align = match layout {
            Layout::Tile(shape) => Extent { height: shape.height(), width: shape.width() },
            Layout::RowMajor => Extent { height: 1, width: page_width.unwrap_or(1) },
        };
        if align.width == 0 {
            return Err(LayoutError::PageWidth);
        }
        let up = |n: usize, align: usize| n.checked_next_multiple_of(align).ok_or_else(too_large);
        let padded = Extent { height: up(used.height, align.height)?, width: up(used.width, align.width)? };
        // Empty dimensions count as one, so that no product of some of the dimensions overflows.
        let bound =
            outer.iter().chain([&padded.height, &padded.width]).try_fold(8usize, |n, &d| n.checked_mul(d.max(1)));
        bound.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(too_large)?;
        let matrices = outer.iter().product();
        let (page, page_bytes) = match layout {
            Layout::Tile(shape) => (align, TileFormat::new(shape, dtype).bytes()),
            Layout::RowMajor => {
                let element = dtype.bytes().ok_or(LayoutError::BlockRows(dtype))?;
                // An empty row still has a page size.
                let width = page_width.unwrap_or(padded.width.max(1));
                (Extent { height: 1, width }, width * element)
            }
        };
        Ok(Self { dims: dims.to_vec(), dtype, layout, matrices, used, padded, page, page_bytes })
    }

    /// The same tensor with the same padding in rows: what tilizing starts from.
    ///
    /// # Errors
    /// A block format.
    pub fn in_rows(&self) -> Result<Self, LayoutError> {
        let element = self.dtype.bytes().ok_or(LayoutError::BlockRows(self.dtype))?;
        let page = Extent { height: 1, width: self.padded.width.max(1) };
        Ok(Self { layout: Layout::RowMajor, page, page_bytes: page.width * element, ..self.clone() })
    }

    /// Elements in each dimension, without padding.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }
    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    /// How elements are ordered.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// Elements in each dimension with padding. Rows have one dimension at least, tiles two.
    pub fn padded_dims(&self) -> Vec<usize> {
        let outer = self.dims.len().saturating_sub(2);
        let mut dims = self.dims[..outer].to_vec();
        if self.dims.len() > 1 || matches!(self.layout, Layout::Tile(_)) {
            dims.push(self.padded.height);
        }
        dims.push(self.padded.width);
        dims
    }
    /// The matrix of all elements, with padding.
    pub fn physical(&self) -> Extent {
        Extent { height: self.matrices * self.padded.height, width: self.padded.width }
    }
    /// The elements of a page.
    pub fn page(&self) -> Extent {
        self.page
    }
    /// Bytes of a page, without what a buffer adds to align it.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }
    /// The matrix of all elements in pages: rows of pages, pages of a row.
    pub fn pages_by_side(&self) -> Extent {
        let Extent { height, width } = self.physical();
        Extent { height: height / self.page.height, width: width / self.page.width }
    }
    /// Number of pages. A tensor without elements has none.
    pub fn pages(&self) -> usize {
        let Extent { height, width } = self.pages_by_side();
        height * width
    }
    /// Bytes of all pages.
    pub fn bytes(&self) -> usize {
        self.pages() * self.page_bytes
    }
    /// Elements without padding.
    pub fn elements(&self) -> usize {
        self.matrices * self.used.height * self.used.width
    }

    /// The bytes of all pages, one after the other, of an array of `from` elements in row-major
    /// order and little-endian; padding holds `pad`. Elements of a block format come as another
    /// type, and other types are converted as [`Converter`] says.
    ///
    /// # Errors
    /// Data of another size than the tensor's; no such conversion; a padding that the type does not
    /// have; too little memory.
    pub fn encode(&self, from: DType, data: &[u8], pad: f64) -> Result<Vec<u8>, LayoutError> {
        let rows = self.rows(from)?;
        self.check(from, data.len(), self.elements() * rows.from_bytes())?;
        let mut pages = zeros(self.bytes())?;
        let Some(pad) = number(pad, self.row_type()) else {
            return Err(LayoutError::Padding { pad: pad.to_string(), dtype: self.dtype });
        };
        if pages.is_empty() {
            return Ok(pages);
        }
        // One row of a matrix as the target has it, padding at its end.
        let mut row = pad.repeat(self.padded.width);
        let padding = row.clone();
        let zero = pad.iter().all(|&byte| byte == 0);
        let mut source = data.chunks((self.used.width * rows.from_bytes()).max(1));
        for matrix in 0..self.matrices {
            for at in 0..self.padded.height {
                let row_of = matrix * self.padded.height + at;
                if at < self.used.height {
                    rows.convert(source.next().unwrap_or_default(), &mut row);
                    self.put(row_of, &row, &mut pages);
                } else if !zero {
                    self.put(row_of, &padding, &mut pages);
                }
            }
        }
        Ok(pages)
    }

    /// The elements of the tensor as `to`, in row-major order and little-endian, from the bytes of
    /// all pages.
    ///
    /// # Errors
    /// Bytes of another number than the pages'; no such conversion; too little memory.
    pub fn decode(&self, pages: &[u8], to: DType) -> Result<Vec<u8>, LayoutError> {
        let conversion = LayoutError::Conversion { from: self.dtype, to };
        let rows = Converter::new(self.row_type(), to).ok_or(conversion)?;
        self.check(self.dtype, pages.len(), self.bytes())?;
        let mut data = zeros(self.elements() * rows.to_bytes())?;
        if data.is_empty() {
            return Ok(data);
        }
        let mut row = vec![0; self.padded.width * rows.from_bytes()];
        let used_rows =
            (0..self.matrices).flat_map(|m| (0..self.used.height).map(move |at| m * self.padded.height + at));
        for (at, target) in used_rows.zip(data.chunks_mut(self.used.width * rows.to_bytes())) {
            self.get(at, pages, &mut row);
            rows.convert(&row, target);
        }
        Ok(data)
    }

    /// The type of a row before it goes into pages.
    fn row_type(&self) -> DType {
        if self.dtype.is_block() { DType::F32 } else { self.dtype }
    }

    fn rows(&self, from: DType) -> Result<Converter, LayoutError> {
        Converter::new(from, self.row_type()).ok_or(LayoutError::Conversion { from, to: self.dtype })
    }

    fn check(&self, dtype: DType, found: usize, expected: usize) -> Result<(), LayoutError> {
        if found == expected {
            return Ok(());
        }
        Err(LayoutError::DataSize { found, expected, shape: self.dims.clone(), dtype })
    }

    /// Puts row `at` of the padded matrix into its pages.
    fn put(&self, at: usize, row: &[u8], pages: &mut [u8]) {
        let Layout::Tile(shape) = self.layout else {
            pages[at * row.len()..][..row.len()].copy_from_slice(row);
            return;
        };
        let tiles = &mut pages[self.tiles_of(at, shape)];
        let (format, in_tile) = (TileFormat::new(shape, self.dtype), at % shape.height());
        match (format.block(), format.run_bytes()) {
            (Some(block), _) => put_blocks(format, block, in_tile, row, tiles),
            (None, 16) => put_runs::<16>(format, in_tile, row, tiles),
            (None, 32) => put_runs::<32>(format, in_tile, row, tiles),
            (None, 64) => put_runs::<64>(format, in_tile, row, tiles),
            (None, _) => put_runs::<128>(format, in_tile, row, tiles),
        }
    }

    /// Reads row `at` of the padded matrix from its pages.
    fn get(&self, at: usize, pages: &[u8], row: &mut [u8]) {
        let Layout::Tile(shape) = self.layout else {
            row.copy_from_slice(&pages[at * row.len()..][..row.len()]);
            return;
        };
        let tiles = &pages[self.tiles_of(at, shape)];
        let (format, in_tile) = (TileFormat::new(shape, self.dtype), at % shape.height());
        match (format.block(), format.run_bytes()) {
            (Some(block), _) => get_blocks(format, block, in_tile, tiles, row),
            (None, 16) => get_runs::<16>(format, in_tile, tiles, row),
            (None, 32) => get_runs::<32>(format, in_tile, tiles, row),
            (None, 64) => get_runs::<64>(format, in_tile, tiles, row),
            (None, _) => get_runs::<128>(format, in_tile, tiles, row),
        }
    }

    /// The bytes of the row of tiles that row `at` of the padded matrix is in.
    fn tiles_of(&self, at: usize, shape: TileShape) -> std::ops::Range<usize> {
        let bytes = self.padded.width / shape.width() * self.page_bytes;
        let start = at / shape.height() * bytes;
        start..start + bytes
    }
}

/// The runs of a row of tiles in the order of the columns: which one of a tile each is.
fn runs(format: TileFormat, row: usize) -> impl Iterator<Item = usize> {
    let across = format.shape().faces_across();
    (0..across).map(move |face| format.shape().run(row, face))
}

/// Puts a row into a row of tiles whose runs have `N` bytes.
fn put_runs<const N: usize>(format: TileFormat, row: usize, elements: &[u8], tiles: &mut [u8]) {
    let across = format.shape().faces_across();
    for (tile, elements) in tiles.chunks_exact_mut(format.bytes()).zip(elements.chunks_exact(across * N)) {
        for (run, elements) in runs(format, row).zip(elements.as_chunks::<N>().0) {
            tile[run * N..][..N].copy_from_slice(elements);
        }
    }
}

fn get_runs<const N: usize>(format: TileFormat, row: usize, tiles: &[u8], elements: &mut [u8]) {
    let across = format.shape().faces_across();
    for (tile, elements) in tiles.chunks_exact(format.bytes()).zip(elements.chunks_exact_mut(across * N)) {
        for (run, elements) in runs(format, row).zip(elements.as_chunks_mut::<N>().0) {
            elements.copy_from_slice(&tile[run * N..][..N]);
        }
    }
}

/// Bytes of a run of float32 values.
const VALUES: usize = FACE_WIDTH * 4;

/// Packs a row of float32 values into a row of tiles of a block format.
fn put_blocks(format: TileFormat, block: BlockFormat, row: usize, values: &[u8], tiles: &mut [u8]) {
    let across = format.shape().faces_across();
    for (tile, values) in tiles.chunks_exact_mut(format.bytes()).zip(values.chunks_exact(across * VALUES)) {
        for (run, values) in runs(format, row).zip(values.as_chunks::<VALUES>().0) {
            let mut floats = [0.0; BLOCK];
            floats.iter_mut().zip(values.as_chunks().0).for_each(|(float, &bytes)| *float = f32::from_le_bytes(bytes));
            tile[run] = block.pack(&floats, &mut tile[format.run_start(run)..][..format.run_bytes()]);
        }
    }
}

fn get_blocks(format: TileFormat, block: BlockFormat, row: usize, tiles: &[u8], values: &mut [u8]) {
    let across = format.shape().faces_across();
    for (tile, values) in tiles.chunks_exact(format.bytes()).zip(values.chunks_exact_mut(across * VALUES)) {
        for (run, values) in runs(format, row).zip(values.as_chunks_mut::<VALUES>().0) {
            let floats = block.unpack(tile[run], &tile[format.run_start(run)..][..format.run_bytes()]);
            values.as_chunks_mut().0.iter_mut().zip(floats).for_each(|(bytes, float)| *bytes = float.to_le_bytes());
        }
    }
}

/// Zeros that are asked for before they are needed, so that too little memory is an error.
fn zeros(bytes: usize) -> Result<Vec<u8>, LayoutError> {
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| LayoutError::HostMemory(bytes))?;
    // A new vector of zeros is not written until it is used.
    Ok(vec![0; bytes])
}
