//! The rules of netlists beyond the grammar (tt-budabackend, `docs/public/netlist.md` and the
//! checks in `netlist/`).
//!
//! Rules that hold on every architecture are checked once. The others are checked for each
//! architecture that the netlist names: it is enough that one satisfies them all; violations on
//! the others become warnings, because the original's netlists often name architectures that they
//! cannot be built for (docs/netlist.md). Broken parts are skipped, so that one mistake is
//! reported once.

mod format;
mod fused;
mod memory;
mod op;
mod place;
mod pointers;
mod program;
mod queue;
mod shape;

use crate::code::{self, Code};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::read::{ARCHS, Source};
use crate::tree::{Entry, Node, Span};
use crate::types::{Arch, Graph, GraphId, Netlist, Op, OpId, Queue, QueueId};

/// Checks a netlist and returns the architectures that it is valid for.
pub(crate) fn check(source: &Source<'_>, wanted: Option<Arch>, sink: &mut Diagnostics) -> Vec<Arch> {
    let mut general = Check::new(source, sink.fork());
    queue::check(&mut general);
    op::check(&mut general);
    shape::check(&mut general);
    format::check(&mut general);
    fused::check(&mut general);
    program::check(&mut general);
    place::check(&mut general);
    sink.append(general.sink);
    let archs = match wanted {
        Some(arch) if !source.netlist.archs.is_empty() && !source.netlist.archs.contains(&arch) => {
            let message = format!("the netlist is not written for {}", arch.name());
            let names: Vec<&str> = source.netlist.archs.iter().map(|arch| arch.name()).collect();
            let finding = Diagnostic::new(code::ARCH_NOT_LISTED, source.archs, message);
            sink.push(finding.help(format!("it names {}", names.join(", "))));
            return Vec::new();
        }
        Some(arch) => vec![arch],
        None => source.netlist.archs.clone(),
    };
    let of_arch = |arch: &Arch| {
        let mut check = Check::new(source, sink.fork());
        queue::check_arch(&mut check, *arch);
        op::check_arch(&mut check, *arch);
        format::check_arch(&mut check, *arch);
        fused::check_arch(&mut check, *arch);
        place::check_arch(&mut check, *arch);
        memory::check_arch(&mut check, *arch);
        (*arch, check.sink)
    };
    let found: Vec<(Arch, Diagnostics)> = archs.iter().map(of_arch).collect();
    let mut usable: Vec<Arch> = found.iter().filter(|(_, f)| f.errors() == 0).map(|(arch, _)| *arch).collect();
    // Wormhole A0 preceded B0 and has four times its destination registers: if the netlist also
    // names B0, being valid for A0 alone is not enough.
    if usable == [Arch::Wormhole] && archs.contains(&Arch::WormholeB0) {
        usable.clear();
    }
    merge(&found, !usable.is_empty(), sink);
    usable
}

/// Merges the findings of the architectures: one for all that say the same.
fn merge(found: &[(Arch, Diagnostics)], soft: bool, sink: &mut Diagnostics) {
    let mut all: Vec<(Diagnostic, Vec<Arch>)> = Vec::new();
    for (arch, findings) in found {
        for finding in findings.list() {
            match all.iter_mut().find(|(known, _)| known == finding) {
                Some((_, archs)) => archs.push(*arch),
                None => all.push((finding.clone(), vec![*arch])),
            }
        }
    }
    for (mut finding, archs) in all {
        if archs.len() < found.len() {
            let names: Vec<&str> = archs.iter().map(|arch| arch.name()).collect();
            finding.message = format!("on {}: {}", names.join(", "), finding.message);
        }
        if soft && finding.severity == Severity::Error {
            finding = finding.warning();
        }
        sink.push(finding);
    }
}

impl Arch {
    /// The architecture's name in netlists.
    pub fn name(self) -> &'static str {
        ARCHS.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}

/// What the rules read, and where they report.
struct Check<'a, 't> {
    net: &'a Netlist,
    src: &'a Source<'t>,
    sink: Diagnostics,
}

impl<'a, 't> Check<'a, 't> {
    fn new(source: &'a Source<'t>, sink: Diagnostics) -> Self {
        Self { net: &source.netlist, src: source, sink }
    }

    /// Reports an error.
    fn error(&mut self, code: Code, at: Span, message: impl Into<String>, help: &str) {
        let finding = Diagnostic::new(code, at, message);
        self.sink.push(if help.is_empty() { finding } else { finding.help(help) });
    }

    /// Reports a warning.
    fn warn(&mut self, code: Code, at: Span, message: impl Into<String>, help: &str) {
        let finding = Diagnostic::new(code, at, message).warning();
        self.sink.push(if help.is_empty() { finding } else { finding.help(help) });
    }

    /// The queues that are not broken.
    fn queues(&self) -> impl Iterator<Item = (QueueId, &'a Queue)> + use<'a> {
        let broken = &self.src.broken.queues;
        let all = self.net.queues.iter().enumerate().map(|(index, queue)| (QueueId(index), queue));
        all.filter(move |(id, _)| !broken.contains(id))
    }

    /// All graphs, also those with broken operations.
    fn graphs(&self) -> impl Iterator<Item = (GraphId, &'a Graph)> + use<'a> {
        self.net.graphs.iter().enumerate().map(|(index, graph)| (GraphId(index), graph))
    }

    /// The operations of all graphs that are not broken.
    fn ops(&self) -> impl Iterator<Item = (OpId, &'a Op)> + use<'a> {
        let broken = &self.src.broken.ops;
        let all = self
            .graphs()
            .flat_map(|(graph, of)| of.ops.iter().enumerate().map(move |(op, value)| (OpId { graph, op }, value)));
        all.filter(move |(id, _)| !broken.contains(id))
    }

    /// Checks all rules of single operations on each operation that is not broken.
    fn each_op(&mut self, rules: &[fn(&mut Check<'_, '_>, OpId, &Op)]) {
        for (id, op) in self.ops() {
            rules.iter().for_each(|rule| rule(self, id, op));
        }
    }

    /// A queue, unless it is broken.
    fn queue(&self, id: QueueId) -> Option<&'a Queue> {
        if self.src.broken.queues.contains(&id) { None } else { self.net.queues.get(id.0) }
    }

    /// An operation, unless it is broken.
    fn op(&self, id: OpId) -> Option<&'a Op> {
        if self.src.broken.ops.contains(&id) { None } else { self.net.graphs.get(id.graph.0)?.ops.get(id.op) }
    }

    /// Position of a field of a queue; of the queue if the field is absent.
    fn queue_at(&self, id: QueueId, field: &str) -> Span {
        field_at(self.src.queues[id.0], field)
    }

    /// Position of a field of a graph; of the graph if the field is absent.
    fn graph_at(&self, id: GraphId, field: &str) -> Span {
        field_at(self.src.graphs[id.0], field)
    }

    /// Position of a field of an operation; of the operation if the field is absent.
    fn op_at(&self, id: OpId, field: &str) -> Span {
        field_at(self.src.ops[id.graph.0][id.op], field)
    }

    /// Position of an item of a list field of an operation.
    fn item_at(&self, id: OpId, field: &str, index: usize) -> Span {
        let list = self.src.ops[id.graph.0][id.op].value.get(field).and_then(Node::list);
        list.and_then(|items| items.get(index)).map_or_else(|| self.op_at(id, field), |node| node.span)
    }

    /// Position of an attribute of an operation.
    fn attribute_at(&self, id: OpId, name: &str) -> Span {
        let attributes = self.src.ops[id.graph.0][id.op].value.get("attributes");
        attributes.and_then(|node| node.get(name)).map_or_else(|| self.op_at(id, "attributes"), |node| node.span)
    }
}

fn field_at(entry: &Entry, field: &str) -> Span {
    entry.value.get(field).map_or(entry.at, |node| node.span)
}
