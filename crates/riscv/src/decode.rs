//! Decoder and encoder, derived from the instruction table.
//!
//! Code is decoded a page at a time and cached: the interpreter never sees instruction words. The
//! encoder is the decoder's inverse and serves tests and tools. Immediate layouts: RISC-V
//! unprivileged specification, "Immediate Encoding Variants".

use crate::table::{Format, Op, lookup};

/// The size of a [`CodePage`] in bytes of code.
pub const CODE_PAGE_BYTES: u32 = 256;

/// A decoded instruction. Fields that its format lacks are zero, so that `rs1` and `rs2` can be
/// read unconditionally.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Insn {
    /// What it does.
    pub op: Op,
    /// Destination register, 0..32.
    pub rd: u8,
    /// First source register, 0..32.
    pub rs1: u8,
    /// Second source register, 0..32.
    pub rs2: u8,
    /// Immediate, sign-extended; [`Format`] describes the special cases.
    pub imm: i32,
}

/// 64 predecoded instructions: 256 bytes of code, aligned to 256.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodePage {
    /// The instructions in address order.
    pub insns: [Insn; 64],
}

impl CodePage {
    /// Decodes a page. Words that are not instructions become [`Op::Illegal`] and fault only
    /// when executed.
    pub fn decode(bytes: &[u8; 256]) -> CodePage {
        let mut insns = [Insn::decode(0); 64];
        for (insn, word) in insns.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *insn = Insn::decode(u32::from_le_bytes(*word));
        }
        CodePage { insns }
    }
}

impl Insn {
    /// Decodes one word.
    pub fn decode(word: u32) -> Insn {
        let mut insn = Insn { op: Op::Illegal, rd: 0, rs1: 0, rs2: 0, imm: word.cast_signed() };
        if word & 3 != 3 {
            insn.op = Op::Ttinsn;
            insn.imm = word.rotate_right(2).cast_signed();
            return insn;
        }
        let Some(row) = lookup(word) else { return insn };
        insn.op = row.op;
        let rd = (word >> 7 & 31) as u8;
        let rs1 = (word >> 15 & 31) as u8;
        let rs2 = (word >> 20 & 31) as u8;
        let signed = word.cast_signed();
        let (rd, rs1, rs2, imm) = match row.format {
            Format::R => (rd, rs1, rs2, 0),
            Format::Unary => (rd, rs1, 0, 0),
            Format::I | Format::Load | Format::Jalr => (rd, rs1, 0, signed >> 20),
            Format::Shift => (rd, rs1, 0, i32::from(rs2)),
            Format::Store => (0, rs1, rs2, signed >> 25 << 5 | i32::from(rd)),
            Format::Branch => (0, rs1, rs2, branch_offset(word)),
            Format::U => (rd, 0, 0, signed >> 12 << 12),
            Format::Jal => (rd, 0, 0, jal_offset(word)),
            Format::Csr => (rd, rs1, 0, (word >> 20).cast_signed()),
            Format::CsrImm => (rd, 0, 0, (word >> 20 | u32::from(rs1) << 12).cast_signed()),
            Format::Amo => (rd, rs1, rs2, (word >> 25 & 3).cast_signed()),
            Format::Fence => (0, 0, 0, (word >> 20).cast_signed()),
            Format::Fixed => (0, 0, 0, 0),
            Format::Ttinsn | Format::Illegal => return insn,
        };
        Insn { op: insn.op, rd, rs1, rs2, imm }
    }
}

fn branch_offset(word: u32) -> i32 {
    word.cast_signed() >> 31 << 12
        | ((word >> 7 & 1) << 11 | (word >> 25 & 0x3f) << 5 | (word >> 8 & 15) << 1).cast_signed()
}

fn jal_offset(word: u32) -> i32 {
    word.cast_signed() >> 31 << 20
        | (word & 0xf_f000 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3ff) << 1).cast_signed()
}

/// Whether `imm` is a signed number of `width` bits.
const fn fits(imm: i32, width: u32) -> bool {
    let rest = imm >> (width - 1);
    rest == 0 || rest == -1
}

/// The word of an instruction, or `None` when an operand does not fit its format. `None` too for a
/// `.ttinsn` whose Tensix word is 0xC000_0000 or more, which has no encoding.
pub const fn encode(insn: Insn) -> Option<u32> {
    let Insn { op, rd, rs1, rs2, imm } = insn;
    let bits = imm.cast_unsigned();
    match op {
        Op::Ttinsn if bits < 0xc000_0000 => return Some(bits.rotate_left(2)),
        Op::Ttinsn => return None,
        Op::Illegal => return Some(bits),
        _ => {}
    }
    if rd > 31 || rs1 > 31 || rs2 > 31 {
        return None;
    }
    let row = &crate::table::TABLE[op as usize];
    let [rd, rs1, rs2] = [(rd as u32) << 7, (rs1 as u32) << 15, (rs2 as u32) << 20];
    let (ok, operands) = match row.format {
        Format::R => (imm == 0, rd | rs1 | rs2),
        Format::Unary => (imm == 0 && rs2 == 0, rd | rs1),
        Format::I | Format::Load | Format::Jalr => (fits(imm, 12) && rs2 == 0, rd | rs1 | bits << 20),
        Format::Shift => (bits < 32 && rs2 == 0, rd | rs1 | bits << 20),
        Format::Store => (fits(imm, 12) && rd == 0, rs1 | rs2 | (bits & 31) << 7 | bits >> 5 << 25),
        Format::Branch => (
            fits(imm, 13) && bits & 1 == 0 && rd == 0,
            rs1 | rs2
                | (bits >> 12 & 1) << 31
                | (bits >> 5 & 0x3f) << 25
                | (bits >> 1 & 15) << 8
                | (bits >> 11 & 1) << 7,
        ),
        Format::U => (bits & 0xfff == 0 && rs1 | rs2 == 0, rd | bits),
        Format::Jal => (
            fits(imm, 21) && bits & 1 == 0 && rs1 | rs2 == 0,
            rd | (bits >> 20 & 1) << 31 | (bits >> 1 & 0x3ff) << 21 | (bits >> 11 & 1) << 20 | bits & 0xf_f000,
        ),
        Format::Csr => (bits < 0x1000 && rs2 == 0, rd | rs1 | bits << 20),
        Format::CsrImm => (bits < 1 << 17 && rs1 | rs2 == 0, rd | bits >> 12 << 15 | bits << 20),
        Format::Amo => (bits < 4, rd | rs1 | rs2 | bits << 25),
        Format::Fence => (bits < 0x1000 && rd | rs1 | rs2 == 0, bits << 20),
        Format::Fixed => (bits == 0 && rd | rs1 | rs2 == 0, 0),
        Format::Ttinsn | Format::Illegal => (false, 0),
    };
    if ok { Some(row.matches | operands) } else { None }
}
