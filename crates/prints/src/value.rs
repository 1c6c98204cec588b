//! Values as text, as Rust's `format!` writes them.

use crate::pattern::{Spec, Style};
use tilework_abi::print::Type;
use tilework_dtype::{DType, element};

/// The text of a value of type `kind` whose words are `low` and, for 64 bits, `high`.
pub(crate) fn show(kind: Type, low: u32, high: u32, spec: &Spec) -> String {
    let wide = u64::from(high) << 32 | u64::from(low);
    let unsigned = |bits: u32| integer(false, u64::from(low), bits, spec);
    let signed = |value: i32, bits: u32| integer(value < 0, i64::from(value).unsigned_abs(), bits, spec);
    match kind {
        Type::U8 => unsigned(8),
        Type::U16 => unsigned(16),
        Type::U32 => unsigned(32),
        Type::U64 => integer(false, wide, 64, spec),
        Type::I8 => signed(low.cast_signed() << 24 >> 24, 8),
        Type::I16 => signed(low.cast_signed() << 16 >> 16, 16),
        Type::I32 => signed(low.cast_signed(), 32),
        Type::I64 => integer(wide.cast_signed() < 0, wide.cast_signed().unsigned_abs(), 64, spec),
        Type::Bool if spec.style == Style::Plain || spec.style == Style::Debug => {
            padded_right((low != 0).to_string(), spec)
        }
        Type::Bool => unsigned(8),
        Type::Char => character(low, spec),
        Type::F32 => float(f32::from_bits(low), low, 32, spec),
        Type::Bf16 => float(element::decode(DType::BF16, low), low, 16, spec),
    }
}

/// Text, filled with spaces on the right, as Rust has it for what is no number.
fn padded_right(text: String, spec: &Spec) -> String {
    format!("{text:<width$}", width = spec.width)
}

fn character(code: u32, spec: &Spec) -> String {
    match (char::from_u32(code), spec.style) {
        (Some(c), Style::Plain) => padded_right(c.to_string(), spec),
        (Some(c), Style::Debug) => padded_right(format!("{c:?}"), spec),
        _ => integer(false, u64::from(code), 32, spec),
    }
}

/// An integer of so many bits: in other bases than ten as its two's complement.
fn integer(negative: bool, magnitude: u64, bits: u32, spec: &Spec) -> String {
    let mask = u64::MAX >> (64 - bits);
    let magnitude = if negative { magnitude } else { magnitude & mask };
    let pattern = if negative { magnitude.wrapping_neg() & mask } else { magnitude };
    let (prefix, digits) = match spec.style {
        Style::LowerHex => ("0x", format!("{pattern:x}")),
        Style::UpperHex => ("0x", format!("{pattern:X}")),
        Style::Binary => ("0b", format!("{pattern:b}")),
        Style::Octal => ("0o", format!("{pattern:o}")),
        Style::Exponent => return number(negative, "", exponent(magnitude as f64, spec), spec),
        Style::Plain | Style::Debug => return number(negative, "", magnitude.to_string(), spec),
    };
    number(false, if spec.alternate { prefix } else { "" }, digits, spec)
}

/// A float; in hexadecimal, binary and octal its bits.
fn float(value: f32, pattern: u32, bits: u32, spec: &Spec) -> String {
    let size = value.abs();
    let digits = match (spec.style, spec.precision) {
        (Style::Plain, None) => size.to_string(),
        (Style::Debug, None) => format!("{size:?}"),
        (Style::Plain | Style::Debug, Some(precision)) => format!("{size:.precision$}"),
        (Style::Exponent, None) => format!("{size:e}"),
        (Style::Exponent, Some(precision)) => format!("{size:.precision$e}"),
        _ => return integer(false, u64::from(pattern), bits, spec),
    };
    number(value.is_sign_negative() && !value.is_nan(), "", digits, spec)
}

fn exponent(value: f64, spec: &Spec) -> String {
    match spec.precision {
        Some(precision) => format!("{value:.precision$e}"),
        None => format!("{value:e}"),
    }
}

/// Sign, prefix and digits, filled up to the width.
fn number(negative: bool, prefix: &str, digits: String, spec: &Spec) -> String {
    let sign = if negative { "-" } else { "" };
    let fill = spec.width.saturating_sub(sign.len() + prefix.len() + digits.chars().count());
    match spec.zeros {
        true => format!("{sign}{prefix}{}{digits}", "0".repeat(fill)),
        false => format!("{}{sign}{prefix}{digits}", " ".repeat(fill)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Pattern, Piece};
    use proptest::prelude::*;

    fn shown(text: &str, kind: Type, value: u64) -> String {
        let pattern = Pattern::parse(text).unwrap();
        let [Piece::Place(spec)] = pattern.pieces() else { panic!("{text} is not one place") };
        show(kind, value as u32, (value >> 32) as u32, spec)
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_rust_writes_them(bits: u64) {
            macro_rules! same {
                ($kind:ident $value:expr; $($text:literal)*) => {$(
                    let value = $value;
                    prop_assert_eq!(shown($text, Type::$kind, bits), format!($text, value), "{} of {:?}", $text, value);
                )*};
            }
            same!(U8 bits as u8; "{}" "{:?}" "{:x}" "{:#x}" "{:#06X}" "{:b}" "{:#o}" "{:5}" "{:05}" "{:e}");
            same!(U16 bits as u16; "{}" "{:#010x}" "{:10}");
            same!(U32 bits as u32; "{}" "{:?}" "{:x}" "{:#010x}" "{:#034b}" "{:12}" "{:012}");
            same!(U64 bits; "{}" "{:x}" "{:#018x}");
            same!(I8 bits as i8; "{}" "{:x}" "{:#b}" "{:6}" "{:06}");
            same!(I16 bits as i16; "{}" "{:X}" "{:08}");
            same!(I32 bits as i32; "{}" "{:?}" "{:x}" "{:#010x}" "{:14}" "{:014}");
            same!(I64 bits as i64; "{}" "{:x}" "{:24}" "{:024}");
            same!(F32 f32::from_bits(bits as u32); "{}" "{:?}" "{:.3}" "{:e}" "{:.2e}" "{:12.4}" "{:012.4}");
        }
    }

    #[test]
    fn truth_characters_and_halves_have_their_own_forms() {
        assert_eq!(shown("{}", Type::Bool, 1), "true");
        assert_eq!(shown("{:7}", Type::Bool, 0), "false  ");
        assert_eq!(shown("{:?}", Type::Char, u64::from(u32::from('ä'))), "'ä'");
        assert_eq!(shown("{}", Type::Char, 0xD800), "55296");
        assert_eq!(shown("{}", Type::Bf16, 0x3F80), "1");
        assert_eq!(shown("{:?} ".trim(), Type::Bf16, 0xC0A0), "-5.0");
        assert_eq!(shown("{:#06x}", Type::Bf16, 0xC0A0), "0xc0a0");
        assert_eq!(shown("{:#x}", Type::F32, u64::from(1.0_f32.to_bits())), "0x3f800000");
    }
}
