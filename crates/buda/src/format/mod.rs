//! Data formats: what a queue stores of a float32 value, bit by bit (tt-budabackend,
//! `docs/public/dataformats.md`).
//!
//! [`quantise`] rounds a tensor to a format; [`EntryLayout`] packs and unpacks the bytes of a
//! queue's entry. Single elements and blocks are packed by [`tilework_dtype`]; [`tile`] has the
//! layout of tiles in memory.

mod entry;
pub mod tile;

pub use entry::EntryLayout;

use rayon::prelude::*;
use tilework_dtype::block::BlockFormat;
use tilework_dtype::{DType, element};
use tilework_netlist::types::{Shape, Size};

use crate::op::unary::{PIECE, with};
use crate::tensor::{Tensor, TensorError, describe};

/// Why a tensor cannot be packed or bytes cannot be unpacked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormatError {
    /// No tile has this size.
    #[error(
        "a tile of {}x{}: tiles have 1, 2, 4, 8, 16 or 32 rows and 16 or 32 columns",
        .0.r,
        .0.c
    )]
    TileSize(Size),
    /// Values that share exponents have no flat form.
    #[error("format {} in flat layout: its elements share exponents; use a tilized queue", .0.buda_name())]
    Flat(DType),
    /// More buffers than any chip has cores.
    #[error("a grid of {}x{} buffers: a queue has {} at most", .0.r, .0.c, entry::MAX_BUFFERS)]
    Grid(Size),
    /// The tensor does not fill the entry.
    #[error("a tensor of {} for an entry of {}", describe(.found), describe(.wanted))]
    Shape {
        /// Shape of the tensor.
        found: Shape,
        /// Shape of the entry.
        wanted: Shape,
    },
    /// The number of buffers differs from the positions of the grid.
    #[error("{found} buffers for a grid of {wanted}")]
    Buffers {
        /// Buffers passed.
        found: usize,
        /// Places of the grid.
        wanted: usize,
    },
    /// The size of a buffer differs from that of an entry.
    #[error("a buffer of {found} bytes where an entry has {wanted}")]
    Bytes {
        /// Bytes passed.
        found: usize,
        /// Bytes of an entry.
        wanted: usize,
    },
    /// The tensor cannot be created.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// How values are converted to a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Whether block formats truncate magnitudes instead of rounding them.
    pub truncate: bool,
}

/// Rounds values of whole rows of tiles to a format that has no words.
pub(crate) fn round_values(format: DType, tile: Size, values: &mut [f32]) {
    match BlockFormat::of(format) {
        _ if format == DType::F32 => {}
        None => round_elements(format, values),
        Some(block) => values.chunks_mut((tile.c as usize).max(1)).for_each(|row| block.round(row, false)),
    }
}

/// Rounds single values to a format without blocks.
fn round_elements(format: DType, values: &mut [f32]) {
    values.iter_mut().for_each(|v| *v = element::decode(format, element::encode(format, *v)));
}

/// The tensor after a round trip through a queue of a format.
pub fn quantise(format: DType, x: &Tensor, options: Options) -> Tensor {
    if format == DType::F32 || format == DType::RawU32 && x.words().is_some() {
        return x.clone();
    }
    if format == DType::RawU32 {
        let words = x.values().iter().map(|&v| element::encode(format, v)).collect();
        return Tensor::from_words(x.shape(), x.tile(), words).expect("as many words as the tensor has values");
    }
    let mut values = x.values().to_vec();
    match BlockFormat::of(format) {
        None => values.par_chunks_mut(PIECE).for_each(|piece| round_elements(format, piece)),
        // Tiles begin at multiples of their width, faces at multiples of 16 within a tile.
        Some(block) => values.par_chunks_mut((x.tile().c as usize).max(1)).with_min_len(512).for_each(|row| {
            block.round(row, options.truncate);
        }),
    }
    with(x, values)
}
