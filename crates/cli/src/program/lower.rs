//! From a plan to a device: buffers placed, the program built, outputs fetched.

use super::plan::{Arguments, Home, Plan, PlannedBuffer, Shards};
use super::wrong::Wrong;
use crate::failure::Outcome;
use std::sync::Arc;
use tilework_abi::addr::PageCount;
use tilework_runtime::{
    ArgSet, Buffer, BufferConfig, BufferType, CircularBuffer, Cores, DType, MemoryError, MemorySpace, Program, Role,
    UniqueArgs,
};

/// Where the buffers of a plan are, in its order.
pub struct Placed {
    /// The address of each.
    pub addresses: Vec<u64>,
    /// The buffers with pages in the banks of a memory that are not empty.
    pub buffers: Vec<Option<Buffer>>,
}

/// Places all buffers.
pub fn place(memory: &mut MemorySpace, plan: &Plan) -> Outcome<Placed> {
    let mut wrong = Wrong::default();
    let placed = place_or(memory, plan, &mut wrong);
    wrong.outcome().map(|()| placed)
}

/// The same; a buffer for which there is no room is kept as wrong, and has address 0.
pub fn place_or(memory: &mut MemorySpace, plan: &Plan, wrong: &mut Wrong) -> Placed {
    let mut placed = Placed { addresses: Vec::new(), buffers: Vec::new() };
    for buffer in &plan.buffers {
        let one = place_one(memory, buffer).map_err(|error| plan.source.error(buffer.span.clone(), error));
        let (address, banks) = wrong.keep(one).unwrap_or((0, None));
        placed.addresses.push(address);
        placed.buffers.push(banks);
    }
    placed
}

/// The address of a buffer, and its pages if it has some in the banks of a memory.
fn place_one(memory: &mut MemorySpace, buffer: &PlannedBuffer) -> Result<(u64, Option<Buffer>), MemoryError> {
    let name = &buffer.name;
    let allocated = match &buffer.home {
        Home::EachCore => {
            let bytes = PageCount::new(buffer.pages).bytes(buffer.page_size);
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            return Ok((memory.alloc_l1(name, bytes)?.address.into(), None));
        }
        Home::Interleaved(BufferType::Dram) => {
            // The runtime has no empty buffers; a byte does as well.
            let bytes = usize::try_from(buffer.bytes.max(1)).unwrap_or(usize::MAX);
            memory.alloc_dram(name, &[bytes], DType::U8, buffer.page_size)?
        }
        Home::Interleaved(kind) => {
            let config = BufferConfig::interleaved(name, *kind, buffer.bytes.max(1), buffer.page_size);
            memory.alloc(&config)?
        }
        Home::Sharded(Shards { layout, spec }) => {
            memory.alloc(&BufferConfig::sharded(name, BufferType::L1, *layout, buffer.page_size, spec.clone()))?
        }
    };
    Ok((allocated.address.get(), (buffer.pages > 0).then_some(allocated)))
}

/// The program for the device, as it is at each launch.
pub fn programs(plan: &Plan, placed: &Placed) -> Outcome<Vec<Program>> {
    let arguments = plan.arguments(&placed.addresses)?;
    Ok(arguments.into_iter().enumerate().map(|(launch, arguments)| build(plan, launch, arguments)).collect())
}

/// The program of a launch with these arguments.
pub fn build(plan: &Plan, launch: usize, arguments: Arguments) -> Program {
    let cores = plan.launched(launch).flat_map(|r| r.cores.iter().copied()).collect();
    let mut program = Program::new(plan.launch_name(launch), Cores::List(cores)).names(plan.names());
    for planned in plan.launched(launch) {
        let mut role = Role::on(planned.cores.clone()).named(&planned.name);
        for kernel in &planned.kernels {
            if let Some(image) = &kernel.image {
                role = role.kernel(kernel.processor, Arc::clone(image));
            }
        }
        program = program.role(role);
    }
    for cb in &plan.cbs {
        let (index, page_size, pages) = (cb.index.into(), cb.page_size, PageCount::new(cb.pages));
        program = program.circular_buffer(CircularBuffer { index, page_size, pages });
    }
    program.semaphores = plan.semaphores.iter().map(|semaphore| semaphore.initial).collect();
    let sets = [ArgSet::Brisc, ArgSet::Ncrisc, ArgSet::Compute];
    for ((set, lists), common) in sets.into_iter().zip(arguments.per_core).zip(arguments.common) {
        program = program.unique_args(set, even(lists)).common_args(set, common);
    }
    program
}

/// The lists of all cores in one length: a role without a kernel, or with fewer arguments, gets
/// zeros it does not look at.
fn even(mut lists: Vec<Vec<u32>>) -> UniqueArgs {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    for list in &mut lists {
        list.resize(longest, 0);
    }
    match lists.split_first() {
        Some((first, rest)) if rest.iter().all(|list| list == first) => UniqueArgs::Uniform(first.clone()),
        _ => UniqueArgs::PerCore(lists),
    }
}

#[cfg(test)]
mod tests;
