//! The language of texts: `{number,type:spec}` for a value, `{{` and `}}` for braces. The compiler
//! has put number and type there (`update_format_string`); the spec is that of the public library
//! fmt (`[[fill]align][sign][#][0][width][.precision][L][type]`).

use crate::metal::{general, tile_slice, words};
use tilework_dtype::{DType, element};

/// A part of a text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Piece {
    /// As it stands.
    Text(String),
    /// The place of a value.
    Value(Value),
}

/// The place of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Value {
    /// Its number in the record.
    pub number: u32,
    /// Its type.
    pub kind: Kind,
    /// The name of an enumeration, whose value this is.
    name: Option<String>,
    spec: Spec,
}

/// How a value is written.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    form: Option<char>,
}

/// Types by their characters (`device_print_type`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    /// So many bytes, signed or not.
    Integer(usize, bool),
    Float,
    Double,
    Bool,
    /// Of a block format: an exponent and a mantissa of so many bits with the sign.
    Block(DType),
    Bf16,
    Pointer,
    String,
    Tile,
    Array,
    Callstack,
}

impl Kind {
    fn of(character: char) -> Option<Self> {
        Some(match character {
            'b' => Self::Integer(1, true),
            'B' => Self::Integer(1, false),
            'h' => Self::Integer(2, true),
            'H' => Self::Integer(2, false),
            'i' => Self::Integer(4, true),
            'I' => Self::Integer(4, false),
            'q' => Self::Integer(8, true),
            'Q' => Self::Integer(8, false),
            'f' => Self::Float,
            'd' => Self::Double,
            '?' => Self::Bool,
            'e' => Self::Block(DType::Bfp4B),
            'E' => Self::Block(DType::Bfp8B),
            'w' => Self::Bf16,
            'p' => Self::Pointer,
            's' => Self::String,
            't' => Self::Tile,
            'A' => Self::Array,
            'c' => Self::Callstack,
            _ => return None,
        })
    }

    /// Bytes of a value that begins with these; some types say it themselves.
    pub(super) fn bytes(self, bytes: &[u8]) -> usize {
        match self {
            Self::Integer(bytes, _) => bytes,
            Self::Bool => 1,
            Self::Block(_) | Self::Bf16 => 2,
            Self::Float | Self::Pointer | Self::String => 4,
            Self::Double => 8,
            Self::Callstack => 12,
            // The length is above the type.
            Self::Array => 4 + 4 * bytes.get(2..4).map_or(0, |len| usize::from(u16::from_le_bytes([len[0], len[1]]))),
            // In front of the elements: `TileSliceHostDev`, whose last byte is their room.
            Self::Tile => 16 + bytes.get(15).copied().map_or(0, usize::from),
        }
    }
}

impl Piece {
    /// The value.
    pub(super) fn value(&self) -> Option<&Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Text(_) => None,
        }
    }
}

/// The parts of a text.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, &'static str> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
            plain.push(c);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let (inside, after) = after.split_once('}').ok_or("a place that does not end")?;
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Value(Value::parse(inside)?));
            rest = after;
        } else {
            plain.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}

impl Value {
    /// Reads what stands between the braces.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (number, rest) = text.split_once(',').ok_or("a place without a number")?;
        let number = number.parse().map_err(|_| "a place without a number")?;
        let (kind, name, spec) = match rest.strip_prefix("/e_").or_else(|| rest.strip_prefix("/E_")) {
            None => {
                let kind = rest.chars().next().ok_or("a place without a type")?;
                let after = &rest[kind.len_utf8()..];
                (kind, None, after)
            }
            Some(of) => {
                let kind = of.chars().next().ok_or("a place without a type")?;
                let after = of[kind.len_utf8()..].strip_prefix('_').ok_or("an enumeration without a name")?;
                // A name may have two colons; one begins the spec.
                let end = single_colon(after).unwrap_or(after.len());
                (kind, Some(after[..end].to_owned()), &after[end..])
            }
        };
        let kind = Kind::of(kind).ok_or("a type that is not known")?;
        let spec = match spec.strip_prefix(':') {
            Some(spec) => Spec::parse(spec)?,
            None if spec.is_empty() => Spec::default(),
            None => return Err("a type that is not known"),
        };
        Ok(Self { number, kind, name, spec })
    }

    /// The value of these bytes; `string` finds the string at an address of the file.
    pub(super) fn show(&self, bytes: &[u8], string: &dyn Fn(u32) -> Option<String>) -> String {
        if bytes.is_empty() {
            return "(missing)".to_owned();
        }
        let spec = &self.spec;
        let bits = bytes.iter().take(8).rev().fold(0, |bits: u64, &byte| bits << 8 | u64::from(byte));
        let word = |at: usize| {
            bytes.get(at..at + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        };
        let text = |text: String| spec.fill(&text, '<');
        match self.kind {
            Kind::Integer(size, signed) => {
                let shift = 64 - 8 * size;
                let value = if signed { i128::from((bits << shift).cast_signed() >> shift) } else { i128::from(bits) };
                match &self.name {
                    Some(name) => text(format!("{name}({value})")),
                    None => spec.integer(value),
                }
            }
            Kind::Bool if spec.form.is_none_or(|form| form == 's') => text((bits != 0).to_string()),
            Kind::Bool => spec.integer(bits.into()),
            Kind::Float => spec.float(f32::from_bits(word(0)).into(), true),
            Kind::Double => spec.float(f64::from_bits(bits), false),
            Kind::Bf16 => spec.float(element::decode(DType::BF16, word16(bytes)).into(), true),
            Kind::Block(format) => {
                let [exponent, mantissa] = word16(bytes).to_le_bytes().first_chunk().copied().unwrap_or_default();
                let value =
                    tilework_dtype::block::BlockFormat::of(format).map(|format| format.decode(mantissa, exponent));
                spec.float(value.unwrap_or(f32::NAN).into(), true)
            }
            Kind::Pointer => text(format!("{:#x}", word(0))),
            Kind::String => {
                let found = string(word(0)).unwrap_or_else(|| format!("(string at {:#x})", word(0)));
                text(found.chars().take(spec.precision.unwrap_or(usize::MAX)).collect())
            }
            Kind::Tile => text(tile_slice(bytes)),
            Kind::Array => text(format!("(type {:#x}){}", word(0) & 0xFFFF, words(&bytes[4.min(bytes.len())..]))),
            Kind::Callstack => text(format!("(pc {:#x}, from {:#x})", word(0), word(4))),
        }
    }
}

/// The first two bytes as a word.
fn word16(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |&bytes| u16::from_le_bytes(bytes).into())
}

/// The position of the first colon that does not stand beside another one.
fn single_colon(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b':', Some(b':')) => at += 2,
            (b':', _) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

impl Spec {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut rest: Vec<char> = text.chars().collect();
        rest.reverse();
        let is_align = |c: Option<&char>| c.is_some_and(|c| "<>^".contains(*c));
        let mut spec = Self::default();
        if is_align(rest.len().checked_sub(2).and_then(|at| rest.get(at))) {
            spec.fill = rest.pop();
        }
        if is_align(rest.last()) {
            spec.align = rest.pop();
        }
        spec.sign = rest.pop_if(|c| "+- ".contains(*c));
        spec.alternate = rest.pop_if(|c| *c == '#').is_some();
        spec.zeros = rest.pop_if(|c| *c == '0').is_some();
        spec.width = number(&mut rest)?.unwrap_or(0);
        if rest.pop_if(|c| *c == '.').is_some() {
            spec.precision = number(&mut rest)?;
        }
        rest.pop_if(|c| *c == 'L');
        spec.form = rest.pop_if(|c| "aAbBcdeEfFgGopsxX?".contains(*c));
        if rest.is_empty() { Ok(spec) } else { Err("a form that is not known") }
    }

    /// Text with what fills it up to the width.
    fn fill(&self, text: &str, usual: char) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        let before = match self.align.unwrap_or(usual) {
            '>' => missing,
            '^' => missing / 2,
            _ => 0,
        };
        let fill = |count| String::from_iter(std::iter::repeat_n(self.fill.unwrap_or(' '), count));
        format!("{}{text}{}", fill(before), fill(missing - before))
    }

    /// A number of a sign, a mark of its base and digits.
    fn number(&self, negative: bool, mark: &str, digits: &str) -> String {
        let sign = match (negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        let mut text = format!("{sign}{mark}{digits}");
        if self.zeros && self.align.is_none() {
            let zeros = self.width.saturating_sub(text.chars().count());
            text = format!("{sign}{mark}{}{digits}", "0".repeat(zeros));
        }
        self.fill(&text, '>')
    }

    fn integer(&self, value: i128) -> String {
        let magnitude = value.unsigned_abs();
        let (mark, digits) = match self.form {
            Some('x') => ("0x", format!("{magnitude:x}")),
            Some('X') => ("0X", format!("{magnitude:X}")),
            Some('b') => ("0b", format!("{magnitude:b}")),
            Some('B') => ("0B", format!("{magnitude:b}")),
            Some('o') => ("0", format!("{magnitude:o}")),
            Some('c') => {
                let c = u32::try_from(value).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                return self.fill(&c.to_string(), '<');
            }
            _ => ("", magnitude.to_string()),
        };
        self.number(value < 0, if self.alternate { mark } else { "" }, &digits)
    }

    /// A float; without a form with as few digits as tell it from its neighbours.
    fn float(&self, value: f64, single: bool) -> String {
        let size = value.abs();
        let digits = match (self.form, self.precision) {
            _ if !value.is_finite() => size.to_string().to_lowercase(),
            (Some('f' | 'F'), precision) => format!("{size:.*}", precision.unwrap_or(6)),
            (Some(form @ ('e' | 'E')), precision) => {
                let text = format!("{size:.*e}", precision.unwrap_or(6));
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                format!("{digits}{form}{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
            }
            (Some('g' | 'G'), precision) => general(size, precision.unwrap_or(6).max(1)),
            (_, Some(precision)) => general(size, precision.max(1)),
            // The shortest that is read back as the same value.
            #[expect(clippy::cast_possible_truncation, reason = "it came from 32 bits")]
            (_, None) if single => format!("{}", size as f32),
            (_, None) => format!("{size}"),
        };
        self.number(value.is_sign_negative() && !value.is_nan(), "", &digits)
    }
}

/// A number in decimal, from the end of what is left.
fn number(rest: &mut Vec<char>) -> Result<Option<usize>, &'static str> {
    /// Characters of a line at most.
    const MOST: usize = 1 << 12;
    let mut value = None;
    while let Some(digit) = rest.last().and_then(|c| c.to_digit(10)) {
        rest.pop();
        let next = value.unwrap_or(0) * 10 + digit as usize;
        value = Some(next).filter(|&next| next <= MOST);
        if value.is_none() {
            return Err("a width that is too large");
        }
    }
    Ok(value)
}
