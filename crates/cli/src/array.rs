//! Arrays in `.npy` files.
//!
//! The format is NEP 1 of NumPy: a magic, a version, the length of a header, the header (a Python dictionary in one line),
//! then the elements. The reader is our own because arrays come from anywhere: it reads the elements only when the header
//! and the length of the file agree, it does not recurse, and it names what it found. Elements stay the bytes that they are.

use crate::failure::{Failure, Outcome};
use crate::files;
use std::fmt;
use std::path::Path;
use tilework_runtime::DType;

/// Budget of an array file in bytes.
pub const MAX_FILE_BYTES: u64 = 4 << 30;
/// Budget of the header in bytes, with what stands before it: 64 KiB, where NumPy writes 128 bytes for most arrays.
pub const MAX_HEADER_BYTES: u64 = 64 << 10;
/// Budget of dimensions.
pub const MAX_DIMENSIONS: usize = 32;

/// Element types: those of NumPy, of which the runtime's [`DType`] has the ones that the chip computes with (and bfloat16, which
/// NumPy lacks).
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it: unsigned, signed, IEEE 754 with the number of bits")]
pub enum Dtype {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

impl Dtype {
    /// All element types.
    pub const ALL: [Self; 11] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F16,
        Self::F32,
        Self::F64,
    ];
    /// The runtime's type, or the name of a 64-bit type, which the runtime does not have.
    const fn on_device(self) -> Result<DType, &'static str> {
        Ok(match self {
            Self::U8 => DType::U8,
            Self::I8 => DType::I8,
            Self::U16 => DType::U16,
            Self::I16 => DType::I16,
            Self::U32 => DType::U32,
            Self::I32 => DType::I32,
            Self::F16 => DType::F16,
            Self::F32 => DType::F32,
            Self::U64 => return Err("u64"),
            Self::I64 => return Err("i64"),
            Self::F64 => return Err("f64"),
        })
    }
    /// The runtime's type; bytes for 64-bit types.
    pub fn device(self) -> DType {
        self.on_device().unwrap_or(DType::U8)
    }
    /// Bytes of an element.
    pub const fn bytes(self) -> u64 {
        match self.on_device() {
            Ok(dtype) => dtype.bytes() as u64,
            Err(_) => 8,
        }
    }
    /// The name in program files and reports.
    pub const fn name(self) -> &'static str {
        match self.on_device() {
            Ok(dtype) => dtype.name(),
            Err(name) => name,
        }
    }
    /// The type string of `.npy` headers, little-endian.
    pub const fn descr(self) -> &'static str {
        match self {
            Self::U8 => "|u1",
            Self::I8 => "|i1",
            Self::U16 => "<u2",
            Self::I16 => "<i2",
            Self::U32 => "<u4",
            Self::I32 => "<i4",
            Self::U64 => "<u8",
            Self::I64 => "<i8",
            Self::F16 => "<f2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }
    fn from_descr(descr: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| {
            let one_byte_any_order = d.bytes() == 1 && descr.len() == 3 && descr.get(1..) == d.descr().get(1..);
            d.descr() == descr || (one_byte_any_order && descr.starts_with(['<', '>', '=']))
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A shape as people write it: `(3, 4)`, `(3,)`, `()`.
pub fn shape_text(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Bytes of an array, unless they leave the range of u64.
pub fn array_bytes(dtype: Dtype, shape: &[u64]) -> Option<u64> {
    // A zero anywhere makes the product zero, whatever the order of the dimensions.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(dtype.bytes(), |product, &n| product.checked_mul(n))
}

/// An array: elements in C order, little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// Element type.
    pub dtype: Dtype,
    /// Shape.
    pub shape: Vec<u64>,
    /// The elements' bytes.
    pub data: Vec<u8>,
}

impl Array {
    /// Reads a `.npy` file.
    pub fn read(path: &Path) -> Outcome<Self> {
        let (mut file, length) = files::open_within(path, MAX_FILE_BYTES, "a .npy file")?;
        let mut head = Vec::new();
        files::read_exactly(path, &mut file, length.min(MAX_HEADER_BYTES), &mut head)?;
        let header = Header::parse(&head, length).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        let mut data = head.split_off(header.data_offset);
        files::read_exactly(path, file, length.saturating_sub(MAX_HEADER_BYTES), &mut data)?;
        Ok(Self { dtype: header.dtype, shape: header.shape, data })
    }

    /// The header of a `.npy` file of this array, version 1.0, padded so that the elements start at a multiple of 64 bytes.
    pub fn header(dtype: Dtype, shape: &[u64]) -> Vec<u8> {
        let mut text =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", dtype.descr(), shape_text(shape));
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
    dtype: Dtype,
    shape: Vec<u64>,
    data_offset: usize,
}

impl Header {
    /// Parses the header at the start of a file of `file_length` bytes, of which `bytes` are the first.
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
                header.dtype,
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

    fn dtype(&self) -> Result<Dtype, String> {
        let names = Dtype::ALL.map(Dtype::name).join(", ");
        Dtype::from_descr(self.descr).ok_or_else(|| {
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
