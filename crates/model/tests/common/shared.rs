//! The location of real programs that are not part of the project; the engine's tests use
//! this file, too.

use std::path::{Path, PathBuf};

/// Folders of real compiled programs: `../shared/data/ttnn` beside the checkout, or where
/// `TILEWORK_TTNN` says. Empty, with a reason printed, if there are none.
pub(crate) fn real_programs() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/ttnn");
    let folder = std::env::var_os("TILEWORK_TTNN").map_or(beside, PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("left out: no {} (TILEWORK_TTNN names the folder)", folder.display());
        return Vec::new();
    };
    let mut programs: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.join("program.ttnn").is_file()).collect();
    programs.sort();
    assert!(programs.len() >= 30, "{} has {} programs only", folder.display(), programs.len());
    programs
}
