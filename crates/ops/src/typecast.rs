//! Element type conversion (`ttnn.typecast`) and reinterpretation (`ttnn.bitcast_convert`).

use crate::DType;
use crate::error::{OpError, Reason};
use crate::produce;
use crate::tensor::{Storage, Tensor};
use crate::view::{Lane, View};

/// The values in another element type, converted as [`tilework_dtype::convert`] says.
pub fn typecast(input: &Tensor, dtype: DType) -> Tensor {
    if input.dtype() == dtype {
        return input.clone();
    }
    let view = View::contiguous(input.shape());
    let shape = input.shape().clone();
    if input.dtype().is_float() {
        return produce::floats(shape, dtype, 1, |start, out| f32::load(input, &view, start, out));
    }
    // Only the saturating conversion to 16 bits differs from keeping the low bits.
    let clamp = dtype == DType::U16;
    produce::integers(shape, dtype, 1, |start, out| {
        i64::load(input, &view, start, out);
        if clamp {
            out.iter_mut().for_each(|v| *v = (*v).clamp(0, 0xffff));
        }
    })
}

/// The same bits as another element type of the same size.
pub fn bitcast_convert(input: &Tensor, dtype: DType) -> Result<Tensor, OpError> {
    const OP: &str = "bitcast_convert";
    if input.dtype().bytes().is_none() || input.dtype().bytes() != dtype.bytes() {
        let why = format!("{} differs in size from {}", dtype.mlir_name(), input.dtype().mlir_name());
        return Err(Reason::attribute("dtype", why).of(OP, &[input]));
    }
    if dtype == input.dtype() || matches!(input.storage(), Storage::U8(_)) {
        return Ok(typecast(input, dtype));
    }
    Tensor::from_le_bytes(dtype, input.shape().clone(), &input.to_le_bytes())
}
