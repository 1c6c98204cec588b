//! Buda netlists: `.yaml` files.

mod args;
mod check;
mod compare;
mod failure;
mod run;
mod run_inputs;
mod run_report;
mod show;

use crate::answer::Answer;
use crate::args::{CheckArgs, RunArgs, ShowArgs};
use crate::comparison::ToleranceArgs;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::kinds::{About, Kind, Request};
use args::{ArchName, DriveArgs, NetlistCheckArgs, NetlistRunArgs, NetlistShowArgs, RoundingArgs};
use std::path::Path;
use tilework_netlist::{Checked, Diagnostics, Options};

/// The kind of Buda netlists.
pub struct BudaNetlist;

impl Kind for BudaNetlist {
    const ABOUT: About = About {
        name: "netlist",
        word: "netlist",
        one: "a Buda netlist",
        many: "Buda netlists",
        endings: &["yaml", "yml"],
        examples: args::examples,
    };
    type Run = NetlistRunArgs;
    type Check = NetlistCheckArgs;
    type Show = NetlistShowArgs;

    fn run(request: &Request<'_, RunArgs, NetlistRunArgs>) -> Outcome<Answer> {
        run::run(request.common, &request.own)
    }

    /// Without expected arrays nothing runs.
    fn check(request: &Request<'_, CheckArgs, NetlistCheckArgs>) -> Outcome<Answer> {
        let (file, own) = (&request.common.file, &request.own);
        let given = request.first_given::<DriveArgs>().or_else(|| request.first_given::<RoundingArgs>());
        let given = given.or_else(|| request.first_given::<ToleranceArgs>());
        match (&own.expect, given) {
            (Some(expect), _) => compare::check(file, own, expect),
            (None, None) => check::check(file, own),
            (None, Some(option)) => {
                let why = " needs --expect DIR: without it a netlist is not run";
                Err(Failure::option(&option, why))
            }
        }
    }

    fn show(request: &Request<'_, ShowArgs, NetlistShowArgs>) -> Outcome<Answer> {
        show::show(request.common, &request.own)
    }
}

/// Budget of a netlist's file; the largest of the public repository has under 10 MiB.
const MAX_NETLIST_BYTES: u64 = 64 << 20;

/// The text of a netlist.
fn read_text(path: &Path) -> Outcome<String> {
    let bytes = files::read_within(path, MAX_NETLIST_BYTES, "a netlist")?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::file(path, format_args!("not UTF-8 from byte {at}"))
    })
}

/// Reads and checks a file.
fn checked(path: &Path, arch: Option<ArchName>) -> Outcome<Checked> {
    let text = read_text(path)?;
    let options = Options { arch: arch.map(Into::into), ..Options::default() };
    Ok(tilework_netlist::check(&path.display().to_string(), &text, &options))
}

/// A netlist with mistakes, where one without is needed.
fn refused(path: &Path, message: String, found: &Diagnostics) -> Failure {
    Failure::usage(message).of_file(path).with("findings", found.records())
}
