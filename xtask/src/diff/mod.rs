//! `cargo xtask diff LIB`: a differential rig.
//!
//! The same host script runs on our chip and on another library with the libttsim interface, each
//! in a child process, and everything that the host reads is compared. A case that differs is
//! shrunk and printed with both histories and the command that repeats it. `docs/diff.md` lists
//! what may differ, and why.

mod child;
mod generate;
mod known;
mod report;
mod rng;
mod script;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

pub use child::play;
pub use generate::Kind;

use child::Played;
use generate::Case;
use report::{Table, Verdict, history, judge};
use script::Op;

/// The most scripts to try when a case is shrunk.
const SHRINK_TRIES: usize = 200;

/// What to compare.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// The other library.
    library: PathBuf,
    /// Our library; without it, it is built from this checkout.
    #[arg(long)]
    own: Option<PathBuf>,
    /// Seed of the first case; the others follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cases of each kind.
    #[arg(long, default_value_t = 100)]
    cases: u64,
    /// Only this kind of cases.
    #[arg(long, value_enum)]
    only: Option<Kind>,
    /// Findings told in full; further ones are only counted.
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// Also tell every operation of a one-case run.
    #[arg(long)]
    verbose: bool,
}

/// The arguments of the hidden child command.
#[derive(Args, Debug)]
pub struct ChildArgs {
    library: OsString,
    script: PathBuf,
    answers: PathBuf,
}

impl ChildArgs {
    /// Runs the script.
    ///
    /// # Errors
    /// See [`play`].
    pub fn run(&self) -> Result<()> {
        play(&self.library, &self.script, &self.answers)
    }
}

/// Runs the cases and prints findings and table.
///
/// # Errors
/// If a library cannot be started, or there are findings.
pub fn run(root: &Path, args: &DiffArgs) -> Result<()> {
    let own = match &args.own {
        Some(own) => own.clone(),
        None => crate::own_library::build(root)?,
    };
    let pair = Pair { ours: absolute(&own)?, theirs: absolute(&args.library)?, dir: tempfile::tempdir()? };
    let kinds = args.only.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let mut table = Table::default();
    let mut shown = 0;
    for kind in kinds {
        for seed in args.seed..args.seed.saturating_add(args.cases) {
            let case = Case::new(kind, seed);
            let keep = vec![true; case.parts()];
            let outcome = pair.play(case.script(&keep))?;
            table.count(kind, seed, &outcome.verdict, &outcome.known);
            if args.verbose {
                print!("{}", history(&outcome.ops, &outcome.ours, &outcome.theirs, outcome.ops.len()));
            }
            if outcome.verdict.is_finding() && shown < args.show {
                shown += 1;
                tell(&pair, kind, seed, &case, outcome)?;
            }
        }
    }
    println!("{table}");
    let findings = table.findings();
    ensure!(findings == 0, "{findings} cases in which our chip differs or refuses alone");
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize().with_context(|| format!("{} is not there", path.display()))
}

/// The two libraries.
struct Pair {
    ours: PathBuf,
    theirs: PathBuf,
    dir: tempfile::TempDir,
}

/// A script with the results of both libraries.
struct Outcome {
    ops: Vec<Op>,
    ours: Played,
    theirs: Played,
    verdict: Verdict,
    /// Reasons of the known differences that occurred.
    known: Vec<&'static str>,
}

impl Pair {
    fn play(&self, ops: Vec<Op>) -> Result<Outcome> {
        let ours = child::watch(&self.ours, &ops, self.dir.path())?;
        let theirs = child::watch(&self.theirs, &ops, self.dir.path())?;
        let (verdict, known) = judge(&ops, &ours, &theirs);
        Ok(Outcome { ops, ours, theirs, verdict, known })
    }

    /// Shrinks a case to what is needed for the same kind of outcome: leaves out halves, quarters,
    /// and so on down to single parts.
    fn shrink(&self, case: &Case, first: Outcome) -> Result<(Vec<bool>, Outcome)> {
        let mut keep = vec![true; case.parts()];
        let mut best = first;
        let mut tries = 0;
        let mut step = keep.len().next_power_of_two();
        while step > 0 {
            for from in (0..keep.len()).step_by(step) {
                let mut fewer = keep.clone();
                fewer[from..(from + step).min(case.parts())].fill(false);
                if fewer == keep || tries == SHRINK_TRIES {
                    continue;
                }
                tries += 1;
                let outcome = self.play(case.script(&fewer))?;
                if outcome.verdict.is_like(&best.verdict) {
                    (keep, best) = (fewer, outcome);
                }
            }
            step /= 2;
        }
        Ok((keep, best))
    }
}

/// Shrinks a finding and prints it.
fn tell(pair: &Pair, kind: Kind, seed: u64, case: &Case, outcome: Outcome) -> Result<()> {
    let (keep, outcome) = pair.shrink(case, outcome)?;
    let at = match outcome.verdict {
        Verdict::Differ(at) => at,
        _ => outcome.ours.replies.len(),
    };
    println!("--- {} {seed}: {:?}; {} of {} parts are enough", kind.name(), outcome.verdict, count(&keep), keep.len());
    for line in case.listing(&keep) {
        println!("  {line}");
    }
    print!("{}", history(&outcome.ops, &outcome.ours, &outcome.theirs, at));
    println!("  again: cargo xtask diff {} --only {} --seed {seed} --cases 1\n", pair.theirs.display(), kind.name());
    Ok(())
}

fn count(keep: &[bool]) -> usize {
    keep.iter().filter(|&&keep| keep).count()
}
