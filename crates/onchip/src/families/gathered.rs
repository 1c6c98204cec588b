//! Convolutions of bfloat16 over rows and columns in one program, by the kernels `conv`,
//! `conv-read` and `conv-write`: each worker gathers the windows of some rows of tiles in L1, and
//! multiplies them with weights that stay there.

use tilework_abi::addr::PageCount;
use tilework_abi::conv::{AT_ONCE, Axis, PAGE, TILE, Windows, ZEROS, arg, cb, own};
use tilework_model::ttnn::ops::fused::DeviceComputeKernelConfig;
use tilework_ops::DType;
use tilework_runtime::tensor::{Layout, TensorSpec};
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, RuntimeError, UniqueArgs};

use super::edges::Edge;
use super::tiles::{self, DST_TILES, WIDE_DST_TILES};
use crate::grid::{divisor, share};
use crate::recipe::{At, Of, Recipe, Site, Which};

/// Bytes of 32 channels of a pixel.
const CHANNELS: u32 = 64;
/// Cycles for a tile that is gathered, and of an `MVMUL` pass over one that is multiplied; bytes of
/// weights that come from DRAM in a cycle for all workers together. For the choice of a division
/// only.
const GATHER: u64 = 350;
const PASS: u64 = 16;
const DRAM: u64 = 350;

/// A convolution of one group.
#[derive(Clone, Copy)]
pub(super) struct Asked<'o> {
    pub(super) windows: Windows,
    pub(super) channels: usize,
    pub(super) out: usize,
    pub(super) config: Option<&'o DeviceComputeKernelConfig>,
}

/// How pixels lie in DRAM: bytes of a row of channels of each, or rows of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pixels {
    Rows { bytes: u32 },
    Tiles,
}

/// How it is divided. Lengths are in tiles.
#[derive(Clone, Copy, Debug)]
struct Plan {
    windows: Windows,
    pixels: Pixels,
    channels: u32,
    inner: u32,
    /// Rows of the result; columns of it on each worker, and of all.
    rows: u32,
    columns: u32,
    all_columns: u32,
    /// In how many parts rows are divided.
    parts: u32,
    /// Rows for which pixels are in L1 at once.
    chunk: u32,
    /// Tiles of pixels in L1.
    room: u32,
    phases: u32,
    wide: bool,
    /// Format and bytes of a page of the result.
    result: [u32; 2],
}

/// Whether the rows of a tensor's tiles are rows of one matrix of so many rows and columns.
pub(super) fn is_matrix(spec: &TensorSpec, rows: usize, columns: usize) -> bool {
    let [outer @ .., down, across] = spec.logical_shape() else { return false };
    let count: usize = outer.iter().product();
    let whole = count == 1 || down.is_multiple_of(TILE as usize);
    tiles::in_dram(spec).is_ok() && whole && count * down == rows && *across == columns
}

fn pixels_of(spec: &TensorSpec, count: usize, channels: usize) -> Option<Pixels> {
    if spec.dtype() != DType::BF16 {
        return None;
    }
    if is_matrix(spec, count, channels) {
        return Some(Pixels::Tiles);
    }
    let in_rows = spec.layout() == Layout::RowMajor && spec.logical_shape().last() == Some(&channels);
    let whole = spec.pages() == count && spec.page_size() as usize == channels * 2;
    (in_rows && whole && tiles::interleaved(spec).is_ok()).then(|| Pixels::Rows { bytes: spec.page_size() })
}

impl Plan {
    /// The best division that fits.
    fn of(asked: &Asked<'_>, pixels: Pixels, result: &TensorSpec, site: &Site) -> Option<Self> {
        let Asked { windows, config, .. } = *asked;
        let in_tiles = |length: usize| length.div_ceil(TILE as usize) as u32;
        let [count, _] = windows.count();
        let (channels, all_columns) = (in_tiles(asked.channels), in_tiles(asked.out));
        let rows = count.div_ceil(TILE);
        let wide = config.and_then(|config| config.fp32_dest_acc_en).unwrap_or(true) || result.dtype() == DType::F32;
        let base = Self {
            windows,
            pixels,
            channels,
            inner: windows.rows.kernel * windows.columns.kernel * channels,
            rows,
            columns: all_columns,
            all_columns,
            parts: 1,
            chunk: 1,
            room: 0,
            phases: tiles::phases(config),
            wide,
            result: [tiles::format(result.dtype()).ok()?, result.page_size()],
        };
        let workers = site.workers.len() as u32;
        let divided = (1..=all_columns.min(workers)).filter(|n| all_columns.is_multiple_of(*n)).filter_map(|n| {
            let parts = (workers / n).min(rows);
            Self { columns: all_columns / n, parts, ..base }.with_room(site)
        });
        divided.min_by_key(|plan| (plan.cycles(), plan.parts))
    }

    /// With as many rows at once as there is room for.
    fn with_room(self, site: &Site) -> Option<Self> {
        let most = self.rows.div_ceil(self.parts);
        let plans = (1..=most).rev().map(|chunk| {
            let begins = (0..self.parts).flat_map(|part| {
                let (first, rows) = share(self.rows, self.parts, part);
                (first..first + rows).step_by(chunk as usize).map(move |at| (at, chunk.min(first + rows - at)))
            });
            let room = begins.map(|(first, rows)| self.windows.pixels(first, rows)).map(|(from, to)| to - from).max();
            Self { chunk, room: room.unwrap_or(0) * self.channels, ..self }
        });
        // Halves are enough to choose from.
        plans.filter(|plan| plan.chunk == most || plan.chunk.is_power_of_two()).find(|plan| plan.fits(site))
    }

    /// About how long it takes.
    fn cycles(&self) -> u64 {
        let [rows, inner, columns, parts] =
            [self.rows.div_ceil(self.parts), self.inner, self.columns, self.parts].map(u64::from);
        let product = columns * u64::from(self.phases) * PASS;
        let weights = inner * u64::from(self.all_columns) * u64::from(PAGE) * parts / DRAM;
        rows * inner * product.max(GATHER) + weights
    }

    /// Columns that are summed up at once.
    fn part(&self) -> u32 {
        divisor(self.columns, if self.wide { WIDE_DST_TILES } else { DST_TILES })
    }

    /// Number, bytes of a page, and pages of the circular buffers.
    fn buffers(&self) -> [[u32; 3]; 5] {
        let aside = match self.pixels {
            Pixels::Tiles => 0,
            Pixels::Rows { .. } => AT_ONCE * self.channels * CHANNELS,
        };
        [
            [cb::ROWS, PAGE, 2 * self.inner],
            [cb::WEIGHTS, PAGE, self.inner * self.columns],
            [cb::PIXELS, self.room * PAGE, 1],
            [cb::ASIDE, ZEROS + aside, 1],
            [cb::RESULT, self.result[1], 2 * self.part()],
        ]
    }

    fn fits(&self, site: &Site) -> bool {
        let bytes = self.buffers().iter().map(|[_, page, pages]| u64::from(*page) * u64::from(*pages)).sum::<u64>();
        bytes <= u64::from(site.l1)
    }

    /// The common arguments; `stride`: distance of pixels in rows in a bank.
    fn words(&self, [pixels, weights, result]: [u32; 3], stride: u32) -> Vec<u32> {
        let bytes = match self.pixels {
            Pixels::Tiles => 0,
            Pixels::Rows { bytes } => bytes,
        };
        let format = tiles::format(DType::BF16).unwrap_or_default();
        let mut words = vec![0; arg::WORDS as usize];
        let all = [
            (arg::PIXELS, pixels),
            (arg::WEIGHTS, weights),
            (arg::RESULT, result),
            (arg::ROW_BYTES, bytes),
            (arg::STRIDE, stride),
            (arg::CHANNELS, self.channels),
            (arg::INNER, self.inner),
            (arg::COLUMNS, self.columns),
            (arg::ALL_COLUMNS, self.all_columns),
            (arg::PART, self.part()),
            (arg::PHASES, self.phases),
            (arg::WIDE, self.wide.into()),
            (arg::FORMATS, format),
            (arg::FORMATS + 1, format),
            (arg::FORMATS + 2, self.result[0]),
            (arg::RESULT_PAGE, self.result[1]),
            (arg::CHUNK, self.chunk),
        ];
        for (at, value) in all {
            words[at as usize] = value;
        }
        words[arg::WINDOWS as usize..].copy_from_slice(&self.windows.words());
        words
    }

    /// The program; tensors are pixels, weights and result.
    fn program(&self, tensors: [Which; 3], site: &Site, at: &At<'_>) -> Result<Program, RuntimeError> {
        let blocks = self.all_columns / self.columns;
        let cores = site.workers[..(self.parts * blocks) as usize].to_vec();
        let own = (0..self.parts).flat_map(|part| (0..blocks).map(move |block| (part, block)));
        let own: Vec<Vec<u32>> = own
            .map(|(part, block)| {
                let (first, rows) = share(self.rows, self.parts, part);
                let mut words = vec![0; own::WORDS as usize];
                words[own::FIRST as usize] = first;
                words[own::ROWS as usize] = rows;
                words[own::COLUMN as usize] = block * self.columns;
                words
            })
            .collect();
        let buffers = tensors.map(|which| &which.of(at).buffer);
        let words = self.words(buffers.map(|buffer| buffer.address.word()), buffers[0].aligned_page_size());
        let mut program = Program::new("conv", Cores::List(cores));
        for set in [ArgSet::Ncrisc, ArgSet::Brisc, ArgSet::Compute] {
            program = program.unique_args(set, UniqueArgs::PerCore(own.clone())).common_args(set, words.clone());
        }
        for [index, page_size, pages] in self.buffers() {
            program = program.circular_buffer(CircularBuffer { index, page_size, pages: PageCount::new(pages) });
        }
        Ok(program.role(at.kernels.role("conv", "conv-read", "conv-write")?))
    }
}

/// A convolution that one program can do.
pub(super) struct Gathered(Plan);

impl Asked<'_> {
    /// The program for an image and a result, a matrix with a row for each window; none if the
    /// kernels cannot do it. Weights are bfloat16.
    pub(super) fn plan(&self, input: &TensorSpec, result: &TensorSpec, site: &Site) -> Option<Gathered> {
        let [_, count] = self.windows.count();
        let pixels = pixels_of(input, count as usize, self.channels)?;
        Plan::of(self, pixels, result, site).map(Gathered)
    }
}

impl Gathered {
    /// Adds the program. Weights are a matrix in tiles, with a row for each element of the window
    /// and channel; channels go on with zeros up to whole tiles.
    pub(super) fn add(
        self,
        recipe: &mut Recipe,
        [input, weights, result]: [Of<'_>; 3],
        site: &Site,
    ) -> Result<(), String> {
        let Self(plan) = self;
        if plan.pixels == Pixels::Tiles {
            recipe.clear(input, Edge::Columns, site)?;
        }
        let (tensors, place) = ([input.which, weights.which, result.which], site.clone());
        recipe.stages.push(Box::new(move |at| plan.program(tensors, &place, at)));
        Ok(())
    }
}

/// Windows over images along both axes, if their numbers have 32 bits.
pub(super) fn windows(batch: usize, axes: [super::window::Axis; 2], begin: [i64; 2]) -> Option<Windows> {
    let axis = |of: super::window::Axis, begin: i64| {
        let narrow = |n: usize| u32::try_from(n).ok().filter(|&n| n < 1 << 24);
        Some(Axis {
            length: narrow(of.length)?,
            output: narrow(of.output)?,
            kernel: narrow(of.kernel)?,
            stride: narrow(of.stride)?,
            dilation: narrow(of.dilation)?,
            before: u32::try_from(begin).ok().filter(|&n| n < 1 << 24)?,
        })
    };
    let of = Windows {
        batch: u32::try_from(batch).ok()?,
        rows: axis(axes[0], begin[0])?,
        columns: axis(axes[1], begin[1])?,
    };
    let product = |a: usize, b: usize| batch.checked_mul(a)?.checked_mul(b).filter(|&n| n > 0 && n < 1 << 28);
    product(axes[0].output, axes[1].output)?;
    product(axes[0].length, axes[1].length)?;
    Some(of)
}
