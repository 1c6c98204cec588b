//! Reads TMs, the tensor manipulations of an operand.

use super::fields::{choice, count, integer, list, natural, real, short, suggest, text};
use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Node, Span, Value};
use crate::types::{Dim, Pad, Tm};

/// Names of the TMs that have an argument.
const NAMES: [&str; 8] = ["broadcast", "hslice", "hstack", "vslice", "vstack", "transpose", "tile_broadcast", "pad"];

/// Dimensions of a broadcast.
const DIMS: [(&str, Dim); 3] = [("r", Dim::R), ("c", Dim::C), ("z", Dim::Z)];

/// Reads a list of TMs, each with its position. An absent value is an empty list.
pub fn read(node: &Node, name: &str, sink: &mut Diagnostics) -> Vec<(Span, Tm)> {
    // Some generators write `None` of their own language for an empty list.
    if node.is_null() || matches!(node.text(), Some("null" | "None" | "")) {
        return Vec::new();
    }
    let mut tms = Vec::new();
    for item in list(node, name, sink).unwrap_or_default() {
        match &item.value {
            Value::Scalar(_) => tms.extend(word(item, sink)),
            Value::Map(entries) => {
                for entry in entries {
                    with_argument(&entry.key, entry.at, &entry.value, &mut tms, sink);
                }
            }
            Value::List(_) => {
                let message = "a TM is a name with its argument, or `transpose`, not a list";
                sink.push(Diagnostic::new(code::WRONG_KIND, item.span, message));
            }
        }
    }
    tms
}

fn word(node: &Node, sink: &mut Diagnostics) -> Option<(Span, Tm)> {
    let name = text(node, "TM", sink)?;
    if name == "transpose" {
        return Some((node.span, Tm::Transpose));
    }
    let finding = if NAMES.contains(&name) {
        let message = format!("`{name}` has an argument");
        Diagnostic::new(code::WRONG_KIND, node.span, message).help(format!("write `{name}: ...`"))
    } else {
        let message = format!("there is no TM `{}`", short(name));
        suggest(Diagnostic::new(code::UNKNOWN_VALUE, node.span, message), name, &NAMES)
    };
    sink.push(finding);
    None
}

fn with_argument(name: &str, at: Span, node: &Node, tms: &mut Vec<(Span, Tm)>, sink: &mut Diagnostics) {
    let tm = match name {
        "broadcast" => return broadcast(at, node, tms, sink),
        "hslice" => count(node, name, sink).map(Tm::HSlice),
        "vslice" => count(node, name, sink).map(Tm::VSlice),
        "hstack" => natural(node, name, sink).map(Tm::HStack),
        "vstack" => natural(node, name, sink).map(Tm::VStack),
        "tile_broadcast" => choice(node, name, &DIMS[..2], sink).map(Tm::TileBroadcast),
        "pad" => pad(node, sink).map(Tm::Pad),
        "transpose" => {
            let message = "`transpose` has no argument";
            sink.push(Diagnostic::new(code::WRONG_KIND, at, message).help("write `transpose` alone"));
            None
        }
        _ => {
            let message = format!("there is no TM `{}`", short(name));
            sink.push(suggest(Diagnostic::new(code::UNKNOWN_VALUE, at, message), name, &NAMES));
            None
        }
    };
    tms.extend(tm.map(|tm| (at, tm)));
}

fn broadcast(at: Span, node: &Node, tms: &mut Vec<(Span, Tm)>, sink: &mut Diagnostics) {
    let Some(entries) = node.map().filter(|entries| !entries.is_empty()) else {
        let message = format!("`broadcast` is {}, not a map of dimensions", node.kind());
        sink.push(Diagnostic::new(code::WRONG_KIND, node.span, message).help("write `broadcast: {r: 2}`"));
        return;
    };
    for entry in entries {
        let Some((_, dim)) = DIMS.iter().find(|(name, _)| *name == &*entry.key) else {
            let message = format!("`broadcast` has no dimension `{}`", short(&entry.key));
            sink.push(Diagnostic::new(code::UNKNOWN_VALUE, entry.at, message).help("possible: r, c, z"));
            continue;
        };
        tms.extend(count(&entry.value, "broadcast", sink).map(|n| (at, Tm::Broadcast(*dim, n))));
    }
}

fn pad(node: &Node, sink: &mut Diagnostics) -> Option<Pad> {
    let items = list(node, "pad", sink)?;
    let [rt, ct, value] = items else {
        let message = format!("`pad` has {} values, not 3: [rows of tiles, columns of tiles, value]", items.len());
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, message));
        return None;
    };
    let (rt, ct, value) = (natural(rt, "pad", sink), natural(ct, "pad", sink), real(value, "pad", sink));
    Some(Pad { rt: rt?, ct: ct?, value: value? })
}

/// `input_N_pad` or `input_N_unpad`: a map of `rt`, `ct` and, for padding, `pad_value`.
pub fn padding(node: &Node, name: &str, with_value: bool, sink: &mut Diagnostics) -> Option<Pad> {
    let known: &[&str] = if with_value { &["rt", "ct", "pad_value"] } else { &["rt", "ct"] };
    let fields = super::fields::Fields::of(format!("`{name}`"), node.span, node, known, |_| false, sink)?;
    let tiles = |key: &str, sink: &mut Diagnostics| match fields.get(key) {
        // Some generators write -1 for no padding.
        Some(node) => integer(node, key, -1..=super::fields::MOST, sink).map(|n| u32::try_from(n).unwrap_or(0)),
        None => Some(0),
    };
    let (rt, ct) = (tiles("rt", sink), tiles("ct", sink));
    let value = match fields.get("pad_value") {
        Some(node) => real(node, "pad_value", sink),
        None => Some(0.0),
    };
    Some(Pad { rt: rt?, ct: ct?, value: value? })
}
