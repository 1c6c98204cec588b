//! `cargo xtask bench`: the figures of `docs/benchmarks.md`.
//!
//! Without a library to compare with, the measuring program is the example `bench` of the runtime crate; here is only what surrounds it, so
//! that `cargo xtask firmware` does not have to build the simulator. With `--library`, our shared library and others do the same work.

mod compare;
mod workload;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

pub use compare::{ChildArgs, CompareArgs};

/// Says what machine this is, then builds and runs the measuring program, or compares libraries.
///
/// # Errors
/// A build that fails, or a measurement that does.
pub fn run(root: &Path, args: &CompareArgs) -> Result<()> {
    println!("machine: {}\n", machine());
    if args.is_wanted() {
        return compare::run(root, args);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["run", "--quiet", "--release", "--package", "tilework-runtime", "--example", "bench"])
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "the measuring program failed");
    Ok(())
}

/// The processor's name and the number of its threads, as far as the system tells.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or("unknown processor", |(_, name)| name.trim());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {threads} threads, {} {}", std::env::consts::OS, std::env::consts::ARCH)
}
