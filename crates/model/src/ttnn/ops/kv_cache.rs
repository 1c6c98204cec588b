//! Key and value caches; the cache is changed in place.
//!
//! Source: `TTNN/operations/kv_cache.fbs` of the schema ([`crate::schema`]).

use crate::flat::declare::tables;
use crate::ttnn::types::TensorRef;

tables! {
    /// Writes a whole sequence into a key or value cache.
    FillCacheOp { cache: TensorRef as inout, input: TensorRef, batch_offset: u32 }

    /// Writes one position of a key or value cache.
    UpdateCacheOp { cache: TensorRef as inout, input: TensorRef, update_index: TensorRef, batch_offset: u32 }

    /// Writes one position for each user of a cache, which may be paged.
    PagedUpdateCacheOp {
        cache: TensorRef as inout, input: TensorRef, update_index: TensorRef, share_cache: bool,
        page_table: Option<TensorRef>,
    }

    /// Writes a whole sequence into a paged cache.
    PagedFillCacheOp {
        cache: TensorRef as inout, input: TensorRef, page_table: TensorRef, batch_idx_tensor: Option<TensorRef>,
    }
}
