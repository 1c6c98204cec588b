//! The instruction table: the only definition of the instructions and their encodings.
//!
//! The [`Op`] enum, the decoder ([`crate::Insn::decode`]), the encoder ([`crate::encode`]) and the
//! disassembler derive from it; the interpreter matches on [`Op`] without a default arm, so that a
//! new row does not compile until it has a meaning. Encodings: the ratified RISC-V unprivileged
//! specification (RV32I, M, Zicsr, Zifencei, Zaamo, Zba, Zbb, of Zbkb what the compiler's extension
//! `xttzbkb` has) and `BabyRISCV/PushTensixInstruction.md` for `.ttinsn`, whose encoding is "the
//! low two bits are not 11" and which therefore has no row of its own among the match/mask pairs.
//!
//! Rows are grouped by major opcode (bits 6:2); the decoder looks only at the rows of one group.

/// Operand format: encoding and syntax.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Format {
    /// `rd, rs1, rs2`
    R,
    /// `rd, rs1` (the rest is fixed)
    Unary,
    /// `rd, rs1, imm[11:0]`
    I,
    /// `rd, rs1, shamt`
    Shift,
    /// `rd, imm(rs1)`
    Load,
    /// `rs2, imm(rs1)`
    Store,
    /// `rs1, rs2, offset`
    Branch,
    /// `rd, imm[31:12]`
    U,
    /// `rd, offset`
    Jal,
    /// `rd, imm(rs1)`
    Jalr,
    /// `rd, csr, rs1`; the CSR number is the immediate
    Csr,
    /// `rd, csr, uimm`; the immediate is `csr | uimm << 12`
    CsrImm,
    /// `rd, rs2, (rs1)`; the immediate holds `aq` (bit 1) and `rl` (bit 0)
    Amo,
    /// `fence`: the immediate keeps bits 31:20, which the core ignores
    Fence,
    /// no operands
    Fixed,
    /// `.ttinsn word`; the immediate is the Tensix word
    Ttinsn,
    /// not an instruction; the immediate is the word
    Illegal,
}

/// One row of the table.
#[derive(Copy, Clone, Debug)]
pub struct OpInfo {
    /// The instruction.
    pub op: Op,
    /// Its assembler name.
    pub name: &'static str,
    /// The bits of `mask` in its encoding.
    pub matches: u32,
    /// Mask of the fixed bits.
    pub mask: u32,
    /// Format of the other bits.
    pub format: Format,
}

macro_rules! instructions {
    ($($op:ident $name:literal $matches:literal $mask:literal $format:ident;)*) => {
        /// The operation of a decoded instruction, dense from zero.
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = concat!("`", $name, "`")] $op,)*
            /// `.ttinsn`
            Ttinsn,
            /// A word that is not in the table.
            Illegal,
        }

        /// All instructions but `.ttinsn`, indexed by [`Op`].
        pub const TABLE: &[OpInfo] = &[
            $(OpInfo { op: Op::$op, name: $name, matches: $matches, mask: $mask, format: Format::$format },)*
        ];
    };
}

instructions! {
    // LOAD
    Lb      "lb"      0x0000_0003 0x0000_707f Load;
    Lh      "lh"      0x0000_1003 0x0000_707f Load;
    Lw      "lw"      0x0000_2003 0x0000_707f Load;
    Lbu     "lbu"     0x0000_4003 0x0000_707f Load;
    Lhu     "lhu"     0x0000_5003 0x0000_707f Load;
    // MISC-MEM
    Fence   "fence"   0x0000_000f 0x0000_707f Fence;
    FenceI  "fence.i" 0x0000_100f 0x0000_707f Fence;
    // OP-IMM, with Zbb
    Addi    "addi"    0x0000_0013 0x0000_707f I;
    Slti    "slti"    0x0000_2013 0x0000_707f I;
    Sltiu   "sltiu"   0x0000_3013 0x0000_707f I;
    Xori    "xori"    0x0000_4013 0x0000_707f I;
    Ori     "ori"     0x0000_6013 0x0000_707f I;
    Andi    "andi"    0x0000_7013 0x0000_707f I;
    Slli    "slli"    0x0000_1013 0xfe00_707f Shift;
    Srli    "srli"    0x0000_5013 0xfe00_707f Shift;
    Srai    "srai"    0x4000_5013 0xfe00_707f Shift;
    Rori    "rori"    0x6000_5013 0xfe00_707f Shift;
    Clz     "clz"     0x6000_1013 0xfff0_707f Unary;
    Ctz     "ctz"     0x6010_1013 0xfff0_707f Unary;
    Cpop    "cpop"    0x6020_1013 0xfff0_707f Unary;
    SextB   "sext.b"  0x6040_1013 0xfff0_707f Unary;
    SextH   "sext.h"  0x6050_1013 0xfff0_707f Unary;
    OrcB    "orc.b"   0x2870_5013 0xfff0_707f Unary;
    Rev8    "rev8"    0x6980_5013 0xfff0_707f Unary;
    // OP-IMM: Zbkb
    Brev8   "brev8"   0x6870_5013 0xfff0_707f Unary;
    // AUIPC
    Auipc   "auipc"   0x0000_0017 0x0000_007f U;
    // STORE
    Sb      "sb"      0x0000_0023 0x0000_707f Store;
    Sh      "sh"      0x0000_1023 0x0000_707f Store;
    Sw      "sw"      0x0000_2023 0x0000_707f Store;
    // AMO: Zaamo, words only
    AmoAdd  "amoadd.w"  0x0000_202f 0xf800_707f Amo;
    AmoSwap "amoswap.w" 0x0800_202f 0xf800_707f Amo;
    AmoXor  "amoxor.w"  0x2000_202f 0xf800_707f Amo;
    AmoOr   "amoor.w"   0x4000_202f 0xf800_707f Amo;
    AmoAnd  "amoand.w"  0x6000_202f 0xf800_707f Amo;
    AmoMin  "amomin.w"  0x8000_202f 0xf800_707f Amo;
    AmoMax  "amomax.w"  0xa000_202f 0xf800_707f Amo;
    AmoMinu "amominu.w" 0xc000_202f 0xf800_707f Amo;
    AmoMaxu "amomaxu.w" 0xe000_202f 0xf800_707f Amo;
    // OP
    Add     "add"     0x0000_0033 0xfe00_707f R;
    Sub     "sub"     0x4000_0033 0xfe00_707f R;
    Sll     "sll"     0x0000_1033 0xfe00_707f R;
    Slt     "slt"     0x0000_2033 0xfe00_707f R;
    Sltu    "sltu"    0x0000_3033 0xfe00_707f R;
    Xor     "xor"     0x0000_4033 0xfe00_707f R;
    Srl     "srl"     0x0000_5033 0xfe00_707f R;
    Sra     "sra"     0x4000_5033 0xfe00_707f R;
    Or      "or"      0x0000_6033 0xfe00_707f R;
    And     "and"     0x0000_7033 0xfe00_707f R;
    // OP: M
    Mul     "mul"     0x0200_0033 0xfe00_707f R;
    Mulh    "mulh"    0x0200_1033 0xfe00_707f R;
    Mulhsu  "mulhsu"  0x0200_2033 0xfe00_707f R;
    Mulhu   "mulhu"   0x0200_3033 0xfe00_707f R;
    Div     "div"     0x0200_4033 0xfe00_707f R;
    Divu    "divu"    0x0200_5033 0xfe00_707f R;
    Rem     "rem"     0x0200_6033 0xfe00_707f R;
    Remu    "remu"    0x0200_7033 0xfe00_707f R;
    // OP: Zba
    Sh1add  "sh1add"  0x2000_2033 0xfe00_707f R;
    Sh2add  "sh2add"  0x2000_4033 0xfe00_707f R;
    Sh3add  "sh3add"  0x2000_6033 0xfe00_707f R;
    // OP: Zbb
    Andn    "andn"    0x4000_7033 0xfe00_707f R;
    Orn     "orn"     0x4000_6033 0xfe00_707f R;
    Xnor    "xnor"    0x4000_4033 0xfe00_707f R;
    Min     "min"     0x0a00_4033 0xfe00_707f R;
    Minu    "minu"    0x0a00_5033 0xfe00_707f R;
    Max     "max"     0x0a00_6033 0xfe00_707f R;
    Maxu    "maxu"    0x0a00_7033 0xfe00_707f R;
    Rol     "rol"     0x6000_1033 0xfe00_707f R;
    Ror     "ror"     0x6000_5033 0xfe00_707f R;
    // OP: Zbkb. With `zero` it is `zext.h` of Zbb.
    Pack    "pack"    0x0800_4033 0xfe00_707f R;
    // LUI
    Lui     "lui"     0x0000_0037 0x0000_007f U;
    // BRANCH
    Beq     "beq"     0x0000_0063 0x0000_707f Branch;
    Bne     "bne"     0x0000_1063 0x0000_707f Branch;
    Blt     "blt"     0x0000_4063 0x0000_707f Branch;
    Bge     "bge"     0x0000_5063 0x0000_707f Branch;
    Bltu    "bltu"    0x0000_6063 0x0000_707f Branch;
    Bgeu    "bgeu"    0x0000_7063 0x0000_707f Branch;
    // JALR
    Jalr    "jalr"    0x0000_0067 0x0000_707f Jalr;
    // JAL
    Jal     "jal"     0x0000_006f 0x0000_007f Jal;
    // SYSTEM
    Ecall   "ecall"   0x0000_0073 0xffff_ffff Fixed;
    Ebreak  "ebreak"  0x0010_0073 0xffff_ffff Fixed;
    Csrrw   "csrrw"   0x0000_1073 0x0000_707f Csr;
    Csrrs   "csrrs"   0x0000_2073 0x0000_707f Csr;
    Csrrc   "csrrc"   0x0000_3073 0x0000_707f Csr;
    Csrrwi  "csrrwi"  0x0000_5073 0x0000_707f CsrImm;
    Csrrsi  "csrrsi"  0x0000_6073 0x0000_707f CsrImm;
    Csrrci  "csrrci"  0x0000_7073 0x0000_707f CsrImm;
}

impl Op {
    /// The assembler name.
    pub fn name(self) -> &'static str {
        match self {
            Op::Ttinsn => ".ttinsn",
            Op::Illegal => "illegal",
            _ => TABLE[self as usize].name,
        }
    }

    /// The operand format.
    pub fn format(self) -> Format {
        match self {
            Op::Ttinsn => Format::Ttinsn,
            Op::Illegal => Format::Illegal,
            _ => TABLE[self as usize].format,
        }
    }
}

/// For each major opcode (bits 6:2), the rows of [`TABLE`] from the first to one past the last.
const GROUPS: [(u8, u8); 32] = {
    let mut groups = [(0, 0); 32];
    let mut row = 0;
    while row < TABLE.len() {
        let opcode = (TABLE[row].matches >> 2 & 31) as usize;
        if groups[opcode].1 == 0 {
            groups[opcode].0 = row as u8;
        } else {
            assert!(groups[opcode].1 as usize == row, "the rows of one opcode are adjacent");
        }
        groups[opcode].1 = row as u8 + 1;
        row += 1;
    }
    groups
};

/// The row that a word matches, if any. `.ttinsn` has none.
pub(crate) fn lookup(word: u32) -> Option<&'static OpInfo> {
    if word & 3 != 3 {
        return None;
    }
    let (first, end) = GROUPS[(word >> 2 & 31) as usize];
    TABLE[usize::from(first)..usize::from(end)].iter().find(|row| word & row.mask == row.matches)
}
