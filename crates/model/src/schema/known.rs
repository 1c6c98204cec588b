//! The list of known schemas.
//!
//! Hashes and ordinals of `jax-tt-plugin` are those of files that it wrote; 0.1.0 also in `facts/ttnn-binary.md`,
//! section 6. Those of the public schema were computed from its text (section 1 of the same), and no file that states
//! them has been seen.

use super::{Edition, Known};
use crate::ttnn::OpKind::{self, self as K};

/// All schemas that are known.
pub(super) const KNOWN: &[Known] = &[
    Known {
        identifier: "TTNN",
        hash: "f36068002aa895e8e8abb85f8ea0b818812a4ffa7f2c24f3ede1df3183dd6478",
        name: "tt-mlir of August 2026",
        edition: Edition::August2026,
        ordinals: AUGUST_2026,
    },
    Known {
        identifier: "TTNN",
        hash: "4044bd09e5ea5fdb7c8ed4b4177dc4fac7bb90827063da7288effd3ec7c7ac9d",
        name: "jax-tt-plugin 0.1.0",
        edition: Edition::Plugin010,
        ordinals: PLUGIN_010,
    },
    Known {
        identifier: "TTNN",
        hash: "0e7c6fd538f27d0c196cacdc62c6d0963c1d0e9a687690fbeecc93834ea66fa9",
        name: "jax-tt-plugin 0.1.1",
        edition: Edition::Plugin011,
        ordinals: PLUGIN_011,
    },
    Known {
        identifier: "TTNN",
        hash: "305ea0bf66325da6c4d7b60dbc393196d24227ab7e59ab2ee84ce6755c995ca8",
        name: "jax-tt-plugin 0.1.2",
        edition: Edition::Plugin012,
        ordinals: PLUGIN_012,
    },
    Known {
        identifier: "TTNN",
        hash: "912b70aa54f878b01d094638d22c35ee6e20c7e7f1813913242a47e7f79c9bd2",
        name: "jax-tt-plugin 0.1.3",
        edition: Edition::Plugin013,
        ordinals: PLUGIN_013,
    },
    Known {
        identifier: "TTM0",
        hash: "dcfff37afffdddc22dde3c9e85e6a364193fdf761495360696b1dbe3376dc696",
        name: "tt-mlir of August 2026",
        edition: Edition::August2026,
        ordinals: &[],
    },
    Known {
        identifier: "TTSY",
        hash: "92f6a8a87b72abd510d53425c6cd90ab2e8ba161928ee94c8bdd6680f51d9cdb",
        name: "tt-mlir of August 2026",
        edition: Edition::August2026,
        ordinals: &[],
    },
    Known {
        identifier: "TTSY",
        hash: "38882bf3c157629e029334c0770b9b7055709cfaee405b090ba8312063fa8df8",
        name: "jax-tt-plugin 0.1.0",
        edition: Edition::August2026,
        ordinals: &[],
    },
    Known {
        identifier: "TTSY",
        hash: "581145f4d9f6add291f4b93d5086ab607966956083183969294417dd67e7e041",
        name: "jax-tt-plugin 0.1.1",
        edition: Edition::August2026,
        ordinals: &[],
    },
    Known {
        identifier: "TTSY",
        hash: "50a866cfc4035ea6997811f1843ea9e280b30ace418072780875fa86d90fc1e6",
        name: "jax-tt-plugin 0.1.2",
        edition: Edition::August2026,
        ordinals: &[],
    },
    Known {
        identifier: "TTSY",
        hash: "f0b54f1568f8f39c9910f4e652cd40fa551fdb1bf4172fab3710429031c23159",
        name: "jax-tt-plugin 0.1.3",
        edition: Edition::August2026,
        ordinals: &[],
    },
];

/// `union OpType` of `TTNN/program.fbs`, whole.
#[rustfmt::skip]
const AUGUST_2026: &[(u8, OpKind)] = &[
    (1, K::AdamW), (2, K::AggregateTensor), (3, K::AllGather), (4, K::AllReduceAsync), (5, K::AllReduce),
    (6, K::AllToAllCombine), (7, K::AllToAllDispatchMetadata), (8, K::AllToAllDispatch), (9, K::Arange),
    (10, K::Assign), (11, K::BatchNormInference), (12, K::BatchNormTraining), (13, K::BitcastConvert),
    (14, K::BeginTraceCapture), (15, K::CaptureOrExecuteTrace), (16, K::ChunkedScaledDotProductAttention),
    (17, K::Concat), (18, K::ConcatenateHeads), (19, K::RotaryEmbeddingLlama), (20, K::RotaryEmbedding),
    (21, K::NLPCreateQKVHeadsDecode), (22, K::NLPConcatHeads), (23, K::Constant), (24, K::Conv1d), (25, K::Conv2d),
    (26, K::ConvTranspose2d), (27, K::Conv3d), (28, K::Cpu), (29, K::Deallocate), (30, K::DistributeTensor),
    (31, K::DistributedRMSNorm), (32, K::DitRMSNormUnaryFused), (33, K::Dropout), (34, K::EltwiseBinaryComposite),
    (35, K::EltwiseBinaryCompositeScalar), (36, K::EltwiseBinary), (37, K::EltwiseQuantization),
    (38, K::EltwiseTernaryWhere), (39, K::EltwiseUnaryComposite), (40, K::EltwiseUnary), (41, K::EmbeddingBackward),
    (42, K::Embedding), (43, K::Empty), (44, K::EndTraceCapture), (45, K::ExecuteTrace),
    (46, K::ExperimentalEltwiseBinaryBackward), (47, K::FillCache), (48, K::FromDevice), (49, K::Full),
    (50, K::FuncCall), (51, K::Gather), (52, K::Generic), (53, K::GetDevice), (54, K::GlobalAvgPool2d),
    (55, K::GroupNorm), (56, K::IndexerScoreDsa), (57, K::LayerNorm), (58, K::LayerNormPreAllGather),
    (59, K::LayerNormPostAllGather), (60, K::Linear), (61, K::LoadCached), (62, K::Matmul), (63, K::SparseMatmul),
    (64, K::MaxPool2dWithIndices), (65, K::MeshPartition), (66, K::MoeExpertTokenRemap), (67, K::MoeGpt),
    (68, K::PrepareMoEComputeW0W1Weights), (69, K::PrepareMoEComputeW2Weights), (70, K::MoeCompute), (71, K::CumSum),
    (72, K::CumProd), (73, K::NamedFull), (74, K::NLPConcatHeadsDecode), (75, K::Pad), (76, K::PagedFillCache),
    (77, K::PagedFlashMultiLatentAttentionDecode), (78, K::PagedScaledDotProductAttentionDecode),
    (79, K::PagedUpdateCache), (80, K::Permute), (81, K::PointToPoint), (82, K::Pool2d), (83, K::PrepareConv2dBias),
    (84, K::PrepareConv2dWeights), (85, K::PrepareConv3dWeights), (86, K::PrepareConvTranspose2dBias),
    (87, K::PrepareConvTranspose2dWeights), (88, K::Rand), (89, K::ReductionArgMax), (90, K::Reduction),
    (91, K::ReductionProd), (92, K::ReduceScatter), (93, K::RepeatInterleave), (94, K::Repeat),
    (95, K::RMSNormPreAllGather), (96, K::RMSNorm), (97, K::Reshape), (98, K::Sampling),
    (99, K::ScaledDotProductAttention), (100, K::ScaledDotProductAttentionDecode), (101, K::FlashMlaPrefill),
    (102, K::Scatter), (103, K::SDPAForward), (104, K::SDPABackward), (105, K::SelectiveReduceCombine),
    (106, K::Slice), (107, K::Softmax), (108, K::Sort), (109, K::SplitQueryKeyValueAndSplitHeads), (110, K::ToDevice),
    (111, K::ToLayout), (112, K::ToMemoryConfig), (113, K::Transpose), (114, K::Typecast), (115, K::UpdateCache),
    (116, K::Upsample), (117, K::WriteTensor), (118, K::DumpTensor), (119, K::LoadTensor), (120, K::Annotate),
    (121, K::Breakpoint), (122, K::Print), (123, K::MemorySnapshot), (124, K::RegionStart), (125, K::RegionEnd),
    (126, K::TopK), (127, K::TopKRouterGpt), (128, K::CreateGlobalSemaphore), (129, K::ResetGlobalSemaphore),
    (130, K::AllocateMoeComputeSemaphore), (131, K::Copy),
];

/// Seen in files of `jax-tt-plugin` 0.1.0.
#[rustfmt::skip]
const PLUGIN_010: &[(u8, OpKind)] = &[
    (9, K::Arange), (13, K::BitcastConvert), (14, K::BeginTraceCapture), (15, K::CaptureOrExecuteTrace),
    (17, K::Concat), (23, K::Constant), (24, K::Case), (25, K::WhileLoop), (26, K::Conv1d), (27, K::Conv2d),
    (28, K::ConvTranspose2d), (29, K::Conv3d), (31, K::Deallocate), (35, K::EltwiseBinaryComposite),
    (36, K::EltwiseBinaryCompositeScalar), (37, K::EltwiseBinary), (39, K::EltwiseTernaryWhere),
    (40, K::EltwiseUnaryComposite), (41, K::EltwiseUnary), (42, K::EmbeddingBackward), (43, K::Embedding),
    (44, K::Empty), (45, K::EndTraceCapture), (46, K::ExecuteTrace), (49, K::FromDevice), (50, K::Full),
    (51, K::FuncCall), (54, K::GetDevice), (61, K::Linear), (62, K::LoadCached), (63, K::Matmul),
    (65, K::MaxPool2dWithIndices), (72, K::CumSum), (73, K::CumProd), (74, K::NamedFull), (76, K::Pad),
    (81, K::Permute), (83, K::Pool2d), (84, K::PrepareConv2dBias), (85, K::PrepareConv2dWeights),
    (86, K::PrepareConv3dWeights), (90, K::ReductionArgMax), (91, K::Reduction), (92, K::ReductionProd),
    (94, K::RepeatInterleave), (95, K::Repeat), (97, K::RMSNorm), (98, K::Reshape), (103, K::Scatter), (107, K::Slice),
    (108, K::Softmax), (109, K::Sort), (112, K::ToLayout), (113, K::ToMemoryConfig), (115, K::Typecast),
    (118, K::WriteTensor), (127, K::TopK), (132, K::Copy),
];

/// Seen in files of `jax-tt-plugin` 0.1.1.
#[rustfmt::skip]
const PLUGIN_011: &[(u8, OpKind)] = &[
    (9, K::Arange), (13, K::BitcastConvert), (14, K::BeginTraceCapture), (15, K::CaptureOrExecuteTrace),
    (17, K::Concat), (24, K::Constant), (25, K::Case), (26, K::WhileLoop), (27, K::Conv1d), (28, K::Conv2d),
    (29, K::ConvTranspose2d), (30, K::Conv3d), (32, K::Deallocate), (36, K::EltwiseBinaryComposite),
    (37, K::EltwiseBinaryCompositeScalar), (38, K::EltwiseBinary), (40, K::EltwiseTernaryWhere),
    (41, K::EltwiseUnaryComposite), (42, K::EltwiseUnary), (43, K::EmbeddingBackward), (44, K::Embedding),
    (45, K::Empty), (46, K::EndTraceCapture), (47, K::ExecuteTrace), (50, K::FromDevice), (51, K::Full),
    (52, K::FuncCall), (53, K::Gather), (59, K::GetDevice), (66, K::Linear), (67, K::LoadCached), (68, K::Matmul),
    (70, K::MaxPool2dWithIndices), (77, K::CumSum), (78, K::CumProd), (79, K::NamedFull), (81, K::Pad),
    (86, K::Permute), (88, K::Pool2d), (89, K::PrepareConv2dBias), (90, K::PrepareConv2dWeights),
    (91, K::PrepareConv3dWeights), (95, K::ReductionArgMax), (96, K::Reduction), (97, K::ReductionProd),
    (99, K::RepeatInterleave), (100, K::Repeat), (102, K::RMSNorm), (104, K::Reshape), (109, K::Scatter),
    (113, K::Slice), (114, K::Softmax), (115, K::Sort), (118, K::ToLayout), (119, K::ToMemoryConfig),
    (121, K::Typecast), (124, K::WriteTensor), (133, K::TopK), (138, K::Copy),
];

/// Seen in files of `jax-tt-plugin` 0.1.2.
#[rustfmt::skip]
const PLUGIN_012: &[(u8, OpKind)] = &[
    (9, K::Arange), (13, K::BitcastConvert), (14, K::BeginTraceCapture), (15, K::CaptureOrExecuteTrace),
    (18, K::Concat), (25, K::Constant), (26, K::Case), (27, K::WhileLoop), (28, K::Conv1d), (29, K::Conv2d),
    (30, K::ConvTranspose2d), (31, K::Conv3d), (35, K::Deallocate), (40, K::EltwiseBinaryComposite),
    (41, K::EltwiseBinaryAtan2), (42, K::EltwiseBinaryCompositeScalar), (43, K::EltwiseBinary),
    (45, K::EltwiseTernaryWhere), (46, K::EltwiseUnaryComposite), (47, K::EltwiseUnary), (50, K::Empty),
    (51, K::EndTraceCapture), (52, K::ExecuteTrace), (55, K::FromDevice), (56, K::Full), (57, K::FuncCall),
    (59, K::RowsGather), (60, K::RowsScatter), (66, K::GetDevice), (75, K::Linear), (76, K::LoadCached),
    (77, K::Matmul), (79, K::MaxPool2dWithIndices), (86, K::CumSum), (87, K::CumProd), (88, K::NamedFull),
    (90, K::Pad), (95, K::Permute), (97, K::Pool2d), (100, K::PrepareConv3dWeights), (104, K::ReductionArgMax),
    (105, K::Reduction), (106, K::ReductionProd), (108, K::RepeatInterleave), (109, K::Repeat), (113, K::RMSNorm),
    (115, K::Reshape), (124, K::Slice), (125, K::Softmax), (127, K::Sort), (130, K::ToDevice), (131, K::ToLayout),
    (134, K::Typecast), (137, K::WriteTensor), (146, K::TopK), (151, K::Copy), (153, K::Cumulative),
];

/// Seen in files of `jax-tt-plugin` 0.1.3.
#[rustfmt::skip]
const PLUGIN_013: &[(u8, OpKind)] = &[
    (9, K::Arange), (13, K::BitcastConvert), (14, K::BeginTraceCapture), (15, K::CaptureOrExecuteTrace),
    (18, K::Concat), (25, K::Constant), (26, K::Case), (27, K::WhileLoop), (28, K::Conv1d), (29, K::Conv2d),
    (30, K::ConvTranspose2d), (31, K::Conv3d), (35, K::Deallocate), (40, K::EltwiseBinaryComposite),
    (41, K::EltwiseBinaryAtan2), (42, K::EltwiseBinaryCompositeScalar), (43, K::EltwiseBinary),
    (45, K::EltwiseTernaryWhere), (46, K::EltwiseUnaryComposite), (47, K::EltwiseUnary), (50, K::Empty),
    (51, K::EndTraceCapture), (52, K::ExecuteTrace), (55, K::FromDevice), (56, K::Full), (57, K::FuncCall),
    (59, K::RowsGather), (60, K::RowsScatter), (66, K::GetDevice), (75, K::Linear), (76, K::LoadCached),
    (77, K::Matmul), (79, K::MaxPool2dWithIndices), (86, K::CumSum), (87, K::CumProd), (88, K::NamedFull),
    (90, K::Pad), (95, K::Permute), (97, K::Pool2d), (100, K::PrepareConv3dWeights), (105, K::ReductionArgMax),
    (106, K::Reduction), (107, K::ReductionProd), (109, K::RepeatInterleave), (110, K::Repeat), (114, K::RMSNorm),
    (116, K::Reshape), (125, K::Slice), (126, K::Softmax), (128, K::Sort), (132, K::ToLayout),
    (133, K::ToMemoryConfig), (135, K::Typecast), (138, K::WriteTensor), (147, K::TopK), (152, K::Copy),
    (154, K::Cumulative),
];
