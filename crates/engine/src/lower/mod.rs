//! From the operations of a file to functions of tensors: a module for each family.
//!
//! Lowering an operation checks everything about it that does not depend on its tensors' values, so
//! that an operation that a plan accepts can only fail for its values. The table [`table`] decides
//! which kinds are supported; each entry is a function that says which tensors the operation reads
//! and makes ([`Lowering`]) and what it does ([`Action`]).

mod attention;
mod ccl;
mod control;
mod conv;
mod creation;
mod cumulative;
mod debug;
mod eltwise;
mod fused;
mod gather;
mod kv_cache;
mod layout;
mod matmul;
mod moe;
mod movement;
mod native;
mod norm;
mod pool;
mod quant;
mod reduction;
mod rows;
mod table;
mod training;

use std::ops::Index;
use std::sync::Arc;

use tilework_model::common::{DataType, DynamicLib};
use tilework_model::schema::Edition;
use tilework_model::ttnn::{Op, TensorRef};
use tilework_native::NativeHost;
use tilework_ops::mesh::Mesh;
use tilework_ops::{DType, OpError, Shape, Tensor};

use crate::describe::Stated;
use crate::error::Reason;
use crate::session::Rounding;
use crate::value::Value;

pub(crate) use control::{Bound, Call, Loop, LoopCount, TracedCall};
pub(crate) use table::support;

/// Why an operation cannot be lowered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The engine does not implement this.
    Unsupported(String),
    /// It calls native code, which is not allowed.
    NativeCode,
    /// The operation contradicts itself.
    Malformed(String),
    /// A tensor's element type.
    Type(DataType),
    /// A tensor's shape.
    Shape(String),
}

impl Refusal {
    pub(crate) fn unsupported(why: impl Into<String>) -> Self {
        Self::Unsupported(why.into())
    }

    pub(crate) fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }

    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::Unsupported(why) => Reason::Unsupported(why),
            Self::NativeCode => Reason::NativeCode,
            Self::Malformed(why) => Reason::Malformed(why),
            Self::Type(data_type) => Reason::Unsupported(format!("tensors of {data_type}")),
            Self::Shape(why) => Reason::Malformed(why),
        }
    }
}

/// One of the tensors that an operation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// How an operation writes a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// It makes the tensor, which must not exist.
    New,
    /// It changes the tensor, which must exist.
    Change,
}

/// The tensors that an operation reads on one device.
pub(crate) struct Args<'a> {
    device: usize,
    tensors: &'a [&'a Tensor],
}

impl<'a> Args<'a> {
    pub(crate) fn on(device: usize, tensors: &'a [&'a Tensor]) -> Self {
        Self { device, tensors }
    }

    /// The device of the mesh; the first where all have the same tensors.
    pub(crate) fn device(&self) -> usize {
        self.device
    }

    /// An optional tensor.
    pub(crate) fn get(&self, slot: Option<Slot>) -> Option<&'a Tensor> {
        slot.map(|slot| self.tensors[slot.0])
    }

    /// All of them in order.
    pub(crate) fn all(&self) -> &[&'a Tensor] {
        self.tensors
    }
}

/// A slot is an index into the tensors by construction: only [`Lowering`] makes slots, one for
/// each tensor.
impl Index<Slot> for Args<'_> {
    type Output = Tensor;

    fn index(&self, slot: Slot) -> &Tensor {
        self.tensors[slot.0]
    }
}

/// A function of the tensors of one device.
pub(crate) type Compute<'m> = Box<dyn Fn(&Args<'_>) -> Result<Vec<Tensor>, OpError> + 'm>;

/// A function of the tensors of all devices.
pub(crate) type Collective<'m> = Box<dyn Fn(&[&Value]) -> Result<Vec<Value>, Reason> + 'm>;

/// What an operation does.
pub(crate) enum Action<'m> {
    /// Computes results on each device by itself: one for each tensor that is written, in order.
    Compute(Compute<'m>),
    /// The same where results depend on which device it is, whatever the tensors are.
    OnEach(Compute<'m>),
    /// Computes results from the tensors of all devices.
    Collective(Collective<'m>),
    /// Passes the tensor on in another element type.
    Pass {
        /// The element type.
        dtype: DType,
    },
    /// Removes the name of the tensor that it reads.
    Free,
    /// Reports a message to the observer; what it writes is what it reads.
    Say(&'m str),
    /// No effect: it concerns devices that the host does not have.
    Nothing,
    /// Runs other programs.
    Call(Call<'m>),
}

/// What an operation does, or why it cannot be lowered.
type Lowered<'m> = Result<Action<'m>, Refusal>;

/// Collects the tensors of an operation.
pub(crate) struct Lowering<'m> {
    pub(crate) reads: Vec<&'m TensorRef>,
    pub(crate) writes: Vec<(&'m TensorRef, Write)>,
    /// The devices that the program runs on.
    mesh: Mesh,
    rounding: Rounding,
    edition: Edition,
    native: NativeCode<'m>,
}

/// The native libraries of a program, and what runs them if they may run.
#[derive(Clone)]
pub(crate) struct NativeCode<'m> {
    pub(crate) libraries: &'m [DynamicLib],
    pub(crate) host: Option<Arc<NativeHost>>,
}

/// Where an operation stands.
#[derive(Clone)]
pub(crate) struct Setting<'m> {
    /// The devices that its program runs on.
    pub(crate) mesh: Mesh,
    pub(crate) rounding: Rounding,
    /// The file's edition.
    pub(crate) edition: Edition,
    pub(crate) native: NativeCode<'m>,
}

impl<'m> Lowering<'m> {
    /// Lowers an operation.
    pub(crate) fn of(op: &'m Op, setting: &Setting<'m>) -> Result<(Self, Action<'m>), Refusal> {
        let Setting { mesh, rounding, edition, native } = setting.clone();
        let mut lowering = Self { reads: Vec::new(), writes: Vec::new(), mesh, rounding, edition, native };
        let action = table::lower(op, &mut lowering)?;
        Ok((lowering, action))
    }

    /// Adds a tensor that is read.
    fn read(&mut self, tensor: &'m TensorRef) -> Slot {
        self.reads.push(tensor);
        Slot(self.reads.len() - 1)
    }

    /// Adds a tensor that is read, if it is there.
    fn read_if(&mut self, tensor: &'m Option<TensorRef>) -> Option<Slot> {
        tensor.as_ref().map(|tensor| self.read(tensor))
    }

    /// Adds a tensor that is made; returns its element type.
    fn make(&mut self, tensor: &'m TensorRef) -> Result<DType, Refusal> {
        Ok(self.make_whole(tensor)?.dtype)
    }

    /// Adds a tensor that is made; returns its element type and shape.
    fn make_whole(&mut self, tensor: &'m TensorRef) -> Result<Stated, Refusal> {
        self.writes.push((tensor, Write::New));
        Ok(Stated::of(&tensor.desc)?.under(self.rounding))
    }

    /// Adds a tensor that is read and changed in place.
    fn change(&mut self, tensor: &'m TensorRef) -> Slot {
        self.writes.push((tensor, Write::Change));
        self.read(tensor)
    }

    /// Adds a tensor that is overwritten; returns its element type.
    fn overwrite(&mut self, tensor: &'m TensorRef) -> Result<DType, Refusal> {
        self.writes.push((tensor, Write::Change));
        Ok(Stated::of(&tensor.desc)?.under(self.rounding).dtype)
    }
}

/// An operation of one result.
fn one<'m>(f: impl Fn(&Args<'_>) -> Result<Tensor, OpError> + 'm) -> Action<'m> {
    Action::Compute(Box::new(move |args| Ok(vec![f(args)?])))
}

/// Several results.
fn many<'m>(f: impl Fn(&Args<'_>) -> Result<Vec<Tensor>, OpError> + 'm) -> Action<'m> {
    Action::Compute(Box::new(f))
}

/// A number that is a count: not negative.
fn count(name: &str, number: impl Into<i64>) -> Result<usize, Refusal> {
    let number = number.into();
    usize::try_from(number).map_err(|_| Refusal::malformed(format!("{name} is {number}")))
}

/// `N` numbers that are counts.
fn counts<const N: usize>(name: &str, numbers: &[i32]) -> Result<[usize; N], Refusal> {
    let list: Vec<usize> = numbers.iter().map(|&number| count(name, number)).collect::<Result<_, _>>()?;
    list.try_into().map_err(|_| Refusal::malformed(format!("{name} has {} numbers instead of {N}", numbers.len())))
}

/// Numbers of a file as the operation library takes them.
fn wide(numbers: &[i32]) -> Vec<i64> {
    numbers.iter().map(|&number| i64::from(number)).collect()
}

/// A tensor of one integer and no dimensions.
fn scalar(dtype: DType, number: i64) -> Result<Tensor, OpError> {
    Tensor::from_i64(dtype, Shape::scalar(), &[number])
}
