//! Tensors of a run: in the memory of the device or of the host.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use tilework_engine::Held;
use tilework_ops::Tensor as Array;
use tilework_runtime::tensor::Tensor;

/// Where a tensor is.
#[derive(Debug)]
pub(crate) enum Place {
    /// In the host's memory.
    Host(Array),
    /// In the device's.
    Device(Box<Tensor>),
}

/// Memory of the device that nobody needs any more.
pub(crate) type Freed = Rc<RefCell<Vec<Tensor>>>;

#[derive(Debug)]
struct Owned {
    place: Place,
    freed: Freed,
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Place::Device(tensor) = &self.place {
            self.freed.borrow_mut().push((**tensor).clone());
        }
    }
}

/// A tensor of a run. Its memory is given back when its last name is gone.
#[derive(Clone, Debug)]
pub struct Placed(Rc<Owned>);

impl Placed {
    pub(crate) fn new(place: Place, freed: &Freed) -> Self {
        Self(Rc::new(Owned { place, freed: Rc::clone(freed) }))
    }

    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    /// Its names.
    pub(crate) fn names(&self) -> usize {
        Rc::strong_count(&self.0)
    }

    /// The tensor of the device, if it is there.
    pub(crate) fn on_device(&self) -> Option<&Tensor> {
        match self.place() {
            Place::Device(tensor) => Some(tensor),
            Place::Host(_) => None,
        }
    }
}

/// What remembers a tensor.
pub struct PlacedMark(Weak<Owned>);

impl Held for Placed {
    type Mark = PlacedMark;

    fn address(&self) -> usize {
        Rc::as_ptr(&self.0).addr()
    }
    fn bytes(&self) -> usize {
        match self.place() {
            Place::Host(array) => array.bytes(),
            Place::Device(tensor) => tensor.spec.bytes(),
        }
    }
    fn mark(&self) -> PlacedMark {
        PlacedMark(Rc::downgrade(&self.0))
    }
    fn is(&self, mark: &PlacedMark) -> bool {
        Weak::as_ptr(&mark.0) == Rc::as_ptr(&self.0)
    }
    fn gone(mark: &PlacedMark) -> bool {
        mark.0.strong_count() == 0
    }
}
