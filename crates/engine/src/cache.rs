//! Results of programs that depend on constants and weights only: computed once, then kept.
//!
//! A result belongs to a program and to the identity of its input tensors: another tensor with the
//! same values is a cache miss, as another version is in the runtime. Inputs are held by weak
//! references; when one is gone, its results are dropped at the next lookup. A program has the
//! results of one set of inputs at a time.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tilework_ops::{DType, Shape, Storage, Tensor};

use crate::ledger::address;
use crate::value::Value;

/// The identity of a tensor. The weak reference keeps the address from being reused.
struct Identity {
    dtype: DType,
    shape: Shape,
    address: usize,
    values: Weak<dyn Any + Send + Sync>,
}

impl Identity {
    fn of(tensor: &Tensor) -> Self {
        fn weak<T: Send + Sync + 'static>(values: &Arc<Vec<T>>) -> Weak<dyn Any + Send + Sync> {
            let weak: Weak<Vec<T>> = Arc::downgrade(values);
            weak
        }
        let values = match tensor.storage() {
            Storage::F32(values) => weak(values),
            Storage::F16(values) => weak(values),
            Storage::BF16(values) => weak(values),
            Storage::I32(values) => weak(values),
            Storage::U32(values) => weak(values),
            Storage::U16(values) => weak(values),
            Storage::U8(values) => weak(values),
        };
        Self { dtype: tensor.dtype(), shape: tensor.shape().clone(), address: address(tensor), values }
    }

    fn is(&self, tensor: &Tensor) -> bool {
        self.address == address(tensor) && self.dtype == tensor.dtype() && self.shape == *tensor.shape()
    }

    fn gone(&self) -> bool {
        self.values.strong_count() == 0
    }
}

struct Entry {
    /// For each input the tensors of its devices.
    inputs: Vec<Vec<Identity>>,
    outputs: Vec<Value>,
}

/// Kept results, by index and hash of the program.
#[derive(Default)]
pub(crate) struct Cache {
    entries: HashMap<(usize, String), Entry>,
}

impl Cache {
    /// The results that are kept for these inputs.
    pub(crate) fn find(&mut self, program: usize, hash: &str, inputs: &[Value]) -> Option<Vec<Value>> {
        self.entries.retain(|_, entry| !entry.inputs.iter().flatten().any(Identity::gone));
        let entry = self.entries.get(&(program, hash.to_owned()))?;
        let same = |(known, value): (&Vec<Identity>, &Value)| {
            known.len() == value.count() && known.iter().zip(value.tensors()).all(|(known, tensor)| known.is(tensor))
        };
        let all = entry.inputs.len() == inputs.len() && entry.inputs.iter().zip(inputs).all(same);
        all.then(|| entry.outputs.clone())
    }

    /// Keeps the results of the program for these inputs.
    pub(crate) fn keep(&mut self, program: usize, hash: &str, inputs: &[Value], outputs: Vec<Value>) {
        let inputs = inputs.iter().map(|value| value.tensors().map(Identity::of).collect()).collect();
        self.entries.insert((program, hash.to_owned()), Entry { inputs, outputs });
    }
}
