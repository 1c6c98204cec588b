//! How much a command says: `--quiet` and `--verbose`, and colours.

use crate::failure::Failure;
use std::io::Write;
use std::sync::OnceLock;
use tilework_text::lines;

/// The options that every command has. The help of a command shows its own options; the end of
/// the help of all tells of these.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct LoudnessArgs {
    /// Say nothing but errors: no progress, and no report of what has been done.
    ///
    /// What a command is asked to print (show, board, disasm, check, JSON reports) it prints.
    #[arg(short, long, global = true, hide = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Tell each step on standard error, with the time since the start.
    #[arg(short, long, global = true, hide = true)]
    verbose: bool,
}

/// How much is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loudness {
    /// Errors only.
    Quiet,
    /// A progress bar for terminals, and a report.
    Usual,
    /// Each step as a line.
    Verbose,
}

static CHOSEN: OnceLock<(Loudness, std::time::Instant)> = OnceLock::new();

/// What was chosen.
pub fn chosen() -> Loudness {
    CHOSEN.get().map_or(Loudness::Usual, |(loudness, _)| *loudness)
}

impl LoudnessArgs {
    /// Makes this the choice for the rest of the process.
    pub fn choose(self) {
        let loudness = match (self.quiet, self.verbose) {
            (true, _) => Loudness::Quiet,
            (_, true) => Loudness::Verbose,
            _ => Loudness::Usual,
        };
        // The command line is read once.
        let _ = CHOSEN.set((loudness, std::time::Instant::now()));
    }
}

/// Tells a step of the work, if such lines are wanted.
pub fn step(what: &str) {
    if let Some((Loudness::Verbose, start)) = CHOSEN.get() {
        // Standard error may be closed; the work goes on.
        let _ = writeln!(std::io::stderr(), "[{:8.3} s] {what}", start.elapsed().as_secs_f64());
    }
}

/// Tells what the user should know of the state in which something is left.
pub fn note(what: &str) {
    if chosen() != Loudness::Quiet {
        // Standard error may be closed; it is so all the same.
        let _ = writeln!(std::io::stderr(), "{}", lines(what));
    }
}

/// Prints a failure on standard error. Its first word is red on terminals, unless `NO_COLOR` says
/// otherwise.
pub fn error(failure: &Failure) {
    let style = anstyle::AnsiColor::Red.on_default().bold();
    // Standard error may be closed or full; the exit code says it all the same.
    let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {}", lines(&failure.to_string()));
}
