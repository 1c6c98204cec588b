//! Instructions as text: mnemonic and operands by name, as in `SEMPOST semaphore_mask=0x1`.
//!
//! Flags are named when they are set. Operands that the word's form does not have are left out;
//! bits that mean nothing are shown when they are set.

use super::{Field, Insn, Kind, mode};
use core::fmt;

impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        let Some(row) = self.row() else { return write!(f, "{word:#010x}") };
        f.write_str(row.mnemonic)?;
        let shown = |field: &&Field| field.kind != Kind::Flag || field.get(word) != 0;
        let mut separator = " ";
        for field in row.operands(word).filter(shown) {
            f.write_str(separator)?;
            write_operand(f, field, word)?;
            separator = ", ";
        }
        match word & !row.defined_bits(word) {
            0 => Ok(()),
            rest => write!(f, " (other bits {rest:#x})"),
        }
    }
}

impl fmt::Debug for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

pub(super) fn write_operand(f: &mut fmt::Formatter<'_>, field: &Field, word: u32) -> fmt::Result {
    let (name, value) = (field.name, field.get(word));
    match field.kind {
        Kind::Flag => f.write_str(name),
        Kind::Uint => write!(f, "{name}={value}"),
        Kind::Signed => write!(f, "{name}={}", field.get_signed(word)),
        Kind::Hex => write!(f, "{name}={value:#x}"),
        Kind::Gpr => write!(f, "{name}=r{value}"),
        Kind::GprHalf => write!(f, "{name}=r{}.{}", value >> 1, if value & 1 == 0 { "lo" } else { "hi" }),
        Kind::LReg => write!(f, "{name}=l{value}"),
        Kind::Format => match mode::format_name(value) {
            Some(format) => write!(f, "{name}={format}"),
            None => write!(f, "{name}={value}"),
        },
    }
}
