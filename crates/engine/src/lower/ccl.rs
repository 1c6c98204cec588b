//! Collective operations, and tensors distributed over a mesh: on one host they rearrange lists of
//! tensors ([`tilework_ops::mesh`]).

use tilework_model::ttnn::ops::ccl::{
    AggregateTensorOp, AllGatherOp, AllReduceAsyncOp, AllReduceOp, DistributeTensorOp, MeshPartitionOp, PointToPointOp,
    ReduceScatterOp,
};
use tilework_model::ttnn::ops::normalization::DistributedRMSNormOp;
use tilework_model::ttnn::types::PlacementType;
use tilework_ops::mesh::{self, Parts, Placements};
use tilework_ops::{OpError, Reduction};

use super::*;

/// The number of a reduction, as the schema's `ReduceType`.
fn reduction(number: u32) -> Result<Reduction, Refusal> {
    Ok(match number {
        0 => Reduction::Sum,
        1 => Reduction::Mean,
        2 => Reduction::Max,
        3 => Reduction::Min,
        6 => Reduction::Prod,
        4 | 5 => return Err(Refusal::unsupported("standard deviation and variance over devices")),
        other => return Err(Refusal::malformed(format!("reduction {other}"))),
    })
}

/// An axis of the mesh along which devices communicate.
pub(super) fn axis(number: u32) -> Result<usize, Refusal> {
    match number {
        0 | 1 => Ok(number as usize),
        _ => Err(Refusal::malformed(format!("cluster_axis {number}, but a mesh has two axes"))),
    }
}

/// A function of the tensors of all devices of a mesh.
fn collective<'m>(mesh: Mesh, f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>, OpError> + 'm) -> Action<'m> {
    Action::Collective(Box::new(move |values| {
        let [value, ..] = values else { return Ok(Vec::new()) };
        let shards: Vec<Tensor> = (0..mesh.devices()).map(|device| value.on(device).clone()).collect();
        Ok(Value::shards(f(&shards)?).into_iter().collect())
    }))
}

pub(super) fn all_gather<'m>(op: &'m AllGatherOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    lowering.read(&op.input);
    lowering.make(&op.out)?;
    let (mesh, axis) = (lowering.mesh, axis(op.cluster_axis)?);
    Ok(collective(mesh, move |shards| mesh::all_gather(shards, mesh, axis, op.all_gather_dim.into())))
}

pub(super) fn all_reduce<'m>(op: &'m AllReduceOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    reduce_over(&op.input, &op.out, op.reduce_type, op.cluster_axis, lowering)
}

pub(super) fn all_reduce_async<'m>(op: &'m AllReduceAsyncOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    reduce_over(&op.input, &op.out, op.reduce_type, op.cluster_axis, lowering)
}

fn reduce_over<'m>(
    input: &'m TensorRef,
    out: &'m TensorRef,
    reduce_type: u32,
    cluster_axis: u32,
    lowering: &mut Lowering<'m>,
) -> Lowered<'m> {
    lowering.read(input);
    let out = lowering.make(out)?;
    let (mesh, axis, by) = (lowering.mesh, axis(cluster_axis)?, reduction(reduce_type)?);
    Ok(collective(mesh, move |shards| mesh::all_reduce(shards, mesh, axis, by, out)))
}

pub(super) fn reduce_scatter<'m>(op: &'m ReduceScatterOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    let (mesh, axis, by) = (lowering.mesh, axis(op.cluster_axis)?, reduction(op.reduce_type)?);
    Ok(collective(mesh, move |shards| mesh::reduce_scatter(shards, mesh, axis, op.scatter_dim.into(), by, out)))
}

/// Without an axis, all devices get a shard in the order of their numbers, as if they were one row.
pub(super) fn mesh_partition<'m>(op: &'m MeshPartitionOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    lowering.read(&op.input);
    lowering.make(&op.out)?;
    let (mesh, axis) = match op.cluster_axis {
        Some(number) => (lowering.mesh, axis(number)?),
        None => (Mesh { rows: 1, columns: lowering.mesh.devices() }, 1),
    };
    Ok(collective(mesh, move |shards| mesh::mesh_partition(shards, mesh, axis, op.dim.into())))
}

/// Devices other than the receiver keep what the tensor for results holds, or their own input if
/// there is none; the device leaves that undefined.
pub(super) fn point_to_point<'m>(op: &'m PointToPointOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let Mesh { rows, columns } = lowering.mesh;
    let device = |name: &str, coord: &[u32]| match *coord {
        [y, x] if (y as usize) < rows && (x as usize) < columns => Ok(y as usize * columns + x as usize),
        _ => Err(Refusal::malformed(format!("{name} {coord:?} in a mesh of {rows} by {columns}"))),
    };
    let (sender, receiver) = (device("sender_coord", &op.sender_coord)?, device("receiver_coord", &op.receiver_coord)?);
    lowering.read(&op.input);
    lowering.make(&op.out)?;
    if let Some(kept) = &op.optional_output_tensor {
        lowering.change(kept);
    }
    let results = lowering.writes.len();
    Ok(Action::Collective(Box::new(move |values| {
        let [value, ..] = values else { return Ok(Vec::new()) };
        let kept = values.get(1).unwrap_or(value);
        let of = |device: usize| if device == receiver { value.on(sender) } else { kept.on(device) };
        let result = Value::shards((0..rows * columns).map(|device| of(device).clone()).collect());
        Ok(result.map_or_else(Vec::new, |result| vec![result; results]))
    })))
}

/// The devices that a tensor is distributed over or composed from: the first devices of the mesh,
/// in rows and columns of their own if the file gives them. A placement for only one axis is
/// along columns.
fn spread(name: &str, of: Mesh, shape: &[u32], placements: &[Option<i64>]) -> Result<(Mesh, Placements), Refusal> {
    let (mesh, placements) = match (shape, placements) {
        ([], [one]) => (Mesh { rows: 1, columns: of.devices() }, [None, *one]),
        ([], [first, second]) => (of, [*first, *second]),
        ([columns], [one]) => (Mesh { rows: 1, columns: *columns as usize }, [None, *one]),
        ([rows, columns], [first, second]) => {
            (Mesh { rows: *rows as usize, columns: *columns as usize }, [*first, *second])
        }
        _ => return Err(Refusal::malformed(format!("{name} has {} axes for {shape:?}", placements.len()))),
    };
    if (1..=of.devices()).contains(&mesh.devices()) {
        return Ok((mesh, placements));
    }
    let (rows, columns) = (of.rows, of.columns);
    Err(Refusal::malformed(format!("{name} is for {shape:?} of a mesh of {rows} by {columns}")))
}

pub(super) fn distribute<'m>(op: &'m DistributeTensorOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let config = op.mapper_config.as_ref().ok_or_else(|| Refusal::malformed("no mapper_config"))?;
    let placements: Vec<Option<i64>> = config
        .placements
        .iter()
        .map(|placement| (placement.kind == PlacementType::Shard).then_some(placement.dim.into()))
        .collect();
    let (mesh, placements) = spread("mapper_config", lowering.mesh, &config.mesh_shape_override, &placements)?;
    if mesh.devices() != lowering.mesh.devices() {
        let (some, all) = (mesh.devices(), lowering.mesh.devices());
        return Err(Refusal::unsupported(format!("a tensor spread over {some} of {all} devices")));
    }
    lowering.read(&op.input);
    lowering.make(&op.out)?;
    Ok(Action::Collective(Box::new(move |values| {
        let whole = values.first().and_then(|value| value.single());
        let whole = whole.ok_or_else(|| Reason::Value("the tensor is spread over devices already".into()))?;
        Ok(Value::shards(mesh::distribute(whole, mesh, placements)?).into_iter().collect())
    })))
}

pub(super) fn aggregate<'m>(op: &'m AggregateTensorOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let config = op.composer_config.as_ref().ok_or_else(|| Refusal::malformed("no composer_config"))?;
    let placements: Vec<Option<i64>> = config.dims.iter().map(|&dim| Some(dim.into())).collect();
    let (mesh, placements) = spread("composer_config", lowering.mesh, &config.mesh_shape_override, &placements)?;
    lowering.read(&op.input);
    lowering.make(&op.out)?;
    Ok(Action::Collective(Box::new(move |values| {
        let [value, ..] = values else { return Ok(Vec::new()) };
        let shards: Vec<Tensor> = (0..mesh.devices()).map(|device| value.on(device).clone()).collect();
        Ok(vec![Value::same(mesh::aggregate(&shards, mesh, placements)?)])
    })))
}

/// The tensor for statistics is scratch memory of the exchange, which nothing reads afterwards.
pub(super) fn distributed_rms_norm<'m>(op: &'m DistributedRMSNormOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (mesh, axis) = (lowering.mesh, axis(op.cluster_axis)?);
    lowering.read(&op.input);
    let (weight, residual) = (lowering.read_if(&op.weight), lowering.read_if(&op.residual));
    lowering.read_if(&op.stats);
    let out = lowering.make(&op.out)?;
    Ok(Action::Collective(Box::new(move |values| {
        let on_each = |at: usize| (0..mesh.devices()).map(|device| values[at].on(device).clone()).collect::<Vec<_>>();
        let (input, weight, residual) = (on_each(0), weight.map(|s| on_each(s.0)), residual.map(|s| on_each(s.0)));
        let parts = Parts { input: &input, weight: weight.as_deref(), residual: residual.as_deref() };
        let results = mesh::distributed_rms_norm(parts, (mesh, axis), op.epsilon, out)?;
        Ok(Value::shards(results).into_iter().collect())
    })))
}
