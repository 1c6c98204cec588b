//! A YAML file as a tree with positions: what the netlist reader walks.
//!
//! The tree is built from the parser's events, so that doubled keys are noticed and no alias is ever expanded; size, depth and
//! number of nodes are bounded before anything is made of them. Netlists use a plain part of YAML: maps with scalar keys, lists and
//! scalars. Tags are of no meaning here.

use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::{Lines, on_one_line};
use crate::types::Position;
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::collections::HashMap;

/// From a position up to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The first character.
    pub start: Position,
    /// The first character after it.
    pub end: Position,
}

/// Bounds of what is read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of a file.
    pub bytes: usize,
    /// Maps and lists inside one another.
    pub depth: usize,
    /// Scalars, lists and maps.
    pub nodes: usize,
}

impl Default for Budget {
    /// Real netlists are at most 1 MB large, ten deep and have 200,000 nodes.
    fn default() -> Self {
        Self { bytes: 32 << 20, depth: 64, nodes: 4 << 20 }
    }
}

/// A value of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands. Of a list or a map only the first line, when it has several.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// The three forms of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text, number, flag or nothing.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map, in the file's order; every key once.
    Map(Vec<Entry>),
}

/// A scalar as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// Its text, without quotes.
    pub text: String,
    /// Written in quotes or as a block.
    pub quoted: bool,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub at: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) => Some(&scalar.text),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a map.
    pub fn map(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a key of a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.map()?.iter().find(|entry| &*entry.key == key).map(|entry| &entry.value)
    }

    /// Whether it is written as nothing at all, or as `null` or `~`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(s) if !s.quoted && matches!(&*s.text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// Reads a file as one tree. `None`: it is empty, or so broken that there is no tree; what is wrong is in `sink`.
pub(crate) fn load(text: &str, budget: Budget, sink: &mut Diagnostics) -> Option<Node> {
    if text.len() > budget.bytes {
        let message = format!("the file has {} bytes, more than {}", text.len(), budget.bytes);
        sink.push(Diagnostic::new(code::YAML_BUDGET, Span::default(), message));
        return None;
    }
    let flat = on_one_line(text);
    let mut builder = Builder { lines: Lines::of(text), budget, nodes: 0, stack: Vec::new(), root: None };
    for event in Parser::new_from_str(&flat) {
        match event {
            Ok((event, span)) => builder.event(event, span, sink)?,
            Err(error) => {
                let at = builder.lines.position(error.marker().index());
                let end = Position { line: at.line, column: at.column + 1 };
                sink.push(
                    Diagnostic::new(code::YAML_SYNTAX, Span { start: at, end }, format!("not YAML: {}", error.info()))
                        .help("nothing after this place was read; an indentation, a bracket or a quote before it is the usual cause"),
                );
                return None;
            }
        }
    }
    builder.root
}

/// A list or map whose end has not come yet.
enum Open {
    List { start: Span, items: Vec<Node> },
    Map { start: Span, entries: Vec<Entry>, keys: HashMap<String, usize>, key: Option<(String, Span)> },
}

struct Builder {
    lines: Lines,
    budget: Budget,
    nodes: usize,
    stack: Vec<Open>,
    root: Option<Node>,
}

impl Builder {
    /// Takes one event; `None` when reading cannot go on.
    fn event(&mut self, event: Event<'_>, span: saphyr_parser::Span, sink: &mut Diagnostics) -> Option<()> {
        let at = Span { start: self.lines.position(span.start.index()), end: self.lines.position(span.end.index()) };
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                sink.push(
                    Diagnostic::new(code::YAML_DOCUMENTS, at, "a second document starts here")
                        .help("a netlist is one document; give the other one its own file"),
                );
                return None;
            }
            Event::Alias(_) => {
                sink.push(
                    Diagnostic::new(code::YAML_ALIAS, at, "aliases are not read")
                        .help("write the value out in this place"),
                );
                return None;
            }
            Event::Scalar(text, style, ..) => {
                let quoted = style != ScalarStyle::Plain;
                return self.value(scalar(text.into_owned(), quoted, at), sink);
            }
            Event::SequenceStart(..) => {
                self.room(at, sink)?;
                self.stack.push(Open::List { start: at, items: Vec::with_capacity(4) });
            }
            Event::MappingStart(..) => {
                self.room(at, sink)?;
                self.stack.push(Open::Map {
                    start: at,
                    entries: Vec::with_capacity(8),
                    keys: HashMap::new(),
                    key: None,
                });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let node = match self.stack.pop()? {
                    Open::List { start, items } => Node { span: cover(start, at), value: Value::List(items) },
                    Open::Map { start, entries, .. } => Node { span: cover(start, at), value: Value::Map(entries) },
                };
                return self.value(node, sink);
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {}
        }
        Some(())
    }

    fn room(&mut self, at: Span, sink: &mut Diagnostics) -> Option<()> {
        if self.stack.len() < self.budget.depth {
            return Some(());
        }
        let message = format!("more than {} lists and maps inside one another", self.budget.depth);
        sink.push(Diagnostic::new(code::YAML_BUDGET, at, message));
        None
    }

    fn value(&mut self, node: Node, sink: &mut Diagnostics) -> Option<()> {
        self.nodes += 1;
        if self.nodes > self.budget.nodes {
            let message = format!("more than {} values", self.budget.nodes);
            sink.push(Diagnostic::new(code::YAML_BUDGET, node.span, message));
            return None;
        }
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, keys, key, .. }) => match key.take() {
                None => *key = Some(self::key(node, sink)?),
                Some((key, at)) => match find(entries, keys, &key) {
                    None => entries.push(Entry { key, at, value: node }),
                    Some(index) => again(&mut entries[index], at, node, sink),
                },
            },
        }
        Some(())
    }
}

/// The text of a key.
fn key(node: Node, sink: &mut Diagnostics) -> Option<(String, Span)> {
    match node.value {
        Value::Scalar(scalar) if scalar.text == "<<" => {
            sink.push(
                Diagnostic::new(code::YAML_ALIAS, node.span, "merge keys are not read")
                    .help("write the fields out in this place"),
            );
            None
        }
        Value::Scalar(scalar) => Some((scalar.text, node.span)),
        Value::List(_) | Value::Map(_) => {
            let message = format!("{} as a key", node.kind());
            sink.push(Diagnostic::new(code::WRONG_KIND, node.span, message).help("keys are names or numbers"));
            None
        }
    }
}

/// Keys of a map from which on they are looked up in a table.
const MANY: usize = 16;

/// The place of a key among the entries; the table is made when there are many.
fn find(entries: &[Entry], keys: &mut HashMap<String, usize>, key: &str) -> Option<usize> {
    if entries.len() < MANY {
        return entries.iter().position(|entry| &*entry.key == key);
    }
    for (index, entry) in entries.iter().enumerate().skip(keys.len()) {
        keys.insert(entry.key.clone(), index);
    }
    keys.get(key).copied()
}

/// A key that is there already. The same value again and maps that do not contradict one another do no harm.
fn again(first: &mut Entry, at: Span, node: Node, sink: &mut Diagnostics) {
    let key = &first.key;
    let (message, before) = (format!("`{key}` is here a second time"), Some(first.at));
    let finding = Diagnostic::new(code::DUPLICATE_KEY, at, message).context(before, "first here");
    if first.value.is_null() {
        first.value = node;
        sink.push(finding.warning().help("remove the empty one"));
        return;
    }
    if node.is_null() || same(&first.value, &node) {
        sink.push(finding.warning().help("remove one of the two"));
        return;
    }
    match (&mut first.value.value, node.value) {
        (Value::Map(old), Value::Map(new)) if new.iter().all(|n| old.iter().all(|o| o.key != n.key)) => {
            old.extend(new);
            sink.push(finding.warning().help("both are read; put them into one"));
        }
        _ => sink.push(finding.help("remove one of the two, or give it another name")),
    }
}

/// Whether two values are the same, wherever they stand.
fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Scalar(a), Value::Scalar(b)) => a.text == b.text,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.key == b.key && same(&a.value, &b.value))
        }
        _ => false,
    }
}

fn scalar(text: String, quoted: bool, at: Span) -> Node {
    let mut span = at;
    if !quoted && span.start.line == span.end.line {
        // The parser's end of a plain scalar may stand behind blanks.
        let width = u32::try_from(text.chars().count()).unwrap_or(u32::MAX / 2);
        span.end.column = span.end.column.min(span.start.column.saturating_add(width));
    }
    Node { span, value: Value::Scalar(Scalar { text, quoted }) }
}

/// From the start of a list or map to its end when both are on one line.
fn cover(start: Span, end: Span) -> Span {
    if start.start.line == end.end.line { Span { start: start.start, end: end.end } } else { start }
}
