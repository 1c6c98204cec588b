//! Sparse products: blocks of rows times the weights of experts, of which flags choose some.
//!
//! All blocks are computed, and those that are not chosen become zeros, as in host arithmetic.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::matmul::SparseMatmulOp;
use tilework_ops::DType;

use super::eltwise::{cast_to, is_integer};
use super::matmul::Shape;
use super::norm::{one, rows};
use super::rearrange::Part;
use super::stage::Line;
use crate::recipe::{Planned, Recipe, Task};

pub(super) fn matmul(op: &SparseMatmulOp, task: &Task<'_>) -> Planned {
    let [a, b, flags] = [task.operand(0)?, task.operand(1)?, task.operand(2)?];
    let (result, site) = (task.result()?, task.site);
    if op.nnz.is_some_and(|stated| stated != 0) {
        return Err("a stated number of blocks, which the host checks".into());
    }
    let ([a0, a1, m, k], [1, experts, inner, n]) = (a.spec.logical_shape(), b.spec.logical_shape()) else {
        return Err("operands of other than four dimensions".into());
    };
    let (a0, a1, m, k, experts, n) = (*a0, *a1, *m, *k, *experts, *n);
    let of_weights = !op.is_input_a_sparse;
    let outer = if of_weights { [a0 * a1, experts] } else { [a0, a1] };
    let blocks = outer[0] * outer[1];
    let count = |dims: &[usize]| dims.iter().product::<usize>();
    if k != *inner
        || (!of_weights && a1 != experts)
        || count(flags.spec.logical_shape()) != blocks
        || count(result.spec.logical_shape()) != blocks * m * n
        || blocks * m * k * n == 0
    {
        return Err("operands of other sides".into());
    }
    if [a, b, result].iter().any(|of| !matches!(of.spec.dtype(), DType::F32 | DType::BF16)) {
        return Err("blocks of other types than numbers of 16 or 32 bits".into());
    }
    let mut recipe = Recipe::default();
    let left = recipe.tiles(&[outer[0], outer[1], m, k], a.spec.dtype())?;
    let block = (m * k) as i64;
    let step = if of_weights { [block, 0] } else { [block * a1 as i64, block] };
    let part = Part::whole(a, 0, left.of().spec.logical_shape(), &[step[0], step[1], k as i64, 1]);
    recipe.rearrange(vec![part], 0, left.of(), site)?;
    let right = recipe.tiles(&[outer[0], outer[1], k, n], b.spec.dtype())?;
    let part = Part::whole(b, 0, right.of().spec.logical_shape(), &[0, (k * n) as i64, n as i64, 1]);
    recipe.rearrange(vec![part], 0, right.of(), site)?;
    let made = recipe.tiles(&[outer[0], outer[1], m, n], result.spec.dtype())?;
    let [tiles_of_rows, tiles_of_inner] = left.of().spec.shape_in_pages();
    let batch = u32::try_from(blocks).map_err(|_| "too many blocks")?;
    let columns = right.of().spec.shape_in_pages()[1];
    let shape = Shape { batch, rows: tiles_of_rows / batch, inner: tiles_of_inner, columns };
    recipe.product(shape, [left.of(), right.of(), made.of()], op.compute_config.as_ref(), site)?;
    if op.nnz == Some(0) {
        recipe.same_elements(made.of(), result, site)?;
        return Ok(recipe);
    }
    let mut chosen = recipe.in_tiles(flags, &[outer[0], outer[1], 1, 1], site)?;
    if is_integer(flags.spec.dtype()) {
        let numbers = recipe.tiles(&[outer[0], outer[1], 1, 1], DType::F32)?;
        cast_to(&mut recipe, chosen.of(), numbers.of(), site)?;
        chosen = numbers;
    }
    let zeros = recipe.tiles(&[outer[0], outer[1], m, n], result.spec.dtype())?;
    let select = Line::plain(Step::new(Function::Where).of(1, 0, 2).to(0));
    let others = vec![(chosen.of(), vec![one(Function::Fill, 2, 0.0), select])];
    recipe.stages.push(rows("sparse-blocks", (made.of(), zeros.of()), others, Vec::new(), site)?);
    recipe.same_elements(zeros.of(), result, site)?;
    Ok(recipe)
}
