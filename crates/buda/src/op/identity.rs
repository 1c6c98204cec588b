//! Identity products: a sparse left operand, given as a list of tiles and index tiles
//! that place them.
//!
//! Most tiles of such a matrix are zero and many of the others are the same, so operand 0 holds
//! each tile once and operand 2 holds, as 16-bit words in the order of memory, strip after strip
//! (tt-budabackend, `hlks/`, kernel `matmul_ident`):
//!
//! - two words: 30 bits of strip index, low word first; bit 30 ends a row of strips, which is a
//!   matrix of the result; bit 31 ends the tile, and the next strip begins in the next one;
//! - a word: how many ublocks of the strip are not zero, and for each of them
//! - a word: its row of ublocks in the low `sparse_ublock_idx_bits`, above them how many tiles
//!   follow (0 is the most that these bits could count, plus one);
//! - a word for each tile: from the low bits its column in the strip (as many bits as `u_kt`
//!   needs), its row in the ublock, and in the upper `sparse_tile_ptr_bits` which tile of
//!   operand 0 it is.
//!
//! Strip s of the right operand is matrix s / m_k, tile rows from s % m_k * u_kt on. Every row of
//! cores has its own part of the rows of operands 0 and 2. The kernel takes m_k strips of u_kt rows
//! of tiles from every matrix of the right operand, which is why that has m_k * u_kt of them.
//!
//! Netlists without `sparse_tile_ptr_bits` use an older encoding (tt-budabackend,
//! `pytorch_bin/matmul_ident`): their index tiles hold 32-bit instructions or bytes, and in most of
//! them m_k counts the instructions. No public kernel reads it, so they are refused.

use tilework_dtype::DType;
use tilework_netlist::types::{Arch, Blocks, Identity, Matmul, Size};

use super::matmul::{self, Bias};
use super::{Context, Reason};
use crate::format::tile::TileLayout;
use crate::tensor::{Tensor, shape_of};
use crate::tm;
use std::collections::BTreeSet;

/// One tile of a strip that is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SparseTile {
    /// Row of tiles within the core's part of the result.
    row: usize,
    /// Row of tiles within the strip.
    column: usize,
    /// Which tile of operand 0.
    tile: usize,
}

/// A strip of the right operand and the tiles to multiply it with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Strip {
    index: usize,
    places: Vec<SparseTile>,
    last_in_row: bool,
}

impl Strip {
    /// The rows of a core's part to which it adds; `size` is the values of a row of tiles.
    fn rows<'a>(&self, part: &'a mut [f32], size: usize) -> impl Iterator<Item = &'a mut [f32]> {
        let touched: BTreeSet<usize> = self.places.iter().map(|place| place.row).collect();
        let rows = part.chunks_mut(size.max(1)).enumerate();
        rows.filter(move |(row, _)| touched.contains(row)).map(|(_, row)| row)
    }
}

/// Widths of the fields of index words.
#[derive(Debug, Clone, Copy)]
struct Widths {
    /// Of a ublock's row.
    ublock: u32,
    /// Of a tile's column.
    column: u32,
    /// Of a tile's row and column.
    place: u32,
    /// Rows of tiles in a ublock.
    rows: usize,
}

/// Computes an identity product: tiles, right operand, index tiles, then bias and scales if the
/// attributes say so.
pub fn identity(
    attributes: &Matmul,
    inputs: &[&Tensor],
    blocks: &Blocks,
    how: &Identity,
    context: &mut Context,
) -> Result<Tensor, Reason> {
    let wanted = 3 + usize::from(attributes.bias) + usize::from(attributes.requant || attributes.dequant);
    if inputs.len() != wanted {
        return Err(Reason::Operands { found: inputs.len(), wanted: format!("{wanted} with its attributes") });
    }
    let widths = widths(attributes, blocks, how)?;
    let (sparse, index) = (inputs[0], inputs[2]);
    // Small tiles are filled up with zeros, as in a dense product.
    let (small, tile) = (inputs[1], Size { r: sparse.tile().c, c: inputs[1].tile().c });
    let right = &if small.tile() == tile { small.clone() } else { tm::retile(small, tile)? };
    let shape = shape_of(blocks)?;
    let k = u64::from(attributes.m_k) * u64::from(attributes.u_kt);
    let high = sparse.tile().r == blocks.tile.r;
    if k != right.tile_rows() as u64 || k == 0 || right.shape().columns != shape.columns || !high {
        let why = "it has m_k * u_kt rows of tiles, and the columns of the result";
        let rows = usize::try_from(k).unwrap_or(usize::MAX).saturating_mul(right.tile().r as usize);
        let wanted = crate::tensor::shape(right.shape().t, rows, shape.columns);
        return Err(Reason::Shape { operand: 1, found: right.shape(), wanted, why });
    }
    let factors = context.factors(&context.source(1, right), &context.source(0, sparse));
    let mut values = vec![0f32; shape.t * shape.rows * shape.columns];
    // Nothing is computed for a result without elements, however many cores it has.
    let cores = if values.is_empty() { 0 } else { blocks.grid.r as usize };
    for core in 0..cores {
        let (tiles, words) = (band(0, sparse, cores, core)?, words(index, cores, core)?);
        let mut reader = IndexReader { words: &words, tile: 0, at: 0 };
        for z in 0..shape.t {
            let from = (z * shape.rows + core * (shape.rows / cores)) * shape.columns;
            let part = &mut values[from..][..shape.rows / cores * shape.columns];
            loop {
                let strip = reader.strip(widths)?;
                for (right, sparse) in &factors {
                    add(attributes, sparse, &tiles, right, &strip, part)?;
                }
                for rows in strip.rows(part, sparse.tile().r as usize * shape.columns) {
                    context.round_sums(rows, Size { r: sparse.tile().r, c: right.tile().c }, !strip.last_in_row);
                }
                if strip.last_in_row {
                    break;
                }
            }
        }
    }
    let sums = Tensor::new(shape, blocks.tile, values)?;
    matmul::finish(attributes, sums, &inputs[3..], Bias::of(context), context)
}

/// Field widths from the attributes.
fn widths(attributes: &Matmul, blocks: &Blocks, how: &Identity) -> Result<Widths, Reason> {
    if how.sparse_tile_ptr_bits == 0 {
        let why = "it is missing, so the index tiles are of an older form than the one that kernels read; write them \
                   in strips, and give it with an m_k that counts strips";
        return Err(Reason::attribute("sparse_tile_ptr_bits", why));
    }
    let column = attributes.u_kt.checked_next_power_of_two().map_or(u32::BITS, u32::trailing_zeros);
    let place = 16u32.saturating_sub(how.sparse_tile_ptr_bits);
    if how.sparse_tile_ptr_bits >= 16 || column > place {
        let why = format!("{} leave no room for u_kt {} in 16 bits", how.sparse_tile_ptr_bits, attributes.u_kt);
        return Err(Reason::attribute("sparse_tile_ptr_bits", why));
    }
    // If absent, it is as wide as the other.
    let ublock = if how.sparse_ublock_idx_bits == 0 { how.sparse_tile_ptr_bits } else { how.sparse_ublock_idx_bits };
    if !(1..16).contains(&ublock) {
        return Err(Reason::attribute("sparse_ublock_idx_bits", format!("{ublock} where 1 to 15 are possible")));
    }
    Ok(Widths { ublock, column, place, rows: blocks.ublock.r as usize })
}

/// Range of the values of one row of cores in an operand.
fn band(operand: usize, x: &Tensor, cores: usize, core: usize) -> Result<Vec<usize>, Reason> {
    let (rows, columns) = (x.tile_rows(), x.tile_columns());
    if cores == 0 || !rows.is_multiple_of(cores) {
        let wanted = crate::tensor::shape(x.shape().t, cores * x.tile().r as usize, x.shape().columns);
        let why = "every row of cores has its own rows of it";
        return Err(Reason::Shape { operand, found: x.shape(), wanted, why });
    }
    let own = core * (rows / cores)..(core + 1) * (rows / cores);
    let mut starts = Vec::new();
    for z in 0..x.shape().t {
        for r in own.clone() {
            let row = (z * x.shape().rows + r * x.tile().r as usize) * x.shape().columns;
            starts.extend((0..columns).map(|c| row + c * x.tile().c as usize));
        }
    }
    Ok(starts)
}

/// The 16-bit words of each index tile of a row of cores.
fn words(index: &Tensor, cores: usize, core: usize) -> Result<Vec<Vec<u16>>, Reason> {
    // Faces lie alike on all architectures, whatever the format.
    let layout = TileLayout::new(DType::RawU16, index.tile(), Arch::WormholeB0);
    let layout = layout.map_err(|error| Reason::attribute("identity", error.to_string()))?;
    let columns = index.shape().columns;
    let tile = |start: usize| {
        let at = layout.places().iter().map(|&(r, c)| start + r * columns + c);
        match index.words() {
            Some(words) => at.flat_map(|i| [words[i] as u16, (words[i] >> 16) as u16]).collect(),
            None => at.map(|i| index.values()[i] as u16).collect(),
        }
    };
    Ok(band(2, index, cores, core)?.into_iter().map(tile).collect())
}

/// Reads strips from index tiles.
struct IndexReader<'a> {
    words: &'a [Vec<u16>],
    tile: usize,
    at: usize,
}

impl IndexReader<'_> {
    /// The next word.
    fn word(&mut self) -> Result<u32, Reason> {
        let word = self.words.get(self.tile).and_then(|tile| tile.get(self.at)).copied();
        self.at += 1;
        word.map(u32::from).ok_or_else(|| {
            let why = format!("index tile {} of {} ends within a strip", self.tile, self.words.len());
            Reason::attribute("identity", why)
        })
    }

    /// The next strip.
    fn strip(&mut self, widths: Widths) -> Result<Strip, Reason> {
        let head = self.word()? | self.word()? << 16;
        let mut places = Vec::new();
        for _ in 0..self.word()? {
            let ublock = self.word()?;
            let row = (ublock & ((1 << widths.ublock) - 1)) as usize;
            let count = match ublock >> widths.ublock {
                0 => 1 << (16 - widths.ublock),
                count => count,
            };
            for _ in 0..count {
                let word = self.word()?;
                let place = word & ((1 << widths.place) - 1);
                let within = (place >> widths.column) as usize;
                if within >= widths.rows {
                    let index = within as f32;
                    return Err(Reason::Index { what: "row of tiles in a ublock", index, bound: widths.rows });
                }
                places.push(SparseTile {
                    row: row * widths.rows + within,
                    column: (place & ((1 << widths.column) - 1)) as usize,
                    tile: (word >> widths.place) as usize,
                });
            }
        }
        if head >> 31 != 0 {
            (self.tile, self.at) = (self.tile + 1, 0);
        }
        Ok(Strip { index: (head & 0x3fff_ffff) as usize, places, last_in_row: head >> 30 & 1 != 0 })
    }
}

/// Adds the products of a strip to a core's rows of the result.
fn add(
    attributes: &Matmul,
    sparse: &Tensor,
    tiles: &[usize],
    right: &Tensor,
    strip: &Strip,
    part: &mut [f32],
) -> Result<(), Reason> {
    let (m_k, u_kt) = (attributes.m_k as usize, attributes.u_kt as usize);
    let check = |what, index: usize, bound: usize| {
        if index < bound { Ok(index) } else { Err(Reason::Index { what, index: index as f32, bound }) }
    };
    check("strip", strip.index, right.shape().t * m_k)?;
    let (height, depth) = (sparse.tile().r as usize, sparse.tile().c as usize);
    let columns = right.shape().columns;
    let first = strip.index / m_k * right.shape().rows + strip.index % m_k * u_kt * depth;
    for place in &strip.places {
        let tile = tiles[check("tile of operand 0", place.tile, tiles.len())?];
        check("row of tiles in a strip", place.column, u_kt)?;
        check("row of tiles", place.row, part.len() / (height * columns).max(1))?;
        for r in 0..height {
            let out = &mut part[(place.row * height + r) * columns..][..columns];
            for k in 0..depth {
                let factor = sparse.values()[tile + r * sparse.shape().columns + k];
                // Most factors are zero. They do not change the sum, even with infinities and NaNs.
                if factor != 0.0 {
                    let row = &right.values()[(first + place.column * depth + k) * columns..][..columns];
                    out.iter_mut().zip(row).for_each(|(o, v)| *o += factor * v);
                }
            }
        }
    }
    Ok(())
}
