//! `--firmware DIR` and `--cq-firmware DIR`: worker firmware and kernels of the command queue that
//! others built.
//!
//! A folder has ELF files and, if they are for other places than the usual ones (`tilework board`
//! prints them), a file that says so. docs/program.md describes both for users.

use super::kernels::MAX_ELF_BYTES;
use super::source::{MAX_FILE_BYTES, Source};
use crate::failure::{Failure, Outcome};
use crate::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilework_abi::tensix::Processor;
use tilework_runtime::firmware::{FILES, QUEUE_FILES};
use tilework_runtime::{FirmwareFile, FirmwareSet, MapValues, QueueFirmware};

/// The file with the values of the memory map that are given.
const MAP_FILE: &str = "memory-map.toml";

/// The file with what kernels of the command queue are compiled for.
const QUEUE_FILE: &str = "queue.toml";

/// A folder of firmware as read.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

impl Folder {
    /// Reads a folder of worker firmware.
    pub fn of_workers(path: &Path) -> Outcome<Self> {
        Self::read(path, &FILES, (MAP_FILE, "a memory map"))
    }

    /// Reads a folder of kernels of the command queue.
    pub fn of_queue(path: &Path) -> Outcome<Self> {
        let mut folder = Self::read(path, &QUEUE_FILES.map(|[name, _]| name), (QUEUE_FILE, WHAT_QUEUE))?;
        for [_, other] in QUEUE_FILES {
            folder.add(other, MAX_ELF_BYTES, "an ELF file")?;
        }
        Ok(folder)
    }

    /// A folder that is known to have had these files.
    pub fn known(path: &Path, files: BTreeMap<String, Vec<u8>>) -> Self {
        Self { path: path.to_owned(), files }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its files by name.
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// Reads those of the files that are there; refuses what is no folder.
    fn read(path: &Path, elfs: &[&str], (values, what): (&str, &str)) -> Outcome<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| files::cannot_read(path, &e))?;
        if !metadata.is_dir() {
            let message = format!("{} is not a folder; expected a folder with {}", path.display(), elfs.join(", "));
            return Err(Failure::usage(message).of_file(path));
        }
        let mut folder = Self { path: path.to_owned(), files: BTreeMap::new() };
        for name in elfs {
            folder.add(name, MAX_ELF_BYTES, "an ELF file")?;
        }
        folder.add(values, MAX_FILE_BYTES, what)?;
        Ok(folder)
    }

    fn add(&mut self, name: &str, budget: u64, what: &str) -> Outcome<()> {
        let path = self.path.join(name);
        // A link to nowhere is a mistake and not a missing file.
        if std::fs::symlink_metadata(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
            return Ok(());
        }
        self.files.insert(name.to_owned(), files::read_within(&path, budget, what)?);
        Ok(())
    }

    /// An ELF file that must be there.
    fn elf(&self, name: &str) -> Outcome<(String, Vec<u8>)> {
        let path = self.path.join(name);
        let missing = || files::cannot_read(&path, &std::io::ErrorKind::NotFound.into());
        let data = self.files.get(name).ok_or_else(missing)?;
        Ok((path.display().to_string(), data.clone()))
    }

    /// The values in a file that need not be there.
    fn values<T: serde::de::DeserializeOwned + Default>(&self, name: &str) -> Outcome<T> {
        let path = self.path.join(name);
        self.files.get(name).map_or(Ok(T::default()), |text| Source::of_bytes(&path, text.clone())?.toml())
    }

    /// The worker firmware in it, checked.
    pub fn workers(&self) -> Outcome<FirmwareSet> {
        let read = |processor: Processor| {
            let (name, data) = self.elf(FILES[processor.index()])?;
            Ok(FirmwareFile { name, data: data.into() })
        };
        let [brisc, ncrisc, trisc0, trisc1, trisc2] = Processor::ALL;
        let set = [read(brisc)?, read(ncrisc)?, read(trisc0)?, read(trisc1)?, read(trisc2)?];
        let values: MapValues = self.values(MAP_FILE)?;
        let map = self.path.join(MAP_FILE).display().to_string();
        FirmwareSet::load(&set, &map, &values).map_err(|e| Failure::usage(e.to_string()).with("option", "--firmware"))
    }

    /// The kernels of the command queue in it, checked.
    pub fn queue(&self) -> Outcome<QueueFirmware> {
        let read = |[usual, other]: [&str; 2]| {
            let name = if self.files.contains_key(other) { other } else { usual };
            self.elf(name).map(|(name, data)| (name, data.into()))
        };
        let [prefetch, dispatch, subordinate] = QUEUE_FILES;
        let set = [read(prefetch)?, read(dispatch)?, read(subordinate)?];
        let path = self.path.join(QUEUE_FILE).display().to_string();
        QueueFirmware::load(set, &path, &self.values(QUEUE_FILE)?)
            .map_err(|e| Failure::usage(e.to_string()).with("option", "--cq-firmware"))
    }
}

/// What the file beside kernels of the command queue is, in messages.
const WHAT_QUEUE: &str = "what queue firmware is compiled for";

/// Reads and checks the firmware in `folder`.
pub fn load(folder: &Path) -> Outcome<FirmwareSet> {
    Folder::of_workers(folder)?.workers()
}
