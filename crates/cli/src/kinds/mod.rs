//! The kinds of files that `run`, `check` and `show` understand.
//!
//! The ending of a file says of which kind it is. Each kind has options of its own for each of the
//! three commands and says what they do; what all kinds share is in [`crate::args`]. A new kind is
//! a folder with an implementation of [`Kind`], and a row in [`KINDS`]: help, the check of options
//! and reports follow from these.

mod help;
mod options;
mod topic;
mod unknown;

pub use help::{Focus, after as help_after, command_at, focus};
pub use options::{add_options, first_given};
pub use topic::{INSPECT, Topic};

use crate::answer::{Answer, ReportForm, Subject};
use crate::args::{CheckArgs, RunArgs, ShowArgs};
use crate::failure::{Failure, Outcome};
use clap::{ArgMatches, Args, Command};
use std::path::Path;

/// All kinds. Help shows the options of the first unless another is asked for.
pub static KINDS: [KindRow; 3] = [
    KindRow::of::<crate::program::KernelProgram>(),
    KindRow::of::<crate::model::CompiledModel>(),
    KindRow::of::<crate::netlist::BudaNetlist>(),
];

/// A command that takes a file of any kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Run it.
    Run,
    /// Check it, or what it gives.
    Check,
    /// Show what is in it.
    Show,
}

impl Verb {
    /// All.
    pub const ALL: [Self; 3] = [Self::Run, Self::Check, Self::Show];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Check => "check",
            Self::Show => "show",
        }
    }

    /// The command of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// A kind of file.
pub trait Kind {
    /// Names and texts.
    const ABOUT: About;
    /// Options of `run` for files of this kind.
    type Run: Args;
    /// Options of `check`.
    type Check: Args;
    /// Options of `show`.
    type Show: Args;

    /// Runs a file.
    fn run(request: &Request<'_, RunArgs, Self::Run>) -> Outcome<Answer>;
    /// Checks a file.
    fn check(request: &Request<'_, CheckArgs, Self::Check>) -> Outcome<Answer>;
    /// Shows what is in a file.
    fn show(request: &Request<'_, ShowArgs, Self::Show>) -> Outcome<Answer>;
}

/// Names and texts of a kind.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name in reports: `kernel-program`.
    pub name: &'static str,
    /// The word that asks for its help, `tilework run --help WORD`.
    pub word: &'static str,
    /// One file of it: `a kernel program`.
    pub one: &'static str,
    /// Files of it: `kernel programs`.
    pub many: &'static str,
    /// The endings of its files.
    pub endings: &'static [&'static str],
    /// Examples of a command, each a line, and notes.
    pub examples: fn(Verb) -> &'static str,
}

impl About {
    /// `kernel programs (.toml)`.
    pub fn many_with_endings(&self) -> String {
        format!("{} ({})", self.many, self.dotted_endings())
    }

    /// `.yaml, .yml`.
    pub fn dotted_endings(&self) -> String {
        self.endings.iter().map(|ending| format!(".{ending}")).collect::<Vec<_>>().join(", ")
    }
}

/// A command on a file: the options that all kinds have, and those of its kind.
pub struct Request<'a, Common, Own> {
    /// The options of all kinds.
    pub common: &'a Common,
    /// The options of this kind.
    pub own: Own,
    given: &'a ArgMatches,
}

impl<'a, Common, Own: Args> Request<'a, Common, Own> {
    fn new(common: &'a Common, given: &'a ArgMatches) -> Outcome<Self> {
        let own = Own::from_arg_matches(given).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Self { common, own, given })
    }

    /// The first option of a group that was given: `--program`.
    pub fn first_given<Group: Args>(&self) -> Option<String> {
        first_given::<Group>(self.given)
    }
}

/// A command with the options that all kinds have.
#[derive(Debug)]
pub enum FileCommand {
    /// `tilework run`.
    Run(RunArgs),
    /// `tilework check`.
    Check(CheckArgs),
    /// `tilework show`.
    Show(ShowArgs),
}

impl FileCommand {
    fn verb(&self) -> Verb {
        match self {
            Self::Run(_) => Verb::Run,
            Self::Check(_) => Verb::Check,
            Self::Show(_) => Verb::Show,
        }
    }

    fn file(&self) -> &Path {
        match self {
            Self::Run(args) => &args.program,
            Self::Check(args) => &args.file,
            Self::Show(args) => &args.file,
        }
    }

    fn form(&self) -> ReportForm {
        match self {
            Self::Run(args) => args.report.report,
            Self::Check(args) => args.report.form(),
            Self::Show(args) => args.report.form(),
        }
    }

    /// What its report is about.
    pub fn subject(&self) -> Subject {
        let kind = KindRow::with_ending(self.file()).map_or(unknown::KIND, |row| row.about.name);
        Subject { kind, command: self.verb().name(), form: self.form() }
    }

    /// Executes the command, unless an option was given that the file's kind does not have.
    pub fn execute(&self, given: &ArgMatches) -> Outcome<Answer> {
        let row = KindRow::with_ending(self.file()).ok_or_else(|| unknown::refuse(self.file()))?;
        options::refuse_others(self.verb(), row, self.file(), given)?;
        (row.execute)(self, given)
    }
}

/// A kind in the list of kinds.
pub struct KindRow {
    /// Names and texts.
    pub about: About,
    options: fn(Verb, Command) -> Command,
    execute: fn(&FileCommand, &ArgMatches) -> Outcome<Answer>,
}

impl KindRow {
    const fn of<K: Kind>() -> Self {
        Self { about: K::ABOUT, options: options_of::<K>, execute: execute::<K> }
    }

    /// The kind to which a file's ending belongs.
    fn with_ending(file: &Path) -> Option<&'static Self> {
        let ending = file.extension()?.to_str()?;
        KINDS.iter().find(|row| row.about.endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
    }

    /// The kind that a word names.
    fn named(word: &str) -> Option<&'static Self> {
        KINDS.iter().find(|row| row.about.word == word || row.about.name == word)
    }
}

fn options_of<K: Kind>(verb: Verb, command: Command) -> Command {
    match verb {
        Verb::Run => K::Run::augment_args(command),
        Verb::Check => K::Check::augment_args(command),
        Verb::Show => K::Show::augment_args(command),
    }
}

fn execute<K: Kind>(command: &FileCommand, given: &ArgMatches) -> Outcome<Answer> {
    match command {
        FileCommand::Run(common) => K::run(&Request::new(common, given)?),
        FileCommand::Check(common) => K::check(&Request::new(common, given)?),
        FileCommand::Show(common) => K::show(&Request::new(common, given)?),
    }
}
