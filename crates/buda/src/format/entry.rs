//! Entries of a queue as bytes: one buffer for each position of its grid.
//!
//! A buffer holds its core's part: t macro blocks, in each the micro blocks in the queue's ublock
//! order, in each the tiles row by row (tt-budabackend, `docs/public/overview.md`, Tensor). A flat
//! queue holds the rows of the part instead, matrix by matrix, without headers or gaps; block
//! formats have no flat form here.

use tilework_netlist::DataFormat;
use tilework_netlist::types::{Arch, Blocks, Layout, Order};

use super::block::BlockFormat;
use super::tile::{TileLayout, each_tile, read};
use super::{FormatError, Options, element};
use crate::tensor::{Tensor, shape_of};

/// The most buffers of a queue: far more than a chip has cores.
pub const MAX_BUFFERS: usize = 1 << 16;

/// Layout of an entry in its buffers.
#[derive(Debug, Clone)]
pub struct EntryLayout {
    format: DataFormat,
    blocks: Blocks,
    /// Absent for flat queues.
    tiles: Option<TileLayout>,
}

impl EntryLayout {
    /// The layout of entries with these blocks.
    pub fn new(format: DataFormat, blocks: &Blocks, layout: Layout, arch: Arch) -> Result<EntryLayout, FormatError> {
        shape_of(blocks)?;
        if u64::from(blocks.grid.r) * u64::from(blocks.grid.c) > MAX_BUFFERS as u64 {
            return Err(FormatError::Grid(blocks.grid));
        }
        let tiles = match layout {
            Layout::Tilized => Some(TileLayout::new(format, blocks.tile, arch)?),
            Layout::Flat if BlockFormat::of(format).is_some() => return Err(FormatError::Flat(format)),
            Layout::Flat => None,
        };
        Ok(EntryLayout { format, blocks: *blocks, tiles })
    }

    /// Number of buffers: one for each position of the grid, row by row.
    pub fn buffers(&self) -> usize {
        self.blocks.grid.r as usize * self.blocks.grid.c as usize
    }

    /// Rows and columns of tiles of a core's part.
    fn part(&self) -> (usize, usize) {
        let Blocks { mblock, ublock, .. } = self.blocks;
        (mblock.r as usize * ublock.r as usize, mblock.c as usize * ublock.c as usize)
    }

    /// Rows and columns of a tile.
    fn tile(&self) -> (usize, usize) {
        (self.blocks.tile.r as usize, self.blocks.tile.c as usize)
    }

    /// Bytes of an entry in each buffer.
    pub fn buffer_bytes(&self) -> usize {
        let ((down, across), (height, width)) = (self.part(), self.tile());
        let tiles = self.blocks.t as usize * down * across;
        match &self.tiles {
            Some(layout) => tiles * layout.bytes(),
            None => tiles * height * width * self.format.datum_bits() as usize / 8,
        }
    }

    /// Matrix, and row and column within the core's part, of the first element of tile `i`
    /// of a buffer.
    fn place(&self, i: usize) -> (usize, usize, usize) {
        let Blocks { mblock, ublock, order, .. } = self.blocks;
        let ((down, across), (height, width)) = (self.part(), self.tile());
        let (in_t, in_ublock) = (down * across, ublock.r as usize * ublock.c as usize);
        let (z, i) = (i / in_t, i % in_t);
        let (block, i) = (i / in_ublock, i % in_ublock);
        let (br, bc) = match order {
            Order::Row => (block / mblock.c as usize, block % mblock.c as usize),
            Order::Column => (block % mblock.r as usize, block / mblock.r as usize),
        };
        let r = br * ublock.r as usize + i / ublock.c as usize;
        let c = bc * ublock.c as usize + i % ublock.c as usize;
        (z, r * height, c * width)
    }

    /// Index in the tensor's values of an element of a core's part.
    fn index(&self, buffer: usize, (z, r, c): (usize, usize, usize)) -> usize {
        let ((down, across), (height, width)) = (self.part(), self.tile());
        let (rows, columns) = (down * height, across * width);
        let (gr, gc) = (buffer / self.blocks.grid.c as usize, buffer % self.blocks.grid.c as usize);
        let all = (rows * self.blocks.grid.r as usize, columns * self.blocks.grid.c as usize);
        (z * all.0 + gr * rows + r) * all.1 + gc * columns + c
    }

    /// The bytes of a tensor in each buffer.
    pub fn pack(&self, x: &Tensor, options: Options) -> Result<Vec<Vec<u8>>, FormatError> {
        let wanted = shape_of(&self.blocks)?;
        if x.shape() != wanted || x.tile() != self.blocks.tile {
            return Err(FormatError::Shape { found: x.shape(), wanted });
        }
        let (values, words) = (x.values(), x.words().filter(|_| self.format == DataFormat::RawUInt32));
        let columns = x.shape().columns;
        let mut buffers = vec![vec![0u8; self.buffer_bytes()]; self.buffers()];
        for (b, buffer) in buffers.iter_mut().enumerate() {
            match &self.tiles {
                Some(layout) => each_tile(buffer, layout.bytes(), |i, bytes| {
                    let start = self.index(b, self.place(i));
                    let at = |r: usize, c: usize| start + r * columns + c;
                    let word = words.map(|words| move |r: usize, c: usize| words[at(r, c)]);
                    layout.pack(options, |r, c| values[at(r, c)], word, bytes);
                }),
                None => self.pack_rows(b, values, words, buffer),
            }
        }
        Ok(buffers)
    }

    /// Writes the rows of a core's part.
    fn pack_rows(&self, buffer: usize, values: &[f32], words: Option<&[u32]>, bytes: &mut [u8]) {
        let size = self.format.datum_bits() as usize / 8;
        for (i, element) in bytes.chunks_mut(size).enumerate() {
            let at = self.flat_index(buffer, i);
            let bits = words.map_or_else(|| element::encode(self.format, values[at]), |words| words[at]);
            element.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }

    /// Index in the tensor's values of element `i` of a flat buffer.
    fn flat_index(&self, buffer: usize, i: usize) -> usize {
        let ((down, across), (height, width)) = (self.part(), self.tile());
        let (rows, columns) = (down * height, across * width);
        self.index(buffer, (i / (rows * columns), i / columns % rows, i % columns))
    }

    /// The tensor of an entry's buffers.
    pub fn unpack(&self, buffers: &[&[u8]]) -> Result<Tensor, FormatError> {
        if buffers.len() != self.buffers() {
            return Err(FormatError::Buffers { found: buffers.len(), wanted: self.buffers() });
        }
        if let Some(buffer) = buffers.iter().find(|b| b.len() != self.buffer_bytes()) {
            return Err(FormatError::Bytes { found: buffer.len(), wanted: self.buffer_bytes() });
        }
        let shape = shape_of(&self.blocks)?;
        let elements = shape.t * shape.rows * shape.columns;
        let mut values = vec![0f32; elements];
        let raw = self.format == DataFormat::RawUInt32;
        let mut words = vec![0u32; if raw { elements } else { 0 }];
        for (b, buffer) in buffers.iter().enumerate() {
            let mut put = |at: usize, bits: u32, value: f32| {
                values[at] = value;
                if raw {
                    words[at] = bits;
                }
            };
            match &self.tiles {
                Some(layout) => {
                    for (i, bytes) in buffer.chunks(layout.bytes()).enumerate() {
                        let start = self.index(b, self.place(i));
                        layout.unpack(bytes, |r, c, bits, value| put(start + r * shape.columns + c, bits, value));
                    }
                }
                None => {
                    let bits = self.format.datum_bits() as usize;
                    for i in 0..buffer.len() / (bits / 8) {
                        let word = read(buffer, i, bits);
                        put(self.flat_index(b, i), word, element::decode(self.format, word));
                    }
                }
            }
        }
        if raw {
            return Ok(Tensor::from_words(shape, self.blocks.tile, words)?);
        }
        Ok(Tensor::new(shape, self.blocks.tile, values)?)
    }
}
