//! `cargo xtask dist`: the command and the card's library, compiled with a profile of what the
//! kernel programs of `examples` spend their time on.
//!
//! The compiler then knows which branches are taken and what is worth inlining. Results do not
//! depend on it. Everything goes to `dist` in cargo's target folder, with folders of its own for
//! both builds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::kernel_programs;

/// What is built: the packages, and the files that come of them.
const PACKAGES: [&str; 2] = ["tilework-cli", "tilework-libttsim"];
const FILES: [&str; 2] = ["tilework", "libtilework.so"];

/// Ways to run each program for the profile: most runs have the checks that are on by default, or
/// none.
const WAYS: [&[&str]; 2] = [&["--checks", "off"], &["--checks", "warn"]];

/// Separates flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\x1f";

/// Builds both and prints where they are.
///
/// # Errors
/// If a tool is missing, a build fails or an example does.
pub fn run(root: &Path) -> Result<()> {
    let compiler = Compiler::find()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let dist = root.join(target).join("dist");
    let profiles = dist.join("profiles");
    if profiles.exists() {
        std::fs::remove_dir_all(&profiles)?;
    }
    std::fs::create_dir_all(&profiles)?;
    println!("building with counters");
    let counting = compiler.build(root, &dist.join("counting"), &flag("-Cprofile-generate=", &profiles))?;
    train(root, &counting.join(FILES[0]), &profiles)?;
    let merged = dist.join("examples.profdata");
    let mut merge = Command::new(&compiler.profdata);
    checked(merge.arg("merge").arg("--output").arg(&merged).arg(&profiles))?;
    println!("building with the profile");
    let built = compiler.build(root, &dist.join("profiled"), &flag("-Cprofile-use=", &merged))?;
    for file in FILES {
        let to = dist.join(file);
        std::fs::copy(built.join(file), &to).with_context(|| format!("{file} is not there after the build"))?;
        println!("{}", to.display());
    }
    Ok(())
}

/// Runs all example programs in all ways, so that a command with counters writes them to
/// `profiles`.
fn train(root: &Path, tilework: &Path, profiles: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let large = folder.path().join("x.npy");
    kernel_programs::write_large(&large)?;
    for name in kernel_programs::names(root)? {
        println!("counting {name}");
        for way in WAYS {
            let mut command = Command::new(tilework);
            command.arg("run").args(kernel_programs::arguments(root, &name, &large)?);
            command.args(["--threads", "1", "--out"]).arg(folder.path()).args(way);
            // Each run adds to the counters of those before it.
            command.env("LLVM_PROFILE_FILE", profiles.join("%m.profraw"));
            checked(&mut command)?;
        }
    }
    Ok(())
}

/// What builds for this machine.
struct Compiler {
    /// The machine, as the compiler names it.
    host: String,
    /// The tool that reads counters.
    profdata: PathBuf,
}

impl Compiler {
    fn find() -> Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let version = checked(Command::new(&rustc).arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
        let sysroot = checked(Command::new(&rustc).args(["--print", "sysroot"]))?;
        let tools = Path::new(sysroot.trim_end()).join("lib/rustlib").join(host).join("bin");
        let profdata = tools.join(format!("llvm-profdata{}", std::env::consts::EXE_SUFFIX));
        ensure!(profdata.is_file(), "no llvm-profdata in {}: rustup component add llvm-tools", tools.display());
        Ok(Self { host: host.to_owned(), profdata })
    }

    /// Builds for release in the target folder `target` with one more flag; returns where the files
    /// are.
    fn build(&self, root: &Path, target: &Path, flag: &OsString) -> Result<PathBuf> {
        let mut flags = OsString::new();
        if let Ok(given) = std::env::var("RUSTFLAGS") {
            for given in given.split_whitespace() {
                flags.push(given);
                flags.push(SEPARATOR);
            }
        }
        flags.push(flag);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        // With a target of its own, build scripts and macros are compiled without the flag.
        command.current_dir(root).args(["build", "--release", "--target", &self.host, "--target-dir"]).arg(target);
        PACKAGES.iter().for_each(|package| {
            command.args(["--package", package]);
        });
        let status = command.env("CARGO_ENCODED_RUSTFLAGS", flags).status().context("cargo could not be started")?;
        ensure!(status.success(), "the build failed");
        Ok(target.join(&self.host).join("release"))
    }
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

/// What a command prints.
fn checked(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{:?} could not be started", command.get_program()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
