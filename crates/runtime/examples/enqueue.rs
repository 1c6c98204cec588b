//! Host time to encode launches of cached programs, without a chip: `cargo run --release -p
//! tilework-runtime --example enqueue`.
//!
//! Two figures for each program: one that was prepared and is launched again with other arguments,
//! and one that is looked up in the cache by its shape with all its arguments in it.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::l1::WORKER;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::cache::{Launch, Launcher};
use tilework_runtime::{Allocator, ArgSet, Cores, KernelImage, Program, Role, UniqueArgs, prebuilt};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Launches of one measurement: few, so that most measurements are not interrupted.
const LAUNCHES: u32 = 50;
/// Measurements of a row, of which the median is printed.
const ROUNDS: usize = 201;

fn main() -> Outcome<()> {
    println!("| workers | arguments | launch | set all arguments and launch | look up and launch | record |");
    println!("|---|---|---|---|---|---|");
    for (workers, arguments) in [(118, 0), (118, 16), (118, 64), (118, 256), (1, 16), (16, 16), (64, 16)] {
        row(workers, arguments)?;
    }
    Ok(())
}

fn row(workers: usize, arguments: usize) -> Outcome<()> {
    let all: Vec<NocXy> = Board::P100.workers().collect();
    let l1 = Allocator::new("L1", WORKER.data..WORKER.data_end, 64);
    let elf = prebuilt::kernel_elf("empty").ok_or("no such kernel")?;
    let kernel = Arc::new(KernelImage::load("empty", elf, Processor::Brisc)?);
    let list = |core: u32| (0..arguments as u32).map(|i| core << 16 | i).collect::<Vec<u32>>();
    let lists: Vec<Vec<u32>> = (0..workers as u32).map(list).collect();
    let program = Program::new("empty", Cores::Count(workers))
        .role(Role::all().kernel(Processor::Brisc, kernel))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(lists.clone()));
    let mut launcher = Launcher::new(Board::P100, DispatchLayout::Dispatcher, &WORKER, &all)?;
    let mut prepared = launcher.prepare(&program, &l1)?;
    let mut bytes = 0;
    let launch = median(|| {
        let launched = launcher.launch(&prepared, &Launch::default())?;
        bytes = launched.records.iter().map(|(record, _)| record.size()).sum();
        take(&mut launcher, launched)
    })?;
    let patch = median(|| {
        for (core, list) in lists.iter().enumerate() {
            prepared.set_args(ArgSet::Brisc, core, list)?;
        }
        let launched = launcher.launch(&prepared, &Launch::default())?;
        take(&mut launcher, launched)
    })?;
    let look_up = median(|| {
        let prepared = launcher.prepare(&program, &l1)?;
        let launched = launcher.launch(&prepared, &Launch::default())?;
        take(&mut launcher, launched)
    })?;
    println!("| {workers} | {arguments} | {launch:.2?} | {patch:.2?} | {look_up:.2?} | {bytes} bytes |");
    Ok(())
}

/// What a queue does with the records, but for the copy into the issue region.
fn take(launcher: &mut Launcher, launched: tilework_runtime::cache::Launched) -> Outcome<()> {
    black_box(&launched.layout);
    for (record, sent) in launched.records {
        black_box((record.bytes(), sent));
        launcher.reuse(record);
    }
    Ok(())
}

/// The time of one call.
fn median(mut f: impl FnMut() -> Outcome<()>) -> Outcome<Duration> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..=ROUNDS {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            f()?;
        }
        times.push(start.elapsed() / LAUNCHES);
    }
    // The first round warms up.
    times.remove(0);
    times.sort();
    Ok(times[ROUNDS / 2])
}
