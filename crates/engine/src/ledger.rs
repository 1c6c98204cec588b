//! Accounting of memory: bytes of the live tensors, and their peak.
//!
//! Names share tensors: a tensor counts once, however many names it has, in however many programs.

use std::collections::HashMap;

use crate::machine::Held;
use crate::value::Value;

/// Bytes of live tensors.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Names and bytes of each tensor.
    buffers: HashMap<usize, (usize, usize)>,
    live: usize,
    peak: usize,
}

impl Ledger {
    /// Adds a name for a value.
    pub(crate) fn add<T: Held>(&mut self, value: &Value<T>) {
        for tensor in value.tensors() {
            let bytes = tensor.bytes();
            let (names, _) = self.buffers.entry(tensor.address()).or_insert((0, bytes));
            *names += 1;
            if *names == 1 {
                self.live += bytes;
            }
        }
        self.peak = self.peak.max(self.live);
    }

    /// Removes a name.
    pub(crate) fn remove<T: Held>(&mut self, value: &Value<T>) {
        for tensor in value.tensors() {
            let address = tensor.address();
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
