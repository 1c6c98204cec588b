//! `cargo xtask bench`: the figures of `docs/benchmarks.md`.
//!
//! Without `--library`, the example `bench` of the runtime crate measures; only its invocation is
//! here, so that `cargo xtask firmware` does not have to build the simulator. With `--library`, our
//! shared library and others do the same work.

mod compare;
mod looking;
mod models;
mod workload;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

pub use compare::{ChildArgs, CompareArgs};

/// What to measure.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// models: compiled models on the chip, on the native engine and by JAX on the CPU. looking:
    /// what checks and timelines cost. Without it, the simulator.
    #[arg(value_enum)]
    what: Option<What>,
    /// Folder with the compiled programs matmul_512, llama_layer and resblock (program.ttnn,
    /// in*.npy, out0.npy).
    #[arg(long, value_name = "DIR", requires = "what")]
    data: Option<PathBuf>,
    /// A Python with JAX; without it, that of the target folder or the machine's. Where there is
    /// none, there are no columns of JAX.
    #[arg(long, value_name = "FILE", requires = "what")]
    python: Option<PathBuf>,
    /// Install JAX from PyPI into the target folder, if there is none.
    #[arg(long, requires = "what")]
    install_jax: bool,
    #[command(flatten)]
    compare: CompareArgs,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// Compiled models on the chip, natively and by JAX
    Models,
    /// What checks and timelines cost
    Looking,
}

/// Prints the machine, then builds and runs the measuring program, or compares libraries.
///
/// # Errors
/// If a build or a measurement fails.
pub fn run(root: &Path, args: &BenchArgs) -> Result<()> {
    println!("machine: {}\n", machine());
    match args.what {
        Some(What::Models) => return models::run(root, args.data.as_deref(), args.python.as_deref(), args.install_jax),
        Some(What::Looking) => return looking::run(root),
        None => {}
    }
    if args.compare.is_wanted() {
        return compare::run(root, &args.compare);
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

/// The processor's name and number of threads, if known.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or("unknown processor", |(_, name)| name.trim());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {threads} threads, {} {}", std::env::consts::OS, std::env::consts::ARCH)
}
