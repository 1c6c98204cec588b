//! `firmware/prebuilt/manifest.toml`: hashes of the images and of their sources.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::PREBUILT;
use super::inputs::Inputs;

/// The manifest. All hashes are SHA-256 in hexadecimal.
#[derive(Serialize, Deserialize, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The compiler's `rustc --version`, and the origin of the core library.
    pub toolchain: String,
    /// Hash of each image, by name.
    pub images: BTreeMap<String, String>,
    /// Hash of each source file, by path from the repository's root.
    pub sources: BTreeMap<String, String>,
}

/// The hash of `bytes`.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

impl Manifest {
    /// The manifest of images just built.
    pub fn new(toolchain: String, inputs: &Inputs, images: &[(String, Vec<u8>)]) -> Self {
        Self {
            toolchain,
            images: images.iter().map(|(name, bytes)| (name.clone(), sha256(bytes))).collect(),
            sources: inputs.0.iter().map(|(path, bytes)| (path.clone(), sha256(bytes))).collect(),
        }
    }

    /// Reads the repository's manifest.
    pub fn load(root: &Path) -> Result<Self> {
        let path = root.join(PREBUILT).join("manifest.toml");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("{}: run `cargo xtask firmware` first", path.display()))?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The file's text.
    pub fn to_text(&self) -> Result<String> {
        Ok(format!(
            "# Written by `cargo xtask firmware`. SHA-256 of the images and of all that went into them.\n{}",
            toml::to_string(self)?
        ))
    }

    /// The differences of the present sources, one line each.
    pub fn compare_sources(&self, inputs: &Inputs) -> Vec<String> {
        let mut faults = Vec::new();
        for (path, bytes) in &inputs.0 {
            match self.sources.get(path) {
                Some(hash) if *hash == sha256(bytes) => {}
                Some(_) => faults.push(format!("{path}: changed")),
                None => faults.push(format!("{path}: new")),
            }
        }
        faults.extend(self.sources.keys().filter(|p| !inputs.0.contains_key(*p)).map(|p| format!("{p}: gone")));
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(files: &[(&str, &str)]) -> Inputs {
        Inputs(files.iter().map(|(p, t)| ((*p).to_owned(), t.as_bytes().to_vec())).collect())
    }

    #[test]
    fn hash_is_the_standard_one() {
        // FIPS 180-2, example of one block.
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn text_is_read_back() {
        let manifest = Manifest::new("rustc 1.0".into(), &inputs(&[("a.rs", "x")]), &[("empty".into(), vec![1])]);
        assert_eq!(toml::from_str::<Manifest>(&manifest.to_text().unwrap()).unwrap(), manifest);
    }

    #[test]
    fn changed_new_and_gone_sources_are_named() {
        let manifest = Manifest::new(String::new(), &inputs(&[("a.rs", "1"), ("b.rs", "2"), ("c.rs", "3")]), &[]);
        let faults = manifest.compare_sources(&inputs(&[("a.rs", "1"), ("b.rs", "other"), ("d.rs", "4")]));
        assert_eq!(faults, ["b.rs: changed", "d.rs: new", "c.rs: gone"]);
    }
}
