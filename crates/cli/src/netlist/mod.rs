//! Buda netlists on the command line.

pub mod args;
pub mod check;
pub mod run;
pub mod run_args;
pub mod run_check;
mod run_inputs;
mod run_report;
pub mod show;

use crate::failure::{Failure, Outcome};
use args::ArchName;
use run_args::NetlistRunArgs;
use std::path::Path;
use tilework_netlist::{Checked, Options};

/// Whether a file's name is that of a netlist.
pub fn is_netlist(path: &Path) -> bool {
    matches!(path.extension().and_then(|e| e.to_str()), Some("yaml" | "yml"))
}

/// Reads and checks a file.
fn checked(path: &Path, arch: Option<ArchName>) -> Outcome<Checked> {
    let text = std::fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let text = String::from_utf8(text).map_err(|error| {
        Failure::usage(format!("{}: not UTF-8 from byte {}", path.display(), error.utf8_error().valid_up_to()))
    })?;
    let options = Options { arch: arch.map(Into::into), ..Options::default() };
    Ok(tilework_netlist::check(&path.display().to_string(), &text, &options))
}

/// Refuses options of runs of netlists for a program of another kind.
pub fn refuse_options(args: &NetlistRunArgs) -> Outcome<()> {
    match args.given() {
        Some(option) => Err(Failure::usage(format!("{option} is for Buda netlists (.yaml)"))),
        None => Ok(()),
    }
}
