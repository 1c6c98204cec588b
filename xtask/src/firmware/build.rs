//! Builds the images: toolchain, directory and flags.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::inputs::{Inputs, LOCK};

/// The cores' target.
pub const TARGET: &str = "riscv32im-unknown-none-elf";
/// Debian's compiler, packager and sources of the core library (`rustc-web`, `cargo-web`,
/// `rust-web-src`).
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/core/src/lib.rs";

/// A compiler that can build for [`TARGET`].
pub struct Toolchain {
    /// The version that the manifest records.
    pub version: String,
    kind: Kind,
    sysroot: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// rustup's, with a compiled core library.
    Rustup,
    /// Debian's, which builds the core library from its sources.
    Debian,
}

fn output(command: &mut Command) -> Option<String> {
    let out = command.stderr(Stdio::null()).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

impl Toolchain {
    /// The toolchains of this machine that can build firmware: rustup's if it has the target,
    /// then Debian's.
    pub fn all() -> Result<Vec<Self>> {
        let mut found = Vec::new();
        let targets = output(Command::new("rustup").args(["target", "list", "--installed"]));
        if targets.is_some_and(|targets| targets.lines().any(|t| t == TARGET)) {
            found.push(Self::of(Kind::Rustup)?);
        }
        if [DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_SOURCES].iter().all(|p| Path::new(p).exists())
            && output(Command::new("ld.lld").arg("--version")).is_some()
        {
            found.push(Self::of(Kind::Debian)?);
        }
        Ok(found)
    }

    /// The first of [`Toolchain::all`].
    pub fn find() -> Result<Self> {
        Self::all()?.into_iter().next().with_context(|| {
            format!(
                "no toolchain for {TARGET}: either `rustup target add {TARGET}`, or on Debian \
                 `apt-get update && apt-get install rustc-web rust-web-src cargo-web lld`"
            )
        })
    }

    fn of(kind: Kind) -> Result<Self> {
        let (rustc, core) = match kind {
            Kind::Rustup => ("rustc", "compiled core library"),
            Kind::Debian => (DEBIAN_RUSTC, "core library from sources"),
        };
        let compiler = output(Command::new(rustc).arg("--version")).with_context(|| format!("{rustc} --version"))?;
        let sysroot = output(Command::new(rustc).args(["--print", "sysroot"]))
            .with_context(|| format!("{rustc} --print sysroot"))?;
        Ok(Self { version: format!("{compiler}, {core}"), kind, sysroot: sysroot.into() })
    }

    /// cargo with this compiler, without environment variables that would change the output.
    fn cargo(&self) -> Command {
        let mut cargo = Command::new(if self.kind == Kind::Debian { DEBIAN_CARGO } else { "cargo" });
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let kept = ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_"];
            if name.starts_with("CARGO") && !kept.iter().any(|k| name.starts_with(k)) || name.starts_with("RUSTC") {
                cargo.env_remove(name);
            }
        }
        for name in ["RUSTFLAGS", "RUSTDOCFLAGS"] {
            cargo.env_remove(name);
        }
        if self.kind == Kind::Debian {
            let path = std::env::var("PATH").unwrap_or_default();
            cargo.env("PATH", format!("/usr/bin:{path}"));
            cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
            cargo.env("CARGO_TARGET_RISCV32IM_UNKNOWN_NONE_ELF_LINKER", "ld.lld");
        }
        cargo
    }
}

/// The build directory of images: the same on every machine, one build at a time.
pub struct Stage {
    dir: PathBuf,
    _lock: File,
}

impl Stage {
    /// Locks the directory; waits for another build to end.
    pub fn lock() -> Result<Self> {
        let parent = if cfg!(unix) { PathBuf::from("/tmp") } else { std::env::temp_dir() };
        let dir = parent.join("tilework-firmware");
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        let lock = dir.join("lock");
        let file = File::create(&lock).with_context(|| lock.display().to_string())?;
        file.lock().with_context(|| lock.display().to_string())?;
        Ok(Self { dir, _lock: file })
    }

    fn sources(&self) -> PathBuf {
        self.dir.join("src")
    }
    fn target(&self) -> PathBuf {
        self.dir.join("target")
    }

    /// Makes the directory contain exactly these files. Unchanged files are not touched.
    pub fn fill(&self, inputs: &Inputs) -> Result<()> {
        let sources = self.sources();
        fs::create_dir_all(&sources)?;
        prune(&sources, "", inputs)?;
        for (path, bytes) in &inputs.0 {
            let path = sources.join(path);
            if fs::read(&path).is_ok_and(|old| old == *bytes) {
                continue;
            }
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Removes all earlier builds.
    pub fn clean(&self) -> Result<()> {
        if self.target().exists() {
            fs::remove_dir_all(self.target())?;
        }
        Ok(())
    }

    /// The firmware workspace's lock file after a build.
    pub fn lock_file(&self) -> Result<Vec<u8>> {
        Ok(fs::read(self.sources().join(LOCK))?)
    }

    /// Builds the images and returns their bytes by name.
    pub fn build(&self, toolchain: &Toolchain, names: &[String], locked: bool) -> Result<Vec<(String, Vec<u8>)>> {
        let mut cargo = toolchain.cargo();
        cargo.current_dir(self.sources().join("firmware"));
        cargo.env("CARGO_TARGET_DIR", self.target());
        cargo.args(["build", "--release", "--target", TARGET]);
        if toolchain.kind == Kind::Debian {
            cargo.arg("-Zbuild-std=core");
            // A kernel that needs `memcpy` would otherwise carry the line tables of all of it:
            // half a megabyte.
            cargo.args(["--config", "profile.release.package.compiler_builtins.debug=false"]);
        }
        if locked {
            cargo.arg("--locked");
        }
        for name in names {
            cargo.args(["--bin", name]);
        }
        cargo.args(["--config", &format!("target.{TARGET}.rustflags={:?}", self.remaps(toolchain))]);
        println!("building with {}", toolchain.version);
        let status = cargo.status().context("cargo could not be started")?;
        ensure!(status.success(), "the firmware does not build ({status})");
        let out = self.target().join(TARGET).join("release");
        names
            .iter()
            .map(|name| {
                let path = out.join(name);
                Ok((name.clone(), fs::read(&path).with_context(|| path.display().to_string())?))
            })
            .collect()
    }

    /// Flags that keep local paths out of the images.
    fn remaps(&self, toolchain: &Toolchain) -> Vec<String> {
        let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| {
            let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" })?;
            Some(Path::new(&home).join(".cargo"))
        });
        let mut remaps = vec![(self.sources(), "."), (toolchain.sysroot.join("lib/rustlib/src/rust"), "/rust")];
        remaps.extend(cargo_home.map(|home| (home.join("registry/src"), "/registry")));
        // The name of the core library's own package in Debian's sources.
        if let Some(release) = toolchain.version.split(' ').nth(1) {
            remaps.push((PathBuf::from(format!("/usr/src/rustc-{release}")), "/rust"));
        }
        remaps.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect()
    }
}

/// Removes what `inputs` does not have under `dir`, which is `prefix` from the root. Directories
/// that are empty then go, too: a workspace's members are all directories of a name.
fn prune(dir: &Path, prefix: &str, inputs: &Inputs) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            prune(&entry.path(), &format!("{path}/"), inputs)?;
            if fs::read_dir(entry.path())?.next().is_none() {
                fs::remove_dir(entry.path())?;
            }
        } else if !inputs.0.contains_key(&path) && path != "Cargo.lock" {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prune_removes_only_strangers() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("b/c")).unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        for name in ["a/kept.rs", "a/gone.rs", "b/c/gone.rs", "gone.toml"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let inputs = Inputs([("a/kept.rs".to_owned(), b"x".to_vec())].into());
        prune(dir.path(), "", &inputs).unwrap();
        assert!(dir.path().join("a/kept.rs").exists());
        assert!(!dir.path().join("a/gone.rs").exists());
        assert!(!dir.path().join("gone.toml").exists());
        assert!(!dir.path().join("b").exists());
    }
}
