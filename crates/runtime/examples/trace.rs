//! Traces: two programs that are captured once and replayed, and what a program in a trace costs:
//! `cargo run --release -p tilework-runtime --example trace`.

use std::cell::Cell;
use std::error::Error;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::msg::{RUN_DONE, RUN_GO};
use tilework_abi::tensix::Processor;
use tilework_abi::tlb::Bar;
use tilework_driver::{HostLink, Inspect, LinkError};
use tilework_runtime::{
    ArgSet, Blocking, Buffer, Cores, DType, Device, DeviceConfig, KernelImage, Program, Role, Trace, UniqueArgs,
    prebuilt,
};
use tilework_sim::{Chip, ChipConfig};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    add_again_and_again()?;
    println!(
        "| workers | cycles for each program | go to all workers | workers run | report and next go | replay call |"
    );
    println!("|---|---|---|---|---|---|");
    [1, 118].into_iter().try_for_each(row)
}

fn kernel(name: &str) -> Outcome<Arc<KernelImage>> {
    let elf = prebuilt::kernel_elf(name).ok_or("no such kernel")?;
    Ok(Arc::new(KernelImage::load(name, elf, Processor::Brisc)?))
}

/// Captures the programs, which have run before.
fn capture<C: HostLink>(device: &mut Device<C>, programs: &[Program]) -> Outcome<Trace> {
    let capture = device.begin_trace_capture()?;
    for program in programs {
        device.enqueue_program(program, Blocking::No)?;
    }
    Ok(device.end_trace_capture(capture)?)
}

/// Numbers that each replay adds 3 to.
fn add_again_and_again() -> Outcome<()> {
    const REPLAYS: u32 = 10;
    let mut device = Device::open(Chip::new(ChipConfig::new(Board::P100))?, DeviceConfig::new(Board::P100))?;
    let [x, y] = [device.alloc_dram("x", &[512], DType::U32, 256)?, device.alloc_dram("y", &[512], DType::U32, 256)?];
    let slots = device.alloc_l1("slots", 3 * 256)?.address.get();
    let add = |from: &Buffer, to: &Buffer, value| {
        let args = (0..8).map(|page| vec![from.address.word(), to.address.word(), page, 1, 256, value, slots, 3]);
        let role = Role::all().kernel(Processor::Brisc, kernel("increment")?);
        let program = Program::new("increment", Cores::Count(8)).role(role);
        Ok::<_, Box<dyn Error>>(program.unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args.collect())))
    };
    let programs = [add(&x, &y, 1)?, add(&y, &x, 2)?];
    // A first run compiles the programs and brings their kernels to the workers.
    device.run(&programs)?;
    device.upload(&x, &[0; 2048])?;
    let trace = capture(&mut device, &programs)?;
    for _ in 0..REPLAYS {
        device.replay_trace(&trace, Blocking::No)?;
    }
    let found = device.download(&x)?;
    if found.chunks_exact(4).any(|word| word != (3 * REPLAYS).to_le_bytes()) {
        return Err("a replay is missing".into());
    }
    println!(
        "{} of {} programs in {} bytes, replayed {REPLAYS} times\n",
        trace.name(),
        trace.programs(),
        trace.bytes()
    );
    device.release_trace(trace)?;
    Ok(())
}

fn row(workers: usize) -> Outcome<()> {
    let (link, cut) = Host::new(Chip::new(ChipConfig::new(Board::P100))?);
    let mut device = Device::open(link, DeviceConfig::new(Board::P100))?;
    let program =
        Program::new("empty", Cores::Count(workers)).role(Role::all().kernel(Processor::Brisc, kernel("empty")?));
    device.run(std::slice::from_ref(&program))?;
    let mut cycles = [0; 2];
    for (cycles, programs) in cycles.iter_mut().zip([100, 300]) {
        let trace = capture(&mut device, &vec![program.clone(); programs])?;
        let start = device.chip().cycles();
        device.replay_trace(&trace, Blocking::Yes)?;
        *cycles = device.chip().cycles() - start;
    }
    let trace = capture(&mut device, &vec![program; 100])?;
    let [go, run, next] = stages(&mut device, &trace, workers)?;
    let each = (cycles[1] - cycles[0]) / 200;
    let host = host_time(&mut device, &trace, &cut)?;
    println!("| {workers} | {each} | {go} | {run} | {next} | {host:.2} us |");
    Ok(())
}

/// Cycles from the first worker that has its go message to the last, from there until all are done,
/// and from there until the first has the next; of a program in the middle of a trace.
fn stages<C: HostLink>(device: &mut Device<C>, trace: &Trace, workers: usize) -> Outcome<[Cycle; 3]> {
    const PROGRAM: usize = 60;
    let tiles = device.workers()[..workers].to_vec();
    let word = device.memory_map().go.get() as usize;
    let signal: Range<usize> = word + 3..word + 4;
    device.replay_trace(trace, Blocking::No)?;
    // When the n-th of all workers of all programs got its go message, and was done.
    let (mut gos, mut dones) = (Vec::new(), Vec::new());
    let mut before = vec![RUN_DONE; workers];
    while gos.len() <= (PROGRAM + 1) * workers {
        device.idle(1)?;
        let chip: &dyn Inspect = device.chip().inspect().ok_or("the simulator can be looked into")?;
        for (before, tile) in before.iter_mut().zip(&tiles) {
            let now = chip.l1(*tile).and_then(|l1| l1.get(signal.clone())).map_or(*before, |bytes| bytes[0]);
            match (std::mem::replace(before, now), now) {
                (RUN_DONE, RUN_GO) => gos.push(chip.cycles()),
                (RUN_GO, RUN_DONE) => dones.push(chip.cycles()),
                _ => {}
            }
        }
    }
    device.finish()?;
    let (first, next) = (PROGRAM * workers, (PROGRAM + 1) * workers);
    let [begin, all, done, again] = [gos[first], gos[next - 1], dones[next - 1], gos[next]];
    Ok([all - begin, done - all, again - done])
}

/// Microseconds of one call of `replay_trace` that does not wait, the simulator left out.
fn host_time<C: HostLink>(device: &mut Device<Host<C>>, trace: &Trace, cut: &Cell<bool>) -> Outcome<f64> {
    const CALLS: u32 = 500;
    device.replay_trace(trace, Blocking::Yes)?;
    cut.set(true);
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        for _ in 0..CALLS {
            device.replay_trace(trace, Blocking::No)?;
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// A link to a chip that can be cut: then stores go nowhere, entries of the prefetch queue are free
/// and no completion comes, so that what remains of a call is the runtime's own work.
struct Host<C> {
    chip: C,
    cut: Rc<Cell<bool>>,
    /// The word of pinned memory that was read last.
    word: [u8; 4],
}

impl<C> Host<C> {
    fn new(chip: C) -> (Self, Rc<Cell<bool>>) {
        let cut = Rc::new(Cell::new(false));
        (Self { chip, cut: Rc::clone(&cut), word: [0; 4] }, cut)
    }
}

impl<C: HostLink> HostLink for Host<C> {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        if self.cut.get() { Ok(()) } else { self.chip.bar_write(bar, offset, data) }
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        if self.cut.get() {
            out.fill(0);
            return Ok(());
        }
        self.chip.bar_read(bar, offset, out)
    }
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        self.chip.pin(len, wish)
    }
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        if !self.cut.get() {
            self.chip.pinned_read(address, out)?;
            if out.len() == 4 {
                self.word.copy_from_slice(out);
            }
        } else if out.len() == 4 {
            out.copy_from_slice(&self.word);
        }
        Ok(())
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        if self.cut.get() { Ok(()) } else { self.chip.pinned_write(address, data) }
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        self.chip.wait_word(address, seen, budget)
    }
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        if self.cut.get() { Ok(()) } else { self.chip.idle(cycles) }
    }
    fn cycles(&self) -> Cycle {
        self.chip.cycles()
    }
    fn inspect(&self) -> Option<&dyn Inspect> {
        if self.cut.get() { None } else { self.chip.inspect() }
    }
}
