//! Machines: what holds the tensors of a run and carries out its operations. The runner goes
//! through a program, keeps the names of its tensors and calls other programs; what a tensor is and
//! where an operation happens is the machine's.

use std::any::Any;
use std::sync::{Arc, Weak};

use tilework_model::ttnn::TensorRef;
use tilework_ops::mesh::Mesh;
use tilework_ops::{self as ops, DType, Shape, Storage, Tensor};

use crate::error::{OperationPlace, Reason};
use crate::observe::Event;
use crate::plan::Written;
use crate::value::Value;

/// A tensor that a machine holds; a clone is another name of the same.
pub trait Held: Clone {
    /// What remembers a tensor without keeping it.
    type Mark;

    /// A number that all names of the tensor share, and no other tensor while it exists.
    fn address(&self) -> usize;
    /// Bytes that it takes.
    fn bytes(&self) -> usize;
    /// Remembers it.
    fn mark(&self) -> Self::Mark;
    /// Whether it is the one that was remembered.
    fn is(&self, mark: &Self::Mark) -> bool;
    /// Whether the one that was remembered exists no more.
    fn gone(mark: &Self::Mark) -> bool;
}

/// What an operation does on a device of the mesh with the arrays of its operands, in host
/// arithmetic: results as the program states them.
pub type Arithmetic<'w> = dyn Fn(usize, &[&Tensor]) -> Result<Vec<Tensor>, Reason> + 'w;

/// How an operation makes its results.
#[derive(Clone, Copy)]
pub enum How<'w> {
    /// It computes them.
    Compute(&'w Arithmetic<'w>),
    /// It passes its operand on, in this element type and in the layout and memory of its result.
    Pass(DType),
}

/// A result that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'w> {
    /// As the program describes it.
    pub tensor: &'w TensorRef,
    /// The element type that it has.
    pub dtype: DType,
    /// Its shape.
    pub shape: &'w Shape,
}

impl<'w> From<&'w Written<'_>> for Wanted<'w> {
    fn from(written: &'w Written<'_>) -> Self {
        Self { tensor: written.tensor, dtype: written.stated.dtype, shape: &written.stated.shape }
    }
}

/// An operation on one device.
pub struct Work<'w, T> {
    /// Which.
    pub event: &'w Event<'w>,
    /// The device of the mesh; the first for all, on a machine that has one.
    pub device: usize,
    /// The tensors that it reads, in its order, as the program describes them.
    pub reads: &'w [&'w TensorRef],
    /// The same as they are.
    pub operands: Vec<&'w T>,
    /// What it makes or changes.
    pub results: Vec<Wanted<'w>>,
    /// How.
    pub how: How<'w>,
}

impl<'w, T> Work<'w, T> {
    /// The same work on what `own` makes of the operands, if it makes something of each.
    pub fn with_operands<U>(&self, own: impl Fn(&'w T) -> Option<&'w U>) -> Option<Work<'w, U>> {
        let operands = self.operands.iter().map(|&operand| own(operand)).collect::<Option<Vec<_>>>()?;
        Some(Work {
            event: self.event,
            device: self.device,
            reads: self.reads,
            operands,
            results: self.results.clone(),
            how: self.how,
        })
    }
}

/// An operation of all devices of a mesh.
pub struct Together<'w, T> {
    /// Which.
    pub event: &'w Event<'w>,
    /// The devices.
    pub mesh: Mesh,
    /// The tensors that it reads, in its order, as the program describes them.
    pub reads: &'w [&'w TensorRef],
    /// The same as they are.
    pub operands: Vec<&'w Value<T>>,
    /// What it makes or changes.
    pub results: Vec<Wanted<'w>>,
}

/// What holds tensors and carries out operations.
pub trait Machine {
    /// A tensor.
    type Tensor: Held;

    /// Takes an array of the host as a tensor that the program describes.
    ///
    /// # Errors
    /// No room; a machine that stopped.
    fn take(&mut self, array: Tensor, described: &TensorRef) -> Result<Self::Tensor, Reason>;
    /// The same on a device of the mesh.
    ///
    /// # Errors
    /// As [`Machine::take`].
    fn take_on(&mut self, device: usize, array: Tensor, described: &TensorRef) -> Result<Self::Tensor, Reason> {
        let _ = device;
        self.take(array, described)
    }
    /// Whether each device of a mesh is a machine of its own, so that tensors which are the same on
    /// all of them are there once for each.
    fn has_devices(&self) -> bool {
        false
    }
    /// An operation of all devices begins, whose operands are given and its results taken.
    fn begin_exchange(&mut self, event: &Event<'_>) {
        let _ = event;
    }
    /// It has ended.
    fn end_exchange(&mut self) {}
    /// Carries out an operation of all devices whose work they can do themselves but for what they
    /// exchange, between its begin and its end: a value for each result. `None` if it goes through
    /// arrays of the host as a whole.
    ///
    /// # Errors
    /// As [`Machine::operate`].
    fn together(&mut self, work: &Together<'_, Self::Tensor>) -> Result<Option<Vec<Value<Self::Tensor>>>, Reason> {
        let _ = work;
        Ok(None)
    }
    /// The array that a tensor holds.
    ///
    /// # Errors
    /// A machine that stopped.
    fn give(&mut self, tensor: &Self::Tensor) -> Result<Tensor, Reason>;
    /// The tensor with elements of another type, as the program describes it.
    ///
    /// # Errors
    /// As [`Machine::operate`].
    fn cast(&mut self, tensor: &Self::Tensor, dtype: DType, described: &TensorRef) -> Result<Self::Tensor, Reason>;
    /// Carries out an operation: one tensor for each result.
    ///
    /// # Errors
    /// An operation that cannot be done with these values; no room; a machine that stopped.
    fn operate(&mut self, work: &Work<'_, Self::Tensor>) -> Result<Vec<Self::Tensor>, Reason>;
    /// Records what it carries out from here on, too, so that it can be replayed.
    ///
    /// # Errors
    /// A machine that stopped.
    fn begin_trace(&mut self) -> Result<(), Reason> {
        Ok(())
    }
    /// Ends the record: its number, if there is one and it can be replayed.
    ///
    /// # Errors
    /// A machine that stopped.
    fn end_trace(&mut self) -> Result<Option<u64>, Reason> {
        Ok(None)
    }
    /// Does again what was recorded, for the operation at `place`, after the arrays of `inputs`
    /// (the first of each pair) have been written into the memory of the second ones. The results
    /// are where they were, so nothing is done, and `false` returned, when one of `results` has a
    /// name besides the caller's, or the record has made one of the inputs itself.
    ///
    /// # Errors
    /// A machine that stopped.
    fn replay(
        &mut self,
        trace: u64,
        place: OperationPlace,
        inputs: &[(&Self::Tensor, &Self::Tensor)],
        results: &[&Self::Tensor],
    ) -> Result<bool, Reason> {
        let _ = (trace, place, inputs, results);
        Ok(false)
    }
    /// Forgets a record.
    ///
    /// # Errors
    /// A machine that stopped.
    fn release(&mut self, trace: u64) -> Result<(), Reason> {
        let _ = trace;
        Ok(())
    }
    /// Waits for whatever it has not ended yet, at the end of a run.
    ///
    /// # Errors
    /// A machine that stopped.
    fn finish(&mut self) -> Result<(), Reason> {
        Ok(())
    }
}

/// Host arithmetic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

impl Machine for Native {
    type Tensor = Tensor;

    fn take(&mut self, array: Tensor, _: &TensorRef) -> Result<Tensor, Reason> {
        Ok(array)
    }
    fn give(&mut self, tensor: &Tensor) -> Result<Tensor, Reason> {
        Ok(tensor.clone())
    }
    fn cast(&mut self, tensor: &Tensor, dtype: DType, _: &TensorRef) -> Result<Tensor, Reason> {
        Ok(ops::typecast(tensor, dtype))
    }
    fn operate(&mut self, work: &Work<'_, Tensor>) -> Result<Vec<Tensor>, Reason> {
        match work.how {
            How::Compute(arithmetic) => arithmetic(work.device, &work.operands),
            How::Pass(dtype) => Ok(work.operands.iter().map(|tensor| ops::typecast(tensor, dtype)).collect()),
        }
    }
}

/// What remembers an array: the weak reference keeps its address from being used again.
pub struct ArrayMark {
    dtype: DType,
    shape: Shape,
    address: usize,
    values: Weak<dyn Any + Send + Sync>,
}

impl Held for Tensor {
    type Mark = ArrayMark;

    fn address(&self) -> usize {
        match self.storage() {
            Storage::F32(values) => Arc::as_ptr(values).addr(),
            Storage::F16(values) => Arc::as_ptr(values).addr(),
            Storage::BF16(values) => Arc::as_ptr(values).addr(),
            Storage::I32(values) => Arc::as_ptr(values).addr(),
            Storage::U32(values) => Arc::as_ptr(values).addr(),
            Storage::U16(values) => Arc::as_ptr(values).addr(),
            Storage::U8(values) => Arc::as_ptr(values).addr(),
        }
    }
    fn bytes(&self) -> usize {
        Tensor::bytes(self)
    }
    fn mark(&self) -> ArrayMark {
        fn weak<T: Send + Sync + 'static>(values: &Arc<Vec<T>>) -> Weak<dyn Any + Send + Sync> {
            let weak: Weak<Vec<T>> = Arc::downgrade(values);
            weak
        }
        let values = match self.storage() {
            Storage::F32(values) => weak(values),
            Storage::F16(values) => weak(values),
            Storage::BF16(values) => weak(values),
            Storage::I32(values) => weak(values),
            Storage::U32(values) => weak(values),
            Storage::U16(values) => weak(values),
            Storage::U8(values) => weak(values),
        };
        ArrayMark { dtype: self.dtype(), shape: self.shape().clone(), address: self.address(), values }
    }
    fn is(&self, mark: &ArrayMark) -> bool {
        mark.address == self.address() && mark.dtype == self.dtype() && mark.shape == *self.shape()
    }
    fn gone(mark: &ArrayMark) -> bool {
        mark.values.strong_count() == 0
    }
}
