//! Between arrays in files and tensors of the engine.

use crate::array::Array;
use tilework_ops::{DType, OpError, Shape, Tensor, typecast};

/// The tensor of an array. What the engine has no type for becomes the next that holds it: small
/// integers 32 bits, 64-bit ones 32 bits if all fit, float64 the nearest float32.
pub fn tensor(array: &Array) -> Result<Tensor, String> {
    let shape = shape(&array.shape)?;
    let fail = |error: OpError| error.to_string();
    let same = |dtype| Tensor::from_le_bytes(dtype, shape.clone(), &array.data).map_err(fail);
    let integers = |values: Vec<i64>| {
        let dtype = match (values.iter().min(), values.iter().max()) {
            (Some(&least), Some(&most)) if least < i32::MIN.into() || most > u32::MAX.into() => {
                return Err(format!("{} values between {least} and {most} do not fit 32 bits", array.dtype.name()));
            }
            (Some(&least), Some(&most)) if most > i32::MAX.into() => {
                if least < 0 {
                    return Err(format!("{} values between {least} and {most} do not fit 32 bits", array.dtype.name()));
                }
                DType::U32
            }
            _ => DType::I32,
        };
        Tensor::from_i64(dtype, shape.clone(), &values).map_err(fail)
    };
    match array.dtype {
        DType::I8 => integers(array.data.iter().map(|&b| i64::from(b.cast_signed())).collect()),
        DType::I16 => integers(read(&array.data, |b| i16::from_le_bytes(b).into())),
        DType::I64 => integers(read(&array.data, i64::from_le_bytes)),
        DType::U64 => integers(read(&array.data, |b| i64::try_from(u64::from_le_bytes(b)).unwrap_or(i64::MAX))),
        DType::F64 => {
            let values = read(&array.data, |b| nearest(f64::from_le_bytes(b)));
            Tensor::from_f32(DType::F32, shape.clone(), &values).map_err(fail)
        }
        dtype => same(dtype),
    }
}

/// The shape of an array.
pub fn shape(dims: &[u64]) -> Result<Shape, String> {
    let dims: Vec<usize> = dims.iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
    Shape::new(dims).map_err(|reason| reason.to_string())
}

/// The nearest float32; beyond its range, infinity.
#[allow(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
fn nearest(value: f64) -> f32 {
    value as f32
}

fn read<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| value(chunk)).collect()
}

/// The array of a tensor. NumPy has neither bfloat16 nor blocks: they become float32, exactly.
pub fn array(tensor: &Tensor) -> Array {
    let tensor = match tensor.dtype().npy_descr() {
        Some(_) => tensor.clone(),
        None => typecast(tensor, DType::F32),
    };
    let shape = tensor.shape().iter().map(|&n| n as u64).collect();
    Array { dtype: tensor.dtype(), shape, data: tensor.to_le_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dtype: DType, values: &[i64]) -> Array {
        let size = dtype.bytes().expect("a type of NumPy");
        let data = values.iter().flat_map(|v| v.to_le_bytes()[..size].to_vec()).collect();
        Array { dtype, shape: vec![values.len() as u64], data }
    }

    #[test]
    fn integers_of_other_sizes_keep_their_values() {
        for (dtype, values) in [
            (DType::I8, vec![-128, 127]),
            (DType::I16, vec![-32768, 5]),
            (DType::I64, vec![-5, 1 << 30]),
            (DType::U64, vec![0, u32::MAX.into()]),
        ] {
            assert_eq!(tensor(&of(dtype, &values)).expect("a tensor").to_i64(), values);
        }
        for too_wide in [vec![1 << 40], vec![-1, u32::MAX.into()]] {
            assert!(tensor(&of(DType::I64, &too_wide)).expect_err("too wide").contains("do not fit"));
        }
    }

    #[test]
    fn float64_is_rounded_and_bfloat16_comes_back_as_float32() {
        let data = [1.0_f64, 1.0 / 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let doubles = tensor(&Array { dtype: DType::F64, shape: vec![2], data }).expect("a tensor");
        assert_eq!(doubles.to_f32(), [1.0, 1.0 / 3.0]);
        let halves = typecast(&doubles, DType::BF16);
        let array = array(&halves);
        assert_eq!(array.dtype, DType::F32);
        assert_eq!(tensor(&array).expect("a tensor").to_f32(), halves.to_f32());
    }
}
