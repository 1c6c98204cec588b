//! Warnings about pointers and sizes with which a program is legal and does not do what it looks
//! like: each run of such a program reads old entries, or waits for ever.
//!
//! Pointers run over twice the entries of a queue, so that full and empty differ (tt-budabackend,
//! `common/io_lib.cpp`, `tt_queue_ptr`), and only a global read pointer frees entries.

use super::Check;
use crate::code;
use crate::tree::Span;
use crate::types::{GraphId, Op, Producer, Queue, QueueId, QueueKind, QueueSettings, Source, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a program does with its variables and its queues.
#[derive(Default)]
pub(super) struct Trace<'a> {
    /// At which numbers each variable wraps, as far as they are known, and where that is written.
    pub wraps: HashMap<&'a str, BTreeMap<i64, Span>>,
    /// Variables that `varinst` changes.
    pub moving: HashSet<&'a str>,
    /// Variables that the caller sets.
    pub given: HashSet<&'a str>,
    /// Settings of queues.
    pub uses: Vec<Use<'a>>,
    /// Graphs that it executes.
    pub graphs: BTreeSet<GraphId>,
}

/// Settings of a queue for one execution.
pub(super) struct Use<'a> {
    pub graph: GraphId,
    pub settings: &'a QueueSettings,
    /// Whether it stands in a loop.
    pub again: bool,
    /// Position of `rd_ptr_global`.
    pub at: Span,
}

impl Use<'_> {
    /// Whether the same entry is read for all inputs.
    fn holds(&self) -> bool {
        self.settings.prologue || self.settings.epilogue || stride(&self.settings.rd_ptr_autoinc, 1) == Some(0)
    }

    /// Whether the device frees entries while the epoch runs, as far as it is known.
    fn pops(&self) -> bool {
        stride(&self.settings.global_rdptr_autoinc, 0) != Some(0)
    }
}

/// A stride; `None` if it depends on a variable.
fn stride(value: &Option<Value>, default: i64) -> Option<i64> {
    match value {
        None => Some(default),
        Some(Value::Immediate(number)) => Some(*number),
        Some(Value::Variable(_)) => None,
    }
}

impl<'a> Trace<'a> {
    /// Whether the program moves a pointer.
    fn is_moving(&self, pointer: &Option<Value>) -> bool {
        matches!(pointer, Some(Value::Variable(name)) if self.moving.contains(name.as_str()))
    }

    /// Whether a pointer is not the same in every execution.
    fn varies(&self, pointer: &Option<Value>) -> bool {
        let is_given = matches!(pointer, Some(Value::Variable(name)) if self.given.contains(name.as_str()));
        is_given || self.is_moving(pointer)
    }

    /// Where a pointer wraps at a number.
    fn wraps_at(&self, pointer: &Option<Value>, wanted: i64) -> Option<Span> {
        let Some(Value::Variable(name)) = pointer else { return None };
        self.wraps.get(name.as_str())?.get(&wanted).copied()
    }

    /// The uses of queues, without rams.
    fn of_queues(&self, check: &Check<'a, '_>) -> Vec<(&Use<'a>, &'a Queue)> {
        let uses = self.uses.iter().filter_map(|one| Some((one, check.queue(one.settings.queue)?)));
        uses.filter(|(_, queue)| queue.kind == QueueKind::Queue).collect()
    }
}

/// Whether a pointer is a variable that is not called constant.
fn is_variable(pointer: &Option<Value>) -> bool {
    matches!(pointer, Some(Value::Variable(name)) if !name.starts_with("$c_"))
}

/// Checks all programs.
pub(super) fn check<'a>(check: &mut Check<'a, '_>, traces: &[Trace<'a>]) {
    for trace in traces {
        wraps(check, trace);
        room(check, trace);
    }
    fixed(check, traces);
}

/// Pointers that wrap at the entries of a queue. Only reading in a circle, from a queue that nobody
/// frees, is meant so; and a pointer that wraps at 1 stays at 0, where it reads the only entry of a
/// queue as a constant.
fn wraps<'a>(check: &mut Check<'a, '_>, trace: &Trace<'a>) {
    let mut found: BTreeMap<Span, (&str, u32)> = BTreeMap::new();
    for (one, queue) in trace.of_queues(check) {
        if one.holds() || queue.entries == 1 {
            continue;
        }
        let (settings, entries) = (one.settings, i64::from(queue.entries));
        let of_local = || trace.wraps_at(&settings.rd_ptr_local, entries);
        let local = if trace.is_moving(&settings.rd_ptr_global) { of_local() } else { None };
        for at in trace.wraps_at(&settings.rd_ptr_global, entries).into_iter().chain(local) {
            found.entry(at).or_insert((&queue.name, queue.entries));
        }
    }
    for (at, (name, entries)) in found {
        let message = format!("a read pointer of `{name}` wraps at {entries}, its entries");
        let help =
            format!("pointers of a queue of {entries} run from 0 to {}: wrap at {}", 2 * entries - 1, 2 * entries);
        check.warn(code::WRAP_ENTRIES, at, message, &help);
    }
}

/// Graphs that take more inputs than a queue holds that is not freed meanwhile.
fn room<'a>(check: &mut Check<'a, '_>, trace: &Trace<'a>) {
    let mut free: HashMap<(GraphId, QueueId), bool> = HashMap::new();
    for one in &trace.uses {
        *free.entry((one.graph, one.settings.queue)).or_insert(true) &= one.holds() || one.pops();
    }
    for graph_id in &trace.graphs {
        let graph = check.net.graph(*graph_id);
        if check.src.broken.graphs.contains(graph_id) {
            continue;
        }
        for id in read_by(&graph.ops) {
            let Some(queue) = check.queue(id).filter(|queue| queue.kind == QueueKind::Queue) else { continue };
            // Without settings each entry is read once and not freed.
            let free = free.get(&(*graph_id, id)).copied().unwrap_or(queue.producer == Producer::Host);
            if !free && graph.input_count > queue.entries {
                let message = format!(
                    "graph `{}` takes {} inputs of queue `{}`, which holds {}",
                    graph.name, graph.input_count, queue.name, queue.entries
                );
                let at = check.graph_at(*graph_id, "input_count");
                let help = "make input_count smaller, the queue larger, or let global_rdptr_autoinc free each entry";
                check.warn(code::INPUT_ROOM, at, message, help);
            }
        }
    }
}

/// Queues that operations read, each once, in order.
fn read_by(ops: &[Op]) -> BTreeSet<QueueId> {
    let inputs = ops.iter().flat_map(|op| &op.inputs);
    inputs
        .filter_map(|input| match input.source {
            Source::Queue(queue) => Some(queue),
            Source::Op(_) => None,
        })
        .collect()
}

/// Queues that no program frees, though it reads on: their local read pointer moves and the global
/// one does not, or a loop has variables for both and moves neither. Such a queue fills up. What is
/// meant to stay has a constant's name, `$c_`.
fn fixed<'a>(check: &mut Check<'a, '_>, traces: &[Trace<'a>]) {
    let freed: HashSet<QueueId> = traces
        .iter()
        .flat_map(|trace| trace.uses.iter().filter(|one| one.pops() || trace.varies(&one.settings.rd_ptr_global)))
        .map(|one| one.settings.queue)
        .collect();
    let mut reported = HashSet::new();
    for trace in traces {
        for (one, queue) in trace.of_queues(check) {
            let (settings, entries) = (one.settings, i64::from(queue.entries));
            let in_a_circle = trace.wraps_at(&settings.rd_ptr_local, entries).is_some();
            let forgotten = one.again && [&settings.rd_ptr_local, &settings.rd_ptr_global].into_iter().all(is_variable);
            let goes_on = (trace.is_moving(&settings.rd_ptr_local) || forgotten) && !one.holds() && !in_a_circle;
            if goes_on && !freed.contains(&settings.queue) && reported.insert(settings.queue) {
                let message = format!("no program moves the global read pointer of `{}`", queue.name);
                let help = "what is read stays in the queue, which fills up: move rd_ptr_global like rd_ptr_local";
                check.warn(code::POINTER_FIXED, one.at, message, help);
            }
        }
    }
}
