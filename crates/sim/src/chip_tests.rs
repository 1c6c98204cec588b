//! The chip as a host sees it: windows, pinned memory, time, faults and deadlocks.

use crate::pcie::Bar;
use crate::{Chip, ChipConfig, ChipError, FaultClass};
use tilework_abi::board::{self, Board};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix as map;
use tilework_abi::tlb::{self, Ordering, Window, WindowSize};
use tilework_riscv::{Insn, Op, encode};

const HOST: u64 = 0x4000_0000;
const WORKER: NocXy = NocXy::new(1, 2);

fn chip(board: Board) -> Chip {
    Chip::new(ChipConfig::new(board)).expect("the board tables fit")
}

fn code(words: &[(Op, u8, u8, u8, i32)]) -> Vec<u8> {
    let encoded = words.iter().map(|&(op, rd, rs1, rs2, imm)| encode(Insn { op, rd, rs1, rs2, imm }));
    encoded.flat_map(|word| word.expect("operands fit").to_le_bytes()).collect()
}

fn aim(chip: &mut Chip, window: Window) {
    for (i, word) in window.encode(WindowSize::Small).into_iter().enumerate() {
        let reg = tlb::REGS + 4 * i as u64;
        chip.bar_write(Bar::Bar0, reg, &word.to_le_bytes()).expect("a register of window 0");
    }
}

fn write(chip: &mut Chip, xy: NocXy, addr: u32, data: &[u8]) {
    let base = u64::from(addr) & !(tlb::SIZE_2M - 1);
    aim(chip, Window::unicast(xy, base));
    chip.bar_write(Bar::Bar0, u64::from(addr) - base, data).expect("window 0 shows the tile");
}

fn read32(chip: &mut Chip, xy: NocXy, addr: u32) -> u32 {
    let base = u64::from(addr) & !(tlb::SIZE_2M - 1);
    aim(chip, Window::unicast(xy, base));
    let mut word = [0; 4];
    chip.bar_read(Bar::Bar0, u64::from(addr) - base, &mut word).expect("window 0 shows the tile");
    u32::from_le_bytes(word)
}

fn start(chip: &mut Chip, xy: NocXy, program: &[u8]) {
    write(chip, xy, 0, program);
    write(chip, xy, map::SOFT_RESET_0, &map::SOFT_RESET_BRISC_RUNS.to_le_bytes());
}

#[test]
fn what_the_host_writes_it_reads_back_from_every_kind_of_memory() {
    let mut chip = chip(Board::P150);
    let dram = Board::P150.dram().banks()[5].first_port;
    for (xy, addr) in [(WORKER, 0x1000), (NocXy::new(16, 11), map::L1_SIZE - 4), (dram, 0x1234_0040)] {
        write(&mut chip, xy, addr, &0xC0FF_EE01u32.to_le_bytes());
        assert_eq!(read32(&mut chip, xy, addr), 0xC0FF_EE01, "{xy} {addr:#x}");
    }
    assert!(chip.fault().is_none());
}

#[test]
fn a_multicast_window_reaches_its_rectangle_and_nothing_else() {
    let mut chip = chip(Board::P100);
    let (start, end) = (NocXy::new(2, 3), NocXy::new(4, 5));
    aim(&mut chip, Window { start, multicast: true, ..Window::unicast(end, 0) });
    chip.bar_write(Bar::Bar0, 0x800, &7u32.to_le_bytes()).expect("window 0");
    chip.run(10_000).expect("no fault");
    for xy in chip.tiles() {
        let inside = (2..=4).contains(&xy.x) && (3..=5).contains(&xy.y);
        assert_eq!(chip.l1(xy).expect("a tile")[0x800], if inside { 7 } else { 0 }, "{xy}");
    }
}

#[test]
fn a_read_takes_its_round_trip_and_a_posted_write_does_not() {
    let mut chip = chip(Board::P100);
    let before = chip.now();
    write(&mut chip, WORKER, 0x1000, &[1, 2, 3, 4]);
    let written = chip.now();
    read32(&mut chip, WORKER, 0x1000);
    let read = chip.now() - written;
    assert!(written - before < 200, "{}", written - before);
    let us = u64::from(board::AICLK_MHZ);
    // 0.7 to 1 us for a read (seed 001's system measures it so); the window is aimed anew, which
    // costs a little more.
    assert!((us * 6 / 10..us * 12 / 10).contains(&read), "{read} cycles");
}

#[test]
fn a_device_write_to_pinned_memory_ends_the_hosts_wait() {
    let mut chip = chip(Board::P100);
    chip.pin(HOST, 0x1000).expect("a free region");
    // BRISC sends the word at 0x100 to host memory through NIU 0, then stops.
    let niu = 0xFFB2_0000u32.cast_signed();
    let regs = [
        (0x00, 0x100),                              // TARG_ADDR_LO: source
        (0x04, 0),                                  // TARG_ADDR_MID
        (0x08, WORKER.encode().cast_signed()),      // acknowledgement to itself
        (0x0C, 0x4000_0040),                        // RET_ADDR_LO
        (0x10, 0x1000_0000),                        // RET_ADDR_MID: bit 60
        (0x14, board::PCIE.encode().cast_signed()), // RET_ADDR_HI
        (0x1C, 0x2 | 1 << 4),                       // write, acknowledged
        (0x20, 4),                                  // length
        (0x40, 1),                                  // go
    ];
    let mut program = vec![(Op::Lui, 10, 0, 0, niu)];
    for (offset, value) in regs {
        let low = value << 20 >> 20;
        program.push((Op::Lui, 11, 0, 0, value.wrapping_sub(low)));
        program.push((Op::Addi, 11, 11, 0, low));
        program.push((Op::Sw, 0, 10, 11, offset));
    }
    program.push((Op::Jal, 0, 0, 0, 0));
    write(&mut chip, WORKER, 0x100, &0xFEED_BEEFu32.to_le_bytes());
    start(&mut chip, WORKER, &code(&program));
    let value = chip.wait_word(HOST + 0x40, 0, 1_000_000).expect("the write comes");
    assert_eq!(value, 0xFEED_BEEF);
    let at = chip.now();
    // The same again: same cycle.
    let mut again = self::chip(Board::P100);
    again.pin(HOST, 0x1000).expect("a free region");
    write(&mut again, WORKER, 0x100, &0xFEED_BEEFu32.to_le_bytes());
    start(&mut again, WORKER, &code(&program));
    again.wait_word(HOST + 0x40, 0, 1_000_000).expect("the write comes");
    assert_eq!(again.now(), at);
    assert_eq!(again.stats(), chip.stats());
}

#[test]
fn waiting_for_what_cannot_come_is_a_deadlock_at_once() {
    let mut chip = chip(Board::P150);
    chip.pin(HOST, 0x1000).expect("a free region");
    let poll = [(Op::Fence, 0, 0, 0, 0), (Op::Lw, 10, 0, 0, 0x700), (Op::Beq, 0, 10, 0, -8)];
    start(&mut chip, WORKER, &code(&poll));
    match chip.wait_word(HOST, 0, u64::MAX) {
        Err(ChipError::Deadlock { waiting, cycle }) => {
            assert_eq!(waiting.len(), 1);
            assert_eq!(waiting[0].tile, WORKER);
            assert_eq!(waiting[0].watched[0].watch.addr, 0x700);
            assert!(cycle < 20_000);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_core_that_computes_forever_exhausts_the_budget() {
    let mut chip = chip(Board::P100);
    chip.pin(HOST, 0x1000).expect("a free region");
    start(&mut chip, WORKER, &code(&[(Op::Addi, 10, 10, 0, 1), (Op::Jal, 0, 0, 0, -4)]));
    match chip.wait_word(HOST, 0, 100_000) {
        Err(ChipError::Budget { busy, .. }) => assert_eq!(busy.len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fault_stops_the_chip_for_good_and_is_a_value() {
    let mut chip = chip(Board::P100);
    start(&mut chip, WORKER, &code(&[(Op::Ebreak, 0, 0, 0, 0)]));
    let Err(ChipError::Fault(fault)) = chip.run(10_000) else { panic!("ebreak is a fault") };
    assert_eq!(fault.class, FaultClass::UndefinedBehavior);
    assert_eq!(fault.site.tile, Some(WORKER));
    assert!(matches!(chip.run(1), Err(ChipError::Fault(again)) if again == fault));
    let refused = chip.bar_write(Bar::Bar0, 0, &[0; 4]);
    assert!(matches!(refused, Err(ChipError::Fault(_))));
}

#[test]
fn random_host_accesses_never_panic() {
    use proptest::prelude::*;
    proptest!(ProptestConfig::with_cases(64), |(
        accesses in prop::collection::vec((any::<bool>(), any::<bool>(), any::<u64>(), 0usize..96), 1..20)
    )| {
        let mut chip = chip(Board::P100);
        for (large, reads, offset, len) in accesses {
            let bar = if large { Bar::Bar4 } else { Bar::Bar0 };
            let offset = offset % (bar.size() + 64);
            let mut data = vec![0; len];
            let result = if reads {
                chip.bar_read(bar, offset, &mut data)
            } else {
                chip.bar_write(bar, offset, &data)
            };
            if result.is_err() {
                break;
            }
        }
    });
}

#[test]
fn neither_parking_nor_the_cutting_of_time_changes_cycles_or_results() {
    let outcome = |parking, slice: u64, pass: fn(&mut Chip, u64) -> Result<(), ChipError>| {
        let mut chip = Chip::new(ChipConfig { parking, ..ChipConfig::new(Board::P100) }).expect("fits");
        chip.pin(HOST, 0x1000).expect("a free region");
        // A token goes from tile to tile by host hands; each tile polls for it with a fence.
        let poll = [
            (Op::Fence, 0, 0, 0, 0),
            (Op::Lw, 10, 0, 0, 0x700),
            (Op::Beq, 0, 10, 0, -8),
            (Op::Lui, 11, 0, 0, 0xFFB1_2000u32.cast_signed()),
            (Op::Lw, 12, 11, 0, 0x1F0),
            (Op::Sw, 0, 0, 12, 0x704),
            (Op::Jal, 0, 0, 0, 0),
        ];
        let tiles: Vec<_> = Board::P100.workers().take(5).collect();
        for &xy in &tiles {
            start(&mut chip, xy, &code(&poll));
        }
        let mut seen = Vec::new();
        for &xy in &tiles {
            write(&mut chip, xy, 0x700, &1u32.to_le_bytes());
            for _ in 0..777 / slice {
                pass(&mut chip, slice).expect("no fault");
            }
            seen.push(read32(&mut chip, xy, 0x704));
        }
        (seen, chip.now())
    };
    let asleep = outcome(true, 777, Chip::run);
    assert!(asleep.0.iter().all(|&clock| clock != 0));
    for slice in [777, 37, 21, 7, 1] {
        assert_eq!(asleep, outcome(true, slice, Chip::run), "slices of {slice}");
        assert_eq!(asleep, outcome(false, slice, Chip::run), "slices of {slice}, no parking");
        assert_eq!(asleep, outcome(true, slice, Chip::clock), "steps of {slice}");
        assert_eq!(asleep, outcome(false, slice, Chip::clock), "steps of {slice}, no parking");
    }
}

/// A core counts. The only tile that has work runs furthest ahead of the host.
#[test]
fn a_host_that_clocks_reads_what_is_there_when_its_read_arrives() {
    let count = code(&[(Op::Addi, 5, 5, 0, 1), (Op::Sw, 0, 0, 5, 0x400), (Op::Jal, 0, 0, 0, -8)]);
    let counts = |slice: u64, pass: fn(&mut Chip, u64) -> Result<(), ChipError>| {
        let mut chip = chip(Board::P150);
        start(&mut chip, WORKER, &count);
        let counts = [3000, 0, 70, 501, 1].map(|cycles| {
            (0..cycles / slice).for_each(|_| pass(&mut chip, slice).expect("no fault"));
            pass(&mut chip, cycles % slice).expect("no fault");
            (read32(&mut chip, WORKER, 0x400), chip.now())
        });
        assert!(counts.is_sorted_by(|a, b| a.0 < b.0), "{counts:?}");
        counts
    };
    let whole = counts(1 << 20, Chip::run);
    for slice in [1, 3, 70, 1 << 20] {
        assert_eq!(counts(slice, Chip::clock), whole, "steps of {slice}");
    }
}

/// Two tiles that fault within a window: the earlier fault is the chip's, whichever node is asked
/// first and however the clock is cut.
#[test]
fn of_two_tiles_that_fault_the_earlier_one_counts() {
    let tiles = [NocXy::new(1, 2), NocXy::new(2, 2)];
    let run = |nops: [usize; 2], slice: u64| {
        let mut chip = chip(Board::P150);
        for (tile, nops) in tiles.into_iter().zip(nops) {
            let mut program = 0x13u32.to_le_bytes().repeat(nops);
            program.extend([0xFF; 4]); // no instruction
            write(&mut chip, tile, 0, &program);
        }
        // One multicast releases both; the second is one hop further away.
        let base = u64::from(map::SOFT_RESET_0) & !(tlb::SIZE_2M - 1);
        aim(&mut chip, Window { start: tiles[0], multicast: true, ..Window::unicast(tiles[1], base) });
        let release = map::SOFT_RESET_BRISC_RUNS.to_le_bytes();
        chip.bar_write(Bar::Bar0, u64::from(map::SOFT_RESET_0) - base, &release).expect("window 0");
        while chip.now() < 1_000_000 {
            if let Err(error) = chip.run(slice) {
                return error.to_string();
            }
        }
        String::new()
    };
    let mut seen = Vec::new();
    for nops in [[1, 1], [30, 1], [1, 300], [1, 150], [1, 144], [1, 138], [1, 20], [1, 10], [1, 9]] {
        let whole = run(nops, 100_000);
        assert!(whole.contains("illegal instruction"), "{whole}");
        for slice in [1, 7, 20, 333] {
            assert_eq!(run(nops, slice), whole, "{nops:?}, {slice} cycles at once");
        }
        seen.push(whole.contains("tile (1,2)"));
    }
    assert!(seen.contains(&true) && seen.contains(&false), "both tiles are first once");
}

/// A core computes meanwhile, so that windows end elsewhere when time is cut.
#[test]
fn a_host_is_held_behind_many_writes_and_for_the_same_time_however_time_is_cut() {
    let far = NocXy::new(16, 11);
    let count = code(&[(Op::Addi, 5, 5, 0, 1), (Op::Sw, 0, 0, 5, 0x400), (Op::Jal, 0, 0, 0, -8)]);
    let times = |cut: u64, parking: bool| {
        let mut chip = Chip::new(ChipConfig { parking, ..ChipConfig::new(Board::P150) }).expect("the board tables fit");
        start(&mut chip, WORKER, &count);
        aim(&mut chip, Window { ordering: Some(Ordering::Strict), ..Window::unicast(far, 0) });
        let mut times = Vec::new();
        for round in 0..4u64 {
            for _ in 0..(1001 + 7 * round) / cut {
                chip.run(cut).expect("nothing is wrong");
            }
            chip.run((1001 + 7 * round) % cut).expect("nothing is wrong");
            for word in 0..150u64 {
                chip.bar_write(Bar::Bar0, 0x1000 + 4 * word, &word.to_le_bytes()[..4])
                    .expect("window 0 shows the tile");
                times.push(chip.now());
            }
        }
        times
    };
    let whole = times(1 << 20, true);
    let written = whole[149] - whole[0];
    assert!(written > 149 * crate::timing::HOST_WRITE, "150 strict writes took {written} cycles");
    for (cut, parking) in [(1, true), (13, true), (1000, true), (1 << 20, false), (1, false)] {
        assert_eq!(times(cut, parking), whole, "cut {cut}, parking {parking}");
    }
}
