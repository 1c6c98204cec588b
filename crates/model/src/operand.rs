//! The tensors that an operation reads and writes, and their names.

use std::fmt;

use serde::Serialize;

use crate::ttnn::TensorRef;

/// Whether an operation reads a tensor, makes it, or changes it in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// It is read.
    In,
    /// It is created, or overwritten as a whole.
    Out,
    /// It is read and written in place.
    InOut,
}

/// The role of a tensor in an operation: the path of fields from the operation to it, such as
/// `weight`, `inputs[2]` or `params.begins`.
#[derive(Clone, Copy)]
pub struct Role<'p> {
    parent: Option<&'p Role<'p>>,
    step: RoleStep,
}

#[derive(Clone, Copy)]
enum RoleStep {
    Field(&'static str),
    Element(usize),
}

impl Role<'_> {
    /// A field of the operation itself, or one below `parent`.
    pub(crate) fn of<'p>(parent: Option<&'p Role<'p>>, name: &'static str) -> Role<'p> {
        Role { parent, step: RoleStep::Field(name) }
    }

    /// An element of this.
    pub(crate) fn element(&self, index: usize) -> Role<'_> {
        Role { parent: Some(self), step: RoleStep::Element(index) }
    }
}

impl fmt::Display for Role<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
            if matches!(self.step, RoleStep::Field(_)) {
                f.write_str(".")?;
            }
        }
        match self.step {
            RoleStep::Field(name) => f.write_str(name),
            RoleStep::Element(index) => write!(f, "[{index}]"),
        }
    }
}

/// Called with each tensor reference of an operation, in the order of the fields.
pub type Visitor<'v, 'a> = dyn FnMut(&Role<'_>, Direction, &'a TensorRef) + 'v;

/// A tensor of an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operand<'a> {
    /// Name of the role: `in`, `weight`, `inputs[2]`, `params.begins`.
    pub role: String,
    /// Whether it is read or made.
    pub direction: Direction,
    /// The tensor.
    pub tensor: &'a TensorRef,
}
