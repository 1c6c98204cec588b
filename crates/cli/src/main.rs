//! The `tilework` command: arguments, progress, printing. What it runs is in the crates below.
#![forbid(unsafe_code)]
// A command has no public face: `pub` says that other modules use an item.
#![allow(unreachable_pub)]
// The unit tests of this crate make their data by truncation.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod answer;
mod args;
mod array;
mod board;
mod board_file;
mod board_option;
mod board_report;
mod bundle;
mod card;
mod card_options;
mod chip;
mod comparison;
mod cq;
mod devices;
mod disasm;
mod exec_buffer;
mod explain;
mod failure;
mod files;
mod inputs;
mod interrupt;
mod kinds;
mod limits;
mod link_kernel;
mod log;
mod loudness;
mod manual;
mod model;
mod netlist;
mod output;
mod print;
mod program;
mod progress;
mod pto;
mod sdk;
mod simdir;
mod targets;
mod trace;

use crate::board_option::BoardLayout;
use answer::{ReportForm, Subject};
use args::{Cli, Command, CqCommand, ListCommand};
use clap::FromArgMatches;
use failure::Failure;
use kinds::{FileCommand, Verb};
use std::ffi::OsString;
use std::process::ExitCode;

/// Keeps the memory of freed tensors for the next ones. The C library's gives it back, and half of
/// the time of a convolution would go to the system for pages that are asked for again.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    limits::run_whole(command_line)
}

/// Reads the command line and does what it says.
fn command_line() -> ExitCode {
    let (command, words) = Cli::reading(std::env::args_os().collect());
    match command.try_get_matches_from(&words) {
        Ok(matches) => match Cli::from_arg_matches(&matches) {
            Ok(cli) => {
                cli.loudness.choose();
                match log::start() {
                    Ok(()) => run(cli.command, &matches),
                    Err(failure) => answer::finish(unreadable(&words), Err(failure)),
                }
            }
            Err(error) => refused(&error, &words),
        },
        Err(error) => refused(&error, &words),
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
        Command::Board(args) => {
            let board = BoardLayout::new(args.board, args.layout.layout());
            answer::finish(of("board", "board", args.report.report), Ok(board::show(board)))
        }
        Command::Profile(args) => {
            answer::finish(of("kernel-program", "profile", args.report.report), program::profile(&args))
        }
        Command::Simdir(args) => {
            let made = simdir::make(&args.dir, args.board, args.library.as_deref());
            answer::finish(of("simulator-folder", "simdir", args.report.report), made)
        }
        Command::Card(args) => card::run(&args),
        Command::Sdk(args) => answer::finish(of("sdk", "sdk", args.report.report), sdk::make(&args)),
        Command::Completions(args) => answer::end(manual::completions(&args)),
        Command::Man(args) => answer::end(manual::man(&args)),
        Command::List(ListCommand::Devices(args)) => {
            answer::finish(of("devices", "list devices", args.report.report), Ok(devices::list()))
        }
        Command::Cq(CqCommand::Decode(args)) => {
            answer::finish(of("command-queue", "cq decode", args.report.report), cq::decode(&args.file))
        }
        Command::Disasm(args) => answer::finish(of("elf", "disasm", args.report.report), disasm::list(&args)),
        Command::Explain(args) => {
            answer::finish(of("explanation", "explain", args.report.report), explain::explain(&args))
        }
        Command::Replay(args) => answer::finish(of("bundle", "replay", args.report.report), bundle::replay(&args)),
        Command::LinkKernel(args) => {
            answer::finish(of("elf", "link-kernel", args.report.report), link_kernel::link(&args))
        }
        Command::Pto(command) => pto::run(&command),
        Command::NativeCall => tilework_native::serve(),
    }
}

/// Prints the error of a command line that cannot be read, or the help that was asked for.
fn refused(error: &clap::Error, words: &[OsString]) -> ExitCode {
    if error.use_stderr() && asks_for_json(words) {
        let text = error.to_string();
        let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        return answer::finish(unreadable(words), Err(Failure::usage(message)));
    }
    // Standard output and standard error may be closed; the exit code says it all the same.
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// What the report of a command that cannot begin is about.
fn unreadable(words: &[OsString]) -> Subject {
    let command = words.get(kinds::command_at(words)).and_then(|word| word.to_str()).and_then(Verb::named);
    let form = if asks_for_json(words) { ReportForm::Json } else { ReportForm::Text };
    Subject { kind: "command-line", command: command.map_or("tilework", Verb::name), form }
}

/// Whether a command line, which need not be readable otherwise, asks for a JSON report.
fn asks_for_json(words: &[OsString]) -> bool {
    let two = |pair: &[OsString]| pair[0] == "--report" && pair[1] == "json";
    words.iter().any(|word| word == "--report=json" || word == "--json") || words.windows(2).any(two)
}
