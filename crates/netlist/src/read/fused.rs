//! Reads fused operations (tt-budabackend, `docs/public/netlist.md`, section Fused OPs).

use super::attributes::{Attributes, type_name};
use super::fields::{Fields, list, natural, real, short, suggest, text};
use super::names::Names;
use super::op::{operand_field, operand_indices};
use super::{Broken, tm};
use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Entry, Node};
use crate::types::{FusedId, FusedOp, FusedSource, FusedStep, FusedTarget, OpKind};

/// Fields of a fused operation.
const FIELDS: [&str; 4] = ["inputs", "intermediates", "custom_kernel_path", "schedules"];

/// Fields of a step.
const STEP: [&str; 10] =
    ["type", "inputs", "output", "mblock", "ublock", "pop", "pop_last", "attributes", "zero_point", "input_0_tms"];

/// Reads all fused operations.
pub fn read(names: &Names<'_>, broken: &mut Broken, sink: &mut Diagnostics) -> Vec<FusedOp> {
    let mut all = Vec::new();
    for (index, (id, entry)) in names.fused_list.iter().enumerate() {
        let before = sink.errors();
        let found = fused(*id, entry, names, sink);
        all.push(found.unwrap_or_else(|| FusedOp {
            id: *id,
            at: entry.at.start,
            inputs: 0,
            intermediates: 0,
            schedules: Vec::new(),
        }));
        if sink.errors() > before {
            broken.fused.insert(FusedId(index));
        }
    }
    all
}

fn fused(id: u32, entry: &Entry, names: &Names<'_>, sink: &mut Diagnostics) -> Option<FusedOp> {
    let fields = Fields::of(format!("fused operation {id}"), entry.at, &entry.value, &FIELDS, |_| false, sink)?;
    let mut number = |name: &str| fields.need(name, sink).and_then(|node| natural(node, name, sink));
    let (inputs, intermediates) = (number("inputs"), number("intermediates"));
    let node = fields.need("schedules", sink)?;
    let mut schedules = Vec::new();
    for schedule in list(node, "schedules", sink)? {
        let mut steps = Vec::new();
        for node in list(schedule, "schedule", sink).unwrap_or_default() {
            steps.extend(step_entry(node, sink).and_then(|entry| step(entry, names, sink)));
        }
        if schedule.list().is_some_and(<[_]>::is_empty) {
            sink.push(Diagnostic::new(code::FUSED_EMPTY, schedule.span, "a schedule without steps"));
        }
        schedules.push(steps);
    }
    if schedules.is_empty() {
        sink.push(Diagnostic::new(code::FUSED_EMPTY, node.span, "a fused operation without schedules"));
    }
    Some(FusedOp { id, at: entry.at.start, inputs: inputs?, intermediates: intermediates?, schedules })
}

/// The name and the fields of a step.
fn step_entry<'t>(node: &'t Node<'t>, sink: &mut Diagnostics) -> Option<&'t Entry<'t>> {
    match node.map() {
        Some([entry]) => Some(entry),
        _ => {
            let message = "a step is a map with one entry: its name and its fields";
            sink.push(Diagnostic::new(code::WRONG_KIND, node.span, message));
            None
        }
    }
}

fn step(entry: &Entry, names: &Names<'_>, sink: &mut Diagnostics) -> Option<FusedStep> {
    let what = format!("step `{}`", short(&entry.key));
    let of_operand = |key: &str| operand_field(key).is_some_and(|(_, rest)| rest == "tms");
    let fields = Fields::of(what, entry.at, &entry.value, &STEP, of_operand, sink)?;
    let kind_node = fields.need("type", sink);
    let kind_name = kind_node.map_or("", |node| type_name(node, sink));
    let attributes = Attributes::of(&fields.what, fields.at, fields.get("attributes"), kind_name, true, sink);
    let mut kind = kind_node.and_then(|node| attributes.kind(node, names, 1, true, sink));
    let post = attributes.post(sink);
    if let Some(node) = fields.get("zero_point") {
        let value = real(node, "zero_point", sink);
        if let (Some(OpKind::Quant { zero_point, .. }), Some(value)) = (&mut kind, value) {
            *zero_point = value;
        }
    }
    let inputs = fields.need("inputs", sink).and_then(|node| {
        let items = list(node, "inputs", sink)?;
        let found: Vec<_> = items.iter().map(|item| source(item, "inputs", sink)).collect();
        found.into_iter().collect::<Option<Vec<_>>>()
    });
    operand_indices(&fields, inputs.as_ref().map_or(usize::MAX, Vec::len), sink);
    let tms = |index: usize, sink: &mut Diagnostics| {
        let name = format!("input_{index}_tms");
        let read = fields.get(&name).map(|node| tm::read(node, &name, sink)).unwrap_or_default();
        read.into_iter().map(|(_, tm)| tm).collect::<Vec<_>>()
    };
    let inputs = inputs
        .map(|all| all.into_iter().enumerate().map(|(index, source)| (source, tms(index, sink))).collect::<Vec<_>>());
    let output = fields.need("output", sink).and_then(|node| target(node, sink));
    let (mblock, ublock) = (fields.size("mblock", sink), fields.size("ublock", sink));
    let (pop, pop_last) = (pops(&fields, "pop", sink), pops(&fields, "pop_last", sink));
    // A step of unknown kind stays, so that what it reads and frees is still followed; the
    // operation is marked as broken.
    let kind = kind.unwrap_or(OpKind::Drainer);
    Some(FusedStep {
        name: entry.key.to_string(),
        at: entry.at.start,
        kind,
        post,
        inputs: inputs?,
        output: output?,
        mblock: mblock?,
        ublock: ublock?,
        pop,
        pop_last,
    })
}

fn pops(fields: &Fields<'_>, name: &str, sink: &mut Diagnostics) -> Vec<FusedSource> {
    let Some(node) = fields.get(name) else { return Vec::new() };
    let mut pops = Vec::new();
    for item in list(node, name, sink).unwrap_or_default() {
        let Some(source) = source(item, name, sink) else { continue };
        if pops.contains(&source) {
            let message = format!("`{}` is twice in `{name}`", item.text().unwrap_or_default());
            sink.push(Diagnostic::new(code::DUPLICATE_NAME, item.span, message));
        }
        pops.push(source);
    }
    pops
}

fn numbered(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn source(node: &Node, field: &str, sink: &mut Diagnostics) -> Option<FusedSource> {
    let name = text(node, field, sink)?;
    let intermed = || numbered(name, "intermed").map(FusedSource::Intermed);
    let dest = || (name == "dest").then_some(FusedSource::Dest);
    let found = numbered(name, "input").map(FusedSource::Input).or_else(intermed).or_else(dest);
    if found.is_none() {
        let message = format!("`{}` is no operand of a step", short(name));
        let finding = Diagnostic::new(code::UNKNOWN_NAME, node.span, message);
        sink.push(suggest(finding, name, &["input0", "input1", "intermed0", "intermed1", "dest"]));
    }
    found
}

fn target(node: &Node, sink: &mut Diagnostics) -> Option<FusedTarget> {
    let name = text(node, "output", sink)?;
    let found = match name {
        "dest" => Some(FusedTarget::Dest),
        "output" => Some(FusedTarget::Output),
        _ => numbered(name, "intermed").map(FusedTarget::Intermed),
    };
    if found.is_none() {
        let message = format!("a step cannot write to `{}`", short(name));
        let finding = Diagnostic::new(code::UNKNOWN_NAME, node.span, message);
        sink.push(suggest(finding, name, &["output", "dest", "intermed0", "intermed1"]));
    }
    found
}
