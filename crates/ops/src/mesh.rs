//! Meshes of devices on one host: splitting tensors over them, joining them again, and the
//! collectives between them (tt-mlir `ccl.fbs`).
//!
//! A tensor on a mesh is one tensor per device, in row-major order of the mesh. A collective runs
//! along one axis of the mesh (`cluster_axis`): devices that differ only in that coordinate are a
//! group, ordered by it. Sums over a group are float32 in that order and rounded once; a ring of
//! devices may add in another order and round in between.

use crate::binary::{Binary, binary};
use crate::error::{OpError, Reason, Within};
use crate::movement::{concat, slice};
use crate::reduce::Reduction;
use crate::tensor::Tensor;
use crate::{DType, typecast};

pub use crate::dispatch::{
    Dispatched, all_to_all_combine, all_to_all_dispatch, all_to_all_dispatch_metadata, expert_token_remap,
};
pub use crate::split_norm::{Parts, distributed_rms_norm};

/// Rows and columns of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mesh {
    /// Rows (the first axis).
    pub rows: usize,
    /// Columns (the second axis).
    pub columns: usize,
}

impl Mesh {
    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.rows.saturating_mul(self.columns)
    }

    /// The groups along an axis: device numbers in order.
    pub fn groups(&self, axis: usize) -> Vec<Vec<usize>> {
        let at = |r: usize, c: usize| r * self.columns + c;
        match axis {
            0 => (0..self.columns).map(|c| (0..self.rows).map(|r| at(r, c)).collect()).collect(),
            _ => (0..self.rows).map(|r| (0..self.columns).map(|c| at(r, c)).collect()).collect(),
        }
    }

    /// Groups of a collective whose operands are one tensor per device, all of one shape.
    pub(crate) fn checked(&self, op: &'static str, shards: &[Tensor], axis: usize) -> Result<Vec<Vec<usize>>, OpError> {
        let operands: Vec<&Tensor> = shards.iter().collect();
        if axis > 1 {
            return Err(Reason::attribute("cluster_axis", format!("{axis}, but a mesh has two axes")).of(op, &operands));
        }
        if shards.len() != self.devices() || shards.is_empty() {
            let why = format!("{}x{} devices and {} tensors", self.rows, self.columns, shards.len());
            return Err(Reason::attribute("mesh", why).of(op, &operands));
        }
        if let Some(odd) = shards.iter().find(|t| t.shape() != shards[0].shape()) {
            return Err(Reason::shape(odd.shape(), shards[0].shape().to_string()).of(op, &operands));
        }
        Ok(self.groups(axis))
    }
}

/// Part `index` of `count` equal parts of a dimension.
fn part(op: &'static str, input: &Tensor, dim: i64, index: usize, count: usize) -> Result<Tensor, OpError> {
    let axis = input.shape().axis(dim).within(op, &[input])?;
    let (_, length, _) = input.shape().around(axis);
    if count == 0 || length % count != 0 || input.shape().rank() == 0 {
        let why = format!("{count} equal parts of {length}");
        return Err(Reason::attribute("dim", why).of(op, &[input]));
    }
    let mut begins = vec![0; input.shape().rank()];
    let mut ends: Vec<i64> = input.shape().iter().map(|&d| d as i64).collect();
    begins[axis] = (index * (length / count)) as i64;
    ends[axis] = begins[axis] + (length / count) as i64;
    slice(input, &begins, &ends, &vec![1; begins.len()])
}

/// Placement of a tensor along each axis of the mesh: sharded in a dimension, or replicated.
pub type Placements = [Option<i64>; 2];

/// Splits a tensor over a mesh: along each axis of the mesh it is sharded in the given dimension,
/// or replicated without one.
pub fn distribute(input: &Tensor, mesh: Mesh, placements: Placements) -> Result<Vec<Tensor>, OpError> {
    const OP: &str = "distribute_tensor";
    let mut shards = Vec::new();
    for r in 0..mesh.rows {
        let row = match placements[0] {
            Some(dim) => part(OP, input, dim, r, mesh.rows)?,
            None => input.clone(),
        };
        for c in 0..mesh.columns {
            shards.push(match placements[1] {
                Some(dim) => part(OP, &row, dim, c, mesh.columns)?,
                None => row.clone(),
            });
        }
    }
    Ok(shards)
}

/// Joins the tensors of a mesh: along each axis of the mesh they are concatenated in the given
/// dimension; without one they are replicas, and the first is taken.
pub fn aggregate(shards: &[Tensor], mesh: Mesh, placements: Placements) -> Result<Tensor, OpError> {
    let groups = mesh.checked("aggregate_tensor", shards, 1)?;
    let join = |parts: Vec<Tensor>, dim: Option<i64>| match dim {
        Some(dim) => concat(&parts.iter().collect::<Vec<_>>(), dim),
        None => Ok(parts[0].clone()),
    };
    let rows = groups.iter().map(|g| join(g.iter().map(|&d| shards[d].clone()).collect(), placements[1]));
    join(rows.collect::<Result<_, _>>()?, placements[0])
}

/// Every device gets the concatenated tensors of its group.
pub fn all_gather(shards: &[Tensor], mesh: Mesh, axis: usize, dim: i64) -> Result<Vec<Tensor>, OpError> {
    let groups = mesh.checked("all_gather", shards, axis)?;
    let mut results = shards.to_vec();
    for group in groups {
        let whole = concat(&group.iter().map(|&d| &shards[d]).collect::<Vec<_>>(), dim)?;
        group.iter().for_each(|&d| results[d] = whole.clone());
    }
    Ok(results)
}

/// The reduction of a group's tensors, element by element.
fn reduced(
    op: &'static str,
    shards: &[Tensor],
    group: &[usize],
    kind: Reduction,
    out: DType,
) -> Result<Tensor, OpError> {
    let float = shards[group[0]].dtype().is_float();
    let wide = if float || kind == Reduction::Mean { DType::F32 } else { shards[group[0]].dtype() };
    let by = match kind {
        Reduction::Sum | Reduction::Mean => Binary::Add,
        Reduction::Max => Binary::Maximum,
        Reduction::Min => Binary::Minimum,
        Reduction::Prod => Binary::Multiply,
    };
    let mut result = typecast(&shards[group[0]], wide);
    for &d in &group[1..] {
        result = binary(by, &result, &shards[d], wide)?;
    }
    if kind == Reduction::Mean {
        let shape = crate::Shape::new([1]).within(op, &[&result])?;
        let count = crate::full(shape, DType::F32, crate::Fill::Float(group.len() as f32));
        result = binary(Binary::Divide, &result, &count, wide)?;
    }
    Ok(typecast(&result, out))
}

/// Every device gets the reduction of its group's tensors.
pub fn all_reduce(
    shards: &[Tensor],
    mesh: Mesh,
    axis: usize,
    kind: Reduction,
    out: DType,
) -> Result<Vec<Tensor>, OpError> {
    const OP: &str = "all_reduce";
    let groups = mesh.checked(OP, shards, axis)?;
    let mut results = shards.to_vec();
    for group in groups {
        let whole = reduced(OP, shards, &group, kind, out)?;
        group.iter().for_each(|&d| results[d] = whole.clone());
    }
    Ok(results)
}

/// Every device gets its shard of the reduction of its group's tensors, by its position
/// in the group.
pub fn reduce_scatter(
    shards: &[Tensor],
    mesh: Mesh,
    axis: usize,
    dim: i64,
    kind: Reduction,
    out: DType,
) -> Result<Vec<Tensor>, OpError> {
    const OP: &str = "reduce_scatter";
    let groups = mesh.checked(OP, shards, axis)?;
    let mut results = shards.to_vec();
    for group in groups {
        let whole = reduced(OP, shards, &group, kind, out)?;
        for (place, &d) in group.iter().enumerate() {
            results[d] = part(OP, &whole, dim, place, group.len())?;
        }
    }
    Ok(results)
}

/// Every device keeps its shard of its own tensor, by its position in its group
/// (`ttnn.mesh_partition`).
pub fn mesh_partition(shards: &[Tensor], mesh: Mesh, axis: usize, dim: i64) -> Result<Vec<Tensor>, OpError> {
    const OP: &str = "mesh_partition";
    let groups = mesh.checked(OP, shards, axis)?;
    let mut results = shards.to_vec();
    for group in groups {
        for (place, &d) in group.iter().enumerate() {
            results[d] = part(OP, &shards[d], dim, place, group.len())?;
        }
    }
    Ok(results)
}
