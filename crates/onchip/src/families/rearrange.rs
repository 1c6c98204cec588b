//! Programs that make a tensor of elements of others, by the kernel `rearrange` on both
//! data-movement cores of the workers.

use tilework_abi::addr::PageCount;
use tilework_abi::rearrange::{BOXES, DIMS, TILE_PARTS, arg, index, memory, of_box};
use tilework_abi::tensix::Processor;
use tilework_ops::DType;
use tilework_runtime::tensor::{Layout, Tensor, TensorSpec};
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, Role, RuntimeError, UniqueArgs};

use super::tiles;
use crate::grid::share;
use crate::recipe::{At, Build, Of, Planned, Recipe, Site, Task, Which};

/// Columns of a face of a tile.
const FACE: u32 = 16;
/// The most bytes of a source that are read at once: for whole pages, and for parts of them.
const PIECE: u32 = 4096;
const SMALL_PIECE: u32 = 512;
/// Bytes of L1 for the kernel of one core, and the most pieces of sources in it.
const MEMORY: u32 = 480 << 10;
const SLOTS: u32 = 512;

/// A part of a result: between two corners, element `base + sum of strides[k] * (i[k] - low[k])` of
/// tensor `from` in row-major order. All lists have one number for each dimension of the
/// result.
#[derive(Clone, Debug)]
pub(super) struct Part<'s> {
    pub(super) from: Of<'s>,
    pub(super) base: i64,
    pub(super) low: Vec<usize>,
    pub(super) high: Vec<usize>,
    pub(super) strides: Vec<i64>,
    /// How many elements further on each of the index's numbers is.
    step: i64,
    /// Along which dimension of the result the part is moved by the index's first number.
    moved: Option<usize>,
}

/// Numbers of another tensor that parts take: for each of their elements the one `base + sum of
/// strides[k] * (i[k] - low[k])` in row-major order.
#[derive(Clone, Debug)]
pub(super) struct Index<'s> {
    pub(super) from: Of<'s>,
    pub(super) base: i64,
    pub(super) strides: Vec<i64>,
    /// All numbers are below this: another ends the program in a trap, which the run reports.
    pub(super) bound: usize,
}

impl<'s> Part<'s> {
    /// Between two corners.
    pub(super) fn between(from: Of<'s>, base: i64, [low, high]: [&[usize]; 2], strides: &[i64]) -> Self {
        let (low, high, strides) = (low.to_vec(), high.to_vec(), strides.to_vec());
        Self { from, base, low, high, strides, step: 0, moved: None }
    }

    /// A whole result of these dimensions, whose elements lie so in the tensor.
    pub(super) fn whole(from: Of<'s>, base: i64, dims: &[usize], strides: &[i64]) -> Self {
        Self::between(from, base, [&vec![0; dims.len()], dims], strides)
    }

    /// All elements of a tensor in order, as a result of these dimensions: another layout or shape.
    pub(super) fn in_order(from: Of<'s>, dims: &[usize]) -> Self {
        Self::whole(from, 0, dims, &strides(dims))
    }

    /// With elements that are further on by the index's numbers times `step`.
    pub(super) fn by(self, step: i64) -> Self {
        Self { step, ..self }
    }

    /// Moved along a dimension of the result by the index's first number.
    pub(super) fn moved(self, along: usize) -> Self {
        Self { moved: Some(along), ..self }
    }
}

/// The strides of dimensions in row-major order.
pub(super) fn strides(dims: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; dims.len()];
    for k in (1..dims.len()).rev() {
        strides[k - 1] = strides[k] * dims[k] as i64;
    }
    strides
}

/// What the kernel knows of a tensor.
#[derive(Clone, Copy)]
struct Side {
    tiles: bool,
    page: u32,
    columns: u32,
    rows: u32,
}

impl Side {
    fn of(spec: &TensorSpec) -> Result<Self, String> {
        tiles::interleaved(spec)?;
        let tiles = match spec.layout() {
            Layout::RowMajor => false,
            Layout::TILE => true,
            Layout::Tile(_) => return Err("tiles of another shape than 32x32".into()),
        };
        let dims = spec.logical_shape();
        let length = |back: usize| dims.len().checked_sub(back).map_or(1, |k| dims[k] as u32);
        Ok(Self { tiles, page: spec.page_size(), columns: length(1), rows: length(2) })
    }

    fn words(&self, tensor: &Tensor) -> [u32; 3] {
        [tensor.buffer.address.word(), tensor.buffer.aligned_page_size(), self.page]
    }
}

/// Whether all elements of all pages are in a part. Of parts that overlap, the last one counts;
/// there the first one is the whole.
fn covered(dims: &[usize], spec: &TensorSpec, parts: &[Part<'_>]) -> bool {
    let inside = |part: &Part<'_>| -> usize {
        part.low.iter().zip(&part.high).map(|(low, high)| high.saturating_sub(*low)).product()
    };
    let elements: usize = match parts.first() {
        Some(first) if inside(first) == dims.iter().product() => inside(first),
        _ => parts.iter().map(inside).sum(),
    };
    elements == dims.iter().product::<usize>() && spec.padded_shape().iter().product::<usize>() == elements
}

/// A list of a number for each dimension, with numbers for those in front that the tensor lacks.
fn padded<T: Copy>(list: &[T], first: T) -> [T; DIMS] {
    let mut all = [first; DIMS];
    all[DIMS - list.len()..].copy_from_slice(list);
    all
}

/// A recipe for a result of parts of operands; elsewhere it has `fill`, a word of equal elements.
pub(super) fn plan(parts: Vec<Part<'_>>, fill: u32, task: &Task<'_>) -> Planned {
    let mut recipe = Recipe::default();
    recipe.rearrange(parts, fill, task.result()?, task.site)?;
    Ok(recipe)
}

impl Recipe {
    /// Makes a tensor of parts of others; elsewhere it has `fill`.
    pub(super) fn rearrange(&mut self, parts: Vec<Part<'_>>, fill: u32, to: Of<'_>, site: &Site) -> Result<(), String> {
        if to.spec.pages() != 0 {
            self.stages.push(stage(parts, fill, None, to, site)?);
        }
        Ok(())
    }

    /// The same with an index.
    pub(super) fn rearrange_by(
        &mut self,
        parts: Vec<Part<'_>>,
        index: &Index<'_>,
        to: Of<'_>,
        site: &Site,
    ) -> Result<(), String> {
        if to.spec.pages() != 0 {
            self.stages.push(stage(parts, 0, Some(index), to, site)?);
        }
        Ok(())
    }

    /// Makes a tensor of the elements of another in order: another layout or shape.
    pub(super) fn same_elements(&mut self, from: Of<'_>, to: Of<'_>, site: &Site) -> Result<(), String> {
        self.rearrange(vec![Part::in_order(from, to.spec.logical_shape())], 0, to, site)
    }

    /// Makes a tensor of elements that lie so in another, from element `base` on: those of the
    /// dimensions `dims` in order, whatever its own dimensions and layout are.
    pub(super) fn strided(
        &mut self,
        (from, base): (Of<'_>, i64),
        (dims, steps): (&[usize], &[i64]),
        to: Of<'_>,
        site: &Site,
    ) -> Result<(), String> {
        let rows = self.rows(dims, from.spec.dtype())?;
        self.rearrange(vec![Part::whole(from, base, dims, steps)], 0, rows.of(), site)?;
        self.same_elements(rows.of(), to, site)
    }
}

/// Dimensions with two neighbours as one, where all parts have them whole and go through them in
/// order, as does the index; the last `kept` stay as they are.
fn fewer(dims: &mut Vec<usize>, parts: &mut [Part<'_>], mut by: Option<&mut Index<'_>>, kept: usize) -> bool {
    let whole = |part: &Part<'_>, k: usize| part.moved.is_none() && part.low[k] == 0 && part.high[k] == dims[k];
    let in_order = |steps: &[i64], k: usize| steps[k] == steps[k + 1] * dims[k + 1] as i64;
    let together = |k: &usize| {
        let k = *k;
        let of_part = |part: &Part<'_>| whole(part, k) && whole(part, k + 1) && in_order(&part.strides, k);
        parts.iter().all(of_part) && by.as_ref().is_none_or(|by| in_order(&by.strides, k))
    };
    let Some(k) = (0..dims.len().saturating_sub(kept + 1)).find(together) else { return false };
    dims[k] *= dims.remove(k + 1);
    for part in parts {
        part.low.remove(k + 1);
        part.high.remove(k + 1);
        part.high[k] = dims[k];
        part.strides.remove(k);
    }
    if let Some(by) = &mut by {
        by.strides.remove(k);
    }
    true
}

/// The program for a tensor of parts of others; elsewhere it has `fill`.
fn stage(
    mut parts: Vec<Part<'_>>,
    fill: u32,
    by: Option<&Index<'_>>,
    target: Of<'_>,
    site: &Site,
) -> Result<Build, String> {
    let Of { which, spec: result } = target;
    let mut dims = result.logical_shape().to_vec();
    let mut by = by.cloned();
    let kept = if result.layout() == Layout::RowMajor { 1 } else { 2 };
    while dims.len() > DIMS && fewer(&mut dims, &mut parts, by.as_mut(), kept) {}
    if dims.len() > DIMS {
        return Err(format!("more than {DIMS} dimensions"));
    }
    if parts.len() > BOXES {
        return Err(format!("a result of {} parts, the kernel has {BOXES}", parts.len()));
    }
    let size = match result.dtype().bytes() {
        Some(bytes @ (1 | 2 | 4)) => bytes.trailing_zeros(),
        _ => return Err(format!("elements of type {}", result.dtype().name())),
    };
    let out = Side::of(result)?;
    let mut sides = Vec::new();
    for part in &parts {
        let source = part.from.spec;
        if source.dtype() != result.dtype() {
            return Err(format!("{} elements made of {}", result.dtype().name(), source.dtype().name()));
        }
        sides.push(Side::of(source)?);
    }
    let pages = result.pages() as u32;
    let (of_page, part_bytes) = divided(pages, &out, size, &parts, &sides, site);
    let units = pages * of_page;
    // Parts of pages need little of most pages that they need.
    let most = if of_page == 1 { PIECE } else { SMALL_PIECE };
    let piece = sides.iter().map(|side| side.page).max().unwrap_or(1).next_power_of_two().clamp(64, most);
    let budget = MEMORY.min(site.l1 / 2);
    let by = by.as_ref().map(Numbers::of).transpose()?;
    let bytes = move |slots| memory(out.page, slots, piece, by.as_ref().map_or(0, |by| by.side.page));
    let pieces = parts.iter().zip(&sides).map(|(part, side)| part.from.spec.pages() as u32 * side.page.div_ceil(piece));
    let useful = pieces.sum::<u32>().min(part_bytes >> size).clamp(1, SLOTS).next_power_of_two();
    let slots = (0..=useful.ilog2()).rev().map(|n| 1 << n).find(|&slots| bytes(slots) <= budget);
    let slots = slots.ok_or_else(|| format!("pages of {} bytes", out.page))?;
    let fills = !covered(&dims, result, &parts);
    let cores = site.workers[..site.workers.len().min(units.div_ceil(2) as usize)].to_vec();
    let boxes: Vec<_> = parts.iter().zip(&sides).map(|(part, side)| (part.from.which, *side, corners(part))).collect();
    Ok(Box::new(move |at| {
        let common = |cb: u32| {
            let mut words = vec![0; arg::FIRST_BOX as usize];
            let mut set = |at: u32, values: &[u32]| words[at as usize..][..values.len()].copy_from_slice(values);
            set(arg::ADDRESS, &out.words(which.of(at)));
            // Without parts there is one box, which is empty.
            let count = boxes.len().max(1) as u32;
            set(arg::SIZE, &[size, out.tiles.into(), fill, fills.into(), cb, slots, piece.ilog2(), count]);
            set(arg::DIMS, &padded(&dims.iter().map(|&n| n as u32).collect::<Vec<_>>(), 1));
            set(arg::PARTS, &[of_page, part_bytes]);
            if let Some(by) = &by {
                set(arg::INDEX, &by.words(at));
            }
            for (from, side, corners) in &boxes {
                words.extend(box_words(corners, side, from.of(at)));
            }
            words.resize((arg::FIRST_BOX + count * of_box::WORDS) as usize, 0);
            words
        };
        program(common, units, &cores, bytes(slots), at)
    }))
}

/// Into how many parts each page is divided, and their bytes: so that the time of the cores and
/// that in which the dispatcher starts them, one after the other, are the least together.
fn divided(pages: u32, out: &Side, size: u32, parts: &[Part<'_>], sides: &[Side], site: &Site) -> (u32, u32) {
    /// Cycles of a core for a run of neighbours, and for four bytes of it.
    const RUN: u64 = 90;
    const WORD: u64 = 30;
    /// The dispatcher's cycles for a core.
    const START: u64 = 59;
    let elements = u64::from(out.page >> size);
    let run = |(part, side): (&Part<'_>, &Side)| match part.strides.last() {
        Some(1) => side.columns.min(FACE),
        _ => 1,
    };
    let run = u64::from(parts.iter().zip(sides).map(run).min().unwrap_or(FACE).max(1));
    let page = elements / run * RUN + u64::from(out.page) / 4 * WORD;
    let cores = (u64::from(pages) * page / (2 * START)).isqrt().min(site.workers.len() as u64);
    let wanted = (2 * cores).div_ceil(u64::from(pages).max(1));
    if out.tiles {
        // Four rows of a face are the least, and 64 bytes.
        let parts = wanted.clamp(1, u64::from(TILE_PARTS)) as u32;
        let parts = 1 << parts.ilog2().min((out.page / 64).max(1).ilog2());
        return (parts, out.page / parts);
    }
    let bytes = u64::from(out.page).div_ceil(wanted.max(1)).next_multiple_of(64).max(64) as u32;
    (out.page.div_ceil(bytes).max(1), bytes)
}

/// The arguments of a box from its first element on.
fn corners(part: &Part<'_>) -> Vec<u32> {
    let narrow = |list: &[usize], first| padded(&list.iter().map(|&n| n as u32).collect::<Vec<_>>(), first);
    // Numbers of elements have 32 bits; strides wrap around as the kernel's arithmetic does.
    let mut words = vec![part.base as u32];
    words.extend(narrow(&part.low, 0));
    words.extend(narrow(&part.high, 1));
    words.extend(wrapped(&part.strides));
    // The kernel has all dimensions, and counts them from one: zero is none.
    let moves = part.moved.map_or(0, |along| DIMS - part.low.len() + along + 1);
    words.extend([part.step as u32, moves as u32]);
    words
}

/// Strides as the kernel takes them.
fn wrapped(strides: &[i64]) -> [u32; DIMS] {
    padded(&strides.iter().map(|&n| n as u32).collect::<Vec<_>>(), 0)
}

/// What the kernel knows of an index.
#[derive(Clone, Copy)]
struct Numbers {
    from: Which,
    side: Side,
    base: u32,
    strides: [u32; DIMS],
    size: u32,
    bound: u32,
}

impl Numbers {
    fn of(index: &Index<'_>) -> Result<Self, String> {
        let Index { from, base, strides, bound } = index;
        let size = match from.spec.dtype() {
            DType::I32 | DType::U32 => 2,
            DType::U16 => 1,
            DType::U8 => 0,
            other => return Err(format!("an index of type {}", other.name())),
        };
        let side = Side::of(from.spec)?;
        Ok(Self { from: from.which, side, base: *base as u32, strides: wrapped(strides), size, bound: *bound as u32 })
    }

    fn words(&self, at: &At<'_>) -> Vec<u32> {
        let mut words = self.side.words(self.from.of(at)).to_vec();
        words.extend([self.side.tiles.into(), self.side.columns, self.side.rows, self.base]);
        words.extend(self.strides);
        words.extend([self.size, self.bound]);
        debug_assert_eq!(words.len(), index::WORDS as usize);
        words
    }
}

fn box_words(corners: &[u32], side: &Side, source: &Tensor) -> Vec<u32> {
    let mut words = vec![0; of_box::WORDS as usize];
    let mut set = |at: u32, values: &[u32]| words[at as usize..][..values.len()].copy_from_slice(values);
    set(of_box::ADDRESS, &side.words(source));
    set(of_box::TILES, &[side.tiles.into(), side.columns, side.rows]);
    set(of_box::BASE, corners);
    words
}

/// Both data-movement cores of each worker have some of the parts of pages.
fn program(
    common: impl Fn(u32) -> Vec<u32>,
    units: u32,
    cores: &[tilework_abi::noc::NocXy],
    memory: u32,
    at: &At<'_>,
) -> Result<Program, RuntimeError> {
    let parts = cores.len() as u32 * 2;
    let own = |of: u32| {
        let shares = (0..cores.len() as u32).map(|i| share(units, parts, i * 2 + of));
        UniqueArgs::PerCore(shares.map(|(first, count)| vec![first, count]).collect())
    };
    let role = Role::all()
        .kernel(Processor::Brisc, at.kernels.get("rearrange", Processor::Brisc)?)
        .kernel(Processor::Ncrisc, at.kernels.get("rearrange", Processor::Ncrisc)?);
    let cb = |index| CircularBuffer { index, page_size: memory, pages: PageCount::new(1) };
    Ok(Program::new("rearrange", Cores::List(cores.to_vec()))
        .role(role)
        .circular_buffer(cb(0))
        .circular_buffer(cb(1))
        .unique_args(ArgSet::Brisc, own(0))
        .unique_args(ArgSet::Ncrisc, own(1))
        .common_args(ArgSet::Brisc, common(0))
        .common_args(ArgSet::Ncrisc, common(1)))
}
