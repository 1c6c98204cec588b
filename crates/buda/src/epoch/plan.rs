//! The static plan of a netlist: producers of queues, groups of linked graphs, and the order
//! of operations.

use std::collections::{BTreeMap, BTreeSet};
use tilework_netlist::types::{GraphId, Netlist, OpId, Producer, QueueId, QueueKind, Source};

/// What every epoch needs to know of a netlist.
#[derive(Debug)]
pub struct Plan {
    outputs: BTreeMap<OpId, Vec<QueueId>>,
    /// The group of linked graphs that each graph belongs to.
    group_of: Vec<usize>,
    groups: Vec<Vec<GraphId>>,
}

impl Plan {
    /// The plan of a netlist.
    pub fn new(netlist: &Netlist) -> Self {
        let mut outputs: BTreeMap<OpId, Vec<QueueId>> = BTreeMap::new();
        for (i, queue) in netlist.queues.iter().enumerate() {
            if let Producer::Op(op) = queue.producer {
                outputs.entry(op).or_default().push(QueueId(i));
            }
        }
        let group_of = groups(netlist);
        let mut groups = vec![Vec::new(); group_of.iter().max().map_or(0, |last| last + 1)];
        group_of.iter().enumerate().for_each(|(graph, group)| groups[*group].push(GraphId(graph)));
        Self { outputs, group_of, groups }
    }

    /// Queues that an operation writes.
    pub fn outputs(&self, op: OpId) -> &[QueueId] {
        self.outputs.get(&op).map_or(&[], Vec::as_slice)
    }

    /// The group of linked graphs that a graph belongs to, numbered in the order of the netlist.
    pub fn group_of(&self, graph: GraphId) -> usize {
        self.group_of[graph.0]
    }

    /// The graphs of a group, in the order of the netlist.
    pub fn group(&self, group: usize) -> &[GraphId] {
        &self.groups[group]
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }
}

/// Numbers the groups of graphs that are linked by their operations.
fn groups(netlist: &Netlist) -> Vec<usize> {
    let mut parent: Vec<usize> = (0..netlist.graphs.len()).collect();
    for (graph, ops) in netlist.graphs.iter().enumerate() {
        for source in ops.ops.iter().flat_map(|op| &op.inputs).map(|input| input.source) {
            if let Source::Op(other) = source {
                let (a, b) = (root(&mut parent, graph), root(&mut parent, other.graph.0));
                // The smaller index stays root, so that groups are in the order of the netlist.
                parent[a.max(b)] = a.min(b);
            }
        }
    }
    let mut numbers = BTreeMap::new();
    (0..parent.len())
        .map(|graph| {
            let next = numbers.len();
            *numbers.entry(root(&mut parent, graph)).or_insert(next)
        })
        .collect()
}

fn root(parent: &mut [usize], mut of: usize) -> usize {
    while parent[of] != of {
        parent[of] = parent[parent[of]];
        of = parent[of];
    }
    of
}

/// Operations of some graphs in topological order, otherwise in the order of the file. A queue
/// between two of them counts as a link unless that makes a cycle: then the queue must hold entries
/// from before.
pub fn order(netlist: &Netlist, graphs: &[GraphId]) -> Vec<OpId> {
    let ops: Vec<OpId> = graphs
        .iter()
        .flat_map(|graph| (0..netlist.graph(*graph).ops.len()).map(|op| OpId { graph: *graph, op }))
        .collect();
    match sorted(netlist, &ops, true) {
        order if order.len() == ops.len() => order,
        _ => match sorted(netlist, &ops, false) {
            order if order.len() == ops.len() => order,
            // A cycle of operations: the deadlock is reported when they run.
            _ => ops,
        },
    }
}

fn sorted(netlist: &Netlist, ops: &[OpId], through_queues: bool) -> Vec<OpId> {
    let here: BTreeSet<OpId> = ops.iter().copied().collect();
    let mut before: BTreeMap<OpId, BTreeSet<OpId>> = BTreeMap::new();
    let mut after: BTreeMap<OpId, BTreeSet<OpId>> = BTreeMap::new();
    for &op in ops {
        for source in netlist.op(op).inputs.iter().map(|input| input.source) {
            let producer = match source {
                Source::Op(producer) => producer,
                Source::Queue(queue) if through_queues && netlist.queue(queue).kind == QueueKind::Queue => {
                    match netlist.queue(queue).producer {
                        Producer::Op(producer) => producer,
                        Producer::Host => continue,
                    }
                }
                Source::Queue(_) => continue,
            };
            if here.contains(&producer) {
                before.entry(op).or_default().insert(producer);
                after.entry(producer).or_default().insert(op);
            }
        }
    }
    let mut ready: BTreeSet<OpId> = ops.iter().copied().filter(|op| !before.contains_key(op)).collect();
    let mut order = Vec::with_capacity(ops.len());
    while let Some(op) = ready.pop_first() {
        order.push(op);
        for next in after.get(&op).into_iter().flatten() {
            let waits = before.get_mut(next).expect("links are entered in both directions");
            waits.remove(&op);
            if waits.is_empty() {
                ready.insert(*next);
            }
        }
    }
    order
}
