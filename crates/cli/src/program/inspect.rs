//! Options that look into a run: what is looked for while it goes on, and what is kept of it when
//! it fails. Help lists them by themselves (`TOPICS` of `crate::kinds`).

use super::plan::Plan;
use crate::failure::{Failure, Outcome};
use crate::kinds::INSPECT;
use std::path::PathBuf;
use tilework_checks::{Allow, Level, Policy, Word};

/// What is looked for while a program runs.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = INSPECT)]
pub struct ChecksArgs {
    /// What is looked for while the program runs: off, warn (report what is certainly wrong),
    /// error (end at the first finding, with exit code 1), races (also accesses without order),
    /// suspicious (also what correct programs do now and then); a list with commas, or once for
    /// each. warn unless given. Needs the built-in chip.
    #[arg(long, value_name = "WORDS", value_delimiter = ',', value_parser = word)]
    pub checks: Vec<Word>,
    /// A finding that is meant to be: its id, everywhere or at a place (ID@KERNEL, ID@FILE,
    /// ID@FILE:LINE); once for each. `tilework explain` lists the ids.
    #[arg(long, value_name = "ID[@PLACE]", value_parser = allow)]
    pub allow: Vec<Allow>,
}

/// What is kept of a run that fails.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = INSPECT)]
pub struct BundleArgs {
    /// Keep everything that the run was made of in FILE (a zip archive) when it ends with a fault,
    /// a deadlock, a finding or an exhausted budget; `tilework replay FILE` repeats it. A deadlock
    /// or an exhausted budget has a bundle without this, too, beside the folder of --out:
    /// OUT-deadlock-HASH.zip. Needs the built-in chip.
    #[arg(id = "bundle", long = "bundle", value_name = "FILE", conflicts_with = "no_bundle")]
    pub file: Option<PathBuf>,
    /// Keep nothing of a run that hangs.
    #[arg(long)]
    pub no_bundle: bool,
}

/// Reads a word of `--checks`.
pub fn word(text: &str) -> Result<Word, String> {
    Word::parse(text).map_err(|error| error.to_string())
}

/// Reads an `--allow`.
pub fn allow(text: &str) -> Result<Allow, String> {
    Allow::parse(text).map_err(|error| error.to_string())
}

impl ChecksArgs {
    /// Refuses options that have no effect on a chip that cannot be looked into.
    ///
    /// # Errors
    /// The first of them.
    pub fn refuse(&self, is_built_in: bool) -> Outcome<()> {
        let given = [(!self.checks.is_empty(), "--checks"), (!self.allow.is_empty(), "--allow")];
        match given.into_iter().find(|(given, _)| *given && !is_built_in) {
            Some((_, option)) => Err(Failure::option(option, " needs the built-in chip: leave out --chip")),
            None => Ok(()),
        }
    }

    /// The policy of these options and of what the program file allows. On a chip that cannot be
    /// looked into nothing is checked.
    ///
    /// # Errors
    /// Words that exclude each other; an option that has no effect.
    pub fn policy(&self, plan: &Plan, is_built_in: bool) -> Outcome<Policy> {
        self.refuse(is_built_in)?;
        let allow = self.allow.iter().chain(&plan.allow).cloned().collect();
        let policy =
            Policy::new(&self.checks, allow).map_err(|e| Failure::option("--checks", format_args!(": {e}")))?;
        if policy.level() == Level::Off && !self.allow.is_empty() {
            return Err(Failure::option("--allow", " has no effect with --checks off"));
        }
        Ok(if is_built_in { policy } else { Policy::off() })
    }
}
