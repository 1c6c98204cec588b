//! Reads queues (tt-budabackend, `docs/public/netlist.md`, section Queues).

use super::fields::{Fields, MOST, choice, integer, list, naturals, short, size, text};
use super::names::{Names, QueueName, target_device};
use super::{Broken, tm};
use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::format::DataFormat;
use crate::size::buffer_bytes;
use crate::tree::Node;
use crate::types::{
    Arch, Blocks, Buffer, Layout, Location, Order, Position, Producer, Queue, QueueId, QueueKind, Size, Tm,
};

/// Fields of a queue.
const FIELDS: [&str; 19] = [
    "type",
    "input",
    "entries",
    "grid_size",
    "t",
    "mblock",
    "ublock",
    "ublock_order",
    "df",
    "target_device",
    "loc",
    "dram",
    "host",
    "alias",
    "layout",
    "tile_dim",
    "read_ports",
    "write_ports",
    "input_tms",
];

/// The largest buffer: what a 32-bit address reaches.
const ADDRESSES: u64 = 1 << 32;

/// Tile shapes of the language (tt-budabackend, `docs/public/netlist.md`, `tile_dim`).
pub const TILES: [Size; 7] = [
    Size { r: 32, c: 32 },
    Size { r: 16, c: 32 },
    Size { r: 32, c: 16 },
    Size { r: 8, c: 32 },
    Size { r: 4, c: 32 },
    Size { r: 2, c: 32 },
    Size { r: 1, c: 32 },
];

/// Reads all queues.
pub fn read(names: &Names<'_>, broken: &mut Broken, sink: &mut Diagnostics) -> Vec<Queue> {
    let mut queues = Vec::new();
    for (index, name) in names.queue_list.iter().enumerate() {
        let before = sink.errors();
        queues.push(queue(name, names, sink).unwrap_or_else(|| placeholder(&name.name, name.entry.at.start)));
        if sink.errors() > before {
            broken.queues.insert(QueueId(index));
        }
    }
    queues
}

/// Stands in for a queue that cannot be read.
fn placeholder(name: &str, at: Position) -> Queue {
    let one = Size { r: 1, c: 1 };
    Queue {
        name: name.to_owned(),
        at,
        kind: QueueKind::Queue,
        producer: Producer::Host,
        entries: 1,
        blocks: Blocks { grid: one, t: 1, mblock: one, ublock: one, order: Order::Row, tile: TILES[0] },
        format: DataFormat::Float16,
        target_device: 0,
        location: Location::Dram,
        buffers: Vec::new(),
        alias: None,
        layout: Layout::Tilized,
        tms: Vec::new(),
        read_ports: Vec::new(),
        write_ports: Vec::new(),
    }
}

fn queue(name: &QueueName<'_>, names: &Names<'_>, sink: &mut Diagnostics) -> Option<Queue> {
    let what = format!("queue `{}`", short(&name.name));
    let fields = Fields::of(what, name.entry.at, &name.entry.value, &FIELDS, |_| false, sink)?;
    let device = match name.device {
        Some((device, _)) => Some(device),
        None => fields.need("target_device", sink).and_then(|node| target_device(node, sink)),
    };
    let kind = fields.choice("type", &[("queue", QueueKind::Queue), ("ram", QueueKind::Ram)], sink);
    let producer = fields.need("input", sink).and_then(|node| producer(node, &fields, names, device, sink));
    let entries = fields.count("entries", sink);
    let blocks = blocks(&fields, sink);
    let format = fields.need("df", sink).and_then(|node| data_format(node, "df", sink));
    let location = fields.choice("loc", &[("dram", Location::Dram), ("host", Location::Host)], sink);
    let layout = layout(&fields, sink);
    let alias = fields.get("alias").and_then(|node| alias(node, names, name.device.map(|(device, _)| device), sink));
    let tms = fields.get("input_tms").map(|node| tm::read(node, "input_tms", sink)).unwrap_or_default();
    for (at, tm) in &tms {
        if matches!(tm, Tm::Pad(_) | Tm::TileBroadcast(_)) {
            sink.push(Diagnostic::new(code::TM_PLACE, *at, "the input of a queue has no such TM"));
        }
    }
    let buffers = location.map(|location| buffers(&fields, location, blocks.map(|b| b.grid), sink));
    let (blocks, format, entries) = (blocks?, format?, entries?);
    let bytes = buffer_bytes(&blocks, format, entries, Arch::Grayskull);
    if bytes.is_none_or(|bytes| bytes > ADDRESSES) {
        let message = format!("a buffer of {} is larger than 4 GiB", fields.what);
        sink.push(
            Diagnostic::new(code::TOO_LARGE, fields.at, message).help("make entries, t, mblock or ublock smaller"),
        );
        return None;
    }
    let mut buffers = buffers.unwrap_or_default();
    if let (Some(Location::Host), Some((device, first))) = (location, name.device) {
        // Host queues of several devices are placed one after the other.
        let step = if device == first { 0 } else { bytes.unwrap_or(0).next_multiple_of(64) };
        buffers.iter_mut().for_each(|buffer| buffer.address += step);
    }
    Some(Queue {
        name: name.name.to_string(),
        at: name.entry.at.start,
        kind: kind?,
        producer: producer?,
        entries,
        blocks,
        format,
        target_device: device?,
        location: location?,
        buffers,
        alias,
        layout: layout?,
        tms: tms.into_iter().map(|(_, tm)| tm).collect(),
        read_ports: ports(&fields, "read_ports", sink),
        write_ports: ports(&fields, "write_ports", sink),
    })
}

fn producer(
    node: &Node,
    fields: &Fields<'_>,
    names: &Names<'_>,
    device: Option<u32>,
    sink: &mut Diagnostics,
) -> Option<Producer> {
    let name = text(node, "input", sink)?;
    if name == "HOST" {
        return Some(Producer::Host);
    }
    let found = names.op(name, device);
    if found.is_none() && name.contains("net2net") {
        let message = format!("{} is filled by another netlist; here the host fills it", fields.what);
        sink.push(Diagnostic::new(code::OTHER_NETLIST, node.span, message).warning());
        return Some(Producer::Host);
    }
    if found.is_none() {
        let message = match names.queue(name, device) {
            Some(_) => format!("{} cannot take its data from another queue, `{}`", fields.what, short(name)),
            None => format!("no operation is named `{}`, which should fill {}", short(name), fields.what),
        };
        let wrong_case = name.eq_ignore_ascii_case("host");
        if wrong_case {
            sink.push(Diagnostic::new(code::UNKNOWN_NAME, node.span, message).help("did you mean `HOST`?"));
        } else {
            names.unknown(node.span, message, name, true, sink);
        }
    }
    found.map(Producer::Op)
}

/// The blocks of a queue or an operation: `grid_size`, `t`, `mblock`, `ublock`,
/// `ublock_order`, `tile_dim`.
pub fn blocks(fields: &Fields<'_>, sink: &mut Diagnostics) -> Option<Blocks> {
    let grid = fields.size("grid_size", sink);
    let t = fields.count("t", sink);
    let (mblock, ublock) = (fields.size("mblock", sink), fields.size("ublock", sink));
    let order = fields.choice_or("ublock_order", &[("r", Order::Row), ("c", Order::Column)], Order::Row, sink);
    let tile = match fields.get("tile_dim") {
        Some(node) => tile(node, sink),
        None => Some(TILES[0]),
    };
    let blocks = Blocks { grid: grid?, t: t?, mblock: mblock?, ublock: ublock?, order, tile: tile? };
    let side = |a: u32, b: u32, c: u32| i64::from(a).checked_mul(i64::from(b))?.checked_mul(i64::from(c));
    let rows = side(blocks.grid.r, blocks.mblock.r, blocks.ublock.r);
    let columns = side(blocks.grid.c, blocks.mblock.c, blocks.ublock.c);
    let fits = |side: Option<i64>| side.is_some_and(|side| side <= MOST);
    if !fits(rows) || !fits(columns) {
        let message = format!("{} has more than {MOST} rows or columns of tiles", fields.what);
        sink.push(
            Diagnostic::new(code::TOO_LARGE, fields.at, message).help("make grid_size, mblock or ublock smaller"),
        );
        return None;
    }
    Some(blocks)
}

fn tile(node: &Node, sink: &mut Diagnostics) -> Option<Size> {
    let tile = size(node, "tile_dim", 1, sink)?;
    if !TILES.contains(&tile) {
        let known: Vec<String> = TILES.iter().map(|tile| format!("[{}, {}]", tile.r, tile.c)).collect();
        let message = format!("there are no tiles of [{}, {}]", tile.r, tile.c);
        sink.push(
            Diagnostic::new(code::TILE_SHAPE, node.span, message).help(format!("possible: {}", known.join(", "))),
        );
        return None;
    }
    Some(tile)
}

/// Names of the data formats. `Tf32` is one of the hardware's, not of the language's.
const FORMATS: [(&str, DataFormat); DataFormat::ALL.len() - 1] = {
    let mut formats = [("", DataFormat::Float32); DataFormat::ALL.len() - 1];
    let (mut from, mut to) = (0, 0);
    while from < DataFormat::ALL.len() {
        let (format, name, _) = DataFormat::ALL[from];
        if !matches!(format, DataFormat::Tf32) {
            formats[to] = (name, format);
            to += 1;
        }
        from += 1;
    }
    formats
};

/// A data format by name.
pub fn data_format(node: &Node, name: &str, sink: &mut Diagnostics) -> Option<DataFormat> {
    choice(node, name, &FORMATS, sink)
}

fn layout(fields: &Fields<'_>, sink: &mut Diagnostics) -> Option<Layout> {
    match fields.get("layout") {
        Some(node) => choice(node, "layout", &[("tilized", Layout::Tilized), ("flat", Layout::Flat)], sink),
        None => Some(Layout::Tilized),
    }
}

fn alias(node: &Node, names: &Names<'_>, device: Option<u32>, sink: &mut Diagnostics) -> Option<QueueId> {
    let name = text(node, "alias", sink)?;
    let found = names.queue(name, device);
    if found.is_none() {
        let message = format!("no queue is named `{}`, whose memory this one should show", short(name));
        names.unknown(node.span, message, name, false, sink);
    }
    found
}

fn buffers(fields: &Fields<'_>, location: Location, grid: Option<Size>, sink: &mut Diagnostics) -> Vec<Buffer> {
    let (own, other) = match location {
        Location::Dram => ("dram", "host"),
        Location::Host => ("host", "dram"),
    };
    if let Some(node) = fields.get(other) {
        let message = format!("`{other}` has no meaning where `loc` is {own}");
        sink.push(Diagnostic::new(code::UNUSED_FIELD, node.span, message).warning());
    }
    let Some(node) = fields.need(own, sink) else { return Vec::new() };
    let Some(items) = list(node, own, sink) else { return Vec::new() };
    if let Some(grid) = grid {
        let wanted = u64::from(grid.r) * u64::from(grid.c);
        if items.len() as u64 != wanted {
            let message = format!("{} has {} buffers, but a grid of {} x {}", fields.what, items.len(), grid.r, grid.c);
            sink.push(
                Diagnostic::new(code::BUFFER_COUNT, node.span, message)
                    .context(fields.get("grid_size").map(|node| node.span), "the grid")
                    .help(format!("give {wanted}, row by row")),
            );
        }
    }
    items.iter().filter_map(|item| buffer(item, own, location, sink)).collect()
}

fn buffer(node: &Node, name: &str, location: Location, sink: &mut Diagnostics) -> Option<Buffer> {
    let address = |node: &Node, sink: &mut Diagnostics| {
        integer(node, "address", 0..=i64::from(u32::MAX), sink).and_then(|value| u64::try_from(value).ok())
    };
    if location == Location::Host && node.list().is_none() {
        return Some(Buffer { channel: 0, address: address(node, sink)? });
    }
    let items = list(node, name, sink)?;
    let [channel, place] = items else {
        let message = format!("a buffer has {} values, not 2: [channel, address]", items.len());
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, message));
        return None;
    };
    let channel = integer(channel, "channel", 0..=255, sink).and_then(|value| u32::try_from(value).ok());
    let address = address(place, sink);
    Some(Buffer { channel: channel?, address: address? })
}

/// Ports of the NoC: one for each buffer, 0 to 2.
fn ports(fields: &Fields<'_>, name: &str, sink: &mut Diagnostics) -> Vec<u32> {
    let Some(node) = fields.get(name) else { return Vec::new() };
    let ports = naturals(node, name, sink).unwrap_or_default();
    if let Some(bad) = ports.iter().find(|port| **port > 2) {
        let message = format!("`{name}` has port {bad}; there are 0, 1 and 2");
        sink.push(Diagnostic::new(code::PORTS, node.span, message));
    }
    let buffers = fields.get("dram").and_then(Node::list).map(<[_]>::len);
    if let Some(buffers) = buffers.filter(|buffers| node.list().is_some_and(|ports| ports.len() != *buffers)) {
        let message = format!("`{name}` must have one port for each of the {buffers} buffers");
        sink.push(Diagnostic::new(code::PORTS, node.span, message));
    }
    ports
}
