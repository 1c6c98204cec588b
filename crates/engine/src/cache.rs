//! Results of programs that depend on constants and weights only: computed once, then kept.
//!
//! A result belongs to a program and to the identity of its input tensors: another tensor with the
//! same values is a cache miss, as another version is in the runtime. Inputs are not kept alive;
//! when one is gone, its results are dropped at the next lookup. A program has the results of one
//! set of inputs at a time.

use std::collections::HashMap;

use crate::machine::Held;
use crate::value::Value;

struct Entry<T: Held> {
    /// For each input the tensors of its devices.
    inputs: Vec<Vec<T::Mark>>,
    outputs: Vec<Value<T>>,
}

/// Kept results, by index and hash of the program.
pub(crate) struct Cache<T: Held> {
    entries: HashMap<(usize, String), Entry<T>>,
}

impl<T: Held> Default for Cache<T> {
    fn default() -> Self {
        Self { entries: HashMap::new() }
    }
}

impl<T: Held> Cache<T> {
    /// The results that are kept for these inputs.
    pub(crate) fn find(&mut self, program: usize, hash: &str, inputs: &[Value<T>]) -> Option<Vec<Value<T>>> {
        self.entries.retain(|_, entry| !entry.inputs.iter().flatten().any(T::gone));
        let entry = self.entries.get(&(program, hash.to_owned()))?;
        let same = |(known, value): (&Vec<T::Mark>, &Value<T>)| {
            known.len() == value.count() && known.iter().zip(value.tensors()).all(|(known, tensor)| tensor.is(known))
        };
        let all = entry.inputs.len() == inputs.len() && entry.inputs.iter().zip(inputs).all(same);
        all.then(|| entry.outputs.clone())
    }

    /// Keeps the results of the program for these inputs.
    pub(crate) fn keep(&mut self, program: usize, hash: &str, inputs: &[Value<T>], outputs: Vec<Value<T>>) {
        let inputs = inputs.iter().map(|value| value.tensors().map(T::mark).collect()).collect();
        self.entries.insert((program, hash.to_owned()), Entry { inputs, outputs });
    }
}
