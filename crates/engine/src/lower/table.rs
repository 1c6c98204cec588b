//! Which kinds are supported, and by which function.

use tilework_model::ttnn::{Op, OpKind};

use super::*;
use crate::support::Support;

/// Generates both [`support`] and [`lower`] from one list, without a wildcard: a kind that is
/// missing here does not compile.
macro_rules! kinds {
    ({ $($kind:ident => $function:path),* $(,)? } $({ $because:literal: $($refused:ident),* $(,)? })*) => {
        /// Whether a kind is supported.
        pub(crate) fn support(kind: OpKind) -> Support {
            match kind {
                $(OpKind::$kind => Support::Yes,)*
                $($(OpKind::$refused => Support::No($because),)*)*
            }
        }

        /// Lowers an operation.
        pub(super) fn lower<'m>(op: &'m Op, lowering: &mut Lowering<'m>) -> Lowered<'m> {
            match op {
                $(Op::$kind(op) => $function(op, lowering),)*
                $($(Op::$refused(_) => Err(Refusal::unsupported($because)),)*)*
            }
        }
    };
}

kinds! {
    {
        Arange => creation::arange,
        Constant => creation::constant,
        Empty => creation::empty,
        Full => creation::full,
        NamedFull => creation::named_full,
        Rand => creation::rand,
        Assign => layout::assign,
        Copy => layout::copy,
        Dropout => eltwise::dropout,
        EltwiseBinary => eltwise::binary,
        EltwiseBinaryAtan2 => eltwise::atan2,
        EltwiseBinaryComposite => eltwise::binary_composite,
        EltwiseBinaryCompositeScalar => eltwise::binary_scalar,
        EltwiseTernaryWhere => eltwise::ternary_where,
        EltwiseUnary => eltwise::unary,
        EltwiseUnaryComposite => eltwise::unary_composite,
        ExperimentalEltwiseBinaryBackward => eltwise::backward,
        EltwiseQuantization => quant::quantization,
        Cumulative => cumulative::cumulative,
        CumSum => reduction::cumsum,
        CumProd => reduction::cumprod,
        Reduction => reduction::reduction,
        ReductionArgMax => reduction::argmax,
        ReductionProd => reduction::prod,
        Sort => reduction::sort,
        Sampling => reduction::sampling,
        TopK => reduction::topk,
        Conv1d => conv::conv1d,
        Conv2d => conv::conv2d,
        Conv3d => conv::conv3d,
        ConvTranspose2d => conv::conv_transpose2d,
        PrepareConv2dBias => conv::prepare_bias,
        PrepareConv2dWeights => conv::prepare_weights,
        PrepareConv3dWeights => conv::prepare_weights3d,
        PrepareConvTranspose2dBias => conv::prepare_bias_transposed,
        PrepareConvTranspose2dWeights => conv::prepare_weights_transposed,
        GlobalAvgPool2d => pool::global_average,
        MaxPool2dWithIndices => pool::max_with_indices,
        Pool2d => pool::pool2d,
        Upsample => pool::upsample,
        Linear => matmul::linear,
        Matmul => matmul::matmul,
        AllToAllCombine => moe::combine,
        AllToAllDispatch => moe::dispatch,
        AllToAllDispatchMetadata => moe::dispatch_metadata,
        MoeExpertTokenRemap => moe::remap,
        SparseMatmul => moe::sparse_matmul,
        TopKRouterGpt => moe::router,
        AdamW => training::adamw,
        SDPABackward => training::sdpa_backward,
        SDPAForward => training::sdpa_forward,
        Concat => movement::concat,
        Pad => movement::pad,
        Permute => movement::permute,
        Repeat => movement::repeat,
        RepeatInterleave => movement::repeat_interleave,
        Reshape => movement::reshape,
        Slice => movement::slice,
        Transpose => movement::transpose,
        Embedding => gather::embedding,
        EmbeddingBackward => gather::embedding_backward,
        RowsGather => rows::gather,
        RowsScatter => rows::scatter,
        Gather => gather::gather,
        Scatter => gather::scatter,
        BatchNormInference => norm::batch_norm_inference,
        BatchNormTraining => norm::batch_norm_training,
        DitRMSNormUnaryFused => norm::dit_rms_norm,
        GroupNorm => norm::group_norm,
        LayerNorm => norm::layer_norm,
        LayerNormPostAllGather => norm::layer_norm_after,
        LayerNormPreAllGather => norm::layer_norm_before,
        RMSNormPreAllGather => norm::rms_norm_before,
        RMSNorm => norm::rms_norm,
        Softmax => norm::softmax,
        ChunkedScaledDotProductAttention => attention::chunked,
        ConcatenateHeads => attention::concatenate_heads,
        FlashMlaPrefill => attention::latent,
        IndexerScoreDsa => attention::indexer_scores,
        NLPConcatHeads => attention::nlp_concat_heads,
        NLPConcatHeadsDecode => attention::nlp_concat_heads_decode,
        NLPCreateQKVHeadsDecode => attention::create_heads_decode,
        PagedFlashMultiLatentAttentionDecode => attention::latent_paged_decode,
        PagedScaledDotProductAttentionDecode => attention::paged_decode,
        RotaryEmbedding => attention::rotary,
        RotaryEmbeddingLlama => attention::rotary_llama,
        ScaledDotProductAttention => attention::attention,
        ScaledDotProductAttentionDecode => attention::decode,
        SplitQueryKeyValueAndSplitHeads => attention::split_heads,
        FillCache => kv_cache::fill,
        PagedFillCache => kv_cache::paged_fill,
        PagedUpdateCache => kv_cache::paged_update,
        UpdateCache => kv_cache::update,
        AggregateTensor => ccl::aggregate,
        AllGather => ccl::all_gather,
        AllReduce => ccl::all_reduce,
        AllReduceAsync => ccl::all_reduce_async,
        DistributeTensor => ccl::distribute,
        DistributedRMSNorm => ccl::distributed_rms_norm,
        MeshPartition => ccl::mesh_partition,
        PointToPoint => ccl::point_to_point,
        ReduceScatter => ccl::reduce_scatter,
        BitcastConvert => layout::bitcast_convert,
        Deallocate => layout::deallocate,
        FromDevice => layout::from_device,
        GetDevice => layout::get_device,
        ToDevice => layout::to_device,
        ToLayout => layout::to_layout,
        ToMemoryConfig => layout::to_memory_config,
        Typecast => layout::typecast,
        WriteTensor => layout::write_tensor,
        CreateGlobalSemaphore => layout::create_semaphore,
        ResetGlobalSemaphore => layout::reset_semaphore,
        BeginTraceCapture => control::begin_trace,
        EndTraceCapture => control::end_trace,
        ExecuteTrace => control::execute_trace,
        CaptureOrExecuteTrace => control::traced,
        FuncCall => control::call,
        LoadCached => control::load_cached,
        Case => control::case,
        Cpu => native::cpu,
        WhileLoop => control::while_loop,
        Annotate => debug::annotate,
        Breakpoint => debug::breakpoint,
        DumpTensor => debug::dump_tensor,
        MemorySnapshot => debug::memory_snapshot,
        Print => debug::print,
        RegionEnd => debug::region_end,
        RegionStart => debug::region_start,
    }
    { "the program's own kernels need an engine with a chip": Generic }
    { "files that a program names are not read": LoadTensor }
    { "one fused kernel for machines of 32 chips, whose weights are packed in a layout of its own":
        MoeCompute, MoeGpt, PrepareMoEComputeW0W1Weights, PrepareMoEComputeW2Weights }
    { "it only serves MoeComputeOp": AllocateMoeComputeSemaphore }
    { "it reads the private buffers of MoeGptOp": SelectiveReduceCombine }
}
