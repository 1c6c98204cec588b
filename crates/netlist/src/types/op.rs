//! Graphs and their operations, with what all kinds of them have.

use super::{Blocks, OpId, OpKind, Pad, Position, QueueId, Size, Tm};
use tilework_dtype::DType;

/// A graph: the operations of one epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Where the file defines it.
    pub at: Position,
    /// Device that runs it.
    pub target_device: u32,
    /// Tensors that one execution takes.
    pub input_count: u32,
    /// Operations.
    pub ops: Vec<Op>,
}

/// What an operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A queue.
    Queue(QueueId),
    /// The output of an operation, possibly of another graph (temporal epochs).
    Op(OpId),
}

/// One operand of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// Where it comes from.
    pub source: Source,
    /// Format in which it is read.
    pub format: DType,
    /// Padding to take off before the TMs.
    pub unpad: Option<Pad>,
    /// TMs, in order.
    pub tms: Vec<Tm>,
    /// Padding to put on after the TMs.
    pub pad: Option<Pad>,
    /// `kernel_broadcast`: tiles of the operand that the kernel keeps and reads again.
    pub kernel_broadcast: Option<KernelBroadcast>,
    /// `input_buf_min_size_tiles`, when given.
    pub min_buffer_tiles: Option<u32>,
    /// `input_dram_io_buf_size_tiles`, when given.
    pub dram_io_buffer_tiles: Option<u32>,
}

/// `kernel_broadcast` of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelBroadcast {
    /// Tiles.
    pub tiles: u32,
    /// Again for each t.
    pub per_t: bool,
}

/// `math_fidelity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Fidelity {
    LoFi,
    HiFi2,
    HiFi3,
    HiFi4,
    HiFi2A,
    HiFi2B,
}

/// An operation of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// Its name.
    pub name: String,
    /// Where the file defines it.
    pub at: Position,
    /// What it computes.
    pub kind: OpKind,
    /// Row and column of its first core, in the logical grid.
    pub grid_loc: Size,
    /// Its rectangle is transposed on the grid.
    pub grid_transpose: bool,
    /// Operands.
    pub inputs: Vec<Operand>,
    /// Shape of its output.
    pub blocks: Blocks,
    /// Formats of accumulator, intermediate buffer and output.
    pub acc_format: DType,
    /// Format of the intermediate buffer.
    pub intermed_format: DType,
    /// Format of the output.
    pub out_format: DType,
    /// Fidelity.
    pub fidelity: Fidelity,
    /// Output buffer in mblocks.
    pub buf_size_mb: u32,
    /// Bytes for a larger overlay blob.
    pub overlay_size: u32,
    /// Writes rows instead of tiles.
    pub untilize_output: bool,
    /// Adds to what its output ram holds.
    pub gradient_op: bool,
    /// Queues that it reads, each with an operation of the graph that reads the queue for it.
    pub forked_dram_inputs: Vec<(String, String)>,
    /// What is done with the result.
    pub post: Post,
    /// Attributes that do not change results on their own.
    pub hints: Hints,
}

/// What every operation may do with its result.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Post {
    /// ReLU, for operations that are not fused.
    pub relu: Option<Relu>,
    /// Only a part of each tile is written.
    pub vector: Option<VectorMode>,
}

/// ReLU after an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relu {
    /// Its mode.
    pub mode: ReluMode,
    /// Its threshold.
    pub threshold: f32,
}

/// Mode of a ReLU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReluMode {
    /// x when x >= threshold, else 0.
    Min,
    /// x clamped to 0..threshold.
    Max,
}

/// `vector`: which part of each tile an operation on the vector unit writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VectorMode {
    /// Rows 0 to 3.
    R,
    /// Columns 0 to 15.
    C,
    /// All.
    Rc,
}

/// Attributes that are kept for reports and checks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hints {
    /// `single_tile`.
    pub single_tile: bool,
    /// `approximate_mode`.
    pub approximate: bool,
    /// `srnd_fpu_en` or `stoch_rnd_mode`: none, fpu, pack or all.
    pub stochastic_rounding: Option<String>,
    /// `sfpu_execution_thread`: math or pack.
    pub sfpu_thread: Option<String>,
    /// `min_buffer_input`.
    pub min_buffer_input: Option<u32>,
    /// `dest_device`, `ingress_channels`, `egress_channels` of an Ethernet copy, as written.
    pub ethernet: Option<Ethernet>,
}

/// Where an Ethernet copy goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ethernet {
    /// The device.
    pub dest_device: Option<u32>,
    /// Channels in.
    pub ingress_channels: Vec<u32>,
    /// Channels out.
    pub egress_channels: Vec<u32>,
}
