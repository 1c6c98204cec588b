//! `cargo xtask`: development tasks.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use xtask::{bench, coverage, diff, firmware, soak, swap, ttnn};

/// Development tasks of Tilework.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the firmware images in firmware/prebuilt from their sources.
    Firmware(FirmwareArgs),
    /// Measure the speed of this checkout on this machine and print the table of
    /// docs/benchmarks.md.
    ///
    /// With --library, compare our shared library with others that have the libttsim interface
    /// instead; `bench models` has compiled models on the chip, natively and by JAX.
    Bench(bench::BenchArgs),
    /// Measure one row; started by `bench --library`.
    #[command(hide = true)]
    BenchChild(bench::ChildArgs),
    /// Run the same random host scripts on our chip and on another library with the libttsim
    /// interface, and compare.
    Diff(diff::DiffArgs),
    /// List the documented modes of Tensix instructions that no test reaches.
    ///
    /// Runs the tests and compares what they execute with the instruction table.
    Coverage(coverage::CoverageArgs),
    /// Run the real ttnn on our shared library, in fast and in slow dispatch.
    Ttnn(ttnn::TtnnArgs),
    /// Run our parts with the seeds' Python driver's, queue kernels, worker firmware and kernels,
    /// and on another chip, and print the table of docs/swap.md.
    Swap(swap::SwapArgs),
    /// Random programs, traces, transfers, events and pauses on two hardware queues, for as long as
    /// one wants: every read is compared, and memory must not grow.
    Soak(soak::SoakArgs),
    /// Run one script; started by `diff`.
    #[command(hide = true)]
    DiffChild(diff::ChildArgs),
}

#[derive(Args)]
struct FirmwareArgs {
    /// Only check that the prebuilt images match the sources; needs no toolchain.
    #[arg(long, conflicts_with = "rebuild_check")]
    check: bool,
    /// Build again and compare the images byte by byte, if this machine has the toolchain that
    /// built them; otherwise check as --check.
    #[arg(long)]
    rebuild_check: bool,
}

fn main() -> ExitCode {
    match task(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn task(task: Task) -> Result<()> {
    let root = repository();
    match task {
        Task::Firmware(args) if args.check => firmware::check(&root),
        Task::Firmware(args) if args.rebuild_check => firmware::rebuild_check(&root),
        Task::Firmware(_) => firmware::build(&root),
        Task::Bench(args) => bench::run(&root, &args),
        Task::BenchChild(args) => args.run(),
        Task::Diff(args) => diff::run(&root, &args),
        Task::Coverage(args) => coverage::run(&root, &args),
        Task::Ttnn(args) => ttnn::run(&root, &args),
        Task::Swap(args) => swap::run(&root, &args),
        Task::Soak(args) => soak::run(&root, &args),
        Task::DiffChild(args) => args.run(),
    }
}

/// The repository's root, from cargo at run time, since several checkouts may share a
/// target directory.
fn repository() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR"))).join("..")
}
