//! Kernel text that does not fit into the workers' L1 together: after it was sent twice it comes
//! from DRAM, and the host sends commands only.

use crate::common::{Device, increment, kernel, open_with, small_text_cache};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::tensix::Processor;
use tilework_runtime::memory::{BufferConfig, BufferType};
use tilework_runtime::{
    ArgSet, Blocking, Buffer, CircularBuffer, Cores, DType, DeviceConfig, Program, Role, UniqueArgs,
};

const ELEMENTS: usize = 130 * 256;
const ROUNDS: usize = 6;

fn device(layout: DispatchLayout) -> Device {
    open_with(DeviceConfig { layout, ..DeviceConfig::new(Board::P100) }, true, small_text_cache())
}

/// A copy by all cores.
fn copy(device: &Device, from: &Buffer, to: &Buffer) -> Program {
    let shares = crate::common::shares(from.pages().get(), device.workers().len() as u32);
    let args = |buffer: &Buffer| {
        let list = |&(first, n): &(u32, u32)| vec![buffer.address.word(), first, n, buffer.page_size, 0];
        UniqueArgs::PerCore(shares.iter().map(list).collect())
    };
    Program::new("copy", Cores::All)
        .role(
            Role::all()
                .kernel(Processor::Ncrisc, kernel("reader", Processor::Ncrisc))
                .kernel(Processor::Brisc, kernel("writer", Processor::Brisc)),
        )
        .circular_buffer(CircularBuffer { index: 0, page_size: from.page_size, pages: PageCount::new(3) })
        .unique_args(ArgSet::Ncrisc, args(from))
        .unique_args(ArgSet::Brisc, args(to))
}

/// What a round of the programs took.
struct Round {
    /// Bytes of the host's records.
    bytes: u64,
    cycles: u64,
}

/// Runs programs in turn that read what those before have written; their rounds, and whether the
/// result is right.
fn rounds(device: &mut Device) -> Vec<Round> {
    let [x, y] = ["x", "y"].map(|name| device.alloc_dram(name, &[ELEMENTS], DType::U32, 1024).unwrap());
    let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
    device.upload(&x, &vec![0; 4 * ELEMENTS]).unwrap();
    let programs = [increment(device, &x, &y, &slots, 7), copy(device, &y, &x)];
    let mut out = Vec::new();
    for _ in 0..ROUNDS {
        let (bytes, cycles) = (device.queue().unwrap().record_bytes(), device.chip().now());
        for program in &programs {
            device.enqueue_program(program, Blocking::No).unwrap();
        }
        device.finish().unwrap();
        out.push(Round { bytes: device.queue().unwrap().record_bytes() - bytes, cycles: device.chip().now() - cycles });
    }
    let found = device.download(&x).unwrap();
    let expected = (7 * ROUNDS as u32).to_le_bytes();
    assert!(found.chunks_exact(4).all(|word| word == expected), "the text of a program was not its own");
    out
}

#[test]
fn text_comes_from_dram_in_every_layout() {
    for layout in DispatchLayout::ALL {
        let mut device = device(layout);
        let rounds = rounds(&mut device);
        let counts = device.statistics().cache;
        let all = 2 * ROUNDS as u64;
        assert_eq!((counts.text_sent, counts.text_resident), (all, 0), "{layout}: the text fits together");
        assert_eq!(counts.text_from_dram, all - 2, "{layout}");
        let bytes: Vec<u64> = rounds.iter().map(|round| round.bytes).collect();
        let cycles: Vec<u64> = rounds.iter().map(|round| round.cycles).collect();
        println!("{layout}: {bytes:?} bytes in {cycles:?} cycles");
        // From the third round on only arguments and commands.
        assert!(bytes[2..].iter().all(|&n| n == bytes[2]) && bytes[2] + 2000 < bytes[1], "{layout}: {bytes:?}");
        assert!(device.close().unwrap().to_string().lines().all(|line| !line.contains("kernel text")), "{layout}");
    }
}

/// Without room for the region everything is sent inline.
#[test]
fn text_is_sent_inline_when_dram_is_full() {
    let mut device = device(DispatchLayout::Dispatcher);
    let free = device.memory().unwrap().statistics(BufferType::Dram).largest_free_block;
    let banks = device.dram_banks() as u64;
    let rest = BufferConfig::interleaved("rest", BufferType::Dram, (free - 0x10_0000) / 1024 * 1024 * banks, 1024);
    device.memory().unwrap().alloc(&rest).unwrap();
    let rounds = rounds(&mut device);
    let counts = device.statistics().cache;
    assert_eq!((counts.text_sent, counts.text_from_dram), (2 * ROUNDS as u64, 0));
    let (bytes, cycles): (Vec<u64>, Vec<u64>) = rounds.iter().map(|round| (round.bytes, round.cycles)).unzip();
    println!("inline: {bytes:?} bytes in {cycles:?} cycles");
    assert!(bytes[1..].iter().all(|&n| n == bytes[1]), "{bytes:?}");
}
