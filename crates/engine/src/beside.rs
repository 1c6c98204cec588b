//! Host arithmetic beside another machine: each operation is carried out by both and their results
//! are compared, so that the first operation that departs is known with what it had read.

use tilework_model::Model;
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::{DType, Tensor};

use crate::compare::{Comparison, Tolerance};
use crate::error::{OperationPlace, Reason};
use crate::machine::{Held, Machine, Native, Together, Work};
use crate::observe::Event;
use crate::value::Value;

/// What the operations of the machine read while it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Its own results: errors add up, as they do without a comparison.
    Own,
    /// The results of host arithmetic: each operation is judged by itself.
    Native,
}

/// A tensor of a machine, and the same by host arithmetic if both are compared.
#[derive(Clone)]
pub struct Both<T> {
    machine: T,
    native: Option<Tensor>,
}

impl<T: Held> Held for Both<T> {
    type Mark = T::Mark;

    fn address(&self) -> usize {
        self.machine.address()
    }
    fn bytes(&self) -> usize {
        self.machine.bytes()
    }
    fn mark(&self) -> T::Mark {
        self.machine.mark()
    }
    fn is(&self, mark: &T::Mark) -> bool {
        self.machine.is(mark)
    }
    fn gone(mark: &T::Mark) -> bool {
        T::gone(mark)
    }
}

/// A result that differs by more than its tolerance.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The operation.
    pub place: OperationPlace,
    /// Which of its results.
    pub output: usize,
    /// On which device of the mesh.
    pub device: usize,
    /// The comparison, or the two shapes if they differ.
    pub what: Result<Comparison, String>,
}

/// The arrays of the first operation that departs.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// What the machine had read.
    pub inputs: Vec<Tensor>,
    /// The result of host arithmetic.
    pub native: Tensor,
    /// The machine's.
    pub found: Tensor,
}

/// What a comparison has found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Results that were compared.
    pub compared: usize,
    /// Those that differ, in the order of execution; the first [`Findings::LISTED`].
    pub differences: Vec<Difference>,
    /// How many differ.
    pub departed: usize,
    /// What the first has read and made.
    pub evidence: Option<Evidence>,
}

impl Findings {
    /// The most differences that are listed.
    pub const LISTED: usize = 100;
}

/// A machine, compared with host arithmetic if that is asked for.
pub struct Beside<M> {
    machine: M,
    /// With the tolerances for the floats of each program.
    comparing: Option<(Feed, Vec<Tolerance>)>,
    findings: Findings,
}

impl<M: Machine> Beside<M> {
    /// A machine alone.
    pub fn alone(machine: M) -> Self {
        Self { machine, comparing: None, findings: Findings::default() }
    }

    /// A machine whose results are compared: floats within the tolerances of a model's programs
    /// ([`Tolerance::of_floats`], and [`Tolerance::SHORT_OPERANDS`] for float32 where there are
    /// products), all else exactly.
    pub fn compared(machine: M, feed: Feed, model: &Model) -> Self {
        let mut operations = model.programs().iter().flat_map(|program| &program.operations);
        let products = operations.any(|operation| is_product(&operation.op));
        let of = |program| match Tolerance::of_floats(program) {
            Tolerance::FLOAT32 if products => Tolerance::SHORT_OPERANDS,
            tolerance => tolerance,
        };
        let floats = model.programs().iter().map(of).collect();
        Self { machine, comparing: Some((feed, floats)), findings: Findings::default() }
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The same, to be asked or told something.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Forgets what was found before a run begins.
    pub fn forget_findings(&mut self) {
        self.findings = Findings::default();
    }

    /// What was found, if it is compared.
    pub fn findings(&self) -> Option<&Findings> {
        self.comparing.is_some().then_some(&self.findings)
    }

    /// Compares a result of an operation; gives the machine's tensor that goes on.
    fn compare(
        &mut self,
        work: &Work<'_, M::Tensor>,
        output: usize,
        made: M::Tensor,
        native: &Tensor,
    ) -> Result<M::Tensor, Reason> {
        let Some((feed, floats)) = &self.comparing else { return Ok(made) };
        let floats = floats.get(work.event.program).copied().unwrap_or(Tolerance::FLOAT32);
        let (feed, tolerance) = (*feed, floats.for_result(native, *feed == Feed::Own));
        let found = self.machine.give(&made)?;
        let compared = Comparison::of(&found, native, tolerance);
        self.findings.compared += 1;
        if !compared.as_ref().is_ok_and(Comparison::passes) {
            let what = compared.map_err(|mismatch| mismatch.to_string());
            if self.findings.evidence.is_none() {
                let inputs = work.operands.iter().map(|operand| self.machine.give(operand));
                let inputs = inputs.collect::<Result<_, _>>()?;
                self.findings.evidence = Some(Evidence { inputs, native: native.clone(), found });
            }
            self.findings.departed += 1;
            if self.findings.differences.len() < Findings::LISTED {
                let (place, device) = (work.event.place(), work.device);
                self.findings.differences.push(Difference { place, output, device, what });
            }
        }
        match (feed, work.results.get(output)) {
            (Feed::Native, Some(wanted)) => self.machine.take_on(work.device, native.clone(), wanted.tensor),
            _ => Ok(made),
        }
    }
}

impl<M: Machine> Machine for Beside<M> {
    type Tensor = Both<M::Tensor>;

    fn take(&mut self, array: Tensor, described: &TensorRef) -> Result<Self::Tensor, Reason> {
        let native = self.comparing.is_some().then(|| array.clone());
        Ok(Both { machine: self.machine.take(array, described)?, native })
    }

    fn take_on(&mut self, device: usize, array: Tensor, described: &TensorRef) -> Result<Self::Tensor, Reason> {
        let native = self.comparing.is_some().then(|| array.clone());
        Ok(Both { machine: self.machine.take_on(device, array, described)?, native })
    }

    fn has_devices(&self) -> bool {
        self.machine.has_devices()
    }

    fn begin_exchange(&mut self, event: &Event<'_>) {
        self.machine.begin_exchange(event);
    }

    fn end_exchange(&mut self) {
        self.machine.end_exchange();
    }

    /// Compared, operations of all devices go through arrays of the host.
    fn together(&mut self, work: &Together<'_, Self::Tensor>) -> Result<Option<Vec<Value<Self::Tensor>>>, Reason> {
        if self.comparing.is_some() {
            return Ok(None);
        }
        let operands: Vec<Value<M::Tensor>> =
            work.operands.iter().map(|value| value.map(|both| both.machine.clone())).collect();
        let (event, mesh, reads) = (work.event, work.mesh, work.reads);
        let (operands, results) = (operands.iter().collect(), work.results.clone());
        let made = self.machine.together(&Together { event, mesh, reads, operands, results })?;
        let alone = |machine: &M::Tensor| Both { machine: machine.clone(), native: None };
        Ok(made.map(|made| made.iter().map(|value| value.map(alone)).collect()))
    }

    /// What devices exchange is the machine's: both go on with it.
    fn give(&mut self, tensor: &Self::Tensor) -> Result<Tensor, Reason> {
        self.machine.give(&tensor.machine)
    }

    fn cast(&mut self, tensor: &Self::Tensor, dtype: DType, described: &TensorRef) -> Result<Self::Tensor, Reason> {
        let native = tensor.native.as_ref().map(|native| Native.cast(native, dtype, described)).transpose()?;
        Ok(Both { machine: self.machine.cast(&tensor.machine, dtype, described)?, native })
    }

    fn operate(&mut self, work: &Work<'_, Self::Tensor>) -> Result<Vec<Self::Tensor>, Reason> {
        let missing = || Reason::Value("a tensor of another machine".into());
        let own = work.with_operands(|both| Some(&both.machine)).ok_or_else(missing)?;
        let made = self.machine.operate(&own)?;
        if self.comparing.is_none() {
            return Ok(made.into_iter().map(|machine| Both { machine, native: None }).collect());
        }
        let native = Native.operate(&work.with_operands(|both| both.native.as_ref()).ok_or_else(missing)?)?;
        let results = made.into_iter().zip(native).enumerate().map(|(output, (made, native))| {
            Ok(Both { machine: self.compare(&own, output, made, &native)?, native: Some(native) })
        });
        results.collect()
    }

    fn begin_trace(&mut self) -> Result<(), Reason> {
        if self.comparing.is_none() { self.machine.begin_trace() } else { Ok(()) }
    }

    fn end_trace(&mut self) -> Result<Option<u64>, Reason> {
        // A replay has no operations that could be compared.
        if self.comparing.is_none() { self.machine.end_trace() } else { Ok(None) }
    }

    fn replay(
        &mut self,
        trace: u64,
        place: OperationPlace,
        inputs: &[(&Self::Tensor, &Self::Tensor)],
        results: &[&Self::Tensor],
    ) -> Result<bool, Reason> {
        let inputs: Vec<_> = inputs.iter().map(|(from, to)| (&from.machine, &to.machine)).collect();
        let results: Vec<_> = results.iter().map(|both| &both.machine).collect();
        self.machine.replay(trace, place, &inputs, &results)
    }

    fn release(&mut self, trace: u64) -> Result<(), Reason> {
        self.machine.release(trace)
    }

    fn finish(&mut self) -> Result<(), Reason> {
        self.machine.finish()
    }
}

/// Whether an operation is a product of matrices, for the matrix unit of a chip.
fn is_product(op: &Op) -> bool {
    matches!(op, Op::Matmul(_) | Op::Linear(_) | Op::Conv2d(_) | Op::Conv3d(_) | Op::ScaledDotProductAttention(_))
}
