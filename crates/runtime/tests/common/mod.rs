//! What the end-to-end tests share: our kernels, and programs made of them.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::sync::Arc;
use tilework_abi::tensix::Processor;
use tilework_runtime::{ArgSet, Buffer, Cores, Device, KernelImage, L1Buffer, Program, Role, UniqueArgs};

/// A kernel of `firmware/prebuilt`.
pub fn kernel(name: &str, processor: Processor) -> Arc<KernelImage> {
    let path = format!("{}/../../firmware/prebuilt/{name}.elf", env!("CARGO_MANIFEST_DIR"));
    let data = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    Arc::new(KernelImage::load(name, data, processor).unwrap())
}

/// The program `empty` on `cores`.
pub fn empty(cores: Cores) -> Program {
    Program::new("empty", cores).role(Role::all().kernel(Processor::Brisc, kernel("empty", Processor::Brisc)))
}

/// For each of `cores` cores its first page and number of pages.
pub fn shares(pages: u32, cores: u32) -> Vec<(u32, u32)> {
    let (each, rest) = (pages / cores, pages % cores);
    let mut first = 0;
    (0..cores)
        .map(|i| {
            let count = each + u32::from(i < rest);
            first += count;
            (first - count, count)
        })
        .collect()
}

/// The program `increment`: `output` = `input` + `value`, on all workers of `device`.
pub fn increment(device: &Device, input: &Buffer, output: &Buffer, slots: &L1Buffer, value: u32) -> Program {
    let n = device.workers().len() as u32;
    let args = shares(input.pages(), n)
        .into_iter()
        .map(|(first, count)| {
            vec![input.address, output.address, first, count, input.page_size, value, slots.address, 3]
        })
        .collect();
    Program::new("increment", Cores::All)
        .role(Role::all().kernel(Processor::Brisc, kernel("increment", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args))
}
