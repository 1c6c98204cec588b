//! Random calls to a device against arrays of the host: whatever is enqueued in whatever order, a
//! read brings what was written before it. One seed alone: `TILEWORK_SEED=7 cargo test -p
//! tilework-runtime --test device queue_api_random`.

use crate::common::{Device, empty};
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_rng::SplitMix64;
use tilework_runtime::memory::{BufferRegion, ShardOrientation, ShardSpec, ShardSpecBuffer, TensorMemoryLayout};
use tilework_runtime::{
    Blocking, Buffer, BufferConfig, BufferRead, BufferType, CoreCoord, CoreRange, CoreRangeSet, Cores, DeviceConfig,
    Dispatch, Event, QueueId, RuntimeError, Transfers,
};

/// Seeds of a usual run.
const SEEDS: u64 = 8;
/// Calls of one seed.
const CALLS: u32 = 60;

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.bits() % n
    }
    fn bytes(&mut self, n: usize) -> Vec<u8> {
        let (base, step) = (self.below(256) as u8, self.below(128) as u8 * 2 + 1);
        (0..n).map(|i| base.wrapping_add((i as u8).wrapping_mul(step)) ^ (i >> 8) as u8).collect()
    }
}

/// Buffers of every kind, some smaller than a page and some longer than a record.
fn buffers(device: &mut Device) -> Vec<Buffer> {
    let corner = |x, y| CoreCoord::new(x, y);
    let sharded = |name: &str, layout, tensor: [u32; 2], shard| {
        let grid = CoreRangeSet::new([CoreRange::new(corner(0, 0), corner(2, 1))]).unwrap();
        let tensor_shard_spec = ShardSpec { grid, shape: shard, orientation: ShardOrientation::RowMajor };
        let spec = ShardSpecBuffer { tensor_shard_spec, page_shape: [1, 1], tensor2d_shape_in_pages: tensor };
        BufferConfig::sharded(name, BufferType::L1, layout, 256, spec)
    };
    let configs = [
        BufferConfig::interleaved("small", BufferType::Dram, 30, 64),
        BufferConfig::interleaved("odd pages", BufferType::Dram, 100 * 50 + 3, 50),
        BufferConfig::interleaved("tiles", BufferType::Dram, 75 * 2048, 2048),
        BufferConfig::interleaved("long pages", BufferType::Dram, 3 * 100_032 - 1, 100_032),
        BufferConfig::interleaved("dealt", BufferType::L1, 300 * 512, 512),
        sharded("height", TensorMemoryLayout::HeightSharded, [40, 3], [7, 3]),
        sharded("block", TensorMemoryLayout::BlockSharded, [9, 11], [5, 4]),
    ];
    configs.iter().map(|config| device.memory().unwrap().alloc(config).unwrap()).collect()
}

/// A buffer, or some of its pages.
fn part(random: &mut Random, buffer: &Buffer) -> (Buffer, usize) {
    let pages = u64::from(buffer.pages().get());
    if random.below(3) > 0 || pages < 2 {
        return (buffer.clone(), 0);
    }
    let page = u64::from(buffer.page_size);
    let first = random.below(pages);
    let end = (first + 1 + random.below(pages - first)) * page;
    let size = end.min(buffer.bytes() as u64) - first * page;
    (buffer.view(BufferRegion { offset: first * page, size }).unwrap(), (first * page) as usize)
}

fn calls(seed: u64, config: DeviceConfig) {
    let mut random = Random(SplitMix64::new(seed));
    let mut device = crate::common::open(config);
    let buffers = buffers(&mut device);
    let mut shadow: Vec<Vec<u8>> = buffers.iter().map(|buffer| vec![0; buffer.bytes()]).collect();
    for (buffer, data) in buffers.iter().zip(&shadow) {
        device.enqueue_write_buffer(buffer, data, Blocking::No).unwrap();
    }
    let mut reads: Vec<(u32, String, BufferRead, Vec<u8>)> = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    for call in 0..CALLS {
        let blocking = if random.below(8) == 0 { Blocking::Yes } else { Blocking::No };
        let which = random.below(buffers.len() as u64) as usize;
        let (target, at) = part(&mut random, &buffers[which]);
        match random.below(9) {
            0..=2 => {
                let data = random.bytes(target.bytes());
                device.enqueue_write_buffer(&target, &data, blocking).unwrap();
                shadow[which][at..at + data.len()].copy_from_slice(&data);
            }
            3..=5 => {
                let expected = shadow[which][at..at + target.bytes()].to_vec();
                let read = device.enqueue_read_buffer(&target, blocking).unwrap();
                assert!(blocking == Blocking::No || read.is_done());
                reads.push((call, target.name.clone(), read, expected));
            }
            6 => device.enqueue_program(&empty(Cores::Count(1 + random.below(20) as usize)), blocking).unwrap(),
            7 => events.push(device.record_event().unwrap()),
            _ => match events.last() {
                Some(event) if random.below(2) == 0 => {
                    device.event_synchronize(event).unwrap();
                }
                _ => device.idle(random.below(20_000)).unwrap(),
            },
        }
    }
    device.finish().unwrap();
    assert!(events.iter().all(Event::is_done));
    for (call, name, read, expected) in reads {
        let found = read.into_data().expect("everything is done").unwrap();
        assert!(found == expected, "seed {seed}, call {call}: read of {name}");
    }
}

fn seeds() -> std::ops::Range<u64> {
    let only = std::env::var("TILEWORK_SEED").ok().map(|seed| seed.parse().unwrap());
    only.map_or(0..SEEDS, |seed: u64| seed..seed + 1)
}

/// Puts what comes next on `queue` behind everything that was enqueued on the other, in one of the
/// ways that there are.
fn order(random: &mut Random, device: &mut Device, queue: QueueId) {
    let other = QueueId::ALL[1 - queue.index()];
    let mut before = device.on_queue(other).unwrap();
    match random.below(4) {
        0 => before.finish().unwrap(),
        1 => {
            let event = before.record_event().unwrap();
            device.event_synchronize(&event).unwrap();
        }
        _ => {
            let event = before.record_event().unwrap();
            device.on_queue(queue).unwrap().wait_for_event(&event).unwrap();
        }
    }
}

/// As [`calls`], each on a queue of choice. A buffer that the other queue has touched last is
/// touched behind that; a program is ordered when it is refused.
fn calls_on_two_queues(seed: u64, config: DeviceConfig) {
    let mut random = Random(SplitMix64::new(seed ^ 0x5EC0_4D00));
    let mut device = crate::common::open(DeviceConfig { queues: 2, ..config });
    let buffers = buffers(&mut device);
    let mut shadow: Vec<Vec<u8>> = buffers.iter().map(|buffer| vec![0; buffer.bytes()]).collect();
    for (buffer, data) in buffers.iter().zip(&shadow) {
        device.enqueue_write_buffer(buffer, data, Blocking::No).unwrap();
    }
    let mut owners = vec![QueueId::FIRST; buffers.len()];
    let mut reads: Vec<(u32, String, BufferRead, Vec<u8>)> = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    let (mut programs, mut refused) = (0, 0);
    for call in 0..CALLS {
        let queue = QueueId::ALL[random.below(2) as usize];
        let blocking = if random.below(8) == 0 { Blocking::Yes } else { Blocking::No };
        let which = random.below(buffers.len() as u64) as usize;
        let (target, at) = part(&mut random, &buffers[which]);
        let kind = random.below(10);
        if kind < 6 && owners[which] != queue {
            order(&mut random, &mut device, queue);
            owners[which] = queue;
        }
        match kind {
            0..=2 => {
                let data = random.bytes(target.bytes());
                device.on_queue(queue).unwrap().enqueue_write_buffer(&target, &data, blocking).unwrap();
                shadow[which][at..at + data.len()].copy_from_slice(&data);
            }
            3..=5 => {
                let expected = shadow[which][at..at + target.bytes()].to_vec();
                let read = device.on_queue(queue).unwrap().enqueue_read_buffer(&target, blocking).unwrap();
                assert!(blocking == Blocking::No || read.is_done());
                reads.push((call, target.name.clone(), read, expected));
            }
            6 | 7 => {
                let program = empty(Cores::Count(1 + random.below(20) as usize));
                let launch = |device: &mut Device| device.on_queue(queue).unwrap().enqueue_program(&program, blocking);
                match launch(&mut device) {
                    Ok(()) => {}
                    Err(RuntimeError::Unordered { .. }) => {
                        refused += 1;
                        order(&mut random, &mut device, queue);
                        launch(&mut device).unwrap();
                    }
                    Err(error) => panic!("seed {seed}, call {call}: {error}"),
                }
                programs += 1;
            }
            8 => events.push(device.on_queue(queue).unwrap().record_event().unwrap()),
            _ => match events.last() {
                Some(event) if random.below(2) == 0 => {
                    device.event_synchronize(event).unwrap();
                }
                _ => device.idle(random.below(20_000)).unwrap(),
            },
        }
    }
    device.finish().unwrap();
    assert!(events.iter().all(Event::is_done));
    assert_eq!(device.statistics().programs, programs, "seed {seed}");
    assert!(refused == 0 || config.dispatch == Dispatch::Fast, "slow dispatch is always in order");
    for (call, name, read, expected) in reads {
        let found = read.into_data().expect("everything is done").unwrap();
        assert!(found == expected, "seed {seed}, call {call}: read of {name}");
    }
}

#[test]
fn a_read_brings_what_was_written_before_it_on_two_queues() {
    let config = DeviceConfig::new(Board::P100);
    for seed in seeds() {
        calls_on_two_queues(seed, config);
        if seed % SEEDS == 0 {
            calls_on_two_queues(seed, DeviceConfig { layout: DispatchLayout::Split, ..config });
            calls_on_two_queues(seed, DeviceConfig { transfers: Transfers::Windows, ..config });
            calls_on_two_queues(seed, DeviceConfig { dispatch: Dispatch::Slow, ..config });
        }
    }
}

#[test]
fn a_read_brings_what_was_written_before_it() {
    let config = DeviceConfig::new(Board::P100);
    for seed in seeds() {
        calls(seed, config);
        // The other ways once each: they have no order to get wrong.
        if seed % SEEDS == 0 {
            calls(seed, DeviceConfig { transfers: Transfers::Windows, ..config });
            calls(seed, DeviceConfig { dispatch: Dispatch::Slow, ..config });
        }
    }
}
