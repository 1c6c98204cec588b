//! Latent attention: the values are the first columns of the keys, unless they are given.

use tilework_model::ttnn::ops::attention::{FlashMlaPrefillOp, PagedFlashMultiLatentAttentionDecodeOp};

use super::attention::{Attention, Decode, four, keyed, of_sequences, unpaged};
use super::rearrange::{Part, strides};
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task};

/// The first columns of a tensor with the elements of these dimensions.
fn columns(of: Of<'_>, all: [usize; 4], columns: usize, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    if columns == 0 || columns > all[3] {
        return Err(format!("values of {columns} columns, keys of {}", all[3]));
    }
    let dims = [all[0], all[1], all[2], columns];
    let made = recipe.rows(&dims, of.spec.dtype())?;
    recipe.rearrange(vec![Part::whole(of, 0, &dims, &strides(&all))], 0, made.of(), site)?;
    Ok(made)
}

pub(super) fn prefill(op: &FlashMlaPrefillOp, task: &Task<'_>) -> Planned {
    let (query, key) = (task.operand(0)?, task.operand(1)?);
    let mut recipe = Recipe::default();
    let given = op.value.is_some();
    let own =
        if given { None } else { Some(columns(key, four(key)?, op.head_dim_v as usize, &mut recipe, task.site)?) };
    let value = own.as_ref().map_or_else(|| task.operand(2), |made| Ok(made.of()))?;
    let mask = op.attention_mask.is_some().then(|| task.operand(2 + usize::from(given))).transpose()?;
    let (dims, depth) = keyed(key, value)?;
    let of = Attention::of([query, key, value], false, dims, depth, op.scale)?;
    of.of_prompt((None, op.is_causal, mask), recipe, task)
}

pub(super) fn paged_decode(op: &PagedFlashMultiLatentAttentionDecodeOp, task: &Task<'_>) -> Planned {
    let (query, key) = (task.operand(0)?, task.operand(1)?);
    let given = op.value.is_some();
    let table = task.operand(2 + usize::from(given))?;
    let mut recipe = Recipe::default();
    let (keys, dims) = unpaged(key, table, &mut recipe, task.site)?;
    let (values, value_dims) = if given {
        unpaged(task.operand(2)?, table, &mut recipe, task.site)?
    } else {
        let made = columns(keys.of(), dims, op.head_dim_v as usize, &mut recipe, task.site)?;
        (made, [dims[0], dims[1], dims[2], op.head_dim_v as usize])
    };
    let of = of_sequences(query, (keys.of(), dims), (values.of(), value_dims), (true, op.scale))?;
    let by = Decode {
        causal: op.is_causal,
        mask: op.attention_mask.is_some(),
        positions: op.cur_pos_tensor.is_some(),
        sink: op.attention_sink.is_some(),
        window: None,
    };
    by.plan(of, 3 + usize::from(given), recipe, task)
}
