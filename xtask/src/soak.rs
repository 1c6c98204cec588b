//! `cargo xtask soak`: random work on two hardware queues for as long as one wants.

use crate::example::example;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::Path;

/// How long, and which work.
#[derive(Args)]
pub struct SoakArgs {
    /// What the work follows from; the same seed does the same work
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Minutes of this machine
    #[arg(long, default_value_t = 1.0, conflicts_with = "rounds", value_parser = minutes)]
    minutes: f64,
    /// Calls to the device instead: for a failure that is to come again
    #[arg(long)]
    rounds: Option<u64>,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if minutes.is_finite() && minutes >= 0.0 { Ok(minutes) } else { Err("not a time".to_owned()) }
}

/// Runs the soak, which prints what it has done every ten seconds.
///
/// # Errors
/// A wrong result, with the command that repeats it; memory that grows.
pub fn run(root: &Path, args: &SoakArgs) -> Result<()> {
    let mut command = example(root, "tilework-runtime", "soak");
    command.args(["--seed", &args.seed.to_string()]);
    match args.rounds {
        Some(rounds) => command.args(["--rounds", &rounds.to_string()]),
        None => command.args(["--minutes", &args.minutes.to_string()]),
    };
    let status = command.status().context("cargo could not be started")?;
    ensure!(status.success(), "the soak with seed {} failed", args.seed);
    Ok(())
}
