//! Reads a bundle. It may come from anywhere: what it names is never a path on this machine, every
//! entry has a budget, and nothing of it is written but firmware files under their known names.

use super::{BOARD, CQ_FIRMWARE, FIRMWARE, FORM, MANIFEST, Manifest, PROGRAM, REPORT, input_entry, kernel_entry};
use crate::array::{self, Array};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::program::source::MAX_FILE_BYTES;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// Budget of a bundle in bytes: that of an array file.
const MAX_BUNDLE: u64 = array::MAX_FILE_BYTES;
/// Budget of an entry that is no array: that of an ELF file, with which reports compare.
pub const MAX_ENTRY: u64 = crate::program::kernels::MAX_ELF_BYTES;
/// Entries that a bundle has at most: four roles of five kernels, 64 inputs, firmware.
const MAX_ENTRIES: usize = 256;

/// A bundle as read.
pub struct Bundle {
    /// What it says about itself.
    pub(super) manifest: Manifest,
    /// The report of its run.
    pub(super) report: Value,
    /// The program file.
    pub(super) program: String,
    /// The file of its board.
    pub(super) board: Option<String>,
    /// The kernels by what the program file calls them.
    pub(super) kernels: BTreeMap<String, Vec<u8>>,
    /// The inputs.
    pub(super) inputs: BTreeMap<String, Array>,
    /// Files of other firmware, and of other kernels of the command queue.
    pub(super) folders: [BTreeMap<String, Vec<u8>>; 2],
}

impl Bundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// What is no bundle, one of another form, or one that is damaged.
    pub fn open(path: &Path) -> Outcome<Self> {
        let mut entries = Entries::open(path)?;
        let manifest: Manifest = entries.json(MANIFEST)?;
        if manifest.bundle != FORM {
            let why = format!("a bundle of form {}, written by tilework {}", manifest.bundle, manifest.tilework);
            return Err(entries.wrong(&format!("{why}; this version reads form {FORM}")));
        }
        let report = entries.json(REPORT)?;
        let program = entries.text(PROGRAM)?;
        let board = if manifest.options.board.is_none() { Some(entries.text(BOARD)?) } else { None };
        let mut kernels = BTreeMap::new();
        for (i, label) in manifest.kernels.iter().enumerate() {
            kernels.insert(label.clone(), entries.bytes(&kernel_entry(i), MAX_ENTRY)?);
        }
        let mut inputs = BTreeMap::new();
        for (i, name) in manifest.inputs.iter().enumerate() {
            let entry = input_entry(i);
            let bytes = entries.bytes(&entry, array::MAX_FILE_BYTES)?;
            let array = Array::from_npy(bytes).map_err(|e| entries.wrong(&format!("{entry}: {e}")))?;
            inputs.insert(name.clone(), array);
        }
        let folders = [entries.folder(FIRMWARE)?, entries.folder(CQ_FIRMWARE)?];
        match entries.left.first() {
            Some(unknown) => Err(entries.wrong(&format!("an entry that bundles do not have: {unknown:?}"))),
            None => Ok(Self { manifest, report, program, board, kernels, inputs, folders }),
        }
    }
}

/// The entries of an archive.
struct Entries {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
    /// Names of entries that were not read yet.
    left: BTreeSet<String>,
    /// Bytes that may still be read.
    budget: u64,
}

impl Entries {
    fn open(path: &Path) -> Outcome<Self> {
        let wrong = |error: &str| Failure::file(path, tilework_text::plain(error));
        let (file, _) = files::open_within(path, MAX_BUNDLE, "a bundle")?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|e| wrong(&format!("not a bundle: {e}")))?;
        if archive.len() > MAX_ENTRIES {
            return Err(wrong(&format!("{} entries; a bundle has at most {MAX_ENTRIES}", archive.len())));
        }
        let names: Result<BTreeSet<String>, _> =
            archive.file_names().map(|name| name.map(std::borrow::Cow::into_owned)).collect();
        let left = names.map_err(|e| wrong(&format!("not a bundle: {e}")))?;
        Ok(Self { path: path.to_owned(), archive, left, budget: MAX_BUNDLE })
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::file(&self.path, tilework_text::plain(what))
    }

    fn bytes(&mut self, name: &str, most: u64) -> Outcome<Vec<u8>> {
        let wrong = |what: String| Failure::file(&self.path, tilework_text::plain(&what));
        let entry = self.archive.by_name(name).map_err(|e| wrong(format!("{name}: {e}")))?;
        let (length, most) = (entry.size(), most.min(self.budget));
        if length > most {
            return Err(wrong(format!("{name} has {length} bytes; the limit is {most}")));
        }
        let mut bytes = Vec::new();
        let damaged = |failure: Failure| failure.map(|message| format!("{name}: {message}"));
        files::read_exactly(&self.path, entry, length, &mut bytes).map_err(damaged)?;
        self.budget -= length;
        self.left.remove(name);
        Ok(bytes)
    }

    fn text(&mut self, name: &str) -> Outcome<String> {
        let bytes = self.bytes(name, MAX_FILE_BYTES)?;
        String::from_utf8(bytes).map_err(|_| self.wrong(&format!("{name} is not UTF-8 text")))
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self, name: &str) -> Outcome<T> {
        let bytes = self.bytes(name, MAX_ENTRY)?;
        serde_json::from_slice(&bytes).map_err(|e| self.wrong(&format!("{name}: {e}")))
    }

    /// The files of a folder of entries.
    fn folder(&mut self, folder: &str) -> Outcome<BTreeMap<String, Vec<u8>>> {
        let inside = |name: &String| Some(name.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        let names: Vec<String> = self.left.iter().filter_map(inside).collect();
        let mut read = BTreeMap::new();
        for name in names {
            let bytes = self.bytes(&format!("{folder}/{name}"), MAX_ENTRY)?;
            read.insert(name, bytes);
        }
        Ok(read)
    }
}
