//! Calls of other programs.

use std::collections::BTreeMap;

use tilework_model::ttnn::TensorRef;

use crate::error::{Reason, RunError, Subject};
use crate::inputs;
use crate::ledger::address;
use crate::lower::{Bound, Call, Loop, LoopCount, TracedCall};
use crate::plan::{Planned, Step};
use crate::run::pool::Pool;
use crate::run::{Finished, Runner};
use crate::value::Value;

impl<'m> Runner<'_, 'm> {
    /// Results of an operation that calls other programs.
    pub(super) fn call(
        &mut self,
        planned: &Planned<'m>,
        step: &Step<'m>,
        call: &Call<'m>,
        pool: &mut Pool<'m>,
        depth: usize,
    ) -> Result<Vec<Value>, RunError> {
        let failed = |reason| RunError::new(Subject::Operation(planned.place(step)), reason);
        let inputs: Option<Vec<Value>> = step.reads.iter().map(|tensor| pool.get(tensor.global_id).cloned()).collect();
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
struct Caller<'c, 'r, 'm> {
    runner: &'c mut Runner<'r, 'm>,
    planned: &'c Planned<'m>,
    step: &'c Step<'m>,
    depth: usize,
}

impl Caller<'_, '_, '_> {
    /// Tensors in the element types that a program states for its inputs.
    fn fitted(&self, program: usize, values: Vec<Value>) -> Vec<Value> {
        let Some(planned) = self.runner.plan.get(program) else { return values };
        let stated = |(value, input): (&Value, &TensorRef)| inputs::kept(value, input, self.runner.options.rounding);
        values.iter().zip(&planned.program.inputs).map(stated).collect()
    }

    fn run(&mut self, program: usize, inputs: Vec<Value>) -> Result<Finished, RunError> {
        let (planned, step) = (self.planned, self.step);
        self.runner.program(program, inputs, self.depth).map_err(|error| error.called_from(planned.place(step)))
    }

    fn failed(&self, reason: Reason) -> RunError {
        RunError::new(Subject::Operation(self.planned.place(self.step)), reason)
    }

    /// The first integer of a tensor.
    fn number(&self, value: &Value, what: &str) -> Result<i64, RunError> {
        let number = value.on(0).to_i64().first().copied();
        number.ok_or_else(|| self.failed(Reason::Value(format!("{what} is a tensor without elements"))))
    }

    fn cached(&mut self, program: usize, hash: &str, inputs: Vec<Value>) -> Result<Finished, RunError> {
        let outputs = match self.runner.cache.find(program, hash, &inputs) {
            Some(outputs) => outputs,
            None => {
                let outputs = self.run(program, inputs.clone())?.outputs;
                self.runner.cache.keep(program, hash, &inputs, outputs.clone());
                outputs
            }
        };
        for value in &outputs {
            if self.runner.kept.insert(address(value.on(0)), value.clone()).is_none() {
                self.runner.ledger.add(value);
            }
        }
        Ok(Finished { outputs, changed: BTreeMap::new() })
    }

    /// An index beyond the branches selects the last one.
    fn case(&mut self, branches: &[usize], mut inputs: Vec<Value>) -> Result<Finished, RunError> {
        let index = self.number(&inputs.remove(0), "the index")?;
        let chosen = usize::try_from(index).ok().and_then(|index| branches.get(index)).or(branches.last());
        let Some(&program) = chosen else { return Err(self.failed(Reason::Value("no branches".into()))) };
        let mut finished = self.run(program, inputs)?;
        // The first operand is the index, which is not an input of the branches.
        finished.changed = finished.changed.into_iter().map(|(position, value)| (position + 1, value)).collect();
        Ok(finished)
    }

    fn repeat(&mut self, by: &Loop, mut inputs: Vec<Value>) -> Result<Finished, RunError> {
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
                    let goes_on = finished
                        .outputs
                        .first()
                        .is_some_and(|value| value.on(0).to_f32().first().is_some_and(|&truth| truth != 0.0));
                    if !goes_on {
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
    fn iterations(&self, bounds: [Bound; 3], inputs: &[Value]) -> Result<u64, RunError> {
        let number = |bound, what| match bound {
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

    fn traced(&mut self, by: &TracedCall, given: Vec<Value>) -> Result<Finished, RunError> {
        let of = |device: bool| given.iter().zip(&by.on_device).enumerate().filter(move |(_, (_, on))| **on == device);
        let resident = of(true).map(|(_, (value, _))| value.clone()).collect();
        let mut slots = self.run(by.allocate, resident)?.outputs;
        // Inputs that are on the device are their own slots.
        for (position, (value, _)) in of(true) {
            slots[position] = value.clone();
        }
        let staged: Vec<Value> = of(false).map(|(_, (value, _))| value.clone()).collect();
        let before = staged.len();
        let taken = self.fitted(by.capture, staged.into_iter().chain(slots.iter().cloned()).collect());
        let finished = self.run(by.capture, taken)?;
        let mut changed = BTreeMap::new();
        for (position, value) in finished.changed {
            let Some(slot) = position.checked_sub(before) else { continue };
            if by.on_device.get(slot) == Some(&true) {
                changed.insert(slot, value.clone());
            }
            slots[slot] = value;
        }
        let (results, rounding) = (slots.split_off(given.len()), self.runner.options.rounding);
        let stated = results.iter().zip(&self.step.writes);
        let outputs = stated.map(|(value, write)| inputs::kept(value, write.tensor, rounding)).collect();
        Ok(Finished { outputs, changed })
    }
}
