//! Zeros where tiles go on behind the last rows or columns of a tensor, by the kernel `edges`.
//!
//! Tiles hold whole rows and columns of 32, and what functions make of the padding is anything:
//! `exp` makes ones of zeros. Where a product goes through it, it is cleared beforehand, in place.

use tilework_abi::addr::PageCount;
use tilework_abi::edges::{arg, own};
use tilework_abi::tensix::Processor;
use tilework_ops::DType;
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, Role, UniqueArgs};

use super::tiles;
use crate::grid::share;
use crate::recipe::{Of, Recipe, Site};

/// Rows and columns of a tile.
const TILE: usize = 32;
/// Bytes of a tile's exponents in formats with 8 bits for an element.
const EXPONENTS: u32 = 64;

/// What comes to an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Edge {
    Rows,
    Columns,
}

impl Recipe {
    /// Clears what tiles hold beyond the rows or columns of a tensor, if they hold more.
    pub(super) fn clear(&mut self, of: Of<'_>, edge: Edge, site: &Site) -> Result<(), String> {
        let Of { which, spec } = of;
        let [all_down, across] = tiles::in_dram(spec)?;
        let dims = spec.logical_shape();
        let length = |back: usize| dims.len().checked_sub(back).map_or(1, |k| dims[k]);
        let rows = edge == Edge::Rows;
        let last = length(if rows { 2 } else { 1 }) % TILE;
        let down = length(2).div_ceil(TILE) as u32;
        let count = if rows { all_down / down.max(1) * across } else { all_down };
        if last == 0 || count == 0 {
            return Ok(());
        }
        let (size, elements) = match spec.dtype() {
            DType::Bfp8B => (0, EXPONENTS),
            dtype => match dtype.bytes() {
                Some(bytes @ (1 | 2 | 4)) => (bytes.trailing_zeros(), 0),
                _ => return Err(format!("the padding of elements of type {}", dtype.name())),
            },
        };
        let page = spec.page_size();
        let cores = site.workers[..site.workers.len().min(count.div_ceil(2) as usize)].to_vec();
        self.stages.push(Box::new(move |at| {
            let buffer = &which.of(at).buffer;
            let common = |cb| {
                let address = buffer.address.word();
                let mut words = vec![address, buffer.aligned_page_size(), page, size, elements, across, down];
                words.extend([rows.into(), last as u32, cb]);
                debug_assert_eq!(words.len(), arg::WORDS as usize);
                words
            };
            let parts = cores.len() as u32 * 2;
            let of_core = |of: u32| {
                let shares = (0..cores.len() as u32).map(|i| share(count, parts, i * 2 + of));
                UniqueArgs::PerCore(shares.map(|(first, tiles)| own_words(first, tiles)).collect())
            };
            let kernel = |processor| at.kernels.get("edges", processor);
            let role = Role::all()
                .kernel(Processor::Brisc, kernel(Processor::Brisc)?)
                .kernel(Processor::Ncrisc, kernel(Processor::Ncrisc)?);
            let cb = |index| CircularBuffer { index, page_size: page.next_multiple_of(64), pages: PageCount::new(2) };
            Ok(Program::new("edges", Cores::List(cores.clone()))
                .role(role)
                .circular_buffer(cb(0))
                .circular_buffer(cb(1))
                .unique_args(ArgSet::Brisc, of_core(0))
                .unique_args(ArgSet::Ncrisc, of_core(1))
                .common_args(ArgSet::Brisc, common(0))
                .common_args(ArgSet::Ncrisc, common(1)))
        }));
        Ok(())
    }
}

fn own_words(first: u32, tiles: u32) -> Vec<u32> {
    let mut words = vec![0; 2];
    words[own::FIRST as usize] = first;
    words[own::TILES as usize] = tiles;
    words
}
