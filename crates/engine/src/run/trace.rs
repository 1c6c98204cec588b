//! Traced calls: the recording program runs, as it also computes, and the machine may record what
//! it does between the operations that begin and end a trace. A later run of the same call has that
//! replayed, if nothing but its inputs has changed.

use std::collections::{BTreeMap, HashMap};

use tilework_model::ttnn::Op;

use crate::error::RunError;
use crate::lower::TracedCall;
use crate::machine::{Held, Machine};
use crate::plan::Plan;
use crate::run::Finished;
use crate::run::calls::Caller;
use crate::value::Value;

/// A call that a machine has recorded.
pub(crate) struct Recorded<T: Held> {
    /// The machine's number of the trace.
    trace: u64,
    /// The memory that the inputs of the host are written to, in their order.
    slots: Vec<T>,
    /// The inputs on the device, as they were.
    resident: Vec<Vec<T::Mark>>,
    /// The results, one for each replay to write anew.
    results: Vec<T>,
}

/// Recorded calls, by the recording program.
pub(crate) type Traces<T> = HashMap<usize, Recorded<T>>;

impl<M: Machine> Caller<'_, '_, '_, M> {
    /// Replays the call if it was recorded and nothing but its inputs has changed; else runs and
    /// records it.
    pub(super) fn traced(
        &mut self,
        by: &TracedCall,
        given: Vec<Value<M::Tensor>>,
    ) -> Result<Finished<M::Tensor>, RunError> {
        if let Some(before) = self.runner.traces.remove(&by.capture) {
            let trace = before.trace;
            if let Some(outputs) = self.replay(by, &given, before)? {
                return Ok(Finished { outputs, changed: BTreeMap::new() });
            }
            self.runner.machine.release(trace).map_err(|reason| self.failed(reason))?;
        }
        let of = |device: bool| given.iter().zip(&by.on_device).enumerate().filter(move |(_, (_, on))| **on == device);
        let resident: Vec<_> = of(true).map(|(_, (value, _))| value.clone()).collect();
        let mut slots = self.run(by.allocate, resident.clone())?.outputs;
        // Inputs that are on the device are their own slots.
        for (position, (value, _)) in of(true) {
            slots[position] = value.clone();
        }
        let staged: Vec<Value<M::Tensor>> = of(false).map(|(_, (value, _))| value.clone()).collect();
        let before = staged.len();
        let taken = self.fitted(by.capture, staged.into_iter().chain(slots.iter().cloned()).collect())?;
        // A trace of another call is not that of this one.
        if let Some(other) = self.runner.recorded.take() {
            self.runner.machine.release(other).map_err(|reason| self.failed(reason))?;
        }
        let finished = self.run(by.capture, taken)?;
        let mut changed = BTreeMap::new();
        for (position, value) in finished.changed {
            let Some(slot) = position.checked_sub(before) else { continue };
            if by.on_device.get(slot) == Some(&true) {
                changed.insert(slot, value.clone());
            }
            slots[slot] = value;
        }
        let results = slots.split_off(given.len());
        if let Some(trace) = self.runner.recorded.take() {
            let kept = changed.is_empty().then(|| self.recorded(by, trace, &slots, &resident, &results)).flatten();
            match kept {
                Some(recorded) => _ = self.runner.traces.insert(by.capture, recorded),
                None => self.runner.machine.release(trace).map_err(|reason| self.failed(reason))?,
            }
        }
        Ok(Finished { outputs: self.stated(&results)?, changed })
    }

    /// Results in the element types that the operation states.
    fn stated(&mut self, results: &[Value<M::Tensor>]) -> Result<Vec<Value<M::Tensor>>, RunError> {
        results.iter().zip(&self.step.writes).map(|(value, write)| self.kept(value, write.tensor)).collect()
    }

    /// What a replay needs, if the call is of the compiler's form: on one device, each input of the
    /// host written to a slot of its own, and one trace for all values.
    fn recorded(
        &self,
        by: &TracedCall,
        trace: u64,
        slots: &[Value<M::Tensor>],
        resident: &[Value<M::Tensor>],
        results: &[Value<M::Tensor>],
    ) -> Option<Recorded<M::Tensor>> {
        let written = written(self.runner.plan, by)?;
        let slots = written.into_iter().map(|slot| slots.get(slot)?.single().cloned());
        Some(Recorded {
            trace,
            slots: slots.collect::<Option<_>>()?,
            resident: resident.iter().map(|value| value.tensors().map(Held::mark).collect()).collect(),
            results: results.iter().map(|value| value.single().cloned()).collect::<Option<_>>()?,
        })
    }

    /// The results of a replay; none if it cannot be.
    fn replay(
        &mut self,
        by: &TracedCall,
        given: &[Value<M::Tensor>],
        recorded: Recorded<M::Tensor>,
    ) -> Result<Option<Vec<Value<M::Tensor>>>, RunError> {
        let of = |device: bool| given.iter().zip(&by.on_device).filter(move |(_, on)| **on == device).map(|(v, _)| v);
        let same = |(value, marks): (&Value<M::Tensor>, &Vec<<M::Tensor as Held>::Mark>)| {
            value.count() == marks.len() && value.tensors().zip(marks).all(|(tensor, mark)| tensor.is(mark))
        };
        if !of(true).zip(&recorded.resident).all(same) {
            return Ok(None);
        }
        let staged = self.fitted(by.capture, of(false).cloned().collect())?;
        let Some(staged) = staged.iter().map(Value::single).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let inputs: Vec<_> = staged.into_iter().zip(&recorded.slots).collect();
        let (place, results) = (self.planned.place(self.step), recorded.results.iter().collect::<Vec<_>>());
        let replayed = self.runner.machine.replay(recorded.trace, place, &inputs, &results);
        if !replayed.map_err(|reason| self.failed(reason))? {
            return Ok(None);
        }
        let results: Vec<_> = recorded.results.iter().cloned().map(Value::same).collect();
        let outputs = self.stated(&results)?;
        self.runner.traces.insert(by.capture, recorded);
        Ok(Some(outputs))
    }
}

/// For each input of the host the slot that the recording program writes it to, if it does nothing
/// else with it.
fn written(plan: &Plan<'_>, by: &TracedCall) -> Option<Vec<usize>> {
    if by.keyed {
        return None;
    }
    let capture = plan.get(by.capture)?;
    let staged = by.on_device.iter().filter(|on| !**on).count();
    let (inputs, slots) = capture.program.inputs.split_at_checked(staged)?;
    let slot_of = |input: u32| {
        let mut uses = capture.steps.iter().filter(|step| step.reads.iter().any(|tensor| tensor.global_id == input));
        let (step, None) = (uses.next()?, uses.next()) else { return None };
        let Op::WriteTensor(write) = &step.operation.op else { return None };
        slots.iter().position(|slot| slot.global_id == write.device_tensor.global_id)
    };
    inputs.iter().map(|input| slot_of(input.global_id)).collect()
}
