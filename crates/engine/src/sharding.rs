//! Tensors of programs for several devices, whole and in parts.
//!
//! A file states the shape of one device's part and that the caller makes the parts (`Presharded`),
//! but not how: neither which dimension is cut along which axis of the mesh, nor whether all
//! devices have the same. So a whole array is split only if its shape leaves no choice, and an
//! array of one part's shape is never given to all devices unless the caller says so.

use tilework_model::ttnn::TensorRef;
use tilework_model::ttnn::types::ShardStatus;
use tilework_ops::mesh::{self, Mesh, Placements};
use tilework_ops::{Shape, Tensor};

use crate::value::Value;

/// Whether the caller gives each of several devices its part of a tensor.
pub(crate) fn sharded(tensor: &TensorRef, mesh: Mesh) -> bool {
    mesh.devices() > 1 && tensor.desc.shard_status == ShardStatus::Presharded
}

/// The placements that `text` states: for each axis of the mesh a dimension, or `-` for replicas.
/// A single one is for the only axis that has several devices.
pub fn placements(text: &str, mesh: Mesh) -> Result<Placements, String> {
    let wrong = || format!("{text:?} is not a dimension or - for each of the mesh's axes, such as 0,-");
    let one = |part: &str| match part.trim() {
        "-" => Ok(None),
        dim => dim.parse::<i64>().map(Some).map_err(|_| wrong()),
    };
    let parts: Vec<Option<i64>> = text.split(',').map(one).collect::<Result<_, _>>()?;
    match (parts[..].iter().as_slice(), mesh.rows, mesh.columns) {
        ([rows, columns], ..) => Ok([*rows, *columns]),
        ([only], 1, _) => Ok([None, *only]),
        ([only], _, 1) => Ok([*only, None]),
        _ => Err(format!("{text:?} for a mesh of {} by {} devices: two axes, such as 0,-", mesh.rows, mesh.columns)),
    }
}

/// Placements as [`placements`] reads them.
fn written(placements: Placements) -> String {
    placements.map(|dim| dim.map_or_else(|| "-".to_owned(), |dim| dim.to_string())).join(",")
}

/// All placements under which parts of shape `part` make up a tensor of shape `whole`.
fn possible(whole: &Shape, part: &Shape, mesh: Mesh) -> Vec<Placements> {
    if whole.rank() != part.rank() {
        return Vec::new();
    }
    let choices = |devices: usize| -> Vec<Option<i64>> {
        let dims = (0..whole.rank()).map(|dim| Some(dim as i64));
        if devices == 1 { vec![None] } else { std::iter::once(None).chain(dims).collect() }
    };
    let fits = |placements: &Placements| {
        (0..whole.rank()).all(|dim| {
            let cut = |axis: usize, devices: usize| if placements[axis] == Some(dim as i64) { devices } else { 1 };
            part[dim].checked_mul(cut(0, mesh.rows) * cut(1, mesh.columns)) == Some(whole[dim])
        })
    };
    let columns = choices(mesh.columns);
    let all = choices(mesh.rows).into_iter().flat_map(|row| columns.iter().map(move |&column| [row, column]));
    all.filter(fits).collect()
}

/// The only placements under which parts make up a whole.
fn only(whole: &Shape, part: &Shape, mesh: Mesh) -> Result<Placements, String> {
    let Mesh { rows, columns } = mesh;
    match possible(whole, part, mesh)[..] {
        [only] => Ok(only),
        [] => Err(format!("no split of shape {whole} over {rows} by {columns} devices gives parts of shape {part}")),
        ref several => {
            let several: Vec<String> = several.iter().map(|&placements| written(placements)).collect();
            let several = several.join(" or ");
            Err(format!("shape {whole} gives parts of shape {part} in several ways: along the mesh's axes {several}"))
        }
    }
}

/// A whole array as the parts of the devices. `to` is the shape of a part.
pub(crate) fn split_to(tensor: &Tensor, to: &Shape, mesh: Mesh) -> Result<Value, String> {
    if tensor.shape() == to {
        let (devices, shape) = (mesh.devices(), tensor.shape());
        return Err(format!(
            "shape {shape} is that of one device's part, and there are {devices} devices: \
             give each its own part, or say that all get the same"
        ));
    }
    split(tensor, only(tensor.shape(), to, mesh)?, mesh)
}

/// A whole array as the parts of the devices.
pub(crate) fn split(tensor: &Tensor, placements: Placements, mesh: Mesh) -> Result<Value, String> {
    let parts = mesh::distribute(tensor, mesh, placements).map_err(|error| error.to_string())?;
    Value::shards(parts).ok_or_else(|| "a mesh without devices".to_owned())
}

/// The whole that the parts of the devices make up. Replicas must be equal.
pub(crate) fn join(value: &Value, placements: Placements, mesh: Mesh) -> Result<Tensor, String> {
    let parts: Vec<Tensor> = (0..mesh.devices()).map(|device| value.on(device).clone()).collect();
    for (device, part) in parts.iter().enumerate() {
        let (row, column) = (device / mesh.columns, device % mesh.columns);
        let first = |axis: usize, place: usize| if placements[axis].is_none() { 0 } else { place };
        let like = first(0, row) * mesh.columns + first(1, column);
        if part.to_le_bytes() != parts[like].to_le_bytes() {
            return Err(format!("devices {like} and {device} have different values, they are no replicas"));
        }
    }
    mesh::aggregate(&parts, mesh, placements).map_err(|error| error.to_string())
}

/// The same, by the whole's shape.
pub(crate) fn join_to(value: &Value, whole: &Shape, mesh: Mesh) -> Result<Tensor, String> {
    join(value, only(whole, value.on(0).shape(), mesh)?, mesh)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Mesh = Mesh { rows: 1, columns: 2 };
    const FOUR: Mesh = Mesh { rows: 2, columns: 2 };

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn placements_are_read_for_each_axis() {
        assert_eq!(placements("0,1", FOUR), Ok([Some(0), Some(1)]));
        assert_eq!(placements("-, 2", FOUR), Ok([None, Some(2)]));
        assert_eq!(placements("1", TWO), Ok([None, Some(1)]));
        assert_eq!(placements("-1", Mesh { rows: 3, columns: 1 }), Ok([Some(-1), None]));
        for wrong in ["", "x", "0,", "0,1,2", "1"] {
            assert!(placements(wrong, FOUR).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_split_is_found_only_if_there_is_one() {
        assert_eq!(only(&shape(&[8, 3]), &shape(&[4, 3]), TWO), Ok([None, Some(0)]));
        assert_eq!(only(&shape(&[8, 3]), &shape(&[2, 3]), FOUR), Ok([Some(0), Some(0)]));
        assert_eq!(only(&shape(&[8, 3]), &shape(&[8, 3]), FOUR), Ok([None, None]));
        let several = only(&shape(&[8, 6]), &shape(&[4, 3]), FOUR).unwrap_err();
        assert!(several.ends_with("along the mesh's axes 0,1 or 1,0"), "{several}");
        let half = only(&shape(&[8, 6]), &shape(&[4, 6]), FOUR).unwrap_err();
        assert!(half.ends_with("-,0 or 0,-"), "{half}");
        assert!(only(&shape(&[9, 3]), &shape(&[4, 3]), TWO).is_err());
        assert!(only(&shape(&[4]), &shape(&[4, 3]), TWO).is_err());
    }

    #[test]
    fn replicas_that_differ_are_not_joined() {
        let of = |value: f32| Tensor::new(shape(&[1]), vec![value]).unwrap();
        let value = |list: [f32; 4]| Value::shards(list.map(of).into()).unwrap();
        let joined = |list, placements| join(&value(list), placements, FOUR).map(|tensor| tensor.to_f32());
        assert_eq!(joined([1.0, 1.0, 2.0, 2.0], [Some(0), None]), Ok(vec![1.0, 2.0]));
        assert_eq!(joined([1.0, 2.0, 1.0, 2.0], [None, Some(0)]), Ok(vec![1.0, 2.0]));
        assert_eq!(joined([1.0, 2.0, 3.0, 4.0], [Some(0), Some(0)]), Ok(vec![1.0, 2.0, 3.0, 4.0]));
        let differ = joined([1.0, 2.0, 1.0, 2.0], [Some(0), None]).unwrap_err();
        assert!(differ.starts_with("devices 0 and 1 have different values"), "{differ}");
    }
}
