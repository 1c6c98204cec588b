//! Fields of a map and their values, with the errors in them.
//!
//! Every function reports errors and returns what can be used; from the number of errors a caller
//! sees whether an object is complete.

use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Node, Span, Value};
use crate::types::Size;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;

/// The largest count of tiles, blocks, cores or entries. Products of six of them fit 128 bits.
pub(crate) const MOST: i64 = 1 << 20;

/// The fields of one object.
pub(crate) struct Fields<'t> {
    /// What it is, for messages: `queue q0`.
    pub what: String,
    /// Where its name stands.
    pub at: Span,
    node: &'t Node<'t>,
    /// Fields that a misspelt one probably means; they are not also reported as missing.
    meant: Vec<String>,
}

impl<'t> Fields<'t> {
    /// The fields of a map. Unknown ones are reported, with the nearest name of `known`; `also`
    /// accepts further ones.
    pub(crate) fn of(
        what: String,
        at: Span,
        node: &'t Node<'t>,
        known: &[&str],
        also: impl Fn(&str) -> bool,
        sink: &mut Diagnostics,
    ) -> Option<Self> {
        let Some(entries) = node.map() else {
            sink.push(
                Diagnostic::new(code::WRONG_KIND, node.span, format!("{what} is {}, not a map of fields", node.kind()))
                    .context((node.span != at).then_some(at), "this one"),
            );
            return None;
        };
        let mut meant = Vec::new();
        for entry in entries {
            if !known.contains(&&*entry.key) && !also(&entry.key) {
                let finding =
                    Diagnostic::new(code::UNKNOWN_FIELD, entry.at, format!("{what} has no field `{}`", entry.key));
                if sink.is_full() {
                    // It is counted only, and a correction would cost more than all else.
                    sink.push(finding);
                    continue;
                }
                meant.extend(nearest(&entry.key, known).map(str::to_owned));
                sink.push(suggest(finding, &entry.key, known));
            }
        }
        Some(Self { what, at, node, meant })
    }

    /// Takes a misspelt field for the one of `known` that it probably means.
    pub(crate) fn means(&mut self, wrong: &str, known: &[&str]) {
        self.meant.extend(nearest(wrong, known).map(str::to_owned));
    }

    /// All keys and values.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'t str, Span, &'t Node<'t>)> + use<'t> {
        self.node.map().unwrap_or_default().iter().map(|entry| (&*entry.key, entry.at, &entry.value))
    }

    /// A field that may be missing.
    pub(crate) fn get(&self, name: &str) -> Option<&'t Node<'t>> {
        self.node.get(name)
    }

    /// A field that must be there.
    pub(crate) fn need(&self, name: &str, sink: &mut Diagnostics) -> Option<&'t Node<'t>> {
        let found = self.get(name);
        if found.is_none() && !self.meant.iter().any(|meant| meant == name) {
            let message = format!("{} has no `{name}`", self.what);
            sink.push(Diagnostic::new(code::MISSING_FIELD, self.at, message).help(format!("add `{name}:`")));
        }
        found
    }

    /// A count from 1 up.
    pub(crate) fn count(&self, name: &str, sink: &mut Diagnostics) -> Option<u32> {
        self.need(name, sink).and_then(|node| count(node, name, sink))
    }

    /// A `[rows, columns]` of at least one each.
    pub(crate) fn size(&self, name: &str, sink: &mut Diagnostics) -> Option<Size> {
        self.need(name, sink).and_then(|node| size(node, name, 1, sink))
    }

    /// A flag; false when missing.
    pub(crate) fn flag(&self, name: &str, sink: &mut Diagnostics) -> bool {
        self.get(name).and_then(|node| flag(node, name, sink)).unwrap_or(false)
    }

    /// One of several names.
    pub(crate) fn choice<T: Copy>(&self, name: &str, all: &[(&'static str, T)], sink: &mut Diagnostics) -> Option<T> {
        self.need(name, sink).and_then(|node| choice(node, name, all, sink))
    }

    /// One of several names, or the default when missing.
    pub(crate) fn choice_or<T: Copy>(
        &self,
        name: &str,
        all: &[(&'static str, T)],
        default: T,
        sink: &mut Diagnostics,
    ) -> T {
        self.get(name).and_then(|node| choice(node, name, all, sink)).unwrap_or(default)
    }
}

/// The known name that a wrong one probably means.
pub(crate) fn nearest<'k>(wrong: &str, known: &[&'k str]) -> Option<&'k str> {
    let wrong = wrong.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&wrong, &name.to_lowercase());
    // Long names are not worth comparing and would cost time.
    let near = known.iter().filter(|_| wrong.len() <= 64).map(|name| (distance(name), *name)).min_by_key(|near| near.0);
    near.filter(|(distance, name)| *distance <= 1 + name.len() / 4).map(|(_, name)| name)
}

/// Adds the name that is nearest to a wrong one, or all when they are few.
pub(crate) fn suggest(finding: Diagnostic, wrong: &str, known: &[&str]) -> Diagnostic {
    match nearest(wrong, known) {
        Some(name) => finding.help(format!("did you mean `{name}`?")),
        None if known.len() <= 24 && !known.is_empty() => finding.help(format!("possible: {}", known.join(", "))),
        None => finding,
    }
}

fn wrong_kind(node: &Node, name: &str, wanted: &str, sink: &mut Diagnostics) {
    sink.push(Diagnostic::new(code::WRONG_KIND, node.span, format!("`{name}` is {}, not {wanted}", node.kind())));
}

/// The text of a scalar that is not empty.
pub(crate) fn text<'t>(node: &'t Node<'t>, name: &str, sink: &mut Diagnostics) -> Option<&'t str> {
    match &node.value {
        Value::Scalar(scalar) if !scalar.text.is_empty() => Some(&scalar.text),
        _ => {
            wrong_kind(node, name, "a single value", sink);
            None
        }
    }
}

/// The items of a list.
pub(crate) fn list<'t>(node: &'t Node<'t>, name: &str, sink: &mut Diagnostics) -> Option<&'t [Node<'t>]> {
    if node.list().is_none() {
        wrong_kind(node, name, "a list", sink);
    }
    node.list()
}

/// A whole number: decimal or `0x` hexadecimal.
pub(crate) fn parse_integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with(['+', '-']) => i64::from_str_radix(hex, 16).ok()?,
        Some(_) => return None,
        // `010` is eight for some readers of YAML and ten for others.
        None if digits.len() > 1 && digits.starts_with('0') => return None,
        None if digits.starts_with(['+', '-']) => return None,
        None => digits.parse().ok()?,
    };
    Some(sign * value)
}

/// A whole number within bounds.
pub(crate) fn integer(node: &Node, name: &str, range: RangeInclusive<i64>, sink: &mut Diagnostics) -> Option<i64> {
    let text = text(node, name, sink)?;
    let (low, high) = (range.start(), range.end());
    match parse_integer(text) {
        Some(value) if range.contains(&value) => Some(value),
        Some(value) => {
            let bound = if value < *low { format!("at least {low}") } else { format!("at most {high}") };
            let message = format!("`{name}` is {value}, but must be {bound}");
            sink.push(Diagnostic::new(code::BAD_NUMBER, node.span, message));
            None
        }
        None => {
            let message = format!("`{name}` is `{}`, not a whole number", short(text));
            let finding = Diagnostic::new(code::BAD_NUMBER, node.span, message);
            let octal = text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
            sink.push(if octal { finding.help("write it without leading zeros, or as 0x...") } else { finding });
            None
        }
    }
}

/// A number from 0 to [`MOST`].
pub(crate) fn natural(node: &Node, name: &str, sink: &mut Diagnostics) -> Option<u32> {
    integer(node, name, 0..=MOST, sink).and_then(|value| u32::try_from(value).ok())
}

/// A number from 1 to [`MOST`].
pub(crate) fn count(node: &Node, name: &str, sink: &mut Diagnostics) -> Option<u32> {
    integer(node, name, 1..=MOST, sink).and_then(|value| u32::try_from(value).ok())
}

/// A real number.
pub(crate) fn real(node: &Node, name: &str, sink: &mut Diagnostics) -> Option<f32> {
    let text = text(node, name, sink)?;
    let value = match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" => Some(f32::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f32::NEG_INFINITY),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => text.parse().ok(),
        _ => None,
    };
    if value.is_none_or(f32::is_nan) {
        sink.push(Diagnostic::new(code::BAD_NUMBER, node.span, format!("`{name}` is `{}`, not a number", short(text))));
        return None;
    }
    value
}

/// True or false, in the spellings that YAML readers accept.
pub(crate) fn flag(node: &Node, name: &str, sink: &mut Diagnostics) -> Option<bool> {
    let text = text(node, name, sink)?;
    let value = parse_flag(text);
    if value.is_none() {
        let message = format!("`{name}` is `{}`, not true or false", short(text));
        sink.push(Diagnostic::new(code::BAD_FLAG, node.span, message).help("write true or false"));
    }
    value
}

/// True or false as a word.
pub(crate) fn parse_flag(text: &str) -> Option<bool> {
    const WORDS: [(&str, bool); 8] = [
        ("true", true),
        ("false", false),
        ("yes", true),
        ("no", false),
        ("on", true),
        ("off", false),
        ("y", true),
        ("n", false),
    ];
    WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
}

/// One of several names.
pub(crate) fn choice<T: Copy>(node: &Node, name: &str, all: &[(&'static str, T)], sink: &mut Diagnostics) -> Option<T> {
    let text = text(node, name, sink)?;
    let found = all.iter().find(|(known, _)| *known == text).map(|(_, value)| *value);
    if found.is_none() {
        let known: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        let message = format!("`{name}` cannot be `{}`", short(text));
        sink.push(suggest(Diagnostic::new(code::UNKNOWN_VALUE, node.span, message), text, &known));
    }
    found
}

/// `[rows, columns]`, each at least `least`.
pub(crate) fn size(node: &Node, name: &str, least: i64, sink: &mut Diagnostics) -> Option<Size> {
    let items = list(node, name, sink)?;
    let [r, c] = items else {
        let message = format!("`{name}` has {} values, not 2: [rows, columns]", items.len());
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, message));
        return None;
    };
    let mut one = |node| integer(node, name, least..=MOST, sink).and_then(|value| u32::try_from(value).ok());
    let (r, c) = (one(r), one(c));
    Some(Size { r: r?, c: c? })
}

/// A list of numbers; items that are wrong are reported and left out.
pub(crate) fn naturals(node: &Node, name: &str, sink: &mut Diagnostics) -> Option<Vec<u32>> {
    let items = list(node, name, sink)?;
    Some(items.iter().filter_map(|item| natural(item, name, sink)).collect())
}

/// Shortens a text to 40 characters for a message.
pub(crate) fn short(text: &str) -> Short<'_> {
    Short(text)
}

/// Displays a text, at most 40 characters of it.
pub(crate) struct Short<'t>(&'t str);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(40) {
            Some((at, _)) => write!(f, "{}...", &self.0[..at]),
            None => f.write_str(self.0),
        }
    }
}
