//! The texts of a kernel: read from its ELF file, checked, and filled with the values of a record.

use crate::elements;
use crate::pattern::{Pattern, PatternError, Piece};
use crate::ring::Record;
use crate::value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use tilework_abi::print::{FIELDS, KINDS, MAX_VALUES, SECTION_BYTES, Type};
use tilework_text::plain;

/// What a text is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A print of values.
    Print,
    /// An assertion that failed.
    Assert,
    /// Elements of a tile.
    Tile,
    /// Elements of an array.
    Array,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Print, Self::Assert, Self::Tile, Self::Array];

    fn of(name: &str) -> Option<Self> {
        KINDS.iter().position(|&known| known == name).map(|i| Self::ALL[i])
    }
}

/// What is wrong with a text, or with their section.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TextError {
    /// A text that is not of the language.
    #[error("{file}:{line}: print {text:?}: {why}")]
    Pattern {
        /// Source file.
        file: String,
        /// Line.
        line: u32,
        /// The text.
        text: String,
        /// What is wrong.
        why: PatternError,
    },
    /// Values that are too many or too few.
    #[error("{file}:{line}: print {text:?} has {places} places for values, but {values} are given")]
    Values {
        /// Source file.
        file: String,
        /// Line.
        line: u32,
        /// The text.
        text: String,
        /// Places in it.
        places: usize,
        /// Values that the call has.
        values: usize,
    },
    /// Bytes that are no text.
    #[error("offset {offset:#x}: {what}")]
    Section {
        /// Where in the section.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
}

/// One text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// What it is for.
    pub kind: Kind,
    /// Source file of the call.
    pub file: String,
    /// Line of the call.
    pub line: u32,
    /// The condition of an assertion; empty for others.
    pub condition: String,
    pattern: Pattern,
}

/// The texts of a kernel, by number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Texts(BTreeMap<u16, Text>);

impl Texts {
    /// Reads the section of texts of a kernel's file.
    ///
    /// # Errors
    /// Bytes that are no texts; a text with other places than values.
    pub fn read(section: &[u8]) -> Result<Self, TextError> {
        if section.len() > SECTION_BYTES as usize {
            return Err(TextError::Section { offset: SECTION_BYTES as usize, what: "more than 64 KiB of texts" });
        }
        let mut texts = BTreeMap::new();
        let mut at = 0;
        while at < section.len() {
            // Compilers align arrays; no text begins with a zero.
            if section[at] == 0 {
                at += 1;
                continue;
            }
            let (text, bytes) = Text::read(&section[at..], at)?;
            // The section is no longer than the numbers reach.
            if let Ok(number) = u16::try_from(at) {
                texts.insert(number, text);
            }
            at += bytes;
        }
        Ok(Self(texts))
    }

    /// The text with a number.
    pub fn get(&self, number: u16) -> Option<&Text> {
        self.0.get(&number)
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Text> {
        self.0.values()
    }
}

impl Text {
    /// Reads the text at the start of `bytes`, which are `offset` bytes into the section; also says
    /// how many bytes it has.
    fn read(bytes: &[u8], offset: usize) -> Result<(Self, usize), TextError> {
        let wrong = |what| TextError::Section { offset, what };
        let mut fields = [""; FIELDS];
        let mut end = 0;
        for field in &mut fields {
            let rest = &bytes[end..];
            let length = rest.iter().position(|&byte| byte == 0).ok_or(wrong("a text that does not end"))?;
            *field = std::str::from_utf8(&rest[..length]).map_err(|_| wrong("a text that is not UTF-8"))?;
            end += length + 1;
        }
        let [kind, values, file, line, text, condition] = fields;
        let kind = Kind::of(kind).ok_or(wrong("a text of an unknown kind"))?;
        let values = values.parse().ok().filter(|&n: &usize| n <= MAX_VALUES);
        let values = values.ok_or(wrong("a number of values that is none, or too large"))?;
        let line = line.parse().map_err(|_| wrong("a line that is no number"))?;
        let shown = |text: &str| plain(text).into_owned();
        let pattern = match kind {
            // The text of a tile or an array has no places: it stands before the elements.
            Kind::Tile | Kind::Array => Pattern::parse(&text.replace('{', "{{").replace('}', "}}")),
            Kind::Print | Kind::Assert => Pattern::parse(text),
        };
        let pattern = pattern.map_err(|why| TextError::Pattern { file: shown(file), line, text: shown(text), why })?;
        if pattern.places() != values {
            let (file, text, places) = (shown(file), shown(text), pattern.places());
            return Err(TextError::Values { file, line, text, places, values });
        }
        Ok((Self { kind, file: shown(file), line, condition: shown(condition), pattern }, end))
    }

    /// The text with the values of a record, without what a terminal obeys. Tiles and arrays have a
    /// line for each row.
    pub fn show(&self, record: &Record) -> String {
        let mut out = String::new();
        let mut values = record.values.iter().copied();
        let mut types = record.types;
        for piece in self.pattern.pieces() {
            match piece {
                Piece::Literal(text) => out += &plain(text),
                Piece::Place(spec) => {
                    let shown = Type::of(types & 0xF).and_then(|kind| {
                        let low = values.next()?;
                        let high = if kind.words() == 2 { values.next()? } else { 0 };
                        Some(value::show(kind, low, high, spec))
                    });
                    types >>= 4;
                    // Only a record that something else overwrote lacks values.
                    out += &shown.map_or(Cow::Borrowed("?"), |text| plain(&text).into_owned().into());
                }
            }
        }
        let elements = match self.kind {
            Kind::Tile => elements::tile(&record.values),
            Kind::Array => elements::array(&record.values),
            Kind::Print | Kind::Assert => return out,
        };
        // Writing to a string cannot fail.
        let _ = match out.is_empty() {
            true => write!(out, "{elements}"),
            false => write!(out, ": {elements}"),
        };
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(fields: [&str; FIELDS]) -> Vec<u8> {
        fields.iter().flat_map(|field| field.bytes().chain([0])).collect()
    }

    fn record(types: u32, values: &[u32]) -> Record {
        Record { kernel: 0, cycle: 0, text: 0, types, values: values.to_vec() }
    }

    #[test]
    fn texts_have_the_numbers_of_their_offsets() {
        let first = section(["print", "1", "a.rs", "7", "x = {}", ""]);
        let second = section(["assert", "0", "b.c", "9", "", "a < b"]);
        let padding = 5;
        let all = [first.clone(), vec![0; padding], second].concat();
        let texts = Texts::read(&all).unwrap();
        assert_eq!(texts.iter().count(), 2);
        let text = texts.get(0).unwrap();
        assert_eq!((text.kind, &*text.file, text.line), (Kind::Print, "a.rs", 7));
        assert_eq!(text.show(&record(Type::U32.code(), &[42])), "x = 42");
        let other = texts.get(u16::try_from(first.len() + padding).unwrap()).unwrap();
        assert_eq!((other.kind, &*other.condition), (Kind::Assert, "a < b"));
        assert_eq!(texts.get(3), None);
    }

    #[test]
    fn values_and_places_must_be_as_many() {
        let error = Texts::read(&section(["print", "1", "k.rs", "12", "{} {}", ""])).unwrap_err();
        assert_eq!(error.to_string(), "k.rs:12: print \"{} {}\" has 2 places for values, but 1 are given");
        let error = Texts::read(&section(["print", "1", "k.rs", "12", "{:z}", ""])).unwrap_err();
        assert!(error.to_string().starts_with("k.rs:12: print \"{:z}\": "), "{error}");
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_offset() {
        for (bytes, what) in [
            (&b"print\x000\0a\x001\0text"[..], "does not end"),
            (b"shout\x000\0a\x001\0text\0\0", "unknown kind"),
            (b"print\x009\0a\x001\0text\0\0", "number of values"),
            (b"print\x000\0a\0one\0text\0\0", "no number"),
            (b"print\x000\0\xFF\x001\0text\0\0", "UTF-8"),
        ] {
            let error = Texts::read(&[&[0; 3], bytes].concat()).unwrap_err();
            assert!(error.to_string().contains(what) && error.to_string().contains("offset 0x3"), "{error}");
        }
        assert!(Texts::read(&vec![0; SECTION_BYTES as usize + 1]).is_err());
    }

    #[test]
    fn a_record_with_too_few_values_says_so() {
        let texts = Texts::read(&section(["print", "3", "a", "1", "{} {} {}", ""])).unwrap();
        let types = Type::U8.code() | Type::U64.code() << 4;
        assert_eq!(texts.get(0).unwrap().show(&record(types, &[1, 2])), "1 ? ?");
        assert_eq!(texts.get(0).unwrap().show(&record(types, &[1, 2, 1])), "1 4294967298 ?");
    }

    #[test]
    fn a_text_cannot_command_a_terminal() {
        let texts = Texts::read(&section(["print", "1", "a", "1", "\u{1b}[2J{}", ""])).unwrap();
        let shown = texts.get(0).unwrap().show(&record(Type::Char.code(), &[0x1b]));
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
}
