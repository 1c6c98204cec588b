//! Accounting of memory: bytes of the live tensors, and their peak.
//!
//! Names share tensors: a tensor counts once, however many names it has, in however many programs.

use std::collections::HashMap;
use std::sync::Arc;

use tilework_ops::{Storage, Tensor};

use crate::value::Value;

/// Bytes of live tensors.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Names and bytes of each buffer.
    buffers: HashMap<usize, (usize, usize)>,
    live: usize,
    peak: usize,
}

impl Ledger {
    /// Adds a name for a value.
    pub(crate) fn add(&mut self, value: &Value) {
        for tensor in value.tensors() {
            let bytes = tensor.bytes();
            let (names, _) = self.buffers.entry(address(tensor)).or_insert((0, bytes));
            *names += 1;
            if *names == 1 {
                self.live += bytes;
            }
        }
        self.peak = self.peak.max(self.live);
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, value: &Value) {
        for tensor in value.tensors() {
            let address = address(tensor);
            let Some((names, bytes)) = self.buffers.get_mut(&address) else { continue };
            *names -= 1;
            if *names == 0 {
                self.live -= *bytes;
                self.buffers.remove(&address);
            }
        }
    }

    /// Bytes of live tensors now.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// The peak of [`Ledger::live`].
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }
}

/// The address of a tensor's values: the same for all tensors that share them, and unique while
/// they are alive.
pub(crate) fn address(tensor: &Tensor) -> usize {
    match tensor.storage() {
        Storage::F32(values) => Arc::as_ptr(values).addr(),
        Storage::F16(values) => Arc::as_ptr(values).addr(),
        Storage::BF16(values) => Arc::as_ptr(values).addr(),
        Storage::I32(values) => Arc::as_ptr(values).addr(),
        Storage::U32(values) => Arc::as_ptr(values).addr(),
        Storage::U16(values) => Arc::as_ptr(values).addr(),
        Storage::U8(values) => Arc::as_ptr(values).addr(),
    }
}
