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
        "adamw" | "sdpa_fw" | "sdpa_bw" | "distributed_rms_norm" => part(name, attributes, t),
        "sparse_matmul" => {
            let side = if attributes[0] == 0.0 { SparseSide::Weights } else { SparseSide::Activations };
            sparse_matmul(&t[0], &t[1], &t[2], side, None, out)
        }
        "router" => {
            let (experts, weights) = topk_router(&t[0], &t[1], &t[2], 3, DType::U32, out)?;
            Ok(if attributes[0] == 0.0 { experts } else { weights })
        }
        "indexer" => indexer_scores(&t[0], &t[1], &t[2], list[0], out),
        "conv3d" => narrow_volume(&t[0], &t[1]),
        _ => panic!("the table has an operation {name} that the test does not know"),
    }
}

/// One of several results, by the first attribute.
fn part(name: &str, attributes: &[f64], t: &[Tensor]) -> Result<Tensor, OpError> {
    let index = attributes[0] as usize;
    let mask = match attributes.get(1).map(|&kind| kind as usize) {
        Some(0) => Mask::None,
        Some(1) => Mask::Causal,
        _ => t.get(3).map_or(Mask::None, Mask::Added),
    };
    match name {
        "adamw" => {
            let [rate, b1, b2, p1, p2, epsilon, weight_decay] = [1, 2, 3, 4, 5, 6, 7].map(|i| attributes[i] as f32);
            let by = AdamW { rate, beta: [b1, b2], beta_power: [p1, p2], epsilon, weight_decay };
            let state = AdamWState { parameters: &t[0], first: &t[2], second: &t[3], largest: t.get(4) };
            Ok(adamw(state, &t[1], by)?.swap_remove(index))
        }
        "sdpa_fw" => {
            let found = sdpa_forward(&t[0], &t[1], &t[2], mask, [DType::F32; 2])?;
            let [b, h, s, width] = *found[1].shape().dims() else { panic!("four dimensions") };
            assert_eq!(width, 32);
            let first = slice(&found[1], &[0; 4], &[b as i64, h as i64, s as i64, 1], &[1; 4])?;
            Ok([found[0].clone(), first][index].clone())
        }
        "sdpa_bw" => {
            let of = SdpaGradient { gradient: &t[4], result: &t[5], sums: &t[6] };
            Ok(sdpa_backward(of, [&t[0], &t[1], &t[2]], mask, [DType::F32; 3])?[index].clone())
        }
        _ => {
            let lists: Vec<Vec<Tensor>> = t.iter().map(devices).collect();
            let parts = mesh::Parts { input: &lists[0], residual: Some(&lists[1]), weight: Some(&lists[2]) };
            let mesh = mesh::Mesh { rows: 2, columns: 3 };
            let found = mesh::distributed_rms_norm(parts, (mesh, index), 1e-5, DType::F32)?;
            concat(&found.iter().collect::<Vec<_>>(), 0)
        }
    }
}

/// The six devices' parts of a tensor, each with a leading dimension of one.
fn devices(whole: &Tensor) -> Vec<Tensor> {
    let mesh = mesh::Mesh { rows: 1, columns: 6 };
    mesh::distribute(whole, mesh, [None, Some(0)]).unwrap()
}

/// A convolution of 3 channels as the compiler writes it: 32 channels, of which the weights, once
/// as they are and once prepared, have three.
fn narrow_volume(x: &Tensor, weight: &Tensor) -> Result<Tensor, OpError> {
    let input = pad(x, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 29], 0.0)?;
    let conv = Conv3d {
        batch: 1,
        input: [3, 3, 3],
        in_channels: 32,
        out_channels: 2,
        kernel: [2, 3, 2],
        stride: [1; 3],
        padding: [0; 3],
        dilation: [1; 3],
        groups: 1,
        replicate: false,
        block: 16,
    };
    let raw = conv3d(&input, weight, None, &conv, DType::F32)?;
    let prepared = prepare_weights3d(weight, 1, 16, 32)?;
    assert_eq!(prepared.shape().dims(), [12 * 32, 2]);
    let found = conv3d(&input, &prepared, None, &conv, DType::F32)?;
    assert_eq!(found.to_f32(), raw.to_f32());
    Ok(found)
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
            // Chains of several functions, in float32 here and in float64 there.
            let chains = ["adamw", "sdpa_fw", "sdpa_bw", "distributed_rms_norm", "router"];
            let tolerance = match name {
                name if moves.contains(&name) => 0.0,
                name if chains.contains(&name) => 1e-5,
                _ => 2e-6,
            };
            assert!(std::panic::catch_unwind(|| close(&found, &wanted, tolerance)).is_ok(), "{begin}");
        }
        lines += 1;
    }
    assert_eq!(lines, 139, "lines of the table");
}
