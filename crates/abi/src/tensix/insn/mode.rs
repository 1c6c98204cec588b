//! Modes: what an instruction does apart from where and with which numbers it does it.
//!
//! A mode is the opcode, the operands that the table marks with their documented values, and of
//! units that work in formats what the configuration says of these ([`settings`]). Registers,
//! addresses, counts and immediates are no part of it. Runs list the modes that they executed, and
//! `cargo xtask coverage` those that no test has reached.

use super::text::write_operand;
use super::{Dotpv, Elwadd, Elwmul, Elwsub, Gapool, Gmpool, Mvmul, Pacr, Unpacr};
use super::{Field, Insn, Kind, Row, row};
use core::fmt;

/// The numbers of data formats, with their names (`DataFormat` of tt-llk, `tensix_types.h`).
const FORMATS: [(u32, &str); 14] = [
    (0, "fp32"),
    (1, "fp16"),
    (2, "bfp8a"),
    (3, "bfp4a"),
    (4, "tf32"),
    (5, "bf16"),
    (6, "bfp8"),
    (7, "bfp4"),
    (8, "int32"),
    (9, "int16"),
    (10, "fp8"),
    (11, "bfp2a"),
    (14, "int8"),
    (15, "bfp2"),
];
/// A bit for each of them.
const FORMAT_NUMBERS: u16 = {
    let (mut bits, mut i) = (0, 0);
    while i < FORMATS.len() {
        bits |= 1 << FORMATS[i].0;
        i += 1;
    }
    bits
};

/// The name of a data format by its number.
pub fn format_name(number: u32) -> Option<&'static str> {
    FORMATS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// What units add to the mode of an instruction: fields of a word of their own.
pub mod settings {
    use super::{FORMAT_NUMBERS, Field, Kind};

    /// This bit says that there are settings.
    pub(super) const PRESENT: u32 = 1 << 31;

    const fn field(name: &'static str, hi: u32, lo: u32, kind: Kind, modes: u16) -> Field {
        Field { name, hi, lo, kind, when: None, modes }
    }

    /// Of unpackers and the packer: the format of the data that come in.
    pub const IN_FORMAT: Field = field("in_format", 3, 0, Kind::Format, FORMAT_NUMBERS);
    /// Of unpackers and the packer: the format that it becomes.
    pub const OUT_FORMAT: Field = field("out_format", 7, 4, Kind::Format, FORMAT_NUMBERS);
    /// Of the matrix unit: the format of SrcA.
    pub const SRC_FORMAT: Field = field("src_format", 3, 0, Kind::Format, FORMAT_NUMBERS);
    /// Of the matrix unit: sums are of 32 bits (`ALU_ACC_CTRL_Fp32_enabled`).
    pub const DST_FP32: Field = field("dst_fp32", 4, 4, Kind::Flag, 0b11);
    /// Of the matrix unit: integers (`ALU_ACC_CTRL_INT8_math_enabled`).
    pub const INT8_MATH: Field = field("int8_math", 5, 5, Kind::Flag, 0b11);
    /// Of the matrix unit: the fidelity phase.
    pub const FIDELITY: Field = field("fidelity", 7, 6, Kind::Uint, 0b1111);
}

impl Row {
    /// What its unit adds to the mode.
    pub fn settings(&self) -> &'static [Field] {
        const UNPACR: u8 = Unpacr::ROW.opcode;
        const PACR: u8 = Pacr::ROW.opcode;
        const MVMUL: u8 = Mvmul::ROW.opcode;
        const DOTPV: u8 = Dotpv::ROW.opcode;
        const GAPOOL: u8 = Gapool::ROW.opcode;
        const GMPOOL: u8 = Gmpool::ROW.opcode;
        const ELWMUL: u8 = Elwmul::ROW.opcode;
        const ELWADD: u8 = Elwadd::ROW.opcode;
        const ELWSUB: u8 = Elwsub::ROW.opcode;
        use settings::{DST_FP32, FIDELITY, IN_FORMAT, INT8_MATH, OUT_FORMAT, SRC_FORMAT};
        match self.opcode {
            UNPACR | PACR => &[IN_FORMAT, OUT_FORMAT],
            MVMUL | DOTPV | GAPOOL | ELWMUL => &[SRC_FORMAT, DST_FP32, INT8_MATH, FIDELITY],
            ELWADD | ELWSUB | GMPOOL => &[SRC_FORMAT, DST_FP32, INT8_MATH],
            _ => &[],
        }
    }

    /// The operands of the form of `word` that choose what the instruction does.
    pub fn mode_operands(&self, word: u32) -> impl Iterator<Item = &'static Field> {
        self.operands(word).filter(|field| field.modes != 0)
    }
}

/// An instruction without the operands that do not choose what it does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mode {
    word: u32,
    settings: u32,
}

impl Mode {
    /// The mode of an instruction; `None`: its opcode does not exist. `settings` has the fields of
    /// [`Row::settings`], if the unit has said.
    pub fn of(insn: Insn, settings: Option<u32>) -> Option<Self> {
        let word = insn.word();
        let row = row(word)?;
        let bits = row.mode_operands(word).fold(0xFF << super::OPCODE, |bits, field| bits | field.mask());
        let known = row.settings().iter().fold(0, |bits, field| bits | field.mask());
        let settings = settings.filter(|_| known != 0).map_or(0, |settings| settings & known | settings::PRESENT);
        Some(Self { word: word & bits, settings })
    }

    /// The mode with these numbers; `None`: there is no such instruction.
    pub fn from_numbers([word, settings]: [u32; 2]) -> Option<Self> {
        let known = (settings & settings::PRESENT != 0).then_some(settings);
        Self::of(Insn::decode(word), known).filter(|mode| mode.numbers() == [word, settings])
    }

    /// Two numbers that name it: the word, and the settings.
    pub const fn numbers(self) -> [u32; 2] {
        [self.word, self.settings]
    }

    /// Its row.
    pub fn row(self) -> Option<&'static Row> {
        row(self.word)
    }

    /// Its operands and settings, each with its value.
    pub fn values(self) -> impl Iterator<Item = (&'static Field, u32)> {
        let word = self.word;
        let operands = self.row().into_iter().flat_map(move |row| row.mode_operands(word));
        let has_settings = self.settings & settings::PRESENT != 0;
        let settings = self.row().filter(|_| has_settings).map_or(&[][..], Row::settings);
        let operands = operands.map(move |field| (field, field.get(word)));
        operands.chain(settings.iter().map(move |field| (field, field.get(self.settings))))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().map_or("", |row| row.mnemonic))?;
        let mut separator = " ";
        for (field, value) in self.values().filter(|(field, value)| field.kind != Kind::Flag || *value != 0) {
            f.write_str(separator)?;
            write_operand(f, field, field.put(0, value))?;
            separator = ", ";
        }
        Ok(())
    }
}
