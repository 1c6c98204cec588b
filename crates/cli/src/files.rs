//! Reading files within a budget and writing them whole or not at all.

use crate::failure::{Failure, Outcome};
use std::io::{Read, Write};
use std::path::Path;

/// Opens a regular file of at most `budget` bytes and tells its length; `what` names its role in
/// messages ("an ELF file").
///
/// Devices and pipes have no length that could be checked, and opening a pipe may wait for ever:
/// they are refused unopened.
pub fn open_within(path: &Path, budget: u64, what: &str) -> Outcome<(std::fs::File, u64)> {
    let metadata = std::fs::metadata(path).map_err(|e| cannot_read(path, &e))?;
    let refuse = |found: &str| Err(Failure::usage(format!("{} is {found}", path.display())).of_file(path));
    if metadata.is_dir() {
        return refuse(&format!("a folder; expected {what}"));
    }
    if !metadata.is_file() {
        return refuse(&format!("not a regular file; expected {what}"));
    }
    if metadata.len() > budget {
        return refuse(&format!("larger than {budget} bytes, the limit for {what}"));
    }
    let file = std::fs::File::open(path).map_err(|e| cannot_read(path, &e))?;
    Ok((file, metadata.len()))
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
        let message = format!("not enough memory for the {length} bytes of {}", path.display());
        return Err(Failure::failed("memory", message).of_file(path));
    }
    let read = file.take(length).read_to_end(bytes).map_err(|e| cannot_read(path, &e))?;
    if u64::try_from(read).ok() == Some(length) {
        Ok(())
    } else {
        Err(Failure::usage(format!("{} became shorter while it was read", path.display())).of_file(path))
    }
}

/// The failure of a read.
pub fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", path.display())).of_file(path)
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
        .map_err(|e| cannot_write(folder, format_args!("cannot make the folder {}: {e}", folder.display())))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes a file so that readers see the old content or the whole new content: into a temporary
/// file of the same folder, then renamed. The temporary file is removed when anything fails. What
/// is there and is no regular file stays as it is.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> Outcome<()> {
    let fail = |e: std::io::Error| cannot_write(path, format_args!("cannot write {}: {e}", path.display()));
    if std::fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        let what = "a folder, link or device is there; expected a regular file or nothing";
        return Err(cannot_write(path, format_args!("cannot write {}: {what}", path.display())));
    }
    let mut builder = tempfile::Builder::new();
    share(builder.prefix(".tilework-"));
    let mut temporary = builder.tempfile_in(folder_of(path)).map_err(fail)?;
    for part in parts {
        temporary.write_all(part).map_err(fail)?;
    }
    temporary.as_file().sync_all().map_err(fail)?;
    temporary.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// A temporary file is created for its owner alone; an output is as readable as other new files
/// of the user.
#[cfg(unix)]
fn share(builder: &mut tempfile::Builder) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(std::fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn share(_: &mut tempfile::Builder) {}
