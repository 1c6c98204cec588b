//! Builds the prebuilt firmware images and checks that they match their sources.
//!
//! The images in `firmware/prebuilt` are committed, so that nobody needs a RISC-V toolchain to run
//! Tilework. Their inputs are a set of files ([`inputs`]); the [`manifest`] has the hash of each,
//! the hash of each image and the compiler. The build sees exactly these files: they are copied to
//! a fixed directory first ([`build`](mod@build)), which also makes the images independent of the
//! repository's location, because cargo puts absolute paths of packages into symbol names.

pub mod build;
pub mod inputs;
pub mod manifest;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use build::{Stage, Toolchain};
use inputs::Inputs;
use manifest::{Manifest, sha256};

/// Where the images are, from the repository's root.
pub const PREBUILT: &str = "firmware/prebuilt";
/// The images that are not kernels under `firmware/kernels`.
const FIXED_IMAGES: [&str; 10] =
    ["brisc", "ncrisc", "trisc0", "trisc1", "trisc2", "prefetch", "prefetch-h", "prefetch-d", "dispatch", "dispatch-s"];

/// Names of all images: binaries of the firmware workspace.
pub fn images(root: &Path) -> Result<Vec<String>> {
    let kernels = root.join("firmware/kernels");
    let mut names: Vec<String> = FIXED_IMAGES.map(String::from).into();
    for entry in std::fs::read_dir(&kernels).with_context(|| kernels.display().to_string())? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            names.extend(binaries(&entry.path().join("Cargo.toml"))?);
        }
    }
    names.sort();
    Ok(names)
}

/// Names of the binaries of a kernel's package: one, or one for each thread of a compute kernel.
fn binaries(manifest: &Path) -> Result<Vec<String>> {
    let at = || manifest.display().to_string();
    let table: toml::Table = std::fs::read_to_string(manifest).with_context(at)?.parse().with_context(at)?;
    let bins = table.get("bin").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    let name = |bin: &toml::Value| bin.get("name").and_then(toml::Value::as_str).map(str::to_owned);
    let names: Vec<String> = bins.iter().filter_map(name).collect();
    ensure!(!names.is_empty(), "{}: no [[bin]] with a name", at());
    Ok(names)
}

fn image_path(root: &Path, name: &str) -> PathBuf {
    root.join(PREBUILT).join(format!("{name}.elf"))
}

/// Builds all images and stores them with their manifest.
pub fn build(root: &Path) -> Result<()> {
    let toolchain = Toolchain::find()?;
    let stage = Stage::lock()?;
    let mut inputs = Inputs::collect(root)?;
    stage.fill(&inputs)?;
    let names = images(root)?;
    let built = stage.build(&toolchain, &names, false)?;
    // The build may have completed the lock file.
    let lock = stage.lock_file()?;
    std::fs::write(root.join(inputs::LOCK), &lock)?;
    inputs.0.insert(inputs::LOCK.to_owned(), lock);
    std::fs::create_dir_all(root.join(PREBUILT))?;
    for (name, bytes) in &built {
        std::fs::write(image_path(root, name), bytes)?;
    }
    remove_strangers(root, &names)?;
    let manifest = Manifest::new(toolchain.version, &inputs, &built);
    let path = root.join(PREBUILT).join("manifest.toml");
    std::fs::write(&path, manifest.to_text()?)?;
    println!("{} images in {PREBUILT}, {} bytes", built.len(), built.iter().map(|(_, b)| b.len()).sum::<usize>());
    Ok(())
}

/// Removes ELF files of images that no longer exist.
fn remove_strangers(root: &Path, names: &[String]) -> Result<()> {
    for entry in std::fs::read_dir(root.join(PREBUILT))? {
        let path = entry?.path();
        let known = path.file_stem().is_some_and(|s| names.iter().any(|n| s == n.as_str()));
        if path.extension().is_some_and(|e| e == "elf") && !known {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Fails unless the prebuilt images are those of the manifest and built from the present sources.
pub fn check(root: &Path) -> Result<()> {
    let manifest = Manifest::load(root)?;
    let mut faults = manifest.compare_sources(&Inputs::collect(root)?);
    for name in images(root)? {
        let path = image_path(root, &name);
        match (std::fs::read(&path), manifest.images.get(&name)) {
            (Ok(bytes), Some(expected)) if sha256(&bytes) == *expected => {}
            (Ok(_), Some(_)) => faults.push(format!("{}: not the image that was built", path.display())),
            (_, None) => faults.push(format!("{name}: the manifest does not know this image")),
            (Err(e), _) => faults.push(format!("{}: {e}", path.display())),
        }
    }
    ensure!(
        faults.is_empty(),
        "the prebuilt firmware does not belong to its sources; run `cargo xtask firmware` and commit {PREBUILT}\n  {}",
        faults.join("\n  ")
    );
    println!("the prebuilt firmware belongs to its sources");
    Ok(())
}

/// As [`check`], then builds again with the toolchain of the manifest, if this machine has it, and
/// compares byte by byte. With another toolchain the sources must at least build.
pub fn rebuild_check(root: &Path) -> Result<()> {
    check(root)?;
    let manifest = Manifest::load(root)?;
    let mut toolchains = Toolchain::all()?;
    if toolchains.is_empty() {
        println!("not built again: this machine has no toolchain for the target");
        return Ok(());
    }
    let same = toolchains.iter().position(|t| t.version == manifest.toolchain);
    let toolchain = toolchains.swap_remove(same.unwrap_or(0));
    let stage = Stage::lock()?;
    stage.fill(&Inputs::collect(root)?)?;
    stage.clean()?;
    let built = stage.build(&toolchain, &images(root)?, true)?;
    if same.is_none() {
        println!("built again, not compared: by {:?}, the images are by {:?}", toolchain.version, manifest.toolchain);
        return Ok(());
    }
    let mut different = Vec::new();
    for (name, bytes) in built {
        if std::fs::read(image_path(root, &name))? != bytes {
            different.push(name);
        }
    }
    if !different.is_empty() {
        bail!("built again from the same sources by the same compiler, but different: {}", different.join(", "));
    }
    println!("built again: every byte is the same");
    Ok(())
}
