//! Random programs for one core: RV32IM, Zba, Zbb, Zbkb and Zaamo, with loads and stores to L1 and
//! local RAM, forward branches and short loops.
//!
//! The instructions come from the table of `tilework-riscv`, so a new row is tested as soon as it
//! exists. Left out: CSRs (they show time), `.ttinsn` (the coprocessor is not under test here),
//! `ecall` and `ebreak` (they end the program).

use tilework_abi::tensix::{self, Processor};
use tilework_riscv::{Format, Insn, Op as Rv, TABLE, disassemble, encode, register_name};

use super::super::rng::Rng;
use super::super::script::Op;
use super::{DONE_VALUE, code, done, fill, hold, kept, look, release, tile, wait};
use crate::asm::{Asm, FENCE_ALL, Reg};

/// L1 bytes that the program loads and stores.
const DATA: u32 = 0x2_0000;
const DATA_BYTES: u32 = 0x800;
/// Where the registers and the local RAM are stored at the end.
const DUMP: u32 = 0x2_8000;
/// The part of local RAM in use, in words.
const LOCAL_WORDS: u32 = 64;
/// The address of that part.
const LOCAL: u32 = tensix::LOCAL_BASE + 0x200;

/// Registers with a fixed meaning: base of the L1 data (its middle), of the local data (its
/// middle), loop counter, an address for atomics, and the one that the dump needs.
const L1: Reg = 30;
const LOC: Reg = 29;
const COUNT: Reg = 28;
const POINT: Reg = 27;
const LAST: Reg = 31;

/// A random program.
pub(crate) struct Case {
    tile: (u8, u8),
    core: Processor,
    registers: Vec<u32>,
    data: Vec<u8>,
    /// Groups of instructions that are kept or left out together.
    groups: Vec<Vec<Insn>>,
}

impl Case {
    /// A program of up to 150 groups.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let count = rng.within(10..150) as usize;
        let mut groups: Vec<Vec<Insn>> = Vec::with_capacity(count);
        // Generated backwards, so that the distance of a forward branch to a group is known.
        while groups.len() < count {
            let next = group(rng, &groups);
            groups.push(next);
        }
        groups.reverse();
        let registers = (0..32).map(|_| rng.edge()).collect();
        Self {
            tile: tile(rng),
            core: rng.pick(&Processor::ALL),
            registers,
            data: rng.bytes(DATA_BYTES as usize),
            groups,
        }
    }

    /// How many groups.
    pub(crate) fn parts(&self) -> usize {
        self.groups.len()
    }

    /// The program; groups that are left out become `nop`s, so that every jump stays valid.
    fn program(&self, keep: &[bool]) -> Asm {
        let mut asm = Asm::default();
        asm.li(L1, LOCAL);
        for i in 0..LOCAL_WORDS {
            asm.li(1, self.registers[1].rotate_left(i));
            asm.sw(1, L1, 4 * i);
        }
        for (rd, &value) in (1..32).zip(&self.registers[1..]) {
            asm.li(rd, value);
        }
        asm.li(L1, DATA + DATA_BYTES / 2);
        asm.li(LOC, LOCAL + LOCAL_WORDS * 2);
        asm.li(POINT, DATA);
        for (group, &keep) in self.groups.iter().zip(keep) {
            for insn in group {
                let Insn { op, rd, rs1, rs2, imm } = if keep { *insn } else { NOP };
                asm.insn(op, rd, rs1, rs2, imm);
            }
        }
        asm.li(LAST, DUMP);
        for reg in 1..31 {
            asm.sw(reg, LAST, 4 * u32::from(reg));
        }
        asm.li(L1, LOCAL);
        for i in 0..LOCAL_WORDS {
            asm.lw(1, L1, 4 * i);
            asm.sw(1, LAST, 0x80 + 4 * i);
        }
        asm.fence();
        asm.li(1, done(self.core));
        asm.li(2, DONE_VALUE);
        asm.sw(2, 1, 0);
        asm.stop();
        asm
    }

    /// Loads the program, runs it and reads registers, local RAM and L1 back.
    pub(crate) fn script(&self, keep: &[bool]) -> Vec<Op> {
        let mut ops = hold(self.tile);
        ops.push(fill(self.tile, code(self.core), self.program(keep).bytes()));
        ops.push(fill(self.tile, DATA, self.data.clone()));
        ops.push(fill(self.tile, DUMP, vec![0; 0x80 + 4 * LOCAL_WORDS as usize]));
        ops.push(release(self.tile, &[self.core]));
        ops.push(wait(self.tile, self.core));
        ops.extend((1..31).map(|reg| look(self.tile, DUMP + 4 * reg, 4)));
        ops.push(look(self.tile, DUMP + 0x80, 4 * LOCAL_WORDS));
        ops.push(look(self.tile, DATA, DATA_BYTES));
        ops
    }

    /// The kept instructions.
    pub(crate) fn listing(&self, keep: &[bool]) -> Vec<String> {
        let start = code(self.core) + 4 * (2 + 3 * LOCAL_WORDS + 31 * 2 + 6);
        let mut out = vec![format!("{} of tile {:?}", self.core, self.tile)];
        // Only the start values that the kept instructions read.
        let read = |reg: Reg| kept(&self.groups, keep).flatten().any(|insn| insn.rs1 == reg || insn.rs2 == reg);
        let used = (1..LAST).filter(|&reg| read(reg));
        out.extend(used.map(|reg| format!("{} = {:#010x}", register_name(reg), self.start_value(reg))));
        let mut pc = start;
        for (group, &keep) in self.groups.iter().zip(keep) {
            for insn in group {
                if keep {
                    out.push(format!("{pc:#06x}: {}", disassemble(encode(*insn).unwrap_or_default(), pc)));
                }
                pc += 4;
            }
        }
        out
    }

    /// Value of a register at the start of the random part.
    fn start_value(&self, reg: Reg) -> u32 {
        match reg {
            L1 => DATA + DATA_BYTES / 2,
            LOC => LOCAL + LOCAL_WORDS * 2,
            POINT => DATA,
            _ => self.registers[usize::from(reg)],
        }
    }
}

const NOP: Insn = Insn { op: Rv::Addi, rd: 0, rs1: 0, rs2: 0, imm: 0 };

/// A group to precede `after`, which is in reverse order.
fn group(rng: &mut Rng, after: &[Vec<Insn>]) -> Vec<Insn> {
    match rng.within(0..16) {
        0 => {
            let skip = over(rng, after);
            let op = rng.pick(&[Rv::Beq, Rv::Bne, Rv::Blt, Rv::Bge, Rv::Bltu, Rv::Bgeu]);
            vec![Insn { op, rd: 0, rs1: source(rng), rs2: source(rng), imm: 4 + skip }]
        }
        1 if rng.one_in(2) => {
            let skip = over(rng, after);
            vec![Insn { op: Rv::Jal, rd: target(rng), rs1: 0, rs2: 0, imm: 4 + skip }]
        }
        1 => {
            let skip = over(rng, after);
            let auipc = Insn { op: Rv::Auipc, rd: POINT, rs1: 0, rs2: 0, imm: 0 };
            vec![auipc, Insn { op: Rv::Jalr, rd: target(rng), rs1: POINT, rs2: 0, imm: 8 + skip }]
        }
        2 => {
            let body: Vec<Insn> = (0..rng.within(1..8)).flat_map(|_| straight(rng)).collect();
            let back = -4 * (body.len() as i32 + 1);
            let turns = rng.within(1..12) as i32;
            let mut out = vec![Insn { op: Rv::Addi, rd: COUNT, rs1: 0, rs2: 0, imm: turns }];
            out.extend(body);
            out.push(Insn { op: Rv::Addi, rd: COUNT, rs1: COUNT, rs2: 0, imm: -1 });
            out.push(Insn { op: Rv::Bne, rd: 0, rs1: COUNT, rs2: 0, imm: back });
            out
        }
        _ => straight(rng),
    }
}

/// Bytes of the next few groups.
fn over(rng: &mut Rng, after: &[Vec<Insn>]) -> i32 {
    let n = rng.within(0..8) as usize;
    after.iter().rev().take(n).map(|group| 4 * group.len() as i32).sum()
}

/// An instruction without control flow, with its address set up if it needs one.
fn straight(rng: &mut Rng) -> Vec<Insn> {
    loop {
        let row = &TABLE[rng.within(0..TABLE.len() as u32) as usize];
        let mut insn = Insn { op: row.op, rd: target(rng), rs1: source(rng), rs2: source(rng), imm: 0 };
        match row.format {
            Format::R => {}
            Format::Unary => insn.rs2 = 0,
            Format::I => (insn.rs2, insn.imm) = (0, rng.edge().cast_signed() << 20 >> 20),
            Format::Shift => (insn.rs2, insn.imm) = (0, rng.within(0..32).cast_signed()),
            Format::U => (insn.rs1, insn.rs2, insn.imm) = (0, 0, (rng.edge() & 0xFFFF_F000).cast_signed()),
            Format::Load => {
                (insn.rs1, insn.imm) = address(rng, insn.op);
                insn.rs2 = 0;
            }
            Format::Store => {
                (insn.rs1, insn.imm) = address(rng, insn.op);
                insn.rd = 0;
            }
            Format::Amo => {
                let imm = (rng.within(0..DATA_BYTES / 4) * 4) as i32 - DATA_BYTES as i32 / 2;
                insn.rs1 = POINT;
                return vec![Insn { op: Rv::Addi, rd: POINT, rs1: L1, rs2: 0, imm }, insn];
            }
            Format::Fence if insn.op == Rv::Fence && rng.one_in(4) => {
                insn = Insn { op: insn.op, rd: 0, rs1: 0, rs2: 0, imm: FENCE_ALL }
            }
            _ => continue,
        }
        return vec![insn];
    }
}

/// A base and an offset for a load or store, aligned to its width.
fn address(rng: &mut Rng, op: Rv) -> (Reg, i32) {
    let width = match op {
        Rv::Lb | Rv::Lbu | Rv::Sb => 1,
        Rv::Lh | Rv::Lhu | Rv::Sh => 2,
        _ => 4,
    };
    let (base, bytes) = if rng.one_in(3) { (LOC, LOCAL_WORDS * 4) } else { (L1, DATA_BYTES) };
    (base, (rng.within(0..bytes / width) * width) as i32 - bytes as i32 / 2)
}

/// Any register.
fn source(rng: &mut Rng) -> Reg {
    rng.within(0..32) as Reg
}

/// A register without a fixed meaning, or x0.
fn target(rng: &mut Rng) -> Reg {
    rng.within(0..u32::from(POINT)) as Reg
}
