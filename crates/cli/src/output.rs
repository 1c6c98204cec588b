//! Output arrays: written into files, and described in reports.

use crate::array::Array;
use crate::failure::Outcome;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::Path;

/// One output array.
#[derive(Serialize, Debug)]
pub struct OutputFile {
    /// Where it was written.
    pub file: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its element type.
    pub dtype: &'static str,
    /// SHA-256 of its elements (not of the file), in hexadecimal.
    pub sha256: String,
}

impl OutputFile {
    /// Writes an array into a file and says what it is.
    pub fn write(array: Array, path: &Path) -> Outcome<Self> {
        array.write(path)?;
        let sha256 = Sha256::digest(&array.data).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { file: path.display().to_string(), shape: array.shape, dtype: array.dtype.name(), sha256 })
    }
}
