//! `--firmware DIR`: worker firmware that others built.
//!
//! The folder has the five ELF files and, if their memory map differs from the usual one
//! (`tilework board` prints it), a file that says so. docs/program.md describes both for users.

use super::kernels::MAX_ELF_BYTES;
use super::source::Source;
use crate::failure::{Failure, Outcome};
use crate::files;

use std::path::Path;
use tilework_abi::tensix::Processor;
use tilework_runtime::firmware::FILES;
use tilework_runtime::{FirmwareFile, FirmwareSet, MapValues};

/// The file with the values of the memory map that are given.
const MAP_FILE: &str = "memory-map.toml";

/// Reads and checks the firmware in `folder`.
pub fn load(folder: &Path) -> Outcome<FirmwareSet> {
    let metadata = std::fs::metadata(folder).map_err(|e| files::cannot_read(folder, &e))?;
    if !metadata.is_dir() {
        let expected = format!("a folder with {}", FILES.join(", "));
        let message = format!("{} is not a folder; expected {expected}", folder.display());
        return Err(Failure::usage(message).of_file(folder));
    }
    let read = |processor: Processor| {
        let path = folder.join(FILES[processor.index()]);
        let data = files::read_within(&path, MAX_ELF_BYTES, "an ELF file")?;
        Ok(FirmwareFile { name: path.display().to_string(), data: data.into() })
    };
    let [brisc, ncrisc, trisc0, trisc1, trisc2] = Processor::ALL;
    let set = [read(brisc)?, read(ncrisc)?, read(trisc0)?, read(trisc1)?, read(trisc2)?];
    let path = folder.join(MAP_FILE);
    // A link to nowhere is a mistake and not a missing file.
    let values = match std::fs::symlink_metadata(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => MapValues::default(),
        _ => Source::read(&path, "a memory map")?.toml()?,
    };
    let map = path.display().to_string();
    FirmwareSet::load(&set, &map, &values).map_err(|e| Failure::usage(e.to_string()).with("option", "--firmware"))
}
