//! Finds the real netlists, which are not part of the repository.

use std::path::{Path, PathBuf};

/// The real netlists of a folder (`""` or `invalid`) in `../shared/data/netlists` beside the
/// checkout, or where `TILEWORK_NETLISTS` says, with their texts. Empty, with a reason printed, if
/// there are none.
pub(crate) fn real_netlists(folder: &str) -> Vec<(String, String)> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/netlists");
    let root = std::env::var_os("TILEWORK_NETLISTS").map_or(beside, PathBuf::from).join(folder);
    let Ok(entries) = std::fs::read_dir(&root) else {
        println!("left out: no {} (TILEWORK_NETLISTS names the folder)", root.display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}
