//! Bundles of cards: what a program did to a card of `tilework card`, so that the chip's run is
//! repeated without the program.
//!
//! The card's library writes the record (`tilework_kmd::record`) while the program runs; the
//! command packs it. Neither holds more of it in memory than a few MiB.
//!
//! | entry | what it is |
//! |---|---|
//! | `bundle.json` | the [`CardManifest`] |
//! | `card.record` | the record |

use super::{FORM, MANIFEST, write};
use crate::failure::{Failure, Outcome};
use crate::files::{self, Growing};
use crate::loudness;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use tilework_abi::board::Board;
use tilework_abi::simlib::text_of;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The entry of the record.
pub(super) const RECORD: &str = "card.record";
/// In the name of a file: the number of the process.
const PROCESS: &str = "%p";

/// What a bundle of a card says about itself.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct CardManifest {
    /// [`FORM`].
    pub(super) bundle: u32,
    /// The version of the command that wrote it.
    pub(super) tilework: String,
    /// The card.
    pub(super) card: CardOf,
}

/// A card and its program.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct CardOf {
    /// Which of the machine.
    pub(super) number: usize,
    /// Its board (`tilework_abi::simlib`).
    pub(super) board: String,
    /// Documented bugs that its chip does not have.
    pub(super) without_bugs: Vec<String>,
    /// The program's process, and its command; for the reader.
    pub(super) process: u32,
    pub(super) command: Vec<String>,
    /// The exit code of the command's process.
    pub(super) exit_code: Option<u8>,
}

/// The bundles that a run of a program is to leave.
pub struct CardKeeper {
    /// What `--bundle` names.
    target: PathBuf,
    /// Where records are written, beside it.
    folder: tempfile::TempDir,
}

impl CardKeeper {
    /// Makes the folder of records.
    ///
    /// # Errors
    /// No file can be written there.
    pub fn begin(target: &Path) -> Outcome<Self> {
        let wrong = |what: &dyn std::fmt::Display| Failure::option("--bundle", format_args!(": {what}"));
        let target = std::path::absolute(target).map_err(|error| wrong(&error))?;
        files::check_writable(&target).map_err(|failure| wrong(&failure))?;
        let folder = tempfile::Builder::new().prefix(".tilework-record-").tempdir_in(files::folder_of(&target));
        let folder = folder.map_err(|error| wrong(&error))?;
        // What an earlier run has left is not taken for this one's.
        if !target.to_string_lossy().contains(PROCESS) && target.is_file() {
            std::fs::remove_file(&target).map_err(|error| wrong(&error))?;
        }
        Ok(Self { target, folder })
    }

    /// Where the card's library writes records.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Packs the records of all cards that the program has opened.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep(&self, boards: &[Board], command: &[std::ffi::OsString], exit_code: Option<u8>) -> Outcome<()> {
        let mut records: Vec<(u32, usize, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(self.folder()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some((process, number)) = name.split_once('-') else { continue };
            if let (Ok(process), Ok(number)) = (process.parse(), number.parse()) {
                records.push((process, number, entry.path()));
            }
        }
        records.sort();
        if records.is_empty() {
            loudness::note("--bundle: the program has opened no card, so that there is nothing to keep");
        }
        let several = self.target.to_string_lossy().contains(PROCESS);
        let first = records.first().map(|record| record.0);
        for (process, number, record) in records {
            if !several && Some(process) != first {
                loudness::note(&format!(
                    "--bundle: what process {process} did to its card is not kept, but that of process {}; with %p in \
                     its name each has a file",
                    first.unwrap_or_default()
                ));
                continue;
            }
            let card = CardOf {
                number,
                board: boards
                    .get(number)
                    .map(|&b| String::from_utf8_lossy(&text_of(b)).into_owned())
                    .unwrap_or_default(),
                without_bugs: without_bugs(),
                process,
                command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
                exit_code,
            };
            let target = self.of(process, number);
            pack(&target, &record, card)?;
            loudness::note(&write::told(&target));
        }
        Ok(())
    }

    /// The file for a card of a process.
    fn of(&self, process: u32, number: usize) -> PathBuf {
        let text = self.target.to_string_lossy().replace(PROCESS, &process.to_string());
        let mut path = if text == self.target.to_string_lossy() { self.target.clone() } else { PathBuf::from(text) };
        if number > 0 {
            let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
            path.set_extension(format!("{number}.{ending}"));
        }
        path
    }
}

/// The bugs that the environment leaves out of the chip, as the card's library reads it.
fn without_bugs() -> Vec<String> {
    let text = std::env::var("TILEWORK_WITHOUT_BUGS").unwrap_or_default();
    text.split(',').filter(|name| tilework_sim::Bug::named(name).is_ok()).map(str::to_owned).collect()
}

/// Writes a bundle from a record.
fn pack(target: &Path, record: &Path, card: CardOf) -> Outcome<()> {
    let growing = Growing::begin(target)?;
    let failed = |error: &dyn std::fmt::Display| growing.failed(error);
    let manifest = CardManifest { bundle: FORM, tilework: env!("CARGO_PKG_VERSION").to_owned(), card };
    let mut writer = growing.writer()?;
    {
        let mut archive = ZipWriter::new_stream(&mut writer);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(0o644);
        archive.start_file(MANIFEST, options).map_err(|e| failed(&e))?;
        let text = serde_json::to_vec_pretty(&manifest).map_err(|e| failed(&e))?;
        archive.write_all(&text).map_err(|e| failed(&e))?;
        archive.start_file(RECORD, options.large_file(true)).map_err(|e| failed(&e))?;
        let mut record = BufReader::new(File::open(record).map_err(|e| failed(&e))?);
        std::io::copy(&mut record, &mut archive).map_err(|e| failed(&e))?;
        archive.finish().map_err(|e| failed(&e))?;
    }
    writer.flush().map_err(|e| failed(&e))?;
    drop(writer);
    growing.finish()
}
