//! Programs and transfers while packets are late in every way that the documents allow: worker
//! firmware, kernels and queue wait for what they need, whatever the routes are like.

use crate::common::{Device, empty, increment, kernel};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_runtime::{ArgSet, CircularBuffer, Cores, DType, DeviceConfig, Dispatch, Program, Role, UniqueArgs};
use tilework_sim::{Chip, ChipConfig, LatePackets};

/// Longer than any way through the chip.
const MOST: u64 = 1_500;
const WORDS: usize = 9_000;

fn late_chip(seed: u64) -> Chip {
    Chip::new(ChipConfig { late: Some(LatePackets { seed, most: MOST }), ..ChipConfig::new(Board::P100) }).unwrap()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect()
}

/// Two programs behind each other, the second of which reads what the first has written, and a
/// pipeline of two kernels over a circular buffer.
fn run(device: &mut Device, value: u32) {
    let data: Vec<u8> = (0..WORDS as u32).flat_map(|i| (i * 5 + value).to_le_bytes()).collect();
    let [x, y, z] = ["x", "y", "z"].map(|name| device.alloc_dram(name, &[WORDS], DType::U32, 1024).unwrap());
    let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
    device.upload(&x, &data).unwrap();
    let [first, second] = [(&x, &y, 1), (&y, &x, 2)].map(|(from, to, add)| increment(device, from, to, &slots, add));
    let pages = x.pages().get();
    let copy = Program::new("copy", Cores::Count(1))
        .role(
            Role::all()
                .kernel(Processor::Ncrisc, kernel("reader", Processor::Ncrisc))
                .kernel(Processor::Brisc, kernel("writer", Processor::Brisc)),
        )
        .circular_buffer(CircularBuffer { index: 5, page_size: 1024, pages: PageCount::new(2) })
        .unique_args(ArgSet::Ncrisc, UniqueArgs::Uniform(vec![x.address.word(), 0, pages, 1024, 5]))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![z.address.word(), 0, pages, 1024, 5]));
    device.run(&[first, second, empty(Cores::All), copy]).unwrap();
    for (buffer, more) in [(&y, 1), (&x, 3), (&z, 3)] {
        let found = words(&device.download(buffer).unwrap());
        assert!(found.iter().zip(0..).all(|(&word, i)| word == i * 5 + value + more), "{more} more");
    }
}

#[test]
fn programs_are_right_however_late_packets_are() {
    for (seed, dispatch) in [(1, Dispatch::Fast), (2, Dispatch::Fast), (3, Dispatch::Fast), (4, Dispatch::Slow)] {
        let config = DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) };
        let mut device = Device::open(late_chip(seed), config).unwrap();
        (0..2).for_each(|round| run(&mut device, 100 * round));
        device.close().unwrap();
        let mut again = Device::open(device.into_chip(), config).unwrap();
        run(&mut again, 7);
    }
}
