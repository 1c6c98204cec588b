//! Bisection: the first operation whose result departs from a reference.
//!
//! All results are compared as they are computed, so the one found is the first in the order of
//! execution; the results before it are within the tolerance wherever the reference has a value.

use tilework_ops::Tensor;

use crate::compare::{Comparison, Tolerance};
use crate::error::OperationPlace;
use crate::observe::{Event, Flow, Observer, Output};

/// A result that departs from the reference.
#[derive(Clone, Debug)]
pub struct Departure {
    /// The operation.
    pub place: OperationPlace,
    /// Which of its results, counted from 0.
    pub output: usize,
    /// The comparison, or the two shapes if they differ.
    pub what: Result<Comparison, String>,
}

/// A result that may be compared.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Which of the operation's results it is.
    pub output: usize,
    /// The device of the mesh, when each has its own tensor.
    pub device: Option<usize>,
    /// The result.
    pub tensor: &'a Tensor,
}

/// Compares each result with a reference and stops the run at the first outside the tolerance.
pub struct Bisect<R> {
    reference: R,
    /// Results that were compared.
    pub compared: usize,
    /// The result that was found; the run then ends with
    /// [`Reason::Stopped`](crate::Reason::Stopped).
    pub found: Option<Departure>,
}

impl<R: FnMut(&Event<'_>, Candidate<'_>) -> Option<(Tensor, Tolerance)>> Bisect<R> {
    /// Compares each result with the value that `reference` returns for it, within the tolerance
    /// that it returns; results for which it returns nothing are not compared.
    pub fn new(reference: R) -> Self {
        Self { reference, compared: 0, found: None }
    }
}

impl<R: FnMut(&Event<'_>, Candidate<'_>) -> Option<(Tensor, Tolerance)>> Observer for Bisect<R> {
    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        for (output, result) in outputs.iter().enumerate() {
            for (device, tensor) in result.value.tensors().enumerate() {
                let device = result.value.single().is_none().then_some(device);
                let candidate = Candidate { output, device, tensor };
                let Some((expected, tolerance)) = (self.reference)(event, candidate) else { continue };
                self.compared += 1;
                let compared = Comparison::of(tensor, &expected, tolerance);
                if compared.as_ref().is_ok_and(Comparison::passes) {
                    continue;
                }
                let what = compared.map_err(|error| error.to_string());
                self.found = Some(Departure { place: event.place(), output, what });
                return Flow::Stop;
            }
        }
        Flow::Continue
    }
}
