//! The project's speed on this machine: `cargo xtask bench`.
//!
//! Every figure is the median of several runs in one process, with the smallest and largest beside
//! it; cycles and instructions are exact and the same on every machine.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_runtime::prebuilt;
use tilework_runtime::{
    ArgSet, Blocking, BufferConfig, BufferType, ChipCounts, Cores, Device, DeviceConfig, Dispatch, KernelImage,
    Program, Role, Statistics, UniqueArgs,
};
use tilework_sim::{Chip, ChipConfig};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Powers a chip on and opens the device on it.
fn open(config: DeviceConfig) -> Outcome<Device<Chip>> {
    Ok(Device::open(Chip::new(ChipConfig::new(config.board))?, config)?)
}

/// The simulator's counts.
fn counts(statistics: Statistics) -> Outcome<ChipCounts> {
    Ok(statistics.chip.ok_or("the simulator has no counts")?)
}

fn main() -> Outcome<()> {
    println!("| what | median | smallest | largest | simulated |");
    println!("|---|---|---|---|---|");
    boards()?;
    empty_programs()?;
    traced_programs()?;
    busy_cores()?;
    idle_chip()?;
    transfers()
}

/// Runs `f` `n` times after one warm-up; prints a row with its durations and what the last run
/// says.
fn row(what: &str, n: usize, mut f: impl FnMut() -> Outcome<(Duration, String)>) -> Outcome<Duration> {
    f()?;
    let mut times = Vec::with_capacity(n);
    let mut note = String::new();
    for _ in 0..n {
        let (time, said) = f()?;
        times.push(time);
        note = said;
    }
    times.sort();
    let (median, first, last) = (times[n / 2], times[0], times[n - 1]);
    println!("| {what} | {median:.2?} | {first:.2?} | {last:.2?} | {note} |");
    Ok(median)
}

fn boards() -> Outcome<()> {
    for board in [Board::P100, Board::P150] {
        let tiles = board.tensix_count();
        row(&format!("open a {} ({tiles} tiles booted, command queue running)", board.name()), 9, || {
            let start = Instant::now();
            let device = open(DeviceConfig::new(board))?;
            let time = start.elapsed();
            let statistics = counts(device.statistics())?;
            Ok((time, format!("{} cycles, {} instructions", statistics.cycles, statistics.instructions)))
        })?;
    }
    Ok(())
}

fn kernel(name: &str) -> Outcome<Arc<KernelImage>> {
    let elf = prebuilt::kernel_elf(name).unwrap_or_default();
    Ok(Arc::new(KernelImage::load(name, elf, Processor::Brisc)?))
}

fn empty(cores: Cores) -> Outcome<Program> {
    let role = Role::all().kernel(Processor::Brisc, kernel("empty")?);
    Ok(Program::new("empty", cores).role(role))
}

fn empty_programs() -> Outcome<()> {
    const PROGRAMS: usize = 50;
    for (dispatch, cores) in [(Dispatch::Fast, 1), (Dispatch::Fast, 118), (Dispatch::Slow, 1), (Dispatch::Slow, 118)] {
        let mut device = open(DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) })?;
        let programs = vec![empty(Cores::Count(cores))?; PROGRAMS];
        let what = format!("one empty program on {cores} workers, {} dispatch (p100)", dispatch.name());
        row(&what, 9, || {
            let start = Instant::now();
            let report = device.run(&programs)?;
            let time = start.elapsed() / PROGRAMS as u32;
            let per = |n: u64| n / PROGRAMS as u64;
            let statistics = counts(report.statistics)?;
            Ok((time, format!("{} cycles, {} instructions", per(statistics.cycles), per(statistics.instructions))))
        })?;
    }
    Ok(())
}

/// An empty program in a trace, by the difference of two traces: what a replay costs by itself is
/// left out.
fn traced_programs() -> Outcome<()> {
    const PROGRAMS: [usize; 2] = [100, 300];
    for cores in [1, 118] {
        let mut device = open(DeviceConfig::new(Board::P100))?;
        let program = empty(Cores::Count(cores))?;
        device.run(std::slice::from_ref(&program))?;
        let mut traces = Vec::new();
        for programs in PROGRAMS {
            let capture = device.begin_trace_capture()?;
            for _ in 0..programs {
                device.enqueue_program(&program, Blocking::No)?;
            }
            traces.push(device.end_trace_capture(capture)?);
        }
        row(&format!("one empty program of a trace on {cores} workers (p100)"), 9, || {
            let start = Instant::now();
            let mut cycles = Vec::new();
            for trace in &traces {
                let before = counts(device.statistics())?.cycles;
                device.replay_trace(trace, Blocking::Yes)?;
                cycles.push(counts(device.statistics())?.cycles - before);
            }
            let time = start.elapsed() / (PROGRAMS[0] + PROGRAMS[1]) as u32;
            Ok((time, format!("{} cycles", (cycles[1] - cycles[0]) / (PROGRAMS[1] - PROGRAMS[0]) as u64)))
        })?;
    }
    Ok(())
}

fn busy_cores() -> Outcome<()> {
    const STEPS: u32 = 6_000_000;
    for (cores, board) in [(1, Board::P150), (8, Board::P150), (64, Board::P150), (138, Board::P150)] {
        let mut device = open(DeviceConfig::new(board))?;
        let steps = STEPS / cores as u32;
        let kernel = kernel("busy")?;
        let program = Program::new("busy", Cores::Count(cores))
            .role(Role::all().kernel(Processor::Brisc, kernel))
            .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![steps, 0x40000]));
        let mut rates = Vec::new();
        row(&format!("{steps} steps of kernel `busy` on {cores} workers"), 5, || {
            let start = Instant::now();
            let report = device.run(std::slice::from_ref(&program))?;
            let time = start.elapsed();
            let instructions = counts(report.statistics)?.instructions;
            rates.push(instructions as f64 / time.as_secs_f64() / 1e6);
            rates.sort_by(f64::total_cmp);
            let rate = rates[rates.len() / 2];
            Ok((time, format!("{instructions} instructions, {rate:.0} MIPS")))
        })?;
    }
    Ok(())
}

fn idle_chip() -> Outcome<()> {
    const CYCLES: u64 = 1_000_000_000;
    row("a billion cycles of a booted, idle p150, at once", 9, || {
        let mut device = open(DeviceConfig::new(Board::P150))?;
        let start = Instant::now();
        device.idle(CYCLES)?;
        Ok((start.elapsed(), format!("{CYCLES} cycles")))
    })?;
    const CALLS: u64 = 1_000_000;
    row("a million times one cycle of a booted, idle p150", 5, || {
        let mut device = open(DeviceConfig::new(Board::P150))?;
        let start = Instant::now();
        for _ in 0..CALLS {
            device.idle(1)?;
        }
        Ok((start.elapsed(), format!("{CALLS} cycles")))
    })?;
    row("a p150 that is powered on and nothing else", 9, || {
        let start = Instant::now();
        black_box(Chip::new(ChipConfig::new(Board::P150))?);
        Ok((start.elapsed(), String::from("0 cycles")))
    })?;
    Ok(())
}

/// Arrays to DRAM of a p150 and back, in one call each: the cycles of the simulated host until it
/// knows that all has come, and what that is in GB/s at 1.35 GHz.
fn transfers() -> Outcome<()> {
    const MIB: usize = 1 << 20;
    // DRAM has pages of whole 64 bytes; smaller ones take as much room.
    let pages = (5..=20).map(|log| (1 << log, 2 * MIB));
    for (page, bytes) in [(16 << 10, 16 * MIB)].into_iter().chain(pages) {
        let mut device = open(DeviceConfig::new(Board::P150))?;
        let buffer = device.memory()?.alloc(&BufferConfig::interleaved("x", BufferType::Dram, bytes as u64, page))?;
        let data: Vec<u8> = (0..bytes).map(|i| (i ^ i >> 8) as u8).collect();
        let what = format!("{} MiB in pages of {page} B", bytes / MIB);
        let timed = |cycles: u64| format!("{cycles} cycles, {:.1} GB/s", bytes as f64 / cycles as f64 * 1.35);
        row(&format!("{what} to the device"), 3, || {
            let (start, cycles) = (Instant::now(), device.chip().now());
            device.upload(&buffer, &data)?;
            Ok((start.elapsed(), timed(device.chip().now() - cycles)))
        })?;
        row(&format!("{what} from the device"), 3, || {
            let (start, cycles) = (Instant::now(), device.chip().now());
            let found = device.download(&buffer)?;
            let time = start.elapsed();
            if found != data {
                return Err("what came back is not what was sent".into());
            }
            Ok((time, timed(device.chip().now() - cycles)))
        })?;
    }
    Ok(())
}
