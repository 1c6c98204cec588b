//! A device with a choice of worker cores: programs, buffers in L1 and cached launches
//! stay on them.

use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::memory::{Bank, CoreGrid};
use tilework_runtime::{
    ArgSet, BufferConfig, BufferType, CoreCoord, CoreRange, CoreRangeSet, Cores, DType, Device, DeviceConfig, Dispatch,
    KernelImage, Program, Role, RuntimeError, UniqueArgs, WorkerCores, prebuilt,
};
use tilework_sim::{Chip, ChipConfig};

const PAGE: u32 = 256;
const PAGES: u32 = 40;

fn cores(ranges: &[[u32; 4]]) -> WorkerCores {
    let range = |&[x0, y0, x1, y1]: &[u32; 4]| CoreRange::new(CoreCoord::new(x0, y0), CoreCoord::new(x1, y1));
    WorkerCores::new(&CoreRangeSet::new(ranges.iter().map(range)).unwrap()).unwrap()
}

/// Two rectangles, one of them over the columns without Tensix tiles: not what one
/// multicast reaches.
fn chosen() -> WorkerCores {
    cores(&[[5, 2, 8, 3], [0, 7, 0, 9]])
}

fn open(config: DeviceConfig) -> Result<Device<Chip>, RuntimeError> {
    Device::open(Chip::new(ChipConfig::new(config.board)).unwrap(), config)
}

/// Adds `value` to the pages of a buffer on all workers of the device, by the kernel `increment`.
fn increment(device: &Device<Chip>, from: u32, to: u32, slots: u32, value: u32) -> Program {
    let elf = prebuilt::kernel_elf("increment").unwrap();
    let kernel = Arc::new(KernelImage::load("increment", elf, Processor::Brisc).unwrap());
    let workers = u32::try_from(device.workers().len()).unwrap();
    let share = PAGES.div_ceil(workers);
    let args = (0..workers)
        .map(|i| {
            let first = (i * share).min(PAGES);
            vec![from, to, first, (PAGES - first).min(share), PAGE, value, slots, 3]
        })
        .collect();
    Program::new("increment", Cores::All)
        .role(Role::all().kernel(Processor::Brisc, kernel))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args))
}

#[test]
fn programs_and_buffers_stay_on_the_chosen_cores() {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let config = DeviceConfig { dispatch, worker_cores: Some(chosen()), ..DeviceConfig::new(Board::P100) };
        let mut device = open(config).unwrap();
        let grid = CoreGrid::new(Board::P100);
        let expected: Vec<NocXy> =
            config.board.tensix_tiles().filter(|&tile| chosen().contains(grid.core(tile).unwrap())).collect();
        assert_eq!((device.workers(), expected.len()), (&expected[..], 11));

        // Interleaved over the L1 of these cores, and no other.
        let bytes = u64::from(PAGES * PAGE);
        let dealt = device.memory().unwrap().alloc(&BufferConfig::interleaved("dealt", BufferType::L1, bytes, PAGE));
        let dealt = dealt.unwrap();
        let mut banks: Vec<NocXy> = (0..PAGES)
            .map(|page| match dealt.place(page).bank {
                Bank::Core(core) => core,
                other => panic!("page {page} is in {other:?}"),
            })
            .collect();
        banks.sort_unstable();
        banks.dedup();
        let mut sorted = expected.clone();
        sorted.sort_unstable();
        assert_eq!(banks, sorted);
        let numbers: Vec<u8> = (0..PAGES * PAGE / 4).flat_map(u32::to_le_bytes).collect();
        device.upload(&dealt, &numbers).unwrap();
        assert_eq!(device.download(&dealt).unwrap(), numbers);

        // Cached launches, again and again, with text that stays.
        let shape = [(PAGES * PAGE / 4) as usize];
        let x = device.alloc_dram("x", &shape, DType::U32, PAGE).unwrap();
        let slots = device.alloc_l1("slots", 3 * PAGE).unwrap().address.get();
        device.upload(&x, &numbers).unwrap();
        for value in 1..=4 {
            let program = increment(&device, x.address.word(), x.address.word(), slots, value);
            let report = device.run(&[program]).unwrap();
            assert_eq!(report.programs[0].cores, 11);
        }
        let found = device.download(&x).unwrap();
        assert!(found.chunks_exact(4).zip(10u32..).all(|(word, n)| word == n.to_le_bytes()), "{dispatch:?}");
        let cache = device.statistics().cache;
        if dispatch == Dispatch::Fast {
            assert_eq!((cache.misses, cache.hits, cache.text_sent, cache.text_resident), (1, 3, 1, 3));
        }
        device.close().unwrap();
    }
}

/// Programs name cores of the board, or ask for a number of them.
#[test]
fn a_program_on_other_cores_is_refused() {
    let config = DeviceConfig { worker_cores: Some(chosen()), ..DeviceConfig::new(Board::P100) };
    let mut device = open(config).unwrap();
    let elf = prebuilt::kernel_elf("empty").unwrap();
    let kernel = Arc::new(KernelImage::load("empty", elf, Processor::Brisc).unwrap());
    let on = |cores: Cores| Program::new("t", cores).role(Role::all().kernel(Processor::Brisc, Arc::clone(&kernel)));
    let message = |error: RuntimeError| error.to_string();
    let error = message(device.run(&[on(Cores::List(vec![NocXy::new(1, 2)]))]).unwrap_err());
    assert!(
        error.contains("is not a worker of this board; workers are in columns 1,6,7,10,11 and rows 4 to 11"),
        "{error}"
    );
    let error = message(device.run(&[on(Cores::Count(12))]).unwrap_err());
    assert!(error.contains("found 12 cores, expected at most 11"), "{error}");
    device.run(&[on(Cores::Count(11))]).unwrap();
}

#[test]
fn wrong_choices_are_refused_before_anything_starts() {
    let refused = |config: DeviceConfig, set: &[[u32; 4]]| {
        open(DeviceConfig { worker_cores: Some(cores(set)), ..config }).unwrap_err().to_string()
    };
    let p100 = DeviceConfig::new(Board::P100);
    let queue = "worker cores: core (11,0), tile (14, 2), runs the command queue";
    assert_eq!(refused(p100, &[[11, 0, 11, 9]]), queue);
    assert_eq!(refused(p100, &[[0, 0, 12, 0]]), "worker cores: core (11,0), tile (14, 2), runs the command queue");
    assert_eq!(refused(p100, &[[12, 5, 13, 5]]), "worker cores: core (12,5) is not on a p100, which has 12 x 10");
    // Under slow dispatch these are workers.
    let slow = DeviceConfig { dispatch: Dispatch::Slow, ..p100 };
    let device = open(DeviceConfig { worker_cores: Some(cores(&[[11, 0, 11, 9]])), ..slow }).unwrap();
    assert_eq!(device.workers().len(), 10);
}
