//! The `tilework` command: arguments, progress, printing. What it runs is in the crates below.

mod args;
mod array;
mod board;
mod board_file;
mod chip;
mod cq;
mod failure;
mod files;
mod firmware;
mod model;
mod netlist;
mod print;
mod program;
mod progress;
mod pto;
mod report;
mod run;
mod simdir;
mod trace;

use args::{Cli, Command, CqCommand};
use clap::Parser;
use failure::Outcome;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match command(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Standard error may be closed or full; the exit code says it all the same.
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn command(command: Command) -> Outcome<()> {
    match command {
        Command::Run(args) if netlist::is_netlist(&args.program) => netlist::run::run(&args),
        Command::Run(args) => {
            netlist::refuse_options(&args.netlist)?;
            if model::is_model(&args.program) { model::run(&args) } else { run::run(&args) }
        }
        Command::Check(args) if netlist::is_netlist(&args.program) => netlist::run_check::check(&args),
        Command::Check(args) => {
            netlist::refuse_options(&args.netlist_run)?;
            model::check(&args)
        }
        Command::Show(args) if netlist::is_netlist(&args.file) => netlist::show::show(&args),
        Command::Show(args) => model::show(&args),
        Command::Board { board } => board::show(board),
        Command::Simdir(args) => simdir::make(&args.dir, args.board, args.library.as_deref()),
        Command::Cq(CqCommand::Decode { file }) => cq::decode(&file),
        Command::Pto(command) => pto::command(command),
    }
}
