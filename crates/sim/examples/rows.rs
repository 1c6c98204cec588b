//! Prints how fast the chip runs bare programs: `cargo run --release -p tilework-sim --example rows [ROW...]`.
//!
//! Rows: `alu:N[:WORK]` a loop of ten instructions (arithmetic, a store and a load of L1, a counter in L1) on N tiles (WORK tile-cycles in all); `step:N` the same,
//! one cycle a call; `idle:N` five cores of N tiles polling one word each, `idlestep:N` one cycle a call; `noc:N:SIZE:COUNT` COUNT
//! reads of SIZE bytes from DRAM, one after the other, on N tiles. Without arguments: a table of all. Each row runs once to warm up and is
//! printed with the median of five runs.

use std::time::Instant;
use tilework_abi::board::Board;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix as map;
use tilework_abi::tlb::{self, Window, WindowSize};
use tilework_riscv::{Insn, Op, encode};
use tilework_sim::pcie::Bar;
use tilework_sim::{Chip, ChipConfig};

const RUNS: usize = 5;
/// Simulated cycles times busy tiles of a row.
const WORK: u32 = 20_000_000;
/// Word 0: loop count; word 1: done; word 2: the tile's own coordinates.
const RESULT: u32 = 0x8000;
/// The other cores start at 0 too (BlackholeA0/TensixTile/BabyRISCV/README.md, reset program counters).
const RESET_PCS: [(u32, u32); 6] =
    [(0xFFB1_2228, 0), (0xFFB1_222C, 0), (0xFFB1_2230, 0), (0xFFB1_2234, 7), (0xFFB1_2238, 0), (0xFFB1_223C, 1)];
const ROWS: [&str; 17] = [
    "alu:1",
    "alu:2",
    "alu:4",
    "alu:8",
    "alu:16",
    "alu:32",
    "alu:64",
    "alu:140",
    "step:0",
    "step:1",
    "step:8",
    "idle:140",
    "idlestep:140",
    "noc:1:64:20000",
    "noc:1:2048:20000",
    "noc:1:16384:5000",
    "noc:64:2048:500",
];

fn word(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> u32 {
    encode(Insn { op, rd, rs1, rs2, imm }).expect("operands fit")
}

fn li(rd: u8, value: u32) -> [u32; 2] {
    let low = value.cast_signed() << 20 >> 20;
    let high = value.wrapping_sub(low.cast_unsigned());
    [word(Op::Lui, rd, 0, 0, high.cast_signed()), word(Op::Addi, rd, rd, 0, low)]
}

fn back(code: &[u32], to: usize) -> i32 {
    4 * (to as i32 - code.len() as i32)
}

/// Ten instructions a turn.
fn alu() -> Vec<u32> {
    let mut code = [li(5, 0x9000), li(6, RESULT)].concat();
    code.extend([word(Op::Addi, 7, 0, 0, 0), word(Op::Addi, 10, 0, 0, 3), word(Op::Addi, 11, 0, 0, 5)]);
    let head = code.len();
    code.extend([
        word(Op::Addi, 7, 7, 0, 1),
        word(Op::Add, 12, 10, 11, 0),
        word(Op::Xor, 13, 12, 7, 0),
        word(Op::Mul, 14, 13, 11, 0),
        word(Op::Sll, 15, 14, 10, 0),
        word(Op::Sw, 0, 5, 15, 0),
        word(Op::Lw, 16, 5, 0, 0),
        word(Op::Add, 10, 10, 16, 0),
        word(Op::Sw, 0, 6, 7, 0),
    ]);
    code.push(word(Op::Jal, 0, 0, 0, back(&code, head)));
    code
}

/// Polls a word with a fence.
fn idle() -> Vec<u32> {
    vec![word(Op::Fence, 0, 0, 0, 0xff), word(Op::Lw, 5, 0, 0, 0x400), word(Op::Beq, 0, 5, 0, -8)]
}

/// NoC 0, command buffer 0: reads of `size` bytes at growing DRAM addresses, each waited for (BlackholeA0/NoC/MemoryMap.md).
fn noc(dram: NocXy, size: u32, count: u32) -> Vec<u32> {
    const COUNTER: u32 = map_niu() + 0x208;
    let mut code = [li(5, map_niu()), li(6, RESULT), li(28, COUNTER)].concat();
    code.push(word(Op::Lw, 7, 28, 0, 0));
    for (rd, value) in [(8, 0), (9, count), (10, size), (11, 0x10000), (12, 0)] {
        code.extend(li(rd, value));
    }
    code.push(word(Op::Lw, 13, 6, 0, 8));
    code.extend([li(14, 1 << 4), li(15, dram.encode())].concat());
    let head = code.len();
    code.extend([word(Op::Lw, 16, 5, 0, 0x40), word(Op::Bne, 0, 16, 0, -4)]);
    let fields = [(12, 0x00), (0, 0x04), (15, 0x08), (11, 0x0C), (0, 0x10), (13, 0x14), (14, 0x1C), (10, 0x20)];
    code.extend(fields.map(|(reg, offset)| word(Op::Sw, 0, 5, reg, offset)));
    code.extend([word(Op::Addi, 17, 0, 0, 1), word(Op::Sw, 0, 5, 17, 0x40), word(Op::Addi, 7, 7, 0, 1)]);
    code.extend([word(Op::Lw, 16, 28, 0, 0), word(Op::Bne, 0, 16, 7, -4)]);
    code.extend([word(Op::Add, 12, 12, 10, 0), word(Op::Addi, 8, 8, 0, 1), word(Op::Sw, 0, 6, 8, 0)]);
    code.push(word(Op::Blt, 0, 8, 9, back(&code, head)));
    code.extend([word(Op::Addi, 17, 0, 0, 1), word(Op::Sw, 0, 6, 17, 4), word(Op::Jal, 0, 0, 0, 0)]);
    code
}

const fn map_niu() -> u32 {
    tilework_abi::noc::NIU0_BASE
}

fn write(chip: &mut Chip, xy: NocXy, addr: u32, data: &[u8]) {
    let base = u64::from(addr) & !(tlb::SIZE_2M - 1);
    for (i, word) in Window::unicast(xy, base).encode(WindowSize::Small).into_iter().enumerate() {
        chip.bar_write(Bar::Bar0, tlb::REGS + 4 * i as u64, &word.to_le_bytes()).expect("a window register");
    }
    chip.bar_write(Bar::Bar0, u64::from(addr) - base, data).expect("the window shows the tile");
}

fn start(tiles: &[NocXy], program: &[u32], reset: u32) -> Chip {
    let mut chip = Chip::new(ChipConfig::new(Board::P150)).expect("the board tables fit");
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    for &xy in tiles {
        write(&mut chip, xy, 0, &bytes);
        write(&mut chip, xy, RESULT, &[0; 8]);
        write(&mut chip, xy, RESULT + 8, &xy.encode().to_le_bytes());
        for (addr, value) in RESET_PCS {
            write(&mut chip, xy, addr, &value.to_le_bytes());
        }
        write(&mut chip, xy, map::SOFT_RESET_0, &reset.to_le_bytes());
    }
    chip.run(20_000).expect("no fault");
    chip
}

fn timed(mut run: impl FnMut() -> (f64, String)) -> (f64, String) {
    run();
    let mut runs: Vec<_> = (0..RUNS).map(|_| run()).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    runs.swap_remove(RUNS / 2)
}

fn busy(tiles: &[NocXy], work: u64, step: bool) -> (f64, String) {
    let cycles = work / tiles.len().max(1) as u64 / if step { 10 } else { 1 };
    let mut chip = start(tiles, &alu(), map::SOFT_RESET_BRISC_RUNS);
    let before = chip.stats();
    let clock = Instant::now();
    if step {
        (0..cycles).for_each(|_| chip.run(1).expect("no fault"));
    } else {
        chip.run(cycles).expect("no fault");
    }
    let seconds = clock.elapsed().as_secs_f64();
    let done = chip.stats().instructions - before.instructions;
    let (mips, each) = (done as f64 / seconds / 1e6, seconds / cycles as f64 * 1e9);
    (seconds, format!("{mips:8.1} MIPS, {each:.1} ns a cycle, {done} instructions in {cycles} cycles"))
}

fn sleeping(tiles: &[NocXy], step: bool) -> (f64, String) {
    let cycles = 1_000_000;
    let mut chip = start(tiles, &idle(), 0);
    let clock = Instant::now();
    for _ in 0..if step { cycles } else { 1 } {
        chip.run(if step { 1 } else { cycles }).expect("no fault");
    }
    let seconds = clock.elapsed().as_secs_f64();
    (seconds, format!("{:.2} ns a cycle", seconds / cycles as f64 * 1e9))
}

fn reads(tiles: &[NocXy], size: u32, count: u32) -> (f64, String) {
    let dram = Board::P150.dram().banks()[0].first_port;
    let mut chip = start(&[], &[], 0);
    let program: Vec<u8> = noc(dram, size, count).iter().flat_map(|word| word.to_le_bytes()).collect();
    for &xy in tiles {
        write(&mut chip, xy, 0, &program);
        write(&mut chip, xy, RESULT, &[0; 8]);
        write(&mut chip, xy, RESULT + 8, &xy.encode().to_le_bytes());
    }
    chip.run(20_000).expect("no fault");
    for &xy in tiles {
        write(&mut chip, xy, map::SOFT_RESET_0, &map::SOFT_RESET_BRISC_RUNS.to_le_bytes());
    }
    let (before, clock) = (chip.now(), Instant::now());
    let done = |chip: &Chip| tiles.iter().all(|&xy| chip.tile(xy).is_some_and(|t| t.l1()[RESULT as usize + 4] == 1));
    while !done(&chip) {
        chip.run(1000).expect("no fault");
    }
    let seconds = clock.elapsed().as_secs_f64();
    let each = seconds / f64::from(count) / tiles.len() as f64 * 1e6;
    (seconds, format!("{each:.3} us a read, {} cycles", chip.now() - before))
}

fn main() {
    let mut rows: Vec<String> = std::env::args().skip(1).collect();
    if rows.is_empty() {
        rows = ROWS.map(String::from).to_vec();
    }
    let all: Vec<NocXy> = Board::P150.tensix_tiles().collect();
    for row in rows {
        let parts: Vec<&str> = row.split(':').collect();
        let number = |i: usize| parts.get(i).and_then(|p| p.parse::<u32>().ok()).unwrap_or(1);
        let work = if parts.len() > 2 { number(2) } else { WORK };
        let tiles = &all[..(number(1) as usize).min(all.len())];
        let (_, text) = timed(|| match parts[0] {
            "alu" => busy(tiles, work.into(), false),
            "step" => busy(tiles, work.into(), true),
            "idle" => sleeping(tiles, false),
            "idlestep" => sleeping(tiles, true),
            _ => reads(tiles, number(2), number(3)),
        });
        println!("{row:18} {text}");
    }
}
