//! Random firmware: images that consist mostly of valid instructions, on some of a tile's cores.
//!
//! The registers start out pointing at the devices of the tile's address space, so that loads and
//! stores reach them. Each input runs twice, once with parking and in one piece, once without
//! parking and in several pieces: time, failure and memory must be the same.

use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{self, Processor};
use tilework_abi::{noc, stream};
use tilework_riscv::{Format, Insn, Op, TABLE, encode};

use crate::Input;
use crate::rig::Rig;

/// Longest image, in words.
const WORDS: usize = 256;
/// Where each core's image starts, a page apart.
const fn code(core: Processor) -> u32 {
    core as u32 * 0x1000
}
/// Cycles that the cores run.
const CYCLES: u64 = 6700;
/// The tile that runs, and one that its requests can reach.
const TILE: NocXy = NocXy::new(2, 3);
const OTHER: NocXy = NocXy::new(3, 3);

/// Initial values of x1 and the following registers.
const BASES: [u32; 18] = [
    0,
    0x2_0000,
    tensix::L1_SIZE - 64,
    tensix::LOCAL_BASE + 0x100,
    noc::NIU0_BASE,
    noc::NIU1_BASE + noc::COUNTERS,
    stream::reg_addr(4, 0),
    stream::reg_addr(4, stream::SPACE_AVAILABLE_UPDATE),
    tensix::TDMA_BASE,
    tensix::DEBUG_BASE + 0x1B0,
    tensix::DEBUG_BASE + 0x228,
    tensix::MOP_CFG_BASE,
    tensix::GPR_BASE,
    tensix::INSTRN_BUF_BASE,
    tensix::PC_BUF_BASE,
    tensix::MAILBOX_BASE,
    tensix::CFG_BASE,
    0xFFC0_0000,
];

/// Runs `input`; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let asleep = play(input, true, [CYCLES]);
    // Split at a cycle that the input chooses, with single cycles after it.
    let cut = input.iter().map(|&byte| u64::from(byte)).sum::<u64>() % (CYCLES - 20);
    let slices = std::iter::once(cut).chain(std::iter::repeat_n(1, 20)).chain([CYCLES - 20 - cut]);
    let awake = play(input, false, slices);
    assert_eq!(asleep.failed, awake.failed, "sleep changed the failure");
    // A fault stops the chip somewhere in its slice; its exact cycle is part of its text.
    if asleep.failed.is_none() {
        assert_eq!(asleep.time, awake.time, "sleep changed the time");
    }
    assert!(asleep.memory == awake.memory, "sleep changed memory");
}

/// Outcome of a run.
struct Outcome {
    failed: Option<String>,
    time: u64,
    memory: Vec<u8>,
}

fn play(input: &[u8], parking: bool, slices: impl IntoIterator<Item = u64>) -> Outcome {
    let mut input = Input::new(input);
    let mut rig = Rig::new(parking);
    let cores = input.byte();
    rig.tile_word(TILE, tensix::SOFT_RESET_0, tensix::SOFT_RESET_ALL_CORES);
    let mut held = tensix::SOFT_RESET_ALL_CORES;
    for core in Processor::ALL {
        // BRISC runs if no other core does.
        if cores & 1 << core.index() != 0 || cores & 0x1F == 0 && core == Processor::Brisc {
            rig.tile_write(TILE, code(core).into(), &image(&mut input));
            held &= !core.soft_reset_bit();
        }
    }
    let starts = [tensix::TRISC0_RESET_PC, tensix::TRISC1_RESET_PC, tensix::TRISC2_RESET_PC];
    for (core, reg) in [Processor::Trisc0, Processor::Trisc1, Processor::Trisc2].into_iter().zip(starts) {
        rig.tile_word(TILE, reg, code(core));
    }
    rig.tile_word(TILE, tensix::NCRISC_RESET_PC, code(Processor::Ncrisc));
    rig.tile_word(TILE, tensix::TRISC_RESET_PC_OVERRIDE, 7);
    rig.tile_word(TILE, tensix::NCRISC_RESET_PC_OVERRIDE, 1);
    rig.tile_word(TILE, tensix::SOFT_RESET_0, held);
    for slice in slices {
        rig.run(slice);
    }
    let memory =
        [rig.tile_read(TILE, 0, 0x6000), rig.tile_read(TILE, 0x2_0000, 0x1000), rig.tile_read(OTHER, 0, 0x100)]
            .concat();
    Outcome { failed: rig.failed().map(str::to_owned), time: rig.now(), memory }
}

/// An image: loads the registers, runs the input's instructions, then stops.
fn image(input: &mut Input) -> Vec<u8> {
    let mut words = Vec::new();
    for (rd, base) in (1..).zip(BASES) {
        let high = base.wrapping_add(0x800) & 0xFFFF_F000;
        words.extend(encode(Insn { op: Op::Lui, rd, rs1: 0, rs2: 0, imm: high.cast_signed() }));
        words.extend(encode(Insn { op: Op::Addi, rd, rs1: rd, rs2: 0, imm: base.wrapping_sub(high).cast_signed() }));
    }
    let count = usize::from(input.byte()) % WORDS;
    words.extend((0..count).map(|_| word(input)));
    words.extend(encode(Insn { op: Op::Jal, rd: 0, rs1: 0, rs2: 0, imm: 0 }));
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// One word: any, or an instruction with operands that fit.
fn word(input: &mut Input) -> u32 {
    let choice = input.byte();
    if choice >= 0xF8 {
        return input.word();
    }
    if choice >= 0xF0 {
        return encode(Insn { op: Op::Ttinsn, rd: 0, rs1: 0, rs2: 0, imm: input.word().cast_signed() }).unwrap_or(0);
    }
    let row = &TABLE[usize::from(choice) % TABLE.len()];
    let operands = input.word();
    // Mostly targets from x19 on, so that the base registers stay.
    let rd = if operands & 0xE0 == 0 { operands as u8 & 31 } else { 19 + (operands as u8 & 31) % 13 };
    let [rs1, rs2] = [operands >> 8, operands >> 13].map(|bits| bits as u8 & 31);
    let near = (operands >> 18).cast_signed();
    let imm = match row.format {
        Format::R | Format::Unary | Format::Fixed => 0,
        Format::I | Format::Jalr => near & 0x7FF,
        // Mostly aligned.
        Format::Load | Format::Store => near & if operands & 0xE000_0000 == 0 { 0x3F } else { 0x3C },
        Format::Shift => near & 31,
        Format::Branch | Format::Jal => (near & 0x3C) - 16,
        Format::U => near << 12,
        Format::Csr | Format::Fence => near & 0xFFF,
        Format::CsrImm => near & 0x1_FFFF,
        Format::Amo => near & 3,
        Format::Ttinsn | Format::Illegal => return operands,
    };
    let insn = Insn { op: row.op, rd, rs1, rs2, imm };
    let insn = match row.format {
        Format::Unary | Format::I | Format::Shift | Format::Load | Format::Jalr | Format::Csr => {
            Insn { rs2: 0, ..insn }
        }
        Format::U | Format::Jal | Format::CsrImm => Insn { rs1: 0, rs2: 0, ..insn },
        Format::Store | Format::Branch => Insn { rd: 0, ..insn },
        Format::Fence | Format::Fixed => Insn { rd: 0, rs1: 0, rs2: 0, ..insn },
        _ => insn,
    };
    encode(insn).unwrap_or(operands)
}
