//! Random numbers, and elements that are left out by them: the numbers of host arithmetic
//! (`tilework_ops`), bit by bit.
//!
//! The vector units have generators of their own, whose numbers depend on which unit makes which
//! element; the kernel `random` computes them on the data-movement cores instead.

use tilework_abi::addr::PageCount;
use tilework_abi::eltwise::{Function, Step};
use tilework_abi::random::{ELEMENTS, PAGE_BYTES, arg};
use tilework_abi::tensix::Processor;
use tilework_abi::walk::number;
use tilework_model::ttnn::ops::creation::RandOp;
use tilework_model::ttnn::ops::eltwise::DropoutOp;
use tilework_ops::DType;
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, Role, RuntimeError};

use super::norm::{one, rows, two};
use super::rearrange::Part;
use super::stage::Line;
use super::{eltwise, rearrange};
use crate::recipe::{At, Made, Planned, Recipe, Site, Task, Which};

impl Recipe {
    /// Numbers from 0 to below 1, those of the places of these dimensions in order.
    pub(super) fn fractions(&mut self, seed: u32, dims: &[usize], site: &Site) -> Result<Made, String> {
        let count = dims.iter().product::<usize>();
        let pages = count.div_ceil(ELEMENTS as usize);
        let made = self.rows(&[pages, ELEMENTS as usize], DType::F32)?;
        let pages = u32::try_from(pages).map_err(|_| "too many random numbers")?;
        let mut cores = site.cores(pages.div_ceil(2));
        cores.sort_by_key(|tile| (tile.y, tile.x));
        let numbers = number::words(cores.iter().map(|tile| (tile.x, tile.y))).ok_or("cores without numbers")?;
        let (which, step) = (made.of().which, 2 * cores.len() as u32);
        let program = move |at: &At<'_>| program(which, &numbers, [seed, pages, step], Cores::List(cores.clone()), at);
        self.stages.push(Box::new(program));
        let tiles = self.tiles(dims, DType::F32)?;
        let part = Part::whole(made.of(), 0, dims, &rearrange::strides(dims));
        self.rearrange(vec![part], 0, tiles.of(), site)?;
        Ok(tiles)
    }
}

fn program(
    which: Which,
    numbers: &[u32],
    [seed, pages, step]: [u32; 3],
    cores: Cores,
    at: &At<'_>,
) -> Result<Program, RuntimeError> {
    let address = which.of(at).buffer.address.word();
    let common = |which: u32| {
        let mut words = numbers.to_vec();
        words.resize(arg::WHICH as usize + 1, 0);
        for (at, word) in
            [(arg::SEED, seed), (arg::ADDRESS, address), (arg::PAGES, pages), (arg::STEP, step), (arg::WHICH, which)]
        {
            words[at as usize] = word;
        }
        words
    };
    let role = Role::all()
        .kernel(Processor::Brisc, at.kernels.get("random", Processor::Brisc)?)
        .kernel(Processor::Ncrisc, at.kernels.get("random", Processor::Ncrisc)?);
    let cb = |index| CircularBuffer { index, page_size: PAGE_BYTES, pages: PageCount::new(1) };
    Ok(Program::new("random", cores)
        .role(role)
        .circular_buffer(cb(0))
        .circular_buffer(cb(1))
        .common_args(ArgSet::Brisc, common(0))
        .common_args(ArgSet::Ncrisc, common(1)))
}

pub(super) fn rand(op: &RandOp, task: &Task<'_>) -> Planned {
    let (result, site) = (task.result()?, task.site);
    if eltwise::is_integer(result.spec.dtype()) {
        return Err("random numbers that are integers".into());
    }
    let mut recipe = Recipe::default();
    let fractions = recipe.fractions(op.seed, result.spec.logical_shape(), site)?;
    let lines = vec![one(Function::Scale, 0, op.high - op.low), one(Function::Shift, 0, op.low)];
    recipe.stages.push(rows("rand", (fractions.of(), result), Vec::new(), lines, site)?);
    Ok(recipe)
}

/// Elements times the scale, or zero where the number of their place is below the probability.
pub(super) fn dropout(op: &DropoutOp, task: &Task<'_>) -> Planned {
    let (x, result, site) = (task.operand(0)?, task.result()?, task.site);
    let dims = x.spec.logical_shape();
    if eltwise::is_integer(x.spec.dtype()) || eltwise::is_integer(result.spec.dtype()) {
        return Err("elements that are integers".into());
    }
    let mut recipe = Recipe::default();
    let seed = if op.use_per_device_seed { op.seed.wrapping_add(site.device as u32) } else { op.seed };
    let fractions = recipe.fractions(seed, dims, site)?;
    let lines = vec![
        one(Function::Fill, 2, op.prob),
        two(Function::Less, 1, 2),
        one(Function::Scale, 0, op.scale),
        one(Function::Fill, 2, 0.0),
        Line::plain(Step::new(Function::Where).of(1, 2, 0).to(0)),
    ];
    recipe.stages.push(rows("dropout", (x, result), vec![(fractions.of(), lines)], Vec::new(), site)?);
    Ok(recipe)
}
