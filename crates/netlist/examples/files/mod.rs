//! The YAML files below a folder, for the examples that go through all netlists of one.

use std::io::Result;
use std::path::{Path, PathBuf};

/// Returns the YAML files below `folder`, sorted.
///
/// # Errors
/// If a folder cannot be read.
pub(crate) fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    Ok(())
}
