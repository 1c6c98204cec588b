//! Finds the real netlists, which are not part of the repository.

use std::path::{Path, PathBuf};

/// The folder of real netlists: `../shared/data/netlists` beside the checkout, or where
/// `TILEWORK_NETLISTS` says. `None`, with the reason printed, when there is none.
pub(crate) fn real_netlists() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/netlists");
    let folder = std::env::var_os("TILEWORK_NETLISTS").map_or(beside, PathBuf::from);
    if folder.join("expected.json").is_file() {
        return Some(folder);
    }
    println!("left out: no {} (TILEWORK_NETLISTS names the folder)", folder.display());
    None
}
