//! What a command says at its end: text for people, or one JSON object of the same form for all.
//!
//! `docs/report.md` describes the object. Its first keys say what it is about, then come the keys
//! of the command and kind, last what went wrong.

use crate::failure::{Failure, Outcome};
use crate::loudness::{self, Loudness};
use crate::print::{self, Escaped};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use std::io::{Result, Write};
use std::process::ExitCode;

/// Version of the reports' form. It changes when a key changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// The form of a report.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReportForm {
    /// A few lines for people
    #[default]
    Text,
    /// One JSON object
    Json,
}

/// The option `--report`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct ReportArgs {
    /// Form of the report. json: one object on standard output, also when the command fails.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = ReportForm::Text)]
    pub report: ReportForm,
}

/// The option `--report` with its older spelling, `--json`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct ReportOrJsonArgs {
    #[command(flatten)]
    report: ReportArgs,
    /// Same as --report json.
    #[arg(long)]
    json: bool,
}

impl ReportOrJsonArgs {
    /// The form that was asked for.
    pub fn form(self) -> ReportForm {
        if self.json { ReportForm::Json } else { self.report.report }
    }
}

/// What a report is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subject {
    /// The kind of file or thing: `kernel-program`, `board`.
    pub kind: &'static str,
    /// The command: `run`, `cq decode`.
    pub command: &'static str,
    /// Text or JSON.
    pub form: ReportForm,
}

/// The form of all JSON reports.
#[derive(Serialize)]
struct Envelope<'a, T: Serialize> {
    schema: u32,
    kind: &'static str,
    command: &'static str,
    status: &'static str,
    #[serde(flatten)]
    own: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl<'a, T: Serialize> Envelope<'a, T> {
    fn of(Subject { kind, command, .. }: Subject, own: &'a T, error: Option<&'a Failure>) -> Self {
        let status = error.map_or("ok", |failure| failure.status().name());
        Self { schema: SCHEMA, kind, command, status, own, error }
    }
}

/// The own part of a report about a failure and nothing else.
#[derive(Serialize)]
pub struct Nothing {}

/// The JSON form of a report.
pub fn document<T: Serialize>(subject: Subject, own: &T, error: Option<&Failure>) -> Value {
    // What cannot be written as JSON is told as null.
    serde_json::to_value(Envelope::of(subject, own, error)).unwrap_or_default()
}

/// What a command has found out, in both forms.
trait Body {
    fn text(&self, out: &mut dyn Write) -> Result<()>;
    fn json(&self, subject: Subject, error: Option<&Failure>, out: &mut dyn Write) -> Result<()>;
}

struct Pair<T, F> {
    own: T,
    text: F,
}

impl<T: Serialize, F: Fn(&T, &mut dyn Write) -> Result<()>> Body for Pair<T, F> {
    fn text(&self, out: &mut dyn Write) -> Result<()> {
        (self.text)(&self.own, out)
    }

    fn json(&self, subject: Subject, error: Option<&Failure>, out: &mut dyn Write) -> Result<()> {
        serde_json::to_writer_pretty(&mut *out, &Envelope::of(subject, &self.own, error))?;
        writeln!(out)
    }
}

/// The end of a command that has something to say: its report, and a failure that it shows.
pub struct Answer {
    body: Box<dyn Body>,
    failure: Option<Failure>,
    styled: bool,
}

impl Answer {
    /// A report: `own` are the keys of its JSON form, in their order; `text` is the form for
    /// people.
    pub fn new<T, F>(own: T, text: F) -> Self
    where
        T: Serialize + 'static,
        F: Fn(&T, &mut dyn Write) -> Result<()> + 'static,
    {
        Self { body: Box::new(Pair { own, text }), failure: None, styled: false }
    }

    /// The same when the form for people has colours of its own.
    #[must_use]
    pub fn styled(self, styled: bool) -> Self {
        Self { styled, ..self }
    }

    /// The same when the report shows that something has failed.
    #[must_use]
    pub fn failing(self, failure: Option<Failure>) -> Self {
        Self { failure, ..self }
    }
}

/// The commands whose work is files and not what they print: `--quiet` keeps their reports back.
const MAKERS: [&str; 3] = ["run", "simdir", "sdk"];

/// Prints the end of a command: its report on standard output, a failure on standard error. In
/// JSON form there is a report of every failure.
pub fn finish(subject: Subject, outcome: Outcome<Answer>) -> ExitCode {
    let (body, failure, styled) = match outcome {
        Ok(Answer { body, failure, styled }) => (Some(body), failure, styled),
        Err(failure) => (None, Some(failure), false),
    };
    let kept = loudness::chosen() == Loudness::Quiet && failure.is_none() && MAKERS.contains(&subject.command);
    let printed = match (subject.form, body) {
        (ReportForm::Text, None) => Ok(()),
        (ReportForm::Text, Some(_)) if kept => Ok(()),
        (ReportForm::Text, Some(body)) => print::to_stdout(|out| body.text(&mut Escaped::new(out, styled))),
        (ReportForm::Json, body) => {
            let nothing = || Answer::new(Nothing {}, |_, _| Ok(())).body;
            let body = body.unwrap_or_else(nothing);
            print::to_stdout(|out| body.json(subject, failure.as_ref(), out))
        }
    };
    end(failure.or(printed.err()).map_or(Ok(()), Err))
}

/// Ends a command that has printed what it was asked for.
pub fn end(outcome: Outcome<()>) -> ExitCode {
    loudness::step(if outcome.is_ok() { "done" } else { "failed" });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            loudness::error(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}
