//! What the tests have in common: the real files, and buffers made by hand.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod builder;
pub mod mlir;

use std::path::{Path, PathBuf};

/// Folders of real compiled programs: `../shared/data/ttnn` beside the checkout, or where `TILEWORK_TTNN` says. Empty,
/// with a reason printed, if there are none.
pub fn real_programs() -> Vec<PathBuf> {
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

/// The files beside these tests that compilers wrote: `data/<version>/<program>.ttnn` and `system.ttsys`.
pub fn committed_files() -> Vec<PathBuf> {
    files_in(&["0.1.0", "0.1.1", "0.1.2", "0.1.3"])
}

/// The files beside these tests that `flatc` wrote.
pub fn flatc_files() -> Vec<PathBuf> {
    files_in(&["flatc"])
}

fn files_in(folders: &[&str]) -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(data.join(folder)).unwrap());
    let model = |path: &PathBuf| path.extension().is_some_and(|end| end == "ttnn" || end == "ttm" || end == "ttsys");
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).filter(model).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}
