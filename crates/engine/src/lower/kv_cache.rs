//! Key and value caches, which change in place.

use tilework_model::ttnn::ops::kv_cache::{FillCacheOp, PagedFillCacheOp, PagedUpdateCacheOp, UpdateCacheOp};
use tilework_ops as ops;

use super::*;

pub(super) fn fill<'m>(op: &'m FillCacheOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (cache, input) = (lowering.change(&op.cache), lowering.read(&op.input));
    let offset = count("batch_offset", op.batch_offset)?;
    Ok(one(move |args| ops::fill_cache(&args[cache], &args[input], offset)))
}

pub(super) fn update<'m>(op: &'m UpdateCacheOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (cache, input) = (lowering.change(&op.cache), lowering.read(&op.input));
    let index = lowering.read(&op.update_index);
    let offset = count("batch_offset", op.batch_offset)?;
    Ok(one(move |args| ops::update_cache(&args[cache], &args[input], &args[index], offset)))
}

pub(super) fn paged_update<'m>(op: &'m PagedUpdateCacheOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    if op.share_cache {
        return Err(Refusal::unsupported("a cache that users share"));
    }
    let (cache, input) = (lowering.change(&op.cache), lowering.read(&op.input));
    let (index, pages) = (lowering.read(&op.update_index), lowering.read_if(&op.page_table));
    Ok(one(move |args| ops::paged_update_cache(&args[cache], &args[input], &args[index], args.get(pages))))
}

pub(super) fn paged_fill<'m>(op: &'m PagedFillCacheOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (cache, input) = (lowering.change(&op.cache), lowering.read(&op.input));
    let (pages, batch) = (lowering.read(&op.page_table), lowering.read_if(&op.batch_idx_tensor));
    Ok(one(move |args| ops::paged_fill_cache(&args[cache], &args[input], &args[pages], args.get(batch))))
}
