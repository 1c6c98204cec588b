//! Data formats: what a queue stores of a float32 value, bit by bit (public document `dataformats`; facts, buda.md,
//! section 2).
//!
//! [`quantise`] rounds a tensor through a format without making bytes. What is between the two is [`element`] for formats whose elements
//! stand alone and [`block`] for those that share an exponent.

pub mod block;
pub mod element;

use rayon::prelude::*;
use tilework_netlist::DataFormat;

use crate::op::unary::{PIECE, with};
use crate::tensor::Tensor;
use block::{BLOCK, BlockFormat};

/// How values are brought to a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Block formats cut magnitudes instead of rounding them.
    pub truncate: bool,
}

/// The tensor as it comes out of a queue of that format.
pub fn quantise(format: DataFormat, x: &Tensor, options: Options) -> Tensor {
    let mut values = x.values().to_vec();
    match BlockFormat::of(format) {
        None if format == DataFormat::Float32 => return x.clone(),
        None => values.par_chunks_mut(PIECE).for_each(|piece| {
            piece.iter_mut().for_each(|v| *v = element::decode(format, element::encode(format, *v)));
        }),
        // Tiles begin at multiples of their width, faces at multiples of 16 within a tile.
        Some(block) => values.par_chunks_mut((x.tile().c as usize).max(1)).with_min_len(512).for_each(|row| {
            for values in row.chunks_mut(BLOCK) {
                let exponent = block.exponent(values);
                for v in values {
                    *v = block.decode(block.encode(*v, exponent, options.truncate), exponent);
                }
            }
        }),
    }
    with(x, values)
}
