//! The inputs of a run: arrays of files, or random numbers.

use super::tensors;
use crate::args::{ArraySource, Input};
use crate::failure::{Failure, Outcome};
use crate::inputs::open;
use tilework_engine::inputs::{Given, Key};
use tilework_engine::{InputInfo, Session, Value};
use tilework_model::common::DataType;
use tilework_ops::{DType, Shape, rand};

/// Integers of random inputs are below this: indices into small tables stay inside.
const RANDOM_INTEGERS: f32 = 8.0;

/// The values of all inputs of a program, in its order.
pub fn read(session: &Session<'_>, program: usize, given: &[Input]) -> Outcome<Vec<Value>> {
    let infos = session.inputs(program).map_err(super::run::refusal)?;
    let values = given.iter().map(|input| {
        let key = match input.name.parse() {
            Ok(position) => Key::Position(position),
            Err(_) => Key::Name(input.name.clone()),
        };
        let value = match &input.source {
            ArraySource::File { path, key } => {
                let array = open(path, key.as_deref())?;
                tensors::tensor(&array).map_err(|what| Failure::file(path, what))?
            }
            ArraySource::Random(seed) => {
                random(&infos, &key, *seed).map_err(|failure| failure.with("input", &input.name))?
            }
        };
        Ok(Given { key, value: Value::same(value) })
    });
    let values = values.collect::<Outcome<Vec<_>>>()?;
    session.bind(program, values).map_err(super::run::refusal)
}

/// Numbers of an input's type and shape: floats from -1 to below 1, integers from 0 to 7,
/// truth values.
fn random(infos: &[InputInfo], key: &Key, seed: u32) -> Outcome<tilework_ops::Tensor> {
    let info = infos.iter().find(|info| match key {
        Key::Position(position) => info.position == *position,
        Key::Name(name) => info.name.as_ref() == Some(name),
    });
    let unknown = || match key {
        Key::Position(position) => format!("the program has no input {position}"),
        Key::Name(name) => format!("the program has no input named {name:?}"),
    };
    let info = info.ok_or_else(|| Failure::usage(unknown()))?;
    let dims: Vec<usize> = info.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
    let shape = Shape::new(dims).map_err(|reason| Failure::usage(reason.to_string()))?;
    let (low, high) = match info.dtype {
        DataType::Bool => (0.0, 2.0),
        _ if is_integer(info.dtype) => (0.0, RANDOM_INTEGERS),
        _ => (-1.0, 1.0),
    };
    let drawn = rand(shape, DType::F32, low, high, seed);
    let dtype = if is_integer(info.dtype) { DType::I32 } else { DType::F32 };
    Ok(tilework_ops::typecast(&drawn, dtype))
}

fn is_integer(dtype: DataType) -> bool {
    !DType::from(dtype).is_float()
}
