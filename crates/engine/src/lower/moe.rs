//! Mixtures of experts: their router, the way of the tokens to the experts and back, and products
//! with the experts' weights.

use tilework_model::ttnn::ops::ccl::{AllToAllCombineOp, AllToAllDispatchMetadataOp, AllToAllDispatchOp};
use tilework_model::ttnn::ops::matmul::SparseMatmulOp;
use tilework_model::ttnn::ops::moe::MoeExpertTokenRemapOp;
use tilework_model::ttnn::ops::reduction::TopKRouterGptOp;
use tilework_ops::mesh::{self, Dispatched};
use tilework_ops::{self as ops, SparseSide};

use super::ccl::axis;
use super::*;

/// A function of the tensors of all devices, a list for each operand, with several results.
fn across<'m>(mesh: Mesh, f: impl Fn(&[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>, OpError> + 'm) -> Action<'m> {
    Action::Collective(Box::new(move |values| {
        let on_each = |value: &&Value| (0..mesh.devices()).map(|device| value.on(device).clone()).collect();
        let lists: Vec<Vec<Tensor>> = values.iter().map(on_each).collect();
        Ok(f(&lists)?.into_iter().filter_map(Value::shards).collect())
    }))
}

/// The devices of an exchange, which the operation counts, too.
fn devices_along(lowering: &Lowering<'_>, axis: usize, stated: u32) -> Result<(), Refusal> {
    let Mesh { rows, columns } = lowering.mesh;
    let along = if axis == 0 { rows } else { columns };
    match count("num_devices", stated)? {
        // Some compilers count the devices of the axis, others those of the mesh.
        devices if devices == along || devices == rows * columns => Ok(()),
        devices => Err(Refusal::malformed(format!("{devices} devices in a mesh of {rows} by {columns}"))),
    }
}

pub(super) fn dispatch<'m>(op: &'m AllToAllDispatchOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (mesh, axis) = (lowering.mesh, axis(op.cluster_axis)?);
    devices_along(lowering, axis, op.num_devices)?;
    [&op.input_tensor, &op.expert_indices, &op.expert_mapping]
        .into_iter()
        .for_each(|operand| _ = lowering.read(operand));
    let shapes = Dispatched {
        tokens: lowering.make_whole(&op.dispatched)?.shape,
        metadata: lowering.make_whole(&op.metadata)?.shape,
    };
    Ok(across(mesh, move |lists| {
        let [tokens, chosen, mapping] = lists else { return Ok(Vec::new()) };
        let (sent, all) = mesh::all_to_all_dispatch(tokens, chosen, &mapping[0], (mesh, axis), &shapes)?;
        Ok(vec![sent, all])
    }))
}

/// The buffers for the results hold them afterwards, too.
pub(super) fn dispatch_metadata<'m>(op: &'m AllToAllDispatchMetadataOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (mesh, axis) = (lowering.mesh, axis(op.cluster_axis)?);
    devices_along(lowering, axis, op.num_devices)?;
    for operand in [&op.input_tensor, &op.expert_indices, &op.expert_scores, &op.expert_mapping] {
        lowering.read(operand);
    }
    for result in [&op.dispatched, &op.indices, &op.scores] {
        lowering.make(result)?;
    }
    let buffers = [&op.dispatched_buffer, &op.indices_buffer, &op.scores_buffer];
    let bound: Vec<usize> = (0..3).filter(|&index| buffers[index].is_some()).collect();
    for buffer in buffers.into_iter().flatten() {
        lowering.change(buffer);
    }
    Ok(across(mesh, move |lists| {
        let [tokens, chosen, scores, mapping, ..] = lists else { return Ok(Vec::new()) };
        let results = mesh::all_to_all_dispatch_metadata(tokens, chosen, scores, &mapping[0], (mesh, axis))?;
        let kept: Vec<Vec<Tensor>> = bound.iter().map(|&index| results[index].clone()).collect();
        Ok(results.into_iter().chain(kept).collect())
    }))
}

pub(super) fn combine<'m>(op: &'m AllToAllCombineOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (mesh, axis) = (lowering.mesh, axis(op.cluster_axis)?);
    devices_along(lowering, axis, op.num_devices)?;
    let along = count("output_shard_dim", op.output_shard_dim)?;
    let chosen = count("num_experts_per_tok", op.num_experts_per_tok)?;
    if op.expert_metadata.desc.shape.last().is_none_or(|&k| usize::try_from(k) != Ok(chosen)) {
        let shape = &op.expert_metadata.desc.shape;
        return Err(Refusal::malformed(format!("num_experts_per_tok is {chosen}, the metadata's shape {shape:?}")));
    }
    [&op.input_tensor, &op.expert_metadata, &op.expert_mapping]
        .into_iter()
        .for_each(|operand| _ = lowering.read(operand));
    lowering.make(&op.out)?;
    Ok(across(mesh, move |lists| {
        let [results, metadata, mapping] = lists else { return Ok(Vec::new()) };
        Ok(vec![mesh::all_to_all_combine(results, metadata, &mapping[0], (mesh, axis), along)?])
    }))
}

/// Devices exchange nothing, but which experts are a device's own depends on which one it is.
pub(super) fn remap<'m>(op: &'m MoeExpertTokenRemapOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let mesh = lowering.mesh;
    let chunk = count("reduction_size", op.reduction_size)?;
    let operands = [&op.topk_tensor, &op.expert_mapping, &op.expert_metadata];
    let [scores, mapping, metadata] = operands.map(|operand| lowering.read(operand));
    lowering.make(&op.mapping)?;
    let flag = lowering.make(&op.reduced)?;
    Ok(Action::OnEach(Box::new(move |args| {
        let on = (mesh, args.device());
        let (own, any) = mesh::expert_token_remap(&args[scores], &args[mapping], &args[metadata], on, chunk, flag)?;
        Ok(vec![own, any])
    })))
}

pub(super) fn sparse_matmul<'m>(op: &'m SparseMatmulOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [a, b, sparsity] = [&op.a, &op.b, &op.sparsity].map(|operand| lowering.read(operand));
    let out = lowering.make(&op.out)?;
    let side = match (op.is_input_a_sparse, op.is_input_b_sparse) {
        (false, true) => SparseSide::Weights,
        // With both, the first has one row of blocks.
        (true, _) => SparseSide::Activations,
        (false, false) => return Err(Refusal::malformed("neither operand is sparse")),
    };
    let nonzero = op.nnz.map(|nnz| count("nnz", nnz)).transpose()?;
    Ok(one(move |args| ops::sparse_matmul(&args[a], &args[b], &args[sparsity], side, nonzero, out)))
}

pub(super) fn router<'m>(op: &'m TopKRouterGptOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [input, weight, bias] = [&op.input, &op.weight, &op.bias].map(|operand| lowering.read(operand));
    let (index, out) = (lowering.make(&op.expert_indices)?, lowering.make(&op.expert_weights)?);
    let (k, experts) = (count("k", op.k)?, count("num_experts", op.num_experts)?);
    if op.weight.desc.shape.last().is_none_or(|&n| usize::try_from(n) != Ok(experts)) {
        let shape = &op.weight.desc.shape;
        return Err(Refusal::malformed(format!("num_experts is {experts}, the weight's shape {shape:?}")));
    }
    Ok(many(move |args| {
        let (experts, weights) = ops::topk_router(&args[input], &args[weight], &args[bias], k, index, out)?;
        Ok(vec![experts, weights])
    }))
}
