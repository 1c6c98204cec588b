//! Writes the input arrays of the repository's examples:
//! `cargo run -p tilework-cli --example example-arrays`.
//!
//! The values come from a fixed generator, so that the files are the same everywhere.

use npyz::WriterBuilder;
use std::fs::File;
use std::io::{BufWriter, Result};
use std::path::Path;

fn main() -> Result<()> {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let mut random = Generator(1);
    // The first element shows that the addition wraps.
    let x = std::iter::once(u32::MAX).chain(std::iter::repeat_with(|| random.next()));
    write(&examples.join("increment/x.npy"), &[300, 128], x)?;
    let mut random = Generator(2);
    let x = std::iter::repeat_with(|| (random.next() >> 16) as u16 as i16);
    write(&examples.join("pipeline/x.npy"), &[37, 32, 32], x)?;
    for (name, factor) in [("x", 1), ("twice", 2), ("thrice", 3)] {
        write(&examples.join(format!("queue/{name}.npy")), &[64, 64], (0..64 * 64).map(|n: u32| n * factor))?;
    }
    for (name, factor) in [("x", 1), ("z", 5)] {
        write(&examples.join(format!("traced/{name}.npy")), &[64, 64], (0..64 * 64).map(|n: u32| n * factor))?;
    }
    write(&examples.join("wrong/x.npy"), &[32, 64], 0..32 * 64_u32)?;
    let x = (0..32 * 128_u16).map(|i| f32::from(i / 128) * 4.0 + f32::from(i % 128) / 32.0 - 20.0);
    write(&examples.join("prints/x.npy"), &[32, 128], x)?;
    for (file, shape, seed) in FLOATS {
        let mut random = Generator(seed);
        write(&examples.join(file), shape, std::iter::repeat_with(|| random.float()))?;
    }
    for (file, of) in ANGLES {
        write(&examples.join(file), &[96, 128], (0..96 * 128).map(of))?;
    }
    write(&examples.join("rotary/matrix.npy"), &[32, 32], (0..32 * 32).map(|i| exchange(i / 32, i % 32)))?;
    for (file, value) in CONSTANTS {
        write(&examples.join(file), &[32, 32], std::iter::repeat(value))?;
    }
    Ok(())
}

/// Arrays of random floats: file, shape, seed.
const FLOATS: [(&str, &[u64], u32); 18] = [
    ("eltwise/a.npy", &[128, 160], 3),
    ("eltwise/b.npy", &[128, 160], 4),
    ("matmul/a.npy", &[128, 128], 5),
    ("matmul/b.npy", &[128, 128], 6),
    ("softmax/x.npy", &[128, 96], 7),
    ("layernorm/x.npy", &[96, 128], 8),
    ("layernorm/gamma.npy", &[32, 128], 9),
    ("layernorm/beta.npy", &[32, 128], 10),
    ("attention/q.npy", &[3, 64, 64], 11),
    ("attention/k.npy", &[3, 64, 64], 12),
    ("attention/v.npy", &[3, 64, 64], 13),
    ("tilize/x.npy", &[96, 128], 14),
    ("functions/x.npy", &[256, 256], 15),
    ("reduce/x.npy", &[3, 128, 32], 16),
    ("rotary/x.npy", &[96, 128], 17),
    ("topk/x.npy", &[96, 256], 18),
    ("columns/x.npy", &[3, 96, 32], 19),
    ("accumulate/x.npy", &[4, 128, 32], 20),
];

/// An element by its number.
type Element = fn(u32) -> f32;

/// Arrays of the cosines and sines of angles.
const ANGLES: [(&str, Element); 4] = [
    ("rotary/cos.npy", cosine),
    ("rotary/sin.npy", sine),
    ("rotary/pairs-cos.npy", |i| angle_of_pair(i).cos()),
    ("rotary/pairs-sin.npy", |i| angle_of_pair(i).sin()),
];

/// The same for pairs of neighbours.
fn angle_of_pair(i: u32) -> f32 {
    (i / 128) as f32 / (1 + i % 128 / 2) as f32
}
/// Element (i, j) of the matrix that exchanges neighbours; the first one gets the other sign.
fn exchange(i: u32, j: u32) -> f32 {
    match (j % 2, i == j ^ 1) {
        (0, true) => -1.0,
        (_, true) => 1.0,
        _ => 0.0,
    }
}

/// The angle of element `i` of rows of 128: it falls from element to element of a half.
fn angle(i: u32) -> f32 {
    (i / 128) as f32 / (1 + i % 64) as f32
}
fn cosine(i: u32) -> f32 {
    angle(i).cos()
}
/// With the other sign in the first half of a row.
fn sine(i: u32) -> f32 {
    if i % 128 < 64 { -angle(i).sin() } else { angle(i).sin() }
}

/// A tile of one value each.
const CONSTANTS: [(&str, f32); 4] = [
    ("softmax/ones.npy", 1.0),
    ("layernorm/scaler.npy", 1.0 / 128.0),
    ("attention/ones.npy", 1.0),
    ("reduce/ones.npy", 1.0),
];

fn write<T: npyz::AutoSerialize>(path: &Path, shape: &[u64], values: impl Iterator<Item = T>) -> Result<()> {
    let elements = usize::try_from(shape.iter().product::<u64>()).expect("the examples are small");
    let file = BufWriter::new(File::create(path)?);
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(shape).writer(file).begin_nd()?;
    writer.extend(values.take(elements))?;
    writer.finish()
}

/// A linear congruential generator (Numerical Recipes).
struct Generator(u32);

impl Generator {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }

    /// From -2 to 2, in steps of 2^-22.
    fn float(&mut self) -> f32 {
        (self.next() >> 8) as f32 / (1 << 22) as f32 - 2.0
    }
}
