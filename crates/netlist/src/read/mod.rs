//! Converts the tree of a file into a typed netlist.
//!
//! There are two passes: the first collects every name that a reference may use ([`names`]), the
//! second reads everything and resolves references. An object with an error stays in the lists, so
//! that references to it resolve, and is marked as broken, so that no rule is checked on it.

mod attributes;
pub(crate) mod fields;
mod fused;
mod names;
mod op;
mod program;
mod queue;
mod stimulus;
mod tm;

use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Entry, Node, Span};
use crate::types::{Arch, FusedId, GraphId, Netlist, OpId, Position, QueueId, Size};
use fields::{choice, list, nearest, short, suggest};
use names::Names;
use std::collections::HashSet;

/// Sections that every netlist has, and those that it may have.
const SECTIONS: [&str; 7] =
    ["devices", "queues", "graphs", "programs", "fused_ops", "test-config", "performance-check"];

/// A netlist with the positions of its parts in the file and the set of broken ones.
pub(crate) struct Source<'t> {
    /// What was read; broken parts have arbitrary values where they are broken.
    pub netlist: Netlist,
    /// The key and value of each queue.
    pub queues: Vec<&'t Entry<'t>>,
    /// The same of each graph.
    pub graphs: Vec<&'t Entry<'t>>,
    /// The same of each operation of each graph.
    pub ops: Vec<Vec<&'t Entry<'t>>>,
    /// The same of each fused operation.
    pub fused: Vec<&'t Entry<'t>>,
    /// Nodes of the instructions of each program.
    pub instructions: Vec<Vec<&'t Node<'t>>>,
    /// Position of the architectures.
    pub archs: Span,
    /// What is broken.
    pub broken: Broken,
}

/// Parts with mistakes of their own.
#[derive(Default)]
pub(crate) struct Broken {
    pub queues: HashSet<QueueId>,
    pub graphs: HashSet<GraphId>,
    pub ops: HashSet<OpId>,
    pub fused: HashSet<FusedId>,
    /// Program and instruction.
    pub instructions: HashSet<(usize, usize)>,
}

/// Names of the architectures; upper case is accepted as well.
pub(crate) const ARCHS: [(&str, Arch); 4] = [
    ("grayskull", Arch::Grayskull),
    ("wormhole", Arch::Wormhole),
    ("wormhole_b0", Arch::WormholeB0),
    ("blackhole", Arch::Blackhole),
];

/// Reads a tree; `None` if it is not a netlist.
pub(crate) fn read<'t>(root: &'t Node<'t>, sink: &mut Diagnostics) -> Option<Source<'t>> {
    let sections = sections(root, sink)?;
    let find = |name: &str| sections.iter().find(|entry| &*entry.key == name);
    let (archs, archs_at) = find("devices").map(|entry| devices(entry, sink)).unwrap_or_default();
    let mut names = Names::of(find("queues"), find("graphs"), find("fused_ops"), sink);
    let mut broken = Broken::default();
    let fused_ops = fused::read(&names, &mut broken, sink);
    let queues = queue::read(&names, &mut broken, sink);
    let graphs = op::read(&names, &mut broken, sink);
    let (programs, instructions) = program::read(find("programs"), &mut names, &queues, &mut broken, sink);
    let stimulus = find("test-config").and_then(|entry| stimulus::read(&entry.value, &names, sink));
    let keep = |name| find(name).map(|entry| entry.value.clone().into_owned());
    let netlist = Netlist {
        archs,
        queues,
        graphs,
        programs,
        fused_ops,
        stimulus,
        test_config: keep("test-config"),
        performance_check: keep("performance-check"),
    };
    Some(Source {
        netlist,
        queues: names.queue_list.iter().map(|queue| queue.entry).collect(),
        graphs: names.graph_list.iter().map(|graph| graph.entry).collect(),
        ops: names.graph_list.iter().map(|graph| graph.ops.iter().map(|op| op.entry).collect()).collect(),
        fused: names.fused_list.iter().map(|(_, entry)| *entry).collect(),
        instructions,
        archs: archs_at,
        broken,
    })
}

fn sections<'t>(root: &'t Node<'t>, sink: &mut Diagnostics) -> Option<&'t [Entry<'t>]> {
    let Some(entries) = root.map().filter(|entries| entries.iter().any(|e| SECTIONS.contains(&&*e.key))) else {
        let message = format!("the file is {}, not a netlist", root.kind());
        let message = if root.map().is_some() { "the file has no section of a netlist".to_owned() } else { message };
        sink.push(
            Diagnostic::new(code::NOT_A_NETLIST, root.span, message)
                .help("a netlist is a map with devices, queues, graphs and programs"),
        );
        return None;
    };
    let mut meant = Vec::new();
    for entry in entries.iter().filter(|entry| !SECTIONS.contains(&&*entry.key)) {
        meant.extend(nearest(&entry.key, &SECTIONS));
        let finding =
            Diagnostic::new(code::UNKNOWN_SECTION, entry.at, format!("there is no section `{}`", short(&entry.key)));
        sink.push(suggest(finding, &entry.key, &SECTIONS));
    }
    for name in &SECTIONS[..4] {
        match entries.iter().find(|entry| &*entry.key == *name) {
            None if meant.contains(name) => {}
            None => {
                let message = format!("the section `{name}` is missing");
                sink.push(Diagnostic::new(code::MISSING_SECTION, root.span, message).help(format!("add `{name}:`")));
            }
            Some(entry) if is_empty(&entry.value) => {
                let message = format!("the section `{name}` is empty");
                sink.push(Diagnostic::new(code::MISSING_SECTION, entry.at, message));
            }
            Some(_) => {}
        }
    }
    Some(entries)
}

fn is_empty(node: &Node) -> bool {
    node.is_null() || node.list().is_some_and(<[_]>::is_empty) || node.map().is_some_and(<[_]>::is_empty)
}

/// Prefix of the placeholders in the original's templates.
const PLACEHOLDER: &str = "$TEMPLATE_";

/// Whether the file is a template; the first placeholder outside comments is reported. Templates
/// need not even be YAML.
pub(crate) fn template(text: &str, sink: &mut Diagnostics) -> bool {
    if !text.contains(PLACEHOLDER) {
        return false;
    }
    for (line, content) in (1..).zip(text.lines()) {
        let code = content.split_once('#').map_or(content, |(code, _)| code);
        let Some(at) = code.find(PLACEHOLDER) else { continue };
        let name = code[at + 1..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let column = u32::try_from(code[..at].chars().count() + 1).unwrap_or(1);
        let width = u32::try_from(name.chars().count() + 1).unwrap_or(1);
        let start = Position { line, column };
        let span = Span { start, end: Position { line, column: column.saturating_add(width) } };
        let message = format!("`${}` is a placeholder: this is a template", short(name));
        sink.push(
            Diagnostic::new(code::TEMPLATE, span, message)
                .help("replace all placeholders first; nothing else of the file was checked"),
        );
        return true;
    }
    false
}

/// Whether a tile is smaller than 32 x 32.
pub(crate) fn tile_is_small(tile: Size) -> bool {
    tile != queue::TILES[0]
}

fn devices(entry: &Entry, sink: &mut Diagnostics) -> (Vec<Arch>, Span) {
    let Some(fields) = fields::Fields::of("devices".into(), entry.at, &entry.value, &["arch"], |_| false, sink) else {
        return (Vec::new(), entry.at);
    };
    let Some(node) = fields.need("arch", sink) else { return (Vec::new(), entry.at) };
    let one = |node: &Node, sink: &mut Diagnostics| {
        let lower = node.text().map(str::to_lowercase);
        let known = ARCHS.iter().find(|(name, _)| Some(*name) == lower.as_deref());
        known.map(|(_, arch)| *arch).or_else(|| choice(node, "arch", &ARCHS, sink))
    };
    if node.list().is_none() {
        return (one(node, sink).into_iter().collect(), node.span);
    }
    let items = list(node, "arch", sink).unwrap_or_default();
    if items.is_empty() {
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, "`arch` names no architecture"));
    }
    let mut archs = Vec::new();
    for item in items {
        match one(item, sink) {
            Some(arch) if archs.contains(&arch) => {
                sink.push(
                    Diagnostic::new(code::DUPLICATE_NAME, item.span, "this architecture is named twice").warning(),
                );
            }
            Some(arch) => archs.push(arch),
            None => {}
        }
    }
    (archs, node.span)
}
