//! Functions in native libraries of the file, which run in a process of their own
//! ([`tilework_native`]), if they may run at all.

use tilework_model::ttnn::ops::control::CpuOp;
use tilework_native::{Call, Operand};
use tilework_ops as ops;

use super::*;

/// Element types of results, those that the original takes.
const RESULTS: [DType; 3] = [DType::F32, DType::I32, DType::U32];

/// Each device calls the function with its own tensors.
pub(super) fn cpu<'m>(op: &'m CpuOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let host = lowering.native.host.clone().ok_or(Refusal::NativeCode)?;
    let library = lowering.native.libraries.iter().find(|library| library.dylib_id == op.dylib_id);
    let library = library.ok_or_else(|| Refusal::malformed(format!("no native library {}", op.dylib_id)))?;
    let mut taken = Vec::with_capacity(op.ins.len());
    for tensor in &op.ins {
        let stated = Stated::of(&tensor.desc)?;
        if stated.dtype.bytes().is_none() {
            return Err(Refusal::unsupported(format!("native code on tensors of {}", stated.dtype.mlir_name())));
        }
        taken.push(stated);
        lowering.read(tensor);
    }
    let mut made = Vec::with_capacity(op.outs.len());
    for tensor in &op.outs {
        let stated = Stated::of(&tensor.desc)?;
        if !RESULTS.contains(&stated.dtype) {
            return Err(Refusal::unsupported(format!("native code with results of {}", stated.dtype.mlir_name())));
        }
        made.push(stated);
        lowering.make(tensor)?;
    }
    Ok(Action::Collective(Box::new(move |values| {
        let devices = values.iter().map(|value| value.count()).max().unwrap_or(1);
        let mut results: Vec<Vec<Tensor>> = made.iter().map(|_| Vec::with_capacity(devices)).collect();
        for device in 0..devices {
            let operand = |(value, stated): (&&Value, &Stated)| Operand {
                shape: stated.shape.iter().map(|&length| length as u64).collect(),
                bytes: ops::typecast(value.on(device), stated.dtype).to_le_bytes(),
            };
            let call = Call {
                library: library.raw_file.to_vec(),
                function: op.func_name.clone(),
                operands: values.iter().zip(&taken).map(operand).collect(),
                results: made.iter().map(|stated| stated.bytes() as u64).collect(),
            };
            let returned = host.call(call).map_err(|error| Reason::NativeFailed(error.to_string()))?;
            for ((bytes, stated), list) in returned.iter().zip(&made).zip(&mut results) {
                list.push(Tensor::from_le_bytes(stated.dtype, stated.shape.clone(), bytes)?);
            }
        }
        Ok(results.into_iter().filter_map(Value::shards).collect())
    })))
}
