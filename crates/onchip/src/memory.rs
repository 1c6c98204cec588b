//! The memory that a program needs over time, by the descriptions of its tensors in the file: what
//! [`OnChip`](crate::OnChip) allocates, without running anything.

use std::collections::BTreeMap;

use tilework_abi::addr::L1Addr;
use tilework_abi::l1::WORKER;
use tilework_engine::Rounding;
use tilework_model::Direction;
use tilework_model::ttnn::{Op, OpKind, Program, TensorRef};
use tilework_ops::DType;
use tilework_runtime::DeviceConfig;
use tilework_runtime::memory::{Allocator, AllocatorConfig, Buffer, BufferType, MemorySpace};
use tilework_runtime::tensor::TensorSpec;

use crate::describe::{self, Wanted};

/// A memory at its fullest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peak {
    /// The memory.
    pub memory: BufferType,
    /// Bytes of a bank that can be allocated, and those that are.
    pub total: u64,
    /// See `total`.
    pub allocated: u64,
    /// The operation that begins so; none of the inputs alone.
    pub at: Option<usize>,
    /// Who holds how many bytes of each bank, the most first.
    pub holders: Vec<(String, u64)>,
}

/// Memory when the results of an operation are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryStep {
    /// Its index.
    pub operation: usize,
    /// Its kind.
    pub kind: OpKind,
    /// Bytes of each DRAM bank that are taken.
    pub dram: u64,
    /// Bytes of a worker's L1 that are taken at most.
    pub l1: u64,
}

/// The memory of a program over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryPlan {
    /// The operations that take or give memory, in order.
    pub steps: Vec<MemoryStep>,
    /// DRAM and L1.
    pub peaks: [Peak; 2],
    /// The first tensor that does not fit, and who holds what then.
    pub refused: Option<String>,
    /// Tensors that the device has no form for, and so are in the host's memory: why.
    pub on_host: BTreeMap<String, String>,
}

/// Tensors that exist, by their global ids.
struct Live {
    space: MemorySpace,
    rounding: Rounding,
    buffers: BTreeMap<u32, Buffer>,
    plan: MemoryPlan,
}

/// The memory of a program on a device that is opened so, where results are rounded so; that of
/// programs that it calls comes on top where it calls them.
pub fn memory_plan(config: &DeviceConfig, program: &Program, rounding: Rounding) -> MemoryPlan {
    walk(config, program, rounding, |_| ())
}

/// Bytes of L1 that tensors leave for circular buffers, which lie below all of them, when each
/// operation of the program begins.
pub(crate) fn l1_left(config: &DeviceConfig, program: &Program, rounding: Rounding) -> Vec<u32> {
    let mut left = Vec::new();
    walk(config, program, rounding, |space| left.push(below_tensors(space.l1())));
    left
}

/// Bytes of L1 below all tensors.
pub(crate) fn below_tensors(l1: &Allocator<L1Addr>) -> u32 {
    let owners = l1.statistics(BufferType::L1).owners;
    let lowest = owners.iter().map(|owned| owned.range.start).min();
    let end = lowest.map_or(WORKER.data_end.get(), |start| u32::try_from(start).unwrap_or(u32::MAX));
    end.saturating_sub(WORKER.data.get())
}

/// Goes through a program; before each operation the memory is looked at.
fn walk(
    config: &DeviceConfig,
    program: &Program,
    rounding: Rounding,
    mut before_each: impl FnMut(&MemorySpace),
) -> MemoryPlan {
    let space = MemorySpace::with(&AllocatorConfig::of_workers(config.board, &WORKER, config.workers()));
    let peak = |memory| {
        let statistics = space.statistics(memory);
        Peak { memory, total: statistics.total, allocated: 0, at: None, holders: Vec::new() }
    };
    let peaks = [peak(BufferType::Dram), peak(BufferType::L1)];
    let plan = MemoryPlan { steps: Vec::new(), peaks, refused: None, on_host: BTreeMap::new() };
    let mut live = Live { space, rounding, buffers: BTreeMap::new(), plan };
    program.inputs.iter().for_each(|input| live.make(input, "the inputs"));
    live.look(None);
    for (index, operation) in program.operations.iter().enumerate() {
        before_each(&live.space);
        let before = live.taken();
        let operands = operation.operands();
        let made = operands.iter().filter(|operand| operand.direction == Direction::Out);
        made.for_each(|operand| live.make(operand.tensor, operation.kind().name()));
        live.look(Some(index));
        if let Op::Deallocate(op) = &operation.op {
            live.free(op.input.global_id);
        }
        let after = live.taken();
        if after != before {
            let [dram, l1] = after;
            live.plan.steps.push(MemoryStep { operation: index, kind: operation.kind(), dram, l1 });
        }
    }
    live.plan
}

impl Live {
    /// Allocates a tensor that is made; what exists is written in place.
    fn make(&mut self, tensor: &TensorRef, by: &str) {
        if self.buffers.contains_key(&tensor.global_id) {
            return;
        }
        let name = format!("%{} of {by}", tensor.global_id);
        let dtype = self.rounding.kept(DType::from(tensor.desc.dtype()));
        let spec = match describe::wanted(&tensor.desc, dtype) {
            Ok(Wanted::Device(desc)) => TensorSpec::new(&desc).map_err(|error| error.to_string()),
            Ok(Wanted::Host) => return,
            Err(why) => Err(why),
        };
        let spec = match spec {
            Ok(spec) => spec,
            Err(why) => {
                self.plan.on_host.insert(name, why);
                return;
            }
        };
        match self.space.alloc(&spec.buffer_config(name)) {
            Ok(buffer) => _ = self.buffers.insert(tensor.global_id, buffer),
            Err(error) => _ = self.plan.refused.get_or_insert_with(|| error.to_string()),
        }
    }

    fn free(&mut self, id: u32) {
        if let Some(buffer) = self.buffers.remove(&id) {
            // What was allocated can be freed.
            let _ = self.space.free(&buffer);
        }
    }

    /// Bytes of each bank of DRAM and L1 that are taken.
    fn taken(&self) -> [u64; 2] {
        [BufferType::Dram, BufferType::L1].map(|memory| self.space.statistics(memory).allocated())
    }

    /// Notes memories that are fuller than before.
    fn look(&mut self, at: Option<usize>) {
        for peak in &mut self.plan.peaks {
            let statistics = self.space.statistics(peak.memory);
            if statistics.allocated() > peak.allocated {
                let bytes = |owned: &tilework_runtime::memory::Owned| owned.range.end - owned.range.start;
                peak.holders = statistics.owners.iter().map(|owned| (owned.owner.clone(), bytes(owned))).collect();
                peak.holders.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                (peak.allocated, peak.at) = (statistics.allocated(), at);
            }
        }
    }
}
