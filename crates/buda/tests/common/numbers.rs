//! Arithmetic on one number in the place of a tensor: what an operation gives depends on the
//! operation and on each of its operands, so that a wrong operand or order shows.

#![allow(dead_code, reason = "not every test uses all of it")]

use tilework_buda::epoch::{Arithmetic, ArithmeticError};
use tilework_buda::op::Notes;
use tilework_buda::queue::Entry;
use tilework_netlist::types::{Netlist, OpId, QueueId};

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Number(pub Vec<u64>);

/// The arithmetic.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Numbers;

fn mix(values: impl IntoIterator<Item = u64>) -> u64 {
    values
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, value| (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

impl Entry for Number {
    fn stack(parts: &[Self]) -> Option<Self> {
        Some(Self(parts.iter().flat_map(|part| part.0.iter().copied()).collect()))
    }

    fn split(&self, parts: usize) -> Option<Vec<Self>> {
        let whole = parts > 0 && self.0.len().is_multiple_of(parts) && !self.0.is_empty();
        whole.then(|| self.0.chunks(self.0.len() / parts).map(|part| Self(part.to_vec())).collect())
    }

    fn bytes(&self) -> u64 {
        8 * self.0.len() as u64
    }
}

impl Arithmetic for Numbers {
    type Entry = Number;

    fn zeros(&self, netlist: &Netlist, queue: QueueId) -> Result<Number, ArithmeticError> {
        Ok(Number(vec![0; netlist.queue(queue).blocks.t.clamp(1, 64) as usize]))
    }

    fn execute(
        &self,
        netlist: &Netlist,
        op: OpId,
        inputs: &[Number],
        previous: Option<&Number>,
    ) -> Result<(Number, Notes), ArithmeticError> {
        let inputs = inputs.iter().chain(previous).flat_map(|input| input.0.iter().copied());
        let result = mix([op.graph.0 as u64, op.op as u64].into_iter().chain(inputs));
        Ok((Number(vec![result; netlist.op(op).blocks.t.clamp(1, 64) as usize]), Notes::default()))
    }
}
