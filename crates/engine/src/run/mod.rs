//! Running a plan: operations in order, tensors by their global ids ([`pool`]), other programs
//! where an operation calls them ([`calls`]).

mod calls;
mod pool;

use std::collections::{BTreeMap, HashMap};

use tilework_ops::mesh::Mesh;
use tilework_ops::{self as ops, Tensor};

use crate::cache::Cache;
use crate::describe::Stated;
use crate::error::{Reason, RunError, Subject};
use crate::ledger::Ledger;
use crate::lower::{Action, Args, Compute, Write};
use crate::observe::{Event, Flow, Observer, Output};
use crate::plan::{Plan, Planned, Step, role};
use crate::session::Options;
use crate::value::Value;

use pool::Pool;

/// Result of a program.
pub(crate) struct Finished {
    pub(crate) outputs: Vec<Value>,
    /// Inputs that the program changed in place, by position.
    pub(crate) changed: BTreeMap<usize, Value>,
}

/// A run of a plan.
pub(crate) struct Runner<'r, 'm> {
    pub(crate) plan: &'r Plan<'m>,
    pub(crate) options: &'r Options,
    pub(crate) cache: &'r mut Cache,
    pub(crate) observer: &'r mut dyn Observer,
    pub(crate) ledger: Ledger,
    /// Number of operations and loop iterations that began.
    pub(crate) operations: u64,
    /// Kept results that were used, by address: they count as alive until the end of the run.
    pub(crate) kept: HashMap<usize, Value>,
}

impl<'m> Runner<'_, 'm> {
    /// Runs a program `depth` calls deep.
    pub(crate) fn program(&mut self, index: usize, inputs: Vec<Value>, depth: usize) -> Result<Finished, RunError> {
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

    fn steps(&mut self, planned: &Planned<'m>, pool: &mut Pool<'m>, depth: usize) -> Result<(), RunError> {
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
                    self.observer.message(&event, text, value);
                    value.filter(|_| !step.writes.is_empty()).cloned().into_iter().collect()
                }
                _ => self.compute(planned.mesh, step, pool).map_err(failed)?,
            };
            if let (Action::Free, [tensor]) = (&step.action, &step.reads[..]) {
                pool.free(tensor.global_id, &mut self.ledger);
            }
            self.write(step, results, pool).map_err(failed)?;
            let after = Event { live_bytes: self.ledger.live(), ..event };
            let outputs = step.writes.iter().filter_map(|write| {
                pool.get(write.tensor.global_id).map(|value| Output { tensor: write.tensor, value })
            });
            let outputs: Vec<Output<'_>> = outputs.collect();
            if self.observer.after(&after, &outputs) == Flow::Stop {
                return Err(failed(Reason::Stopped));
            }
        }
        Ok(())
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
    fn compute(&self, mesh: Mesh, step: &Step<'m>, pool: &Pool<'m>) -> Result<Vec<Value>, Reason> {
        let values: Option<Vec<&Value>> = step.reads.iter().map(|tensor| pool.get(tensor.global_id)).collect();
        let values = values.ok_or_else(|| Reason::Value("an operand is missing".into()))?;
        let devices = devices(mesh, &values)?;
        match &step.action {
            Action::Compute(function) => {
                self.room(step, devices)?;
                each_device(function, step, &values, devices)
            }
            Action::Collective(function) => {
                self.room(step, mesh.devices())?;
                let results = function(&values)?;
                let finished =
                    |(value, write): (&Value, _)| value.try_map(|tensor| finish(tensor.clone(), step, write));
                results.iter().zip(0..step.writes.len()).map(finished).collect()
            }
            Action::Pass { dtype } => {
                let cast = |value: &&Value| value.try_map(|tensor| Ok(ops::typecast(tensor, *dtype)));
                values.iter().map(cast).collect()
            }
            Action::Free | Action::Say(_) | Action::Nothing | Action::Call(_) => Ok(Vec::new()),
        }
    }

    /// Checks the memory limit for the results of an operation.
    fn room(&self, step: &Step<'m>, devices: usize) -> Result<(), Reason> {
        let made = step.writes.iter().fold(0_usize, |sum, write| sum.saturating_add(write.stated.bytes()));
        let needed = made.saturating_mul(devices).saturating_add(self.ledger.live());
        let limit = self.options.max_bytes;
        if needed > limit { Err(Reason::Budget { what: "bytes of tensors", limit: limit as u64 }) } else { Ok(()) }
    }

    fn write(&mut self, step: &Step<'m>, results: Vec<Value>, pool: &mut Pool<'m>) -> Result<(), Reason> {
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

/// Number of devices that an operation computes on: one if all have the same tensors.
fn devices(mesh: Mesh, values: &[&Value]) -> Result<usize, Reason> {
    let devices = values.iter().map(|value| value.count()).max().unwrap_or(1);
    match values.iter().map(|value| value.count()).find(|&count| count != 1 && count != mesh.devices()) {
        None => Ok(devices),
        Some(count) => {
            Err(Reason::Value(format!("a tensor has {count} shards, the mesh has {} devices", mesh.devices())))
        }
    }
}

fn each_device(
    function: &Compute<'_>,
    step: &Step<'_>,
    values: &[&Value],
    devices: usize,
) -> Result<Vec<Value>, Reason> {
    let mut results: Vec<Vec<Tensor>> = step.writes.iter().map(|_| Vec::with_capacity(devices)).collect();
    for device in 0..devices {
        let made = function(&Args::of(values, device))?;
        for (index, (tensor, list)) in made.into_iter().zip(&mut results).enumerate() {
            list.push(finish(tensor, step, index)?);
        }
    }
    Ok(results.into_iter().filter_map(Value::shards).collect())
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
