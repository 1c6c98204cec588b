//! Softmax and normalisation along rows that fit into L1, each by one kernel: a core has rows of
//! tiles, and each of them is read and written once.
//!
//! The matrix unit makes the statistics and subtracts and multiplies, with what SrcA and SrcB hold:
//! ten bits of a mantissa. That is enough for results of bfloat16 or blocks. Everything else is
//! composed of stages (`norm`), whose numbers have 32 bits.

use tilework_abi::addr::PageCount;
use tilework_abi::noc::NocXy;
use tilework_abi::rowwise::{arg, cb, flag, reader};
use tilework_ops::DType;
use tilework_runtime::tensor::TensorSpec;
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, RuntimeError, UniqueArgs};

use super::tiles;
use crate::grid::share;
use crate::recipe::{At, Of, Recipe, Site, Which};

/// Rows and columns of a tile; bytes of one of float32.
const TILE: usize = 32;
const WIDE_PAGE: u32 = 4096;
/// DRAM banks of a board that has all of them.
const BANKS: u32 = 8;
/// Format number of float32 (`Format`).
const FLOAT32: u32 = 0;

/// What is made of rows.
#[derive(Clone, Copy)]
pub(super) enum Way<'s> {
    Softmax,
    /// Whether the mean is subtracted; what is added to the variance; weight and bias.
    Norm {
        centred: bool,
        epsilon: f32,
        weight: Option<Of<'s>>,
        bias: Option<Of<'s>>,
    },
}

/// A tensor as the kernels need it.
#[derive(Clone, Copy)]
struct Tensor {
    which: Which,
    bytes: u32,
    format: u32,
}

impl Tensor {
    /// If the kernels have its type, and rows of `width` elements do not end within a block.
    fn of(of: Of<'_>, width: usize) -> Option<Self> {
        let of_rows = match of.spec.dtype() {
            DType::BF16 => true,
            DType::Bfp8B => width.is_multiple_of(TILE),
            _ => false,
        };
        tiles::in_dram(of.spec).ok().filter(|_| of_rows)?;
        Some(Self { which: of.which, bytes: of.spec.page_size(), format: tiles::format(of.spec.dtype()).ok()? })
    }

    /// The same of one row of `width` elements.
    fn vector(of: Of<'_>, width: usize) -> Option<Self> {
        let dims = of.spec.logical_shape();
        let is_row = dims.last() == Some(&width) && dims.iter().product::<usize>() == width;
        Self::of(of, width).filter(|_| is_row)
    }
}

/// The program of rows of tiles.
struct Plan {
    name: &'static str,
    kernel: &'static str,
    /// Rows of tiles, and tiles of a row.
    rows: u32,
    columns: u32,
    x: Tensor,
    y: Tensor,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    flags: u32,
    /// Arguments of the compute kernel behind the number of rows.
    compute: Vec<u32>,
    buffers: Vec<CircularBuffer>,
}

/// The recipe, if there is a kernel for such rows and they fit into L1.
pub(super) fn recipe(way: Way<'_>, x: Of<'_>, y: Of<'_>, site: &Site) -> Option<Recipe> {
    let plan = Plan::of(way, x, y, site)?;
    let cores = site.cores(plan.rows);
    Some(Recipe { stages: vec![Box::new(move |at| plan.program(&cores, at))], ..Recipe::default() })
}

impl Plan {
    fn of(way: Way<'_>, x: Of<'_>, y: Of<'_>, site: &Site) -> Option<Self> {
        let shape = |spec: &TensorSpec| spec.logical_shape().to_vec();
        let width = *x.spec.logical_shape().last()?;
        let [rows, columns] = tiles::in_dram(x.spec).ok()?;
        if shape(x.spec) != shape(y.spec) || rows == 0 || columns == 0 || width == 0 {
            return None;
        }
        let (from, to) = (Tensor::of(x, width)?, Tensor::of(y, width)?);
        let last = (width % TILE) as u32;
        let mut compute = vec![columns, last, from.format, to.format];
        let (mut flags, mut weight, mut bias) = (0, None, None);
        let (name, kernel) = match way {
            Way::Softmax => ("softmax-rows", "row-softmax"),
            Way::Norm { centred, epsilon, weight: by, bias: plus } => {
                let vector = |of: Option<Of<'_>>| match of {
                    Some(of) => Tensor::vector(of, width).map(Some),
                    None => Some(None),
                };
                (weight, bias) = (vector(by)?, vector(plus)?);
                let bits =
                    [(centred, flag::CENTRED), (weight.is_some(), flag::WEIGHTED), (bias.is_some(), flag::BIASED)];
                flags = bits.into_iter().filter(|(is, _)| *is).fold(0, |flags, (_, bit)| flags | bit);
                let part = (1.0 / width as f32).to_bits();
                let format = |of: &Option<Tensor>| of.as_ref().map_or(FLOAT32, |of| of.format);
                compute.extend([part, epsilon.to_bits(), flags, format(&weight), format(&bias)]);
                (if centred { "layer-norm-rows" } else { "rms-norm-rows" }, "row-norm")
            }
        };
        let mut plan =
            Self { name, kernel, rows, columns, x: from, y: to, weight, bias, flags, compute, buffers: Vec::new() };
        // With room for two rows, the next one is read and the last one written meanwhile. They
        // leave half of L1 to tensors that live there.
        let most = rows.div_ceil(site.workers.len().max(1) as u32).min(2);
        let fits = |held: u32| {
            let all = plan.circular_buffers(held);
            let bytes = all.iter().map(|cb| u64::from(cb.page_size) * u64::from(cb.pages.get())).sum::<u64>();
            (bytes <= u64::from(site.l1 / held)).then_some(all)
        };
        plan.buffers = (1..=most).rev().find_map(fits)?;
        Some(plan)
    }

    /// The circular buffers, with `held` rows of argument and result.
    fn circular_buffers(&self, held: u32) -> Vec<CircularBuffer> {
        let of = |index, page_size, pages| CircularBuffer { index, page_size, pages: PageCount::new(pages) };
        let (columns, norm) = (self.columns, self.kernel == "row-norm");
        let mut all = vec![
            of(cb::X, self.x.bytes, held * columns),
            of(cb::ONES, WIDE_PAGE, 1),
            of(cb::Y, self.y.bytes, held * columns),
            of(cb::LAST, self.x.bytes, 1),
            of(cb::STATISTIC, WIDE_PAGE, 1),
        ];
        if !norm || self.flags & flag::CENTRED != 0 {
            all.push(of(cb::TERMS, WIDE_PAGE, columns));
        }
        if norm {
            all.push(of(cb::SQUARES, WIDE_PAGE, 2));
        }
        if let Some(weight) = self.weight {
            all.extend([of(cb::WEIGHT, weight.bytes, columns), of(cb::SCALED, WIDE_PAGE, columns)]);
        }
        if let Some(bias) = self.bias {
            all.extend([of(cb::BIAS, bias.bytes, columns), of(cb::WEIGHTED, WIDE_PAGE, columns)]);
        }
        all
    }

    fn program(&self, cores: &[NocXy], at: &At<'_>) -> Result<Program, RuntimeError> {
        // A last tile with padding stays the last one.
        let turned = if self.compute[arg::WIDTH as usize - 1] == 0 { self.columns } else { self.columns - 1 };
        let mut common = vec![self.columns, turned, self.flags];
        for tensor in [Some(self.x), self.weight, self.bias] {
            common.extend(tensor.map_or([0; reader::WORDS as usize], |tensor| {
                let buffer = &tensor.which.of(at).buffer;
                [buffer.address.word(), buffer.aligned_page_size(), tensor.bytes]
            }));
        }
        let y = &self.y.which.of(at).buffer;
        let result = vec![self.columns, turned, y.address.word(), y.aligned_page_size(), self.y.bytes];
        let (mut reads, mut writes, mut compute) = (Vec::new(), Vec::new(), Vec::new());
        for core in 0..cores.len() as u32 {
            let (first, rows) = share(self.rows, cores.len() as u32, core);
            let first = first * self.columns;
            let turn = turn(first, core, turned);
            reads.push(vec![first, rows, turn]);
            writes.push(vec![first, rows, turn]);
            compute.push([[rows].as_slice(), &self.compute].concat());
        }
        let compute = match compute.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other == first) => UniqueArgs::Uniform(first.clone()),
            _ => UniqueArgs::PerCore(compute),
        };
        let role = at.kernels.role(self.kernel, "row-reader", "row-writer")?;
        let program = Program::new(self.name, Cores::List(cores.to_vec()))
            .role(role)
            .unique_args(ArgSet::Ncrisc, UniqueArgs::PerCore(reads))
            .common_args(ArgSet::Ncrisc, common)
            .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(writes))
            .common_args(ArgSet::Brisc, result)
            .unique_args(ArgSet::Compute, compute);
        Ok(self.buffers.iter().fold(program, |program, cb| program.circular_buffer(*cb)))
    }
}

/// With which of `turned` tiles the rows of a core begin, of which the first is page `first`: so
/// that the cores begin with different banks.
fn turn(first: u32, core: u32, turned: u32) -> u32 {
    (core % BANKS + BANKS - first % BANKS) % BANKS % turned.max(1)
}

/// The numbers of arguments that the plan gives.
const _: () = assert!(arg::ROWS == 0 && arg::COLUMNS == 1 && arg::WIDTH == 2 && arg::X == 3 && arg::Y == 4);
const _: () = assert!(arg::PART == 5 && arg::EPSILON == 6 && arg::FLAGS == 7 && arg::WEIGHT == 8 && arg::BIAS == 9);
