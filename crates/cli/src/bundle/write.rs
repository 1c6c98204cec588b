//! Writes the bundle of a run.

use super::{
    BOARD, CQ_FIRMWARE, FIRMWARE, FORM, MANIFEST, Manifest, Options, PROGRAM, REPORT, SCHEDULE, essence, input_entry,
    kernel_entry,
};
use crate::array::Array;
use crate::board_file;
use crate::failure::{Failure, Outcome};
use crate::files::{self, shown};
use crate::program::Schedule;
use crate::program::args::KernelRunArgs;
use crate::program::firmware::Folder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use tilework_abi::board::Board;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Bytes of arrays and kernels up to which a bundle is written that nobody asked for.
const UNASKED: u64 = 64 << 20;

/// Classes of failures of which a bundle is kept, and whether without being asked: a hang is hard
/// to repeat for who was not there, while a fault or a finding names its line.
const CLASSES: [(&str, bool); 5] =
    [("deadlock", true), ("budget", true), ("fault", false), ("findings", false), (SCHEDULE, false)];

/// What a run was made of.
pub struct Kept<'a> {
    /// The text of the program file.
    pub program: &'a str,
    /// The board.
    pub board: Board,
    /// The kernels, as the file calls them.
    pub kernels: BTreeMap<&'a str, &'a [u8]>,
    /// The arrays of the inputs.
    pub inputs: &'a BTreeMap<String, Array>,
    /// Other firmware, and other kernels of the command queue.
    pub folders: [Option<&'a Folder>; 2],
    /// The options.
    pub own: &'a KernelRunArgs,
    /// The schedule, other than the usual one.
    pub schedule: Option<Schedule>,
}

/// What became of the bundle of a run.
pub enum Written {
    /// The run gets none.
    Not,
    /// It is in this file.
    File(PathBuf),
    /// Nobody asked for it, and it would have more bytes than [`UNASKED`].
    TooLarge(u64),
}

/// Where the bundle of a run goes, if it gets one.
pub struct Keeper<'a> {
    /// The file of `--bundle`.
    pub file: Option<&'a Path>,
    /// Whether hangs get one that nobody asked for.
    pub hangs: bool,
    /// The folder of outputs, beside which that one goes.
    pub out: &'a Path,
}

impl Keeper<'_> {
    /// Writes the bundle of a run that ended with `class` and this report, if it gets one.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep(&self, class: &str, kept: &Kept<'_>, report: &Value) -> Outcome<Written> {
        let Some((_, unasked)) = CLASSES.into_iter().find(|(known, _)| *known == class) else {
            return Ok(Written::Not);
        };
        match self.file {
            Some(file) => {
                files::write_whole(file, &[&kept.archive(class, report)?])?;
                Ok(Written::File(file.to_owned()))
            }
            None if !unasked || !self.hangs => Ok(Written::Not),
            None if kept.bytes() > UNASKED => Ok(Written::TooLarge(kept.bytes())),
            None => {
                let bytes = kept.archive(class, report)?;
                let path = self.beside(class, &bytes);
                // A file of this name has these bytes.
                if !path.exists() {
                    files::write_whole(&path, &[&bytes])?;
                }
                Ok(Written::File(path))
            }
        }
    }

    /// A name beside the folder of outputs that only a bundle of these bytes has: the same hang has
    /// one file, however often it is run, and another hang replaces nothing.
    fn beside(&self, class: &str, bytes: &[u8]) -> PathBuf {
        let digest: String = Sha256::digest(bytes).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        match self.out.file_name() {
            Some(name) => {
                let mut name = name.to_owned();
                name.push(format!("-{class}-{digest}.zip"));
                self.out.with_file_name(name)
            }
            None => self.out.join(format!("{class}-{digest}.zip")),
        }
    }
}

impl Kept<'_> {
    /// Bytes of arrays and kernels.
    fn bytes(&self) -> u64 {
        let kernels = self.kernels.values().map(|elf| elf.len());
        let inputs = self.inputs.values().map(|array| array.data.len());
        kernels.chain(inputs).fold(0, |sum, bytes| sum.saturating_add(bytes as u64))
    }

    /// The bytes of the bundle.
    fn archive(&self, class: &str, report: &Value) -> Outcome<Vec<u8>> {
        let known = board_file::is_known(self.board);
        let board = known.then(|| self.board.name().to_owned());
        let [firmware, cq_firmware] =
            self.folders.map(|folder| folder.map(|folder| folder.path().display().to_string()));
        let manifest = Manifest {
            bundle: FORM,
            tilework: env!("CARGO_PKG_VERSION").to_owned(),
            end: class.to_owned(),
            options: Options::of(board, self.own),
            schedule: self.schedule,
            kernels: self.kernels.keys().map(|&label| label.to_owned()).collect(),
            inputs: self.inputs.keys().cloned().collect(),
            firmware,
            cq_firmware,
        };
        let mut archive = Archive::new();
        archive.add(MANIFEST, &[&serde_json::to_vec_pretty(&manifest).map_err(|e| failed(&e))?])?;
        archive.add(REPORT, &[&serde_json::to_vec_pretty(&essence(report)).map_err(|e| failed(&e))?])?;
        archive.add(PROGRAM, &[self.program.as_bytes()])?;
        if !known {
            archive.add(BOARD, &[board_file::text(self.board).as_bytes()])?;
        }
        for (i, elf) in self.kernels.values().enumerate() {
            archive.add(&kernel_entry(i), &[elf])?;
        }
        for (i, array) in self.inputs.values().enumerate() {
            archive.add(&input_entry(i), &[&Array::header(array.dtype, &array.shape), &array.data])?;
        }
        for (folder, prefix) in self.folders.iter().zip([FIRMWARE, CQ_FIRMWARE]) {
            for (name, bytes) in folder.iter().flat_map(|folder| folder.files()) {
                archive.add(&format!("{prefix}/{name}"), &[bytes])?;
            }
        }
        archive.finish()
    }
}

/// A zip archive in memory, whose bytes depend on its entries alone.
struct Archive(ZipWriter<Cursor<Vec<u8>>>);

impl Archive {
    fn new() -> Self {
        Self(ZipWriter::new(Cursor::default()))
    }

    fn add(&mut self, name: &str, parts: &[&[u8]]) -> Outcome<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(0o644)
            .large_file(u32::try_from(bytes).is_err());
        self.0.start_file(name, options).map_err(|e| failed(&e))?;
        parts.iter().try_for_each(|part| self.0.write_all(part)).map_err(|e| failed(&e))
    }

    fn finish(self) -> Outcome<Vec<u8>> {
        Ok(self.0.finish().map_err(|e| failed(&e))?.into_inner())
    }
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed("output", format!("cannot make the bundle: {error}"))
}

/// What a message says about a bundle that was written.
pub fn told(path: &Path) -> String {
    format!("bundle: {0} (tilework replay {0} repeats this run)", shown(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_dtype::DType;

    fn keep(class: &str, bytes: usize, hangs: bool) -> (Written, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let array = Array { dtype: DType::U8, shape: vec![bytes as u64], data: vec![0; bytes] };
        let inputs = BTreeMap::from([("x".to_owned(), array)]);
        let own = Options { dispatch: "fast".to_owned(), ..Options::default() }.read().unwrap();
        let kept = Kept {
            program: "name = \"t\"",
            board: Board::P100,
            kernels: BTreeMap::new(),
            inputs: &inputs,
            folders: [None, None],
            own: &own,
            schedule: None,
        };
        let out = folder.path().join("out");
        let written = Keeper { file: None, hangs, out: &out }.keep(class, &kept, &Value::Null).unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        (written, files.map(|name| name.into_string().unwrap()).collect())
    }

    #[test]
    fn only_small_hangs_leave_a_bundle_that_nobody_asked_for() {
        let (written, files) = keep("deadlock", 100, true);
        assert!(matches!(written, Written::File(_)) && files.len() == 1);
        assert!(files[0].starts_with("out-deadlock-") && files[0].ends_with(".zip"), "{files:?}");
        assert_eq!(keep("deadlock", 100, true).1, files, "the same run has the same name");
        assert_ne!(keep("deadlock", 101, true).1, files);
        let large = usize::try_from(UNASKED).unwrap() + 1;
        let (written, files) = keep("budget", large, true);
        assert!(matches!(written, Written::TooLarge(bytes) if bytes == UNASKED + 1) && files.is_empty());
        for (class, hangs) in [("deadlock", false), ("fault", true), ("interrupted", true)] {
            let (written, files) = keep(class, 100, hangs);
            assert!(matches!(written, Written::Not) && files.is_empty(), "{class}");
        }
    }
}
