//! `tilework run --gdb`: a kernel program under gdb. docs/debugger.md describes it.

use super::plan::Plan;
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use std::sync::Arc;
use tilework_abi::addr::L1Addr;
use tilework_abi::l1::MemoryMap;
use tilework_debugger::{Code, Debugger, Image, ImageKind};
use tilework_runtime::prebuilt::CqKernels;
use tilework_runtime::{FirmwareSet, KernelImage};

/// Runs a program, once more each time that the user goes back: a run is a pure function of program
/// and arrays.
pub fn run(port: u16, once: impl Fn(&Debugger) -> Outcome<Answer>) -> Outcome<Answer> {
    let refused = |error: std::io::Error| Failure::option("--gdb", format_args!(" {port}: {error}"));
    let ready = |port| eprintln!("waiting for gdb at the first kernel: target remote localhost:{port}");
    let debugger = Debugger::new(port, Box::new(ready), interrupt::flag()).map_err(refused)?;
    loop {
        let outcome = once(&debugger);
        if debugger.goes_back() {
            continue;
        }
        let outcome = match outcome {
            Err(_) if debugger.killed() => Err(Failure::failed("debugger", "gdb has ended the run")),
            outcome => outcome,
        };
        debugger.end(outcome.as_ref().err().map_or(0, Failure::exit_code));
        return outcome;
    }
}

/// All code that may run.
pub fn code(plan: &Plan, firmware: &FirmwareSet, queue: &CqKernels) -> Code {
    let map = firmware.map();
    let mut images: Vec<Image> = firmware
        .images()
        .iter()
        .map(|image| Image {
            name: image.name().to_owned(),
            kind: ImageKind::Firmware,
            processor: image.processor(),
            elf: Arc::clone(image.elf()),
            link_base: image.entry(),
            size: image.text().end - image.entry(),
            local_distance: 0,
            placed_at: Box::new(|_| None),
        })
        .collect();
    let CqKernels { prefetch, prefetch_h, prefetch_d, dispatch, dispatch_s } = queue;
    let queue = [prefetch, prefetch_h, prefetch_d, dispatch, dispatch_s];
    images.extend(queue.into_iter().map(|image| kernel(image, ImageKind::Queue, map)));
    let kernels = plan.roles.iter().flat_map(|role| &role.kernels).filter_map(|kernel| kernel.image.as_ref());
    images.extend(kernels.map(|image| kernel(image, ImageKind::Kernel, map)));
    Code::new(images, *map)
}

fn kernel(image: &Arc<KernelImage>, kind: ImageKind, map: &MemoryMap) -> Image {
    let (own, map) = (Arc::clone(image), *map);
    Image {
        name: image.name().to_owned(),
        kind,
        processor: image.processor(),
        elf: Arc::clone(image.elf()),
        link_base: image.link_base(),
        size: image.size(),
        // A kernel without room for its data is refused before it runs.
        local_distance: image.local_distance(&map).unwrap_or(0),
        placed_at: Box::new(move |base| own.relocate(L1Addr::new(base), &map).ok()),
    }
}
