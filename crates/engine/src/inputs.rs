//! Inputs of a program: their names and types, and the conversion of given values to the types that
//! the program states.
//!
//! Conversions preserve values, or report the one that they cannot preserve. Floats are rounded to
//! narrower floats, as callers of the runtime do; everything else must be exact: integers to other
//! integers in range, integers to floats and back only without a fraction.

use tilework_model::Model;
use tilework_model::common::DataType;
use tilework_model::ttnn::{Program, TensorRef};
use tilework_ops::mesh::Mesh;
use tilework_ops::{self as ops, DType, Tensor};

use crate::describe::Stated;
use crate::lower::Refusal;
use crate::names;
use crate::session::Rounding;
use crate::sharding;
use crate::value::Value;

/// An input or output of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct InputInfo {
    /// Its position.
    pub position: usize,
    /// Its name in the user's source, if the file has the text of the program and the
    /// text names it.
    pub name: Option<String>,
    /// Its element type.
    pub dtype: DataType,
    /// Its shape; on a mesh, that of one device's shard.
    pub shape: Vec<i32>,
    /// Whether each of several devices has its own shard.
    pub sharded: bool,
}

/// How an input is selected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// By position.
    Position(usize),
    /// By name.
    Name(String),
}

/// A given input.
#[derive(Clone, Debug)]
pub struct Given {
    /// Which input it is for.
    pub key: Key,
    /// The value.
    pub value: Value,
}

/// The inputs of a program.
pub(crate) fn describe(model: &Model, program: &Program) -> Vec<InputInfo> {
    let names = model.mlir().map(|mlir| names::arguments(&mlir.source, &program.name)).unwrap_or_default();
    let mesh = mesh_of(program);
    let named =
        |(position, input): (usize, &TensorRef)| info(position, names.get(position).cloned().flatten(), input, mesh);
    program.inputs.iter().enumerate().map(named).collect()
}

/// The outputs of a program, which have no names.
pub(crate) fn describe_outputs(program: &Program) -> Vec<InputInfo> {
    let mesh = mesh_of(program);
    program.outputs.iter().enumerate().map(|(position, output)| info(position, None, output, mesh)).collect()
}

fn info(position: usize, name: Option<String>, tensor: &TensorRef, mesh: Mesh) -> InputInfo {
    let desc = &tensor.desc;
    let sharded = sharding::sharded(tensor, mesh);
    InputInfo { position, name, dtype: desc.layout.memory_desc.data_type, shape: desc.shape.clone(), sharded }
}

/// The devices of a program. A file that states others than there can be is refused when the
/// program is planned.
pub(crate) fn mesh_of(program: &Program) -> Mesh {
    let count = |number: i32| usize::try_from(number).unwrap_or(1).max(1);
    program
        .mesh_shape
        .map_or(Mesh { rows: 1, columns: 1 }, |shape| Mesh { rows: count(shape.y), columns: count(shape.x) })
}

/// The inputs in the order of the program.
pub(crate) fn bind(model: &Model, program: &Program, given: Vec<Given>) -> Result<Vec<Value>, String> {
    let infos = describe(model, program);
    let mut values: Vec<Option<Value>> = vec![None; infos.len()];
    for Given { key, value } in given {
        let position = match &key {
            Key::Position(position) if *position < infos.len() => *position,
            Key::Position(position) => return Err(format!("no input {position}; {}", list(&infos))),
            Key::Name(name) => {
                let mut found = infos.iter().filter(|info| info.name.as_ref() == Some(name));
                match (found.next(), found.next()) {
                    (Some(info), None) => info.position,
                    (Some(_), Some(_)) => return Err(format!("several inputs are named {name:?}; {}", list(&infos))),
                    (None, _) => return Err(format!("no input is named {name:?}; {}", list(&infos))),
                }
            }
        };
        if values[position].replace(value).is_some() {
            return Err(format!("input {position} is given twice"));
        }
    }
    let missing: Vec<&InputInfo> = infos.iter().filter(|info| values[info.position].is_none()).collect();
    if missing.is_empty() {
        return Ok(values.into_iter().flatten().collect());
    }
    let missing: Vec<String> = missing.into_iter().map(show).collect();
    Err(format!("not given: {}", missing.join(", ")))
}

fn list(infos: &[InputInfo]) -> String {
    let all: Vec<String> = infos.iter().map(show).collect();
    if all.is_empty() { "the program has none".to_owned() } else { format!("the program has {}", all.join(", ")) }
}

fn show(info: &InputInfo) -> String {
    let name = info.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
    format!("{}{name}: {} {:?}", info.position, info.dtype, info.shape)
}

/// The inputs in the types and shapes that the program states.
pub(crate) fn convert(program: &Program, inputs: Vec<Value>, rounding: Rounding) -> Result<Vec<Value>, String> {
    let mesh = mesh_of(program);
    let devices = mesh.devices();
    if inputs.len() != program.inputs.len() {
        let infos: Vec<InputInfo> =
            program.inputs.iter().enumerate().map(|(position, input)| info(position, None, input, mesh)).collect();
        return Err(format!("{} inputs are given; {}", inputs.len(), list(&infos)));
    }
    let all = inputs.iter().zip(&program.inputs).enumerate();
    all.map(|(position, (value, input))| {
        let failed = |what: String| format!("input {position}: {what}");
        let stated = Stated::of(&input.desc).map_err(|refusal| failed(describe_refusal(refusal)))?;
        if value.count() != 1 && value.count() != devices {
            return Err(failed(format!("{} shards for {devices} devices", value.count())));
        }
        let value = match value.single() {
            Some(whole) if sharding::sharded(input, mesh) => {
                sharding::split_to(whole, &stated.shape, mesh).map_err(failed)?
            }
            _ => value.clone(),
        };
        let kept = stated.clone().under(rounding).dtype;
        value.try_map(|tensor| Ok(ops::typecast(&one(tensor, &stated)?, kept))).map_err(failed)
    })
    .collect()
}

/// A whole array as the parts of one input.
pub(crate) fn split(program: &Program, position: usize, whole: &Tensor) -> Result<Value, String> {
    let input = program.inputs.get(position).ok_or_else(|| format!("no input {position}"))?;
    let stated = Stated::of(&input.desc).map_err(describe_refusal)?;
    sharding::split_to(whole, &stated.shape, mesh_of(program))
}

/// A value in the element type that the program states for it.
pub(crate) fn stated(value: &Value, tensor: &TensorRef) -> Value {
    kept(value, tensor, Rounding::Operations)
}

/// A value in the element type that it has while the program runs.
pub(crate) fn kept(value: &Value, tensor: &TensorRef, rounding: Rounding) -> Value {
    match Stated::of(&tensor.desc) {
        Ok(stated) => value.map(|tensor| ops::typecast(tensor, stated.clone().under(rounding).dtype)),
        Err(_) => value.clone(),
    }
}

fn describe_refusal(refusal: Refusal) -> String {
    refusal.reason().to_string()
}

fn one(tensor: &Tensor, stated: &Stated) -> Result<Tensor, String> {
    if !stated.fits(tensor.shape()) {
        return Err(format!("its shape is {}, the program states {}", tensor.shape(), stated.shape));
    }
    let tensor = cast(tensor, stated.dtype)?;
    if *tensor.shape() == stated.shape {
        return Ok(tensor);
    }
    let dims: Vec<i64> = stated.shape.iter().map(|&n| n as i64).collect();
    ops::reshape(&tensor, &dims).map_err(|error| error.to_string())
}

/// The tensor in another element type, without loss but for the rounding of floats.
fn cast(tensor: &Tensor, to: DType) -> Result<Tensor, String> {
    let from = tensor.dtype();
    if from == to || (from.is_float() && to.is_float()) {
        return Ok(ops::typecast(tensor, to));
    }
    let lost = |index: usize, value: &dyn std::fmt::Display| {
        let (to, from) = (to.mlir_name(), from.mlir_name());
        Err(format!("element {index} is {value}, which {to} cannot hold; its type is {from}"))
    };
    if from.is_float() {
        // Integers that float32 holds exactly lie within 2^24; a larger float without a fraction is
        // an exact integer as well.
        let values = tensor.to_f32();
        let fits = |value: f32| value == value.trunc() && range(to).contains(&(f64::from(value)));
        return match values.iter().position(|&value| !fits(value)) {
            Some(index) => lost(index, &values[index]),
            None => {
                let values: Vec<i64> = values.iter().map(|&value| value as i64).collect();
                Tensor::from_i64(to, tensor.shape().clone(), &values).map_err(|error| error.to_string())
            }
        };
    }
    let values = tensor.to_i64();
    let fits = |value: i64| if to.is_float() { exact(value, to) } else { range(to).contains(&(value as f64)) };
    match values.iter().position(|&value| !fits(value)) {
        Some(index) => lost(index, &values[index]),
        None => Tensor::from_i64(to, tensor.shape().clone(), &values).map_err(|error| error.to_string()),
    }
}

/// The integers that a type holds. All types here have at most 32 bits, so float64 represents
/// them exactly.
fn range(dtype: DType) -> std::ops::RangeInclusive<f64> {
    match dtype {
        DType::I32 => f64::from(i32::MIN)..=f64::from(i32::MAX),
        DType::U32 => 0.0..=f64::from(u32::MAX),
        DType::U16 => 0.0..=f64::from(u16::MAX),
        DType::U8 => 0.0..=f64::from(u8::MAX),
        _ => 0.0..=1.0,
    }
}

/// Whether a float type holds an integer exactly: the integer has no more bits than the type's
/// mantissa. For block types the bits of one element count.
fn exact(value: i64, dtype: DType) -> bool {
    let bits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::Bfp8B => 7,
        DType::Bfp4B => 3,
        _ => 24,
    };
    let magnitude = value.unsigned_abs();
    let fits = 64 - magnitude.leading_zeros() <= bits + magnitude.trailing_zeros();
    magnitude == 0 || (fits && (dtype != DType::F16 || magnitude <= 65504))
}
