//! Attention of bfloat16 in one program, by the kernels `flash`, `flash-read` and `flash-write`: a
//! worker has some rows of tiles of the queries of a head, and goes through the keys that they see.
//!
//! Keys and values of a head stay in L1 where they fit; otherwise each row of tiles goes through
//! them in blocks, and sums are rescaled from block to block.

use std::f32::consts::LOG2_E;

use tilework_abi::addr::PageCount;
use tilework_abi::flash::{Band, HAS_POSITIONS, arg, cb, own, parts};
use tilework_ops::DType;
use tilework_runtime::tensor::Layout;
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, RuntimeError, UniqueArgs};

use super::edges::Edge;
use super::rearrange::{Part, strides};
use super::tiles;
use crate::grid::share;
use crate::recipe::{At, Made, Of, Recipe, Site, Which};

/// Rows and columns of a tile, and bytes of one of bfloat16 and of f32.
const TILE: usize = 32;
const PAGE: u32 = 2048;
const WIDE_PAGE: u32 = 4096;
/// Tiles of masks in L1, and pages for the largest scores.
const MASKS: u32 = 4;
const LARGEST: u32 = 4;
/// Tiles of keys of a block at most.
const BLOCK: u32 = 32;

/// What is asked for. Lengths are in elements.
#[derive(Clone, Copy)]
pub(super) struct Asked<'s> {
    /// `[batch, heads, queries, depth]`, `[batch, key heads, keys, depth]` and `[batch, key heads,
    /// keys, width]`.
    pub(super) operands: [Of<'s>; 3],
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) key_heads: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) depth: usize,
    pub(super) width: usize,
    pub(super) scale: f32,
    /// Query `i` sees key `j` if `j - i` is from the first to the second.
    pub(super) band: [i32; 2],
    /// Added to the scaled scores, with its factor, which is one or the scale, and its lengths:
    /// those of batch, heads, queries and keys, or one.
    pub(super) mask: Option<(Of<'s>, f32, [usize; 4])>,
    /// A number for each of the batch: the last key that queries see.
    pub(super) positions: Option<Of<'s>>,
}

/// How it is divided. Lengths are in tiles.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rows: u32,
    keys: u32,
    depth: u32,
    width: u32,
    /// Units of a head, and of all heads.
    split: u32,
    units: u32,
    block: u32,
    stay: bool,
    band: Band,
    /// What scores less their largest are multiplied by in the exponent, and before that.
    scale: f32,
    factor: f32,
    heads: u32,
    shared: u32,
    /// Bytes of an element of the mask, and pages from one of the batch, and from head to head.
    mask: u32,
    mask_steps: [u32; 2],
    /// Numbers of positions.
    positions: u32,
}

/// In how many units the rows of each of `heads` heads are divided: so that the core with most rows
/// has as few as can be.
fn split(heads: u32, rows: u32, cores: u32) -> u32 {
    let longest = |n: u32| (heads * n).div_ceil(cores.max(1)) * rows.div_ceil(n);
    (1..=rows).min_by_key(|&n| (longest(n), n)).unwrap_or(1)
}

impl Plan {
    /// The division, if the kernels can do it.
    fn of(asked: &Asked<'_>, site: &Site) -> Option<Self> {
        let in_tiles = |length: usize| length.div_ceil(TILE) as u32;
        let [rows, keys, depth, width] = [asked.queries, asked.keys, asked.depth, asked.width].map(in_tiles);
        let [low, high] = asked.band;
        let band = Band { low, high, length: i32::try_from(asked.keys).ok().filter(|&n| n < Band::FAR)? };
        let (scale, factor) = match asked.mask {
            Some((_, 1.0, _)) => (1.0, asked.scale),
            _ => (asked.scale, 1.0),
        };
        if !(scale > 0.0 && scale.is_finite() && factor.is_finite()) {
            return None;
        }
        // A block of scores for each row of queries that sees any.
        let seen = (0..rows).map(|row| band.tiles(row)).map(|(begin, end)| end - begin);
        let (fewest, most) = (seen.clone().min()?, seen.max()?);
        if fewest == 0 || depth == 0 || width == 0 {
            return None;
        }
        let mask = match asked.mask {
            Some((of, ..)) => of.spec.dtype().bytes()? as u32,
            None => 0,
        };
        let all = asked.batch as u32 * asked.heads as u32;
        let split = split(all, rows, site.workers.len() as u32);
        let shared = (asked.heads / asked.key_heads) as u32;
        let whole = Self {
            rows,
            keys,
            depth,
            width,
            split,
            units: all * split,
            block: most,
            stay: true,
            band,
            scale: scale * LOG2_E,
            factor,
            heads: asked.heads as u32,
            shared,
            mask,
            mask_steps: [0; 2],
            positions: if asked.positions.is_some() { asked.batch as u32 } else { 0 },
        };
        if whole.fits(site) {
            return Some(whole);
        }
        let blocks = (1..=BLOCK.min(most)).rev().map(|block| Self { block, stay: false, ..whole });
        blocks.into_iter().find(|plan| plan.fits(site))
    }

    /// Number, bytes of a page, and pages of the circular buffers.
    fn buffers(&self) -> [[u32; 3]; 12] {
        let blocks = if self.stay { self.keys } else { 2 * self.block };
        let mask = if self.mask == 4 { WIDE_PAGE } else { PAGE };
        [
            [cb::QUERY, PAGE, 2 * self.depth],
            [cb::KEY, PAGE, blocks * self.depth],
            [cb::VALUE, PAGE, blocks * self.width],
            [cb::ONES, PAGE, 1],
            [cb::MASK, mask, MASKS],
            [cb::POSITIONS, (self.positions * 4).next_multiple_of(64).max(64), 1],
            [cb::RESULT, PAGE, 2 * self.width],
            [cb::SCORES, WIDE_PAGE, self.block],
            [cb::LARGEST, WIDE_PAGE, LARGEST],
            [cb::WEIGHTS, PAGE, self.block],
            [cb::RESCALE, WIDE_PAGE, 1],
            [cb::SUMS, WIDE_PAGE, 2 * (self.width + parts(self.width).0)],
        ]
    }

    fn fits(&self, site: &Site) -> bool {
        self.buffers().iter().map(|[_, page, pages]| u64::from(*page) * u64::from(*pages)).sum::<u64>()
            <= u64::from(site.l1)
    }

    /// The common arguments.
    fn words(&self, addresses: [u32; 6]) -> Vec<u32> {
        let mut words = vec![0; arg::WORDS as usize];
        let Band { low, high, length } = self.band;
        let all = [
            (arg::ROWS, self.rows),
            (arg::KEYS, self.keys),
            (arg::DEPTH, self.depth),
            (arg::WIDTH, self.width),
            (arg::SPLIT, self.split),
            (arg::BLOCK, self.block),
            (arg::STAY, self.stay.into()),
            (arg::LOW, low.cast_unsigned()),
            (arg::HIGH, high.cast_unsigned()),
            (arg::LENGTH, length.cast_unsigned()),
            (arg::SCALE, self.scale.to_bits()),
            (arg::FACTOR, self.factor.to_bits()),
            (arg::MASK, self.mask),
            (arg::HEADS, self.heads),
            (arg::SHARED, self.shared),
            (arg::MASK_BATCH, self.mask_steps[0]),
            (arg::MASK_HEAD, self.mask_steps[1]),
            (arg::POSITION_COUNT, self.positions),
        ];
        let named = [arg::QUERY, arg::KEY, arg::VALUE, arg::MASK_ADDRESS, arg::POSITIONS, arg::RESULT];
        let addresses = named.into_iter().zip(addresses);
        for (at, value) in all.into_iter().chain(addresses) {
            words[at as usize] = value;
        }
        words
    }

    /// The program; tensors are query, key, value, mask and positions or any others, and result.
    fn program(&self, tensors: [Which; 6], site: &Site, at: &At<'_>) -> Result<Program, RuntimeError> {
        let cores = site.cores(self.units);
        let count = cores.len() as u32;
        let own: Vec<Vec<u32>> = (0..count).map(|i| own_words(share(self.units, count, i))).collect();
        let words = self.words(tensors.map(|which| which.of(at).buffer.address.word()));
        let mut program = Program::new("attention", Cores::List(cores));
        for set in [ArgSet::Ncrisc, ArgSet::Brisc, ArgSet::Compute] {
            program = program.unique_args(set, UniqueArgs::PerCore(own.clone())).common_args(set, words.clone());
        }
        for [index, page_size, pages] in self.buffers() {
            program = program.circular_buffer(CircularBuffer { index, page_size, pages: PageCount::new(pages) });
        }
        debug_assert_eq!(HAS_POSITIONS, 0, "the first semaphore");
        Ok(program.semaphore(0).role(at.kernels.role("flash", "flash-read", "flash-write")?))
    }
}

fn own_words((first, units): (u32, u32)) -> Vec<u32> {
    let mut words = vec![0; own::WORDS as usize];
    words[own::FIRST as usize] = first;
    words[own::UNITS as usize] = units;
    words
}

/// Whether a tensor is in tiles of bfloat16 that lie interleaved in DRAM.
fn is_ready(of: Of<'_>, dims: &[usize]) -> bool {
    of.spec.dtype() == DType::BF16 && of.spec.logical_shape() == dims && tiles::in_dram(of.spec).is_ok()
}

/// Whether a tensor is so many integers that lie one behind the other.
fn in_one_page(of: Of<'_>, count: usize) -> bool {
    let all: usize = of.spec.logical_shape().iter().product();
    let flat = of.spec.layout() == Layout::RowMajor && of.spec.pages() == 1 && all == count;
    flat && matches!(of.spec.dtype(), DType::I32 | DType::U32) && tiles::interleaved(of.spec).is_ok()
}

/// A tensor as tiles of these dimensions, made if it is not.
fn in_tiles(of: Of<'_>, dims: &[usize], recipe: &mut Recipe, site: &Site) -> Result<Option<Made>, String> {
    if is_ready(of, dims) {
        return Ok(None);
    }
    let made = recipe.tiles(dims, of.spec.dtype())?;
    recipe.same_elements(of, made.of(), site)?;
    Ok(Some(made))
}

impl Asked<'_> {
    /// Adds the programs, unless the kernels cannot do it.
    pub(super) fn add(&self, recipe: &mut Recipe, result: Of<'_>, site: &Site) -> Result<bool, String> {
        let all = self.operands.iter().chain([&result]);
        if !all.into_iter().all(|of| of.spec.dtype() == DType::BF16) {
            return Ok(false);
        }
        if !self.mask.is_none_or(|(of, ..)| matches!(of.spec.dtype(), DType::BF16 | DType::F32)) {
            return Ok(false);
        }
        if !self.positions.is_none_or(|of| in_one_page(of, self.batch)) {
            return Ok(false);
        }
        let Some(mut plan) = Plan::of(self, site) else { return Ok(false) };
        let Self { batch, heads, key_heads, queries, keys, depth, width, .. } = *self;
        let [query, key, value] = self.operands;
        let dims = [[batch, heads, queries, depth], [batch, key_heads, keys, depth], [batch, key_heads, keys, width]];
        let made = [
            in_tiles(query, &dims[0], recipe, site)?,
            in_tiles(key, &dims[1], recipe, site)?,
            in_tiles(value, &dims[2], recipe, site)?,
        ];
        let [query, key, value] = [0, 1, 2].map(|i| made[i].as_ref().map_or(self.operands[i], Made::of));
        // Products go through whole tiles of the depth and of the keys.
        for (of, edge) in [(query, Edge::Columns), (key, Edge::Columns), (key, Edge::Rows), (value, Edge::Rows)] {
            recipe.clear(of, edge, site)?;
        }
        let mask = match self.mask {
            Some((of, _, lengths)) => {
                let (which, steps) = self.mask_in_tiles(of, lengths, &plan, recipe, site)?;
                plan.mask_steps = steps;
                which
            }
            None => query.which,
        };
        let to = [batch, heads, queries, width];
        let aside = (!is_ready(result, &to)).then(|| recipe.tiles(&to, DType::BF16)).transpose()?;
        let made = aside.as_ref().map_or(result, Made::of);
        let positions = self.positions.map_or(query.which, |of| of.which);
        let tensors = [query.which, key.which, value.which, mask, positions, made.which];
        let place = site.clone();
        recipe.stages.push(Box::new(move |at| plan.program(tensors, &place, at)));
        if aside.is_some() {
            recipe.same_elements(made, result, site)?;
        }
        Ok(true)
    }

    /// The mask in tiles of all queries and keys, and the pages from one of the batch, and from
    /// head to head.
    fn mask_in_tiles(
        &self,
        mask: Of<'_>,
        own: [usize; 4],
        plan: &Plan,
        recipe: &mut Recipe,
        site: &Site,
    ) -> Result<(Which, [u32; 2]), String> {
        let whole = [self.batch, self.heads, self.queries, self.keys];
        if own.iter().zip(whole).any(|(&own, whole)| own != whole && own != 1) {
            return Err("a mask of other sides than the scores".into());
        }
        let matrix = plan.rows * plan.keys;
        let step = |k: usize, pages: u32| if own[k] == 1 { 0 } else { pages };
        let steps = [step(0, own[1] as u32 * matrix), step(1, matrix)];
        let dims = [own[0], own[1], self.queries, self.keys];
        if mask.spec.logical_shape() == dims
            && mask.spec.layout() == Layout::TILE
            && tiles::interleaved(mask.spec).is_ok()
        {
            return Ok((mask.which, steps));
        }
        let made = recipe.tiles(&dims, mask.spec.dtype())?;
        let mut along = strides(&own);
        for k in 0..4 {
            if own[k] == 1 {
                along[k] = 0;
            }
        }
        recipe.rearrange(vec![Part::whole(mask, 0, &dims, &along)], 0, made.of(), site)?;
        Ok((made.of().which, steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_divided_evenly() {
        // Heads, rows and cores: a row for each core, no more units than needed, a few rounds.
        assert_eq!([split(4, 4, 118), split(200, 4, 118), split(1, 64, 118), split(32, 64, 118)], [4, 4, 64, 11]);
    }
}
