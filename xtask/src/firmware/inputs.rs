//! The input files of the firmware images.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

/// The firmware workspace's lock file, from the repository's root.
pub const LOCK: &str = "firmware/Cargo.lock";

/// File name extensions of sources; everything else (notes, editor files) is ignored.
const SOURCES: [&str; 4] = ["rs", "toml", "ld", "lock"];

/// Contents of every input file, by path from the repository's root with `/` between names.
pub struct Inputs(pub BTreeMap<String, Vec<u8>>);

impl Inputs {
    /// Reads the firmware workspace, the `abi` crate and what `abi` inherits from the
    /// root manifest.
    pub fn collect(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        for dir in ["firmware", "crates/abi"] {
            walk(root, dir, &mut files)?;
        }
        let manifest = read_table(&root.join("Cargo.toml"))?;
        let abi = read_table(&root.join("crates/abi/Cargo.toml"))?;
        files.insert("Cargo.toml".to_owned(), inherited(&manifest, &abi)?.into_bytes());
        Ok(Self(files))
    }
}

fn read_table(path: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.parse().with_context(|| path.display().to_string())
}

fn walk(root: &Path, dir: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    let full = root.join(dir);
    for entry in std::fs::read_dir(&full).with_context(|| full.display().to_string())? {
        let entry = entry?;
        let path = format!("{dir}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            if !matches!(path.as_str(), "firmware/target" | "firmware/prebuilt") {
                walk(root, &path, files)?;
            }
        } else if entry.path().extension().is_some_and(|e| SOURCES.iter().any(|s| e == *s)) {
            let bytes = std::fs::read(entry.path()).with_context(|| path.clone())?;
            files.insert(path, bytes);
        }
    }
    Ok(())
}

/// A root manifest with only what `abi` inherits, so that the other crates' dependencies
/// do not matter.
fn inherited(manifest: &Table, abi: &Table) -> Result<String> {
    let whole = manifest.get("workspace").and_then(Value::as_table).context("Cargo.toml: no [workspace]")?;
    let mut workspace = Table::new();
    workspace.insert("resolver".into(), "3".into());
    workspace.insert("members".into(), Value::Array(vec!["crates/abi".into()]));
    workspace.insert("exclude".into(), Value::Array(vec!["firmware".into()]));
    for name in ["package", "lints"] {
        if let Some(value) = whole.get(name) {
            workspace.insert(name.into(), value.clone());
        }
    }
    let used = |name: &str| {
        ["dependencies", "dev-dependencies", "build-dependencies"]
            .iter()
            .filter_map(|kind| abi.get(*kind)?.as_table())
            .any(|dependencies| dependencies.contains_key(name))
    };
    if let Some(all) = whole.get("dependencies").and_then(Value::as_table) {
        let kept: Table = all.iter().filter(|(n, _)| used(n)).map(|(n, v)| (n.clone(), v.clone())).collect();
        workspace.insert("dependencies".into(), Value::Table(kept));
    }
    let mut root = Table::new();
    root.insert("workspace".into(), Value::Table(workspace));
    Ok(toml::to_string(&root)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_abi_inherits_is_kept() {
        let root: Table = "[workspace]\nmembers = ['crates/*']\n[workspace.package]\nedition = '2024'\n\
            [workspace.dependencies]\nzerocopy = '0.8'\nclap = '4'\n[profile.release]\nlto = true\n"
            .parse()
            .unwrap();
        let abi: Table = "[dependencies]\nzerocopy.workspace = true\n".parse().unwrap();
        let kept: Table = inherited(&root, &abi).unwrap().parse().unwrap();
        let workspace = kept["workspace"].as_table().unwrap();
        assert_eq!(workspace["package"]["edition"].as_str(), Some("2024"));
        assert_eq!(workspace["dependencies"].as_table().unwrap().keys().collect::<Vec<_>>(), ["zerocopy"]);
        assert!(!kept.contains_key("profile"));
    }
}
