//! `tilework completions` and `tilework man`: what a shell and `man` know about the command.
//!
//! Both are made from the command line as clap has it, with the options of all kinds of files.

use crate::args::Cli;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::kinds::KINDS;
use crate::print;
use clap::Command;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// The name that shells and `man` know.
const NAME: &str = "tilework";

/// Arguments of `tilework completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  tilework completions bash > ~/.local/share/bash-completion/completions/tilework")]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `tilework man`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  tilework man | man -l -
  tilework man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder for the pages of the command and its subcommands; made when it does not exist.
    /// Without it the page of the command goes to standard output.
    pub dir: Option<PathBuf>,
}

/// The whole command line. Options that help leaves out, because only some kinds of files have them
/// or because every command has, are shown.
fn command() -> Command {
    let shown = |command: Command| command.mut_args(|arg| arg.hide(false));
    shown(Cli::whole(&KINDS[0], None).mut_subcommands(shown))
}

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs) -> Outcome<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), NAME, &mut script);
    print::to_stdout(|out| out.write_all(&script))
}

/// Writes the pages to a folder, or prints the first.
pub fn man(args: &ManArgs) -> Outcome<()> {
    let mut whole = command();
    whole.build();
    match &args.dir {
        None => {
            let page = page(whole)?;
            print::to_stdout(|out| out.write_all(&page))
        }
        Some(dir) => {
            files::make_folder(dir)?;
            write_pages(&whole, dir)
        }
    }
}

/// Writes the page of a command and those of its subcommands, by clap's names for them
/// (`tilework-cq-decode`).
fn write_pages(command: &Command, dir: &Path) -> Outcome<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    files::write_whole(&dir.join(format!("{name}.1")), &[&page(command.clone())?])?;
    // `help` explains the others and has no page of its own.
    for subcommand in command.get_subcommands().filter(|c| c.get_name() != "help") {
        write_pages(subcommand, dir)?;
    }
    Ok(())
}

fn page(command: Command) -> Outcome<Vec<u8>> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Failure::failed("output", format!("cannot write the page: {error}")))?;
    Ok(page)
}
