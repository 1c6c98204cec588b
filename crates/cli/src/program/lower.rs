//! From a plan to a device: buffers placed, the program built, outputs fetched.

use super::plan::{Plan, PlannedBuffer};
use super::schema::{Location, Use};
use super::storage;
use crate::array::Array;
use crate::chip::Device;
use crate::failure::{Failure, Outcome};
use std::sync::Arc;
use tilework_abi::addr::PageCount;
use tilework_abi::tensix::Processor;
use tilework_runtime::{
    ArgSet, Buffer, CircularBuffer, Cores, DType, ElfError, KernelImage, Program, Role, RuntimeError, UniqueArgs,
};

/// Where the buffers of a plan are, in its order.
pub struct Placed {
    /// The address of each.
    addresses: Vec<u64>,
    /// The buffers in DRAM that are not empty.
    pub dram: Vec<Option<Buffer>>,
}

/// Places all buffers.
pub fn place(device: &mut Device, plan: &Plan) -> Result<Placed, RuntimeError> {
    let mut placed = Placed { addresses: Vec::new(), dram: Vec::new() };
    for buffer in &plan.buffers {
        let (address, dram) = match buffer.location {
            Location::L1 => {
                let bytes = PageCount::new(buffer.pages).bytes(buffer.page_size);
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                (device.alloc_l1(&buffer.name, bytes)?.address.into(), None)
            }
            Location::Dram => {
                let dram = alloc_dram(device, buffer)?;
                (dram.address.get(), (buffer.pages > 0).then_some(dram))
            }
        };
        placed.addresses.push(address);
        placed.dram.push(dram);
    }
    Ok(placed)
}

fn alloc_dram(device: &mut Device, buffer: &PlannedBuffer) -> Result<Buffer, RuntimeError> {
    // The runtime has no empty buffers; a byte does as well.
    let bytes = usize::try_from(buffer.bytes.max(1)).unwrap_or(usize::MAX);
    device.alloc_dram(&buffer.name, &[bytes], DType::U8, buffer.page_size)
}

/// The program for the device.
pub fn program(plan: &Plan, placed: &Placed) -> Outcome<Program> {
    let arguments = plan.arguments(&placed.addresses)?;
    let cores = plan.roles.iter().flat_map(|r| r.cores.iter().copied()).collect();
    let mut program = Program::new(&plan.name, Cores::List(cores));
    for planned in &plan.roles {
        let mut role = Role::on(planned.cores.clone());
        for kernel in &planned.kernels {
            let image = KernelImage::load(&kernel.label, kernel.elf.clone(), kernel.processor)
                .map_err(|e| kernel_failure(&planned.name, kernel.processor, &e))?;
            role = role.kernel(kernel.processor, Arc::new(image));
        }
        program = program.role(role);
    }
    for cb in &plan.cbs {
        let (index, page_size, pages) = (cb.index.into(), cb.page_size, PageCount::new(cb.pages));
        program = program.circular_buffer(CircularBuffer { index, page_size, pages });
    }
    program.semaphores = plan.semaphores.clone();
    let sets = [ArgSet::Brisc, ArgSet::Ncrisc, ArgSet::Compute];
    for ((set, lists), common) in sets.into_iter().zip(arguments.per_core).zip(arguments.common) {
        program = program.unique_args(set, even(lists)).common_args(set, common);
    }
    Ok(program)
}

fn kernel_failure(role: &str, core: Processor, error: &ElfError) -> Failure {
    Failure::usage(format!("role \"{role}\", {}: {error}", core.name())).with("role", role)
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

/// The output arrays by name.
pub fn download(device: &mut Device, plan: &Plan, placed: &Placed) -> Result<Vec<(String, Array)>, RuntimeError> {
    let array = |(i, buffer): (usize, &PlannedBuffer)| {
        let data = match &placed.dram[i] {
            Some(dram) => device.download(dram)?,
            None => Vec::new(),
        };
        Ok((buffer.name.clone(), storage::array(buffer, data)))
    };
    plan.buffers_for(Use::Output).map(array).collect()
}
