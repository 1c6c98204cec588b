//! Options of `tilework card` that look into the run, as the variables that the card's library
//! reads (docs/card.md). They are checked here, so that nothing starts with a wrong one.

use crate::failure::{Failure, Outcome};
use crate::kinds::INSPECT;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tilework_checks::Policy;
use tilework_timeline::Format;

/// What is looked for and shown.
#[derive(clap::Args, Debug, Default)]
#[command(next_help_heading = INSPECT)]
pub struct CardLookArgs {
    /// What is looked for while the program runs: off, warn (report what is certainly wrong),
    /// error (end the program at the first finding, with exit code 101), races, suspicious; a list
    /// with commas. off unless given. docs/card.md says what can be told of a driver's program.
    #[arg(long, value_name = "WORDS")]
    pub checks: Option<String>,
    /// A finding that is meant to be: its id, everywhere or at a place (ID@FILE, ID@FILE:LINE);
    /// once for each. Needs --checks.
    #[arg(long, value_name = "ID[@PLACE]")]
    pub allow: Vec<String>,
    /// Also write what was found, as JSON. Needs --checks. In the names of files here and below,
    /// %p is the number of the process, for programs that start others.
    #[arg(long, value_name = "FILE")]
    pub findings: Option<PathBuf>,
    /// Also write a timeline of requests, waits and busy units: .pftrace (Perfetto), .json or .txt.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write only these cycles of the timeline, counted from power-on.
    #[arg(long, value_name = "A..B")]
    pub trace_cycles: Option<String>,
    /// Write only these tiles of the timeline, as x-y with commas between them, and what their
    /// requests reach.
    #[arg(long, value_name = "TILES")]
    pub trace_tiles: Option<String>,
    /// Also write a page with the load of tiles, links and DRAM banks over time, and what the run
    /// failed with.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// What happens when the program polls a chip in which nothing can happen any more: certain
    /// (told, and ended with exit code 102 if work is stuck for good), end, warn, off.
    #[arg(long, value_name = "WORD", value_enum, default_value = "certain")]
    pub deadlock: OnDeadlock,
    /// Also write at the end what the host and the card have moved: cycles, accesses to BARs, bytes
    /// of host memory that the card has read and written; JSON.
    #[arg(long, value_name = "FILE")]
    pub counts: Option<PathBuf>,
    /// Wait for gdb on this port of the loopback address before the chip's first cycle; 0 takes a
    /// free one. gdb stops the chip, and with it the program, within an access; it cannot go back.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<u16>,
    /// Also keep what the program does to the card, and what the card reads of its memory, in a
    /// file: `tilework replay FILE` repeats the chip's run without the program, cycle by cycle,
    /// also under gdb. Not with --gdb.
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
}

/// What happens to a program that polls a chip in which nothing can happen any more.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnDeadlock {
    /// It is told; ended if work on the chip is stuck for good.
    #[default]
    Certain,
    /// It is told, and ended.
    End,
    /// It is told.
    Warn,
    /// Nothing.
    Off,
}

/// The path as the program must see it, which may go to another folder.
fn absolute(option: &str, path: &Path) -> Outcome<OsString> {
    let path = std::path::absolute(path).map_err(|error| Failure::option(option, format_args!(": {error}")))?;
    let folder = path.parent().filter(|folder| folder.is_dir());
    if folder.is_none() || path.is_dir() {
        return Err(Failure::option(option, format_args!(": {}: no file can be written there", path.display())));
    }
    Ok(path.into())
}

impl CardLookArgs {
    /// The variables of the program's environment.
    ///
    /// # Errors
    /// An option that is wrong, has no effect, or cannot work.
    pub fn variables(&self) -> Outcome<Vec<(&'static str, OsString)>> {
        self.refuse()?;
        let mut all = Vec::new();
        let deadlock = match self.deadlock {
            OnDeadlock::Certain => "certain",
            OnDeadlock::End => "end",
            OnDeadlock::Warn => "warn",
            OnDeadlock::Off => "off",
        };
        all.push(("TILEWORK_CARD_DEADLOCK", deadlock.into()));
        let mut word = |name, text: String| all.push((name, OsString::from(text)));
        if let Some(checks) = &self.checks {
            let allow = self.allow.join(",");
            Policy::parse(checks, &allow).map_err(|error| Failure::option("--checks", format_args!(": {error}")))?;
            word("TILEWORK_CHECKS", checks.clone());
            if !allow.is_empty() {
                word("TILEWORK_ALLOW", allow);
            }
        }
        if let Some(port) = self.gdb {
            word("TILEWORK_GDB", port.to_string());
        }
        if let Some(cycles) = &self.trace_cycles {
            tilework_profile::cycles(cycles).map_err(|what| Failure::option("--trace-cycles", format!(": {what}")))?;
            word("TILEWORK_TRACE_CYCLES", cycles.clone());
        }
        if let Some(tiles) = &self.trace_tiles {
            let read = tiles.split(',').try_for_each(|tile| tilework_profile::tile(tile).map(|_| ()));
            read.map_err(|what| Failure::option("--trace-tiles", format!(": {what}")))?;
            word("TILEWORK_TRACE_TILES", tiles.clone());
        }
        if let Some(trace) = &self.trace {
            Format::of(trace).map_err(|error| Failure::option("--trace", format_args!(": {error}")))?;
        }
        for (name, option, path) in [
            ("TILEWORK_TRACE", "--trace", &self.trace),
            ("TILEWORK_HTML", "--html", &self.html),
            ("TILEWORK_FINDINGS", "--findings", &self.findings),
            ("TILEWORK_CARD_COUNTS", "--counts", &self.counts),
        ] {
            if let Some(path) = path {
                all.push((name, absolute(option, path)?));
            }
        }
        Ok(all)
    }

    /// Refuses what cannot work or has no effect.
    fn refuse(&self) -> Outcome<()> {
        if self.bundle.is_some() && self.gdb.is_some() {
            let why = " does not work with --gdb, whose user may change the chip; a replay has its own --gdb";
            return Err(Failure::option("--bundle", why));
        }
        for (given, option, needs) in [
            (!self.allow.is_empty() && self.checks.is_none(), "--allow", "--checks WORDS"),
            (self.findings.is_some() && self.checks.is_none(), "--findings", "--checks WORDS"),
            (self.trace_cycles.is_some() && self.trace.is_none(), "--trace-cycles", "--trace FILE"),
            (self.trace_tiles.is_some() && self.trace.is_none(), "--trace-tiles", "--trace FILE"),
        ] {
            if given {
                return Err(Failure::option(option, format_args!(" needs {needs}")));
            }
        }
        Ok(())
    }
}
