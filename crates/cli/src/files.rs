//! Reading files within a budget and writing them whole or not at all.

use crate::failure::{Failure, Outcome};
use std::io::{Read, Write};
use std::path::Path;

/// Reads a file of at most `budget` bytes; `what` names its role in messages ("an ELF file").
pub fn read_within(path: &Path, budget: u64, what: &str) -> Outcome<Vec<u8>> {
    let fail = |e: std::io::Error| Failure::usage(format!("cannot read {}: {e}", path.display()));
    let file = std::fs::File::open(path).map_err(fail)?;
    if file.metadata().map_err(fail)?.is_dir() {
        return Err(Failure::usage(format!("{} is a folder; expected {what}", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(budget.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    if u64::try_from(bytes.len()).is_ok_and(|n| n > budget) {
        return Err(Failure::usage(format!("{} is larger than {budget} bytes, the limit for {what}", path.display())));
    }
    Ok(bytes)
}

/// Writes a file so that readers see the old content or the whole new content: into a temporary file of the same folder,
/// then renamed. The temporary file is removed when anything fails.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> Outcome<()> {
    let fail = |e: std::io::Error| Failure::failed(format!("cannot write {}: {e}", path.display()));
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut temporary = tempfile::Builder::new().prefix(".tilework-").tempfile_in(folder).map_err(fail)?;
    for part in parts {
        temporary.write_all(part).map_err(fail)?;
    }
    temporary.as_file().sync_all().map_err(fail)?;
    share(temporary.as_file()).map_err(fail)?;
    temporary.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// A temporary file is created for its owner alone; an output is as readable as other new files.
#[cfg(unix)]
fn share(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn share(_: &std::fs::File) -> std::io::Result<()> {
    Ok(())
}
