//! Unsafe code is in the crates that need it, and the compiler keeps it out of the others.

use crate::common;
use common::repository;
use std::path::{Path, PathBuf};

/// Crates with unsafe code, and what for: matrix kernels, the interface of shared libraries, some
/// of them as bytes, native code of model files, the functions of the C library before it, and
/// mappings of a card.
const NEED_IT: [&str; 7] = ["card", "libttsim", "libttsim-client", "native", "ops", "preload", "tt-kmd-client"];

/// Of those crates, the ones whose unsafe code is all in one file.
const ONE_FILE: [(&str, &str); 1] = [("tt-kmd-client", "system.rs")];

#[test]
fn unsafe_code_of_some_crates_is_in_one_file() {
    for (name, file) in ONE_FILE {
        let all = sources(&repository().join("crates").join(name).join("src"));
        let unsafe_ones = all.iter().filter(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.contains("unsafe {") || text.contains("unsafe fn") || text.contains("unsafe impl")
        });
        let found: Vec<_> = unsafe_ones.map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(found, [file], "{name}");
    }
}

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
