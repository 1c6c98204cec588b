//! What a row of the instruction table says: unit, class, operands, page.

use super::{
    ConfigOp, FrontEndOp, MatrixOp, MiscOp, MoverOp, OPCODE, PackerOp, ScalarOp, SyncOp, UnpackerOp, VectorOp, WaitOp,
};

/// What executes an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// The front end itself: the instruction never reaches the wait gate.
    FrontEnd,
    /// Miscellaneous unit.
    Misc,
    /// Sync unit: semaphores and mutexes.
    Sync,
    /// Sync unit: latches a wait instruction at the wait gate.
    Wait,
    /// Configuration unit.
    Config,
    /// Scalar unit (ThCon).
    Scalar,
    /// Mover.
    Mover,
    /// Matrix unit (FPU).
    Matrix,
    /// Vector unit (SFPU).
    Vector,
    /// Packers.
    Packer,
    /// Unpackers.
    Unpacker,
}

/// All nine block bits.
pub const BLOCK_ALL: u16 = 0x1FF;

impl Unit {
    /// All units, in the order of the documentation.
    pub const ALL: [Unit; 11] = [
        Self::FrontEnd,
        Self::Misc,
        Self::Sync,
        Self::Wait,
        Self::Config,
        Self::Scalar,
        Self::Mover,
        Self::Matrix,
        Self::Vector,
        Self::Packer,
        Self::Unpacker,
    ];

    /// The bits of a block mask, any of which keeps an instruction of this unit from starting
    /// (BlackholeA0/TensixTile/TensixCoprocessor/STALLWAIT.md, "Block mask"). `NOP` is an
    /// exception, see [`super::is_blocked_by`].
    pub const fn block_bits(self) -> u16 {
        match self {
            Self::FrontEnd => 0,
            Self::Misc => 0b0_0000_0001,
            Self::Sync => 0b0_0000_0010,
            Self::Packer => 0b0_0000_0101,
            Self::Unpacker => 0b0_0000_1001,
            Self::Mover => 0b0_0001_0001,
            Self::Scalar => 0b0_0010_0001,
            Self::Matrix => 0b0_0100_0000,
            Self::Config => 0b0_1000_0000,
            Self::Vector => 0b1_0000_0000,
            Self::Wait => BLOCK_ALL,
        }
    }

    /// The name of the unit in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FrontEnd => "front end",
            Self::Misc => "miscellaneous unit",
            Self::Sync => "sync unit",
            Self::Wait => "sync unit, wait instructions",
            Self::Config => "configuration unit",
            Self::Scalar => "scalar unit (ThCon)",
            Self::Mover => "mover",
            Self::Matrix => "matrix unit (FPU)",
            Self::Vector => "vector unit (SFPU)",
            Self::Packer => "packers",
            Self::Unpacker => "unpackers",
        }
    }

    /// The rows of this unit's instructions.
    pub const fn rows(self) -> &'static [Row] {
        match self {
            Self::FrontEnd => FrontEndOp::ROWS,
            Self::Misc => MiscOp::ROWS,
            Self::Sync => SyncOp::ROWS,
            Self::Wait => WaitOp::ROWS,
            Self::Config => ConfigOp::ROWS,
            Self::Scalar => ScalarOp::ROWS,
            Self::Mover => MoverOp::ROWS,
            Self::Matrix => MatrixOp::ROWS,
            Self::Vector => VectorOp::ROWS,
            Self::Packer => PackerOp::ROWS,
            Self::Unpacker => UnpackerOp::ROWS,
        }
    }
}

/// The class of an instruction, for which `RESOURCEDECL` declares what it uses (its `op_class`;
/// `assembly.yaml`, RESOURCEDECL, and AutoTTSync.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// Arithmetic on GPRs and `SETDMAREG`.
    Gpr = 0,
    /// Atomics on L1.
    Atomic = 1,
    /// `REG2FLOP`.
    Reg2Flop = 2,
    /// `LOADIND` and `STOREIND`.
    Indirect = 3,
    /// `STREAMWRCFG` and `CFGSHIFTMASK`.
    ModifyConfig = 4,
    /// `STOREREG`.
    StoreReg = 5,
    /// `LOADREG`.
    LoadReg = 6,
    /// `FLUSHDMA`.
    Flush = 7,
    /// `WRCFG`.
    WriteConfig = 8,
    /// `RDCFG`.
    ReadConfig = 9,
    /// `XMOV`.
    Move = 10,
    /// `UNPACR` and `UNPACR_NOP`.
    Unpack = 11,
    /// `PACR`.
    Pack = 12,
    /// `MOP` and what it expands to.
    Mop = 13,
    /// `REPLAY` and what it expands to.
    Replay = 14,
    /// All others.
    Other = 15,
    /// Uses nothing that is tracked; no class of `RESOURCEDECL`.
    Untracked = 16,
}

impl Class {
    /// Classes that `RESOURCEDECL` names.
    pub const COUNT: usize = 16;

    /// Position among the classes of `RESOURCEDECL`.
    pub const fn index(self) -> Option<usize> {
        match self {
            Self::Untracked => None,
            _ => Some(self as usize),
        }
    }
}

/// What an operand is: how it is read and how the disassembler writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One bit; the disassembler names it when it is set.
    Flag,
    /// A number.
    Uint,
    /// A two's complement number.
    Signed,
    /// A mask, an address or a bit pattern.
    Hex,
    /// A general-purpose register of the thread.
    Gpr,
    /// Half of a general-purpose register: bit 0 says which.
    GprHalf,
    /// A register of the vector unit.
    LReg,
    /// A data format, by its number in the configuration.
    Format,
}

/// Bits of a word that have one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    /// The bits.
    pub mask: u32,
    /// Their value.
    pub value: u32,
}

/// An operand field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Highest bit.
    pub hi: u32,
    /// Lowest bit.
    pub lo: u32,
    /// What it is.
    pub kind: Kind,
    /// The forms of the instruction that have it; `None`: all.
    pub when: Option<When>,
    /// Its documented values, a bit each, if it chooses what the instruction does; else none.
    pub modes: u16,
}

impl Field {
    /// The bits of the field.
    #[inline]
    pub const fn mask(&self) -> u32 {
        (u32::MAX >> (31 - self.hi + self.lo)) << self.lo
    }
    /// The field's value in `word`.
    #[inline]
    pub const fn get(&self, word: u32) -> u32 {
        (word & self.mask()) >> self.lo
    }
    /// The field's value in `word` as a two's complement number.
    #[inline]
    pub const fn get_signed(&self, word: u32) -> i32 {
        (word << (31 - self.hi)).cast_signed() >> (31 - self.hi + self.lo)
    }
    /// `word` with `value` in the field. What does not fit is lost.
    pub const fn put(&self, word: u32, value: u32) -> u32 {
        word & !self.mask() | value << self.lo & self.mask()
    }
    /// Whether the form of the instruction that `word` has contains the field.
    pub const fn applies(&self, word: u32) -> bool {
        match self.when {
            Some(when) => word & when.mask == when.value,
            None => true,
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Bits 31..24 of the word.
    pub opcode: u8,
    /// Its name.
    pub mnemonic: &'static str,
    /// What executes it.
    pub unit: Unit,
    /// Its class for Auto TTSync.
    pub class: Class,
    /// The document that it follows.
    pub page: &'static str,
    /// What the documents lack so that the simulator could execute it; `None`: it does.
    pub missing: Option<&'static str>,
    /// Its operands, as the public list orders them: from the highest bit down.
    pub fields: &'static [Field],
}

impl Row {
    /// Whether the simulator executes it.
    pub const fn is_built(&self) -> bool {
        self.missing.is_none()
    }
    /// The operands that the form of `word` has.
    pub fn operands(&self, word: u32) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(move |field| field.applies(word))
    }
    /// The bits of `word` that mean something: opcode and operands.
    pub fn defined_bits(&self, word: u32) -> u32 {
        self.operands(word).fold(0xFF << OPCODE, |bits, field| bits | field.mask())
    }
}
