//! `tilework explain`: what a finding, a fault, a deadlock or a code of netlists means, with an
//! example of wrong code and its repair. The texts are rows of tables: `tilework_checks::catalogue`
//! and the codes of netlists.

use crate::answer::{Answer, ReportArgs};
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::{Result, Write};
use tilework_checks::catalogue::{self, Kind, Row};
use tilework_netlist::{Code, code};

/// Arguments of `tilework explain`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tilework explain
  tilework explain cb-page-not-reserved
  tilework explain undefined_behaviour
  tilework explain N0013

docs/checks.md has the same texts.")]
pub struct ExplainArgs {
    /// What a report named: the id of a finding, the class of a fault, deadlock, budget, or a code
    /// of netlists (N0013). Without it all ids are listed.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Columns of a line of text.
const WIDTH: usize = 96;

/// What is known of one id. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct Topic {
    id: String,
    /// `memory`, `protocol`, `race`, `stop` or `netlist`.
    about: &'static str,
    /// Absent where nothing is looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    certainty: Option<&'static str>,
    /// Whether anything looks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    looked_for: Option<bool>,
    title: &'static str,
    text: &'static str,
    wrong: &'static str,
    right: &'static str,
    repair: &'static str,
}

impl Topic {
    fn of(row: &Row) -> Self {
        let is_finding = row.kind != Kind::Stop;
        let certainty = is_finding.then(|| row.certainty.name());
        Self {
            id: row.id.to_owned(),
            about: row.kind.name(),
            certainty,
            looked_for: is_finding.then_some(row.looked_for),
            title: row.title,
            text: row.about,
            wrong: row.wrong,
            right: row.right,
            repair: row.repair,
        }
    }

    fn of_code(code: &Code) -> Self {
        Self {
            id: code.to_string(),
            about: "netlist",
            certainty: None,
            looked_for: None,
            title: code.name,
            text: code.about,
            wrong: "",
            right: "",
            repair: "",
        }
    }

    fn write(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}: {}", self.id, self.title)?;
        match self.certainty {
            Some(certainty) if self.looked_for == Some(false) => {
                writeln!(out, "{}, {certainty}; nothing looks for it yet", self.about)?;
            }
            Some(certainty) => writeln!(out, "{}, {certainty}", self.about)?,
            None => writeln!(out, "{}", self.about)?,
        }
        writeln!(out, "\n{}", wrapped(self.text))?;
        for (head, lines) in [("Wrong", self.wrong), ("Right", self.right)] {
            if !lines.is_empty() {
                writeln!(out, "\n{head}:\n\n{}", indented(lines))?;
            }
        }
        if self.repair.is_empty() { Ok(()) } else { writeln!(out, "\n{}", wrapped(self.repair)) }
    }
}

/// All that can be explained but for the codes of netlists, which have a page of their own.
#[derive(Serialize)]
struct Topics {
    topics: Vec<Topic>,
}

/// Explains an id, or lists all.
pub fn explain(args: &ExplainArgs) -> Outcome<Answer> {
    let Some(id) = &args.id else {
        let topics = Topics { topics: catalogue::all().map(Topic::of).collect() };
        return Ok(Answer::new(topics, |topics, out| list(topics, out)));
    };
    let code = || code::ALL.iter().find(|code| code.to_string().eq_ignore_ascii_case(id) || code.name == id);
    let topic = catalogue::find(id).map(Topic::of).or_else(|| code().map(Topic::of_code));
    let topic = topic.ok_or_else(|| unknown(id))?;
    Ok(Answer::new(topic, |topic, out| topic.write(out)))
}

fn unknown(id: &str) -> Failure {
    let near = catalogue::near(id);
    let meant = match near.as_slice() {
        [] => "tilework explain lists all ids".to_owned(),
        near => format!("is it {}?", near.join(", ")),
    };
    Failure::usage(format!("nothing has the id {id:?}; {meant}")).with("near", near)
}

fn list(Topics { topics }: &Topics, out: &mut dyn Write) -> Result<()> {
    let width = topics.iter().map(|topic| topic.id.len()).max().unwrap_or(0);
    for kind in Kind::ALL {
        writeln!(out, "{}", kind.name())?;
        for Topic { id, title, .. } in topics.iter().filter(|topic| topic.about == kind.name()) {
            writeln!(out, "  {id:width$}  {title}")?;
        }
    }
    writeln!(out, "netlist\n  N0001 and others: docs/netlist-errors.md")
}

/// A text in lines of [`WIDTH`] columns.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += length;
    }
    out
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
