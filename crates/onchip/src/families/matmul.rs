//! Products of matrices.
//!
//! The product is a grid of blocks, one on each core. The first operand's blocks go along the rows
//! of a rectangle of cores and the second's along its columns, each read from DRAM by one core and
//! multicast to the others (`share`). Batches of products have no blocks in common: each core reads
//! its own, and what does not fit on the cores at once is another program.

use tilework_abi::addr::PageCount;
use tilework_abi::eltwise::{Function, Step};
use tilework_abi::noc::NocXy;
use tilework_model::ttnn::ops::fused::DeviceComputeKernelConfig;
use tilework_model::ttnn::ops::matmul::{LinearOp, MatmulOp, MatmulProgramConfig};
use tilework_ops::DType;
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, RuntimeError, UniqueArgs};

use super::edges::Edge;
use super::rearrange::{Part, strides};
use super::stage::{Line, aligned};
use super::tiles::{self, DST_TILES, WIDE_DST_TILES};
use super::{eltwise, norm};
use crate::grid::{Rectangle, divisor, word};
use crate::recipe::{At, Build, Made, Of, Planned, Recipe, Site, Task, Which};

/// The circular buffers: operands, product.
const A: u32 = 0;
const B: u32 = 1;
const Y: u32 = 16;

/// Blocks of an operand that a circular buffer has room for.
const BLOCKS: u32 = 3;
/// Tiles of a block along the inner dimension at most.
const INNER: u32 = 8;

/// A product of matrices of `rows` x `inner` and `inner` x `columns` tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) batch: u32,
    pub(super) rows: u32,
    pub(super) inner: u32,
    pub(super) columns: u32,
}

/// How it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Blocking {
    /// Rows and columns of a core's block of the product.
    block: [u32; 2],
    /// Tiles of an operand's block along the inner dimension.
    inner: u32,
    /// Rows and columns of what is in Dst at once.
    part: [u32; 2],
    /// Pages of the circular buffers of the operands.
    room: [u32; 2],
}

/// Formats, and what of the product is asked for.
#[derive(Clone, Copy, Debug)]
struct Form {
    formats: [u32; 3],
    pages: [u32; 3],
    which: [Which; 3],
    phases: u32,
    wide: bool,
}

/// What is asked for besides the product of two tensors.
#[derive(Clone, Copy, Default)]
struct Asked<'o> {
    transposed: [bool; 2],
    activation: Option<&'o str>,
    /// The columns are two halves, of which the first is multiplied with `silu` of the second.
    swiglu: bool,
    bias: Option<usize>,
    config: Option<&'o DeviceComputeKernelConfig>,
}

pub(super) fn matmul(op: &MatmulOp, task: &Task<'_>) -> Planned {
    not_in_blocking(op.matmul_program_config.as_ref())?;
    let asked = Asked {
        transposed: [op.transpose_a, op.transpose_b],
        activation: op.activation.as_deref().filter(|name| !name.is_empty()),
        swiglu: op.fused_swiglu,
        bias: None,
        config: op.compute_config.as_ref(),
    };
    product(asked, task)
}

pub(super) fn linear(op: &LinearOp, task: &Task<'_>) -> Planned {
    not_in_blocking(op.matmul_program_config.as_ref())?;
    let asked = Asked {
        transposed: [op.transpose_a, op.transpose_b],
        activation: op.activation.as_deref().filter(|name| !name.is_empty()),
        swiglu: false,
        bias: op.bias.as_ref().map(|_| 2),
        config: op.compute_config.as_ref(),
    };
    product(asked, task)
}

/// Refuses a function that is part of the blocking.
fn not_in_blocking(config: Option<&MatmulProgramConfig>) -> Result<(), String> {
    use MatmulProgramConfig as Config;
    let fused = match config {
        Some(Config::MatmulMultiCoreReuseMultiCastProgramConfig(config)) => config.fused_activation.is_some(),
        Some(Config::MatmulMultiCoreReuseMultiCast1DProgramConfig(config)) => config.fused_activation.is_some(),
        Some(Config::MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(config)) => {
            config.fused_activation.is_some()
        }
        Some(Config::MatmulMultiCoreReuseProgramConfig(_)) | None => false,
    };
    if fused { Err("a function in the blocking".into()) } else { Ok(()) }
}

/// The product, its transposed operands made beforehand, bias and function behind it.
fn product(asked: Asked<'_>, task: &Task<'_>) -> Planned {
    let mut recipe = Recipe::default();
    let given = [task.operand(0)?, task.operand(1)?];
    let turned = [0, 1].map(|i| asked.transposed[i].then(|| transposed(given[i], &mut recipe, task.site)).transpose());
    let [a, b] = turned;
    let turned = [a?, b?];
    let operands = [0, 1].map(|i| turned[i].as_ref().map_or(given[i], Made::of));
    let after = asked.activation.map(eltwise::named).transpose()?;
    if asked.swiglu && after.is_some() {
        return Err("two functions of the product".into());
    }
    if asked.swiglu {
        return swiglu(operands, asked, recipe, task);
    }
    let result = task.result()?;
    if asked.bias.is_none() && after.is_none() {
        multiply(&mut recipe, operands, result, asked.config, task.site)?;
        return Ok(recipe);
    }
    let sums = recipe.tiles(result.spec.logical_shape(), DType::F32)?;
    multiply(&mut recipe, operands, sums.of(), asked.config, task.site)?;
    let mut others = Vec::new();
    if let Some(i) = asked.bias {
        others.push((task.operand(i)?, vec![norm::two(Function::Add, 0, 1)]));
    }
    let after = after.into_iter().collect();
    recipe.stages.push(norm::rows("matmul-end", (sums.of(), result), others, after, task.site)?);
    Ok(recipe)
}

/// The first half of the columns of a product times `silu` of the second.
fn swiglu(operands: [Of<'_>; 2], asked: Asked<'_>, mut recipe: Recipe, task: &Task<'_>) -> Planned {
    let result = task.result()?;
    let halved = result.spec.logical_shape();
    let mut dims = halved.to_vec();
    let width = dims.last_mut().ok_or("a product without columns")?;
    let half = *width;
    *width *= 2;
    let sums = recipe.tiles(&dims, DType::F32)?;
    multiply(&mut recipe, operands, sums.of(), asked.config, task.site)?;
    let mut part = |base: usize| {
        let made = recipe.tiles(halved, DType::F32)?;
        let part = Part::whole(sums.of(), base as i64, halved, &strides(&dims));
        recipe.rearrange(vec![part], 0, made.of(), task.site)?;
        Ok::<_, String>(made)
    };
    let (up, gate) = (part(0)?, part(half)?);
    let silu = Line::plain(Step::new(Function::Silu).of(1, 0, 0).to(1));
    let others = vec![(gate.of(), vec![silu, norm::two(Function::Multiply, 0, 1)])];
    recipe.stages.push(norm::rows("swiglu", (up.of(), result), others, Vec::new(), task.site)?);
    Ok(recipe)
}

/// A tensor with its last two dimensions exchanged, in a scratch tensor.
pub(super) fn transposed(of: Of<'_>, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    let mut dims = of.spec.logical_shape().to_vec();
    let rank = dims.len();
    if rank < 2 {
        return Err("a transposed vector".into());
    }
    let mut steps = strides(&dims);
    dims.swap(rank - 1, rank - 2);
    steps.swap(rank - 1, rank - 2);
    let turned = recipe.tiles(&dims, of.spec.dtype())?;
    recipe.rearrange(vec![Part::whole(of, 0, &dims, &steps)], 0, turned.of(), site)?;
    Ok(turned)
}

/// The batches of a product, if operands have other ones or none.
fn spread([a, b]: [&[usize]; 2]) -> Option<Vec<usize>> {
    let batches = |dims: &[usize], rank: usize| aligned(&dims[..dims.len().saturating_sub(2)], rank);
    let rank = a.len().max(b.len()).saturating_sub(2);
    let (first, second) = (batches(a, rank), batches(b, rank));
    // One matrix is multiplied by all of the first operand.
    if first == second || second.iter().all(|&n| n == 1) || a.len() < 2 || b.len() < 2 {
        return None;
    }
    Some(first.iter().zip(&second).map(|(&a, &b)| if a == 1 { b } else { a }).collect())
}

/// A tensor with these batches, in a scratch tensor.
fn repeated(of: Of<'_>, batches: &[usize], recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    let source = of.spec.logical_shape();
    let (outer, matrix) = source.split_at(source.len() - 2);
    let own: Vec<usize> = aligned(outer, batches.len()).into_iter().chain(matrix.iter().copied()).collect();
    let dims: Vec<usize> = batches.iter().chain(matrix).copied().collect();
    let mut steps = strides(&own);
    for k in 0..batches.len() {
        if own[k] != dims[k] {
            steps[k] = 0;
        }
    }
    if own.iter().zip(&dims).any(|(own, all)| own != all && *own != 1) {
        return Err("batches that do not fit".into());
    }
    let made = recipe.tiles(&dims, of.spec.dtype())?;
    recipe.rearrange(vec![Part::whole(of, 0, &dims, &steps)], 0, made.of(), site)?;
    Ok(made)
}

/// Adds the programs of a product.
pub(super) fn multiply(
    recipe: &mut Recipe,
    [a, b]: [Of<'_>; 2],
    y: Of<'_>,
    config: Option<&DeviceComputeKernelConfig>,
    site: &Site,
) -> Result<(), String> {
    let logical = [a.spec.logical_shape(), b.spec.logical_shape()];
    if let Some(batches) = spread(logical) {
        let a = repeated(a, &batches, recipe, site)?;
        let b = repeated(b, &batches, recipe, site)?;
        return multiply(recipe, [a.of(), b.of()], y, config, site);
    }
    let shape = shape(logical, [tiles::in_dram(a.spec)?, tiles::in_dram(b.spec)?])?;
    tiles::in_dram(y.spec)?;
    // The product goes through the inner dimension in whole tiles.
    recipe.clear(a, Edge::Columns, site)?;
    recipe.clear(b, Edge::Rows, site)?;
    if y.spec.dtype().is_block() {
        // Elements of a block share an exponent with those beside them in the tile.
        recipe.clear(b, Edge::Columns, site)?;
    }
    recipe.product(shape, [a, b, y], config, site)
}

/// The programs of a product of tensors whose tiles are matrices of this shape, with what SrcA and
/// SrcB hold of the elements.
pub(super) fn product_of(
    shape: Shape,
    [a, b, y]: [Of<'_>; 3],
    config: Option<&DeviceComputeKernelConfig>,
    site: &Site,
) -> Result<Vec<Build>, String> {
    let specs = [a, b, y].map(|of| of.spec);
    let mut formats = [0; 3];
    for (format, spec) in formats.iter_mut().zip(specs) {
        match spec.dtype() {
            DType::BF16 | DType::F32 | DType::Bfp8B => *format = tiles::format(spec.dtype())?,
            other => return Err(format!("a product of elements of type {}", other.name())),
        }
    }
    let wide = config.and_then(|config| config.fp32_dest_acc_en).unwrap_or(true)
        || specs.iter().any(|spec| spec.dtype() == DType::F32);
    let pages = specs.map(|spec| spec.page_size());
    let which = [a, b, y].map(|of| of.which);
    let form = Form { formats, pages, which, phases: tiles::phases(config), wide };
    if shape.batch > 1 { batched(shape, form, site) } else { multicast(shape, form, site) }
}

/// The shape in tiles. A second operand without batches is the same for all rows of the first.
fn shape(logical: [&[usize]; 2], in_tiles: [[u32; 2]; 2]) -> Result<Shape, String> {
    let batches = logical.map(|dims| dims.iter().rev().skip(2).product::<usize>());
    if logical.iter().any(|dims| dims.len() < 2) {
        return Err("a vector as operand".into());
    }
    let ([a, b], [[a_rows, inner], [b_rows, columns]]) = (batches, in_tiles);
    match (a, b) {
        (_, 1) => Ok(Shape { batch: 1, rows: a_rows, inner, columns }),
        (a, b) if a == b && logical[0][..logical[0].len() - 2] == logical[1][..logical[1].len() - 2] => {
            let batch = a as u32;
            Ok(Shape { batch, rows: a_rows / batch, inner: b_rows / batch, columns })
        }
        _ => Err("batches that are spread".into()),
    }
}

impl Blocking {
    /// The division of a block of the product, with the operands in `l1` bytes.
    fn of(block: [u32; 2], inner: u32, form: &Form, l1: u32) -> Option<Self> {
        let most = if form.wide { WIDE_DST_TILES } else { DST_TILES };
        let part = part(block, most);
        let bytes = |room: [u32; 2]| {
            let product = u64::from(part[0] * part[1] * 2) * u64::from(form.pages[2]);
            u64::from(room[0]) * u64::from(form.pages[0]) + u64::from(room[1]) * u64::from(form.pages[1]) + product
        };
        (1..=INNER.min(inner)).rev().filter(|step| inner.is_multiple_of(*step)).find_map(|step| {
            let blocks = if part == block { BLOCKS.min((inner / step).max(2)) } else { inner / step };
            let room = block.map(|side| side * step * blocks);
            (bytes(room) <= u64::from(l1)).then_some(Self { block, inner: step, part, room })
        })
    }

    fn circular_buffers(&self, form: &Form) -> [CircularBuffer; 3] {
        let of = |index, page_size, pages| CircularBuffer { index, page_size, pages: PageCount::new(pages) };
        let [a, b, y] = form.pages;
        [of(A, a, self.room[0]), of(B, b, self.room[1]), of(Y, y, self.part[0] * self.part[1] * 2)]
    }

    /// Arguments of the compute kernel.
    fn compute(&self, blocks: u32, form: &Form) -> Vec<u32> {
        let ([rows, columns], [f, g, h]) = (self.block, form.formats);
        let [part_rows, part_columns] = self.part;
        let wide = form.wide.into();
        vec![blocks, rows, columns, self.inner, form.phases, wide, f, g, h, A, B, Y, part_rows, part_columns]
    }

    /// Arguments for the block of results, whose first tile is `first` of rows of `columns` tiles.
    fn results(&self, address: u32, first: u32, columns: u32) -> [u32; 8] {
        let parts = [self.block[0] / self.part[0], self.block[1] / self.part[1]];
        [self.part[0], self.part[1], address, first, columns, Y, parts[0] * parts[1], parts[1]]
    }
}

/// The largest part of a block that fits into so many tiles of Dst.
fn part([rows, columns]: [u32; 2], most: u32) -> [u32; 2] {
    let of = |n: u32| (1..=n.min(most)).filter(move |d| n.is_multiple_of(*d));
    let all = of(rows).flat_map(|r| of(columns).map(move |c| [r, c])).filter(|[r, c]| r * c <= most);
    // Of parts of the same size the squarest needs the fewest loads of operands.
    all.max_by_key(|[r, c]| (r * c, u32::MAX - (r + c))).unwrap_or([1, 1])
}

/// One product on a rectangle of cores.
fn multicast(shape: Shape, form: Form, site: &Site) -> Result<Vec<Build>, String> {
    let all = Rectangle::of(&site.workers);
    let (most_columns, most_rows) = all.size();
    if most_columns == 0 || most_rows == 0 {
        return Err("no column of the board has a worker in every row".into());
    }
    let (rows, columns) = (divisor(shape.rows, most_rows), divisor(shape.columns, most_columns));
    let block = [shape.rows / rows, shape.columns / columns];
    // Rows that the rectangle does not divide make large blocks; without multicast there are
    // smaller ones.
    let Some(blocking) = Blocking::of(block, shape.inner, &form, site.l1) else {
        return batched(shape, form, site);
    };
    let grid = all.first(columns, rows);
    Ok(vec![Box::new(move |at| multicast_program(shape, form, blocking, &grid, at))])
}

fn multicast_program(
    shape: Shape,
    form: Form,
    blocking: Blocking,
    grid: &Rectangle,
    at: &At<'_>,
) -> Result<Program, RuntimeError> {
    let (columns, rows) = grid.size();
    let [a, b, y] = form.which.map(|which| which.of(at).buffer.address.word());
    let (blocks, inner, [high, wide]) = (shape.inner / blocking.inner, blocking.inner, blocking.block);
    let (mut ncrisc, mut brisc) = (Vec::new(), Vec::new());
    for column in 0..columns {
        for row in 0..rows {
            let here = word(grid.at(column, row));
            // Rows are served by the cores of one diagonal and columns by those of another, so that
            // the operands do not meet in one column or row of the network.
            let ends = [grid.at(0, row), grid.at((row + 2) % columns, row), grid.at(columns - 1, row)].map(word);
            let first = row * high * shape.inner;
            ncrisc.push(vec![
                blocks,
                a,
                first,
                inner,
                shape.inner,
                high,
                inner,
                A,
                here,
                ends[1],
                ends[0],
                ends[2],
                columns - 1,
                0,
                1,
                0,
            ]);
            let ends = [grid.at(column, 0), grid.at(column, (column + 1) % rows), grid.at(column, rows - 1)].map(word);
            let step = inner * shape.columns;
            let mut args = vec![
                blocks,
                b,
                column * wide,
                step,
                shape.columns,
                inner,
                wide,
                B,
                here,
                ends[1],
                ends[0],
                ends[2],
                rows - 1,
                2,
                3,
            ];
            args.extend(blocking.results(y, row * high * shape.columns + column * wide, shape.columns));
            brisc.push(args);
        }
    }
    program(&form, &blocking, blocks, Cores::List(grid.workers()), [ncrisc, brisc], at)
}

/// A product of its own on each core: batches, and rows of blocks of each.
fn batched(shape: Shape, form: Form, site: &Site) -> Result<Vec<Build>, String> {
    let workers = &site.workers;
    let cores = workers.len() as u32;
    let split = divisor(shape.rows, (cores / shape.batch).max(1));
    let block = [shape.rows / split, shape.columns];
    let blocking = Blocking::of(block, shape.inner, &form, site.l1);
    let blocking = blocking.ok_or_else(|| format!("blocks of {block:?} tiles, which do not fit into L1"))?;
    let units: Vec<[u32; 2]> = (0..shape.batch).flat_map(|batch| (0..split).map(move |i| [batch, i])).collect();
    let mut stages: Vec<Build> = Vec::new();
    for units in units.chunks(workers.len()) {
        let (units, cores) = (units.to_vec(), workers[..units.len()].to_vec());
        stages.push(Box::new(move |at| batched_program(shape, form, blocking, &units, &cores, at)));
    }
    Ok(stages)
}

fn batched_program(
    shape: Shape,
    form: Form,
    blocking: Blocking,
    units: &[[u32; 2]],
    cores: &[NocXy],
    at: &At<'_>,
) -> Result<Program, RuntimeError> {
    let [a, b, y] = form.which.map(|which| which.of(at).buffer.address.word());
    let (blocks, inner, [high, wide]) = (shape.inner / blocking.inner, blocking.inner, blocking.block);
    let (mut ncrisc, mut brisc) = (Vec::new(), Vec::new());
    for (&[batch, i], &core) in units.iter().zip(cores) {
        let (here, row) = (word(core), batch * shape.rows + i * high);
        let first = row * shape.inner;
        ncrisc.push(vec![blocks, a, first, inner, shape.inner, high, inner, A, here, here, here, here, 0, 0, 1, 0]);
        let (first, step) = (batch * shape.inner * shape.columns, inner * shape.columns);
        let mut args = vec![blocks, b, first, step, shape.columns, inner, wide, B, here, here, here, here, 0, 2, 3];
        args.extend(blocking.results(y, row * shape.columns, shape.columns));
        brisc.push(args);
    }
    program(&form, &blocking, blocks, Cores::List(cores.to_vec()), [ncrisc, brisc], at)
}

fn program(
    form: &Form,
    blocking: &Blocking,
    blocks: u32,
    cores: Cores,
    [ncrisc, brisc]: [Vec<Vec<u32>>; 2],
    at: &At<'_>,
) -> Result<Program, RuntimeError> {
    let mut program = Program::new("matmul", cores)
        .role(at.kernels.role("matmul", "share", "share")?)
        .unique_args(ArgSet::Ncrisc, UniqueArgs::PerCore(ncrisc))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(brisc))
        .unique_args(ArgSet::Compute, UniqueArgs::Uniform(blocking.compute(blocks, form)));
    for cb in blocking.circular_buffers(form) {
        program = program.circular_buffer(cb);
    }
    Ok((0..4).fold(program, |program, _| program.semaphore(0)))
}
