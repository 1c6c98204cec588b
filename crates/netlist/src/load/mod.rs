//! Parses the text of a file into a tree.
//!
//! The tree is built from the parser's events, so that duplicate keys are noticed and no alias is
//! ever expanded; size, depth and number of nodes are bounded before anything is built.
//!
//! Most of what is in brackets is read by [`brackets`], the rest by the parser. If that does not
//! result in a tree, the parser reads the whole text, so that findings about YAML have one source.

mod brackets;
mod flow;
#[cfg(test)]
mod tests;

use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Budget, Entry, Node, Scalar, Span, Value};
use crate::types::Position;
use brackets::{Kind, Short, Token};
use flow::{Lines, closed, on_one_line};
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::borrow::Cow;
use std::collections::HashMap;
use tilework_text::{is_hidden, plain};

/// Reads a file as one tree. `None` if it is empty or too broken for a tree; errors are in `sink`.
pub(crate) fn load<'t>(text: &'t str, budget: Budget, sink: &mut Diagnostics) -> Option<Node<'t>> {
    if text.len() > budget.bytes {
        let message = format!("the file has {} bytes, more than {}", text.len(), budget.bytes);
        sink.push(Diagnostic::new(code::YAML_BUDGET, Span::default(), message));
        return None;
    }
    let mut found = sink.fork();
    if let Some(root) = with_brackets(text, budget, &mut found) {
        sink.append(found);
        return Some(root);
    }
    by_parser(text, budget, sink)
}

/// Reads what is in brackets apart from the rest. `None` if the parser has to read everything.
fn with_brackets<'t>(text: &'t str, budget: Budget, sink: &mut Diagnostics) -> Option<Node<'t>> {
    let short = Short::of(text)?;
    let flat = closed(&short.text)?;
    let mut builder = Builder::new(text, budget);
    let mut part = 0;
    for event in Parser::new_from_str(&flat) {
        let (event, span) = event.ok()?;
        // A block list or map has no width.
        let begins = matches!(event, Event::SequenceStart(..) | Event::MappingStart(..)) && !span.is_empty();
        if begins && short.parts.get(part).is_some_and(|part| part.at == span.start.index()) {
            short.tokens(part).iter().try_for_each(|token| builder.token(text, token, sink))?;
            part += 1;
        } else {
            let index = |marker: saphyr_parser::Marker| short.index(marker.index(), part);
            builder.event(event, index(span.start), index(span.end), sink)?;
        }
    }
    // Brackets that the parser does not report as a list or map are inside a multi-line string.
    builder.root.filter(|_| part == short.parts.len())
}

/// Reads the whole text with the parser.
fn by_parser<'t>(text: &'t str, budget: Budget, sink: &mut Diagnostics) -> Option<Node<'t>> {
    let flat = on_one_line(text);
    let mut builder = Builder::new(text, budget);
    for event in Parser::new_from_str(&flat) {
        match event {
            Ok((event, span)) => builder.event(event, span.start.index(), span.end.index(), sink)?,
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

/// A list or map that is not closed yet.
enum Open<'t> {
    /// Its items start at index `first`.
    List { start: Span, first: usize },
    /// Its entries start at index `first`.
    Map { start: Span, first: usize, keys: Keys<'t>, key: Option<(Cow<'t, str>, Span)> },
}

struct Builder<'t> {
    lines: Lines,
    budget: Budget,
    nodes: usize,
    stack: Vec<Open<'t>>,
    /// Items of all open lists.
    items: Vec<Node<'t>>,
    /// Entries of all open maps.
    entries: Vec<Entry<'t>>,
    root: Option<Node<'t>>,
}

/// Each method takes one element; `None` if reading cannot continue.
impl<'t> Builder<'t> {
    fn new(text: &str, budget: Budget) -> Self {
        let (stack, items, entries) = (Vec::new(), Vec::new(), Vec::new());
        Self { lines: Lines::of(text), budget, nodes: 0, stack, items, entries, root: None }
    }

    fn span(&mut self, start: usize, end: usize) -> Span {
        Span { start: self.lines.position(start), end: self.lines.position(end) }
    }

    /// An event of the parser; indices are those of characters of the text.
    fn event(&mut self, event: Event<'_>, start: usize, end: usize, sink: &mut Diagnostics) -> Option<()> {
        let at = self.span(start, end);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                sink.push(
                    Diagnostic::new(code::YAML_DOCUMENTS, at, "a second document starts here")
                        .help("a netlist is one document; give the other one its own file"),
                );
                None
            }
            Event::Alias(_) => {
                sink.push(
                    Diagnostic::new(code::YAML_ALIAS, at, "aliases are not read")
                        .help("write the value out in this place"),
                );
                None
            }
            Event::Scalar(text, style, ..) => {
                let quoted = style != ScalarStyle::Plain;
                self.value(scalar(Cow::Owned(text.into_owned()), quoted, at), sink)
            }
            Event::SequenceStart(..) => self.open(true, at, sink),
            Event::MappingStart(..) => self.open(false, at, sink),
            Event::SequenceEnd | Event::MappingEnd => self.close(at, sink),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Some(())
            }
        }
    }

    /// A token of [`brackets`].
    fn token(&mut self, text: &'t str, token: &Token, sink: &mut Diagnostics) -> Option<()> {
        let (start, end) = (token.start as usize, token.end as usize);
        let at = match token.kind {
            // A word is on one line.
            Kind::Word => {
                let start = self.lines.position(start);
                Span { start, end: Position { column: start.column + (token.end - token.start), ..start } }
            }
            _ => self.span(start, end),
        };
        match token.kind {
            Kind::List => self.open(true, at, sink),
            Kind::Map => self.open(false, at, sink),
            Kind::End => self.close(at, sink),
            Kind::Word => {
                let scalar = Scalar { text: Cow::Borrowed(text.get(start..end)?), quoted: false };
                self.value(Node { span: at, value: Value::Scalar(scalar) }, sink)
            }
        }
    }

    fn open(&mut self, list: bool, start: Span, sink: &mut Diagnostics) -> Option<()> {
        if self.stack.len() >= self.budget.depth {
            let message = format!("more than {} lists and maps inside one another", self.budget.depth);
            sink.push(Diagnostic::new(code::YAML_BUDGET, start, message));
            return None;
        }
        self.stack.push(match list {
            true => Open::List { start, first: self.items.len() },
            false => Open::Map { start, first: self.entries.len(), keys: Keys::default(), key: None },
        });
        Some(())
    }

    fn close(&mut self, end: Span, sink: &mut Diagnostics) -> Option<()> {
        let (start, value) = match self.stack.pop()? {
            Open::List { start, first } => (start, Value::List(self.items.drain(first..).collect())),
            Open::Map { start, first, .. } => (start, Value::Map(self.entries.drain(first..).collect())),
        };
        self.value(Node { span: cover(start, end), value }, sink)
    }

    fn value(&mut self, node: Node<'t>, sink: &mut Diagnostics) -> Option<()> {
        self.nodes += 1;
        if self.nodes > self.budget.nodes {
            let message = format!("more than {} values", self.budget.nodes);
            sink.push(Diagnostic::new(code::YAML_BUDGET, node.span, message));
            return None;
        }
        if let Value::Scalar(scalar) = &node.value
            && scalar.text.contains(is_hidden)
        {
            let message = format!("`{}` has a control character", plain(&scalar.text));
            sink.push(Diagnostic::new(code::CONTROL_CHARACTER, node.span, message));
        }
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { .. }) => self.items.push(node),
            Some(Open::Map { first, keys, key, .. }) => match key.take() {
                None => *key = Some(self::key(node, sink)?),
                Some((key, at)) => match keys.find(&self.entries[*first..], &key) {
                    None => self.entries.push(Entry { key, at, value: node }),
                    Some(index) => again(&mut self.entries[*first + index], at, node, sink),
                },
            },
        }
        Some(())
    }
}

/// The text of a key.
fn key<'t>(node: Node<'t>, sink: &mut Diagnostics) -> Option<(Cow<'t, str>, Span)> {
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

/// Number of keys from which on a map uses a hash table.
const MANY: usize = 16;

/// Index of the keys of a map.
#[derive(Default)]
struct Keys<'t> {
    /// A bit for each key, by its length and last letter. Most keys are new, and a clear bit shows
    /// that without a comparison.
    seen: u64,
    /// Positions of the keys, for large maps.
    table: HashMap<Cow<'t, str>, usize>,
}

impl<'t> Keys<'t> {
    /// Returns the position of a key among the entries; a new key is added to the index.
    fn find(&mut self, entries: &[Entry<'t>], key: &str) -> Option<usize> {
        let bit = 1 << ((key.len() * 7 + key.bytes().last().map_or(0, usize::from)) % 64);
        let new = self.seen & bit == 0;
        self.seen |= bit;
        if new {
            return None;
        }
        if entries.len() < MANY {
            return entries.iter().position(|entry| &*entry.key == key);
        }
        for (index, entry) in entries.iter().enumerate().skip(self.table.len()) {
            self.table.insert(entry.key.clone(), index);
        }
        self.table.get(key).copied()
    }
}

/// Handles a duplicate key. An equal value and maps that do not contradict one another
/// are accepted.
fn again<'t>(first: &mut Entry<'t>, at: Span, node: Node<'t>, sink: &mut Diagnostics) {
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

/// Whether two values are equal, regardless of their positions.
fn same(a: &Node<'_>, b: &Node<'_>) -> bool {
    match (&a.value, &b.value) {
        (Value::Scalar(a), Value::Scalar(b)) => a.text == b.text,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.key == b.key && same(&a.value, &b.value))
        }
        _ => false,
    }
}

fn scalar(text: Cow<'_, str>, quoted: bool, at: Span) -> Node<'_> {
    let mut span = at;
    if !quoted && span.start.line == span.end.line {
        // The parser's end of a plain scalar may include trailing blanks.
        let width = u32::try_from(text.chars().count()).unwrap_or(u32::MAX / 2);
        span.end.column = span.end.column.min(span.start.column.saturating_add(width));
    }
    Node { span, value: Value::Scalar(Scalar { text, quoted }) }
}

/// From the start of a list or map to its end when both are on one line.
fn cover(start: Span, end: Span) -> Span {
    if start.start.line == end.end.line { Span { start: start.start, end: end.end } } else { start }
}
