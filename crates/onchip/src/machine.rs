//! The chip as a machine for compiled models.

use std::collections::BTreeMap;

use tilework_driver::HostLink;
use tilework_engine::{How, Machine, OperationPlace, Reason, Work};
use tilework_model::ttnn::TensorRef;
use tilework_ops::{self as ops, DType, Tensor as Array};
use tilework_runtime::program::ProgramErrorKind;
use tilework_runtime::tensor::{Tensor, TensorDesc, TensorSpec};
use tilework_runtime::{Device, RuntimeError};

use crate::describe::{self, Wanted};
use crate::memory::below_tensors;
use crate::placed::{Freed, Place, Placed};
use crate::plan::{moves_only, plan, rows_of, spec_of};
use crate::prepared::Keeper;
use crate::recipe::{At, Kernels, Recipe, Site};
use crate::record::{Carried, Record};
use crate::roofline::Bounds;
use crate::shards;
use crate::trace::{TraceCounts, Traces};

/// A device that carries out the operations of a program.
pub struct OnChip<C> {
    pub(crate) device: Device<C>,
    pub(crate) site: Site,
    kernels: Kernels,
    pub(crate) freed: Freed,
    pub(crate) records: Vec<Record>,
    /// Whether an operation without a recipe ends the run.
    strict: bool,
    failure: Option<RuntimeError>,
    /// What the operation under way has done, if there is one.
    pub(crate) under_way: Option<Record>,
    /// Tensors that are elsewhere than the program has them: why.
    pub(crate) displaced: BTreeMap<String, String>,
    pub(crate) traces: Traces,
    /// What the host has made of arrays in its memory for programs.
    pub(crate) prepared: Keeper,
    /// Stages whose times the dispatcher writes to the first slots, as record and stage.
    pub(crate) timed: Vec<(usize, usize)>,
}

/// Why an operation was not done.
pub(crate) enum Stopped {
    /// The operation or the engine.
    Reason(Reason),
    /// The device.
    Device(RuntimeError),
}

impl<E: Into<RuntimeError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Device(error.into())
    }
}

impl<C: HostLink> OnChip<C> {
    /// A machine on an open device. With `strict`, an operation that the chip has no program for is
    /// an error instead of being computed by the host.
    pub fn new(device: Device<C>, strict: bool) -> Self {
        let site = Site::of(device.config());
        Self {
            device,
            site,
            kernels: Kernels::default(),
            freed: Freed::default(),
            records: Vec::new(),
            strict,
            failure: None,
            under_way: None,
            displaced: BTreeMap::new(),
            traces: Traces::default(),
            prepared: Keeper::default(),
            timed: Vec::new(),
        }
    }

    /// The device.
    pub fn device(&self) -> &Device<C> {
        &self.device
    }

    /// The same, to be changed.
    pub fn device_mut(&mut self) -> &mut Device<C> {
        &mut self.device
    }

    /// What became of the operations, in the order in which they were carried out. Times of those
    /// of a run are there when it has ended.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Forgets what became of the operations before a run begins.
    pub fn forget_records(&mut self) {
        self.records.clear();
        // Of a run that failed some may be left, which are not waited for.
        self.timed.clear();
    }

    /// Tensors in interleaved DRAM that the program has elsewhere, and why.
    pub fn displaced(&self) -> &BTreeMap<String, String> {
        &self.displaced
    }

    /// What became of its traces.
    pub fn traces(&self) -> &TraceCounts {
        &self.traces.counts
    }

    /// What stopped the device, if something did.
    pub fn failure(&mut self) -> Option<RuntimeError> {
        self.failure.take()
    }

    pub(crate) fn stopped(&mut self, why: Stopped) -> Reason {
        match why {
            Stopped::Reason(reason) => reason,
            Stopped::Device(error) => {
                let text = error.to_string();
                self.failure = Some(error);
                Reason::Machine(text)
            }
        }
    }

    /// Puts an array where a program wants it, in its own element type.
    fn place(&mut self, array: Array, described: &TensorRef) -> Result<Placed, Stopped> {
        match describe::wanted(&described.desc, array.dtype()) {
            Ok(Wanted::Device(desc)) => self.put(&array, &desc, &name(described, self.under_way.as_ref())),
            // What the runtime has no tensor for stays with the host; so its operations are the
            // host's, and say why.
            Ok(Wanted::Host) | Err(_) => Ok(Placed::new(Place::Host(array), &self.freed)),
        }
    }

    /// The array of a tensor.
    pub(crate) fn array(&mut self, placed: &Placed, as_type: Option<DType>) -> Result<Array, Stopped> {
        let array = match placed.place() {
            Place::Host(array) => array.clone(),
            Place::Device(tensor) => self.read(tensor)?,
        };
        Ok(match as_type {
            Some(dtype) if dtype != array.dtype() => ops::typecast(&array, dtype),
            _ => array,
        })
    }

    fn carry_out(&mut self, work: &Work<'_, Placed>) -> Result<(Vec<Placed>, Carried), Stopped> {
        match work.how {
            How::Pass(dtype) => {
                let (placed, carried) = self.pass(work, dtype)?;
                Ok((vec![placed], carried))
            }
            How::Compute(arithmetic) => match self.by_chip(work)? {
                Ok(placed) => Ok((placed, Carried::Chip)),
                Err(why) => {
                    self.allow(&why)?;
                    self.traces.breaks("an operation of the host is in it");
                    let reads = work.operands.iter().zip(work.reads);
                    // Floats have the type that they have while the program runs.
                    let types = |described: &TensorRef| Some(DType::from(described.desc.dtype()));
                    let types = |described| types(described).filter(|dtype| !dtype.is_float());
                    let arrays = reads.map(|(placed, described)| self.array(placed, types(described)));
                    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
                    let made = arithmetic(work.device, &arrays.iter().collect::<Vec<_>>()).map_err(Stopped::Reason)?;
                    let results = made.into_iter().zip(&work.results);
                    let placed = results.map(|(array, wanted)| self.place(array, wanted.tensor));
                    Ok((placed.collect::<Result<_, _>>()?, why))
                }
            },
        }
    }

    /// Carries an operation out by programs of the chip, or says why the host does it: there is no
    /// recipe, or a program of it finds no room on the workers. What others of it have made is
    /// then made again.
    fn by_chip(&mut self, work: &Work<'_, Placed>) -> Result<Result<Vec<Placed>, Carried>, Stopped> {
        let (recipe, descs) = match self.plan(work) {
            Ok(planned) => planned,
            Err(why) => return Ok(Err(why)),
        };
        match self.follow(&recipe, &descs, work) {
            Ok(placed) => Ok(Ok(placed)),
            Err(Stopped::Device(error)) if finds_no_room(&error) => Ok(Err(Carried::Host(error.to_string()))),
            Err(why) => Err(why),
        }
    }

    /// Refuses an operation that the host would compute, if that is not wanted.
    fn allow(&self, carried: &Carried) -> Result<(), Stopped> {
        match carried {
            Carried::Host(why) if self.strict => {
                Err(Stopped::Reason(Reason::Unsupported(format!("the chip has no program for this: {why}"))))
            }
            _ => Ok(()),
        }
    }

    /// Notes how much of the workers' L1 is left for circular buffers, which lie below all tensors.
    pub(crate) fn look_at_l1(&mut self) {
        self.site.l1 = below_tensors(self.device.l1());
    }

    /// The recipe of an operation and what its results are, or why the host computes it.
    fn plan(&mut self, work: &Work<'_, Placed>) -> Result<(Recipe, Vec<TensorDesc>), Carried> {
        self.look_at_l1();
        self.site.device = work.device;
        let specs: Vec<Option<TensorSpec>> = work.operands.iter().map(|placed| spec_of(placed)).collect();
        let operands: Option<Vec<&TensorSpec>> = specs.iter().map(Option::as_ref).collect();
        let results: Vec<_> = work.results.iter().map(|wanted| (wanted.tensor, wanted.dtype)).collect();
        let on_host: Vec<bool> = work.operands.iter().map(|placed| placed.on_device().is_none()).collect();
        plan(&work.event.operation.op, (operands.as_deref(), &on_host), &results, &self.site)
    }

    /// Runs the programs of a recipe, on tensors in interleaved DRAM: what lies otherwise is
    /// brought there before and taken away after.
    pub(crate) fn follow(
        &mut self,
        recipe: &Recipe,
        results: &[TensorDesc],
        work: &Work<'_, Placed>,
    ) -> Result<Vec<Placed>, Stopped> {
        let ready = self.prepare_all(recipe, work)?;
        let of_operand = |i: usize| recipe.prepared.iter().zip(&ready).find(|(of, _)| of.operand == i);
        let there = work.operands.iter().enumerate().map(|(i, placed)| match of_operand(i) {
            // No program reads it as it was.
            Some((_, ready)) => Ok(ready.clone()),
            None => self.bring(placed),
        });
        let there = there.collect::<Result<Vec<_>, _>>()?;
        let there = there.iter().map(|placed| self.flatten(placed)).collect::<Result<Vec<_>, _>>()?;
        let by = self.under_way.clone();
        let names: Vec<String> = work.results.iter().map(|wanted| name(wanted.tensor, by.as_ref())).collect();
        let flats = results.iter().map(flat_desc).collect::<Result<Vec<_>, _>>()?;
        let (made, placed) = self.create_all(flats.iter().zip(names.iter().cloned()))?;
        let (scratch, kept) = self.create_scratch(recipe, &ready)?;
        let operands: Vec<&Tensor> = there.iter().filter_map(|placed| placed.on_device()).collect();
        let at = At { operands: &operands, scratch: &scratch, results: &made, kernels: &self.kernels };
        let programs = recipe.stages.iter().map(|build| build(&at)).collect::<Result<Vec<_>, _>>()?;
        let (reads, writes) = (operands.iter().map(|tensor| &tensor.spec).collect::<Vec<_>>(), specs(&made));
        let (op, workers) = (&work.event.operation.op, self.site.workers.len());
        let bounds = Bounds::of(op, self.device.board(), workers, &reads, &writes);
        self.under_way.iter_mut().for_each(|record| record.bounds = Some(bounds));
        let all: Vec<Placed> = placed.iter().chain(&kept).cloned().collect();
        self.run(programs, &there.iter().collect::<Vec<_>>(), &all)?;
        let taken = placed.iter().zip(results).zip(&names);
        taken.map(|((placed, desc), name)| self.unflatten(placed, desc, name)).collect()
    }

    /// A tensor of the device in interleaved DRAM, by a program that moves its pages if it is
    /// elsewhere.
    fn flatten(&mut self, placed: &Placed) -> Result<Placed, Stopped> {
        let Some(tensor) = placed.on_device().filter(|tensor| !shards::is_flat(&tensor.spec)).cloned() else {
            return Ok(placed.clone());
        };
        let (desc, _) = shards::flat(&tensor.spec).map_err(unsupported)?;
        let (dram, flat) = self.create(&desc, &format!("{} in DRAM", tensor.buffer.name))?;
        let program = shards::program(&tensor, &dram, true, &self.kernels)?.map_err(unsupported)?;
        self.run(vec![program], &[placed], std::slice::from_ref(&flat))?;
        Ok(flat)
    }

    /// A tensor in interleaved DRAM as it is wanted, by a program that moves its pages if that is
    /// elsewhere.
    fn unflatten(&mut self, placed: &Placed, desc: &TensorDesc, name: &str) -> Result<Placed, Stopped> {
        let Some(flat) = placed.on_device().filter(|tensor| tensor.spec.memory() != &desc.memory).cloned() else {
            return Ok(placed.clone());
        };
        let (tensor, moved) = self.create(desc, name)?;
        if shards::is_flat(&tensor.spec) {
            return Ok(placed.clone());
        }
        let program = shards::program(&tensor, &flat, false, &self.kernels)?.map_err(unsupported)?;
        self.run(vec![program], &[placed], std::slice::from_ref(&moved))?;
        Ok(moved)
    }

    /// A tensor on the device: an array of the host is written to it first, in rows.
    fn bring(&mut self, placed: &Placed) -> Result<Placed, Stopped> {
        match placed.place() {
            Place::Device(_) => Ok(placed.clone()),
            Place::Host(array) => self.put(array, &rows_of(array.dtype(), array.shape().dims()), "brought"),
        }
    }

    /// Passes a tensor on: in another layout, memory or element type.
    fn pass(&mut self, work: &Work<'_, Placed>, dtype: DType) -> Result<(Placed, Carried), Stopped> {
        let (Some(&operand), Some(wanted)) = (work.operands.first(), work.results.first()) else {
            return Err(Stopped::Reason(Reason::Value("nothing is passed on".into())));
        };
        let place = describe::wanted(&wanted.tensor.desc, wanted.dtype);
        match (operand.place(), &place) {
            (Place::Device(tensor), Ok(Wanted::Device(desc))) => {
                if TensorSpec::new(desc).is_ok_and(|spec| spec == tensor.spec) {
                    return Ok((operand.clone(), Carried::Moved));
                }
                if TensorSpec::new(desc).is_ok_and(|to| moves_only(&tensor.spec, &to)) {
                    let flat = self.flatten(operand)?;
                    let name = name(wanted.tensor, self.under_way.as_ref());
                    return Ok((self.unflatten(&flat, desc, &name)?, Carried::Chip));
                }
                let why = match self.by_chip(work)? {
                    Ok(mut results) => {
                        let placed = results.pop().ok_or(Stopped::Reason(Reason::Value("no result".into())))?;
                        return Ok((placed, Carried::Chip));
                    }
                    Err(why) => why,
                };
                self.allow(&why)?;
                let array = self.array(operand, Some(dtype))?;
                Ok((self.place(array, wanted.tensor)?, why))
            }
            (Place::Host(array), Ok(Wanted::Host)) => {
                let array = ops::typecast(array, dtype);
                Ok((Placed::new(Place::Host(array), &self.freed), Carried::Stated))
            }
            _ => {
                let array = self.array(operand, Some(dtype))?;
                Ok((self.place(array, wanted.tensor)?, Carried::Moved))
            }
        }
    }
}

impl<C: HostLink> Machine for OnChip<C> {
    type Tensor = Placed;

    fn take(&mut self, array: Array, described: &TensorRef) -> Result<Placed, Reason> {
        self.place(array, described).map_err(|why| self.stopped(why))
    }

    fn give(&mut self, tensor: &Placed) -> Result<Array, Reason> {
        self.array(tensor, None).map_err(|why| self.stopped(why))
    }

    fn cast(&mut self, tensor: &Placed, dtype: DType, described: &TensorRef) -> Result<Placed, Reason> {
        let same = match tensor.place() {
            Place::Host(array) => array.dtype() == dtype,
            Place::Device(tensor) => tensor.spec.dtype() == dtype,
        };
        if same {
            return Ok(tensor.clone());
        }
        let cast = self.array(tensor, Some(dtype)).and_then(|array| self.place(array, described));
        cast.map_err(|why| self.stopped(why))
    }

    fn operate(&mut self, work: &Work<'_, Placed>) -> Result<Vec<Placed>, Reason> {
        self.under_way = Some(Record::at(work.event.place()));
        let carried_out = self.carry_out(work);
        let record = self.under_way.take();
        let (placed, carried) = carried_out.map_err(|why| self.stopped(why))?;
        self.records.extend(record.map(|record| Record { carried, ..record }));
        Ok(placed)
    }

    fn begin_trace(&mut self) -> Result<(), Reason> {
        self.traces.begin();
        Ok(())
    }

    fn end_trace(&mut self) -> Result<Option<u64>, Reason> {
        self.capture().map_err(|error| self.stopped(error.into()))
    }

    fn replay(
        &mut self,
        trace: u64,
        place: OperationPlace,
        inputs: &[(&Placed, &Placed)],
        results: &[&Placed],
    ) -> Result<bool, Reason> {
        self.replay_captured(trace, place, inputs, results).map_err(|why| self.stopped(why))
    }

    fn release(&mut self, trace: u64) -> Result<(), Reason> {
        self.release_captured(trace).map_err(|error| self.stopped(error.into()))
    }

    fn finish(&mut self) -> Result<(), Reason> {
        self.settle().map_err(|error| self.stopped(error.into()))
    }
}

fn flat_desc(desc: &TensorDesc) -> Result<TensorDesc, Stopped> {
    let spec = TensorSpec::new(desc).map_err(RuntimeError::from)?;
    Ok(shards::flat(&spec).map_err(unsupported)?.0)
}

/// Whether a program does not fit into the memory of the workers.
fn finds_no_room(error: &RuntimeError) -> bool {
    use ProgramErrorKind::{CircularBuffer, ConfigSpace};
    matches!(error, RuntimeError::Program(error) if matches!(error.kind, ConfigSpace { .. } | CircularBuffer { .. }))
}

fn unsupported(why: String) -> Stopped {
    Stopped::Reason(Reason::Unsupported(why))
}

fn specs(tensors: &[Tensor]) -> Vec<TensorSpec> {
    tensors.iter().map(|tensor| tensor.spec.clone()).collect()
}

/// The name of a tensor in reports: with the operation that makes it.
fn name(described: &TensorRef, by: Option<&Record>) -> String {
    let id = described.global_id;
    match by.map(|record| &record.place) {
        Some(place) => format!("%{id} of {}.{} {}", place.program, place.operation, place.kind.name()),
        None => format!("%{id}"),
    }
}
