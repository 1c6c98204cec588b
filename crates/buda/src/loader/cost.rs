//! Cost of an epoch of a graph: cores and duration.
//!
//! Operations of a graph work on different inputs at the same time, so that an epoch takes the
//! longest chain for its first input and the slowest operation for each further one. All numbers
//! come from [`super::timing`].

use super::timing;
use crate::epoch::plan;
use std::collections::{BTreeMap, BTreeSet};
use tilework_netlist::size::entry_bytes;
use tilework_netlist::types::{Arch, GraphId, Netlist, Op, OpId, Producer, QueueId, Source};

/// The most rows or columns of a grid that are counted; no chip has as many.
const MOST_CORES: u32 = 64;

/// Upper bound of an epoch, so that a hundred million epochs fit a 64-bit clock.
const MOST_CYCLES: u64 = 1 << 35;

/// A core by row and column.
pub type Core = (u32, u32);

/// Cost of an epoch of a graph.
#[derive(Debug, Clone)]
pub struct GraphCost {
    /// Its cores.
    pub cores: BTreeSet<Core>,
    /// From the first input to the last output.
    pub cycles: u64,
    /// Queues that it reads.
    pub reads: BTreeSet<QueueId>,
    /// Queues that it writes.
    pub writes: BTreeSet<QueueId>,
}

impl GraphCost {
    /// The cost of a graph.
    pub fn new(netlist: &Netlist, graph: GraphId, arch: Arch) -> Self {
        let is = netlist.graph(graph);
        let inputs = is.ops.iter().flat_map(|op| &op.inputs);
        let reads = inputs.filter_map(|input| match input.source {
            Source::Queue(queue) => Some(queue),
            Source::Op(_) => None,
        });
        let writes = netlist.queues.iter().enumerate().filter_map(|(i, queue)| match queue.producer {
            Producer::Op(op) if op.graph == graph => Some(QueueId(i)),
            _ => None,
        });
        Self {
            cores: is.ops.iter().flat_map(cores).collect(),
            cycles: cycles(netlist, graph, arch),
            reads: reads.collect(),
            writes: writes.collect(),
        }
    }
}

fn cores(op: &Op) -> impl Iterator<Item = Core> {
    let (rows, columns) = match op.grid_transpose {
        false => (op.blocks.grid.r, op.blocks.grid.c),
        true => (op.blocks.grid.c, op.blocks.grid.r),
    };
    let at = op.grid_loc;
    let (rows, columns) = (rows.min(MOST_CORES), columns.min(MOST_CORES));
    let place = move |r: u32, c: u32| (at.r.saturating_add(r).min(MOST_CORES), at.c.saturating_add(c).min(MOST_CORES));
    (0..rows).flat_map(move |r| (0..columns).map(move |c| place(r, c)))
}

fn cycles(netlist: &Netlist, graph: GraphId, arch: Arch) -> u64 {
    let mut done: BTreeMap<OpId, u64> = BTreeMap::new();
    let (mut chain, mut slowest) = (0, 0);
    for id in plan::order(netlist, &[graph]) {
        let op = netlist.op(id);
        let own = one_input(netlist, op, arch);
        let before = op.inputs.iter().filter_map(|input| match input.source {
            Source::Op(producer) => done.get(&producer).copied(),
            Source::Queue(_) => None,
        });
        let end = before.max().unwrap_or(0).saturating_add(own);
        done.insert(id, end);
        chain = chain.max(end);
        slowest = slowest.max(own);
    }
    let further = u64::from(netlist.graph(graph).input_count.saturating_sub(1));
    chain.saturating_add(slowest.saturating_mul(further)).min(MOST_CYCLES)
}

/// Cycles for one input of one operation: its tiles on one core, or the reads of its operands from
/// DRAM, whichever takes longer.
fn one_input(netlist: &Netlist, op: &Op, arch: Arch) -> u64 {
    let tiles = op.blocks.entry_tiles();
    let reads = op.inputs.iter().filter_map(|input| match input.source {
        Source::Queue(queue) => Some(netlist.queue(queue)),
        Source::Op(_) => None,
    });
    let bytes = reads.map(|queue| entry_bytes(&queue.blocks, queue.format, arch).unwrap_or(u64::MAX));
    let read = bytes.map(|bytes| timing::dram_read(bytes.min(1 << 48))).max().unwrap_or(0);
    tiles.saturating_mul(timing::tile(op)).max(read)
}
