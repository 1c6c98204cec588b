//! A YAML file as a tree with positions, the input of the netlist reader.
//!
//! Netlists use a simple subset of YAML: maps with scalar keys, lists and scalars. Tags are
//! ignored. A text borrows from the file where the file has it verbatim.

use crate::types::Position;
use std::borrow::Cow;

/// A range of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The first character.
    pub start: Position,
    /// The first character after it.
    pub end: Position,
}

/// Bounds on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of a file.
    pub bytes: usize,
    /// Nesting of maps and lists.
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
pub struct Node<'t> {
    /// Its position. For a list or map of several lines, the first line only.
    pub span: Span,
    /// What it is.
    pub value: Value<'t>,
}

/// The three forms of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'t> {
    /// Text, number, flag or nothing.
    Scalar(Scalar<'t>),
    /// A list.
    List(Vec<Node<'t>>),
    /// A map, in the file's order; every key once.
    Map(Vec<Entry<'t>>),
}

/// A scalar as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar<'t> {
    /// Its text, without quotes.
    pub text: Cow<'t, str>,
    /// Written in quotes or as a block.
    pub quoted: bool,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'t> {
    /// The key.
    pub key: Cow<'t, str>,
    /// Where the key stands.
    pub at: Span,
    /// The value.
    pub value: Node<'t>,
}

impl<'t> Node<'t> {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) => Some(&scalar.text),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn list(&self) -> Option<&[Node<'t>]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a map.
    pub fn map(&self) -> Option<&[Entry<'t>]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a key of a map.
    pub fn get(&self, key: &str) -> Option<&Node<'t>> {
        self.map()?.iter().find(|entry| &*entry.key == key).map(|entry| &entry.value)
    }

    /// Whether it is written as nothing at all, or as `null` or `~`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(s) if !s.quoted && matches!(&*s.text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The same with texts of its own.
    pub(crate) fn into_owned(self) -> Node<'static> {
        let own = |text: Cow<'t, str>| Cow::Owned(text.into_owned());
        let value = match self.value {
            Value::Scalar(Scalar { text, quoted }) => Value::Scalar(Scalar { text: own(text), quoted }),
            Value::List(items) => Value::List(items.into_iter().map(Node::into_owned).collect()),
            Value::Map(entries) => {
                let entry = |e: Entry<'t>| Entry { key: own(e.key), at: e.at, value: e.value.into_owned() };
                Value::Map(entries.into_iter().map(entry).collect())
            }
        };
        Node { span: self.span, value }
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
