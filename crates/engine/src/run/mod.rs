//! Running a plan: operations in order, tensors by their global ids ([`pool`]), other programs
//! where an operation calls them ([`calls`]).

mod calls;
mod pool;
mod trace;

use std::collections::{BTreeMap, HashMap};

use tilework_model::ttnn::types::StorageType;
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::mesh::Mesh;
use tilework_ops::{self as ops, Tensor};

use crate::cache::Cache;
use crate::describe::Stated;
use crate::error::{Reason, RunError, Subject};
use crate::ledger::Ledger;
use crate::lower::{Action, Args, Collective, Write};
use crate::machine::{How, Machine, Together, Work};
use crate::observe::{Event, Flow, Observer, Output};
use crate::plan::{Plan, Planned, Step, role};
use crate::session::Options;
use crate::value::Value;

use pool::Pool;
pub(crate) use trace::Traces;

/// Result of a program.
pub(crate) struct Finished<T> {
    pub(crate) outputs: Vec<Value<T>>,
    /// Inputs that the program changed in place, by position.
    pub(crate) changed: BTreeMap<usize, Value<T>>,
}

/// A run of a plan.
pub(crate) struct Runner<'r, 'm, M: Machine> {
    pub(crate) plan: &'r Plan<'m>,
    pub(crate) options: &'r Options,
    pub(crate) machine: &'r mut M,
    pub(crate) cache: &'r mut Cache<M::Tensor>,
    pub(crate) traces: &'r mut Traces<M::Tensor>,
    /// The trace that was recorded last, until the call that it is of keeps it.
    pub(crate) recorded: Option<u64>,
    pub(crate) observer: &'r mut dyn Observer,
    pub(crate) ledger: Ledger,
    /// Number of operations and loop iterations that began.
    pub(crate) operations: u64,
    /// Kept results that were used, by address: they count as alive until the end of the run.
    pub(crate) kept: HashMap<usize, Value<M::Tensor>>,
}

impl<'m, M: Machine> Runner<'_, 'm, M> {
    /// Runs a program `depth` calls deep.
    pub(crate) fn program(
        &mut self,
        index: usize,
        inputs: Vec<Value<M::Tensor>>,
        depth: usize,
    ) -> Result<Finished<M::Tensor>, RunError> {
        let plan = self.plan;
        let Some(planned) = plan.get(index) else {
            return Err(RunError::new(Subject::Model, Reason::NoProgram { index, count: 0 }));
        };
        let mut pool = Pool::new(planned.program, inputs, &mut self.ledger);
        let result = self.steps(planned, &mut pool, depth);
        let outputs = result.and_then(|()| {
            let all = planned.program.outputs.iter().map(|output| pool.get(output.global_id).cloned()).collect();
            Option::ok_or_else(all, || RunError::new(planned.subject(), Reason::Value("an output is missing".into())))
        });
        let changed = pool.close(&mut self.ledger);
        Ok(Finished { outputs: outputs?, changed })
    }

    fn steps(&mut self, planned: &Planned<'m>, pool: &mut Pool<'m, M::Tensor>, depth: usize) -> Result<(), RunError> {
        for step in &planned.steps {
            let event = Event {
                program: planned.index,
                program_name: &planned.program.name,
                program_len: planned.steps.len(),
                index: step.index,
                operation: step.operation,
                depth,
                sequence: self.operations,
                live_bytes: self.ledger.live(),
            };
            let failed = |reason| RunError::new(Subject::Operation(planned.place(step)), reason);
            self.spend().map_err(failed)?;
            self.observer.before(&event);
            let results = match &step.action {
                Action::Call(call) => self.call(planned, step, call, pool, depth)?,
                Action::Say(text) => {
                    let value = step.reads.first().and_then(|tensor| pool.get(tensor.global_id));
                    let array = value.map(|value| self.give(value)).transpose().map_err(failed)?;
                    self.observer.message(&event, text, array.as_ref());
                    value.filter(|_| !step.writes.is_empty()).cloned().into_iter().collect()
                }
                _ => self.compute(&event, planned.mesh, step, pool).map_err(failed)?,
            };
            if let (Action::Free, [tensor]) = (&step.action, &step.reads[..]) {
                pool.free(tensor.global_id, &mut self.ledger);
            }
            self.write(step, results, pool).map_err(failed)?;
            self.trace(step).map_err(failed)?;
            let after = Event { live_bytes: self.ledger.live(), ..event };
            if self.tell(&after, step, pool).map_err(failed)? == Flow::Stop {
                return Err(failed(Reason::Stopped));
            }
        }
        Ok(())
    }

    /// Tells the machine where a trace begins and ends.
    fn trace(&mut self, step: &Step<'m>) -> Result<(), Reason> {
        match step.operation.op {
            Op::BeginTraceCapture(_) => self.machine.begin_trace()?,
            Op::EndTraceCapture(_) => {
                if let Some(before) = self.recorded.take() {
                    self.machine.release(before)?;
                }
                self.recorded = self.machine.end_trace()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Tells the observer that an operation has run.
    fn tell(&mut self, event: &Event<'_>, step: &Step<'m>, pool: &Pool<'m, M::Tensor>) -> Result<Flow, Reason> {
        let written = match self.observer.wants_results(event) {
            true => &step.writes[..],
            false => &[],
        };
        let mut results = Vec::with_capacity(written.len());
        for write in written {
            if let Some(value) = pool.get(write.tensor.global_id) {
                results.push((write.tensor, self.give(value)?));
            }
        }
        let outputs: Vec<Output<'_>> = results.iter().map(|(tensor, value)| Output { tensor, value }).collect();
        Ok(self.observer.after(event, &outputs))
    }

    /// The arrays of a value.
    pub(crate) fn give(&mut self, value: &Value<M::Tensor>) -> Result<Value, Reason> {
        value.try_map(|tensor| self.machine.give(tensor))
    }

    /// Counts an operation or an iteration.
    fn spend(&mut self) -> Result<(), Reason> {
        let limit = self.options.max_operations;
        if self.operations >= limit {
            return Err(Reason::Budget { what: "operations and loop iterations", limit });
        }
        self.operations += 1;
        Ok(())
    }

    /// Results of an operation that calls nothing.
    fn compute(
        &mut self,
        event: &Event<'_>,
        mesh: Mesh,
        step: &Step<'m>,
        pool: &Pool<'m, M::Tensor>,
    ) -> Result<Vec<Value<M::Tensor>>, Reason> {
        let values: Option<Vec<&Value<M::Tensor>>> =
            step.reads.iter().map(|tensor| pool.get(tensor.global_id)).collect();
        let values = values.ok_or_else(|| Reason::Value("an operand is missing".into()))?;
        let devices = self.devices(mesh, step, &values)?;
        match &step.action {
            Action::Compute(function) | Action::OnEach(function) => {
                let differs = matches!(step.action, Action::OnEach(_));
                let devices = if differs { mesh.devices() } else { devices };
                self.room(step, devices)?;
                let arithmetic = |device: usize, tensors: &[&Tensor]| {
                    let made = function(&Args::on(device, tensors))?;
                    made.into_iter().enumerate().map(|(index, tensor)| finish(tensor, step, index)).collect()
                };
                self.each_device(event, step, &values, devices, || How::Compute(&arithmetic))
            }
            Action::Collective(function) => {
                self.room(step, mesh.devices())?;
                self.machine.begin_exchange(event);
                let exchanged = self.exchange(event, function, step, &values, mesh);
                self.machine.end_exchange();
                exchanged
            }
            Action::Pass { dtype } => self.each_device(event, step, &values, devices, || How::Pass(*dtype)),
            Action::Free | Action::Say(_) | Action::Nothing | Action::Call(_) => Ok(Vec::new()),
        }
    }

    /// Results of an operation of all devices, by the machine or through arrays of the host.
    fn exchange(
        &mut self,
        event: &Event<'_>,
        function: &Collective<'m>,
        step: &Step<'m>,
        values: &[&Value<M::Tensor>],
        mesh: Mesh,
    ) -> Result<Vec<Value<M::Tensor>>, Reason> {
        let results = step.writes.iter().map(Into::into).collect();
        let work = Together { event, mesh, reads: &step.reads, operands: values.to_vec(), results };
        if let Some(made) = self.machine.together(&work)? {
            return Ok(made);
        }
        let given: Vec<Value> = values.iter().map(|value| self.give(value)).collect::<Result<_, _>>()?;
        let results = function(&given.iter().collect::<Vec<_>>())?;
        let finished = |(index, value): (usize, &Value)| {
            let value = value.try_map(|tensor| finish(tensor.clone(), step, index))?;
            take(self.machine, &value, step.writes[index].tensor, mesh)
        };
        results.iter().take(step.writes.len()).enumerate().map(finished).collect()
    }

    /// Number of devices that an operation computes on: one if all have the same tensors, unless
    /// they are machines of their own and get a result.
    fn devices(&self, mesh: Mesh, step: &Step<'m>, values: &[&Value<M::Tensor>]) -> Result<usize, Reason> {
        let on_device = step.writes.iter().any(|write| write.tensor.desc.storage() == StorageType::Device);
        let devices = devices(mesh, values)?;
        Ok(if self.machine.has_devices() && on_device { mesh.devices() } else { devices })
    }

    /// Has an operation carried out on each device.
    fn each_device<'w>(
        &mut self,
        event: &'w Event<'w>,
        step: &'w Step<'m>,
        values: &[&'w Value<M::Tensor>],
        devices: usize,
        how: impl Fn() -> How<'w>,
    ) -> Result<Vec<Value<M::Tensor>>, Reason> {
        let mut results: Vec<Vec<M::Tensor>> = step.writes.iter().map(|_| Vec::with_capacity(devices)).collect();
        for device in 0..devices {
            let made = self.machine.operate(&Work {
                event,
                device,
                reads: &step.reads,
                operands: values.iter().map(|value| value.on(device)).collect(),
                results: step.writes.iter().map(Into::into).collect(),
                how: how(),
            })?;
            made.into_iter().zip(&mut results).for_each(|(tensor, list)| list.push(tensor));
        }
        Ok(results.into_iter().filter_map(Value::shards).collect())
    }

    /// Checks the memory limit for the results of an operation.
    fn room(&self, step: &Step<'m>, devices: usize) -> Result<(), Reason> {
        let made = step.writes.iter().fold(0_usize, |sum, write| sum.saturating_add(write.stated.bytes()));
        let needed = made.saturating_mul(devices).saturating_add(self.ledger.live());
        let limit = self.options.max_bytes;
        if needed > limit { Err(Reason::Budget { what: "bytes of tensors", limit: limit as u64 }) } else { Ok(()) }
    }

    fn write(
        &mut self,
        step: &Step<'m>,
        results: Vec<Value<M::Tensor>>,
        pool: &mut Pool<'m, M::Tensor>,
    ) -> Result<(), Reason> {
        if results.len() != step.writes.len() {
            return Err(Reason::Value(format!("{} results instead of {}", results.len(), step.writes.len())));
        }
        for (value, write) in results.into_iter().zip(&step.writes) {
            match write.how {
                Write::New => pool.insert(write.tensor.global_id, value, &mut self.ledger),
                Write::Change => pool.change(write.tensor.global_id, value, &mut self.ledger),
            }
        }
        Ok(())
    }
}

/// Arrays as a machine's tensors: on devices that are machines of their own one for each.
pub(crate) fn take<M: Machine>(
    machine: &mut M,
    value: &Value,
    described: &TensorRef,
    mesh: Mesh,
) -> Result<Value<M::Tensor>, Reason> {
    let spread = machine.has_devices() && described.desc.storage() == StorageType::Device;
    let count = if spread { mesh.devices() } else { value.count() };
    let taken = (0..count).map(|device| machine.take_on(device, value.on(device).clone(), described));
    let taken = taken.collect::<Result<Vec<_>, _>>()?;
    Value::shards(taken).ok_or_else(|| Reason::Value("a mesh without devices".into()))
}

/// Number of devices that an operation computes on: one if all have the same tensors.
fn devices<T>(mesh: Mesh, values: &[&Value<T>]) -> Result<usize, Reason> {
    let devices = values.iter().map(|value| value.count()).max().unwrap_or(1);
    match values.iter().map(|value| value.count()).find(|&count| count != 1 && count != mesh.devices()) {
        None => Ok(devices),
        Some(count) => {
            Err(Reason::Value(format!("a tensor has {count} shards, the mesh has {} devices", mesh.devices())))
        }
    }
}

/// A result as the program states it: in its element type; a shape that differs is an error.
fn finish(tensor: Tensor, step: &Step<'_>, index: usize) -> Result<Tensor, Reason> {
    let write = &step.writes[index];
    let Stated { dtype, shape } = &write.stated;
    if !write.stated.fits(tensor.shape()) {
        let (expected, found) = (shape.to_string(), tensor.shape().to_string());
        return Err(Reason::Shape { role: role(step.operation, write.tensor), expected, found });
    }
    let tensor = if tensor.shape() == shape {
        tensor
    } else {
        ops::reshape(&tensor, &shape.iter().map(|&n| n as i64).collect::<Vec<_>>())?
    };
    Ok(ops::typecast(&tensor, *dtype))
}
