//! The kernel programs of `examples`, with arrays for their inputs.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

/// The program that gets a large input, because its own is over at once.
pub(crate) const LARGE: &str = "increment";

/// Words of the large input.
const WORDS: u32 = 1 << 20;

/// The kernel programs among the examples, in the order of their names.
pub(crate) fn names(root: &Path) -> Result<Vec<String>> {
    let folders = std::fs::read_dir(root.join("examples")).context("the examples cannot be read")?;
    let mut names = Vec::new();
    for folder in folders {
        let folder = folder?;
        if folder.path().join("program.toml").is_file() {
            names.push(folder.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The arguments with which `tilework run` runs an example: its file and its arrays, those beside
/// it that are named as its buffers, or the large one.
pub(crate) fn arguments(root: &Path, name: &str, large: &Path) -> Result<Vec<String>> {
    let folder = root.join("examples").join(name);
    let mut arguments = vec![folder.join("program.toml").display().to_string()];
    let mut input = |array: &str, file: &Path| {
        arguments.extend(["--input".to_owned(), format!("{array}={}", file.display())]);
    };
    if name == LARGE {
        input("x", large);
        return Ok(arguments);
    }
    let program: toml::Table = std::fs::read_to_string(folder.join("program.toml"))?.parse()?;
    let buffers = program.get("buffers").and_then(toml::Value::as_table).context("a program without buffers")?;
    for buffer in buffers.keys() {
        let file = folder.join(format!("{buffer}.npy"));
        if file.exists() {
            input(buffer, &file);
        }
    }
    Ok(arguments)
}

/// Writes the large input: 32-bit words in NumPy's format, version 1.0 (`numpy.lib.format`).
pub(crate) fn write_large(path: &Path) -> Result<()> {
    let text = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({WORDS},), }}");
    // With magic and length a multiple of 64 bytes.
    let len = (text.len() + 11).next_multiple_of(64) - 10;
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&u16::try_from(len)?.to_le_bytes())?;
    file.write_all(format!("{text:<width$}\n", width = len - 1).as_bytes())?;
    (0..WORDS).try_for_each(|word| file.write_all(&word.to_le_bytes()))?;
    Ok(file.flush()?)
}
