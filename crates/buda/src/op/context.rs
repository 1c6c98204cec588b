//! What an operation is told beside its operands, and what it has noticed.

use tilework_dtype::DType;
use tilework_netlist::types::{Fidelity, Op};

use super::Notes;

/// In which precision operations compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// In float32 whatever the formats, as the original's golden model.
    #[default]
    Exact,
    /// As `acc_df`, `intermed_df` and `math_fidelity` say ([`super::unit`]).
    Device,
}

/// Formats of an operation or of a step of a fused one, with its notes.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// Formats of the operands, in order; what is missing is Float32.
    pub inputs: Vec<DType>,
    /// `acc_df`: format of the destination registers.
    pub acc: DType,
    /// `intermed_df`: format of intermediate buffers.
    pub intermed: DType,
    /// `out_df`: format of the result.
    pub out: DType,
    /// `math_fidelity`.
    pub fidelity: Fidelity,
    /// Whether these formats count.
    pub precision: Precision,
    /// What has been noticed.
    pub notes: Notes,
}

impl Default for Context {
    /// Float32 throughout.
    fn default() -> Self {
        let (acc, intermed, out, fidelity) = (DType::F32, DType::F32, DType::F32, Fidelity::HiFi4);
        let (precision, notes) = (Precision::default(), Notes::default());
        Self { inputs: Vec::new(), acc, intermed, out, fidelity, precision, notes }
    }
}

impl Context {
    /// What the netlist says of an operation.
    pub fn of(op: &Op, precision: Precision) -> Self {
        Self {
            inputs: op.inputs.iter().map(|input| input.format).collect(),
            acc: op.acc_format,
            intermed: op.intermed_format,
            out: op.out_format,
            fidelity: op.fidelity,
            precision,
            notes: Notes { integer: op.acc_format == DType::I32, ..Notes::default() },
        }
    }

    /// Whether products are those of integers: an operand is Int8 or Int32.
    pub(crate) fn has_integers(&self) -> bool {
        self.inputs.iter().any(|format| matches!(format, DType::I8 | DType::I32))
    }
}
