//! A pipeline that never waits for one of its steps: arrays go up, programs run and results come
//! back through the command queue, and call-backs tell when.
//!
//! The input lies in DRAM; the two results lie in the L1 of the workers, one with its pages dealt
//! out to all of them, one in shards on four. `cargo run --release --example queue`, with `slow`
//! for slow dispatch or `windows` for transfers by windows, which give the same results.
//! `examples/queue/program.toml` is the same pipeline as a program file.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_runtime::memory::{ShardOrientation, ShardSpec, ShardSpecBuffer, TensorMemoryLayout};
use tilework_runtime::{
    ArgSet, Blocking, Buffer, BufferConfig, BufferType, CoreCoord, CoreRange, CoreRangeSet, Cores, DType, Device,
    DeviceConfig, Dispatch, KernelImage, Program, Role, Transfers, UniqueArgs, prebuilt,
};
use tilework_sim::{Chip, ChipConfig};

/// Bytes of a page: 64 numbers.
const PAGE: u32 = 256;
/// Numbers of the array.
const NUMBERS: u32 = 64 * 64;
/// Arrays that go through.
const ROUNDS: u32 = 3;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut config = DeviceConfig::new(Board::P100);
    match std::env::args().nth(1).as_deref() {
        Some("slow") => config.dispatch = Dispatch::Slow,
        Some("windows") => config.transfers = Transfers::Windows,
        Some(other) => return Err(format!("found {other}, expected slow, windows or nothing").into()),
        None => {}
    }
    let mut device = Device::open(Chip::new(ChipConfig::new(config.board))?, config)?;
    let sum = pipeline(&mut device)?;
    println!("sum of all results: {sum}");
    device.close()?;
    Ok(())
}

/// Enqueues everything, then waits once; returns the sum of all results.
fn pipeline(device: &mut Device<Chip>) -> Outcome<u64> {
    let x = device.alloc_dram("x", &[NUMBERS as usize], DType::U32, PAGE)?;
    let y = device.alloc_dram("y", &[NUMBERS as usize], DType::U32, PAGE)?;
    let slots = device.alloc_l1("slots", 3 * PAGE)?.address.get();
    let bytes = u64::from(NUMBERS) * 4;
    let dealt = device.memory()?.alloc(&BufferConfig::interleaved("dealt", BufferType::L1, bytes, PAGE))?;
    let sharded = device.memory()?.alloc(&four_shards()?)?;

    let log = Rc::new(RefCell::new(Vec::new()));
    let mut reads = Vec::new();
    for round in 0..ROUNDS {
        let numbers: Vec<u8> = (0..NUMBERS).flat_map(|n| (n * (round + 1)).to_le_bytes()).collect();
        device.enqueue_write_buffer(&x, &numbers, Blocking::No)?;
        device.enqueue_program(&increment(&x, &y, slots, 1)?, Blocking::No)?;
        device.enqueue_program(&increment(&y, &x, slots, 10)?, Blocking::No)?;
        let result = device.enqueue_read_buffer(&x, Blocking::No)?;
        // Sharded and dealt out over L1 and back: the same calls.
        for buffer in [&dealt, &sharded] {
            device.enqueue_write_buffer(buffer, &numbers, Blocking::No)?;
            reads.push((round, buffer.name.clone(), device.enqueue_read_buffer(buffer, Blocking::No)?));
        }
        let done = Rc::clone(&log);
        result.event().on_completion(move |outcome| done.borrow_mut().push((round, outcome.clone())));
        reads.push((round, x.name.clone(), result));
    }
    let all = device.record_event()?;
    println!("everything is enqueued at cycle {}", device.chip().now());
    println!("the device is done at cycle {}", device.event_synchronize(&all)?);

    for (round, outcome) in log.borrow().iter() {
        println!("result {round} came at cycle {}", outcome.clone()?);
    }
    let mut sum = 0;
    for (round, name, read) in reads {
        let data = device.wait_for_read(read)?;
        let added = if name == "x" { 11 } else { 0 };
        let expected = (0..NUMBERS).map(|n| n * (round + 1) + added);
        let found = data.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        if !found.clone().eq(expected) {
            return Err(format!("{name} of round {round} is wrong").into());
        }
        sum += found.map(u64::from).sum::<u64>();
    }
    Ok(sum)
}

/// 64 pages in shards of 16, one on each of four neighbouring workers.
fn four_shards() -> Outcome<BufferConfig> {
    let cores = CoreRange::new(CoreCoord::new(1, 2), CoreCoord::new(4, 2));
    let grid = CoreRangeSet::new([cores])?;
    let shard = ShardSpec { grid, shape: [16, 1], orientation: ShardOrientation::RowMajor };
    let spec = ShardSpecBuffer { tensor_shard_spec: shard, page_shape: [1, 1], tensor2d_shape_in_pages: [64, 1] };
    Ok(BufferConfig::sharded("sharded", BufferType::L1, TensorMemoryLayout::HeightSharded, PAGE, spec))
}

/// The program that adds `value` to every number, on eight workers with eight pages each.
fn increment(from: &Buffer, to: &Buffer, slots: u32, value: u32) -> Outcome<Program> {
    let elf = prebuilt::kernel_elf("increment").ok_or("there is no kernel increment")?;
    let kernel = Arc::new(KernelImage::load("increment", elf, Processor::Brisc)?);
    let (from, to) = (from.address.word(), to.address.word());
    let args = (0..8).map(|worker| vec![from, to, 8 * worker, 8, PAGE, value, slots, 3]).collect();
    Ok(Program::new("increment", Cores::Count(8))
        .role(Role::all().kernel(Processor::Brisc, kernel))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args)))
}
