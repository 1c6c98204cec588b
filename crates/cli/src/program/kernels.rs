//! Where the ELF file of a kernel comes from.

use crate::failure::{Failure, Outcome};
use crate::files;
use std::path::Path;

/// Budget of an ELF file in bytes.
pub const MAX_ELF_BYTES: u64 = 16 << 20;

/// Loads the ELF file that a program names: `prebuilt:NAME` for one of the repository's kernels, otherwise a path relative to
/// the program file's folder.
pub fn load(folder: &Path, elf: &str) -> Outcome<Vec<u8>> {
    match elf.strip_prefix("prebuilt:") {
        Some(name) => prebuilt(name),
        None => files::read_within(&folder.join(elf), MAX_ELF_BYTES, "an ELF file"),
    }
}

/// The repository's kernels, built by `cargo xtask firmware`.
const PREBUILT: [(&str, &[u8]); 7] = [
    ("busy", include_bytes!("../../../../firmware/prebuilt/busy.elf")),
    ("empty", include_bytes!("../../../../firmware/prebuilt/empty.elf")),
    ("increment", include_bytes!("../../../../firmware/prebuilt/increment.elf")),
    ("reader", include_bytes!("../../../../firmware/prebuilt/reader.elf")),
    ("ring", include_bytes!("../../../../firmware/prebuilt/ring.elf")),
    ("spin", include_bytes!("../../../../firmware/prebuilt/spin.elf")),
    ("writer", include_bytes!("../../../../firmware/prebuilt/writer.elf")),
];

fn prebuilt(name: &str) -> Outcome<Vec<u8>> {
    match PREBUILT.iter().find(|(known, _)| *known == name) {
        Some((_, elf)) => Ok(elf.to_vec()),
        None => {
            let names = PREBUILT.map(|(known, _)| known).join(", ");
            Err(Failure::usage(format!("no prebuilt kernel is named \"{name}\"; there are {names}")))
        }
    }
}
