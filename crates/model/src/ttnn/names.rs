//! From the compiler's names of operations to their kinds in the file.
//!
//! Ordinals of the union of operations change from one compiler commit to the next; the names of
//! the operations, which are in each operation's debug text, hardly ever do. Several names can mean
//! the same kind, with a function in its `type` field: `ttnn.add` is an `EltwiseBinaryOp` of type
//! `Add`. Source: `TTNNOps.td` and the serializer `TTNNToFlatbuffer.cpp` of tt-mlir (commit
//! 19c86fca45); names beyond it are those of the compiler in `jax-tt-plugin`, seen in its files.

use super::OpKind;
use crate::schema::Edition;

/// What a name means: a kind, and for kinds of many functions the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The kind.
    pub kind: OpKind,
    /// Name of the value that its `type` field has.
    pub function: Option<&'static str>,
}

/// The name of the operation in its debug text: `ttnn.add` of `%2 = "ttnn.add"(%0, %1) : ...`.
/// Results come first, then the name in quotes, or without them where the operation has a syntax of
/// its own (`ttcore.load_cached(...)`).
pub fn name_of(debug_info: &str) -> Option<&str> {
    let mut rest = debug_info.trim_start();
    if rest.starts_with('%') {
        rest = rest.split_once('=')?.1.trim_start();
    }
    let name = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
            &rest[..end.unwrap_or(rest.len())]
        }
    };
    (!name.is_empty()).then_some(name)
}

/// What the name in a debug text means.
pub fn meaning_of(debug_info: &str, edition: Edition) -> Option<Meaning> {
    let name = name_of(debug_info)?;
    if name == "ttnn.atan2" && edition.atan2_apart() {
        return Some(Meaning { kind: OpKind::EltwiseBinaryAtan2, function: Some("Atan2") });
    }
    // A call is either of another program of the file or of native code; only its attribute
    // distinguishes them.
    if matches!(name, "func.call" | "call") {
        let kind = if debug_info.contains(HOISTED) { OpKind::Cpu } else { OpKind::FuncCall };
        return Some(Meaning { kind, function: None });
    }
    let found = NAMES.binary_search_by_key(&name, |(known, ..)| known).ok()?;
    let (_, kind, function) = NAMES[found];
    Some(Meaning { kind, function })
}

/// The attribute of calls whose function was moved to the host (`ttmlir/Utils.h`).
const HOISTED: &str = "ttir.cpu_hoist_call";

/// Sorted by name.
const NAMES: &[(&str, OpKind, Option<&str>)] = &[
    ("debug.annotate", OpKind::Annotate, None),
    ("debug.breakpoint", OpKind::Breakpoint, None),
    ("debug.memory_snapshot", OpKind::MemorySnapshot, None),
    ("debug.print", OpKind::Print, None),
    ("debug.region_end", OpKind::RegionEnd, None),
    ("debug.region_start", OpKind::RegionStart, None),
    ("ttcore.case", OpKind::Case, None),
    ("ttcore.load_cached", OpKind::LoadCached, None),
    ("ttcore.while_loop", OpKind::WhileLoop, None),
    ("ttnn.abs", OpKind::EltwiseUnary, Some("Abs")),
    ("ttnn.acos", OpKind::EltwiseUnary, Some("Acos")),
    ("ttnn.adamw", OpKind::AdamW, None),
    ("ttnn.add", OpKind::EltwiseBinary, Some("Add")),
    ("ttnn.aggregate_tensor", OpKind::AggregateTensor, None),
    ("ttnn.all_gather", OpKind::AllGather, None),
    ("ttnn.all_reduce", OpKind::AllReduce, None),
    ("ttnn.all_reduce_async", OpKind::AllReduceAsync, None),
    ("ttnn.all_to_all_combine", OpKind::AllToAllCombine, None),
    ("ttnn.all_to_all_dispatch", OpKind::AllToAllDispatch, None),
    ("ttnn.all_to_all_dispatch_metadata", OpKind::AllToAllDispatchMetadata, None),
    ("ttnn.allocate_moe_compute_semaphore", OpKind::AllocateMoeComputeSemaphore, None),
    ("ttnn.arange", OpKind::Arange, None),
    ("ttnn.argmax", OpKind::ReductionArgMax, None),
    ("ttnn.asin", OpKind::EltwiseUnary, Some("Asin")),
    ("ttnn.asinh", OpKind::EltwiseUnary, Some("Asinh")),
    ("ttnn.assign", OpKind::Assign, None),
    ("ttnn.atan", OpKind::EltwiseUnary, Some("Atan")),
    ("ttnn.atan2", OpKind::EltwiseBinaryComposite, Some("Atan2")),
    ("ttnn.avg_pool2d", OpKind::Pool2d, Some("AvgPool2d")),
    ("ttnn.batch_norm_inference", OpKind::BatchNormInference, None),
    ("ttnn.batch_norm_training", OpKind::BatchNormTraining, None),
    ("ttnn.begin_trace_capture", OpKind::BeginTraceCapture, None),
    ("ttnn.bitcast_convert", OpKind::BitcastConvert, None),
    ("ttnn.bitwise_and", OpKind::EltwiseBinaryComposite, Some("BitwiseAnd")),
    ("ttnn.bitwise_not", OpKind::EltwiseUnary, Some("BitwiseNot")),
    ("ttnn.bitwise_or", OpKind::EltwiseBinaryComposite, Some("BitwiseOr")),
    ("ttnn.bitwise_right_shift", OpKind::EltwiseBinaryComposite, Some("BitwiseRightShift")),
    ("ttnn.bitwise_xor", OpKind::EltwiseBinaryComposite, Some("BitwiseXor")),
    ("ttnn.capture_or_execute_trace", OpKind::CaptureOrExecuteTrace, None),
    ("ttnn.cbrt", OpKind::EltwiseUnaryComposite, Some("Cbrt")),
    ("ttnn.ceil", OpKind::EltwiseUnary, Some("Ceil")),
    ("ttnn.chunked_scaled_dot_product_attention", OpKind::ChunkedScaledDotProductAttention, None),
    ("ttnn.clamp_scalar", OpKind::EltwiseUnaryComposite, Some("ClampScalar")),
    ("ttnn.clamp_tensor", OpKind::EltwiseUnaryComposite, Some("ClampTensor")),
    ("ttnn.concat", OpKind::Concat, None),
    ("ttnn.concatenate_heads", OpKind::ConcatenateHeads, None),
    ("ttnn.constant", OpKind::Constant, None),
    ("ttnn.conv1d", OpKind::Conv1d, None),
    ("ttnn.conv2d", OpKind::Conv2d, None),
    ("ttnn.conv3d", OpKind::Conv3d, None),
    ("ttnn.conv_transpose2d", OpKind::ConvTranspose2d, None),
    ("ttnn.copy", OpKind::Copy, None),
    ("ttnn.cos", OpKind::EltwiseUnary, Some("Cos")),
    ("ttnn.create_global_semaphore", OpKind::CreateGlobalSemaphore, None),
    ("ttnn.cumprod", OpKind::CumProd, None),
    ("ttnn.cumsum", OpKind::CumSum, None),
    ("ttnn.cumulative", OpKind::Cumulative, None),
    ("ttnn.deallocate", OpKind::Deallocate, None),
    ("ttnn.dequantize", OpKind::EltwiseQuantization, Some("Dequantize")),
    ("ttnn.distribute_tensor", OpKind::DistributeTensor, None),
    ("ttnn.distributed_rms_norm", OpKind::DistributedRMSNorm, None),
    ("ttnn.dit_rms_norm_unary_fused", OpKind::DitRMSNormUnaryFused, None),
    ("ttnn.divide", OpKind::EltwiseBinary, Some("Divide")),
    ("ttnn.dropout", OpKind::Dropout, None),
    ("ttnn.dump_tensor", OpKind::DumpTensor, None),
    ("ttnn.embedding", OpKind::Embedding, None),
    ("ttnn.embedding_bw", OpKind::EmbeddingBackward, None),
    ("ttnn.empty", OpKind::Empty, None),
    ("ttnn.end_trace_capture", OpKind::EndTraceCapture, None),
    ("ttnn.eq", OpKind::EltwiseBinary, Some("Equal")),
    ("ttnn.erf", OpKind::EltwiseUnary, Some("Erf")),
    ("ttnn.erfc", OpKind::EltwiseUnary, Some("Erfc")),
    ("ttnn.execute_trace", OpKind::ExecuteTrace, None),
    ("ttnn.exp", OpKind::EltwiseUnary, Some("Exp")),
    ("ttnn.expm1", OpKind::EltwiseUnary, Some("Expm1")),
    ("ttnn.fill_cache", OpKind::FillCache, None),
    ("ttnn.flash_mla_prefill", OpKind::FlashMlaPrefill, None),
    ("ttnn.floor", OpKind::EltwiseUnary, Some("Floor")),
    ("ttnn.from_device", OpKind::FromDevice, None),
    ("ttnn.full", OpKind::Full, None),
    ("ttnn.gather", OpKind::Gather, None),
    ("ttnn.ge", OpKind::EltwiseBinary, Some("GreaterEqual")),
    ("ttnn.gelu", OpKind::EltwiseUnary, Some("Gelu")),
    ("ttnn.gelu_bw", OpKind::ExperimentalEltwiseBinaryBackward, Some("GeluBW")),
    ("ttnn.generic", OpKind::Generic, None),
    ("ttnn.get_device", OpKind::GetDevice, None),
    ("ttnn.global_avg_pool2d", OpKind::GlobalAvgPool2d, None),
    ("ttnn.group_norm", OpKind::GroupNorm, None),
    ("ttnn.gt", OpKind::EltwiseBinary, Some("GreaterThan")),
    ("ttnn.hardsigmoid", OpKind::EltwiseUnary, Some("Hardsigmoid")),
    ("ttnn.indexer_score_dsa", OpKind::IndexerScoreDsa, None),
    ("ttnn.isfinite", OpKind::EltwiseUnary, Some("IsFinite")),
    ("ttnn.layer_norm", OpKind::LayerNorm, None),
    ("ttnn.layer_norm_post_all_gather", OpKind::LayerNormPostAllGather, None),
    ("ttnn.layer_norm_pre_all_gather", OpKind::LayerNormPreAllGather, None),
    ("ttnn.le", OpKind::EltwiseBinary, Some("LessEqual")),
    ("ttnn.leaky_relu", OpKind::EltwiseUnary, Some("LeakyRelu")),
    ("ttnn.linear", OpKind::Linear, None),
    ("ttnn.load_tensor", OpKind::LoadTensor, None),
    ("ttnn.log", OpKind::EltwiseUnary, Some("Log")),
    ("ttnn.log1p", OpKind::EltwiseUnaryComposite, Some("Log1p")),
    ("ttnn.logical_and", OpKind::EltwiseBinary, Some("LogicalAnd")),
    ("ttnn.logical_left_shift", OpKind::EltwiseBinaryComposite, Some("LogicalLeftShift")),
    ("ttnn.logical_not", OpKind::EltwiseUnary, Some("LogicalNot")),
    ("ttnn.logical_or", OpKind::EltwiseBinary, Some("LogicalOr")),
    ("ttnn.logical_right_shift", OpKind::EltwiseBinary, Some("LogicalRightShift")),
    ("ttnn.logical_xor", OpKind::EltwiseBinary, Some("LogicalXor")),
    ("ttnn.lt", OpKind::EltwiseBinary, Some("LessThan")),
    ("ttnn.matmul", OpKind::Matmul, None),
    ("ttnn.max", OpKind::Reduction, Some("Max")),
    ("ttnn.max_pool2d", OpKind::Pool2d, Some("MaxPool2d")),
    ("ttnn.max_pool2d_with_indices", OpKind::MaxPool2dWithIndices, None),
    ("ttnn.maximum", OpKind::EltwiseBinaryComposite, Some("Maximum")),
    ("ttnn.mean", OpKind::Reduction, Some("Mean")),
    ("ttnn.mesh_partition", OpKind::MeshPartition, None),
    ("ttnn.min", OpKind::Reduction, Some("Min")),
    ("ttnn.minimum", OpKind::EltwiseBinaryComposite, Some("Minimum")),
    ("ttnn.mish", OpKind::EltwiseUnary, Some("Mish")),
    ("ttnn.moe_compute", OpKind::MoeCompute, None),
    ("ttnn.moe_expert_token_remap", OpKind::MoeExpertTokenRemap, None),
    ("ttnn.moe_gpt", OpKind::MoeGpt, None),
    ("ttnn.multiply", OpKind::EltwiseBinary, Some("Multiply")),
    ("ttnn.ne", OpKind::EltwiseBinary, Some("NotEqual")),
    ("ttnn.neg", OpKind::EltwiseUnary, Some("Neg")),
    ("ttnn.nlp_concat_heads", OpKind::NLPConcatHeads, None),
    ("ttnn.nlp_concat_heads_decode", OpKind::NLPConcatHeadsDecode, None),
    ("ttnn.nlp_create_qkv_heads_decode", OpKind::NLPCreateQKVHeadsDecode, None),
    ("ttnn.ones", OpKind::NamedFull, Some("Ones")),
    ("ttnn.pad", OpKind::Pad, None),
    ("ttnn.paged_fill_cache", OpKind::PagedFillCache, None),
    ("ttnn.paged_flash_multi_latent_attention_decode", OpKind::PagedFlashMultiLatentAttentionDecode, None),
    ("ttnn.paged_scaled_dot_product_attention_decode", OpKind::PagedScaledDotProductAttentionDecode, None),
    ("ttnn.paged_update_cache", OpKind::PagedUpdateCache, None),
    ("ttnn.permute", OpKind::Permute, None),
    ("ttnn.point_to_point", OpKind::PointToPoint, None),
    ("ttnn.pow_scalar", OpKind::EltwiseBinaryCompositeScalar, Some("PowScalar")),
    ("ttnn.pow_tensor", OpKind::EltwiseBinaryComposite, Some("Pow")),
    ("ttnn.prepare_conv2d_bias", OpKind::PrepareConv2dBias, None),
    ("ttnn.prepare_conv2d_weights", OpKind::PrepareConv2dWeights, None),
    ("ttnn.prepare_conv3d_weights", OpKind::PrepareConv3dWeights, None),
    ("ttnn.prepare_conv_transpose2d_bias", OpKind::PrepareConvTranspose2dBias, None),
    ("ttnn.prepare_conv_transpose2d_weights", OpKind::PrepareConvTranspose2dWeights, None),
    ("ttnn.prepare_moe_compute_w0_w1_weights", OpKind::PrepareMoEComputeW0W1Weights, None),
    ("ttnn.prepare_moe_compute_w2_weights", OpKind::PrepareMoEComputeW2Weights, None),
    ("ttnn.prod", OpKind::ReductionProd, None),
    ("ttnn.quantize", OpKind::EltwiseQuantization, Some("Quantize")),
    ("ttnn.rand", OpKind::Rand, None),
    ("ttnn.reciprocal", OpKind::EltwiseUnary, Some("Reciprocal")),
    ("ttnn.reduce_scatter", OpKind::ReduceScatter, None),
    ("ttnn.relu", OpKind::EltwiseUnary, Some("Relu")),
    ("ttnn.relu6", OpKind::EltwiseUnary, Some("Relu6")),
    ("ttnn.remainder", OpKind::EltwiseBinaryComposite, Some("Remainder")),
    ("ttnn.repeat", OpKind::Repeat, None),
    ("ttnn.repeat_interleave", OpKind::RepeatInterleave, None),
    ("ttnn.requantize", OpKind::EltwiseQuantization, Some("Requantize")),
    ("ttnn.reset_global_semaphore", OpKind::ResetGlobalSemaphore, None),
    ("ttnn.reshape", OpKind::Reshape, None),
    ("ttnn.rms_norm", OpKind::RMSNorm, None),
    ("ttnn.rms_norm_pre_all_gather", OpKind::RMSNormPreAllGather, None),
    ("ttnn.rotary_embedding", OpKind::RotaryEmbedding, None),
    ("ttnn.rotary_embedding_llama", OpKind::RotaryEmbeddingLlama, None),
    ("ttnn.round", OpKind::EltwiseUnary, Some("Round")),
    ("ttnn.rows_gather", OpKind::RowsGather, None),
    ("ttnn.rows_scatter", OpKind::RowsScatter, None),
    ("ttnn.rsqrt", OpKind::EltwiseUnary, Some("Rsqrt")),
    ("ttnn.sampling", OpKind::Sampling, None),
    ("ttnn.scaled_dot_product_attention", OpKind::ScaledDotProductAttention, None),
    ("ttnn.scaled_dot_product_attention_decode", OpKind::ScaledDotProductAttentionDecode, None),
    ("ttnn.scatter", OpKind::Scatter, None),
    ("ttnn.sdpa_bw", OpKind::SDPABackward, None),
    ("ttnn.sdpa_fw", OpKind::SDPAForward, None),
    ("ttnn.selective_reduce_combine", OpKind::SelectiveReduceCombine, None),
    ("ttnn.sigmoid", OpKind::EltwiseUnary, Some("Sigmoid")),
    ("ttnn.sign", OpKind::EltwiseUnary, Some("Sign")),
    ("ttnn.silu", OpKind::EltwiseUnary, Some("Silu")),
    ("ttnn.sin", OpKind::EltwiseUnary, Some("Sin")),
    ("ttnn.slice_dynamic", OpKind::Slice, Some("SliceDynamicOp")),
    ("ttnn.slice_static", OpKind::Slice, Some("SliceStaticOp")),
    ("ttnn.softmax", OpKind::Softmax, None),
    ("ttnn.sort", OpKind::Sort, None),
    ("ttnn.sparse_matmul", OpKind::SparseMatmul, None),
    ("ttnn.split_query_key_value_and_split_heads", OpKind::SplitQueryKeyValueAndSplitHeads, None),
    ("ttnn.sqrt", OpKind::EltwiseUnary, Some("Sqrt")),
    ("ttnn.subtract", OpKind::EltwiseBinary, Some("Subtract")),
    ("ttnn.sum", OpKind::Reduction, Some("Sum")),
    ("ttnn.tan", OpKind::EltwiseUnary, Some("Tan")),
    ("ttnn.tanh", OpKind::EltwiseUnary, Some("Tanh")),
    ("ttnn.to_device", OpKind::ToDevice, None),
    ("ttnn.to_layout", OpKind::ToLayout, None),
    ("ttnn.to_memory_config", OpKind::ToMemoryConfig, None),
    ("ttnn.topk", OpKind::TopK, None),
    ("ttnn.topk_router_gpt", OpKind::TopKRouterGpt, None),
    ("ttnn.transpose", OpKind::Transpose, None),
    ("ttnn.typecast", OpKind::Typecast, None),
    ("ttnn.update_cache", OpKind::UpdateCache, None),
    ("ttnn.upsample", OpKind::Upsample, None),
    ("ttnn.where", OpKind::EltwiseTernaryWhere, None),
    ("ttnn.write_tensor", OpKind::WriteTensor, None),
    ("ttnn.zeros", OpKind::NamedFull, Some("Zeros")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(NAMES.is_sorted_by(|(a, ..), (b, ..)| a < b));
    }

    #[test]
    fn every_kind_has_a_name() {
        for kind in OpKind::ALL {
            let named = NAMES.iter().any(|(_, named, _)| named == kind);
            assert!(named || matches!(kind, OpKind::Cpu | OpKind::FuncCall | OpKind::EltwiseBinaryAtan2), "{kind:?}");
        }
    }

    #[test]
    fn names_are_found_in_all_forms_of_text() {
        assert_eq!(name_of(r#"%2 = "ttnn.add"(%0, %1) : (tensor<1xf32>)"#), Some("ttnn.add"));
        assert_eq!(name_of(r#""ttnn.deallocate"(%arg0) <{force = false}>"#), Some("ttnn.deallocate"));
        assert_eq!(name_of("%0 = ttcore.load_cached(@main_const_eval_0, [])"), Some("ttcore.load_cached"));
        assert_eq!(name_of(r#"%values, %indices = "ttnn.sort"(%0)"#), Some("ttnn.sort"));
        assert_eq!(name_of(r#"%5:2 = "ttcore.while_loop"(%3)"#), Some("ttcore.while_loop"));
        assert_eq!(name_of(""), None);
        assert_eq!(name_of("%0"), None);
        assert_eq!(name_of("\"unterminated"), None);
    }

    #[test]
    fn calls_are_told_apart() {
        let kind = |text| meaning_of(text, Edition::default()).unwrap().kind;
        assert_eq!(kind("%1 = func.call @f(%0) : (tensor<1xf32>) -> tensor<1xf32>"), OpKind::FuncCall);
        assert_eq!(kind("%1 = call @f(%0) {ttir.cpu_hoist_call} : (tensor<1xf32>) -> tensor<1xf32>"), OpKind::Cpu);
        assert_eq!(kind(r#"%1 = "ttnn.relu"(%0)"#), OpKind::EltwiseUnary);
        assert_eq!(meaning_of("\"ttnn.unheard_of\"(%0)", Edition::default()), None);
        assert_eq!(meaning_of("\"ttnn.atan2\"(%0)", Edition::Plugin012).unwrap().kind, OpKind::EltwiseBinaryAtan2);
    }
}
