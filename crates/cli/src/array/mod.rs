//! Arrays in `.npy`, `.npz` and `.safetensors` files. Elements stay the bytes that they are, but for bfloat16, which NumPy does not have: it becomes
//! float32, exactly.

mod npy;
mod npz;
mod safetensors;

use crate::failure::{Failure, Outcome};
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
#[allow(
    missing_docs,
    reason = "the names say it: unsigned, signed, IEEE 754 with the number of bits, one byte of 0 or 1"
)]
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
    Bool,
}

impl Dtype {
    /// All element types.
    pub const ALL: [Self; 12] = [
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
        Self::Bool,
    ];
    /// The runtime's type, or name and bytes of one that it does not have.
    const fn on_device(self) -> Result<DType, (&'static str, u64)> {
        Ok(match self {
            Self::U8 => DType::U8,
            Self::I8 => DType::I8,
            Self::U16 => DType::U16,
            Self::I16 => DType::I16,
            Self::U32 => DType::U32,
            Self::I32 => DType::I32,
            Self::F16 => DType::F16,
            Self::F32 => DType::F32,
            Self::U64 => return Err(("u64", 8)),
            Self::I64 => return Err(("i64", 8)),
            Self::F64 => return Err(("f64", 8)),
            Self::Bool => return Err(("bool", 1)),
        })
    }
    /// The runtime's type; bytes for those that it does not have.
    pub fn device(self) -> DType {
        self.on_device().unwrap_or(DType::U8)
    }
    /// Bytes of an element.
    pub const fn bytes(self) -> u64 {
        match self.on_device() {
            Ok(dtype) => dtype.bytes() as u64,
            Err((_, bytes)) => bytes,
        }
    }
    /// The name in program files and reports.
    pub const fn name(self) -> &'static str {
        match self.on_device() {
            Ok(dtype) => dtype.name(),
            Err((name, _)) => name,
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
            Self::Bool => "|b1",
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
    /// Reads an array of a `.npy` file, or the one named `key` of an `.npz` or `.safetensors` file; without a key their only one.
    pub fn open(path: &Path, key: Option<&str>) -> Outcome<Self> {
        let named = |error: String| Failure::usage(format!("{}: {error}", path.display()));
        match (path.extension().and_then(|e| e.to_str()), key) {
            (Some("npz"), _) => npz::read(path, key),
            (Some("safetensors"), _) => safetensors::read(path, key),
            (_, None) => Self::read(path),
            (_, Some(key)) => {
                Err(named(format!("only .npz and .safetensors files hold arrays with names such as {key:?}")))
            }
        }
    }
}

/// The array of a file of several that `key` names, or their only one.
fn choose<'a>(names: &'a [String], key: Option<&str>) -> Result<&'a str, String> {
    let listed = || names.join(", ");
    match (key, names) {
        (Some(key), _) => names.iter().find(|name| *name == key).map(String::as_str).ok_or_else(|| {
            format!("no array is named {key:?}; there are {}", if names.is_empty() { "none".into() } else { listed() })
        }),
        (None, [only]) => Ok(only),
        (None, []) => Err("the file holds no array".into()),
        (None, _) => Err(format!("the file holds {} arrays; write FILE:NAME with one of {}", names.len(), listed())),
    }
}
