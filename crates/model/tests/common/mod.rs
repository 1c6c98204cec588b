//! Helpers of the tests: the real files, and hand-made buffers.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod builder;
pub(crate) mod mlir;
pub(crate) mod shared;

use std::path::{Path, PathBuf};

/// The files beside these tests that compilers wrote: `data/<version>/<program>.ttnn` and
/// `system.ttsys`.
pub(crate) fn committed_files() -> Vec<PathBuf> {
    files_in(&["0.1.0", "0.1.1", "0.1.2", "0.1.3"])
}

/// The files beside these tests that `flatc` wrote.
pub(crate) fn flatc_files() -> Vec<PathBuf> {
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
