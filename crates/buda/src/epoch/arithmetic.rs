//! The interface between engine and arithmetic, and golden arithmetic behind it.
//!
//! The engine moves entries without knowing their contents; tests and fuzz targets use numbers in
//! place of tensors.

use crate::format;
use crate::golden;
use crate::op::{Notes, OpError, Precision, Reason};
use crate::queue::Entry;
use crate::tensor::{Tensor, TensorError, shape_of};
use crate::tm;
use thiserror::Error;
use tilework_netlist::types::{Netlist, OpId, QueueId, Shape};

/// Computes operations.
pub trait Arithmetic: Send + Sync {
    /// The type of queue entries.
    type Entry: Entry;

    /// The initial contents of a queue's memory.
    fn zeros(&self, netlist: &Netlist, queue: QueueId) -> Result<Self::Entry, ArithmeticError>;

    /// Executes an operation on one input; returns the result and notes. `previous` is the value
    /// that a gradient is added to.
    fn execute(
        &self,
        netlist: &Netlist,
        op: OpId,
        inputs: &[Self::Entry],
        previous: Option<&Self::Entry>,
    ) -> Result<(Self::Entry, Notes), ArithmeticError>;

    /// Converts an entry that an operation writes to what the queue stores. Default: unchanged.
    fn stored(&self, _: &Netlist, _: QueueId, entry: &Self::Entry) -> Result<Self::Entry, ArithmeticError> {
        Ok(entry.clone())
    }

    /// Converts an entry that the host pushes to what the queue stores. Default: unchanged.
    fn pushed(&self, _: &Netlist, _: QueueId, entry: &Self::Entry) -> Result<Self::Entry, ArithmeticError> {
        Ok(entry.clone())
    }

    /// Converts an entry of a queue to what the host reads. Default: unchanged.
    fn got(&self, _: &Netlist, _: QueueId, entry: &Self::Entry) -> Result<Self::Entry, ArithmeticError> {
        Ok(entry.clone())
    }
}

/// Arithmetic has failed.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs)]
pub enum ArithmeticError {
    #[error(transparent)]
    Op(Box<OpError>),
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error("queue {queue} holds {wanted:?} elements, not {found:?}")]
    Shape { queue: String, wanted: Shape, found: Shape },
    #[error("the TMs of queue {queue}: {reason}")]
    QueueTms { queue: String, reason: Box<Reason> },
}

/// Where values of floating-point formats are rounded to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// When the host pushes and reads, as in the original's golden model: between operations all
    /// values are float32.
    #[default]
    Host,
    /// Also when an operation writes a queue, as memory would.
    Queues,
    /// Never.
    Never,
}

/// Golden arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Golden {
    /// Where values are rounded.
    pub rounding: Rounding,
    /// In which precision operations compute.
    pub precision: Precision,
}

impl Golden {
    /// A tensor after rounding to the format of a queue.
    fn rounded(&self, netlist: &Netlist, queue: QueueId, tensor: &Tensor) -> Result<Tensor, ArithmeticError> {
        let tensor = shaped(netlist, queue, tensor)?;
        Ok(match self.rounding {
            Rounding::Never => tensor,
            Rounding::Host | Rounding::Queues => {
                format::quantise(netlist.queue(queue).format, &tensor, format::Options::default())
            }
        })
    }
}

/// The same values in the tiles of a queue.
fn shaped(netlist: &Netlist, queue: QueueId, tensor: &Tensor) -> Result<Tensor, ArithmeticError> {
    let is = netlist.queue(queue);
    let wanted = shape_of(&is.blocks)?;
    if tensor.shape() != wanted {
        return Err(ArithmeticError::Shape { queue: is.name.clone(), wanted, found: tensor.shape() });
    }
    Ok(tensor.reshaped(wanted, is.blocks.tile)?)
}

impl Arithmetic for Golden {
    type Entry = Tensor;

    fn zeros(&self, netlist: &Netlist, queue: QueueId) -> Result<Tensor, ArithmeticError> {
        let blocks = &netlist.queue(queue).blocks;
        Ok(Tensor::full(shape_of(blocks)?, blocks.tile, 0.0)?)
    }

    fn execute(
        &self,
        netlist: &Netlist,
        op: OpId,
        inputs: &[Tensor],
        previous: Option<&Tensor>,
    ) -> Result<(Tensor, Notes), ArithmeticError> {
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let options = golden::Options { precision: self.precision, ..golden::Options::default() };
        golden::execute_with(netlist, netlist.op(op), &inputs, previous, options)
            .map_err(|error| ArithmeticError::Op(Box::new(error)))
    }

    fn stored(&self, netlist: &Netlist, queue: QueueId, entry: &Tensor) -> Result<Tensor, ArithmeticError> {
        let is = netlist.queue(queue);
        let entry = tm::apply(0, &is.tms, entry)
            .map_err(|reason| ArithmeticError::QueueTms { queue: is.name.clone(), reason: Box::new(reason) })?;
        match self.rounding {
            Rounding::Queues => self.rounded(netlist, queue, &entry),
            Rounding::Host | Rounding::Never => shaped(netlist, queue, &entry),
        }
    }

    fn pushed(&self, netlist: &Netlist, queue: QueueId, entry: &Tensor) -> Result<Tensor, ArithmeticError> {
        self.rounded(netlist, queue, entry)
    }

    fn got(&self, netlist: &Netlist, queue: QueueId, entry: &Tensor) -> Result<Tensor, ArithmeticError> {
        self.rounded(netlist, queue, entry)
    }
}

impl Entry for Tensor {
    fn stack(parts: &[Self]) -> Option<Self> {
        let first = parts.first()?;
        let (shape, tile) = (first.shape(), first.tile());
        if parts.iter().any(|part| part.shape() != shape) {
            return None;
        }
        let values = parts.iter().flat_map(|part| part.values()).copied().collect();
        Tensor::new(Shape { t: shape.t * parts.len(), ..shape }, tile, values).ok()
    }

    fn split(&self, parts: usize) -> Option<Vec<Self>> {
        let shape = Shape { t: self.shape().t.checked_div(parts)?, ..self.shape() };
        if shape.t * parts != self.shape().t {
            return None;
        }
        let each = (shape.t * shape.rows * shape.columns).max(1);
        self.values().chunks(each).map(|values| Tensor::new(shape, self.tile(), values.to_vec()).ok()).collect()
    }

    fn bytes(&self) -> u64 {
        4 * self.elements() as u64
    }
}
