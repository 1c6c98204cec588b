//! The shared library as an outside host sees it, through the C interface alone.

mod common;

use common::{alone, alone_and_well, library, text};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{self, Processor};
use tilework_abi::tlb::{self, Bar, Ordering, Window};
use tilework_abi::{noc, pci};
use tilework_libttsim_client::{Client, PCI_ID, WINDOW, strict};
use tilework_riscv::{Insn, Op, encode};

const TILE: NocXy = NocXy::new(1, 2);
/// The first port of a DRAM bank that every board has (the original's `device.py`).
const DRAM: NocXy = NocXy::new(17, 12);
/// A window of 4 GiB.
const LARGE: u32 = tlb::COUNT_2M;

fn open() -> Client {
    Client::open(library().as_os_str(), 1 << 20).unwrap()
}

/// Bytes that are not all alike, different for each seed.
fn pattern(seed: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

fn read(client: &mut Client, window: u32, tile: NocXy, addr: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    client.read(window, strict(tile), addr, &mut out);
    out
}

/// Loads `program` on BRISC of a tile and lets it run.
fn start(client: &mut Client, tile: NocXy, program: &[Insn]) {
    let bytes: Vec<u8> = program.iter().flat_map(|&insn| encode(insn).unwrap().to_le_bytes()).collect();
    client.write_word(tile, tensix::SOFT_RESET_0, tensix::SOFT_RESET_ALL_CORES);
    client.write(WINDOW, strict(tile), 0, &bytes);
    client.write_word(tile, tensix::SOFT_RESET_0, tensix::SOFT_RESET_BRISC_RUNS);
}

const fn insn(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> Insn {
    Insn { op, rd, rs1, rs2, imm }
}

#[test]
fn the_configuration_space_shows_a_blackhole_with_three_bars() {
    alone_and_well("the_configuration_space_shows_a_blackhole_with_three_bars", || {
        let client = open();
        assert_eq!(client.config(pci::config::ID), PCI_ID);
        assert_eq!(client.config(pci::config::CLASS) >> 8, pci::CLASS);
        let bars = Bar::ALL.map(|bar| (client.bar(bar), client.bar(bar) + bar.size()));
        for (bar, (start, end)) in Bar::ALL.into_iter().zip(bars) {
            assert!(start != 0 && start.is_multiple_of(bar.size()), "{bar} at {start:#x}");
            assert!(bars.iter().filter(|other| other.0 < end && start < other.1).count() == 1, "{bar} overlaps");
        }
        // libttsim_api.md, "Config space": a device that is not there reads as ones.
        assert_eq!(client.config_of(1 << 3, 0), u32::MAX);
    });
}

#[test]
fn l1_and_dram_keep_what_is_written_through_windows_of_both_sizes() {
    alone_and_well("l1_and_dram_keep_what_is_written_through_windows_of_both_sizes", || {
        let mut client = open();
        let l1 = u64::from(tensix::L1_SIZE);
        let places = [(TILE, 0), (TILE, 0x1003), (TILE, l1 - 777), (DRAM, 0x1F_FF00), (DRAM, 0xF000_0001)];
        for (seed, (tile, addr)) in (1..).zip(places) {
            for (windows, len) in [([WINDOW, LARGE], 5), ([LARGE, WINDOW], 777)] {
                let data = pattern(seed + len as u32, len);
                client.write(windows[0], strict(tile), addr, &data);
                assert!(
                    read(&mut client, windows[1], tile, addr, len) == data,
                    "{tile} {addr:#x} by windows {windows:?}"
                );
            }
        }
    });
}

#[test]
fn a_multicast_window_writes_to_the_tiles_of_its_rectangle_and_to_no_other() {
    alone_and_well("a_multicast_window_writes_to_the_tiles_of_its_rectangle_and_to_no_other", || {
        let mut client = open();
        let data = pattern(9, 300);
        let window = Window {
            start: NocXy::new(2, 3),
            multicast: true,
            ordering: Some(Ordering::Strict),
            ..Window::unicast(NocXy::new(11, 5), 0)
        };
        client.write(WINDOW, window, 0x4002, &data);
        for x in (1..=7).chain(10..=14) {
            for y in 2..=11 {
                let inside = (2..=11).contains(&x) && (3..=5).contains(&y);
                let got = read(&mut client, WINDOW + 1, NocXy::new(x, y), 0x4002, 300);
                assert!(got == if inside { data.clone() } else { vec![0; 300] }, "({x},{y})");
            }
        }
    });
}

#[test]
fn after_exit_and_init_the_card_is_new() {
    alone_and_well("after_exit_and_init_the_card_is_new", || {
        let mut client = open();
        for turn in 0..3 {
            assert_eq!(client.config(pci::config::ID), PCI_ID);
            assert_eq!(read(&mut client, WINDOW, TILE, 0x100, 4), [0; 4], "turn {turn}");
            client.write(WINDOW, strict(TILE), 0x100, &[1, 2, 3, 4]);
            assert_eq!(read(&mut client, WINDOW, TILE, 0x100, 4), [1, 2, 3, 4]);
            client.restart();
        }
    });
}

/// Where the timed program writes: how often it went round, the clock at its start and at its end,
/// a word that says it is done, and what it read from DRAM.
const RESULT: u32 = 0x8000;
const READ_TO: u32 = 0x9000;

/// Takes the time, reads 2 KiB of DRAM, adds up its words over and over, and takes the time again.
fn timed_program() -> Vec<Insn> {
    let set = |rd, value: u32| {
        let high = value.wrapping_add(0x800) & 0xFFFF_F000;
        let low = value.wrapping_sub(high).cast_signed();
        [insn(Op::Lui, rd, 0, 0, high.cast_signed()), insn(Op::Addi, rd, rd, 0, low)]
    };
    let mut program = Vec::new();
    program.extend(set(1, RESULT));
    program.extend(set(2, tensix::WALL_CLOCK_L));
    program.extend([insn(Op::Lw, 3, 2, 0, 0), insn(Op::Sw, 0, 1, 3, 4)]);
    program.extend(set(5, noc::NIU0_BASE));
    let fields = [
        (noc::init::TARG_ADDR_HI, DRAM.encode()),
        (noc::init::RET_ADDR_LO, READ_TO),
        (noc::init::RET_ADDR_HI, TILE.encode()),
        (noc::init::CTRL, noc::ctrl::CMD_RD | noc::ctrl::RESP_MARKED),
        (noc::init::AT_LEN_BE, 2048),
        (noc::init::CMD_CTRL, 1),
    ];
    for (field, value) in fields {
        program.extend(set(6, value));
        program.push(insn(Op::Sw, 0, 5, 6, field.cast_signed()));
    }
    let response = (noc::COUNTERS + 4 * noc::counter::MST_RD_RESP_RECEIVED as u32).cast_signed();
    program.extend([insn(Op::Lw, 6, 5, 0, response), insn(Op::Beq, 0, 6, 0, -4)]);
    program.extend(set(8, 50));
    program.extend(set(9, READ_TO));
    program.extend(set(11, READ_TO + 2048));
    // For each turn: for each word: sum it up.
    program.extend([
        insn(Op::Addi, 10, 9, 0, 0),
        insn(Op::Lw, 12, 10, 0, 0),
        insn(Op::Add, 7, 7, 12, 0),
        insn(Op::Addi, 10, 10, 0, 4),
        insn(Op::Bne, 0, 10, 11, -12),
        insn(Op::Addi, 8, 8, 0, -1),
        insn(Op::Bne, 0, 8, 0, -24),
        insn(Op::Sw, 0, 1, 7, 0),
        insn(Op::Lw, 3, 2, 0, 0),
        insn(Op::Sw, 0, 1, 3, 8),
        insn(Op::Addi, 3, 0, 0, 1),
        insn(Op::Sw, 0, 1, 3, 12),
        insn(Op::Jal, 0, 0, 0, 0),
    ]);
    program
}

/// Runs the timed program in slices of so many clocks; prints what it left behind.
fn timed_run(slice: u32) {
    let mut client = open();
    client.write(WINDOW, strict(DRAM), 0, &pattern(3, 2048));
    start(&mut client, TILE, &timed_program());
    for _ in 0..400_000 / slice {
        client.clock(slice);
    }
    let result = read(&mut client, WINDOW, TILE, RESULT.into(), 16);
    assert_eq!(result[12], 1, "the program has not come to its end");
    assert!(read(&mut client, WINDOW, TILE, READ_TO.into(), 2048) == pattern(3, 2048));
    println!("result {result:?}");
}

/// What a run said of its result.
fn result_of(name: &str, slice: u32) -> String {
    let said = text(&alone_and_well(name, || timed_run(slice)).stdout);
    said.lines().find_map(|line| line.split_once("result ")).expect("a result is printed").1.to_owned()
}

#[test]
fn slices_of_one_clock() {
    result_of("slices_of_one_clock", 1);
}

#[test]
fn slices_of_a_thousand_clocks() {
    result_of("slices_of_a_thousand_clocks", 1000);
}

#[test]
fn results_and_cycle_counts_depend_neither_on_the_slices_nor_on_the_run() {
    let once = result_of("slices_of_a_thousand_clocks", 1000);
    assert_eq!(once, result_of("slices_of_a_thousand_clocks", 1000));
    assert_eq!(once, result_of("slices_of_one_clock", 1));
    // The sum of the words, 50 times over, by other means.
    let words = pattern(3, 2048);
    let sum = words.as_chunks::<4>().0.iter().fold(0u32, |sum, word| sum.wrapping_add(u32::from_le_bytes(*word)));
    let first = sum.wrapping_mul(50).to_le_bytes();
    let shown = format!("{first:?}");
    assert!(once.starts_with(shown.trim_end_matches(']')), "{once} does not begin with {shown}");
}

/// An illegal instruction on BRISC, and what the host sees from then on.
fn faulting_run() {
    let mut client = open();
    client.write(WINDOW, strict(TILE), 0x100, &[1; 4]);
    start(&mut client, TILE, &[insn(Op::Addi, 1, 0, 0, 5), insn(Op::Illegal, 0, 0, 0, -1)]);
    client.clock(1000);
    for _ in 0..3 {
        assert_eq!(read(&mut client, WINDOW, TILE, 0x100, 4), [0xFF; 4]);
        client.clock(10);
    }
    client.restart();
    assert_eq!(read(&mut client, WINDOW, TILE, 0x100, 4), [0; 4], "a new card works");
}

#[test]
fn a_fault_is_told_once_and_reads_answer_with_ones() {
    let name = "a_fault_is_told_once_and_reads_answer_with_ones";
    let said = text(&alone_and_well(name, faulting_run).stderr);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("tilework: ")).collect();
    let [fault, stopped] = lines[..] else { panic!("two lines were expected:\n{said}") };
    for word in ["(1,2)", "BRISC", "pc 0x4", "cycle"] {
        assert!(fault.contains(word), "{word:?} is missing in: {fault}");
    }
    assert!(stopped.contains("stopped"), "{stopped}");
}

#[test]
fn a_fault_ends_the_process_where_that_is_wanted() {
    let name = "a_fault_ends_the_process_where_that_is_wanted";
    let output = alone(name, &[("TILEWORK_ON_FAULT", "abort")], faulting_run);
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("pc 0x4") && !said.contains("panicked"), "{said}");
}

#[test]
fn a_bug_that_does_not_exist_is_told() {
    let name = "a_bug_that_does_not_exist_is_told";
    let names = |names| {
        let output = alone(name, &[("TILEWORK_WITHOUT_BUGS", names)], || drop(open()));
        assert!(output.status.success());
        text(&output.stderr)
    };
    let said = names("mop-count,shiftxa");
    assert!(said.contains("\"shiftxa\" is no bug") && said.contains("tdma-parameters"), "{said}");
    let said = names("mop-count,vector-stalls");
    assert!(!said.contains("tilework:"), "{said}");
}

#[test]
fn a_number_of_threads_that_is_none_is_told() {
    let name = "a_number_of_threads_that_is_none_is_told";
    for (threads, told) in [("0", true), ("many", true), ("3", false)] {
        let output = alone(name, &[("TILEWORK_THREADS", threads)], || {
            let mut client = open();
            client.write(WINDOW, strict(TILE), 0x100, &[7; 4]);
            assert_eq!(read(&mut client, WINDOW, TILE, 0x100, 4), [7; 4]);
        });
        let said = text(&output.stderr);
        assert!(output.status.success(), "{threads}: {said}");
        assert_eq!(said.contains(&format!("TILEWORK_THREADS is {threads:?}; a number from 1")), told, "{said}");
    }
}

#[test]
fn wrong_accesses_are_told_and_answered_with_ones_and_the_card_goes_on() {
    let name = "wrong_accesses_are_told_and_answered_with_ones_and_the_card_goes_on";
    let output = alone_and_well(name, || {
        let mut client = open();
        let mut out = [0; 8];
        client.bus_read(0x10, &mut out);
        assert_eq!(out, [0xFF; 8], "no BAR is there");
        client.bus_read(client.bar(Bar::Bar0) + Bar::Bar0.size() - 4, &mut out);
        assert_eq!(out, [0xFF; 8], "half of it lies outside");
        assert_eq!(client.config(2), u32::MAX);
        client.write(WINDOW, strict(TILE), 0x100, &[7; 4]);
        assert_eq!(read(&mut client, WINDOW, TILE, 0x100, 4), [7; 4]);
    });
    assert_eq!(text(&output.stderr).lines().filter(|line| line.starts_with("tilework: ")).count(), 3);
}

#[test]
fn cores_start_where_their_reset_registers_say() {
    alone_and_well("cores_start_where_their_reset_registers_say", || {
        let mut client = open();
        // Each TRISC stores its own number.
        let starts = [tensix::TRISC0_RESET_PC, tensix::TRISC1_RESET_PC, tensix::TRISC2_RESET_PC];
        client.write_word(TILE, tensix::SOFT_RESET_0, tensix::SOFT_RESET_ALL_CORES);
        for (i, reg) in (0..).zip(starts) {
            let program = [
                insn(Op::Lui, 1, 0, 0, RESULT.cast_signed()),
                insn(Op::Addi, 2, 0, 0, i + 1),
                insn(Op::Sw, 0, 1, 2, 4 * i),
                insn(Op::Jal, 0, 0, 0, 0),
            ];
            let bytes: Vec<u8> = program.iter().flat_map(|&insn| encode(insn).unwrap().to_le_bytes()).collect();
            let at = 0x2000 + 0x100 * i.cast_unsigned();
            client.write(WINDOW, strict(TILE), at.into(), &bytes);
            client.write_word(TILE, reg, at);
        }
        client.write_word(TILE, tensix::TRISC_RESET_PC_OVERRIDE, 7);
        let released = [Processor::Trisc0, Processor::Trisc1, Processor::Trisc2].map(Processor::soft_reset_bit);
        client.write_word(TILE, tensix::SOFT_RESET_0, tensix::SOFT_RESET_ALL_CORES & !released.iter().sum::<u32>());
        client.clock(1000);
        let words: Vec<u32> = (0..3).map(|i| client.read_word(TILE, RESULT + 4 * i)).collect();
        assert_eq!(words, [1, 2, 3]);
    });
}

/// `lui` of a word, and `addi` for its low part.
fn load_immediate(rd: u8, word: u32) -> [Insn; 2] {
    let low = (word << 20).cast_signed() >> 20;
    let high = word.wrapping_sub(low.cast_unsigned()).cast_signed();
    [insn(Op::Lui, rd, 0, 0, high), insn(Op::Addi, rd, rd, 0, low)]
}

/// BRISC pushes `words` to Tensix thread 1.
fn push(client: &mut Client, words: &[u32]) {
    let mut program = load_immediate(1, tensix::INSTRN_BUF_BASE + 0x1_0000).to_vec();
    for &word in words {
        program.extend(load_immediate(2, word));
        program.push(insn(Op::Sw, 0, 1, 2, 0));
    }
    program.push(insn(Op::Jal, 0, 0, 0, 0));
    start(client, TILE, &program);
    client.clock(1000);
}

#[test]
fn a_fault_of_the_coprocessor_says_who_pushed_and_where() {
    let name = "a_fault_of_the_coprocessor_says_who_pushed_and_where";
    let conv = tensix::insn::Conv3s1::build().addr_mod(1).word();
    let said = text(&alone_and_well(name, || push(&mut open(), &[tensix::insn::Incrwc::build().word(), conv])).stderr);
    let want = format!("({conv:#010x}) of Tensix thread T1, matrix unit (FPU): not built: ");
    assert!(said.contains(&want) && said.contains(", pushed by BRISC at pc 0x1c, cycle"), "{said}");
}

#[test]
fn what_was_executed_is_written_when_the_card_is_powered_off() {
    let name = "what_was_executed_is_written_when_the_card_is_powered_off";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coverage.txt");
    let increment = tensix::insn::Incrwc::build();
    let words = [increment.dst_inc(3).word(), increment.dst_inc(4).word(), increment.dst_cr(true).word()];
    let output = alone(name, &[("TILEWORK_COVERAGE", file.to_str().unwrap())], || {
        let mut client = open();
        push(&mut client, &words);
        // A second card adds to it.
        client.restart();
        push(&mut client, &words[..1]);
    });
    assert!(output.status.success(), "{}", text(&output.stderr));
    let want = "matrix unit (FPU):\n           3  INCRWC\n           1  INCRWC dst_cr\n";
    assert_eq!(std::fs::read_to_string(file).unwrap(), want);
}
