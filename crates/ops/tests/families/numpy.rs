//! The functions that numpy has too, against its results in `numpy.txt` (written by
//! `numpy_fixture.py`, numpy 2.4).

use tilework_ops::*;

use crate::common::{Nd, close, shape};

/// An array of the table: `f` or `i`, dimensions, values.
fn array(text: &str) -> (Tensor, Nd) {
    let (head, values) = text.split_once(':').unwrap();
    let (kind, dims) = head.trim().split_once(' ').unwrap();
    let dims: Vec<usize> = dims.trim().split('x').filter(|d| *d != "-").map(|d| d.parse().unwrap()).collect();
    let values: Vec<f64> = values.split_whitespace().map(|v| v.parse().unwrap()).collect();
    let tensor = match kind {
        "f" => Nd::new(&dims, values.clone()).f32(),
        _ => {
            let whole: Vec<i64> = values.iter().map(|&v| v as i64).collect();
            Tensor::from_i64(DType::I32, shape(&dims), &whole).unwrap()
        }
    };
    (tensor, Nd::new(&dims, values))
}

fn binary_kind(name: &str) -> Option<Binary> {
    use Binary::*;
    [
        Add,
        Subtract,
        Multiply,
        Divide,
        Maximum,
        Minimum,
        Atan2,
        Pow,
        Equal,
        NotEqual,
        GreaterEqual,
        GreaterThan,
        LessEqual,
        LessThan,
        LogicalAnd,
        LogicalOr,
        LogicalXor,
        BitwiseAnd,
        BitwiseOr,
        BitwiseXor,
        Remainder,
    ]
    .into_iter()
    .find(|k| k.name() == name)
}

fn unary_kind(name: &str) -> Option<Unary> {
    use Unary::*;
    [
        Abs, Ceil, Floor, Cos, Sin, Tan, Tanh, Atan, Exp, Expm1, Log, Log1p, Sqrt, Cbrt, Sign, Asinh, Round, IsFinite,
        Neg, Reciprocal, Exp2,
    ]
    .into_iter()
    .find(|k| format!("{k:?}").to_lowercase() == name)
}

/// The operation of a line.
fn run(name: &str, attributes: &[f64], t: &[Tensor]) -> Result<Tensor, OpError> {
    let axis = attributes.first().map_or(0, |&a| a as i64);
    let list: Vec<usize> = attributes.iter().map(|&a| a as usize).collect();
    let out = t.first().map_or(DType::F32, Tensor::dtype);
    let reduction = [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::Prod];
    if let Some(kind) = binary_kind(name) {
        return binary(kind, &t[0], &t[1], out);
    }
    if let Some(kind) = unary_kind(name) {
        return unary(kind, &t[0], out);
    }
    if let Some(&kind) = reduction.iter().find(|k| k.name() == name) {
        return reduce(kind, &t[0], &[axis], false, out);
    }
    match name {
        "argmax" => argmax(&t[0], Some(axis), false, DType::U32),
        "cumsum" => cumsum(&t[0], axis, out),
        "cumprod" => cumprod(&t[0], axis, out),
        "argsort" => Ok(sort(&t[0], axis, false, DType::U32)?.1),
        "sort" => Ok(sort(&t[0], axis, false, DType::U32)?.0),
        "gather" => gather(&t[0], &t[1], axis),
        "concat" => concat(&[&t[0], &t[1]], axis),
        "repeat_interleave" => repeat_interleave(&t[0], 3, axis),
        "permute" => permute(&t[0], &attributes.iter().map(|&a| a as i64).collect::<Vec<_>>()),
        "repeat" => repeat(&t[0], &list),
        "pad" => pad(&t[0], &list, 0.0),
        "matmul" => matmul(&t[0], &t[1], MatmulOptions::default(), out),
        "to_f16" => Ok(typecast(&t[0], DType::F16)),
        "arange" => arange(attributes[0], attributes[1], attributes[2], DType::F32),
        _ => panic!("the table has an operation {name} that the test does not know"),
    }
}

#[test]
fn numpy_agrees() {
    let mut lines = 0;
    for line in include_str!("numpy.txt").lines() {
        let mut parts = line.split(" ; ");
        let mut words = parts.next().unwrap().split(' ');
        let name = words.next().unwrap();
        let attributes: Vec<f64> = words.map(|w| w.parse().unwrap()).collect();
        let mut arrays: Vec<(Tensor, Nd)> = parts.map(array).collect();
        let wanted = arrays.pop().unwrap().1;
        let inputs: Vec<Tensor> = arrays.into_iter().map(|a| a.0).collect();
        let found = run(name, &attributes, &inputs).unwrap_or_else(|e| panic!("{line}: {e}"));
        let begin = &line[..line.len().min(200)];
        if !found.dtype().is_float() {
            let values: Vec<f64> = found.to_i64().into_iter().map(|v| v as f64).collect();
            assert!(found.shape().dims() == wanted.dims && values == wanted.values, "{begin}");
        } else {
            // What only moves is exact; the rest within a few units in the last place.
            let moves =
                ["sort", "gather", "concat", "repeat_interleave", "permute", "repeat", "pad", "to_f16", "arange"];
            let tolerance = if moves.contains(&name) { 0.0 } else { 2e-6 };
            assert!(std::panic::catch_unwind(|| close(&found, &wanted, tolerance)).is_ok(), "{begin}");
        }
        lines += 1;
    }
    assert_eq!(lines, 109, "lines of the table");
}
