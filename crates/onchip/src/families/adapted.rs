//! Operations whose tensors are in other forms than their family takes, with the conversions in
//! front and behind: tensors in rows for functions of tiles, block formats for data movement.
//!
//! A tensor of another layout has the same elements, and one in a block format the same numbers in
//! bfloat16, so that only the rounding of a result in a block format is added: that which the
//! format has anyway.

use tilework_ops::DType;
use tilework_runtime::tensor::{Layout, Tensor, TensorDesc, TensorSpec};

use super::eltwise;
use crate::recipe::{At, Build, Made, Of, Planned, Recipe, Site, Task, Which};

/// The form that all families take, if a tensor has another one.
fn plain(spec: &TensorSpec) -> Result<Option<TensorSpec>, String> {
    let dtype = if spec.dtype().is_block() { DType::BF16 } else { spec.dtype() };
    if dtype == spec.dtype() && spec.layout() == Layout::TILE {
        return Ok(None);
    }
    let desc = TensorDesc::new(spec.logical_shape().to_vec()).dtype(dtype).layout(Layout::TILE);
    TensorSpec::new(&desc).map(Some).map_err(|e| e.to_string())
}

/// The same elements in another form.
fn convert(recipe: &mut Recipe, from: Of<'_>, to: Of<'_>, site: &Site) -> Result<(), String> {
    if from.spec.dtype() == to.spec.dtype() {
        return recipe.same_elements(from, to, site);
    }
    eltwise::cast_to(recipe, from, to, site)
}

/// Tensors of an inner recipe: as they are, or scratch tensors of the outer one in another form.
type Changed = Vec<Option<Made>>;

fn changed(specs: &[&TensorSpec], recipe: &mut Recipe) -> Result<Changed, String> {
    let made = specs.iter().map(|spec| {
        let form = plain(spec)?;
        form.map(|form| recipe.tiles(form.logical_shape(), form.dtype())).transpose()
    });
    made.collect()
}

/// The recipe of an operation by that of the same one on tensors in the form that all families
/// take.
pub(super) fn plan(task: &Task<'_>, inner: impl Fn(&Task<'_>) -> Planned) -> Planned {
    let specs: Vec<&TensorSpec> = task.results.iter().collect();
    let forms = |specs: &[&TensorSpec]| {
        let forms = specs.iter().map(|spec| Ok(plain(spec)?.unwrap_or_else(|| (*spec).clone())));
        forms.collect::<Result<Vec<_>, String>>()
    };
    let (operands, results) = (forms(task.operands)?, forms(&specs)?);
    if operands.iter().eq(task.operands.iter().copied()) && results.iter().eq(task.results) {
        return Err("tensors that are as they should be".into());
    }
    let operands: Vec<&TensorSpec> = operands.iter().collect();
    let changed_task = Task { operands: &operands, on_host: &[], results: &results, site: task.site };
    let Recipe { scratch, prepared, stages } = inner(&changed_task)?;
    let mut recipe = Recipe { scratch, prepared, stages: Vec::new() };
    let read = changed(task.operands, &mut recipe)?;
    let made = changed(&specs, &mut recipe)?;
    for (i, made) in read.iter().enumerate() {
        if let Some(made) = made {
            convert(&mut recipe, task.operand(i)?, made.of(), task.site)?;
        }
    }
    let which = |list: &Changed, otherwise: fn(usize) -> Which| -> Vec<Which> {
        let all = list.iter().enumerate();
        all.map(|(i, made)| made.as_ref().map_or(otherwise(i), |made| made.of().which)).collect()
    };
    let (reads, writes) = (which(&read, Which::Operand), which(&made, Which::Result));
    for stage in stages {
        recipe.stages.push(within(stage, reads.clone(), writes.clone()));
    }
    for (i, (made, spec)) in made.iter().zip(task.results).enumerate() {
        if let Some(made) = made {
            convert(&mut recipe, made.of(), Of { which: Which::Result(i), spec }, task.site)?;
        }
    }
    Ok(recipe)
}

/// A program whose operands and results are these tensors.
fn within(stage: Build, reads: Vec<Which>, writes: Vec<Which>) -> Build {
    Box::new(move |at| {
        let operands: Vec<&Tensor> = reads.iter().map(|which| which.of(at)).collect();
        let results: Vec<Tensor> = writes.iter().map(|which| which.of(at).clone()).collect();
        stage(&At { operands: &operands, scratch: at.scratch, results: &results, kernels: at.kernels })
    })
}
