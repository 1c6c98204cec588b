//! Arrays of the programs that are timed, on whichever engine.

use std::path::Path;

use npyz::NpyFile;
use tilework_ops::{Shape, Tensor};

/// The largest difference as a part of the range of what is expected.
pub(crate) fn largest_error(found: &[f32], expected: &[f32]) -> f32 {
    let of = |start: f32, choose: fn(f32, f32) -> f32| expected.iter().copied().fold(start, choose);
    let range = of(f32::NEG_INFINITY, f32::max) - of(f32::INFINITY, f32::min);
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // A missing or extra element is as wrong as can be.
    if found.len() == expected.len() { differences.fold(0.0, f32::max) / range } else { f32::INFINITY }
}

/// The float32 array of a file.
pub(crate) fn array(path: &Path) -> Result<Tensor, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let npy = NpyFile::new(&bytes[..])?;
    let shape = Shape::new(npy.shape().iter().map(|&n| n as usize).collect::<Vec<_>>()).map_err(|e| e.to_string())?;
    Ok(Tensor::new(shape, npy.into_vec::<f32>()?)?)
}
