//! Golden bytes and orders, worked out by hand from seed sections 2 and 8 and the original's
//! `dispatch.py` and `cq_commands.hpp`.

use super::*;
use crate::elf::tests::kernel_of;
use crate::memory::Allocator;
use crate::program::{CircularBuffer, Cores, Role, UniqueArgs};
use tilework_abi::addr::{L1Addr, PageCount};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::QueueId;
use tilework_abi::l1::WORKER;
use tilework_abi::msg::MODE_DEV;
use zerocopy::little_endian::U32;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |d: u8| (d as char).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

/// One core, one argument, one semaphore, one circular buffer, one kernel of one instruction.
fn tiny() -> (Program, Layout) {
    let program = Program::new("tiny", Cores::List(vec![NocXy::new(1, 2)]))
        .role(Role::all().kernel(Processor::Brisc, kernel_of(&[0x13], Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![0x11]))
        .semaphore(5)
        .circular_buffer(CircularBuffer { index: 0, page_size: 64, pages: PageCount::new(1) });
    let program = Program { host_assigned_id: 7, ..program };
    let workers: Vec<NocXy> = Board::P100.workers().collect();
    let l1 = Allocator::new("L1", L1Addr::new(0x37000)..L1Addr::new(0x18_0000), 64);
    let layout = program.layout(&workers, &WORKER, &l1).unwrap();
    (program, layout)
}

/// The seed's, but for the byte behind the mode, which is padding there: no processor's kernel
/// reads the firmware's globals.
const LAUNCH: &str = "
    b0820000 b0820000 b0820000   1000 1000 1000   2000 3000
    0000 2000  0400 2000  0400 2000  0400 2000  0400 2000
    00 1f   30000000 00000000 00000000 00000000 00000000
    01000000   01 00 20 00   07000000   01000000
    0000 0000 0000 0000 0000   0000   00 00 00 00";
const SHARED: &str = "00700300 40000000 01000000 40000000   13000000 00000000 00000000 00000000";
const RTA: &str = "11000000 00000000 00000000 00000000   05000000 00000000 00000000 00000000";

#[test]
fn the_steps_of_a_program_are_the_seeds_in_order_and_bytes() {
    let (program, layout) = tiny();
    let cores = vec![NocXy::new(1, 2)];
    let write = |addr, bytes: &str| Ir::Write {
        cores: cores.clone(),
        addr: L1Addr::new(addr),
        data: Data::Uniform(hex(bytes)),
    };
    let expected = [
        write(0x370, "000000e0"),
        write(0x3A0, "00000000"),
        write(0x82B0, RTA),
        write(0x70, LAUNCH),
        write(0x82D0, SHARED),
        Ir::Launch { cores: cores.clone() },
    ];
    assert_eq!(build_ir(&program, &layout, &WORKER, MODE_DEV).unwrap(), expected);
}

#[test]
fn trisc_kernels_are_launched_together_and_those_that_are_missing_return() {
    let workers: Vec<NocXy> = Board::P100.workers().collect();
    let l1 = Allocator::new("L1", L1Addr::new(0x37000)..L1Addr::new(0x18_0000), 64);
    let launch = |processors: &[Processor]| {
        let role = processors.iter().fold(Role::all(), |role, &p| role.kernel(p, kernel_of(&[0x13; 5], p)));
        let program = Program::new("t", Cores::Count(1)).role(role);
        let layout = program.layout(&workers, &WORKER, &l1).unwrap();
        let message = launch_msg(&program, &layout, 0, MODE_DEV);
        let enables = message.enables.get();
        assert_eq!(layout.roles[0].enables.count_ones() as usize, processors.len(), "the kernels that there are");
        let shared = program.shared_bytes(&layout, 0, &WORKER).unwrap();
        let first = |offset: U32| u32::from_le_bytes(shared[offset.get() as usize..][..4].try_into().unwrap());
        (enables, message.kernel_text_offset.map(U32::get), message.kernel_text_offset.map(first))
    };
    use Processor::{Brisc, Trisc0, Trisc1, Trisc2};
    // Kernels of 20 bytes take 32. The return lies behind them: 0x00008067 is `ret`.
    assert_eq!(launch(&[Trisc1]), (0b11100, [0, 0, 32, 0, 32], [0x13, 0x13, 0x8067, 0x13, 0x8067]));
    assert_eq!(launch(&[Brisc, Trisc0]), (0b11101, [0, 0, 32, 64, 64], [0x13, 0x13, 0x13, 0x8067, 0x8067]));
    assert_eq!(launch(&[Trisc0, Trisc1, Trisc2]).1, [0, 0, 0, 32, 64]);
    assert_eq!(launch(&[Brisc]), (1, [0; 5], [0x13; 5]));
}

#[test]
fn the_commands_of_a_program_are_the_seeds_in_order_and_bytes() {
    let (program, layout) = tiny();
    let ir = build_ir(&program, &layout, &WORKER, MODE_DEV).unwrap();
    let commands = commands(&ir, go_word(NocXy::new(14, 3)));
    // The rectangle of the one core: y 2, x 1 twice.
    let large = |addr: &str, length_minus1: &str, data: &str| {
        let sub = format!("81100800 {addr} {length_minus1} 01 01  00000000");
        let mut bytes = hex(&format!("06 02 0100 1000 0000 0000000000000000 {sub} {data}"));
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        bytes
    };
    let barrier = hex("07 01 0000 00000000 00000000 00000000");
    let expected = [
        large("70030000", "0300", "000000e0"),
        barrier.clone(),
        large("a0030000", "0300", "00000000"),
        barrier.clone(),
        large("b0820000", "1f00", RTA),
        barrier.clone(),
        large("70000000", "5f00", LAUNCH),
        barrier.clone(),
        large("d0820000", "1f00", SHARED),
        barrier,
        hex("11 00 0000 01000000 0000000000000000   81000000"),
        hex("07 18 3000 00000000 00000000 00000000"),
        hex("0e 000e0380 ff 01 00 00000000 30000000"),
        hex("07 18 3000 00000000 01000000 00000000"),
    ];
    assert_eq!(commands.len(), expected.len());
    for (i, (command, expected)) in commands.iter().zip(&expected).enumerate() {
        assert_eq!(&command.to_bytes().unwrap(), expected, "command {i}: {command}");
    }
}

#[test]
fn a_timestamp_goes_to_its_slot_in_host_memory() {
    // PCIe (19,24) is 0x613; bit 24 becomes bit 60 of the address. Slot 3 of the timestamps at
    // 0x46000100.
    let bytes = timestamp(QueueId::FIRST.region_noc_base(), 3).to_bytes().unwrap();
    assert_eq!(bytes, hex("12 00 0000 13060001 30010046 00000000"));
}

#[test]
fn uniform_writes_go_out_in_chunks_of_1_kib_each_with_a_barrier() {
    let cores: Vec<NocXy> = Board::P100.workers().collect();
    let ir = [uniform(&cores, L1Addr::new(0x82B0), &[7; 2500])];
    let commands = commands(&ir, 0);
    let mut sizes = Vec::new();
    for pair in commands.chunks(2) {
        let [DispatchCommand::WritePackedLarge(write), barrier] = pair else { panic!("{pair:?}") };
        assert_eq!(*barrier, DispatchCommand::barrier());
        assert_eq!(write.subs.len(), 3);
        assert_eq!(write.subs.iter().map(|s| u32::from(s.num_mcast_dests)).sum::<u32>(), 118);
        sizes.push((write.subs[0].addr, write.subs[0].data.len()));
    }
    assert_eq!(sizes, [(0x82B0, 1024), (0x86B0, 1024), (0x8AB0, 452)]);
}

#[test]
fn per_core_writes_name_at_most_118_cores() {
    let cores: Vec<NocXy> = Board::P150.workers().collect();
    let blobs: Vec<Vec<u8>> = (0..138u8).map(|i| vec![i; 20]).collect();
    let ir = [Ir::Write { cores: cores.clone(), addr: L1Addr::new(0x82B0), data: Data::PerCore(blobs.clone()) }];
    let mut seen = Vec::new();
    for command in commands(&ir, 0) {
        let DispatchCommand::WritePacked(write) = &command else { panic!("{command}") };
        let (PackedTargets::Unicast(nodes), Packets::PerTarget(packets)) = (&write.targets, &write.packets) else {
            panic!("{command}")
        };
        assert_eq!(nodes.len(), packets.len());
        seen.push(nodes.len());
        for (node, packet) in nodes.iter().zip(packets) {
            let i = cores.iter().position(|c| c.encode() == *node).unwrap();
            assert_eq!(*packet, blobs[i]);
        }
    }
    assert_eq!(seen, [118, 20]);
}

#[test]
fn rectangles_are_the_seeds() {
    let rect = |x0, x1, y0, y1| NocRect { start: NocXy::new(x0, y0), end: NocXy::new(x1, y1) };
    let p100: Vec<NocXy> = Board::P100.workers().collect();
    assert_eq!(rectangles(&p100), [rect(1, 7, 2, 11), rect(10, 13, 2, 11), rect(14, 14, 4, 11)]);
    let p150: Vec<NocXy> = Board::P150.workers().collect();
    assert_eq!(rectangles(&p150), [rect(1, 7, 2, 11), rect(10, 15, 2, 11), rect(16, 16, 4, 11)]);
    let corner = [NocXy::new(3, 5), NocXy::new(1, 5), NocXy::new(2, 5), NocXy::new(1, 6)];
    assert_eq!(rectangles(&corner), [rect(1, 3, 5, 5), rect(1, 1, 6, 6)]);
    assert_eq!(rectangles(&[]), []);
}

#[test]
fn arguments_that_differ_go_to_each_core() {
    let (program, _) = tiny();
    let cores = Cores::Count(2);
    let args = UniqueArgs::PerCore(vec![vec![1], vec![2, 3]]);
    let program = Program { cores, ..program }.unique_args(ArgSet::Brisc, args);
    let workers: Vec<NocXy> = Board::P100.workers().collect();
    let l1 = Allocator::new("L1", L1Addr::new(0x37000)..L1Addr::new(0x18_0000), 64);
    let layout = program.layout(&workers, &WORKER, &l1).unwrap();
    let Some(Ir::Write { addr, data: Data::PerCore(blobs), .. }) = arguments(&program, &layout) else { panic!() };
    assert_eq!(addr, L1Addr::new(0x82B0));
    assert_eq!(blobs[0], hex("01000000 00000000 00000000 00000000 05000000 00000000 00000000 00000000"));
    assert_eq!(blobs[1], hex("02000000 03000000 00000000 00000000 05000000 00000000 00000000 00000000"));
}
