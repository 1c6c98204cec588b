//! Reading files within a budget and writing them whole or not at all.
//!
//! All files that a command reads are opened by [`open_within`]. What lies under a path may be a
//! pipe whose other end never comes, a device without an end, or more than memory holds: each is a
//! refusal that names the file, without waiting and before memory is taken.

use crate::failure::{Failure, Outcome};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A path as messages show it: in one line, without characters that a terminal obeys.
pub fn shown(path: &Path) -> String {
    tilework_text::plain(&path.display().to_string()).into_owned()
}

/// Opens a regular file of at most `budget` bytes and tells its length; `what` names its role in
/// messages ("an ELF file").
///
/// Devices and pipes have no length that could be checked, and opening a pipe may wait for ever:
/// they are refused unopened.
pub fn open_within(path: &Path, budget: u64, what: &str) -> Outcome<(File, u64)> {
    let seen = std::fs::metadata(path).map_err(|e| cannot_read(path, &e))?;
    check_regular(path, &seen, budget, what)?;
    let file = without_waiting().read(true).open(path).map_err(|e| cannot_read(path, &e))?;
    // Something else may lie there by now.
    let opened = file.metadata().map_err(|e| cannot_read(path, &e))?;
    check_regular(path, &opened, budget, what)?;
    Ok((file, opened.len()))
}

fn check_regular(path: &Path, metadata: &Metadata, budget: u64, what: &str) -> Outcome<()> {
    let refuse = |found: &str| Err(Failure::usage(format!("{} is {found}", shown(path))).of_file(path));
    if metadata.is_dir() {
        return refuse(&format!("a folder; expected {what}"));
    }
    if !metadata.is_file() {
        return refuse(&format!("not a regular file; expected {what}"));
    }
    if metadata.len() > budget {
        return refuse(&format!("larger than {budget} bytes, the limit for {what}"));
    }
    Ok(())
}

/// Options of opening that do not wait for the other end of a pipe.
fn without_waiting() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Reads a file that [`open_within`] opens.
pub fn read_within(path: &Path, budget: u64, what: &str) -> Outcome<Vec<u8>> {
    let (file, length) = open_within(path, budget, what)?;
    let mut bytes = Vec::new();
    read_exactly(path, file, length, &mut bytes)?;
    Ok(bytes)
}

/// Reads the `length` bytes that are left of a file, and appends them. Memory is asked for before
/// it is needed, so that too little of it is an error and not an abort.
pub fn read_exactly(path: &Path, file: impl Read, length: u64, bytes: &mut Vec<u8>) -> Outcome<()> {
    let room = usize::try_from(length).is_ok_and(|n| bytes.try_reserve_exact(n).is_ok());
    if !room {
        let message = format!("not enough memory for the {length} bytes of {}", shown(path));
        return Err(Failure::failed("memory", message).of_file(path));
    }
    let read = file.take(length).read_to_end(bytes).map_err(|e| cannot_read(path, &e))?;
    if u64::try_from(read).ok() == Some(length) {
        Ok(())
    } else {
        Err(Failure::usage(format!("{} became shorter while it was read", shown(path))).of_file(path))
    }
}

/// The failure of a read.
pub fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", shown(path))).of_file(path)
}

/// The failure of a write.
pub fn cannot_write(path: &Path, message: std::fmt::Arguments<'_>) -> Failure {
    Failure::failed("output", message.to_string()).of_file(path)
}

/// Whether two paths mean the same file, or would if both existed.
pub fn same_place(a: &Path, b: &Path) -> bool {
    let resolved = |path: &Path| {
        let folder = folder_of(path).canonicalize().ok()?;
        let whole = folder.join(path.file_name()?);
        Some(whole.canonicalize().unwrap_or(whole))
    };
    a == b || resolved(a).is_some_and(|a| resolved(b) == Some(a))
}

/// Makes the folder for outputs, with those above it.
pub fn make_folder(folder: &Path) -> Outcome<()> {
    std::fs::create_dir_all(folder)
        .map_err(|e| cannot_write(folder, format_args!("cannot make the folder {}: {e}", shown(folder))))
}

/// The folder in which a file is, or will be.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Checks that [`write_whole`] can replace what is there: a regular file, or nothing.
pub fn check_replaceable(path: &Path) -> Outcome<()> {
    if std::fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        let what = "a folder, link or device is there; expected a regular file or nothing";
        return Err(cannot_write(path, format_args!("cannot write {}: {what}", shown(path))));
    }
    Ok(())
}

/// Checks that a file of this path can be written, by making a temporary one beside it.
pub fn check_writable(path: &Path) -> Outcome<()> {
    check_replaceable(path)?;
    Temporary::beside(path).map(drop).map_err(|e| not_written(path, &e))
}

/// Checks that files can be written into a folder.
pub fn check_folder(folder: &Path) -> Outcome<()> {
    let written = Temporary::beside(&folder.join(TEMPORARY)).map(drop);
    written.map_err(|e| cannot_write(folder, format_args!("cannot write into the folder {}: {e}", shown(folder))))
}

/// Writes a file so that readers see the old content or the whole new content: into a temporary
/// file of the same folder, then renamed. The temporary file is removed when anything fails. What
/// is there and is no regular file stays as it is.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> Outcome<()> {
    check_replaceable(path)?;
    let write = || {
        let mut temporary = Temporary::beside(path)?;
        parts.iter().try_for_each(|part| temporary.file.write_all(part))?;
        temporary.file.sync_all()?;
        temporary.rename(path)
    };
    write().map_err(|e| not_written(path, &e))
}

/// A file that is written bit by bit, and gets its name when it is whole. Otherwise nothing is left
/// of it.
pub struct Growing {
    path: PathBuf,
    temporary: Temporary,
}

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

impl Growing {
    /// Begins a file that will be `path`.
    pub fn begin(path: &Path) -> Outcome<Self> {
        check_replaceable(path)?;
        let temporary = Temporary::beside(path).map_err(|e| not_written(path, &e))?;
        Ok(Self { path: path.to_owned(), temporary })
    }

    /// What writes into it.
    pub fn writer(&self) -> Outcome<Box<dyn Write + Send>> {
        let file = self.temporary.file.try_clone().map_err(|e| not_written(&self.path, &e))?;
        Ok(Box::new(std::io::BufWriter::with_capacity(BUFFER, file)))
    }

    /// Gives the file its name. The writer has been flushed.
    pub fn finish(self) -> Outcome<()> {
        let Self { path, temporary } = self;
        let renamed = temporary.file.sync_all().and_then(|()| temporary.rename(&path));
        renamed.map_err(|e| not_written(&path, &e))
    }

    /// The failure of a write into it.
    pub fn failed(&self, error: &dyn std::fmt::Display) -> Failure {
        cannot_write(&self.path, format_args!("{}: {error}", shown(&self.path)))
    }
}

/// The failure of a write, by the name of the file that was wanted.
fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    cannot_write(path, format_args!("cannot write {}: {error}", shown(path)))
}

/// What the names of temporary files begin with.
const TEMPORARY: &str = ".tilework-";
/// Tries at a name that nobody has.
const TRIES: u32 = 1000;

/// A file that is written until it gets its name, and goes away if it does not get it.
///
/// Its writer holds a lock on it, which ends with the writer however that ends: a file without one
/// is a leftover ([`clear_leftovers`]).
struct Temporary {
    path: PathBuf,
    file: File,
    keep: bool,
}

impl Temporary {
    fn beside(path: &Path) -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = folder_of(path);
        for _ in 0..TRIES {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
            let file = match File::create_new(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // A file system without locks has no leftovers that could be told from work.
            let _ = file.lock();
            let temporary = Self { path, file, keep: false };
            // Who cleared leftovers may have come between the file and its lock.
            if temporary.path.exists() {
                return Ok(temporary);
            }
        }
        Err(std::io::ErrorKind::AlreadyExists.into())
    }

    fn rename(mut self, to: &Path) -> std::io::Result<()> {
        std::fs::rename(&self.path, to)?;
        self.keep = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.keep {
            // Nothing is left to be done about one that cannot be removed; the next run tries.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the temporary files of writers that have ended without removing them. What cannot be
/// removed stays.
pub fn clear_leftovers(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        let unlocked = without_waiting().read(true).open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if unlocked {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn leftovers_of_ended_writers_go_and_the_files_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".tilework-1-0", ".tilework-abcdef", "other", ".tilework"] {
            std::fs::write(at(name), "old").unwrap();
        }
        let working = Temporary::beside(&at("x.npy")).unwrap();
        let kept = working.path.file_name().unwrap().to_str().unwrap().to_owned();
        clear_leftovers(folder.path());
        let mut expected = vec![".tilework".to_owned(), kept, "other".to_owned()];
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        drop(working);
        assert_eq!(names(folder.path()), [".tilework", "other"]);
    }

    #[test]
    fn a_failed_write_leaves_nothing_and_names_the_file_that_was_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing/x.npy");
        let said = write_whole(&missing, &[b"x"]).unwrap_err().to_string();
        assert!(said.contains("x.npy") && !said.contains(TEMPORARY), "{said}");
        let taken = folder.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        let said = write_whole(&taken, &[b"x"]).unwrap_err().to_string();
        assert!(said.contains("taken") && !said.contains(TEMPORARY), "{said}");
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[test]
    fn a_path_with_control_characters_is_shown_in_one_line() {
        assert_eq!(shown(Path::new("a\n\u{1b}[2Jb")), "a\\n\\u{1b}[2Jb");
    }
}
