//! Disassembler, in the syntax of GNU as, without pseudo-instructions.
//!
//! Driven by the formats of the instruction table. Branch and jump targets are absolute when the
//! address is known and `. + offset` otherwise. A comment behind `.ttinsn` says which Tensix
//! instruction it pushes.

use std::fmt;

use tilework_abi::tensix::insn::Insn as TensixInsn;

use crate::Insn;
use crate::table::{Format, Op};

const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "s2",
    "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

/// The ABI name of a register; only the low five bits count.
pub fn register_name(register: u8) -> &'static str {
    NAMES[usize::from(register & 31)]
}

/// The text of the instruction `word` at address `pc`.
pub fn disassemble(word: u32, pc: u32) -> String {
    let insn = Insn::decode(word);
    match insn.op.format() {
        Format::Branch | Format::Jal => {
            let text = insn.to_string();
            let target = pc.wrapping_add_signed(insn.imm);
            match text.rsplit_once(", ") {
                Some((operands, _)) => format!("{operands}, {target:#x}"),
                None => text,
            }
        }
        _ => insn.to_string(),
    }
}

impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Insn { op, imm, .. } = *self;
        let [rd, rs1, rs2] = [self.rd, self.rs1, self.rs2].map(register_name);
        let name = op.name();
        let bits = imm.cast_unsigned();
        match op.format() {
            Format::R if op == Op::Pack && self.rs2 == 0 => write!(f, "zext.h {rd}, {rs1}"),
            Format::R => write!(f, "{name} {rd}, {rs1}, {rs2}"),
            Format::Unary => write!(f, "{name} {rd}, {rs1}"),
            Format::I | Format::Shift => write!(f, "{name} {rd}, {rs1}, {imm}"),
            Format::Load | Format::Jalr => write!(f, "{name} {rd}, {imm}({rs1})"),
            Format::Store => write!(f, "{name} {rs2}, {imm}({rs1})"),
            Format::Branch => write!(f, "{name} {rs1}, {rs2}, . {imm:+}"),
            Format::U => write!(f, "{name} {rd}, {:#x}", bits >> 12),
            Format::Jal => write!(f, "{name} {rd}, . {imm:+}"),
            Format::Csr => write!(f, "{name} {rd}, {:#x}, {rs1}", bits & 0xfff),
            Format::CsrImm => write!(f, "{name} {rd}, {:#x}, {}", bits & 0xfff, bits >> 12 & 31),
            Format::Amo => {
                let order = ["", ".rl", ".aq", ".aqrl"][(bits & 3) as usize];
                write!(f, "{name}{order} {rd}, {rs2}, ({rs1})")
            }
            Format::Fence if op == Op::Fence => write_fence(f, bits),
            Format::Fence | Format::Fixed => f.write_str(name),
            Format::Ttinsn => write!(f, "{name} {bits:#010x} # {}", TensixInsn::decode(bits)),
            Format::Illegal => write!(f, "{name} {bits:#010x}"),
        }
    }
}

/// `bits`: fm (4), predecessor set (4), successor set (4), each of input, output, reads, writes.
fn write_fence(f: &mut fmt::Formatter<'_>, bits: u32) -> fmt::Result {
    let set = |mask: u32| -> String {
        let letters: String =
            "iorw".chars().zip([8, 4, 2, 1]).filter(|(_, bit)| mask & bit != 0).map(|(c, _)| c).collect();
        if letters.is_empty() { "0".to_owned() } else { letters }
    };
    match bits {
        0x833 => f.write_str("fence.tso"),
        _ => write!(f, "fence {}, {}", set(bits >> 4), set(bits)),
    }
}
