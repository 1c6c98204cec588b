//! The `tilework` command: arguments, progress, printing. What it runs is in the crates below.
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod answer;
mod args;
mod array;
mod board;
mod board_file;
mod board_option;
mod board_report;
mod chip;
mod comparison;
mod cq;
mod failure;
mod files;
mod inputs;
mod kinds;
mod model;
mod netlist;
mod output;
mod print;
mod program;
mod progress;
mod pto;
mod simdir;
mod trace;

use answer::Subject;
use args::{Cli, Command, CqCommand};
use clap::FromArgMatches;
use kinds::FileCommand;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (command, words) = Cli::reading(std::env::args_os().collect());
    match command.try_get_matches_from(&words) {
        Ok(matches) => match Cli::from_arg_matches(&matches) {
            Ok(cli) => run(cli.command, &matches),
            Err(error) => refused(&error),
        },
        Err(error) => refused(&error),
    }
}

/// Executes a command and prints its report.
fn run(command: Command, matches: &clap::ArgMatches) -> ExitCode {
    let of = |kind, command, form| Subject { kind, command, form };
    let file = |command: FileCommand| {
        // `run`, `check` and `show` are subcommands of the whole.
        let given = matches.subcommand().map_or(matches, |(_, given)| given);
        answer::finish(command.subject(), command.execute(given))
    };
    match command {
        Command::Run(args) => file(FileCommand::Run(args)),
        Command::Check(args) => file(FileCommand::Check(args)),
        Command::Show(args) => file(FileCommand::Show(args)),
        Command::Board(args) => answer::finish(of("board", "board", args.report.report), Ok(board::show(args.board))),
        Command::Simdir(args) => {
            let made = simdir::make(&args.dir, args.board, args.library.as_deref());
            answer::finish(of("simulator-folder", "simdir", args.report.report), made)
        }
        Command::Cq(CqCommand::Decode(args)) => {
            answer::finish(of("command-queue", "cq decode", args.report.report), cq::decode(&args.file))
        }
        Command::Pto(command) => pto::run(&command),
    }
}

/// Prints the error of a command line that cannot be read, or the help that was asked for.
fn refused(error: &clap::Error) -> ExitCode {
    // Standard output and standard error may be closed; the exit code says it all the same.
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
