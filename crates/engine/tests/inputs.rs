//! Inputs of a program: by position or name, converted or refused.

use crate::common::build::{model, program, tensor, values};
use tilework_engine::inputs::Key;
use tilework_engine::{Engine, Given, Options, Value};
use tilework_model::common::{DataType, MLIR};
use tilework_model::{Contents, Model};
use tilework_ops::{DType, Shape, Tensor};

/// A program that returns its input, of that type and shape.
fn same(data_type: DataType, shape: &[i32]) -> Model {
    let input = tensor(0, data_type, shape);
    model(vec![program("main", &[&input], &[&input], Vec::new())])
}

fn given(model: &Model, tensor: Tensor) -> Result<Tensor, String> {
    let mut session = Engine::native(Options::default()).session(model).unwrap();
    let result = session.run(0, vec![tensor.into()], &mut ()).map_err(|error| error.to_string())?;
    Ok(result.outputs[0].single().unwrap().clone())
}

fn integers(dtype: DType, numbers: &[i64]) -> Tensor {
    Tensor::from_i64(dtype, Shape::new([numbers.len()]).unwrap(), numbers).unwrap()
}

#[test]
fn floats_are_rounded_to_the_type_of_the_input() {
    let found = given(&same(DataType::BFloat16, &[3]), values(&[3], &[1.0, 257.0 / 256.0, 259.0 / 256.0])).unwrap();
    // Both are halfway between two values of 8 bits; the even one is taken.
    assert_eq!((found.dtype(), found.to_f32()), (DType::BF16, vec![1.0, 1.0, 1.015625]));
}

#[test]
fn integers_and_floats_are_exchanged_without_loss_or_not_at_all() {
    let ok = [
        (DataType::Int32, values(&[2], &[-3.0, 16_777_216.0]), vec![-3, 16_777_216]),
        (DataType::UInt16, integers(DType::I32, &[0, 65535]), vec![0, 65535]),
        (DataType::UInt32, integers(DType::U16, &[7, 65535]), vec![7, 65535]),
        (DataType::Float32, integers(DType::I32, &[-5, 16_777_216]), vec![-5, 16_777_216]),
        (DataType::BFloat16, integers(DType::I32, &[256, -384]), vec![256, -384]),
    ];
    for (data_type, tensor, expected) in ok {
        assert_eq!(given(&same(data_type, &[2]), tensor).unwrap().to_i64(), expected, "{data_type}");
    }
    let lost = [
        (DataType::Int32, values(&[2], &[1.0, 0.5]), "element 1 is 0.5"),
        (DataType::Int32, values(&[2], &[f32::NAN, 0.0]), "element 0 is NaN"),
        (DataType::UInt32, values(&[2], &[0.0, -1.0]), "element 1 is -1"),
        (DataType::UInt8, integers(DType::I32, &[255, 256]), "element 1 is 256"),
        (DataType::Float32, integers(DType::I32, &[16_777_217, 0]), "element 0 is 16777217"),
        (DataType::BFloat16, integers(DType::I32, &[256, 257]), "element 1 is 257"),
    ];
    for (data_type, tensor, expected) in lost {
        let error = given(&same(data_type, &[2]), tensor).unwrap_err();
        assert!(error.contains("program 0 (main): input 0: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_shape_is_the_one_stated_but_a_scalar_is_a_vector_of_one() {
    let error = given(&same(DataType::Float32, &[2, 3]), values(&[3, 2], &[0.0; 6])).unwrap_err();
    assert!(error.ends_with("input 0: its shape is [3x2], the program states [2x3]"), "{error}");
    let one = given(&same(DataType::Float32, &[1]), values(&[], &[4.0])).unwrap();
    assert_eq!(one.shape().dims(), [1]);
    let none = given(&same(DataType::Float32, &[]), values(&[1], &[4.0])).unwrap();
    assert_eq!(none.shape().rank(), 0);
}

#[test]
fn types_that_no_device_has_are_refused() {
    let error = given(&same(DataType::Int64, &[1]), integers(DType::I32, &[1])).unwrap_err();
    assert!(error.contains("input 0: not supported by the native engine: tensors of Int64"), "{error}");
}

/// Inputs x, y and one without a name.
fn named() -> Model {
    let [x, y, z] = [0, 1, 2].map(|id| tensor(id, DataType::Float32, &[1]));
    let mut model = model(vec![program("main", &[&x, &y, &z], &[&x], Vec::new())]);
    let source = r#"func.func public @main(%arg0: tensor<1xf32> loc("x"), %arg1: tensor<1xf32> loc("y"), %arg2: tensor<1xf32>) -> "#;
    if let Contents::Ttnn(root) = &mut model.contents {
        root.mlir = Some(MLIR { name: "ttnn".into(), source: source.into() });
    }
    model
}

fn bound(keys: &[Key]) -> Result<Vec<f32>, String> {
    let model = named();
    let session = Engine::native(Options::default()).session(&model).unwrap();
    let value = |number: usize| Value::from(values(&[1], &[number as f32]));
    let given = keys.iter().enumerate().map(|(number, key)| Given { key: key.clone(), value: value(number) }).collect();
    let bound = session.bind(0, given).map_err(|error| error.to_string())?;
    Ok(bound.iter().map(|value| value.on(0).to_f32()[0]).collect())
}

#[test]
fn inputs_are_given_by_position_or_name() {
    let name = |name: &str| Key::Name(name.to_owned());
    assert_eq!(bound(&[name("y"), Key::Position(2), name("x")]), Ok(vec![2.0, 0.0, 1.0]));
    let wrong = [
        (vec![name("y"), name("x")], "not given: 2: Float32 [1]"),
        (
            vec![name("z")],
            "no input is named \"z\"; the program has 0 \"x\": Float32 [1], 1 \"y\": Float32 [1], 2: Float32 [1]",
        ),
        (vec![Key::Position(3)], "no input 3; the program has"),
        (vec![name("x"), Key::Position(0)], "input 0 is given twice"),
    ];
    for (keys, expected) in wrong {
        let error = bound(&keys).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn other_numbers_of_inputs_are_refused_with_a_list() {
    let model = named();
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let error = session.run(0, Vec::new(), &mut ()).unwrap_err().to_string();
    assert!(error.contains("0 inputs are given; the program has 0: Float32 [1], 1:"), "{error}");
    let error = session.run(5, Vec::new(), &mut ()).unwrap_err().to_string();
    assert_eq!(error, "test.ttnn: no program 5: the file has 1");
}
