//! A checked netlist: every name is resolved, every arity right.
//!
//! Order is the file's everywhere: queues, graphs, operations, programs, fused operations.
//! Positions stay with what an engine may have to speak of when it runs.

mod fused;
mod kind;
mod op;
mod program;
mod queue;
mod shape;

use crate::tree::Node;
pub use fused::{FusedOp, FusedSource, FusedStep, FusedTarget};
pub use kind::{BinaryKind, Granularity, Identity, Matmul, OpKind, Piece, QuantKind, ReduceDim, TopKOutput, UnaryKind};
pub use op::{
    Ethernet, Fidelity, Graph, Hints, KernelBroadcast, Op, Operand, Post, Relu, ReluMode, Source, VectorMode,
};
pub use program::{Instruction, InstructionKind, Program, QueueSettings, Value, VarOp, Variable};
pub use queue::{Buffer, Layout, Location, Producer, Queue, QueueKind};
pub use shape::{Blocks, Dim, Order, Pad, Shape, Size, Tm};

/// A place in the file, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// Index of a queue in [`Netlist::queues`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(pub usize);

/// Index of a graph in [`Netlist::graphs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphId(pub usize);

/// An operation: its graph and its index in [`Graph::ops`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId {
    /// The graph.
    pub graph: GraphId,
    /// The index there.
    pub op: usize,
}

/// Index of a fused operation in [`Netlist::fused_ops`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FusedId(pub usize);

/// A netlist.
#[derive(Debug, Clone, PartialEq)]
pub struct Netlist {
    /// Architectures that the netlist is written for; at least one.
    pub archs: Vec<Arch>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Graphs.
    pub graphs: Vec<Graph>,
    /// Programs.
    pub programs: Vec<Program>,
    /// Fused operations.
    pub fused_ops: Vec<FusedOp>,
    /// How the netlist's own test makes its inputs.
    pub stimulus: Option<Stimulus>,
    /// The section `test-config` as it stands.
    pub test_config: Option<Node<'static>>,
    /// The section `performance-check` as it stands.
    pub performance_check: Option<Node<'static>>,
}

/// Architecture of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// Grayskull.
    Grayskull,
    /// Wormhole A0.
    Wormhole,
    /// Wormhole B0.
    WormholeB0,
    /// Blackhole.
    Blackhole,
}

/// How a test makes a tensor (`test-config`, `stimulus-config`).
#[derive(Debug, Clone, PartialEq)]
pub struct Stimulus {
    /// For every queue without one of its own.
    pub default: Option<StimulusKind>,
    /// For single queues.
    pub overrides: Vec<(QueueId, StimulusKind)>,
}

/// Distribution of a stimulus.
#[derive(Debug, Clone, PartialEq)]
pub enum StimulusKind {
    /// Uniform between two bounds.
    Uniform(f32, f32),
    /// Normal with mean and standard deviation.
    Normal(f32, f32),
    /// One value.
    Constant(f32),
    /// Every tile holds its number: base and step.
    DebugTileId(f32, f32),
    /// Another kind, by name: accepted, not made.
    Other(String),
}

impl Netlist {
    /// A queue.
    pub fn queue(&self, id: QueueId) -> &Queue {
        &self.queues[id.0]
    }

    /// A graph.
    pub fn graph(&self, id: GraphId) -> &Graph {
        &self.graphs[id.0]
    }

    /// An operation.
    pub fn op(&self, id: OpId) -> &Op {
        &self.graphs[id.graph.0].ops[id.op]
    }

    /// A fused operation.
    pub fn fused(&self, id: FusedId) -> &FusedOp {
        &self.fused_ops[id.0]
    }
}
