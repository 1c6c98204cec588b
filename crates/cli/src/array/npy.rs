//! `.npy` files.
//!
//! The format is NEP 1 of NumPy: a magic, a version, the length of a header, the header (a Python
//! dictionary in one line), then the elements. The reader is our own because arrays come from
//! anywhere: it reads the elements only when the header and the length of the file agree, it does
//! not recurse, and it names what it found.

use super::{Array, DTYPES, MAX_DIMENSIONS, MAX_FILE_BYTES, MAX_HEADER_BYTES, array_bytes, shape_text};
use crate::failure::{Failure, Outcome};
use crate::files;
use std::path::Path;
use tilework_dtype::DType;

impl Array {
    /// Reads a `.npy` file.
    pub fn read(path: &Path) -> Outcome<Self> {
        let (mut file, length) = files::open_within(path, MAX_FILE_BYTES, "a .npy file")?;
        let mut head = Vec::new();
        files::read_exactly(path, &mut file, length.min(MAX_HEADER_BYTES), &mut head)?;
        let header = Header::parse(&head, length).map_err(|e| Failure::file(path, tilework_text::plain(&e)))?;
        let mut data = head.split_off(header.data_offset);
        files::read_exactly(path, file, length.saturating_sub(MAX_HEADER_BYTES), &mut data)?;
        Ok(Self { dtype: header.dtype, shape: header.shape, data })
    }

    /// The array in the bytes of a `.npy` file.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_npy(mut bytes: Vec<u8>) -> Result<Self, String> {
        let header = Header::parse(
            &bytes[..bytes.len().min(usize::try_from(MAX_HEADER_BYTES).unwrap_or(usize::MAX))],
            bytes.len() as u64,
        )?;
        let data = bytes.split_off(header.data_offset);
        Ok(Self { dtype: header.dtype, shape: header.shape, data })
    }

    /// The header of a `.npy` file of this array, version 1.0, padded so that the elements start at
    /// a multiple of 64 bytes.
    pub fn header(dtype: DType, shape: &[u64]) -> Vec<u8> {
        let descr = dtype.npy_descr().expect("arrays have the element types of NumPy");
        let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {}, }}", shape_text(shape));
        const FIXED: usize = 10;
        let total = (FIXED + text.len() + 1).next_multiple_of(64);
        text += &" ".repeat(total - FIXED - text.len() - 1);
        text.push('\n');
        let length = u16::try_from(text.len()).expect("32 dimensions of at most 20 digits stay below 64 KiB");
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend(length.to_le_bytes());
        out.extend(text.as_bytes());
        out
    }

    /// Writes a `.npy` file, whole or not at all.
    pub fn write(&self, path: &Path) -> Outcome<()> {
        files::write_whole(path, &[&Self::header(self.dtype, &self.shape), &self.data])
    }
}

struct Header {
    dtype: DType,
    shape: Vec<u64>,
    data_offset: usize,
}

impl Header {
    /// Parses the header at the start of a file of `file_length` bytes, of which `bytes`
    /// are the first.
    fn parse(bytes: &[u8], file_length: u64) -> Result<Self, String> {
        if bytes.len() < 10 || &bytes[..6] != b"\x93NUMPY" {
            return Err("not a .npy file: expected the magic bytes 93 'NUMPY' at offset 0".into());
        }
        let (start, length) = match bytes[6] {
            1 => (10, u64::from(u16::from_le_bytes([bytes[8], bytes[9]]))),
            2 | 3 => match bytes.get(8..12) {
                Some(&[a, b, c, d]) => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
                _ => return Err("the file ends within its header".into()),
            },
            other => return Err(format!("offset 6: .npy version {other}.{}; expected 1, 2 or 3", bytes[7])),
        };
        let end = usize::try_from(length).ok().and_then(|n| n.checked_add(start)).filter(|&end| end <= bytes.len());
        let Some(end) = end else {
            return Err(format!(
                "the header should have {length} bytes from offset {start}, but the file has {file_length}; a header \
                 ends within {MAX_HEADER_BYTES} bytes"
            ));
        };
        let text =
            std::str::from_utf8(&bytes[start..end]).map_err(|_| format!("offset {start}: the header is not text"))?;
        let dictionary = Dictionary::parse(text).map_err(|e| format!("offset {}: {}", start + e.0, e.1))?;
        let header = Self { dtype: dictionary.dtype()?, shape: dictionary.shape()?, data_offset: end };
        let found = file_length - end as u64;
        match array_bytes(header.dtype, &header.shape) {
            Some(expected) if expected == found => Ok(header),
            Some(expected) => Err(format!(
                "dtype {} and shape {} need {expected} bytes of elements from offset {end}, found {found}{}",
                header.dtype.name(),
                shape_text(&header.shape),
                if found < expected { ": the file is truncated" } else { "" }
            )),
            None => Err(format!("shape {} has more elements than fit in memory", shape_text(&header.shape))),
        }
    }
}

/// The three entries of a `.npy` header.
struct Dictionary<'a> {
    descr: &'a str,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl<'a> Dictionary<'a> {
    /// Parses the literal; an error carries its offset in the text.
    fn parse(text: &'a str) -> Result<Self, (usize, String)> {
        let mut reader = Literal { text, position: 0 };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        reader.expect('{')?;
        while !reader.eat('}') {
            let at = reader.position;
            let key = reader.string()?;
            reader.expect(':')?;
            match key {
                "descr" => descr = Some(reader.string()?),
                "fortran_order" => fortran_order = Some(reader.boolean()?),
                "shape" => shape = Some(reader.tuple()?),
                _ => return Err((at, format!("unknown key '{key}' in the header"))),
            }
            if !reader.eat(',') {
                reader.expect('}')?;
                break;
            }
        }
        let missing = |key: &str| (0, format!("the header has no '{key}'"));
        Ok(Self {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    fn dtype(&self) -> Result<DType, String> {
        let names = DTYPES.map(DType::name).join(", ");
        DType::of_npy_descr(self.descr).ok_or_else(|| {
            if self.descr.starts_with('>') {
                format!("dtype '{}' is big-endian; expected little-endian elements", self.descr)
            } else {
                format!("dtype '{}' is not supported; expected one of {names}", self.descr)
            }
        })
    }

    fn shape(&self) -> Result<Vec<u64>, String> {
        // One dimension has the same order either way.
        if self.fortran_order && self.shape.len() > 1 {
            return Err("the array is in Fortran order; expected C order (numpy.ascontiguousarray)".into());
        }
        Ok(self.shape.clone())
    }
}

/// A reader of the few Python literals that a header holds.
struct Literal<'a> {
    text: &'a str,
    position: usize,
}

type Read<T> = Result<T, (usize, String)>;

impl<'a> Literal<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.position..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.position += rest.len() - trimmed.len();
        trimmed
    }
    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        self.position += if found { wanted.len_utf8() } else { 0 };
        found
    }
    fn expect(&mut self, wanted: char) -> Read<()> {
        if self.eat(wanted) { Ok(()) } else { self.unexpected(&format!("'{wanted}'")) }
    }
    fn unexpected<T>(&mut self, expected: &str) -> Read<T> {
        let found = self.rest().chars().next().map_or("the end".to_owned(), |c| format!("{c:?}"));
        Err((self.position, format!("found {found} in the header, expected {expected}")))
    }
    fn string(&mut self) -> Read<&'a str> {
        let rest = self.rest();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
            return self.unexpected("a string (records and nested types are not supported)");
        };
        match rest[1..].find(quote) {
            Some(length) => {
                self.position += length + 2;
                Ok(&rest[1..=length])
            }
            None => self.unexpected("a string that ends"),
        }
    }
    fn boolean(&mut self) -> Read<bool> {
        for (word, value) in [("True", true), ("False", false)] {
            if self.rest().starts_with(word) {
                self.position += word.len();
                return Ok(value);
            }
        }
        self.unexpected("True or False")
    }
    fn tuple(&mut self) -> Read<Vec<u64>> {
        let mut items = Vec::new();
        self.expect('(')?;
        while !self.eat(')') {
            if items.len() == MAX_DIMENSIONS {
                return Err((self.position, format!("more than {MAX_DIMENSIONS} dimensions")));
            }
            let rest = self.rest();
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let Ok(item) = rest[..digits].parse() else {
                return self.unexpected("a dimension (an integer below 2^64)");
            };
            self.position += digits;
            // Old writers on Python 2 mark long integers.
            self.eat('L');
            items.push(item);
            if !self.eat(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests;
