//! Families of operations: from an operation and its tensors to a recipe, a module for each.

mod adapted;
mod attention;
mod batch;
mod caches;
mod chosen;
mod composed;
mod conv;
mod edges;
mod eltwise;
mod exact;
mod flash;
mod fused;
mod gathered;
mod gradients;
mod heads;
mod latent;
mod lines;
mod matmul;
mod movement;
mod norm;
mod optimizer;
mod places;
mod pool;
mod quantized;
mod random;
mod rearrange;
mod reduction;
mod rows;
mod rowwise;
mod sampled;
mod sparse;
pub(crate) mod split;
mod stage;
mod tiles;
mod weights;
mod window;

use tilework_model::ttnn::Op;
use tilework_model::ttnn::ops::creation::NamedFullOpType;
use tilework_model::ttnn::types::NumberType;
use tilework_ops::Fill;

use crate::recipe::{Planned, Task};

/// The recipe of an operation, or why there is none.
pub(crate) fn plan(op: &Op, task: &Task<'_>) -> Planned {
    // The bits of another form are others.
    if matches!(op, Op::BitcastConvert(_)) {
        return of_family(op, task);
    }
    in_any_form(task, |task| of_family(op, task))
}

/// A recipe on tensors in any form, by that on tensors in the form that families take.
pub(crate) fn in_any_form(task: &Task<'_>, plan: impl Fn(&Task<'_>) -> Planned) -> Planned {
    plan(task).or_else(|why| adapted::plan(task, plan).map_err(|_| why))
}

/// The recipe of an operation on tensors in a form that its family takes.
fn of_family(op: &Op, task: &Task<'_>) -> Planned {
    match op {
        Op::Conv1d(op) => conv::conv1d(op, task),
        Op::Conv2d(op) => conv::conv2d(op, task),
        Op::Conv3d(op) => conv::conv3d(op, task),
        Op::ConvTranspose2d(op) => conv::transposed(op, task),
        Op::PrepareConv2dBias(op) => weights::prepare_bias(op, task),
        Op::PrepareConv2dWeights(op) => weights::prepare_weights(op, task),
        Op::PrepareConv3dWeights(op) => weights::prepare_volume(op, task),
        Op::PrepareConvTranspose2dBias(op) => weights::prepare_transposed_bias(op, task),
        Op::PrepareConvTranspose2dWeights(op) => weights::prepare_transposed(op, task),
        Op::Linear(op) => matmul::linear(op, task),
        Op::SparseMatmul(op) => sparse::matmul(op, task),
        Op::Matmul(op) => matmul::matmul(op, task),
        Op::EltwiseBinary(op) => eltwise::binary(op, task),
        Op::EltwiseBinaryAtan2(_) => eltwise::atan2(task),
        Op::EltwiseBinaryComposite(op) => eltwise::binary_composite(op, task),
        Op::EltwiseBinaryCompositeScalar(op) => eltwise::binary_scalar(op, task),
        Op::Dropout(op) => random::dropout(op, task),
        Op::Rand(op) => random::rand(op, task),
        Op::ExperimentalEltwiseBinaryBackward(op) => eltwise::gelu_backward(op, task),
        Op::EltwiseTernaryWhere(op) => eltwise::select(op, task),
        Op::EltwiseUnary(op) => eltwise::unary(op, task),
        Op::EltwiseUnaryComposite(op) => eltwise::unary_composite(op, task),
        Op::Arange(op) => eltwise::arange(op, task),
        Op::Empty(_) => movement::full(Fill::Float(0.0), task),
        Op::Full(op) => movement::full(fill(&op.fill_value), task),
        Op::NamedFull(op) => movement::full(Fill::Float(f32::from(u8::from(op.kind == NamedFullOpType::Ones))), task),
        Op::ChunkedScaledDotProductAttention(op) => attention::chunked(op, task),
        Op::PagedScaledDotProductAttentionDecode(op) => attention::paged_decode(op, task),
        Op::FlashMlaPrefill(op) => latent::prefill(op, task),
        Op::PagedFlashMultiLatentAttentionDecode(op) => latent::paged_decode(op, task),
        Op::ScaledDotProductAttention(op) => attention::attention(op, task),
        Op::ScaledDotProductAttentionDecode(op) => attention::decode(op, task),
        Op::ConcatenateHeads(_) | Op::NLPConcatHeads(_) => heads::joined(task),
        Op::NLPConcatHeadsDecode(op) => heads::joined_decode(op, task),
        Op::NLPCreateQKVHeadsDecode(op) => heads::create_decode(op, task),
        Op::SplitQueryKeyValueAndSplitHeads(op) => heads::split(op, task),
        Op::RotaryEmbedding(op) => heads::rotary(op, task),
        Op::RotaryEmbeddingLlama(op) => heads::rotary_llama(op, task),
        Op::FillCache(op) => caches::fill(op, task),
        Op::UpdateCache(op) => caches::update(op, task),
        Op::PagedFillCache(op) => caches::paged_fill(op, task),
        Op::PagedUpdateCache(op) => caches::paged_update(op, task),
        Op::RowsGather(op) => rows::gather(op, task),
        Op::RowsScatter(op) => rows::scatter(op, task),
        Op::EmbeddingBackward(op) => rows::embedding_backward(op, task),
        Op::BatchNormInference(op) => batch::inference(op, task),
        Op::BatchNormTraining(op) => batch::training(op, task),
        Op::GroupNorm(op) => batch::group_norm(op, task),
        Op::LayerNorm(op) => norm::layer_norm(op, task),
        Op::RMSNorm(op) => norm::rms_norm(op, task),
        Op::Softmax(op) => norm::softmax(op, task),
        Op::LayerNormPreAllGather(op) => split::layer_norm_before(op, task),
        Op::LayerNormPostAllGather(op) => split::layer_norm_after(op, task),
        Op::RMSNormPreAllGather(op) => split::rms_norm_before(op, task),
        Op::DitRMSNormUnaryFused(op) => split::fused_rms_norm(op, task),
        Op::EltwiseQuantization(op) => quantized::quantization(op, task),
        Op::AdamW(op) => optimizer::adamw(op, task),
        Op::SDPAForward(op) => gradients::forward(op, task),
        Op::SDPABackward(op) => gradients::backward(op, task),
        Op::TopKRouterGpt(op) => chosen::router(op, task),
        Op::MoeExpertTokenRemap(op) => chosen::remap(op, task),
        Op::IndexerScoreDsa(op) => chosen::indexer(op, task),
        Op::Reduction(op) => reduction::reduction(op, task),
        Op::ReductionProd(op) => reduction::prod(op, task),
        Op::ReductionArgMax(op) => lines::arg_max(op, task),
        Op::Sampling(op) => sampled::sampling(op, task),
        Op::Sort(op) => lines::sort(op, task),
        Op::TopK(op) => lines::top_k(op, task),
        Op::CumSum(op) => lines::cumulative_sum(op, task),
        Op::CumProd(op) => lines::cumulative_product(op, task),
        Op::Cumulative(op) => lines::cumulative(op, task),
        Op::Scatter(op) => lines::scatter(op, task),
        Op::MaxPool2dWithIndices(op) => pool::largest_with_places(op, task),
        Op::Pool2d(op) => pool::pool2d(op, task),
        Op::GlobalAvgPool2d(op) => pool::global_average(op, task),
        Op::Upsample(op) => pool::upsample(op, task),
        Op::Typecast(_) => eltwise::typecast(task),
        Op::BitcastConvert(_) => movement::bits(task),
        Op::Concat(op) => movement::concat(op, task),
        Op::Embedding(_) => movement::embedding(task),
        Op::Gather(op) => movement::gather(op, task),
        Op::Pad(op) => movement::pad(op, task),
        Op::Permute(op) => movement::permute(op, task),
        Op::Repeat(op) => movement::repeat(op, task),
        Op::RepeatInterleave(op) => movement::repeat_interleave(op, task),
        Op::Slice(op) => movement::slice(op, task),
        Op::Transpose(op) => movement::transpose(op, task),
        Op::Reshape(_) | Op::ToLayout(_) | Op::ToMemoryConfig(_) | Op::Assign(_) => movement::same_elements(task),
        _ => Err("no device program for this kind of operation".into()),
    }
}

fn fill(value: &NumberType) -> Fill {
    match value {
        NumberType::FP(number) => Fill::Float(number.value),
        NumberType::I32(number) => Fill::Int(number.value),
    }
}
