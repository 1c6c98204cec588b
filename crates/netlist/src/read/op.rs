//! Reads graphs and their operations (tt-budabackend, `docs/public/netlist.md`, section Graphs).

use super::attributes::{Attributes, type_name};
use super::fields::{Fields, MOST, integer, list, naturals, nearest, short, suggest, text};
use super::names::{GraphName, Names, OpName, target_device};
use super::queue::{blocks, data_format};
use super::{Broken, tm};
use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::Node;
use crate::types::{
    Blocks, Fidelity, Graph, GraphId, Hints, Op, OpId, OpKind, Operand, Order, Post, Shape, Size, Source, UnaryKind,
};
use tilework_dtype::DType;

/// Fields of a graph; all others are operations.
const GRAPH_FIELDS: [&str; 2] = ["target_device", "input_count"];

/// Fields of an operation, besides those of single operands.
const FIELDS: [&str; 24] = [
    "type",
    "grid_loc",
    "grid_size",
    "grid_transpose",
    "inputs",
    "in_df",
    "acc_df",
    "intermed_df",
    "out_df",
    "math_fidelity",
    "t",
    "mblock",
    "ublock",
    "ublock_order",
    "tile_dim",
    "buf_size_mb",
    "overlay_size",
    "untilize_output",
    "gradient_op",
    "input_buf_min_size_tiles",
    "input_dram_io_buf_size_tiles",
    "forked_dram_inputs",
    "attributes",
    "input_0_tms",
];

/// Names of the fidelities.
const FIDELITIES: [(&str, Fidelity); 6] = [
    ("LoFi", Fidelity::LoFi),
    ("HiFi2", Fidelity::HiFi2),
    ("HiFi3", Fidelity::HiFi3),
    ("HiFi4", Fidelity::HiFi4),
    ("HiFi2_A", Fidelity::HiFi2A),
    ("HiFi2_B", Fidelity::HiFi2B),
];

/// The most elements of an operation's result, so that a small file cannot ask for
/// arbitrary memory.
const ELEMENTS: u64 = 1 << 36;

/// Reads all graphs.
pub(crate) fn read(names: &Names<'_>, broken: &mut Broken, sink: &mut Diagnostics) -> Vec<Graph> {
    let each = names.graph_list.iter().enumerate();
    each.map(|(index, name)| graph(GraphId(index), name, names, broken, sink)).collect()
}

fn graph(id: GraphId, name: &GraphName<'_>, names: &Names<'_>, broken: &mut Broken, sink: &mut Diagnostics) -> Graph {
    let before = sink.errors();
    let what = format!("graph `{}`", short(&name.name));
    // Every other key is an operation; one that resembles a field's name has an error
    // code of its own.
    let mut fields = Fields::of(what, name.entry.at, &name.entry.value, &[], |_| true, sink);
    if let Some(fields) = &mut fields {
        let no_ops = name.ops.iter().filter(|op| op.entry.value.map().is_none());
        no_ops.for_each(|op| fields.means(&op.entry.key, &GRAPH_FIELDS));
    }
    let mut device = name.device;
    let mut input_count = None;
    if let Some(fields) = &fields {
        input_count = fields.count("input_count", sink);
        if device.is_none() {
            device = fields.need("target_device", sink).and_then(|node| target_device(node, sink));
        }
    }
    if sink.errors() > before {
        broken.graphs.insert(id);
    }
    let mut ops = Vec::new();
    for (index, op_name) in name.ops.iter().enumerate() {
        let before = sink.errors();
        ops.push(op(op_name, name.device, names, sink).unwrap_or_else(|| placeholder(op_name)));
        if sink.errors() > before {
            broken.ops.insert(OpId { graph: id, op: index });
        }
    }
    Graph {
        name: name.name.to_string(),
        at: name.entry.at.start,
        target_device: device.unwrap_or(0),
        input_count: input_count.unwrap_or(1),
        ops,
    }
}

/// Stands in for an operation that cannot be read.
fn placeholder(name: &OpName<'_>) -> Op {
    let one = Size { r: 1, c: 1 };
    Op {
        name: name.name.to_string(),
        at: name.entry.at.start,
        kind: OpKind::Unary(UnaryKind::Copy),
        grid_loc: Size { r: 0, c: 0 },
        grid_transpose: false,
        inputs: Vec::new(),
        blocks: Blocks { grid: one, t: 1, mblock: one, ublock: one, order: Order::Row, tile: Size { r: 32, c: 32 } },
        acc_format: DType::F16,
        intermed_format: DType::F16,
        out_format: DType::F16,
        fidelity: Fidelity::HiFi3,
        buf_size_mb: 1,
        overlay_size: 0,
        untilize_output: false,
        gradient_op: false,
        forked_dram_inputs: Vec::new(),
        post: Post::default(),
        hints: Hints::default(),
    }
}

fn op(name: &OpName<'_>, device: Option<u32>, names: &Names<'_>, sink: &mut Diagnostics) -> Option<Op> {
    if name.entry.value.map().is_none() {
        let key = &*name.entry.key;
        let message = format!("a graph has no field `{}`, and an operation is a map", short(key));
        let finding = Diagnostic::new(code::UNKNOWN_FIELD, name.entry.at, message);
        sink.push(match nearest(key, &GRAPH_FIELDS).or_else(|| nearest(key, &FIELDS)) {
            Some(field) if !GRAPH_FIELDS.contains(&field) => finding
                .help(format!("did you mean `{field}`? it is a field of an operation, to be indented like its others")),
            _ => suggest(finding, key, &GRAPH_FIELDS),
        });
        return None;
    }
    let what = format!("operation `{}`", short(&name.name));
    let of_operand = |key: &str| operand_field(key).is_some();
    let fields = Fields::of(what, name.entry.at, &name.entry.value, &FIELDS, of_operand, sink)?;
    let kind_node = fields.need("type", sink);
    let kind_name = kind_node.map_or("", |node| type_name(node, sink));
    let ethernet = kind_name == "ethernet_datacopy";
    let blocks = blocks(&fields, sink);
    let grid_loc = grid_loc(&fields, ethernet, sink);
    let attributes = Attributes::of(&fields.what, fields.at, fields.get("attributes"), kind_name, false, sink);
    let cores = blocks.map_or(1, |b| u64::from(b.grid.r) * u64::from(b.grid.c));
    let kind = kind_node.and_then(|node| attributes.kind(node, names, cores, false, sink));
    let inputs = inputs(&fields, &attributes, device, names, sink);
    let format = |name: &str, sink: &mut Diagnostics| fields.need(name, sink).and_then(|n| data_format(n, name, sink));
    let (acc, intermed, out) = (format("acc_df", sink), format("intermed_df", sink), format("out_df", sink));
    let fidelity = fields.choice("math_fidelity", &FIDELITIES, sink);
    let number = |name: &str, default: u32, sink: &mut Diagnostics| match fields.get(name) {
        Some(node) => integer(node, name, 0..=MOST * 16, sink).and_then(|value| u32::try_from(value).ok()),
        None => Some(default),
    };
    let (buf_size_mb, overlay_size) = (number("buf_size_mb", 1, sink), number("overlay_size", 0, sink));
    let forked = forks(&fields, sink);
    let (post, hints) = (attributes.post(sink), attributes.hints(kind_name, sink));
    let mut flag = |name: &str| fields.flag(name, sink);
    let (grid_transpose, untilize_output, gradient_op) =
        (flag("grid_transpose"), flag("untilize_output"), flag("gradient_op"));
    let blocks = blocks?;
    if !has_allowed_size(&fields, blocks.shape(), sink) {
        return None;
    }
    Some(Op {
        name: name.name.to_string(),
        at: name.entry.at.start,
        kind: kind?,
        grid_loc: grid_loc?,
        grid_transpose,
        inputs: inputs?,
        blocks,
        acc_format: acc?,
        intermed_format: intermed?,
        out_format: out?,
        fidelity: fidelity?,
        buf_size_mb: buf_size_mb?,
        overlay_size: overlay_size?,
        untilize_output,
        gradient_op,
        forked_dram_inputs: forked,
        post,
        hints,
    })
}

/// Row and column of the first core; an Ethernet copy needs none.
fn grid_loc(fields: &Fields<'_>, ethernet: bool, sink: &mut Diagnostics) -> Option<Size> {
    match fields.get("grid_loc") {
        None if ethernet => Some(Size { r: 0, c: 0 }),
        Some(node) if ethernet && node.list().is_some_and(<[_]>::is_empty) => Some(Size { r: 0, c: 0 }),
        _ => fields.need("grid_loc", sink).and_then(|node| super::fields::size(node, "grid_loc", 0, sink)),
    }
}

/// Whether a result has at most [`ELEMENTS`] elements; reports it otherwise.
fn has_allowed_size(fields: &Fields<'_>, shape: Shape, sink: &mut Diagnostics) -> bool {
    let elements = [shape.t, shape.rows, shape.columns]
        .into_iter()
        .try_fold(1u64, |product, side| product.checked_mul(u64::try_from(side).ok()?));
    let allowed = elements.is_some_and(|elements| elements <= ELEMENTS);
    if !allowed {
        let message = format!("the result of {} has more than {ELEMENTS} elements", fields.what);
        sink.push(Diagnostic::new(code::TOO_LARGE, fields.at, message).help("make t, mblock or ublock smaller"));
    }
    allowed
}

/// Splits `input_N_tms`, `input_N_pad` and `input_N_unpad` into the number and the rest.
pub(crate) fn operand_field(key: &str) -> Option<(usize, &'static str)> {
    let (index, rest) = key.strip_prefix("input_")?.split_once('_')?;
    let rest = ["tms", "pad", "unpad"].into_iter().find(|known| *known == rest)?;
    Some((index.parse().ok()?, rest))
}

/// Reports fields of operands that do not exist.
pub(crate) fn operand_indices(fields: &Fields<'_>, inputs: usize, sink: &mut Diagnostics) {
    for (key, at, _) in fields.entries() {
        if operand_field(key).is_some_and(|(index, _)| index >= inputs) {
            let message = format!("`{}`: {} has {inputs} inputs, counted from 0", short(key), fields.what);
            sink.push(Diagnostic::new(code::OPERAND_INDEX, at, message));
        }
    }
}

fn inputs(
    fields: &Fields<'_>,
    attributes: &Attributes<'_>,
    device: Option<u32>,
    names: &Names<'_>,
    sink: &mut Diagnostics,
) -> Option<Vec<Operand>> {
    let node = fields.need("inputs", sink)?;
    let items = list(node, "inputs", sink)?;
    if items.is_empty() {
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, format!("{} has no inputs", fields.what)));
        return None;
    }
    let sources: Vec<_> = items.iter().map(|item| source(item, fields, device, names, sink)).collect();
    let formats = fields.need("in_df", sink).and_then(|node| in_formats(node, fields, items.len(), sink));
    operand_indices(fields, items.len(), sink);
    let broadcasts = attributes.kernel_broadcasts(items.len(), sink);
    let least = tiles(fields, "input_buf_min_size_tiles", items.len(), sink);
    let dram_io = tiles(fields, "input_dram_io_buf_size_tiles", items.len(), sink);
    let formats = formats?;
    let mut operands = Vec::new();
    let each = sources.into_iter().zip(formats).zip(broadcasts).enumerate();
    let of_operands: Vec<_> =
        fields.entries().filter_map(|(key, _, node)| Some((operand_field(key)?, key, node))).collect();
    for (index, ((source, format), kernel_broadcast)) in each {
        let field = |kind: &str| {
            of_operands.iter().find(|(field, ..)| *field == (index, kind)).map(|(_, key, node)| (*key, *node))
        };
        let padding = |kind: &str, sink: &mut Diagnostics| {
            field(kind).and_then(|(key, node)| tm::padding(node, key, kind == "pad", sink))
        };
        let (unpad, pad) = (padding("unpad", sink), padding("pad", sink));
        let tms = field("tms").map(|(key, node)| tm::read(node, key, sink)).unwrap_or_default();
        operands.push(source.zip(format).map(|(source, format)| Operand {
            source,
            format,
            unpad,
            tms: tms.into_iter().map(|(_, tm)| tm).collect(),
            pad,
            kernel_broadcast,
            min_buffer_tiles: least.get(index).copied().filter(|tiles| *tiles > 0),
            dram_io_buffer_tiles: dram_io.get(index).copied().filter(|tiles| *tiles > 0),
        }));
    }
    operands.into_iter().collect()
}

fn source(
    node: &Node,
    fields: &Fields<'_>,
    device: Option<u32>,
    names: &Names<'_>,
    sink: &mut Diagnostics,
) -> Option<Source> {
    let name = text(node, "inputs", sink)?;
    let queue = names.queue(name, device).map(Source::Queue);
    let found = queue.or_else(|| names.op(name, device).map(Source::Op));
    if found.is_none() {
        let message = format!("{} reads `{}`, which is neither a queue nor an operation", fields.what, short(name));
        names.unknown(node.span, message, name, true, sink);
    }
    found
}

fn in_formats(node: &Node, fields: &Fields<'_>, inputs: usize, sink: &mut Diagnostics) -> Option<Vec<Option<DType>>> {
    let items = list(node, "in_df", sink)?;
    if items.len() != inputs {
        let message = format!("{} has {inputs} inputs, but {} formats in `in_df`", fields.what, items.len());
        sink.push(
            Diagnostic::new(code::WRONG_COUNT, node.span, message)
                .context(fields.get("inputs").map(|node| node.span), "the inputs")
                .help("give one format for each input"),
        );
        return None;
    }
    Some(items.iter().map(|item| data_format(item, "in_df", sink)).collect())
}

/// A list with one number of tiles for each input.
fn tiles(fields: &Fields<'_>, name: &str, inputs: usize, sink: &mut Diagnostics) -> Vec<u32> {
    let Some(node) = fields.get(name) else { return Vec::new() };
    let found = naturals(node, name, sink).unwrap_or_default();
    let count = node.list().map_or(0, <[_]>::len);
    if count != 0 && count != inputs {
        let message = format!("`{name}` has {count} values for {inputs} inputs");
        let finding = Diagnostic::new(code::WRONG_COUNT, node.span, message);
        // Extra items are ignored.
        sink.push(if count > inputs { finding.warning() } else { finding });
    }
    found
}

/// `forked_dram_inputs`: pairs of a queue and the operation that reads it for this one.
fn forks(fields: &Fields<'_>, sink: &mut Diagnostics) -> Vec<(String, String)> {
    let Some(node) = fields.get("forked_dram_inputs") else { return Vec::new() };
    let mut forks = Vec::new();
    for item in list(node, "forked_dram_inputs", sink).unwrap_or_default() {
        let Some(entries) = item.map() else {
            let message = format!("`forked_dram_inputs` holds {}, not a map of queue and operation", item.kind());
            sink.push(Diagnostic::new(code::WRONG_KIND, item.span, message));
            continue;
        };
        for entry in entries {
            if let Some(op) = text(&entry.value, "forked_dram_inputs", sink) {
                forks.push((entry.key.to_string(), op.to_owned()));
            }
        }
    }
    forks
}
