//! The kinds of operations, a module for each family.
//!
//! [`Op`] is an operation with its arguments, [`OpKind`] its kind alone. Fields have the schema's
//! names; `in` and `type`, which are keywords of Rust, are `input` and `kind`.

pub mod attention;
pub mod ccl;
pub mod control;
pub mod conv;
pub mod creation;
pub mod data_movement;
pub mod debug;
pub mod eltwise;
pub mod embedding;
pub mod fused;
pub mod generic;
pub mod kv_cache;
pub mod layout;
pub mod matmul;
pub mod moe;
pub mod normalization;
pub mod pool;
pub mod quantization;
pub mod reduction;
pub mod trace;
pub mod training;

use serde::{Serialize, Serializer};

use crate::error::Result;
use crate::flat::FlatReader;
use crate::flat::field::table_at;
use crate::operand::{Direction, Operand, Visitor};

macro_rules! operations {
    ($($family:ident: $($kind:ident($table:ident)),*;)*) => {
        /// The kind of an operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is the kind of the table of that name")]
        pub enum OpKind { $($($kind),*),* }

        impl OpKind {
            /// All kinds, by family.
            pub const ALL: &'static [OpKind] = &[$($(OpKind::$kind),*),*];

            /// The name of its table in the schema: `Conv2dOp`.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$kind => stringify!($table)),*),*
                }
            }

            /// The family it belongs to: `conv`.
            pub const fn family(self) -> &'static str {
                match self {
                    $($(Self::$kind => stringify!($family)),*),*
                }
            }
        }

        /// In data a kind is named without the `Op` of its table: `eltwise_binary`.
        impl Serialize for OpKind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name = match self {
                    $($(Self::$kind => stringify!($kind)),*),*
                };
                serializer.serialize_str(&crate::data::name(name))
            }
        }

        impl Serialize for Op {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($(Self::$kind(table) => crate::data::member(stringify!($kind), table, serializer)),*),*
                }
            }
        }

        /// An operation with its arguments.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant has the table of that name")]
        #[allow(clippy::large_enum_variant, reason = "convolutions are large, rare, and few; a box would be on every path to them")]
        pub enum Op { $($($kind($family::$table)),*),* }

        impl Op {
            /// Its kind.
            pub const fn kind(&self) -> OpKind {
                match self {
                    $($(Self::$kind(_) => OpKind::$kind),*),*
                }
            }

            /// Reads the table of that kind.
            pub(crate) fn read(reader: &mut FlatReader, kind: OpKind, at: usize) -> Result<Self> {
                match kind {
                    $($(OpKind::$kind => table_at(reader, at).map(Self::$kind)),*),*
                }
            }

            /// Visits each tensor of the operation, in the order of the schema's fields.
            pub fn visit_tensors<'a>(&'a self, visitor: &mut Visitor<'_, 'a>) {
                match self {
                    $($(Self::$kind(table) => {
                        crate::flat::field::Tabular::visit_fields(table, None, Direction::In, visitor);
                    })*)*
                }
            }
        }
    };
}

operations! {
    creation: Arange(ArangeOp), Assign(AssignOp), Constant(ConstantOp), Empty(EmptyOp), Full(FullOp),
        NamedFull(NamedFullOp), Rand(RandOp), Copy(CopyOp);
    eltwise: Dropout(DropoutOp), EltwiseBinaryComposite(EltwiseBinaryCompositeOp),
        EltwiseBinaryCompositeScalar(EltwiseBinaryCompositeScalarOp), EltwiseBinary(EltwiseBinaryOp),
        EltwiseBinaryAtan2(EltwiseBinaryAtan2Op),
        EltwiseTernaryWhere(EltwiseTernaryWhereOp), EltwiseUnaryComposite(EltwiseUnaryCompositeOp),
        EltwiseUnary(EltwiseUnaryOp), ExperimentalEltwiseBinaryBackward(ExperimentalEltwiseBinaryBackwardOp);
    quantization: EltwiseQuantization(EltwiseQuantizationOp);
    reduction: CumSum(CumSumOp), CumProd(CumProdOp), ReductionArgMax(ReductionArgMaxOp), Reduction(ReductionOp),
        ReductionProd(ReductionProdOp), Sampling(SamplingOp), Sort(SortOp), TopK(TopKOp),
        TopKRouterGpt(TopKRouterGptOp), Cumulative(CumulativeOp);
    matmul: Linear(LinearOp), Matmul(MatmulOp), SparseMatmul(SparseMatmulOp);
    conv: Conv1d(Conv1dOp), Conv2d(Conv2dOp), ConvTranspose2d(ConvTranspose2dOp), Conv3d(Conv3dOp),
        PrepareConv2dBias(PrepareConv2dBiasOp), PrepareConv2dWeights(PrepareConv2dWeightsOp),
        PrepareConv3dWeights(PrepareConv3dWeightsOp), PrepareConvTranspose2dBias(PrepareConvTranspose2dBiasOp),
        PrepareConvTranspose2dWeights(PrepareConvTranspose2dWeightsOp);
    pool: GlobalAvgPool2d(GlobalAvgPool2dOp), MaxPool2dWithIndices(MaxPool2dWithIndicesOp), Pool2d(Pool2dOp),
        Upsample(UpsampleOp);
    data_movement: Concat(ConcatOp), Gather(GatherOp), Pad(PadOp), Permute(PermuteOp),
        RepeatInterleave(RepeatInterleaveOp), Repeat(RepeatOp), Reshape(ReshapeOp), Scatter(ScatterOp),
        Slice(SliceOp), Transpose(TransposeOp), RowsGather(RowsGatherOp), RowsScatter(RowsScatterOp);
    normalization: BatchNormInference(BatchNormInferenceOp), BatchNormTraining(BatchNormTrainingOp),
        DistributedRMSNorm(DistributedRMSNormOp), DitRMSNormUnaryFused(DitRMSNormUnaryFusedOp),
        GroupNorm(GroupNormOp), LayerNorm(LayerNormOp), LayerNormPreAllGather(LayerNormPreAllGatherOp),
        LayerNormPostAllGather(LayerNormPostAllGatherOp), RMSNormPreAllGather(RMSNormPreAllGatherOp),
        RMSNorm(RMSNormOp), Softmax(SoftmaxOp);
    attention: ChunkedScaledDotProductAttention(ChunkedScaledDotProductAttentionOp),
        ConcatenateHeads(ConcatenateHeadsOp), RotaryEmbeddingLlama(RotaryEmbeddingLlamaOp),
        RotaryEmbedding(RotaryEmbeddingOp), NLPCreateQKVHeadsDecode(NLPCreateQKVHeadsDecodeOp),
        NLPConcatHeads(NLPConcatHeadsOp), IndexerScoreDsa(IndexerScoreDsaOp),
        NLPConcatHeadsDecode(NLPConcatHeadsDecodeOp),
        PagedFlashMultiLatentAttentionDecode(PagedFlashMultiLatentAttentionDecodeOp),
        PagedScaledDotProductAttentionDecode(PagedScaledDotProductAttentionDecodeOp),
        ScaledDotProductAttention(ScaledDotProductAttentionOp),
        ScaledDotProductAttentionDecode(ScaledDotProductAttentionDecodeOp), FlashMlaPrefill(FlashMlaPrefillOp),
        SplitQueryKeyValueAndSplitHeads(SplitQueryKeyValueAndSplitHeadsOp);
    training: AdamW(AdamWOp), SDPAForward(SDPAForwardOp), SDPABackward(SDPABackwardOp);
    embedding: EmbeddingBackward(EmbeddingBackwardOp), Embedding(EmbeddingOp);
    kv_cache: FillCache(FillCacheOp), PagedFillCache(PagedFillCacheOp), PagedUpdateCache(PagedUpdateCacheOp),
        UpdateCache(UpdateCacheOp);
    ccl: AggregateTensor(AggregateTensorOp), AllGather(AllGatherOp), AllReduceAsync(AllReduceAsyncOp),
        AllReduce(AllReduceOp), AllToAllCombine(AllToAllCombineOp),
        AllToAllDispatchMetadata(AllToAllDispatchMetadataOp), AllToAllDispatch(AllToAllDispatchOp),
        DistributeTensor(DistributeTensorOp), MeshPartition(MeshPartitionOp), PointToPoint(PointToPointOp),
        ReduceScatter(ReduceScatterOp);
    moe: MoeExpertTokenRemap(MoeExpertTokenRemapOp), MoeGpt(MoeGptOp),
        PrepareMoEComputeW0W1Weights(PrepareMoEComputeW0W1WeightsOp),
        PrepareMoEComputeW2Weights(PrepareMoEComputeW2WeightsOp), MoeCompute(MoeComputeOp),
        SelectiveReduceCombine(SelectiveReduceCombineOp), CreateGlobalSemaphore(CreateGlobalSemaphoreOp),
        ResetGlobalSemaphore(ResetGlobalSemaphoreOp), AllocateMoeComputeSemaphore(AllocateMoeComputeSemaphoreOp);
    layout: BitcastConvert(BitcastConvertOp), Deallocate(DeallocateOp), FromDevice(FromDeviceOp),
        GetDevice(GetDeviceOp), ToDevice(ToDeviceOp), ToLayout(ToLayoutOp), ToMemoryConfig(ToMemoryConfigOp),
        Typecast(TypecastOp), WriteTensor(WriteTensorOp);
    trace: BeginTraceCapture(BeginTraceCaptureOp), CaptureOrExecuteTrace(CaptureOrExecuteTraceOp),
        EndTraceCapture(EndTraceCaptureOp), ExecuteTrace(ExecuteTraceOp);
    control: Cpu(CpuOp), FuncCall(FuncCallOp), LoadCached(LoadCachedOp), Case(CaseOp), WhileLoop(WhileLoopOp);
    generic: Generic(GenericOp);
    debug: DumpTensor(DumpTensorOp), LoadTensor(LoadTensorOp), Annotate(AnnotateOp), Breakpoint(BreakpointOp),
        Print(PrintOp), MemorySnapshot(MemorySnapshotOp), RegionStart(RegionStartOp), RegionEnd(RegionEndOp);
}

impl Op {
    /// The tensors of the operation, in the order of the schema's fields.
    pub fn operands(&self) -> Vec<Operand<'_>> {
        let mut operands = Vec::new();
        self.visit_tensors(&mut |role, direction, tensor| {
            operands.push(Operand { role: role.to_string(), direction, tensor });
        });
        operands
    }

    /// Indices of the programs that it calls, as in the file: it is not checked that they exist, or
    /// that no program calls itself.
    pub fn callees(&self) -> Vec<u32> {
        match self {
            Self::LoadCached(op) => vec![op.program_idx],
            Self::FuncCall(op) => vec![op.program_id],
            Self::Case(op) => op.branch_program_ids.clone(),
            Self::WhileLoop(op) => [op.body_program_id].into_iter().chain(op.condition_program_id).collect(),
            Self::CaptureOrExecuteTrace(op) => {
                vec![op.allocate_slots_program_id, op.capture_program_id, op.execute_program_id]
            }
            _ => Vec::new(),
        }
    }

    /// For kinds of many functions, the one that this is: `Add` of an `EltwiseBinaryOp`.
    pub fn function(&self) -> Option<&'static str> {
        Some(match self {
            Self::EltwiseUnary(op) => op.kind.name(),
            Self::EltwiseUnaryComposite(op) => op.kind.name(),
            Self::EltwiseBinary(op) => op.kind.name(),
            Self::EltwiseBinaryAtan2(op) => op.kind.name(),
            Self::EltwiseBinaryComposite(op) => op.kind.name(),
            Self::EltwiseBinaryCompositeScalar(op) => op.kind.name(),
            Self::EltwiseQuantization(op) => op.kind.name(),
            Self::ExperimentalEltwiseBinaryBackward(op) => op.kind.name(),
            Self::Reduction(op) => op.kind.name(),
            Self::NamedFull(op) => op.kind.name(),
            Self::Slice(op) => op.kind.name(),
            Self::Pool2d(op) => op.kind.name(),
            _ => return None,
        })
    }
}
