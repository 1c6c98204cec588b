//! Attention, its heads and rotary position embedding.
//!
//! Source: `TTNN/operations/transformer.fbs` of the schema ([`crate::schema`]).

use crate::flat::declare::tables;
use crate::ttnn::ops::fused::DeviceComputeKernelConfig;
use crate::ttnn::types::{CoreCoord, CoreRangeSet, MemoryConfig, TensorRef};

tables! {
    /// `(B, H, S, D)` to `(B, S, H*D)`.
    ConcatenateHeadsOp { input("in"): TensorRef, out: TensorRef as out, memcfg: Option<MemoryConfig> }

    /// Rotary position embedding by a transformation matrix, as Llama's kernels do it.
    RotaryEmbeddingLlamaOp {
        input: TensorRef, cos_cache: TensorRef, sin_cache: TensorRef, trans_mat: TensorRef,
        is_decode_mode: bool, out: TensorRef as out, memcfg: Option<MemoryConfig>,
        compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// Rotary position embedding.
    RotaryEmbeddingOp {
        input: TensorRef, cos_cache: TensorRef, sin_cache: TensorRef, token_index: Option<u32>,
        out: TensorRef as out, memcfg: Option<MemoryConfig>, compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// `(B, H, S, D)` to `(B, 1, S, H*D)`.
    NLPConcatHeadsOp { input("in"): TensorRef, out: TensorRef as out, memcfg: Option<MemoryConfig> }

    /// `(S, B, H, D)` to `(S, 1, B, H*D)`.
    NLPConcatHeadsDecodeOp {
        input("in"): TensorRef, out: TensorRef as out, num_heads: u32, memcfg: Option<MemoryConfig>,
    }

    /// Blocking of an attention.
    SDPAConfig {
        compute_with_storage_grid_size: Option<CoreCoord>, sub_core_grids: Option<CoreRangeSet>,
        q_chunk_size: u64, k_chunk_size: u64, exp_approx_mode: Option<bool>,
        max_cores_per_head_batch: Option<u32>,
    }

    /// Attention of one new position to a cache.
    ScaledDotProductAttentionDecodeOp {
        query: TensorRef, key: TensorRef, value: TensorRef, is_causal: bool, attention_mask: Option<TensorRef>,
        cur_pos_tensor: Option<TensorRef>, attention_sink: Option<TensorRef>, scale: Option<f32>,
        sliding_window_size: Option<u32>, out: TensorRef as out, memcfg: Option<MemoryConfig>,
        program_config: Option<SDPAConfig>,
    }

    /// Attention of a whole sequence.
    ScaledDotProductAttentionOp {
        query: TensorRef, key: TensorRef, value: TensorRef, is_causal: bool, attention_mask: Option<TensorRef>,
        scale: Option<f32>, sliding_window_size: Option<u32>, attention_sink: Option<TensorRef>,
        out: TensorRef as out, memcfg: Option<MemoryConfig>,
    }

    /// Multi-head latent attention of a whole sequence.
    FlashMlaPrefillOp {
        query: TensorRef, key: TensorRef, value: Option<TensorRef>, attention_mask: Option<TensorRef>,
        head_dim_v: u32, is_causal: bool, scale: Option<f32>, out: TensorRef as out,
        memcfg: Option<MemoryConfig>,
    }

    /// Scores by which sparse attention selects positions.
    IndexerScoreDsaOp {
        query: TensorRef, key: TensorRef, weights: TensorRef, chunk_start_idx: u32, out: TensorRef as out,
        cluster_axis: Option<u32>,
    }

    /// Splits a fused projection of one position into query, key and value heads.
    NLPCreateQKVHeadsDecodeOp {
        input: TensorRef, q_out: TensorRef as out, k_out: TensorRef as out, v_out: TensorRef as out,
        num_heads: u32, num_kv_heads: Option<u32>, overlap_qk_coregrid: Option<bool>,
        batch_offset: Option<TensorRef>, slice_size: Option<u32>, memcfg: Option<MemoryConfig>,
    }

    /// Splits a fused projection of a sequence into query, key and value heads.
    SplitQueryKeyValueAndSplitHeadsOp {
        input("in"): TensorRef, kv_input: Option<TensorRef>, q_out: TensorRef as out, k_out: TensorRef as out,
        v_out: TensorRef as out, num_heads: u32, num_kv_heads: Option<u32>, transpose_key: bool,
        memcfg: Option<MemoryConfig>,
    }

    /// Attention of one new position to a paged cache.
    PagedScaledDotProductAttentionDecodeOp {
        query: TensorRef, key: TensorRef, value: TensorRef, page_table: TensorRef, is_causal: bool,
        attention_mask: Option<TensorRef>, cur_pos_tensor: Option<TensorRef>, attention_sink: Option<TensorRef>,
        scale: Option<f32>, sliding_window_size: Option<u32>, out: TensorRef as out,
        memcfg: Option<MemoryConfig>, program_config: Option<SDPAConfig>,
    }

    /// Attention of a chunk of a sequence to a paged cache.
    ChunkedScaledDotProductAttentionOp {
        query: TensorRef, key: TensorRef, value: TensorRef, page_table: TensorRef, chunk_start_idx: TensorRef,
        scale: Option<f32>, out: TensorRef as out, memcfg: Option<MemoryConfig>,
        program_config: Option<SDPAConfig>,
    }

    /// Multi-head latent attention of one new position to a paged cache.
    PagedFlashMultiLatentAttentionDecodeOp {
        query: TensorRef, key: TensorRef, value: Option<TensorRef>, head_dim_v: u32, page_table: TensorRef,
        is_causal: bool, attention_mask: Option<TensorRef>, cur_pos_tensor: Option<TensorRef>,
        attention_sink: Option<TensorRef>, scale: Option<f32>, out: TensorRef as out,
        memcfg: Option<MemoryConfig>,
    }
}
