//! Errors of operations.

use tilework_netlist::types::{Position, Shape};

use crate::tensor::{TensorError, describe};

/// An operation that cannot be computed on these operands.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("operation {op} (line {}): {reason}", .at.line)]
pub struct OpError {
    /// Its name.
    pub op: String,
    /// Where the netlist defines it.
    pub at: Position,
    /// What is wrong.
    pub reason: Reason,
}

/// Why an operation cannot be computed. Operands count from 0, as `input_0_tms` does.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Reason {
    /// The wrong number of operands.
    #[error("it has {found} operands and takes {wanted}")]
    Operands {
        /// Operands passed.
        found: usize,
        /// What it takes.
        wanted: String,
    },
    /// An operand whose shape does not fit the operation.
    #[error("operand {operand} is {} where {} is needed: {why}", describe(.found), describe(.wanted))]
    Shape {
        /// Which operand.
        operand: usize,
        /// Its shape after its TMs.
        found: Shape,
        /// The shape that is needed.
        wanted: Shape,
        /// Where the wanted shape comes from.
        why: &'static str,
    },
    /// The result is not of the shape that the netlist gives the operation.
    #[error(
        "its operands give {} where its grid, blocks and t say {}; check them and the TMs",
        describe(.found),
        describe(.wanted)
    )]
    Output {
        /// Shape of the result.
        found: Shape,
        /// Shape by grid_size, mblock, ublock and t.
        wanted: Shape,
    },
    /// The gradient and the ram's contents have different shapes.
    #[error("the gradient is {} and the ram holds {}", describe(.found), describe(.previous))]
    Gradient {
        /// Shape of the gradient.
        found: Shape,
        /// Shape of what is there.
        previous: Shape,
    },
    /// A TM, pad or unpad that does not fit its operand.
    #[error("operand {operand}: {tm} of {}: {why}", describe(.found))]
    Tm {
        /// Which operand.
        operand: usize,
        /// The TM as the netlist writes it.
        tm: String,
        /// The shape that it is applied to.
        found: Shape,
        /// What does not fit.
        why: String,
    },
    /// An attribute that is not valid here.
    #[error("attribute {name}: {why}")]
    Attribute {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A value that the function is not defined for.
    #[error("{function} of {value}, at index {index} of operand 0")]
    Domain {
        /// The function.
        function: &'static str,
        /// The value.
        value: f32,
        /// Its place in row-major order.
        index: usize,
    },
    /// A splice that leaves a part of an operand unused, or needs more than it has.
    #[error("splice takes {used} of the {has} {unit} of operand {operand}; index, length and stride must use up all")]
    Splice {
        /// Which operand.
        operand: usize,
        /// Where its offset ended.
        used: usize,
        /// Ublocks or matrices that it has.
        has: usize,
        /// `ublocks of each core` or `matrices`.
        unit: &'static str,
    },
    /// An index outside of what it points into.
    #[error("{what} {index} of {bound}")]
    Index {
        /// What is indexed.
        what: &'static str,
        /// The index found.
        index: f32,
        /// How many there are.
        bound: usize,
    },
    /// No such fused operation.
    #[error("there is no fused operation {0}")]
    NoFused(usize),
    /// A step of a fused operation.
    #[error("step {step}: {reason}")]
    Step {
        /// Name of the step.
        step: String,
        /// What is wrong.
        reason: Box<Reason>,
    },
    /// A buffer of a fused operation that is empty or full when it must not be.
    #[error("{buffer} {why}")]
    Buffer {
        /// The buffer, as the netlist writes it.
        buffer: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A tensor that cannot be created.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl Reason {
    /// A [`Reason::Attribute`].
    pub(crate) fn attribute(name: &'static str, why: impl Into<String>) -> Reason {
        Reason::Attribute { name, why: why.into() }
    }
}
