//! The operation library: tensors and the reference semantics of every operation, in
//! host arithmetic.
//!
//! This is the native engine's arithmetic and the golden model for the device engine: pure
//! functions from tensors to tensors. It depends neither on program files (`tilework-model` reads
//! those) nor on a chip. One module is one family of operations; the names are those of `ttnn`, the
//! attributes those of tt-mlir's `Target/TTNN` schema.
//!
//! # Numerics
//!
//! Values enter in the element type that the program gives them. Floats are computed and
//! accumulated in float32, integers in wide integers, and the result is rounded once per operation
//! to its element type, passed as `out`. Thus bfloat16 results agree with a device that computes in
//! bfloat16 with float32 accumulation. The device's matrix engine reads float32 operands as TF32;
//! that loss is not reproduced: a float32 program gives float32 results.
//!
//! Results do not depend on the number of threads: work is cut into pieces by shape alone and every
//! sum has a fixed order. They may differ in the last bits between processors, where the matrix
//! kernels use other vector instructions.
#![warn(missing_docs)]
// The clippy lints on casts stay off: narrowing and changing signs is what this arithmetic does,
// and element counts are bounded by `MAX_ELEMENTS`.

pub mod layout;
pub mod mesh;

mod attention;
mod binary;
mod cache;
mod conv;
mod creation;
mod direct;
mod dispatch;
mod error;
mod experts;
mod gather;
mod gemm;
mod heads;
mod indexer;
mod math;
mod matmul;
mod movement;
mod norm;
mod pool;
mod prepare;
mod produce;
mod quant;
mod reduce;
mod rotary;
mod sampling;
mod scan;
mod shape;
mod sort;
mod split_norm;
mod tensor;
mod training;
mod typecast;
mod unary;
mod view;
mod window;

pub use attention::{Attention, attention, attention_decode, chunked_attention, paged_attention_decode};
pub use binary::{Binary, Fused, binary, binary_fused, gelu_backward, where_};
pub use cache::{fill_cache, paged_fill_cache, paged_update_cache, update_cache};
pub use conv::{Conv2d, Conv3d, conv_transpose2d, conv1d, conv2d, conv3d, prepare_weights};
pub use creation::{Fill, arange, full, ones, rand, zeros};
pub use error::{MAX_ELEMENTS, OpError, Operands, Reason};
pub use experts::{SparseSide, sparse_matmul, topk_router};
pub use gather::{ScatterReduce, embedding, embedding_backward, gather, scatter};
pub use heads::{
    Heads, concatenate_heads, nlp_concat_heads, nlp_concat_heads_decode, nlp_create_qkv_heads_decode, split_qkv_heads,
};
pub use indexer::indexer_scores;
pub use matmul::{MatmulOptions, matmul};
pub use movement::{concat, pad, permute, repeat, repeat_interleave, reshape, slice, slice_dynamic, transpose};
pub use norm::{
    Affine, BatchNormTraining, RmsFused, batch_norm, batch_norm_training, group_norm, layer_norm, rms_norm, softmax,
};
pub use pool::{Pool2d, UpsampleMode, avg_pool2d, global_avg_pool2d, max_pool2d, max_pool2d_with_indices, upsample};
pub use prepare::{mirrored, pad_prepared, prepare_bias, prepare_weights3d};
pub use quant::{PerAxis, Quantization, dequantize, quantize, requantize};
pub use reduce::{Reduction, argmax, reduce};
pub use rotary::{rotary_embedding, rotary_embedding_llama};
pub use sampling::{Sampling, sampling};
pub use scan::{cumprod, cumsum};
pub use shape::Shape;
pub use sort::{sort, topk};
pub use split_norm::{layer_norm_post_all_gather, layer_norm_pre_all_gather, rms_norm_pre_all_gather};
pub use tensor::{ELEMENT_TYPES, Native, Storage, Tensor};
pub use tilework_dtype::DType;
pub use training::{AdamW, AdamWState, Mask, SdpaGradient, adamw, sdpa_backward, sdpa_forward};
pub use typecast::{bitcast_convert, typecast};
pub use unary::{Unary, clamp_tensor, dropout, unary};
pub use window::{Padding, Window};
