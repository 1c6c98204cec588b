//! Arrays in `.npy`, `.npz` and `.safetensors` files. Elements stay the bytes that they are, but
//! for bfloat16, which NumPy does not have: it becomes float32, exactly.

mod deserialize;
mod npy;
mod npz;
mod safetensors;

pub use deserialize::{CHIP_DTYPES, ElementType};

use crate::failure::{Failure, Outcome};
use std::path::Path;
use tilework_dtype::DType;

/// Budget of an array file in bytes.
pub const MAX_FILE_BYTES: u64 = 4 << 30;
/// Budget of the header in bytes, with what stands before it: 64 KiB, where NumPy writes 128 bytes
/// for most arrays.
pub const MAX_HEADER_BYTES: u64 = 64 << 10;
/// Budget of dimensions.
pub const MAX_DIMENSIONS: usize = 32;

/// The element types of arrays, which are NumPy's.
pub const DTYPES: [DType; 12] = [
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::Bool,
];

/// A shape as people write it: `(3, 4)`, `(3,)`, `()`.
pub fn shape_text(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Bytes of an array, unless they leave the range of u64 or the elements share exponents.
pub fn array_bytes(dtype: DType, shape: &[u64]) -> Option<u64> {
    // A zero anywhere makes the product zero, whatever the order of the dimensions.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(dtype.bytes()? as u64, |product, &n| product.checked_mul(n))
}

/// An array: elements in C order, little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// Element type, one of [`DTYPES`].
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<u64>,
    /// The elements' bytes.
    pub data: Vec<u8>,
}

impl Array {
    /// Reads an array of a `.npy` file, or the one named `key` of an `.npz` or `.safetensors` file;
    /// without a key their only one.
    pub fn open(path: &Path, key: Option<&str>) -> Outcome<Self> {
        let named = |error: String| Failure::file(path, tilework_text::plain(&error));
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
