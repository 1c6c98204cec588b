//! Tiles that speculate end in the same state as those that run window by window.

use crate::pcie::Bar;
use crate::{Chip, ChipConfig};
use tilework_abi::board::Board;
use tilework_abi::noc::{self, NocXy};
use tilework_abi::tensix::{self as map, Processor};
use tilework_abi::tlb::{self, Window, WindowSize};
use tilework_riscv::{Insn, Op, encode};

/// Where B, T0 and T1 start; what the tile sends and receives, and its parameters: seed and
/// target tile.
const CODE: [u32; 3] = [0, 0x400, 0x500];
const OUT: i32 = 0x100;
const INBOX: i32 = 0x700;
const SEED: i32 = 0x600;
const PEER: i32 = 0x604;
/// What B writes for T0, and T0 for B.
const TO_T0: i32 = 0x200;
const TO_B: i32 = 0x300;

type Code = Vec<(Op, u8, u8, u8, i32)>;

fn li(rd: u8, value: u32) -> Code {
    let low = value.cast_signed() << 20 >> 20;
    let high = value.wrapping_sub(low.cast_unsigned());
    vec![(Op::Lui, rd, 0, 0, high.cast_signed()), (Op::Addi, rd, rd, 0, low)]
}

fn xorshift() -> Code {
    vec![
        (Op::Slli, 6, 5, 0, 13),
        (Op::Xor, 5, 5, 6, 0),
        (Op::Srli, 6, 5, 0, 17),
        (Op::Xor, 5, 5, 6, 0),
        (Op::Slli, 6, 5, 0, 5),
        (Op::Xor, 5, 5, 6, 0),
    ]
}

fn to(code: &Code, target: usize) -> i32 {
    4 * (target as i32 - code.len() as i32)
}

/// Computes for a while with what others sent and what T0 wrote, then sends 16 bytes, and so on.
fn sender() -> Code {
    let mut code = li(8, noc::NIU0_BASE);
    code.push((Op::Lw, 5, 0, 0, SEED));
    code.push((Op::Lw, 9, 0, 0, PEER));
    code.push((Op::Addi, 10, 0, 0, 1));
    for (offset, value) in [(0x00, OUT), (0x04, 0), (0x0C, INBOX), (0x10, 0), (0x1C, 2), (0x20, 16)] {
        code.push((Op::Addi, 11, 0, 0, value));
        code.push((Op::Sw, 0, 8, 11, offset));
    }
    code.extend([(Op::Sw, 0, 8, 9, 0x08), (Op::Sw, 0, 8, 9, 0x14)]);
    let outer = code.len();
    code.extend(xorshift());
    code.push((Op::Andi, 12, 5, 0, 0x7f));
    let inner = code.len();
    code.extend([
        (Op::Sw, 0, 0, 5, TO_T0),
        (Op::Lw, 7, 0, 0, INBOX),
        (Op::Add, 5, 5, 7, 0),
        (Op::Lw, 7, 0, 0, TO_B),
        (Op::Xor, 5, 5, 7, 0),
        (Op::Addi, 12, 12, 0, -1),
    ]);
    code.push((Op::Bge, 0, 12, 0, to(&code, inner)));
    code.extend([(Op::Fence, 0, 0, 0, 0xff), (Op::Sw, 0, 0, 5, OUT), (Op::Csrrs, 7, 0, 0, 0xc00)]);
    code.extend([(Op::Sw, 0, 0, 7, OUT + 4), (Op::Sw, 0, 8, 10, 0x40)]);
    code.extend([(Op::Lw, 7, 8, 0, 0x40), (Op::Bne, 0, 7, 0, -4)]);
    code.push((Op::Jal, 0, 0, 0, to(&code, outer)));
    code
}

/// T0: mixes what B wrote with its local RAM.
fn mixer() -> Code {
    let mut code = li(2, map::LOCAL_BASE + 0x40);
    let head = code.len();
    code.extend([
        (Op::Lw, 6, 0, 0, TO_T0),
        (Op::Lw, 7, 2, 0, 0),
        (Op::Mul, 7, 7, 6, 0),
        (Op::Addi, 7, 7, 0, 77),
        (Op::Sw, 0, 2, 7, 0),
        (Op::Sb, 0, 2, 6, 6),
        (Op::Sh, 0, 0, 7, TO_B + 2),
        (Op::Fence, 0, 0, 0, 0xff),
    ]);
    code.push((Op::Jal, 0, 0, 0, to(&code, head)));
    code
}

/// T1: sleeps until a packet arrives, then notes when.
fn sleeper() -> Code {
    let mut code = vec![(Op::Addi, 9, 0, 0, 0x780)];
    let head = code.len();
    code.extend([(Op::Fence, 0, 0, 0, 0xff), (Op::Lw, 6, 0, 0, INBOX + 4)]);
    code.push((Op::Beq, 0, 6, 5, to(&code, head)));
    code.extend([(Op::Addi, 5, 6, 0, 0), (Op::Csrrs, 7, 0, 0, 0xc00), (Op::Sw, 0, 9, 7, 0)]);
    code.extend([(Op::Andi, 8, 7, 0, 0x7c), (Op::Addi, 9, 8, 0, 0x780)]);
    code.push((Op::Jal, 0, 0, 0, to(&code, head)));
    code
}

fn write(chip: &mut Chip, xy: NocXy, addr: u32, data: &[u8]) {
    let base = u64::from(addr) & !(tlb::SIZE_2M - 1);
    for (i, word) in Window::unicast(xy, base).encode(WindowSize::Small).into_iter().enumerate() {
        chip.bar_write(Bar::Bar0, tlb::REGS + 4 * i as u64, &word.to_le_bytes()).expect("a register of window 0");
    }
    chip.bar_write(Bar::Bar0, u64::from(addr) - base, data).expect("window 0 shows the tile");
}

/// Starts `count` tiles that send to each other in a ring.
fn ring(chip: &mut Chip, count: usize) -> Vec<NocXy> {
    let tiles: Vec<NocXy> = Board::P100.workers().take(count).collect();
    let programs = [sender(), mixer(), sleeper()];
    for (i, &xy) in tiles.iter().enumerate() {
        for (code, at) in programs.iter().zip(CODE) {
            let words = code.iter().map(|&(op, rd, rs1, rs2, imm)| encode(Insn { op, rd, rs1, rs2, imm }));
            let bytes: Vec<u8> = words.flat_map(|word| word.expect("operands fit").to_le_bytes()).collect();
            write(chip, xy, at, &bytes);
        }
        write(chip, xy, SEED.cast_unsigned(), &(0x1234_5671u32 << i).to_le_bytes());
        write(chip, xy, PEER.cast_unsigned(), &tiles[(i + 1) % count].encode().to_le_bytes());
        let pcs = [(0xFFB1_2228u32, CODE[1]), (0xFFB1_222C, CODE[2]), (0xFFB1_2234, 7)];
        for (register, value) in pcs {
            write(chip, xy, register, &value.to_le_bytes());
        }
        // B, T0 and T1 run.
        let held = map::SOFT_RESET_BRISC_RUNS & !(0b11 << 12);
        write(chip, xy, map::SOFT_RESET_0, &held.to_le_bytes());
    }
    tiles
}

#[test]
fn tiles_that_speculate_end_in_the_same_state_as_those_that_do_not() {
    type Outcome = Vec<(Vec<u8>, [u32; 2])>;
    let outcome = |parking, slice: u64, tiles: usize| -> (Outcome, u64) {
        let mut chip = Chip::new(ChipConfig { parking, ..ChipConfig::new(Board::P100) }).expect("fits");
        let tiles = ring(&mut chip, tiles);
        for _ in 0..60_000 / slice {
            chip.run(slice).expect("no fault");
        }
        // One more, so that all reach the same cycle.
        chip.run(60_000 % slice).expect("no fault");
        let end = |xy: NocXy| {
            let tile = chip.tile(xy).expect("a worker");
            // A sleeping core stands at the head of its loop, and so T1 is left out.
            (tile.l1()[..0x1000].to_vec(), [Processor::Brisc, Processor::Trisc0].map(|core| tile.pc(core)))
        };
        let packets = chip.stats().noc_packets;
        (tiles.into_iter().map(end).collect(), packets)
    };
    for tiles in [2, 7] {
        let (plain, packets) = outcome(false, 60_000, tiles);
        assert!(packets > 100, "{packets} packets");
        for (parking, slice) in [(true, 60_000), (true, 7_001), (true, 333), (true, 61), (false, 61)] {
            let (other, other_packets) = outcome(parking, slice, tiles);
            assert_eq!(other_packets, packets, "{tiles} tiles, slices of {slice}");
            for (tile, (one, two)) in plain.iter().zip(&other).enumerate() {
                let differs = one.0.iter().zip(&two.0).position(|(a, b)| a != b);
                assert_eq!((differs, one.1), (None, two.1), "tile {tile} of {tiles}, slices of {slice}");
            }
        }
    }
}
