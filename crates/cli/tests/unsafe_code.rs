//! Unsafe code is in the crates that need it, and the compiler keeps it out of the others.

mod common;

use common::repository;
use std::path::{Path, PathBuf};

/// Crates with unsafe code, and what for: matrix kernels, the interface of shared libraries, some
/// of them as bytes, native code of model files, and the functions of the C library before it.
const NEED_IT: [&str; 6] = ["card", "libttsim", "libttsim-client", "native", "ops", "preload"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn only_the_crates_that_need_unsafe_code_allow_it() {
    let crates = std::fs::read_dir(repository().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let others = ["fuzz", "xtask"].map(|name| repository().join(name));
    let mut needy = Vec::new();
    for folder in crates.chain(others) {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let roots: Vec<PathBuf> = ["lib.rs", "main.rs"]
            .map(|root| folder.join("src").join(root))
            .into_iter()
            .filter(|p| p.is_file())
            .collect();
        assert!(!roots.is_empty(), "{name} has no root");
        let forbids = |root: &PathBuf| std::fs::read_to_string(root).unwrap().contains("#![forbid(unsafe_code)]");
        if !roots.iter().all(forbids) {
            let has_some = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains("unsafe {"));
            assert!(sources(&folder.join("src")).iter().any(has_some), "{name} can forbid unsafe code");
            needy.push(name);
        }
    }
    needy.sort();
    assert_eq!(needy, NEED_IT);
}
