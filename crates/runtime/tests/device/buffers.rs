//! Buffers of every kind on the simulated chip: what goes up lies where the buffer says, comes down
//! again, and leaves everything else alone.

use crate::common::{kernel, open, shares};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_driver::HostLink;
use tilework_runtime::memory::{
    Bank, BufferRegion, GlobalSemaphoreConfig, Place, ShardOrientation, ShardSpec, ShardSpecBuffer, TensorMemoryLayout,
};
use tilework_runtime::{
    ArgSet, Buffer, BufferConfig, BufferType, CircularBuffer, CoreCoord, CoreRange, CoreRangeSet, Cores, DType,
    DeviceConfig, Dispatch, Program, Role, Transfers, UniqueArgs,
};

type Device = crate::common::Device;

fn grid(x0: u32, y0: u32, x1: u32, y1: u32) -> CoreRangeSet {
    CoreRangeSet::new([CoreRange::new(CoreCoord::new(x0, y0), CoreCoord::new(x1, y1))]).unwrap()
}

fn sharded(
    kind: BufferType,
    layout: TensorMemoryLayout,
    page_size: u32,
    tensor: [u32; 2],
    shard: [u32; 2],
    grid: CoreRangeSet,
) -> BufferConfig {
    let tensor_shard_spec = ShardSpec { grid, shape: shard, orientation: ShardOrientation::RowMajor };
    let spec = ShardSpecBuffer { tensor_shard_spec, page_shape: [1, 1], tensor2d_shape_in_pages: tensor };
    BufferConfig::sharded("x", kind, layout, page_size, spec)
}

fn numbered(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|i| ((i + seed) * 7 + i / 251) as u8).collect()
}

/// The bytes at a place, read past the buffer's own transfer.
fn at(device: &mut Device, place: Place, bytes: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; bytes];
    match place.bank {
        Bank::Core(tile) => {
            let address = tilework_abi::addr::L1Addr::new(place.address.word());
            device.read_l1(tile, address, &mut out).unwrap();
            Some(out)
        }
        // Without windows of its own a test cannot look there.
        Bank::Dram(_) | Bank::Host => None,
    }
}

/// Uploads, looks, downloads; then writes a part, after which the other pages are what they were.
fn round_trip(device: &mut Device, buffer: &Buffer) {
    let data = numbered(buffer.bytes(), 1);
    device.upload(buffer, &data).unwrap();
    for page in (0..buffer.pages().get()).step_by(7) {
        let expected = &data[buffer.page_bytes(page)];
        if let Some(found) = at(device, buffer.place(page), expected.len()) {
            assert_eq!(found, expected, "page {page} of {}", buffer.name);
        }
    }
    assert_eq!(device.download(buffer).unwrap(), data, "{}", buffer.name);
    let page = u64::from(buffer.page_size);
    let region = BufferRegion { offset: 2 * page, size: 3 * page };
    let part = buffer.view(region).unwrap();
    let other = numbered(part.bytes(), 99);
    device.upload(&part, &other).unwrap();
    assert_eq!(device.download(&part).unwrap(), other);
    let mut expected = data;
    expected[2 * page as usize..5 * page as usize].copy_from_slice(&other);
    assert_eq!(device.download(buffer).unwrap(), expected, "{} with a part written", buffer.name);
}

#[test]
fn every_kind_of_buffer_goes_up_and_down_and_the_queue_lives_on() {
    use TensorMemoryLayout::{BlockSharded, HeightSharded, WidthSharded};
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = open(DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) });
        let mut configs = vec![
            BufferConfig::interleaved("dram", BufferType::Dram, 100 * 48 - 5, 48),
            // Three pages in the L1 of every worker.
            BufferConfig::interleaved("l1", BufferType::L1, 354 * 4096, 4096),
            BufferConfig::interleaved("l1 at an address", BufferType::L1, 9 * 100, 100).at(0x10_0000),
            sharded(BufferType::L1, HeightSharded, 256, [10, 3], [4, 3], grid(0, 0, 2, 0)),
            sharded(BufferType::L1, WidthSharded, 40, [4, 9], [4, 2], grid(0, 0, 0, 4)).on_its_cores(),
            sharded(BufferType::L1, BlockSharded, 64, [5, 7], [2, 3], grid(6, 4, 8, 6)),
            sharded(BufferType::Dram, WidthSharded, 64, [3, 7], [3, 1], grid(0, 0, 6, 0)),
        ];
        if dispatch == Dispatch::Fast {
            configs.push(BufferConfig::interleaved("host", BufferType::SystemMemory, 10 * 100, 100));
        }
        let buffers: Vec<Buffer> =
            configs.iter().map(|config| device.memory().unwrap().alloc(config).unwrap()).collect();
        for buffer in &buffers {
            round_trip(&mut device, buffer);
        }
        // Nothing of it lies on the queue or on the firmware: programs still run.
        let program = Program::new("empty", Cores::All)
            .role(Role::all().kernel(Processor::Brisc, kernel("empty", Processor::Brisc)));
        device.run(&[program.clone(), program]).unwrap();
        for buffer in &buffers {
            device.memory().unwrap().free(buffer).unwrap();
        }
        assert!(device.memory().unwrap().leaks().is_empty());
    }
}

/// The L1 of the dispatch cores is the same before and after a buffer over all L1 banks was filled
/// by windows; when it is filled through the queue, their rings change and the queue lives on.
#[test]
fn an_l1_interleaved_buffer_leaves_the_dispatch_cores_alone() {
    fill_l1(Transfers::Windows);
    fill_l1(Transfers::Queue);
}

fn fill_l1(transfers: Transfers) {
    let board = Board::P100;
    let mut device = open(DeviceConfig { transfers, ..DeviceConfig::new(board) });
    let queues = |device: &Device| {
        let chip = device.chip().inspect().unwrap();
        [board.prefetch_core(), board.dispatch_core()].map(|core| chip.l1(core).unwrap()[0x37000..].to_vec())
    };
    let before = queues(&device);
    let free = device.l1().statistics(BufferType::L1).largest_free_block;
    let page = 4096;
    let pages = free / page * 118;
    let config = BufferConfig::interleaved("all", BufferType::L1, pages * page, page as u32);
    let all = device.memory().unwrap().alloc(&config).unwrap();
    device.upload(&all, &vec![0xA5; all.bytes()]).unwrap();
    match transfers {
        Transfers::Windows => assert!(before == queues(&device), "a queue was overwritten"),
        Transfers::Queue => assert!(device.download(&all).unwrap().iter().all(|&byte| byte == 0xA5)),
    }
    // It does fill every worker.
    for worker in device.workers().to_vec() {
        let place = Place { bank: Bank::Core(worker), address: all.address };
        assert_eq!(at(&mut device, place, 16), Some(vec![0xA5; 16]));
    }
    let more = BufferConfig::interleaved("more", BufferType::L1, 2 * 118 * page, page as u32);
    let message = device.memory().unwrap().alloc(&more).unwrap_err().to_string();
    assert!(message.contains("\n  0 of its 236 pages of 4096 bytes in 118 banks would fit\n"), "{message}");
    assert!(message.ends_with(&format!(" all ({} bytes)", all.bytes_per_bank())), "{message}");
}

/// Pages pass through a circular buffer over a buffer, so that the last ones are there afterwards.
#[test]
fn a_circular_buffer_lies_over_a_sharded_buffer() {
    let mut device = open(DeviceConfig::new(Board::P100));
    let (pages, page, cores) = (40, 256, 4);
    let x = device.alloc_dram("x", &[pages * page], DType::U8, page as u32).unwrap();
    let y = device.alloc_dram("y", &[pages * page], DType::U8, page as u32).unwrap();
    let data = numbered(pages * page, 3);
    device.upload(&x, &data).unwrap();
    let config =
        sharded(BufferType::L1, TensorMemoryLayout::HeightSharded, page as u32, [16, 1], [4, 1], grid(0, 0, 0, 3));
    let shards = device.memory().unwrap().alloc(&config).unwrap();
    let shares = shares(pages as u32, cores);
    let args =
        |b: u32| UniqueArgs::PerCore(shares.iter().map(|&(first, n)| vec![b, first, n, page as u32, 3]).collect());
    let program = Program::new("over", Cores::Count(cores as usize))
        .role(
            Role::all()
                .kernel(Processor::Ncrisc, kernel("reader", Processor::Ncrisc))
                .kernel(Processor::Brisc, kernel("writer", Processor::Brisc)),
        )
        .circular_buffer_over(
            CircularBuffer { index: 3, page_size: page as u32, pages: PageCount::new(4) },
            shards.local().unwrap(),
        )
        .unique_args(ArgSet::Ncrisc, args(x.address.word()))
        .unique_args(ArgSet::Brisc, args(y.address.word()));
    device.run(&[program]).unwrap();
    assert_eq!(device.download(&y).unwrap(), data);
    // Each core had ten pages in four places: 8, 9, 6, 7 of them are left.
    let left: Vec<u8> = (0..cores as usize)
        .flat_map(|core| [8, 9, 6, 7].map(|i| 10 * core + i))
        .flat_map(|i| data[i * page..][..page].to_vec())
        .collect();
    assert_eq!(device.download(&shards).unwrap(), left);
}

#[test]
fn a_global_semaphore_has_its_value_on_its_cores_only() {
    let mut device = open(DeviceConfig::new(Board::P100));
    let cores = grid(2, 3, 4, 4);
    let semaphore =
        device.create_global_semaphore(&GlobalSemaphoreConfig::new("ready", cores.clone(), 0x1234)).unwrap();
    let words = |device: &mut Device| -> Vec<u32> {
        let workers = device.workers().to_vec();
        let word = |tile| {
            let mut bytes = [0; 4];
            device.read_l1(tile, semaphore.address, &mut bytes).unwrap();
            u32::from_le_bytes(bytes)
        };
        workers.into_iter().map(word).collect()
    };
    let expected = |device: &Device, value: u32| -> Vec<u32> {
        device.workers().iter().map(|tile| if semaphore.cores.contains(tile) { value } else { 0 }).collect()
    };
    assert_eq!(semaphore.cores.len(), 6);
    assert_eq!(words(&mut device), expected(&device, 0x1234));
    device.reset_global_semaphore(&semaphore, 7).unwrap();
    assert_eq!(words(&mut device), expected(&device, 7));
    // It is a named allocation like any other.
    let leaks = device.memory().unwrap().leaks().to_string();
    assert!(
        leaks.starts_with("1 allocation was not freed\n  L1 0x") && leaks.ends_with(" ready (16 bytes)"),
        "{leaks}"
    );
    device.free_global_semaphore(&semaphore).unwrap();
    let again = device.free_global_semaphore(&semaphore).unwrap_err().to_string();
    assert_eq!(again, "ready owns no memory of this device: it was freed before, or is a part of another buffer");
    let dispatch = GlobalSemaphoreConfig::new("bad", CoreCoord::new(11, 0).into(), 0);
    let refused = device.create_global_semaphore(&dispatch).unwrap_err().to_string();
    assert_eq!(refused, "buffer bad: core (11,0) is no worker of this device");
}

/// A device has the memory that it is opened with, and says at its end who did not give back what.
#[test]
fn a_device_closes_with_its_leaks() {
    let config = DeviceConfig { l1_small_size: 0x2000, trace_region_size: 1 << 20, ..DeviceConfig::new(Board::P100) };
    let mut device = open(config);
    let alloc = |device: &mut Device, name: &str, kind| {
        let buffer = device.memory().unwrap().alloc(&BufferConfig::interleaved(name, kind, 640, 64)).unwrap();
        round_trip(device, &buffer);
        buffer
    };
    let x = alloc(&mut device, "x", BufferType::Dram);
    alloc(&mut device, "flags", BufferType::L1Small);
    alloc(&mut device, "trace", BufferType::Trace);
    device.memory().unwrap().free(&x).unwrap();
    assert_eq!(device.l1().range().end.get(), 0x18_0000 - 0x2000);
    let leaks = device.close().unwrap();
    assert_eq!(
        leaks.to_string(),
        "2 allocations were not freed\n  L1-small 0x17ffc0..0x180000 flags (64 bytes)\n  \
         trace region 0xfff00000..0xfff00080 trace (128 bytes)"
    );
    // Closing again changes nothing.
    assert_eq!(device.close().unwrap(), leaks);
    let mut device = open(DeviceConfig::new(Board::P100));
    let x = device.alloc_dram("x", &[64], DType::U8, 64).unwrap();
    device.free_dram(&x).unwrap();
    assert!(device.close().unwrap().is_empty());
}
