//! Our own shared object with the libttsim interface, built from this checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The package, and the file name that cargo gives its library.
const PACKAGE: &str = "tilework-libttsim";
const FILE: &str = "libtilework.so";

/// Builds the library and returns its path.
///
/// # Errors
/// If the build fails.
pub fn build(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["build", "--quiet", "--release", "--package", PACKAGE])
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "{PACKAGE} does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let file = root.join(target).join("release").join(FILE);
    ensure!(file.is_file(), "{} is not there after the build", file.display());
    Ok(file)
}
