//! Calls of other programs.

use std::collections::BTreeMap;

use tilework_model::ttnn::TensorRef;
use tilework_ops::Tensor;

use crate::describe::Stated;
use crate::error::{Reason, RunError, Subject};
use crate::lower::{Bound, Call, Loop, LoopCount};
use crate::machine::{Held, Machine};
use crate::plan::{Planned, Step};
use crate::run::pool::Pool;
use crate::run::{Finished, Runner};
use crate::value::Value;

impl<'m, M: Machine> Runner<'_, 'm, M> {
    /// Results of an operation that calls other programs.
    pub(super) fn call(
        &mut self,
        planned: &Planned<'m>,
        step: &Step<'m>,
        call: &Call<'m>,
        pool: &mut Pool<'m, M::Tensor>,
        depth: usize,
    ) -> Result<Vec<Value<M::Tensor>>, RunError> {
        let failed = |reason| RunError::new(Subject::Operation(planned.place(step)), reason);
        let inputs: Option<Vec<Value<M::Tensor>>> =
            step.reads.iter().map(|tensor| pool.get(tensor.global_id).cloned()).collect();
        let inputs = inputs.ok_or_else(|| failed(Reason::Value("an operand is missing".into())))?;
        let mut caller = Caller { runner: self, planned, step, depth: depth + 1 };
        let Finished { outputs, changed } = match call {
            Call::Function { program } => caller.run(*program, inputs)?,
            Call::Cached { program, hash } => caller.cached(*program, hash, inputs)?,
            Call::Case { branches } => caller.case(branches, inputs)?,
            Call::Loop(by) => caller.repeat(by, inputs)?,
            Call::Traced(by) => caller.traced(by, inputs)?,
        };
        for (position, value) in changed {
            pool.change(step.reads[position].global_id, value, &mut self.ledger);
        }
        Ok(outputs)
    }
}

/// An operation that calls other programs.
pub(super) struct Caller<'c, 'r, 'm, M: Machine> {
    pub(super) runner: &'c mut Runner<'r, 'm, M>,
    pub(super) planned: &'c Planned<'m>,
    pub(super) step: &'c Step<'m>,
    depth: usize,
}

impl<M: Machine> Caller<'_, '_, '_, M> {
    /// Tensors in the element types that a program states for its inputs.
    pub(super) fn fitted(
        &mut self,
        program: usize,
        values: Vec<Value<M::Tensor>>,
    ) -> Result<Vec<Value<M::Tensor>>, RunError> {
        let Some(planned) = self.runner.plan.get(program) else { return Ok(values) };
        values.iter().zip(&planned.program.inputs).map(|(value, input)| self.kept(value, input)).collect()
    }

    /// A value in the element type that such a tensor has while the program runs.
    pub(super) fn kept(&mut self, value: &Value<M::Tensor>, tensor: &TensorRef) -> Result<Value<M::Tensor>, RunError> {
        let Ok(stated) = Stated::of(&tensor.desc) else { return Ok(value.clone()) };
        let dtype = stated.under(self.runner.options.rounding).dtype;
        let cast = value.try_map(|held| self.runner.machine.cast(held, dtype, tensor));
        cast.map_err(|reason| self.failed(reason))
    }

    pub(super) fn run(
        &mut self,
        program: usize,
        inputs: Vec<Value<M::Tensor>>,
    ) -> Result<Finished<M::Tensor>, RunError> {
        let (planned, step) = (self.planned, self.step);
        self.runner.program(program, inputs, self.depth).map_err(|error| error.called_from(planned.place(step)))
    }

    pub(super) fn failed(&self, reason: Reason) -> RunError {
        RunError::new(Subject::Operation(self.planned.place(self.step)), reason)
    }

    /// A tensor as an array of the host.
    fn array(&mut self, value: &Value<M::Tensor>) -> Result<Tensor, RunError> {
        self.runner.machine.give(value.on(0)).map_err(|reason| self.failed(reason))
    }

    /// The first integer of a tensor.
    fn number(&mut self, value: &Value<M::Tensor>, what: &str) -> Result<i64, RunError> {
        let number = self.array(value)?.to_i64().first().copied();
        number.ok_or_else(|| self.failed(Reason::Value(format!("{what} is a tensor without elements"))))
    }

    fn cached(
        &mut self,
        program: usize,
        hash: &str,
        inputs: Vec<Value<M::Tensor>>,
    ) -> Result<Finished<M::Tensor>, RunError> {
        let outputs = match self.runner.cache.find(program, hash, &inputs) {
            Some(outputs) => outputs,
            None => {
                let outputs = self.run(program, inputs.clone())?.outputs;
                self.runner.cache.keep(program, hash, &inputs, outputs.clone());
                outputs
            }
        };
        for value in &outputs {
            if self.runner.kept.insert(value.on(0).address(), value.clone()).is_none() {
                self.runner.ledger.add(value);
            }
        }
        Ok(Finished { outputs, changed: BTreeMap::new() })
    }

    /// An index beyond the branches selects the last one.
    fn case(&mut self, branches: &[usize], mut inputs: Vec<Value<M::Tensor>>) -> Result<Finished<M::Tensor>, RunError> {
        let index = self.number(&inputs.remove(0), "the index")?;
        let chosen = usize::try_from(index).ok().and_then(|index| branches.get(index)).or(branches.last());
        let Some(&program) = chosen else { return Err(self.failed(Reason::Value("no branches".into()))) };
        let mut finished = self.run(program, inputs)?;
        // The first operand is the index, which is not an input of the branches.
        finished.changed = finished.changed.into_iter().map(|(position, value)| (position + 1, value)).collect();
        Ok(finished)
    }

    fn repeat(&mut self, by: &Loop, mut inputs: Vec<Value<M::Tensor>>) -> Result<Finished<M::Tensor>, RunError> {
        let mut changed = BTreeMap::new();
        let mut left = match by.count {
            LoopCount::While(_) => None,
            LoopCount::For(bounds) => Some(self.iterations(bounds, &inputs)?),
        };
        loop {
            match (&mut left, by.count) {
                (Some(0), _) => break,
                (Some(left), _) => *left -= 1,
                (None, LoopCount::While(condition)) => {
                    let finished = self.run(condition, inputs.clone())?;
                    let truth = finished.outputs.first().map(|value| self.array(value)).transpose()?;
                    if !truth.is_some_and(|truth| truth.to_f32().first().is_some_and(|&truth| truth != 0.0)) {
                        break;
                    }
                }
                (None, LoopCount::For(_)) => break,
            }
            self.runner.spend().map_err(|reason| self.failed(reason))?;
            let finished = self.run(by.body, inputs.clone())?;
            // An input that is not state but changes in place is changed for the next iteration,
            // and for the caller.
            for (position, value) in finished.changed.into_iter().filter(|(position, _)| *position >= by.state) {
                inputs[position] = value.clone();
                changed.insert(position, value);
            }
            inputs.splice(..by.state, finished.outputs);
        }
        let outputs = by.outputs.iter().map(|&index| inputs[index].clone()).collect();
        Ok(Finished { outputs, changed })
    }

    /// Number of iterations from the first below the second in steps of the third.
    fn iterations(&mut self, bounds: [Bound; 3], inputs: &[Value<M::Tensor>]) -> Result<u64, RunError> {
        let mut number = |bound, what| match bound {
            Bound::Number(number) => Ok(i128::from(number)),
            Bound::Input(index) => self.number(&inputs[index], what).map(i128::from),
        };
        let [first, limit, step] = bounds;
        let (first, limit) = (number(first, "the first number")?, number(limit, "the limit")?);
        let step = number(step, "the step")?;
        if step <= 0 {
            return Err(self.failed(Reason::Value(format!("a loop that counts in steps of {step}"))));
        }
        let count = (limit - first).max(0) + step - 1;
        Ok(u64::try_from(count / step).unwrap_or(u64::MAX))
    }
}
