//! The chip as a machine for compiled models.

use std::collections::BTreeMap;

use tilework_abi::l1::WORKER;
use tilework_driver::HostLink;
use tilework_engine::{How, Machine, OperationPlace, Reason, Work};
use tilework_model::ttnn::TensorRef;
use tilework_ops::{self as ops, DType, Shape, Tensor as Array};
use tilework_runtime::tensor::{HostTensor, MemoryConfig, Tensor, TensorDesc, TensorSpec};
use tilework_runtime::{Blocking, BufferType, Device, MemoryError, Program, RuntimeError, TimeSlot};

use crate::describe::{self, Wanted};
use crate::placed::{Freed, Place, Placed};
use crate::plan::{moves_only, plan, rows_of, spec_of};
use crate::recipe::{At, Kernels, Recipe, Site};
use crate::record::{Carried, Record, Stage};
use crate::roofline::Bounds;
use crate::shards;
use crate::trace::{TraceCounts, Traces};

/// A device that carries out the operations of a program.
pub struct OnChip<C> {
    pub(crate) device: Device<C>,
    site: Site,
    kernels: Kernels,
    freed: Freed,
    pub(crate) records: Vec<Record>,
    /// Whether an operation without a recipe ends the run.
    strict: bool,
    failure: Option<RuntimeError>,
    /// What the operation under way has done, if there is one.
    pub(crate) under_way: Option<Record>,
    /// Tensors that are elsewhere than the program has them: why.
    displaced: BTreeMap<String, String>,
    pub(crate) traces: Traces,
    /// Stages whose times the dispatcher writes to the first slots, as record and stage.
    timed: Vec<(usize, usize)>,
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

    /// Gives back the memory of tensors that have no name any more. What a trace may refer to waits
    /// until it is released.
    fn tidy(&mut self) -> Result<(), RuntimeError> {
        let freed = std::mem::take(&mut *self.freed.borrow_mut());
        for tensor in freed {
            match self.device.free_tensor(&tensor) {
                Err(RuntimeError::Memory(MemoryError::Pinned { .. })) => self.freed.borrow_mut().push(tensor),
                freed => freed?,
            }
        }
        Ok(())
    }

    fn stopped(&mut self, why: Stopped) -> Reason {
        match why {
            Stopped::Reason(reason) => reason,
            Stopped::Device(error) => {
                let text = error.to_string();
                self.failure = Some(error);
                Reason::Machine(text)
            }
        }
    }

    /// Waits until all that was enqueued has ended, and notes when it ran.
    fn settle(&mut self) -> Result<(), RuntimeError> {
        self.device.finish()?;
        for (index, (record, stage)) in std::mem::take(&mut self.timed).into_iter().enumerate() {
            let Some(slot) = TimeSlot::new(index) else { break };
            let times = self.device.times(slot)?;
            // That of the operation under way comes next.
            let record = self.records.get_mut(record).or(self.under_way.as_mut());
            if let Some(stage) = record.and_then(|record| record.stages.get_mut(stage)) {
                stage.times = Some(times);
            }
        }
        Ok(())
    }

    /// Enqueues a stage of the operation under way. Outside of operations nothing is noted.
    pub(crate) fn stage<T>(
        &mut self,
        stage: Stage,
        enqueue: impl FnOnce(&mut Device<C>, TimeSlot) -> Result<(T, bool), RuntimeError>,
    ) -> Result<T, RuntimeError> {
        if self.timed.len() == TimeSlot::COUNT {
            self.settle()?;
        }
        let Some(slot) = TimeSlot::new(self.timed.len()) else { return Err(RuntimeError::NoQueue) };
        let (value, timed) = enqueue(&mut self.device, slot)?;
        if let Some(record) = &mut self.under_way {
            if timed {
                self.timed.push((self.records.len(), record.stages.len()));
            }
            record.stages.push(stage);
        }
        Ok(value)
    }

    /// Writes an array to new memory. Nothing waits for that.
    fn put(&mut self, array: &Array, desc: &TensorDesc, name: &str) -> Result<Placed, Stopped> {
        let (tensor, placed) = self.create(desc, name)?;
        self.write(array, &tensor)?;
        Ok(placed)
    }

    /// Writes an array to a tensor of the device.
    pub(crate) fn write(&mut self, array: &Array, tensor: &Tensor) -> Result<(), Stopped> {
        self.traces.breaks("an array of the host is written to the device in it");
        let pages = tensor.spec.encode(&host_tensor(array)?, 0.0).map_err(RuntimeError::from)?;
        self.stage(Stage::transfer("write"), |device, slot| {
            device.enqueue_timed(slot, |device| device.enqueue_write_buffer(&tensor.buffer, &pages, Blocking::No))
        })?;
        if let Some(record) = &mut self.under_way {
            record.written += tensor.spec.bytes() as u64;
        }
        Ok(())
    }

    /// Reads a tensor of the device, behind everything that was enqueued.
    fn read(&mut self, tensor: &Tensor) -> Result<Array, Stopped> {
        self.traces.breaks("a tensor of the device is read in it");
        let read = self.stage(Stage::transfer("read"), |device, slot| {
            device.enqueue_timed(slot, |device| device.enqueue_read_buffer(&tensor.buffer, Blocking::No))
        })?;
        let pages = self.device.wait_for_read(read)?;
        if let Some(record) = &mut self.under_way {
            record.read += tensor.spec.bytes() as u64;
        }
        let host = tensor.spec.decode(&pages, tensor.spec.host_dtype()).map_err(RuntimeError::from)?;
        array_of(&host, tensor.spec.dtype()).map_err(op)
    }

    /// Puts an array where a program wants it.
    fn place(&mut self, array: Array, described: &TensorRef) -> Result<Placed, Stopped> {
        match describe::wanted(&described.desc) {
            Ok(Wanted::Device(desc)) => self.put(&array, &desc, &name(described, self.under_way.as_ref())),
            // What the runtime has no tensor for stays with the host; so its operations are the
            // host's, and say why.
            Ok(Wanted::Host) | Err(_) => Ok(Placed::new(Place::Host(array), &self.freed)),
        }
    }

    /// The array of a tensor.
    fn array(&mut self, placed: &Placed, as_type: Option<DType>) -> Result<Array, Stopped> {
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
            How::Compute(arithmetic) => match self.plan(work) {
                Ok((recipe, descs)) => Ok((self.follow(&recipe, &descs, work)?, Carried::Chip)),
                Err(why) => {
                    self.allow(&why)?;
                    self.traces.breaks("an operation of the host is in it");
                    let reads = work.operands.iter().zip(work.reads);
                    let types = |described: &TensorRef| DType::from(described.desc.dtype());
                    let arrays = reads.map(|(placed, described)| self.array(placed, Some(types(described))));
                    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
                    let made = arithmetic(&arrays.iter().collect::<Vec<_>>()).map_err(Stopped::Reason)?;
                    let results = made.into_iter().zip(&work.results);
                    let placed = results.map(|(array, wanted)| self.place(array, wanted.tensor));
                    Ok((placed.collect::<Result<_, _>>()?, why))
                }
            },
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
    fn look_at_l1(&mut self) {
        let owners = self.device.l1().statistics(BufferType::L1).owners;
        let free = owners.iter().map(|owned| owned.range.start).min();
        let end = free.map_or(WORKER.data_end.get(), |start| u32::try_from(start).unwrap_or(u32::MAX));
        self.site.l1 = end.saturating_sub(WORKER.data.get());
    }

    /// The recipe of an operation and what its results are, or why the host computes it.
    fn plan(&mut self, work: &Work<'_, Placed>) -> Result<(Recipe, Vec<TensorDesc>), Carried> {
        self.look_at_l1();
        let specs: Vec<Option<TensorSpec>> = work.operands.iter().map(|placed| spec_of(placed)).collect();
        let operands: Option<Vec<&TensorSpec>> = specs.iter().map(Option::as_ref).collect();
        let results: Vec<&TensorRef> = work.results.iter().map(|wanted| wanted.tensor).collect();
        plan(&work.event.operation.op, operands.as_deref(), &results, &self.site)
    }

    /// New memory for a tensor.
    ///
    /// Shards that the device cannot have, as on a core of the command queue, are in interleaved
    /// DRAM instead, and that is noted.
    fn create(&mut self, desc: &TensorDesc, name: &str) -> Result<(Tensor, Placed), RuntimeError> {
        self.tidy()?;
        let tensor = match self.device.create_tensor(name, desc) {
            Err(RuntimeError::Memory(error @ MemoryError::Shard { .. })) => {
                self.displaced.insert(name.to_owned(), error.to_string());
                self.device.create_tensor(name, &desc.clone().memory(MemoryConfig::DRAM))?
            }
            created => created?,
        };
        Ok((tensor.clone(), Placed::new(Place::Device(Box::new(tensor)), &self.freed)))
    }

    fn create_all<'d>(
        &mut self,
        descs: impl Iterator<Item = (&'d TensorDesc, String)>,
    ) -> Result<(Vec<Tensor>, Vec<Placed>), RuntimeError> {
        let made = descs.map(|(desc, name)| self.create(desc, &name));
        Ok(made.collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
    }

    /// Enqueues programs of the operation under way, and notes the tensors that they read and make.
    fn run(&mut self, programs: Vec<Program>, reads: &[&Placed], made: &[Placed]) -> Result<(), RuntimeError> {
        for program in &programs {
            let stage = Stage { name: program.name.clone(), cores: 0, times: None };
            let cores = self.stage(stage, |device, slot| device.enqueue_program_timed(program, slot))?;
            let stage = self.under_way.as_mut().and_then(|record| record.stages.last_mut());
            stage.into_iter().for_each(|stage| stage.cores = cores);
        }
        self.traces.ran(programs, reads.iter().copied(), made);
        Ok(())
    }

    /// Runs the programs of a recipe, on tensors in interleaved DRAM: what lies otherwise is brought
    /// there before and taken away after.
    fn follow(
        &mut self,
        recipe: &Recipe,
        results: &[TensorDesc],
        work: &Work<'_, Placed>,
    ) -> Result<Vec<Placed>, Stopped> {
        let there = work.operands.iter().map(|placed| self.bring(placed)).collect::<Result<Vec<_>, _>>()?;
        let there = there.iter().map(|placed| self.flatten(placed)).collect::<Result<Vec<_>, _>>()?;
        let by = self.under_way.clone();
        let names: Vec<String> = work.results.iter().map(|wanted| name(wanted.tensor, by.as_ref())).collect();
        let flats = results.iter().map(flat_desc).collect::<Result<Vec<_>, _>>()?;
        let (made, placed) = self.create_all(flats.iter().zip(names.iter().cloned()))?;
        let (scratch, kept) = self.create_all(recipe.scratch.iter().map(|desc| (desc, "scratch".to_owned())))?;
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
        let place = describe::wanted(&wanted.tensor.desc);
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
                let why = match self.plan(work) {
                    Ok((recipe, descs)) => {
                        let mut results = self.follow(&recipe, &descs, work)?;
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

fn op(error: ops::OpError) -> Stopped {
    Stopped::Reason(Reason::Op(error))
}

fn host_tensor(array: &Array) -> Result<HostTensor, RuntimeError> {
    let dtype = match describe::held(array.dtype()) {
        dtype if dtype.is_block() => DType::F32,
        dtype => dtype,
    };
    Ok(HostTensor::from_le_bytes(array.shape().dims(), dtype, array.to_le_bytes())?)
}

fn array_of(host: &HostTensor, dtype: DType) -> Result<Array, ops::OpError> {
    let shape = Shape::new(host.shape()).map_err(|reason| ops::OpError {
        op: "tensor",
        operands: ops::Operands::default(),
        reason,
    })?;
    let array = Array::from_le_bytes(host.dtype(), shape, host.bytes())?;
    Ok(if array.dtype() == dtype { array } else { ops::typecast(&array, dtype) })
}
