//! What goes into the device's queue for a run: memory, transfers, programs, and their times.

use tilework_driver::HostLink;
use tilework_engine::Reason;
use tilework_ops::{self as ops, DType, Shape, Tensor as Array};
use tilework_runtime::tensor::{HostTensor, MemoryConfig, Tensor, TensorDesc};
use tilework_runtime::{Blocking, Device, MemoryError, Program, RuntimeError, TimeSlot};

use crate::describe;
use crate::machine::{OnChip, Stopped};
use crate::placed::{Place, Placed};
use crate::record::Stage;

impl<C: HostLink> OnChip<C> {
    /// Gives back the memory of tensors that have no name any more. What a trace may refer to waits
    /// until it is released.
    pub(crate) fn tidy(&mut self) -> Result<(), RuntimeError> {
        let freed = std::mem::take(&mut *self.freed.borrow_mut());
        for tensor in freed {
            match self.device.free_tensor(&tensor) {
                Err(RuntimeError::Memory(MemoryError::Pinned { .. })) => self.freed.borrow_mut().push(tensor),
                freed => freed?,
            }
        }
        Ok(())
    }

    /// Waits until all that was enqueued has ended, and notes when it ran.
    pub(crate) fn settle(&mut self) -> Result<(), RuntimeError> {
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
        let before = self.device.chip().cycles();
        let (value, timed) = enqueue(&mut self.device, slot)?;
        // Without a queue it has ended.
        let ended = self.device.queue().is_none().then(|| [before, self.device.chip().cycles()]);
        if let Some(record) = &mut self.under_way {
            let stage = Stage { times: ended, ..stage };
            if timed {
                self.timed.push((self.records.len(), record.stages.len()));
            }
            record.stages.push(stage);
        }
        Ok(value)
    }

    /// Writes an array to new memory. Nothing waits for that.
    pub(crate) fn put(&mut self, array: &Array, desc: &TensorDesc, name: &str) -> Result<Placed, Stopped> {
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
    pub(crate) fn read(&mut self, tensor: &Tensor) -> Result<Array, Stopped> {
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

    /// New memory for a tensor.
    ///
    /// Shards that the device cannot have, as on a core of the command queue, are in interleaved
    /// DRAM instead, and that is noted.
    pub(crate) fn create(&mut self, desc: &TensorDesc, name: &str) -> Result<(Tensor, Placed), RuntimeError> {
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

    pub(crate) fn create_all<'d>(
        &mut self,
        descs: impl Iterator<Item = (&'d TensorDesc, String)>,
    ) -> Result<(Vec<Tensor>, Vec<Placed>), RuntimeError> {
        let made = descs.map(|(desc, name)| self.create(desc, &name));
        Ok(made.collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
    }

    /// Enqueues programs of the operation under way, and notes the tensors that they read and make.
    pub(crate) fn run(
        &mut self,
        programs: Vec<Program>,
        reads: &[&Placed],
        made: &[Placed],
    ) -> Result<(), RuntimeError> {
        for program in &programs {
            let stage = Stage { name: program.name.clone(), cores: 0, times: None };
            let cores = self.stage(stage, |device, slot| device.enqueue_program_timed(program, slot))?;
            let stage = self.under_way.as_mut().and_then(|record| record.stages.last_mut());
            stage.into_iter().for_each(|stage| stage.cores = cores);
        }
        self.traces.ran(programs, reads.iter().copied(), made);
        Ok(())
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
