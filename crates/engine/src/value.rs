//! The value of a global id: one tensor, or one for each device of the mesh.

use tilework_ops::Tensor;

/// A tensor that is the same on all devices of a mesh, or one shard per device, in the order of the
/// mesh, row by row. A mesh of one device has one tensor in either case.
#[derive(Clone, Debug)]
pub struct Value<T = Tensor> {
    first: T,
    rest: Vec<T>,
}

impl<T> Value<T> {
    /// The same tensor on all devices, or on the only one.
    pub fn same(tensor: T) -> Self {
        Self { first: tensor, rest: Vec::new() }
    }

    /// A tensor for each device; `None` if there are none.
    pub fn shards(tensors: Vec<T>) -> Option<Self> {
        let mut tensors = tensors.into_iter();
        let first = tensors.next()?;
        Some(Self { first, rest: tensors.collect() })
    }

    /// Number of tensors: 1, or the number of devices.
    pub fn count(&self) -> usize {
        1 + self.rest.len()
    }

    /// The tensor of a device.
    pub fn on(&self, device: usize) -> &T {
        device.checked_sub(1).and_then(|i| self.rest.get(i)).unwrap_or(&self.first)
    }

    /// All tensors.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &T> {
        (0..self.count()).map(|device| self.on(device))
    }

    /// The tensor, if there is only one.
    pub fn single(&self) -> Option<&T> {
        self.rest.is_empty().then_some(&self.first)
    }

    /// Applies `f` to each tensor.
    pub(crate) fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> Value<U> {
        Value { first: f(&self.first), rest: self.rest.iter().map(f).collect() }
    }

    /// Applies `f`, which can fail, to each tensor.
    pub(crate) fn try_map<U, E>(&self, mut f: impl FnMut(&T) -> Result<U, E>) -> Result<Value<U>, E> {
        Ok(Value { first: f(&self.first)?, rest: self.rest.iter().map(f).collect::<Result<_, _>>()? })
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Self::same(tensor)
    }
}
