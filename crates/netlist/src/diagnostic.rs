//! Diagnostics: findings about a netlist, rendered as text or as JSON records.

use crate::code::Code;
use crate::tree::Span;
use crate::types::Position;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use tilework_text::plain;

/// The most findings of one file that are kept; further ones are only counted.
const KEPT: usize = 500;

/// Bytes of the longest line that is shown. Nobody could read it, and the renderer looks through
/// all of it for each finding.
const LONG: usize = 10_000;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The netlist cannot be run.
    Error,
    /// The netlist can be run, but probably not as intended, or not on every architecture
    /// that it names.
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its class.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Related positions, each with a note.
    pub context: Vec<(Span, String)>,
    /// A suggested correction.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, message: message.into(), span, context: Vec::new(), help: None }
    }

    /// The same as a warning.
    pub(crate) fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// With another place.
    pub(crate) fn context(mut self, span: Option<Span>, what: impl Into<String>) -> Self {
        self.context.extend(span.map(|span| (span, what.into())));
        self
    }

    /// With what would be right.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The findings of a file, in its order, with its text to show them in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    file: String,
    text: String,
    list: Vec<Diagnostic>,
    /// How many of each kind are not in the list.
    left_out: BTreeMap<(Severity, Code), usize>,
    errors: usize,
}

/// A finding in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// `N` and four digits.
    pub code: String,
    /// Short name of the code.
    pub name: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Line and column behind the last character.
    pub end: (u32, u32),
    /// A suggested correction.
    pub help: Option<String>,
}

impl Diagnostics {
    /// None yet.
    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.into(), text: String::new(), list: Vec::new(), left_out: BTreeMap::new(), errors: 0 }
    }

    /// An empty list for the same file, to be put back by [`Self::append`].
    pub(crate) fn fork(&self) -> Self {
        Self { file: String::new(), text: String::new(), list: Vec::new(), left_out: BTreeMap::new(), errors: 0 }
    }

    /// Takes all findings of another list.
    pub(crate) fn append(&mut self, other: Self) {
        for (kind, count) in other.left_out {
            *self.left_out.entry(kind).or_default() += count;
            self.errors += if kind.0 == Severity::Error { count } else { 0 };
        }
        other.list.into_iter().for_each(|finding| self.push(finding));
    }

    /// One more. The same finding at the same place counts once.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        // Their places are compared first: of many findings few stand in the same one.
        if self.list.iter().any(|other| other.span == diagnostic.span && *other == diagnostic) {
            return;
        }
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if !self.is_full() {
            self.list.push(diagnostic);
        } else {
            *self.left_out.entry((diagnostic.severity, diagnostic.code)).or_default() += 1;
        }
    }

    /// Whether further findings are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= KEPT
    }

    /// Puts them in the file's order. Its text is kept when there is something to show in it.
    pub(crate) fn finish(&mut self, text: &str) {
        self.list.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.code));
        if !self.list.is_empty() {
            self.text = text.into();
        }
    }

    /// All of them.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// How many are not in the list because there are too many.
    pub fn left_out(&self) -> usize {
        self.left_out.values().sum()
    }

    /// As records for JSON.
    pub fn records(&self) -> Vec<Record> {
        let record = |d: &Diagnostic| Record {
            code: d.code.to_string(),
            name: d.code.name,
            severity: d.severity,
            message: d.message.clone(),
            file: self.file.clone(),
            line: d.span.start.line,
            column: d.span.start.column,
            end: (d.span.end.line, d.span.end.column),
            help: d.help.clone(),
        };
        self.list.iter().map(record).collect()
    }

    /// As text in the style of a compiler; `styled`: with colours for a terminal.
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        let lines = Lines::of(&self.text);
        let mut text = String::new();
        for diagnostic in &self.list {
            text.push_str(&renderer.render(&[self.group(diagnostic, &lines)]));
            text.push_str("\n\n");
        }
        if !self.left_out.is_empty() {
            text.push_str(&format!("and {} more:\n", self.left_out()));
        }
        for ((_, code), count) in &self.left_out {
            text.push_str(&format!("  {count} x {code} {}\n", code.name));
        }
        text
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic, lines: &Lines<'a>) -> Group<'a> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(plain(&diagnostic.message)).id(diagnostic.code.to_string());
        let mut spans = vec![diagnostic.span];
        spans.extend(diagnostic.context.iter().map(|(span, _)| *span));
        let (first, last) = (spans.iter().map(|s| s.start.line).min(), spans.iter().map(|s| s.end.line).max());
        let (first, last) = (first.unwrap_or(1), last.unwrap_or(1));
        if spans.iter().any(|span| lines.end(span.start.line) - lines.start(span.start.line) > LONG) {
            let Position { line, column } = diagnostic.span.start;
            let place = Origin::path(plain(&self.file)).line(line as usize).char_column(column as usize);
            return with_help(title.element(place), diagnostic);
        }
        let base = lines.start(first);
        let mut snippet: Snippet<'a, Annotation<'a>> = Snippet::source(&self.text[base..lines.end(last)])
            .line_start(first.max(1) as usize)
            .path(plain(&self.file))
            .annotation(AnnotationKind::Primary.span(lines.range(diagnostic.span, base)).label(diagnostic.code.name));
        for (span, what) in &diagnostic.context {
            snippet = snippet.annotation(AnnotationKind::Context.span(lines.range(*span, base)).label(plain(what)));
        }
        with_help(title.element(snippet), diagnostic)
    }
}

fn with_help<'a>(group: Group<'a>, diagnostic: &'a Diagnostic) -> Group<'a> {
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(plain(help))),
        None => group,
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// Where the lines of a text start.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { text, starts }
    }

    fn start(&self, line: u32) -> usize {
        let index = (line.max(1) as usize - 1).min(self.starts.len() - 1);
        self.starts[index]
    }

    /// Behind the last character of a line that is not its end.
    fn end(&self, line: u32) -> usize {
        let start = self.start(line);
        let rest = &self.text[start..];
        start + rest.find('\n').unwrap_or(rest.len())
    }

    fn offset(&self, line: u32, column: u32) -> usize {
        let (start, end) = (self.start(line), self.end(line));
        let line = &self.text[start..end];
        start + line.char_indices().nth(column.max(1) as usize - 1).map_or(line.len(), |(at, _)| at)
    }

    /// A span as bytes from `base` on; at least one character wide where there is one.
    fn range(&self, span: Span, base: usize) -> std::ops::Range<usize> {
        let start = self.offset(span.start.line, span.start.column);
        let end = self.offset(span.end.line, span.end.column).max(start);
        let width = self.text[start..].chars().next().filter(|c| *c != '\n').map_or(0, char::len_utf8);
        start - base..end.max((start + width).min(self.text.len())) - base
    }
}
