//! Reads `stimulus-config` in the section `test-config`: how the netlist's own test makes its
//! inputs. The rest of that section is kept unchanged.
//!
//! A key of `overrides` that names a queue applies to that queue. A key with characters that names
//! do not have is a regular expression over the full names of the other queues; the first one in
//! the file that matches applies. A test configuration may mention queues that the netlist does not
//! have, so a key without a queue is no error.

use super::fields::{Fields, real, short, text};
use super::names::Names;
use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Entry, Node};
use crate::types::{QueueId, Stimulus, StimulusKind};
use regex_lite::{Regex, RegexBuilder};
use std::collections::BTreeMap;

/// The most expressions of a file, and bytes of a compiled one; the public netlists have one or two
/// of hundreds of bytes.
const EXPRESSIONS: usize = 1 << 10;
const EXPRESSION_BYTES: usize = 1 << 14;
/// The most characters that all expressions together are matched against.
const COMPARED: usize = 1 << 22;

/// Reads the configuration, if present.
pub fn read(section: &Node, names: &Names<'_>, sink: &mut Diagnostics) -> Option<Stimulus> {
    let node = section.get("stimulus-config").filter(|node| !node.is_null())?;
    let fields = Fields::of("stimulus-config".into(), node.span, node, &[], |_| true, sink)?;
    let default = fields.get("type").and_then(|_| kind(&fields, sink));
    let (mut own, mut expressions) = (BTreeMap::new(), Vec::new());
    let length: usize = names.queue_list.iter().map(|queue| queue.name.len() + queue.entry.key.len()).sum();
    for entry in fields.get("overrides").and_then(Node::map).unwrap_or_default() {
        let what = format!("stimulus of `{}`", short(&entry.key));
        let Some(fields) = Fields::of(what, entry.at, &entry.value, &[], |_| true, sink) else { continue };
        let Some(kind) = kind(&fields, sink) else { continue };
        let queues = names.queues(&entry.key);
        if queues.is_empty() && is_expression(&entry.key) {
            let count = expressions.len() + 1;
            let room = count <= EXPRESSIONS && count.saturating_mul(length) <= COMPARED;
            expressions.extend(expression(entry, room, sink).map(|expression| (expression, kind)));
        } else {
            queues.into_iter().for_each(|queue| _ = own.entry(queue).or_insert_with(|| kind.clone()));
        }
    }
    for (i, queue) in names.queue_list.iter().enumerate().filter(|_| !expressions.is_empty()) {
        let fits = |of: &Regex| of.is_match(&queue.name) || of.is_match(&queue.entry.key);
        if let Some((_, kind)) = expressions.iter().find(|(expression, _)| fits(expression)) {
            own.entry(QueueId(i)).or_insert_with(|| kind.clone());
        }
    }
    Some(Stimulus { default, overrides: own.into_iter().collect() })
}

/// Names have dots, which are literal in a key without other special characters.
fn is_expression(key: &str) -> bool {
    key.contains(['\\', '*', '+', '?', '[', ']', '(', ')', '{', '}', '|', '^', '$'])
}

/// A key as an expression for whole names.
fn expression(entry: &Entry, room: bool, sink: &mut Diagnostics) -> Option<Regex> {
    let compile = |text: &str| RegexBuilder::new(text).size_limit(EXPRESSION_BYTES).build();
    let problem = match room {
        // Compile it alone first: the added parentheses could balance its own.
        true => match compile(&entry.key).and_then(|_| compile(&format!(r"\A(?:{})\z", entry.key))) {
            Ok(compiled) => return Some(compiled),
            Err(error) => error.to_string(),
        },
        false => "there are too many for the number of queues".to_owned(),
    };
    let message = format!("`{}` is no queue, and as a regular expression it is left out: {problem}", short(&entry.key));
    let help = "write the name of a queue, or an expression such as `.*\\.weight` for whole names";
    sink.push(Diagnostic::new(code::BAD_EXPRESSION, entry.at, message).help(help).warning());
    None
}

fn kind(fields: &Fields<'_>, sink: &mut Diagnostics) -> Option<StimulusKind> {
    let name = fields.need("type", sink).and_then(|node| text(node, "type", sink))?;
    let number = |name: &str, default: f32, sink: &mut Diagnostics| match fields.get(name) {
        Some(node) => real(node, name, sink),
        None => Some(default),
    };
    Some(match name {
        "Uniform" => {
            StimulusKind::Uniform(number("uniform_lower_bound", 0.0, sink)?, number("uniform_upper_bound", 1.0, sink)?)
        }
        "Normal" => StimulusKind::Normal(number("normal_mean", 0.0, sink)?, number("normal_stddev", 1.0, sink)?),
        "Constant" => StimulusKind::Constant(number("constant_value", 0.0, sink)?),
        "DebugTileId" => StimulusKind::DebugTileId(
            number("debug_tile_id_base", 0.0, sink)?,
            number("debug_tile_id_step", 1.0, sink)?,
        ),
        other => StimulusKind::Other(other.to_owned()),
    })
}
