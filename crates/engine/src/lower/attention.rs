//! Attention, its heads and rotary position embedding.

use tilework_model::ttnn::ops::attention::{
    ChunkedScaledDotProductAttentionOp, ConcatenateHeadsOp, FlashMlaPrefillOp, IndexerScoreDsaOp,
    NLPConcatHeadsDecodeOp, NLPConcatHeadsOp, NLPCreateQKVHeadsDecodeOp, PagedFlashMultiLatentAttentionDecodeOp,
    PagedScaledDotProductAttentionDecodeOp, RotaryEmbeddingLlamaOp, RotaryEmbeddingOp,
    ScaledDotProductAttentionDecodeOp, ScaledDotProductAttentionOp, SplitQueryKeyValueAndSplitHeadsOp,
};
use tilework_ops::{self as ops, Attention, Heads};

use super::*;

/// The attributes and optional tensors of an attention.
#[derive(Clone, Copy)]
struct Attributes {
    causal: bool,
    mask: Option<Slot>,
    scale: Option<f32>,
    window: Option<usize>,
    sink: Option<Slot>,
}

impl Attributes {
    fn resolve<'a>(self, args: &Args<'a>) -> Attention<'a> {
        let Self { causal, mask, scale, window, sink } = self;
        Attention { causal, mask: args.get(mask), scale, window, sink: args.get(sink) }
    }
}

/// The attributes that attention, decode attention and paged decode attention have in common.
macro_rules! attributes {
    ($op:expr, $lowering:expr) => {
        Attributes {
            causal: $op.is_causal,
            mask: $lowering.read_if(&$op.attention_mask),
            scale: $op.scale,
            window: optional_count("sliding_window_size", $op.sliding_window_size)?,
            sink: $lowering.read_if(&$op.attention_sink),
        }
    };
}

fn optional_count(name: &str, number: Option<u32>) -> Result<Option<usize>, Refusal> {
    number.map(|number| count(name, number)).transpose()
}

pub(super) fn attention<'m>(op: &'m ScaledDotProductAttentionOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [query, key, value] = [&op.query, &op.key, &op.value].map(|operand| lowering.read(operand));
    let by = attributes!(op, lowering);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::attention(&args[query], &args[key], &args[value], by.resolve(args), out)))
}

pub(super) fn decode<'m>(op: &'m ScaledDotProductAttentionDecodeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [query, key, value] = [&op.query, &op.key, &op.value].map(|operand| lowering.read(operand));
    let positions = lowering.read_if(&op.cur_pos_tensor);
    let by = attributes!(op, lowering);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| {
        let positions = args.get(positions);
        ops::attention_decode(&args[query], &args[key], &args[value], positions, by.resolve(args), out)
    }))
}

pub(super) fn paged_decode<'m>(
    op: &'m PagedScaledDotProductAttentionDecodeOp,
    lowering: &mut Lowering<'m>,
) -> Lowered<'m> {
    let [query, key, value] = [&op.query, &op.key, &op.value].map(|operand| lowering.read(operand));
    let (pages, positions) = (lowering.read(&op.page_table), lowering.read_if(&op.cur_pos_tensor));
    let by = attributes!(op, lowering);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| {
        let (positions, by) = (args.get(positions), by.resolve(args));
        ops::paged_attention_decode(&args[query], &args[key], &args[value], &args[pages], positions, by, out)
    }))
}

pub(super) fn chunked<'m>(op: &'m ChunkedScaledDotProductAttentionOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [query, key, value] = [&op.query, &op.key, &op.value].map(|operand| lowering.read(operand));
    let (pages, start) = (lowering.read(&op.page_table), lowering.read(&op.chunk_start_idx));
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| {
        // A position that does not fit `usize` is beyond the cache, too: the operation refuses it.
        let first = args[start].to_i64().first().map_or(usize::MAX, |&n| usize::try_from(n).unwrap_or(usize::MAX));
        ops::chunked_attention(&args[query], &args[key], &args[value], &args[pages], first, op.scale, out)
    }))
}

/// In latent attention the values are the first columns of the keys, unless they are given.
fn values(args: &Args<'_>, key: Slot, value: Option<Slot>, columns: usize) -> Result<Tensor, OpError> {
    if let Some(value) = args.get(value) {
        return Ok(value.clone());
    }
    let key = &args[key];
    let mut ends: Vec<i64> = key.shape().iter().map(|&n| n as i64).collect();
    if let Some(last) = ends.last_mut() {
        *last = columns as i64;
    }
    ops::slice(key, &vec![0; ends.len()], &ends, &vec![1; ends.len()])
}

pub(super) fn latent<'m>(op: &'m FlashMlaPrefillOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (query, key) = (lowering.read(&op.query), lowering.read(&op.key));
    let value = lowering.read_if(&op.value);
    let mask = lowering.read_if(&op.attention_mask);
    let by = Attributes { causal: op.is_causal, mask, scale: op.scale, window: None, sink: None };
    let out = lowering.make(&op.out)?;
    let columns = count("head_dim_v", op.head_dim_v)?;
    Ok(one(move |args| {
        let value = values(args, key, value, columns)?;
        ops::attention(&args[query], &args[key], &value, by.resolve(args), out)
    }))
}

pub(super) fn latent_paged_decode<'m>(
    op: &'m PagedFlashMultiLatentAttentionDecodeOp,
    lowering: &mut Lowering<'m>,
) -> Lowered<'m> {
    let (query, key) = (lowering.read(&op.query), lowering.read(&op.key));
    let value = lowering.read_if(&op.value);
    let (pages, positions) = (lowering.read(&op.page_table), lowering.read_if(&op.cur_pos_tensor));
    let by = Attributes {
        causal: op.is_causal,
        mask: lowering.read_if(&op.attention_mask),
        scale: op.scale,
        window: None,
        sink: lowering.read_if(&op.attention_sink),
    };
    let out = lowering.make(&op.out)?;
    let columns = count("head_dim_v", op.head_dim_v)?;
    Ok(one(move |args| {
        let value = values(args, key, value, columns)?;
        let (positions, by) = (args.get(positions), by.resolve(args));
        ops::paged_attention_decode(&args[query], &args[key], &value, &args[pages], positions, by, out)
    }))
}

/// Joins heads: one operand, one result, whose shape and type follow from the operand's.
fn joined<'m>(
    input: &'m TensorRef,
    out: &'m TensorRef,
    lowering: &mut Lowering<'m>,
    join: impl Fn(&Tensor) -> Result<Tensor, OpError> + 'm,
) -> Lowered<'m> {
    let input = lowering.read(input);
    lowering.make(out)?;
    Ok(one(move |args| join(&args[input])))
}

pub(super) fn concatenate_heads<'m>(op: &'m ConcatenateHeadsOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    joined(&op.input, &op.out, lowering, ops::concatenate_heads)
}

pub(super) fn nlp_concat_heads<'m>(op: &'m NLPConcatHeadsOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    joined(&op.input, &op.out, lowering, ops::nlp_concat_heads)
}

pub(super) fn nlp_concat_heads_decode<'m>(op: &'m NLPConcatHeadsDecodeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let heads = count("num_heads", op.num_heads)?;
    joined(&op.input, &op.out, lowering, move |input| ops::nlp_concat_heads_decode(input, heads))
}

/// Splits into heads, with three results.
fn of_heads<'m>(f: impl Fn(&Args<'_>) -> Result<Heads, OpError> + 'm) -> Action<'m> {
    many(move |args| f(args).map(|Heads { query, key, value }| vec![query, key, value]))
}

pub(super) fn create_heads_decode<'m>(op: &'m NLPCreateQKVHeadsDecodeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    if op.batch_offset.is_some() || op.slice_size.is_some() {
        return Err(Refusal::unsupported("a part of the batch"));
    }
    let input = lowering.read(&op.input);
    for out in [&op.q_out, &op.k_out, &op.v_out] {
        lowering.make(out)?;
    }
    let heads = count("num_heads", op.num_heads)?;
    let key_heads = optional_count("num_kv_heads", op.num_kv_heads)?.unwrap_or(heads);
    Ok(of_heads(move |args| ops::nlp_create_qkv_heads_decode(&args[input], heads, key_heads)))
}

pub(super) fn split_heads<'m>(op: &'m SplitQueryKeyValueAndSplitHeadsOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (input, kv) = (lowering.read(&op.input), lowering.read_if(&op.kv_input));
    for out in [&op.q_out, &op.k_out, &op.v_out] {
        lowering.make(out)?;
    }
    let heads = count("num_heads", op.num_heads)?;
    let key_heads = optional_count("num_kv_heads", op.num_kv_heads)?;
    Ok(of_heads(move |args| ops::split_qkv_heads(&args[input], args.get(kv), heads, key_heads, op.transpose_key)))
}

pub(super) fn rotary<'m>(op: &'m RotaryEmbeddingOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [input, cos, sin] = [&op.input, &op.cos_cache, &op.sin_cache].map(|operand| lowering.read(operand));
    let out = lowering.make(&op.out)?;
    let token = optional_count("token_index", op.token_index)?;
    Ok(one(move |args| ops::rotary_embedding(&args[input], &args[cos], &args[sin], token, out)))
}

pub(super) fn rotary_llama<'m>(op: &'m RotaryEmbeddingLlamaOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [input, cos, sin] = [&op.input, &op.cos_cache, &op.sin_cache].map(|operand| lowering.read(operand));
    let matrix = lowering.read(&op.trans_mat);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| {
        ops::rotary_embedding_llama(&args[input], &args[cos], &args[sin], &args[matrix], op.is_decode_mode, out)
    }))
}

/// On a mesh each device has a run of the queries, in the order of the axis that the operation
/// names or, without one, of all devices.
pub(super) fn indexer_scores<'m>(op: &'m IndexerScoreDsaOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let mesh = lowering.mesh;
    let axis = op.cluster_axis.map(super::ccl::axis).transpose()?;
    let operands = [&op.query, &op.key, &op.weights].map(|operand| lowering.read(operand));
    let out = lowering.make(&op.out)?;
    let first = count("chunk_start_idx", op.chunk_start_idx)?;
    if mesh.devices() == 1 {
        let [query, key, weights] = operands;
        return Ok(one(move |args| ops::indexer_scores(&args[query], &args[key], &args[weights], first, out)));
    }
    Ok(Action::Collective(Box::new(move |values| {
        let [query, key, weights] = values else { return Ok(Vec::new()) };
        let scores = (0..mesh.devices()).map(|device| {
            let rank = match axis {
                Some(0) => device / mesh.columns,
                Some(_) => device % mesh.columns,
                None => device,
            };
            let query = query.on(device);
            let before = query.shape().dims().get(2).map_or(0, |queries| rank * queries);
            ops::indexer_scores(query, key.on(device), weights.on(device), first.saturating_add(before), out)
        });
        let scores: Vec<Tensor> = scores.collect::<Result<_, _>>()?;
        Ok(Value::shards(scores).into_iter().collect())
    })))
}
