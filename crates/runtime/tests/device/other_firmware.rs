//! Programs under other worker firmware than the built-in one: ours with another memory map, and
//! firmware that others built.
//!
//! The latter is not part of the repository. `TILEWORK_BH_FIRMWARE` names its folder (five ELF
//! files, see `FirmwareSet`); without it the tests say that they left it out.

use crate::common::{Device, increment, kernel, moved_firmware, other_firmware, shares};
use tilework_abi::addr::{L1Addr, PageCount};
use tilework_abi::board::Board;
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, DType, DeviceConfig, Dispatch, FirmwareSet, Program, Role, RunReport, RuntimeError,
    UniqueArgs,
};

fn open(set: &FirmwareSet, dispatch: Dispatch) -> Device {
    let config = DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) };
    crate::common::open_with(config, true, set.clone())
}

/// Checks `run` under every set by both ways of dispatch, and that it does the same twice.
fn everywhere<T: PartialEq + std::fmt::Debug>(run: impl Fn(&mut Device) -> T) {
    for (name, set) in other_firmware() {
        for dispatch in [Dispatch::Fast, Dispatch::Slow] {
            let once = || run(&mut open(&set, dispatch));
            assert!(once() == once(), "{name}, {dispatch:?}: two runs differ");
        }
    }
}

/// A copy through a circular buffer by all cores: reader on NCRISC, writer on BRISC.
fn pipeline(device: &Device, from: u64, to: u64, pages: u32, index: u32) -> Program {
    let cores = device.workers().len() as u32;
    let args = |address: u64| {
        let list = shares(pages, cores);
        let args = list.into_iter().map(|(first, count)| vec![address as u32, first, count, 1024, index]);
        UniqueArgs::PerCore(args.collect())
    };
    let role = Role::all()
        .kernel(Processor::Brisc, kernel("writer", Processor::Brisc))
        .kernel(Processor::Ncrisc, kernel("reader", Processor::Ncrisc));
    Program::new("pipeline", Cores::All)
        .role(role)
        .circular_buffer(CircularBuffer { index, page_size: 1024, pages: PageCount::new(3) })
        .unique_args(ArgSet::Brisc, args(to))
        .unique_args(ArgSet::Ncrisc, args(from))
}

#[test]
fn a_run_of_several_programs_gives_the_right_arrays() {
    everywhere(|device| -> RunReport {
        let elements = 500 * 256;
        let mut buffer = |name| device.alloc_dram(name, &[elements], DType::U32, 1024).unwrap();
        let [x, y, z] = ["x", "y", "z"].map(&mut buffer);
        let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
        let data: Vec<u8> = (0..elements as u32).flat_map(|i| (i * 5).to_le_bytes()).collect();
        device.upload(&x, &data).unwrap();
        // The counters of a circular buffer are found as they were left, or cleared: both must do,
        // first and last index too.
        let programs = [
            increment(device, &x, &y, &slots, 3),
            pipeline(device, y.address.get(), z.address.get(), 500, 0),
            increment(device, &z, &y, &slots, 4),
            pipeline(device, y.address.get(), x.address.get(), 500, 31),
            pipeline(device, x.address.get(), z.address.get(), 500, 0),
        ];
        let report = device.run(&programs).unwrap();
        let out = device.download(&z).unwrap();
        let words = out.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap()));
        assert_eq!(words.zip(0u32..).position(|(w, i)| w != i * 5 + 7), None);
        report
    });
}

/// `x = x * 1664525 + 1013904223`, from 1 (the kernel `busy`).
fn generator(steps: u32) -> u32 {
    (0..steps).fold(1, |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
}

fn word(device: &mut Device, core: NocXy, address: L1Addr) -> u32 {
    let mut bytes = [0; 4];
    device.read_l1(core, address, &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

#[test]
fn each_processor_runs_its_kernel_and_no_other() {
    use Processor::{Brisc, Ncrisc, Trisc0, Trisc1, Trisc2};
    let choices: [&[Processor]; 8] = [
        &[Brisc],
        &[Ncrisc],
        &[Trisc0],
        &[Trisc1],
        &[Trisc2],
        &[Trisc0, Trisc2],
        &[Brisc, Trisc1],
        &[Brisc, Ncrisc, Trisc0, Trisc1, Trisc2],
    ];
    everywhere(|device| {
        let out = device.alloc_l1("out", 64).unwrap().address;
        for (number, processors) in (0u32..).zip(choices) {
            let mut role = Role::all();
            let mut program = Program::new("busy", Cores::Count(2));
            for &p in processors {
                role = role.kernel(p, kernel("busy", p));
                let set = ArgSet::of(p);
                let args = vec![10 * number + set.index() as u32, out.offset(16 * set.index() as u32).get()];
                program = program.unique_args(set, UniqueArgs::Uniform(args));
            }
            let program = program.role(role);
            let cores = device.layout(&program).unwrap().cores;
            for &core in &cores {
                device.write_l1(core, out, &[0xAA; 64]).unwrap();
            }
            device.run(std::slice::from_ref(&program)).unwrap();
            for &core in &cores {
                for set in ArgSet::ALL {
                    let ran = processors.iter().any(|&p| ArgSet::of(p) == set);
                    let n = set.index() as u32;
                    let expected = if ran { generator(10 * number + n) } else { 0xAAAA_AAAA };
                    assert_eq!(
                        word(device, core, out.offset(16 * n)),
                        expected,
                        "{processors:?}: {} of {core}",
                        set.name()
                    );
                }
            }
        }
        device.statistics()
    });
}

#[test]
fn a_kernel_that_never_ends_is_named_and_firmware_that_waits_is_idle() {
    everywhere(|device| {
        let word = device.alloc_l1("word", 64).unwrap();
        let program = Program::new("spin", Cores::Count(2))
            .role(Role::all().kernel(Processor::Ncrisc, kernel("spin", Processor::Ncrisc)))
            .unique_args(ArgSet::Ncrisc, UniqueArgs::Uniform(vec![word.address.get()]));
        let error = device.run(&[program]).unwrap_err();
        let RuntimeError::Deadlock(report) = error else { panic!("expected a deadlock, found {error}") };
        let text = report.to_string();
        assert!(text.contains("NCRISC of (1,2) (1,3) (2 tiles), kernel spin of program spin"), "{text}");
        assert!(text.contains("waits for a word in L1 buffer word"), "{text}");
        assert!(text.contains("BRISC of (1,2) waits for the kernels of NCRISC to end"), "{text}");
        // 120 tiles with five cores each. Those that wait: two BRISCs, two NCRISCs, and with a
        // queue prefetcher and dispatcher.
        let queue = if device.queue().is_some() { 2 } else { 0 };
        assert_eq!(report.idle, 600 - 4 - queue, "{text}");
        text
    });
}

#[test]
fn sleeping_cores_change_neither_bytes_nor_cycles() {
    for (name, set) in other_firmware() {
        for dispatch in [Dispatch::Fast, Dispatch::Slow] {
            let run = |parking| {
                let config = DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) };
                let mut device = crate::common::open_with(config, parking, set.clone());
                let out = device.alloc_l1("out", 64).unwrap().address;
                let role = Processor::ALL.into_iter().fold(Role::all(), |role, p| role.kernel(p, kernel("busy", p)));
                let args = |n: u32| UniqueArgs::Uniform(vec![100 + n, out.offset(16 * n).get()]);
                let program = Program::new("busy", Cores::All)
                    .role(role)
                    .unique_args(ArgSet::Brisc, args(0))
                    .unique_args(ArgSet::Ncrisc, args(1))
                    .unique_args(ArgSet::Compute, args(2));
                let report = device.run(&[program.clone(), program]).unwrap();
                let last = *device.workers().last().unwrap();
                let words: Vec<u32> = (0..3).map(|n| word(&mut device, last, out.offset(16 * n))).collect();
                assert_eq!(words, [100, 101, 102].map(generator));
                let times: Vec<_> = report.programs.iter().map(|p| (p.start, p.end)).collect();
                (report.cycles, times, device.statistics().chip.unwrap().cycles)
            };
            assert_eq!(run(true), run(false), "{name}, {dispatch:?}");
        }
    }
}

#[test]
fn the_map_of_the_firmware_is_the_devices() {
    let device = open(&moved_firmware(), Dispatch::Fast);
    let map: &MemoryMap = device.memory_map();
    assert_eq!([map.kernel_config, map.bank_table, map.data], [0x9000, 0x1_4000, 0x4_0000].map(L1Addr::new));
    assert_eq!(device.l1().range(), L1Addr::new(0x4_0000)..L1Addr::new(0x18_0000));
}
