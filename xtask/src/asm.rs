//! A small assembler over the instruction table of `tilework-riscv`, for the programs of the rig
//! and of the benchmarks.

use tilework_riscv::{Insn, Op, encode};

/// `fence iorw, iorw`, as compilers emit it; the chip ignores the sets, another library may not.
pub(crate) const FENCE_ALL: i32 = 0xFF;

/// A register number.
pub(crate) type Reg = u8;

/// A program under construction, as words from its first address.
#[derive(Clone, Default, Debug)]
pub(crate) struct Asm {
    words: Vec<u32>,
}

impl Asm {
    /// Appends an instruction. The generators keep operands in range; an operand out of range gives
    /// an illegal word, which every chip reports.
    pub(crate) fn insn(&mut self, op: Op, rd: Reg, rs1: Reg, rs2: Reg, imm: i32) {
        self.words.push(encode(Insn { op, rd, rs1, rs2, imm }).unwrap_or(u32::MAX));
    }

    /// Index of the next word.
    pub(crate) fn here(&self) -> usize {
        self.words.len()
    }

    /// `rd` = `value`, always in two instructions.
    pub(crate) fn li(&mut self, rd: Reg, value: u32) {
        let high = value.wrapping_add(0x800) & 0xFFFF_F000;
        self.insn(Op::Lui, rd, 0, 0, high.cast_signed());
        self.insn(Op::Addi, rd, rd, 0, value.wrapping_sub(high).cast_signed());
    }

    /// `rd` = word at `base + offset`.
    pub(crate) fn lw(&mut self, rd: Reg, base: Reg, offset: u32) {
        self.insn(Op::Lw, rd, base, 0, offset.cast_signed());
    }

    /// Word at `base + offset` = `rs`.
    pub(crate) fn sw(&mut self, rs: Reg, base: Reg, offset: u32) {
        self.insn(Op::Sw, 0, base, rs, offset.cast_signed());
    }

    /// `rd` = `rs` + `imm`.
    pub(crate) fn addi(&mut self, rd: Reg, rs: Reg, imm: i32) {
        self.insn(Op::Addi, rd, rs, 0, imm);
    }

    /// Branches to the word with index `to`.
    pub(crate) fn branch(&mut self, op: Op, rs1: Reg, rs2: Reg, to: usize) {
        let offset = (to as i32 - self.here() as i32) * 4;
        self.insn(op, 0, rs1, rs2, offset);
    }

    /// Jumps to the word with index `to`.
    pub(crate) fn jump(&mut self, to: usize) {
        let offset = (to as i32 - self.here() as i32) * 4;
        self.insn(Op::Jal, 0, 0, 0, offset);
    }

    /// Flushes the L0 cache, so that later loads see L1.
    pub(crate) fn fence(&mut self) {
        self.insn(Op::Fence, 0, 0, 0, FENCE_ALL);
    }

    /// Loops here for ever.
    pub(crate) fn stop(&mut self) {
        self.insn(Op::Jal, 0, 0, 0, 0);
    }

    /// Waits for `turns` iterations of a loop over `counter`.
    pub(crate) fn delay(&mut self, counter: Reg, turns: u32) {
        self.li(counter, turns);
        let again = self.here();
        self.addi(counter, counter, -1);
        self.branch(Op::Bne, counter, 0, again);
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}
