//! The names of a netlist and what they refer to.
//!
//! A queue or graph whose `target_device` is a list stands for one on each device: `name.0`,
//! `name.1`. What they contain is named likewise. References from such a graph resolve to the
//! same device.

use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::read::fields::{integer, short, suggest};
use crate::tree::{Entry, Node, Span};
use crate::types::{FusedId, GraphId, OpId, QueueId};
use std::borrow::Cow;
use std::collections::HashMap;

/// The most devices of a system.
const DEVICES: i64 = 256;
/// The most queues, graphs, operations and queue settings after device lists are expanded.
const PARTS: usize = 1 << 16;

/// A queue on one device.
pub struct QueueName<'t> {
    pub name: Cow<'t, str>,
    /// If it comes from a list of devices: its device and the first one of the list.
    pub device: Option<(u32, u32)>,
    pub entry: &'t Entry<'t>,
}

/// A graph on one device.
pub struct GraphName<'t> {
    pub name: Cow<'t, str>,
    /// Its device, if it comes from a list of devices.
    pub device: Option<u32>,
    pub entry: &'t Entry<'t>,
    pub ops: Vec<OpName<'t>>,
}

/// An operation of a graph on one device.
pub struct OpName<'t> {
    pub name: Cow<'t, str>,
    pub entry: &'t Entry<'t>,
}

/// The objects by name.
#[derive(Default)]
pub struct Names<'t> {
    pub queue_list: Vec<QueueName<'t>>,
    pub graph_list: Vec<GraphName<'t>>,
    pub fused_list: Vec<(u32, &'t Entry<'t>)>,
    queues: HashMap<Cow<'t, str>, QueueId>,
    graphs: HashMap<Cow<'t, str>, GraphId>,
    ops: HashMap<Cow<'t, str>, OpId>,
    fused: HashMap<u32, FusedId>,
    /// Queues and graphs with a list of devices, by the name in the file, and the devices.
    spread: HashMap<&'t str, Vec<u32>>,
    /// Number of parts so far.
    parts: usize,
}

impl<'t> Names<'t> {
    /// Collects the names. What is not a map is reported where it is read.
    pub fn of(
        queues: Option<&'t Entry<'t>>,
        graphs: Option<&'t Entry<'t>>,
        fused: Option<&'t Entry<'t>>,
        sink: &mut Diagnostics,
    ) -> Self {
        let mut names = Self::default();
        for entry in section(queues, sink) {
            names.add_queue(entry, sink);
        }
        for entry in section(graphs, sink) {
            names.add_graph(entry, sink);
        }
        for entry in section(fused, sink) {
            match entry.key.parse() {
                Ok(id) => {
                    names.fused.insert(id, FusedId(names.fused_list.len()));
                    names.fused_list.push((id, entry));
                }
                Err(_) => {
                    let message = format!("the id of a fused operation is `{}`, not a number", short(&entry.key));
                    sink.push(Diagnostic::new(code::BAD_NUMBER, entry.at, message));
                }
            }
        }
        names
    }

    fn add_queue(&mut self, entry: &'t Entry<'t>, sink: &mut Diagnostics) {
        let spread = device_list(&entry.value, sink);
        if let Some(devices) = &spread {
            self.spread.insert(&entry.key, devices.clone());
        }
        for device in each(spread.as_deref()) {
            let name = on(&entry.key, device);
            if device.is_some() && !self.room(1, entry.at, sink) {
                return;
            }
            if self.queues.insert(name.clone(), QueueId(self.queue_list.len())).is_some() {
                let message = format!("there is another queue `{}`", short(&name));
                sink.push(Diagnostic::new(code::DUPLICATE_NAME, entry.at, message));
            }
            let first = spread.as_ref().and_then(|devices| devices.first().copied());
            self.queue_list.push(QueueName { name, device: device.zip(first), entry });
        }
    }

    fn add_graph(&mut self, entry: &'t Entry<'t>, sink: &mut Diagnostics) {
        let spread = device_list(&entry.value, sink);
        if let Some(devices) = &spread {
            self.spread.insert(&entry.key, devices.clone());
        }
        for device in each(spread.as_deref()) {
            let graph = GraphId(self.graph_list.len());
            let name = on(&entry.key, device);
            let fields = entry.value.map().map_or(0, <[_]>::len);
            if device.is_some() && !self.room(1 + fields, entry.at, sink) {
                return;
            }
            if self.graphs.insert(name.clone(), graph).is_some() {
                let message = format!("there is another graph `{}`", short(&name));
                sink.push(Diagnostic::new(code::DUPLICATE_NAME, entry.at, message));
            }
            let mut ops = Vec::new();
            let fields = entry.value.map().unwrap_or_default().iter();
            for op in fields.filter(|op| !["target_device", "input_count"].contains(&&*op.key)) {
                let name = on(&op.key, device);
                let id = OpId { graph, op: ops.len() };
                if let Some(before) = self.ops.insert(name.clone(), id) {
                    let first = if before.graph == graph { None } else { self.op_entry(before) };
                    let message = format!("another operation has the name `{}`", short(&name));
                    sink.push(
                        Diagnostic::new(code::DUPLICATE_NAME, op.at, message)
                            .context(first.map(|entry| entry.at), "here")
                            .help("names of operations are unique in the whole netlist"),
                    );
                }
                ops.push(OpName { name, entry: op });
            }
            self.graph_list.push(GraphName { name, device, entry, ops });
        }
    }

    /// Whether there is room for more parts; the first time that there is none is an error.
    pub fn room(&mut self, parts: usize, at: Span, sink: &mut Diagnostics) -> bool {
        let before = self.parts;
        self.parts = before.saturating_add(parts);
        if before <= PARTS && self.parts > PARTS {
            let message = format!("with its lists of devices written out the netlist has more than {PARTS} parts");
            sink.push(Diagnostic::new(code::TOO_LARGE, at, message).help("name fewer devices"));
        }
        self.parts <= PARTS
    }

    fn op_entry(&self, id: OpId) -> Option<&'t Entry<'t>> {
        self.graph_list.get(id.graph.0)?.ops.get(id.op).map(|op| op.entry)
    }

    /// The queue that a name refers to on a device.
    pub fn queue(&self, name: &str, device: Option<u32>) -> Option<QueueId> {
        find(&self.queues, name, device)
    }

    /// The operation that a name refers to on a device.
    pub fn op(&self, name: &str, device: Option<u32>) -> Option<OpId> {
        find(&self.ops, name, device)
    }

    /// The graphs that a name refers to: one, or one for each device.
    pub fn graphs(&self, name: &str) -> Vec<GraphId> {
        match self.spread.get(name) {
            Some(devices) => devices.iter().filter_map(|d| self.graphs.get(&*on(name, Some(*d)))).copied().collect(),
            None => self.graphs.get(name).into_iter().copied().collect(),
        }
    }

    /// The queues that a name refers to.
    pub fn queues(&self, name: &str) -> Vec<QueueId> {
        match self.spread.get(name) {
            Some(devices) => devices.iter().filter_map(|d| self.queues.get(&*on(name, Some(*d)))).copied().collect(),
            None => self.queues.get(name).into_iter().copied().collect(),
        }
    }

    /// A fused operation.
    pub fn fused(&self, id: u32) -> Option<FusedId> {
        self.fused.get(&id).copied()
    }

    /// Reports an unknown name, with the most similar queue and, if `ops`, operation.
    pub fn unknown(&self, at: Span, message: String, wrong: &str, ops: bool, sink: &mut Diagnostics) {
        let mut known: Vec<&str> = self.queue_list.iter().map(|queue| &*queue.name).collect();
        if ops {
            known.extend(self.graph_list.iter().flat_map(|graph| graph.ops.iter().map(|op| &*op.name)));
        }
        // Comparing with thousands of names costs more than it helps.
        known.truncate(4096);
        sink.push(suggest(Diagnostic::new(code::UNKNOWN_NAME, at, message), wrong, &known));
    }
}

fn find<T: Copy>(names: &HashMap<Cow<'_, str>, T>, name: &str, device: Option<u32>) -> Option<T> {
    let here = device.and_then(|device| names.get(&*on(name, Some(device))));
    here.or_else(|| names.get(name)).copied()
}

fn on(name: &str, device: Option<u32>) -> Cow<'_, str> {
    match device {
        Some(device) => Cow::Owned(format!("{name}.{device}")),
        None => Cow::Borrowed(name),
    }
}

fn each(devices: Option<&[u32]>) -> Vec<Option<u32>> {
    devices.map_or(vec![None], |devices| devices.iter().copied().map(Some).collect())
}

fn section<'t>(entry: Option<&'t Entry<'t>>, sink: &mut Diagnostics) -> &'t [Entry<'t>] {
    let Some(entry) = entry else { return &[] };
    if entry.value.map().is_none() && !entry.value.is_null() && entry.value.list().is_none_or(|list| !list.is_empty()) {
        let message = format!("the section `{}` is {}, not a map", entry.key, entry.value.kind());
        sink.push(Diagnostic::new(code::WRONG_KIND, entry.value.span, message));
    }
    entry.value.map().unwrap_or_default()
}

/// The devices, if `target_device` is a list.
fn device_list(node: &Node, sink: &mut Diagnostics) -> Option<Vec<u32>> {
    let items = node.get("target_device")?.list()?;
    let one = |item| integer(item, "target_device", 0..=DEVICES - 1, sink).and_then(|value| u32::try_from(value).ok());
    let mut devices: Vec<u32> = items.iter().filter_map(one).collect();
    let mut seen = std::collections::HashSet::new();
    devices.retain(|device| seen.insert(*device));
    Some(devices).filter(|devices| !devices.is_empty())
}

/// A single target device.
pub fn target_device(node: &Node, sink: &mut Diagnostics) -> Option<u32> {
    if node.list().is_some_and(<[_]>::is_empty) {
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, "`target_device` names no device"));
        return None;
    }
    integer(node, "target_device", 0..=DEVICES - 1, sink).and_then(|value| u32::try_from(value).ok())
}
