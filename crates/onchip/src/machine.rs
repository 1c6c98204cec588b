//! The chip as a machine for compiled models.

use std::rc::Rc;

use tilework_driver::HostLink;
use tilework_engine::{Event, How, Machine, Outline, Reason, Work};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::{self as ops, DType, Shape, Tensor as Array};
use tilework_runtime::tensor::{HostTensor, Layout, Tensor, TensorDesc, TensorSpec};
use tilework_runtime::{Device, DeviceConfig, RuntimeError};

use crate::describe::{self, Wanted};
use crate::families;
use crate::placed::{Freed, Place, Placed};
use crate::recipe::{At, Kernels, Recipe, Site, Task};
use crate::record::{Carried, Record, Stage};

/// A device that carries out the operations of a program.
pub struct OnChip<C> {
    device: Device<C>,
    site: Site,
    kernels: Kernels,
    freed: Freed,
    records: Vec<Record>,
    /// Whether an operation without a recipe ends the run.
    strict: bool,
    failure: Option<RuntimeError>,
    /// Bytes to and from the device since the operation began.
    moved: [u64; 2],
}

/// Why an operation was not done.
enum Stopped {
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
            moved: [0; 2],
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

    /// What became of the operations, in the order in which they were carried out.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What stopped the device, if something did.
    pub fn failure(&mut self) -> Option<RuntimeError> {
        self.failure.take()
    }

    /// Gives back the memory of tensors that have no name any more.
    fn tidy(&mut self) -> Result<(), RuntimeError> {
        let freed = std::mem::take(&mut *self.freed.borrow_mut());
        freed.iter().try_for_each(|tensor| self.device.free_tensor(tensor))
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

    /// Writes an array to new memory.
    fn put(&mut self, array: &Array, desc: &TensorDesc, name: &str) -> Result<Placed, Stopped> {
        self.tidy()?;
        let tensor = self.device.create_tensor(name, desc)?;
        let placed = Placed::new(Place::Device(Box::new(tensor.clone())), &self.freed);
        let host = host_tensor(array)?;
        self.device.write_tensor(&tensor, &host)?;
        self.moved[0] += tensor.spec.bytes() as u64;
        Ok(placed)
    }

    /// Puts an array where a program wants it.
    fn place(&mut self, array: Array, described: &TensorRef) -> Result<Placed, Stopped> {
        match describe::wanted(&described.desc) {
            Ok(Wanted::Device(desc)) => self.put(&array, &desc, &name(described)),
            // What the runtime has no tensor for stays with the host; so its operations are the
            // host's, and say why.
            Ok(Wanted::Host) | Err(_) => Ok(Placed::new(Place::Host(array), &self.freed)),
        }
    }

    /// The array of a tensor.
    fn array(&mut self, placed: &Placed, as_type: Option<DType>) -> Result<Array, Stopped> {
        let array = match placed.place() {
            Place::Host(array) => array.clone(),
            Place::Device(tensor) => {
                self.moved[1] += tensor.spec.bytes() as u64;
                array_of(&self.device.read_tensor(tensor)?, tensor.spec.dtype()).map_err(op)?
            }
        };
        Ok(match as_type {
            Some(dtype) if dtype != array.dtype() => ops::typecast(&array, dtype),
            _ => array,
        })
    }

    fn carry_out(&mut self, work: &Work<'_, Placed>) -> Result<(Vec<Placed>, Carried, Vec<Stage>), Stopped> {
        match work.how {
            How::Pass(dtype) => {
                let (placed, carried, stages) = self.pass(work, dtype)?;
                Ok((vec![placed], carried, stages))
            }
            How::Compute(arithmetic) => match self.plan(work) {
                Ok((recipe, descs)) => {
                    let (results, stages) = self.follow(&recipe, &descs, work)?;
                    Ok((results, Carried::Chip, stages))
                }
                Err(why) => {
                    self.allow(&why)?;
                    let reads = work.operands.iter().zip(work.reads);
                    let types = |described: &TensorRef| DType::from(described.desc.dtype());
                    let arrays = reads.map(|(placed, described)| self.array(placed, Some(types(described))));
                    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
                    let made = arithmetic(&arrays.iter().collect::<Vec<_>>()).map_err(Stopped::Reason)?;
                    let results = made.into_iter().zip(&work.results);
                    let placed = results.map(|(array, wanted)| self.place(array, wanted.tensor));
                    Ok((placed.collect::<Result<_, _>>()?, why, Vec::new()))
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

    /// The recipe of an operation and what its results are, or why the host computes it.
    fn plan(&self, work: &Work<'_, Placed>) -> Result<(Recipe, Vec<TensorDesc>), Carried> {
        let specs: Vec<Option<TensorSpec>> = work.operands.iter().map(|placed| spec_of(placed)).collect();
        let operands: Option<Vec<&TensorSpec>> = specs.iter().map(Option::as_ref).collect();
        let results: Vec<&TensorRef> = work.results.iter().map(|wanted| wanted.tensor).collect();
        plan(&work.event.operation.op, operands.as_deref(), &results, &self.site)
    }

    /// Runs the programs of a recipe.
    fn follow(
        &mut self,
        recipe: &Recipe,
        results: &[TensorDesc],
        work: &Work<'_, Placed>,
    ) -> Result<(Vec<Placed>, Vec<Stage>), Stopped> {
        let there = work.operands.iter().map(|placed| self.bring(placed)).collect::<Result<Vec<_>, _>>()?;
        self.tidy()?;
        let freed = Rc::clone(&self.freed);
        let mut create = |desc: &TensorDesc, name: &str| {
            let tensor = self.device.create_tensor(name, desc)?;
            Ok::<_, RuntimeError>((tensor.clone(), Placed::new(Place::Device(Box::new(tensor)), &freed)))
        };
        let made = results.iter().zip(&work.results).map(|(desc, wanted)| create(desc, &name(wanted.tensor)));
        let (made, placed): (Vec<Tensor>, Vec<Placed>) = made.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let scratch = recipe.scratch.iter().map(|desc| create(desc, "scratch"));
        let (scratch, _kept): (Vec<Tensor>, Vec<Placed>) = scratch.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let operands: Vec<&Tensor> = there.iter().filter_map(|placed| placed.on_device()).collect();
        let at = At { operands: &operands, scratch: &scratch, results: &made, kernels: &self.kernels };
        let programs = recipe.stages.iter().map(|build| build(&at)).collect::<Result<Vec<_>, _>>()?;
        let report = self.device.run(&programs)?;
        let stages = report.programs.into_iter().map(|program| {
            let cycles = program.cycles();
            Stage { name: program.name, cores: program.cores, cycles }
        });
        Ok((placed, stages.collect()))
    }

    /// A tensor on the device: an array of the host is written to it first, in rows.
    fn bring(&mut self, placed: &Placed) -> Result<Placed, Stopped> {
        match placed.place() {
            Place::Device(_) => Ok(placed.clone()),
            Place::Host(array) => self.put(&array.clone(), &rows_of(array.dtype(), array.shape().dims()), "brought"),
        }
    }

    /// Passes a tensor on: in another layout, memory or element type.
    fn pass(&mut self, work: &Work<'_, Placed>, dtype: DType) -> Result<(Placed, Carried, Vec<Stage>), Stopped> {
        let (Some(&operand), Some(wanted)) = (work.operands.first(), work.results.first()) else {
            return Err(Stopped::Reason(Reason::Value("nothing is passed on".into())));
        };
        let place = describe::wanted(&wanted.tensor.desc);
        match (operand.place(), &place) {
            (Place::Device(tensor), Ok(Wanted::Device(desc))) => {
                if TensorSpec::new(desc).is_ok_and(|spec| spec == tensor.spec) {
                    return Ok((operand.clone(), Carried::Moved, Vec::new()));
                }
                let why = match self.plan(work) {
                    Ok((recipe, descs)) => {
                        let (mut results, stages) = self.follow(&recipe, &descs, work)?;
                        let placed = results.pop().ok_or(Stopped::Reason(Reason::Value("no result".into())))?;
                        return Ok((placed, Carried::Chip, stages));
                    }
                    Err(why) => why,
                };
                self.allow(&why)?;
                let array = self.array(operand, Some(dtype))?;
                Ok((self.place(array, wanted.tensor)?, why, Vec::new()))
            }
            (Place::Host(array), Ok(Wanted::Host)) => {
                let array = ops::typecast(array, dtype);
                Ok((Placed::new(Place::Host(array), &self.freed), Carried::Stated, Vec::new()))
            }
            _ => {
                let array = self.array(operand, Some(dtype))?;
                Ok((self.place(array, wanted.tensor)?, Carried::Moved, Vec::new()))
            }
        }
    }

    /// Notes what became of an operation.
    fn record(&mut self, event: &Event<'_>, carried: Carried, stages: Vec<Stage>, began: u64) {
        let [written, read] = std::mem::take(&mut self.moved);
        let cycles = self.device.chip().cycles() - began;
        self.records.push(Record { place: event.place(), carried, stages, cycles, written, read });
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
        self.moved = [0; 2];
        let began = self.device.chip().cycles();
        let (placed, carried, stages) = self.carry_out(work).map_err(|why| self.stopped(why))?;
        self.record(work.event, carried, stages, began);
        Ok(placed)
    }
}

/// Who would carry out the operations of a program on a device that is opened so.
pub fn forecast<'o, 'm>(config: &DeviceConfig, outline: &'o [Outline<'m>]) -> Vec<(&'o Outline<'m>, Carried)> {
    let site = Site::of(config);
    let carried = outline.iter().filter(|outline| outline.carried);
    carried.map(|outline| (outline, foreseen(outline, &site))).collect()
}

/// The recipe of an operation and what its results are, or why the host computes it. Without
/// operands, one cannot be brought to the device.
fn plan(
    op: &Op,
    operands: Option<&[&TensorSpec]>,
    results: &[&TensorRef],
    site: &Site,
) -> Result<(Recipe, Vec<TensorDesc>), Carried> {
    let absent = |why: String| Carried::Host(why);
    let mut descs = Vec::new();
    for tensor in results {
        match describe::wanted(&tensor.desc).map_err(absent)? {
            Wanted::Host => return Err(Carried::Stated),
            Wanted::Device(desc) => descs.push(desc),
        }
    }
    let specs = descs.iter().map(|desc| TensorSpec::new(desc).map_err(|e| absent(e.to_string())));
    let specs = specs.collect::<Result<Vec<_>, _>>()?;
    let operands = operands.ok_or_else(|| absent("an operand that the device has no form for".into()))?;
    if let Op::Constant(_) = op {
        return Err(Carried::Moved);
    }
    let task = Task { operands, results: &specs, site };
    Ok((families::plan(op, &task).map_err(absent)?, descs))
}

/// How an array of the host is brought to the device: in rows.
fn rows_of(dtype: DType, dims: &[usize]) -> TensorDesc {
    let dtype = if dtype == DType::Bool { DType::U8 } else { dtype };
    TensorDesc::new(dims.to_vec()).dtype(dtype).layout(Layout::RowMajor)
}

/// What a tensor is on the device, or will be when it is brought there.
fn spec_of(placed: &Placed) -> Option<TensorSpec> {
    match placed.place() {
        Place::Device(tensor) => Some(tensor.spec.clone()),
        Place::Host(array) => TensorSpec::new(&rows_of(array.dtype(), array.shape().dims())).ok(),
    }
}

/// Who will carry an operation out.
fn foreseen(outline: &Outline<'_>, site: &Site) -> Carried {
    let on_device = |tensor: &&TensorRef| match describe::wanted(&tensor.desc) {
        Ok(Wanted::Device(desc)) => TensorSpec::new(&desc).ok(),
        Ok(Wanted::Host) | Err(_) => None,
    };
    if outline.passes {
        let first = |list: &[&TensorRef]| list.first().and_then(on_device);
        match (first(&outline.reads), first(&outline.writes)) {
            (None, None) => return Carried::Stated,
            (None, _) | (_, None) => return Carried::Moved,
            (Some(from), Some(to)) if from == to => return Carried::Moved,
            _ => {}
        }
    }
    let brought = |tensor: &&TensorRef| {
        let lengths = tensor.desc.shape.iter().map(|&n| usize::try_from(n));
        let dims = lengths.collect::<Result<Vec<_>, _>>().ok()?;
        TensorSpec::new(&rows_of(DType::from(tensor.desc.dtype()), &dims)).ok()
    };
    let reads: Option<Vec<TensorSpec>> =
        outline.reads.iter().map(|tensor| on_device(tensor).or_else(|| brought(tensor))).collect();
    let operands: Option<Vec<&TensorSpec>> = reads.as_ref().map(|specs| specs.iter().collect());
    match plan(&outline.operation.op, operands.as_deref(), &outline.writes, site) {
        Ok(_) => Carried::Chip,
        Err(carried) => carried,
    }
}

/// The name of a tensor in reports.
fn name(described: &TensorRef) -> String {
    format!("%{}", described.global_id)
}

fn op(error: ops::OpError) -> Stopped {
    Stopped::Reason(Reason::Op(error))
}

fn host_tensor(array: &Array) -> Result<HostTensor, RuntimeError> {
    let dtype = match array.dtype() {
        DType::Bool => DType::U8,
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
