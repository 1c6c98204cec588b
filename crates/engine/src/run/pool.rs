//! The tensors of a program that runs, by global id.

use std::collections::{BTreeMap, HashMap};

use tilework_model::ttnn::Program;

use crate::ledger::Ledger;
use crate::machine::Held;
use crate::value::Value;

/// The tensors that exist.
pub(super) struct Pool<'m, T> {
    program: &'m Program,
    values: HashMap<u32, Value<T>>,
    changed: BTreeMap<usize, Value<T>>,
}

impl<'m, T: Held> Pool<'m, T> {
    /// The tensors that exist when a program begins: its inputs.
    pub(super) fn new(program: &'m Program, inputs: Vec<Value<T>>, ledger: &mut Ledger) -> Self {
        let mut pool = Self { program, values: HashMap::new(), changed: BTreeMap::new() };
        for (input, value) in program.inputs.iter().zip(inputs) {
            pool.insert(input.global_id, value, ledger);
        }
        pool
    }

    /// The tensor of that id.
    pub(super) fn get(&self, id: u32) -> Option<&Value<T>> {
        self.values.get(&id)
    }

    /// Adds a tensor that was made.
    pub(super) fn insert(&mut self, id: u32, value: Value<T>, ledger: &mut Ledger) {
        ledger.add(&value);
        if let Some(before) = self.values.insert(id, value) {
            ledger.remove(&before);
        }
    }

    /// Changes a tensor in place. If it is an input, the change is reported to the
    /// caller at the end.
    pub(super) fn change(&mut self, id: u32, value: Value<T>, ledger: &mut Ledger) {
        if let Some(position) = self.program.inputs.iter().position(|input| input.global_id == id) {
            self.changed.insert(position, value.clone());
        }
        self.insert(id, value, ledger);
    }

    /// Removes the name of a tensor.
    pub(super) fn free(&mut self, id: u32, ledger: &mut Ledger) {
        if let Some(value) = self.values.remove(&id) {
            ledger.remove(&value);
        }
    }

    /// Removes all names; returns the inputs that changed, by position.
    pub(super) fn close(self, ledger: &mut Ledger) -> BTreeMap<usize, Value<T>> {
        self.values.values().for_each(|value| ledger.remove(value));
        self.changed
    }
}
