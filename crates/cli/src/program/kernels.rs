//! Where the ELF file of a kernel comes from.

use crate::failure::{Failure, Outcome};
use crate::files;
use std::path::Path;
use tilework_runtime::prebuilt::{KERNELS, kernel_elf};

/// Budget of an ELF file in bytes.
pub const MAX_ELF_BYTES: u64 = 16 << 20;

/// Loads the ELF file that a program names: `prebuilt:NAME` for one of the repository's kernels,
/// otherwise a path relative to the program file's folder.
pub fn load(folder: &Path, elf: &str) -> Outcome<Vec<u8>> {
    match elf.strip_prefix("prebuilt:") {
        Some(name) => prebuilt(name),
        None => files::read_within(&folder.join(elf), MAX_ELF_BYTES, "an ELF file"),
    }
}

/// One of the repository's kernels, built by `cargo xtask firmware`.
fn prebuilt(name: &str) -> Outcome<Vec<u8>> {
    match kernel_elf(name) {
        Some(elf) => Ok(elf.to_vec()),
        None => {
            let names = KERNELS.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
            Err(Failure::usage(format!("no prebuilt kernel is named \"{name}\"; there are {names}")))
        }
    }
}
