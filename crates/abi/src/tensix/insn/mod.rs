//! The Tensix instruction table: every opcode of the coprocessor, its operands and its unit.
//!
//! One row for each opcode of the public Blackhole list (`ckernel_ops.h` and `assembly.yaml` of
//! `tenstorrent/tt-llk`, folder `tt_llk_blackhole`). From the rows come the typed instructions
//! ([`Insn`] and one enum for each unit), the decoder, the builder ([`Build`]), the disassembler
//! (`Display` of [`Insn`]), the bits of a block mask, the classes of Auto TTSync and the page
//! `docs/tensix-instructions.md`. The simulator, the RISC-V disassembler and firmware share it.
//!
//! Operands and their bits are those of the instruction's page in the ISA documentation (diagrams
//! in `Diagrams/Src/Bits32.lua`), in snake case. What has no page there, groups of flags that are
//! used together (`cnt_set_mask`, `clear_dvalid`), and what Blackhole encodes differently from
//! Wormhole's page (address modifiers have three bits) follow the public list.
//!
//! A row is built when the simulator executes it. Built rows are variants of their unit's enum, on
//! which the unit matches without a default arm; all others are [`Insn::NotBuilt`]. Moving a row
//! from `not_built` to `built` therefore does not compile until the unit gives it a meaning.

mod config;
mod front;
mod matrix;
mod misc;
mod mode;
mod pack;
mod row;
mod scalar;
mod sync;
mod text;
mod vector;

pub use config::*;
pub use front::*;
pub use matrix::*;
pub use misc::*;
pub use mode::{Mode, format_name, settings};
pub use pack::*;
pub use row::{BLOCK_ALL, Class, Field, Kind, Row, Unit, When};
pub use scalar::*;
pub use sync::*;
pub use vector::*;

/// Lowest bit of the opcode.
const OPCODE: u32 = 24;

/// The rows by opcode.
static TABLE: [Option<&Row>; 256] = {
    let mut table: [Option<&Row>; 256] = [None; 256];
    let mut unit = 0;
    while unit < Unit::ALL.len() {
        let rows = Unit::ALL[unit].rows();
        let mut i = 0;
        while i < rows.len() {
            let slot = &mut table[rows[i].opcode as usize];
            assert!(slot.is_none(), "an opcode has one row");
            *slot = Some(&rows[i]);
            i += 1;
        }
        unit += 1;
    }
    table
};

/// The row of an instruction word; `None`: its opcode does not exist.
#[inline]
pub fn row(word: u32) -> Option<&'static Row> {
    TABLE[(word >> OPCODE) as usize]
}

/// What executes an instruction word; `None`: its opcode does not exist.
#[inline]
pub fn unit_of(word: u32) -> Option<Unit> {
    row(word).map(|row| row.unit)
}

/// Whether a latched wait instruction with this block mask keeps an instruction word from starting.
/// Only a mask with all bits set blocks `NOP` (STALLWAIT.md, "Block mask").
#[inline]
pub fn is_blocked_by(word: u32, mask: u16) -> bool {
    if Nop::is(word) {
        return mask == BLOCK_ALL;
    }
    unit_of(word).is_some_and(|unit| unit.block_bits() & mask != 0)
}

/// A decoded instruction. Operands stay in the word, where the typed instructions read them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Insn {
    /// Of the front end.
    FrontEnd(FrontEndOp),
    /// Of the miscellaneous unit.
    Misc(MiscOp),
    /// Of the sync unit.
    Sync(SyncOp),
    /// Of the sync unit: a wait instruction.
    Wait(WaitOp),
    /// Of the configuration unit.
    Config(ConfigOp),
    /// Of the scalar unit.
    Scalar(ScalarOp),
    /// Of the mover.
    Mover(MoverOp),
    /// Of the matrix unit.
    Matrix(MatrixOp),
    /// Of the vector unit.
    Vector(VectorOp),
    /// Of the packers.
    Packer(PackerOp),
    /// Of the unpackers.
    Unpacker(UnpackerOp),
    /// It exists, but the simulator does not execute it.
    NotBuilt(NotBuilt),
    /// The opcode does not exist; the word.
    Undefined(u32),
}

/// An instruction that the simulator does not execute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NotBuilt {
    word: u32,
    unit: Unit,
}

impl Insn {
    /// Decodes a word.
    pub fn decode(word: u32) -> Self {
        let Some(row) = row(word) else { return Self::Undefined(word) };
        let built = match row.unit {
            Unit::FrontEnd => FrontEndOp::decode(word).map(Self::FrontEnd),
            Unit::Misc => MiscOp::decode(word).map(Self::Misc),
            Unit::Sync => SyncOp::decode(word).map(Self::Sync),
            Unit::Wait => WaitOp::decode(word).map(Self::Wait),
            Unit::Config => ConfigOp::decode(word).map(Self::Config),
            Unit::Scalar => ScalarOp::decode(word).map(Self::Scalar),
            Unit::Mover => MoverOp::decode(word).map(Self::Mover),
            Unit::Matrix => MatrixOp::decode(word).map(Self::Matrix),
            Unit::Vector => VectorOp::decode(word).map(Self::Vector),
            Unit::Packer => PackerOp::decode(word).map(Self::Packer),
            Unit::Unpacker => UnpackerOp::decode(word).map(Self::Unpacker),
        };
        built.unwrap_or(Self::NotBuilt(NotBuilt { word, unit: row.unit }))
    }

    /// The word.
    pub fn word(self) -> u32 {
        match self {
            Self::FrontEnd(insn) => insn.word(),
            Self::Misc(insn) => insn.word(),
            Self::Sync(insn) => insn.word(),
            Self::Wait(insn) => insn.word(),
            Self::Config(insn) => insn.word(),
            Self::Scalar(insn) => insn.word(),
            Self::Mover(insn) => insn.word(),
            Self::Matrix(insn) => insn.word(),
            Self::Vector(insn) => insn.word(),
            Self::Packer(insn) => insn.word(),
            Self::Unpacker(insn) => insn.word(),
            Self::NotBuilt(insn) => insn.word,
            Self::Undefined(word) => word,
        }
    }

    /// What executes it; `None`: the opcode does not exist.
    pub fn unit(self) -> Option<Unit> {
        Some(match self {
            Self::FrontEnd(_) => Unit::FrontEnd,
            Self::Misc(_) => Unit::Misc,
            Self::Sync(_) => Unit::Sync,
            Self::Wait(_) => Unit::Wait,
            Self::Config(_) => Unit::Config,
            Self::Scalar(_) => Unit::Scalar,
            Self::Mover(_) => Unit::Mover,
            Self::Matrix(_) => Unit::Matrix,
            Self::Vector(_) => Unit::Vector,
            Self::Packer(_) => Unit::Packer,
            Self::Unpacker(_) => Unit::Unpacker,
            Self::NotBuilt(insn) => insn.unit,
            Self::Undefined(_) => return None,
        })
    }

    /// Its row; `None`: the opcode does not exist.
    pub fn row(self) -> Option<&'static Row> {
        row(self.word())
    }
}

/// Builds the word of an instruction, operand by operand:
/// `Sempost::build().semaphore_mask(1).word()`. Operands that are not named are zero; what does not
/// fit its field is lost.
#[derive(Clone, Copy, Debug)]
pub struct Build<T> {
    word: u32,
    insn: core::marker::PhantomData<T>,
}

impl<T> Build<T> {
    const fn of(row: &Row) -> Self {
        Self { word: (row.opcode as u32) << OPCODE, insn: core::marker::PhantomData }
    }
    const fn put(self, field: &Field, value: u32) -> Self {
        Self { word: field.put(self.word, value), insn: core::marker::PhantomData }
    }
    /// The word.
    pub const fn word(self) -> u32 {
        self.word
    }
}

/// The instructions of one unit.
///
/// A row: name of the type, opcode, mnemonic, where its page is (`B` for BlackholeA0, `W` for
/// WormholeB0, `L` for the public list of tt-llk; the page's name if it is not the mnemonic),
/// class, operands. An operand: name, bits, kind, which of its values are documented if it chooses
/// what the instruction does (`in`; of a flag: both), and the form of the instruction that has it,
/// unless all have it. A row that is not built ends with what the documents lack.
macro_rules! instructions {
    (@type Flag) => { bool };
    (@type Signed) => { i32 };
    (@type $kind:ident) => { u32 };
    (@get Flag $field:ident $word:expr) => { $field.get($word) != 0 };
    (@get Signed $field:ident $word:expr) => { $field.get_signed($word) };
    (@get $kind:ident $field:ident $word:expr) => { $field.get($word) };
    (@raw Flag $value:ident) => { $value as u32 };
    (@raw Signed $value:ident) => { $value.cast_unsigned() };
    (@raw $kind:ident $value:ident) => { $value };
    (@page B $page:literal) => { concat!("BlackholeA0/TensixTile/TensixCoprocessor/", $page, ".md") };
    (@page W $page:literal) => { concat!("WormholeB0/TensixTile/TensixCoprocessor/", $page, ".md") };
    (@page L $page:literal) => { concat!("tt_llk_blackhole/instructions/assembly.yaml, ", $page) };
    (@page $folder:ident $page:literal $mnemonic:literal) => { instructions!(@page $folder $page) };
    (@modes Flag $bits:expr) => { 0b11 };
    (@modes $kind:ident $bits:expr) => { 0 };
    (@modes $kind:ident $bits:expr, all) => { u16::MAX >> (16 - (1u32 << $bits)) };
    (@modes $kind:ident $bits:expr, [$($value:literal),*]) => { 0 $(| 1 << $value)* };
    (@when) => { None };
    (@when $hi:literal $lo:literal $value:literal) => {
        Some(When { mask: (u32::MAX >> (31 - $hi + $lo)) << $lo, value: $value << $lo })
    };
    (@insn $missing:expr, $unit:ident $op:ident $opcode:literal $mnemonic:literal $page:expr, $class:ident {
        $($field:ident[$hi:literal:$lo:literal] $kind:ident $(in $modes:tt)?
            $(if [$whi:literal:$wlo:literal] == $value:literal)?),*
    }) => {
        #[doc = concat!("`", $mnemonic, "`")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $op(u32);

        impl $op {
            /// The row of the table.
            pub const ROW: Row = Row {
                opcode: $opcode,
                mnemonic: $mnemonic,
                unit: Unit::$unit,
                class: Class::$class,
                page: $page,
                missing: $missing,
                fields: &[$(Field {
                    name: stringify!($field),
                    hi: $hi,
                    lo: $lo,
                    kind: Kind::$kind,
                    when: instructions!(@when $($whi $wlo $value)?),
                    modes: instructions!(@modes $kind ($hi - $lo + 1) $(, $modes)?),
                }),*],
            };
            /// Builds a word.
            pub const fn build() -> Build<Self> {
                Build::of(&Self::ROW)
            }
            /// Decodes a word; `None`: it is another instruction.
            #[inline]
            pub const fn decode(word: u32) -> Option<Self> {
                if Self::is(word) { Some(Self(word)) } else { None }
            }
            /// Whether the word is this instruction.
            #[inline]
            pub const fn is(word: u32) -> bool {
                word >> OPCODE == $opcode
            }
            /// The word.
            #[inline]
            pub const fn word(self) -> u32 {
                self.0
            }
            $(
                #[doc = concat!("Bits ", $hi, " to ", $lo, ".")]
                #[inline]
                pub const fn $field(self) -> instructions!(@type $kind) {
                    const FIELD: Field = instructions!(@field $field $hi $lo $kind);
                    instructions!(@get $kind FIELD self.0)
                }
            )*
        }

        impl Build<$op> {
            $(
                #[doc = concat!("Bits ", $hi, " to ", $lo, ".")]
                pub const fn $field(self, value: instructions!(@type $kind)) -> Self {
                    const FIELD: Field = instructions!(@field $field $hi $lo $kind);
                    self.put(&FIELD, instructions!(@raw $kind value))
                }
            )*
        }
    };
    (@field $field:ident $hi:literal $lo:literal $kind:ident) => {
        Field { name: stringify!($field), hi: $hi, lo: $lo, kind: Kind::$kind, when: None, modes: 0 }
    };
    ($(#[$doc:meta])* $ops:ident of $unit:ident {
        built { $(
            $op:ident $opcode:literal $mnemonic:literal $folder:ident $($page:literal)? $class:ident $fields:tt
        )* }
        not_built { $(
            $no:ident $nopcode:literal $nmnemonic:literal $nfolder:ident $($npage:literal)? $nclass:ident $nfields:tt
            $missing:literal
        )* }
    }) => {
        $(instructions! { @insn None, $unit $op $opcode $mnemonic
            instructions!(@page $folder $($page)? $mnemonic), $class $fields })*
        $(instructions! { @insn Some($missing), $unit $no $nopcode $nmnemonic
            instructions!(@page $nfolder $($npage)? $nmnemonic), $nclass $nfields })*

        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $ops {
            $(#[doc = concat!("`", $mnemonic, "`")] $op($op),)*
        }

        impl $ops {
            /// The unit's rows, those that are not built included.
            pub const ROWS: &'static [Row] = &[$($op::ROW,)* $($no::ROW,)*];
            /// Decodes a word; `None`: it is not of this unit, or not built.
            #[inline]
            pub const fn decode(word: u32) -> Option<Self> {
                match word >> OPCODE {
                    $($opcode => Some(Self::$op($op(word))),)*
                    _ => None,
                }
            }
            /// The word.
            #[inline]
            pub const fn word(self) -> u32 {
                match self {
                    $(Self::$op(insn) => insn.0,)*
                }
            }
        }
    };
}
use instructions;
