//! The texts of a file, and a print as a line.

use super::format::{Piece, Value, pieces};
use tilework_text::plain;

/// Bytes of an entry (`DevicePrintStringInfo32`): text, file, line, and a word that is not used.
const ENTRY: usize = 16;
/// Characters of a text or a file's name at most.
const MOST: usize = 1 << 12;

/// A part of a file that is not sent to the chip: its address, and its bytes.
pub type Section<'a> = (u32, &'a [u8]);

/// What is wrong with the texts of a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TextsError {
    /// Entries that are not whole.
    #[error("section .device_print_strings_info has {0} bytes; a multiple of 16 was expected")]
    Size(usize),
    /// An address outside of the texts.
    #[error("entry {entry} of .device_print_strings_info names {address:#x}, which is in no text")]
    Address {
        /// The number of the entry.
        entry: usize,
        /// What it names.
        address: u32,
    },
    /// A text that is not of the language.
    #[error("{file}:{line}: device print {text:?}: {why}")]
    Format {
        /// Source file.
        file: String,
        /// Line.
        line: u32,
        /// The text.
        text: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// A text with the place of its call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Text {
    /// Source file.
    pub file: String,
    /// Line.
    pub line: u32,
    pieces: Vec<Piece>,
}

/// The texts of a file by number, and the strings that values may name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Texts {
    all: Vec<Text>,
    base: u32,
    strings: Vec<u8>,
}

impl Texts {
    /// Reads the sections `.device_print_strings_info` and `.device_print_strings`.
    ///
    /// # Errors
    /// Entries that are not whole or name nothing; a text that is not of the language.
    pub fn read((_, info): Section<'_>, (base, strings): Section<'_>) -> Result<Self, TextsError> {
        if !info.len().is_multiple_of(ENTRY) {
            return Err(TextsError::Size(info.len()));
        }
        let mut texts = Self { all: Vec::new(), base, strings: strings.to_vec() };
        for (entry, bytes) in info.chunks_exact(ENTRY).enumerate() {
            let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
            let string = |address| texts.string(address).ok_or(TextsError::Address { entry, address });
            let (text, file, line) = (string(word(0))?, string(word(4))?, word(8));
            let pieces = match pieces(&text) {
                Ok(pieces) => pieces,
                Err(why) => return Err(TextsError::Format { file, line, text, why }),
            };
            texts.all.push(Text { file, line, pieces });
        }
        Ok(texts)
    }

    /// The text with a number.
    pub fn get(&self, number: u16) -> Option<&Text> {
        self.all.get(usize::from(number))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The string at an address, up to its zero.
    fn string(&self, address: u32) -> Option<String> {
        let bytes = self.strings.get(address.checked_sub(self.base)? as usize..)?;
        let bytes = &bytes[..bytes.len().min(MOST)];
        let end = bytes.iter().position(|&byte| byte == 0)?;
        Some(plain(&String::from_utf8_lossy(&bytes[..end])).into_owned())
    }

    /// The print of a text with these bytes of values. Values that the record does not have are
    /// named as missing.
    pub fn show(&self, text: &Text, values: &[u8]) -> String {
        // In the record the values stand by their numbers.
        let mut types: Vec<&Value> = text.pieces.iter().filter_map(Piece::value).collect();
        types.sort_by_key(|value| value.number);
        types.dedup_by_key(|value| value.number);
        let (mut at, mut placed) = (0, Vec::new());
        for value in types {
            let rest = values.get(at..).unwrap_or_default();
            let bytes = rest.get(..value.kind.bytes(rest)).unwrap_or_default();
            placed.push((value.number, bytes));
            at += bytes.len();
        }
        let mut out = String::new();
        for piece in &text.pieces {
            match piece {
                Piece::Text(text) => out += text,
                Piece::Value(value) => {
                    let bytes = placed.iter().find(|(number, _)| *number == value.number).map_or(&[][..], |it| it.1);
                    out += &value.show(bytes, &|address| self.string(address));
                }
            }
        }
        plain(&out).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INFO: u32 = 0x650_0000;
    const STRINGS: u32 = 0x640_0000;

    /// The sections of a file with these texts, all of `k.cpp` line 7, and one more string.
    fn texts(all: &[&str], string: &str) -> Texts {
        let mut strings = format!("{string}\0k.cpp\0").into_bytes();
        let file = STRINGS + string.len() as u32 + 1;
        let mut info = Vec::new();
        for text in all {
            let words = [STRINGS + strings.len() as u32, file, 7, 0];
            info.extend(words.iter().flat_map(|word: &u32| word.to_le_bytes()));
            strings.extend(text.bytes().chain([0]));
        }
        Texts::read((INFO, &info), (STRINGS, &strings)).unwrap()
    }

    fn shown(text: &str, values: &[u8]) -> String {
        let texts = texts(&[text], "from the file");
        let text = texts.get(0).unwrap();
        assert_eq!((text.file.as_str(), text.line), ("k.cpp", 7));
        texts.show(text, values)
    }

    #[test]
    fn values_stand_in_the_record_by_number_and_in_the_text_by_place() {
        // DEVICE_PRINT("{} of {}: {}", uint8_t 3, uint32_t 500, int16_t -2): the largest first.
        let record = [500_u32.to_le_bytes().to_vec(), (-2_i16).to_le_bytes().to_vec(), vec![3, 0]].concat();
        assert_eq!(shown("{2,B} of {0,I}: {1,h}", &record), "3 of 500: -2");
        assert_eq!(shown("{0,I} and {0,I:x}, {{}}", &255_u32.to_le_bytes()), "255 and ff, {}");
    }

    #[test]
    fn every_type_has_its_form() {
        let bytes = |bits: u64| bits.to_le_bytes().to_vec();
        for (text, values, line) in [
            ("{0,b}", bytes(0xFE), "-2"),
            ("{0,H}", bytes(65535), "65535"),
            ("{0,i}", bytes(0xFFFF_FFFF), "-1"),
            ("{0,q}", bytes(u64::MAX), "-1"),
            ("{0,Q:#x}", bytes(1 << 40), "0x10000000000"),
            ("{0,f}", bytes(1.5_f32.to_bits().into()), "1.5"),
            ("{0,f:.3f}", bytes(1.5_f32.to_bits().into()), "1.500"),
            ("{0,d:e}", bytes(1500.0_f64.to_bits()), "1.500000e+03"),
            ("{0,?}", bytes(1), "true"),
            ("{0,w}", bytes(0x3FC0), "1.5"),
            ("{0,p}", bytes(0x1_0040), "0x10040"),
            ("{0,s}", bytes(STRINGS.into()), "from the file"),
            ("{0,s}", bytes(0x100), "(string at 0x100)"),
            ("{0,/e_i_app::Mode}", bytes(2), "app::Mode(2)"),
            ("{0,/E_B_app::Flags:>14}", bytes(5), " app::Flags(5)"),
            ("{0,c}", [bytes(0x30), bytes(0)].concat(), "(pc 0x30, from 0x0)"),
        ] {
            assert_eq!(shown(text, &values), line, "{text}");
        }
    }

    #[test]
    fn widths_signs_and_fillings_are_those_of_the_format_library() {
        let value = 42_u32.to_le_bytes();
        for (spec, line) in [
            (":6", "    42"),
            (":<6", "42    "),
            (":^6", "  42  "),
            (":*>6", "****42"),
            (":06", "000042"),
            (":+", "+42"),
            (": ", " 42"),
            (":#x", "0x2a"),
            (":#06x", "0x002a"),
            (":X", "2A"),
            (":b", "101010"),
            (":#o", "052"),
            (":c", "*"),
        ] {
            assert_eq!(shown(&format!("{{0,I{spec}}}"), &value), line, "{spec}");
        }
        let name = STRINGS.to_le_bytes();
        assert_eq!(shown("{0,s:15}|", &name), "from the file  |");
        assert_eq!(shown("{0,s:.4}|", &name), "from|");
    }

    #[test]
    fn arrays_and_tiles_bring_their_own_size() {
        let words = [3 << 16 | 0x18_u32, 1, 2, 3, 9];
        let record: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(shown("{0,A} then {1,I}", &record), "(type 0x18) 0x1 0x2 0x3 then 9");
        // Two bf16 elements of the 64 bytes that the slice has room for.
        let mut slice =
            [vec![0, 0, 2, 0, 0, 1, 1, 0, 2, 1], vec![4, 5, 2, 1, 2, 64], vec![0x80, 0x3F, 0xC0, 0x3F]].concat();
        slice.resize(16 + 64, 0);
        slice.extend(7_u32.to_le_bytes());
        assert_eq!(shown("{0,t} then {1,I}", &slice), "1.0 1.5 then 7");
    }

    #[test]
    fn a_record_that_is_too_short_says_so() {
        assert_eq!(shown("{0,I} {1,H}", &[1, 0, 0, 0]), "1 (missing)");
    }

    #[test]
    fn texts_that_are_none_are_refused() {
        let read = |info: &[u8], strings: &[u8]| Texts::read((INFO, info), (STRINGS, strings)).unwrap_err().to_string();
        assert!(read(&[0; 15], b"").contains("15 bytes"));
        assert!(read(&[0; 16], b"x\0").contains("entry 0 of .device_print_strings_info names 0x0"));
        let at = |text: &[u8]| {
            let info: Vec<u8> = [STRINGS, STRINGS, 7, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
            read(&info, text)
        };
        assert!(at(b"{0,I\0").contains("device print \"{0,I\": a place that does not end"));
        assert!(at(b"{0,I}").contains("names 0x6400000"), "without its zero");
        assert!(at(b"{0,Z}\0").contains("a type that is not known"));
        assert!(at(b"{I}\0").contains("a place without a number"));
    }

    proptest! {
        #[test]
        fn any_text_and_any_values_are_shown(text in "[{}0-9,a-zA-Z:<.#/_ ]{0,40}", values in proptest::collection::vec(any::<u8>(), 0..120)) {
            let info: Vec<u8> = [STRINGS, STRINGS, 7, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
            if let Ok(texts) = Texts::read((INFO, &info), (STRINGS, format!("{text}\0").as_bytes())) {
                texts.show(texts.get(0).unwrap(), &values);
            }
        }
    }
}
