//! `--firmware DIR` and `--cq-firmware DIR`: worker firmware and kernels of the command queue that
//! others built.
//!
//! A folder has ELF files and, if they are for other places than the usual ones (`tilework board`
//! prints them), a file that says so. docs/program.md describes both for users.

use super::kernels::MAX_ELF_BYTES;
use super::source::Source;
use crate::failure::{Failure, Outcome};
use crate::files;

use std::path::Path;
use tilework_abi::tensix::Processor;
use tilework_runtime::firmware::{FILES, QUEUE_FILES};
use tilework_runtime::{FirmwareFile, FirmwareSet, MapValues, QueueFirmware};

/// The file with the values of the memory map that are given.
const MAP_FILE: &str = "memory-map.toml";

/// The file with what kernels of the command queue are compiled for.
const QUEUE_FILE: &str = "queue.toml";

/// Refuses what is no folder.
fn check_folder(folder: &Path, files: &[&str]) -> Outcome<()> {
    let metadata = std::fs::metadata(folder).map_err(|e| files::cannot_read(folder, &e))?;
    if metadata.is_dir() {
        return Ok(());
    }
    let message = format!("{} is not a folder; expected a folder with {}", folder.display(), files.join(", "));
    Err(Failure::usage(message).of_file(folder))
}

/// The values in a file that need not be there.
fn values<T: serde::de::DeserializeOwned + Default>(path: &Path, what: &str) -> Outcome<T> {
    // A link to nowhere is a mistake and not a missing file.
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        _ => Source::read(path, what)?.toml(),
    }
}

/// Reads and checks the kernels of the command queue in `folder`.
pub fn load_queue(folder: &Path) -> Outcome<QueueFirmware> {
    check_folder(folder, &QUEUE_FILES.map(|[name, _]| name))?;
    let read = |[usual, other]: [&str; 2]| {
        let path = if folder.join(other).exists() { folder.join(other) } else { folder.join(usual) };
        let data = files::read_within(&path, MAX_ELF_BYTES, "an ELF file")?;
        Ok((path.display().to_string(), data.into()))
    };
    let [prefetch, dispatch, subordinate] = QUEUE_FILES;
    let set = [read(prefetch)?, read(dispatch)?, read(subordinate)?];
    let path = folder.join(QUEUE_FILE);
    let values = values(&path, "what queue firmware is compiled for")?;
    QueueFirmware::load(set, &path.display().to_string(), &values)
        .map_err(|e| Failure::usage(e.to_string()).with("option", "--cq-firmware"))
}

/// Reads and checks the firmware in `folder`.
pub fn load(folder: &Path) -> Outcome<FirmwareSet> {
    check_folder(folder, &FILES)?;
    let read = |processor: Processor| {
        let path = folder.join(FILES[processor.index()]);
        let data = files::read_within(&path, MAX_ELF_BYTES, "an ELF file")?;
        Ok(FirmwareFile { name: path.display().to_string(), data: data.into() })
    };
    let [brisc, ncrisc, trisc0, trisc1, trisc2] = Processor::ALL;
    let set = [read(brisc)?, read(ncrisc)?, read(trisc0)?, read(trisc1)?, read(trisc2)?];
    let path = folder.join(MAP_FILE);
    let values: MapValues = values(&path, "a memory map")?;
    let map = path.display().to_string();
    FirmwareSet::load(&set, &map, &values).map_err(|e| Failure::usage(e.to_string()).with("option", "--firmware"))
}
