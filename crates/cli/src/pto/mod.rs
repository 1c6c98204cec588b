//! `tilework pto`: the Ascend cluster.

pub mod args;
mod explore;
mod file;
mod ids;
mod run;

use crate::answer::{Subject, finish};
use args::PtoCommand;
use std::process::ExitCode;

/// The kind of all its reports.
const KIND: &str = "ring-program";

/// Executes a command and prints its report.
pub fn run(command: &PtoCommand) -> ExitCode {
    let of = |command, form| Subject { kind: KIND, command, form };
    match command {
        PtoCommand::Ids(args) => finish(of("pto ids", args.report.form()), ids::list(args)),
        PtoCommand::Run(args) => finish(of("pto run", args.report.report), run::run(args)),
        PtoCommand::Explore(args) => finish(of("pto explore", args.report.report), explore::explore(args)),
    }
}
