//! A checked netlist: every name is resolved, every arity right.
//!
//! Order is the file's everywhere: queues, graphs, operations, programs, fused operations. Positions stay with what an
//! engine may have to speak of when it runs.

use crate::DataFormat;
use crate::tree::Node;

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

/// Order in which tiles or ublocks are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Row by row.
    #[default]
    Row,
    /// Column by column.
    Column,
}

/// Rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Rows.
    pub r: u32,
    /// Columns.
    pub c: u32,
}

/// Shape of a tensor as blocks on a grid of cores: `t` times (grid x mblock x ublock) tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Cores, or buffers of a queue.
    pub grid: Size,
    /// Outermost count: matrices of a tensor.
    pub t: u32,
    /// Macro block: ublocks of a core.
    pub mblock: Size,
    /// Micro block: tiles.
    pub ublock: Size,
    /// Order of ublocks in an mblock.
    pub order: Order,
    /// Rows and columns of a tile; 32 x 32 unless the file says otherwise.
    pub tile: Size,
}

/// Shape of a tensor in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Matrices.
    pub t: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

impl Blocks {
    /// Rows and columns in tiles of the whole tensor.
    pub fn tiles(&self) -> Size {
        Size { r: self.grid.r * self.mblock.r * self.ublock.r, c: self.grid.c * self.mblock.c * self.ublock.c }
    }

    /// The whole tensor in elements.
    pub fn shape(&self) -> Shape {
        let tiles = self.tiles();
        Shape {
            t: self.t as usize,
            rows: tiles.r as usize * self.tile.r as usize,
            columns: tiles.c as usize * self.tile.c as usize,
        }
    }
}

/// What a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueKind {
    /// First in, first out: pointers move with every entry.
    Queue,
    /// Random access: pointers say which entry.
    Ram,
}

/// Who fills a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Producer {
    /// The host.
    Host,
    /// An operation.
    Op(OpId),
}

/// Where a queue's buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Location {
    /// Device memory.
    Dram,
    /// Memory of the host.
    Host,
}

/// Form of the data in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Tiles with headers.
    #[default]
    Tilized,
    /// Rows, no headers.
    Flat,
}

/// One buffer of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// DRAM or host channel.
    pub channel: u32,
    /// Byte address of the queue header.
    pub address: u64,
}

/// A queue or ram.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Where the file defines it.
    pub at: Position,
    /// Queue or ram.
    pub kind: QueueKind,
    /// Who fills it.
    pub producer: Producer,
    /// Entries that it holds.
    pub entries: u32,
    /// Shape of an entry.
    pub blocks: Blocks,
    /// Format of its data.
    pub format: DataFormat,
    /// Device that it lives on.
    pub target_device: u32,
    /// Which memory.
    pub location: Location,
    /// One buffer for each place of the grid, row by row; empty only for what is allocated elsewhere.
    pub buffers: Vec<Buffer>,
    /// The ram whose memory this one shows in another shape.
    pub alias: Option<QueueId>,
    /// Form of its data.
    pub layout: Layout,
    /// TMs of its input.
    pub tms: Vec<Tm>,
    /// NoC port of the readers of each buffer, when given.
    pub read_ports: Vec<u32>,
    /// NoC port of the writers of each buffer, when given.
    pub write_ports: Vec<u32>,
}

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
    pub format: DataFormat,
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

/// Padding in tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pad {
    /// Rows of tiles.
    pub rt: u32,
    /// Columns of tiles.
    pub ct: u32,
    /// Value of the padding.
    pub value: f32,
}

/// A dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Rows.
    R,
    /// Columns.
    C,
    /// Matrices (t).
    Z,
}

/// A tensor manipulation on the way into an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tm {
    /// Repeats the tensor.
    Broadcast(Dim, u32),
    /// Cuts columns into n matrices.
    HSlice(u32),
    /// Joins n matrices side by side; 0 joins all.
    HStack(u32),
    /// Cuts rows into n matrices.
    VSlice(u32),
    /// Joins n matrices one below the other; 0 joins all.
    VStack(u32),
    /// Swaps rows and columns of tiles (the operation swaps within a tile).
    Transpose,
    /// Repeats the first row or column of every tile; operands of fused operations only.
    TileBroadcast(Dim),
    /// Pads at the bottom and the right.
    Pad(Pad),
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
    pub acc_format: DataFormat,
    /// Format of the intermediate buffer.
    pub intermed_format: DataFormat,
    /// Format of the output.
    pub out_format: DataFormat,
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

/// What an operation computes, with the attributes that only it has.
#[derive(Debug, Clone, PartialEq)]
pub enum OpKind {
    /// One operand, element by element.
    Unary(UnaryKind),
    /// Two operands, element by element.
    Binary(BinaryKind),
    /// Integer formats and their scales.
    Quant {
        /// Which way.
        kind: QuantKind,
        /// `zero_point`.
        zero_point: f32,
    },
    /// Matrix product.
    Matmul(Matmul),
    /// Maximum along a dimension.
    Reduce {
        /// Along what.
        dim: ReduceDim,
        /// `m_k` and `u_kt`, when given.
        k: Option<(u32, u32)>,
        /// Matrices of a group when the dimension is z.
        z: u32,
    },
    /// Pieces of several inputs, one after another.
    Splice {
        /// Whether pieces are ublocks or matrices.
        granularity: Granularity,
        /// One for each input.
        pieces: Vec<Piece>,
    },
    /// A fused operation.
    Fused(FusedId),
    /// Rows to tiles.
    Tilizer,
    /// Rows of a table.
    Embedding {
        /// How many indices an entry has.
        num_indices: u32,
    },
    /// Product channel by channel.
    Depthwise(Matmul),
    /// The k largest of each row.
    TopK {
        /// k.
        k: u32,
        /// Values or indices.
        sort: TopKOutput,
        /// `kreduce`.
        kreduce: u32,
    },
    /// Copy to another chip.
    EthernetDatacopy,
    /// Reads and drops.
    Drainer,
}

/// Operations with one operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UnaryKind {
    /// `nop` and `datacopy`.
    Copy,
    /// e^x.
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// GELU, tanh form.
    Gelu,
    /// Its derivative.
    GeluDerivative,
    /// 1/x.
    Reciprocal,
    /// Logistic function.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// x^2.
    Square,
    /// x to an integer power.
    Power(i32),
    /// Sine.
    Sine,
    /// Cosine.
    Cosine,
    /// Leaky ReLU with its slope.
    LeakyRelu(f32),
    /// Magnitude.
    Abs,
    /// Dropout.
    Dropout {
        /// Probability of a zero.
        p: f32,
        /// Seed.
        seed: u32,
    },
}

/// Operations with two operands of the same shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryKind {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product; zero times anything is zero.
    Multiply,
    /// The larger.
    Maximum,
}

/// Which way a quantisation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantKind {
    /// Float to int8: a * s + zp.
    Quantize,
    /// Integer to int8: a * s + zp.
    Requantize,
    /// Integer to float: (a + zp) * s.
    Dequantize,
}

/// A matrix product.
#[derive(Debug, Clone, PartialEq)]
pub struct Matmul {
    /// Inner macro blocks.
    pub m_k: u32,
    /// Inner tiles of a micro block.
    pub u_kt: u32,
    /// The third operand is a bias.
    pub bias: bool,
    /// Matrices (t) that are added up.
    pub accumulate: Option<u32>,
    /// Accumulates in L1.
    pub l1_acc: bool,
    /// GELU on the result.
    pub gelu: bool,
    /// Requantises the result, by the last operand.
    pub requant: bool,
    /// Dequantises the result, by the last operand.
    pub dequant: bool,
    /// `zero_point` of requantisation.
    pub zero_point: f32,
    /// Sparse: the first operand is a compressed selection.
    pub identity: Option<Identity>,
}

/// Attributes of an identity (sparse) matmul.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Identity {
    pub num_index_tiles: u32,
    pub num_sparse_tiles: u32,
    pub num_columns: u32,
    pub sparse_tile_ptr_bits: u32,
    pub sparse_ublock_idx_bits: u32,
    pub indices_len: u32,
    pub fracture_factor: u32,
    pub starting_row: u32,
    pub act_t: u32,
    pub num_nz_strips: Vec<u32>,
}

/// Along what a reduction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceDim {
    /// Rows: one row is left.
    R,
    /// Columns: one column is left.
    C,
    /// Both.
    Rc,
    /// Matrices.
    Z,
}

/// What a splice counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// Ublocks.
    Ublock,
    /// Matrices.
    T,
}

/// What a splice takes of one input, turn by turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Skipped before each copy.
    pub index: u32,
    /// Copied.
    pub length: u32,
    /// Step to the next turn.
    pub stride: u32,
}

/// What `topk` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TopKOutput {
    /// Values.
    Max,
    /// Indices.
    ArgMax,
}

/// A fused operation.
#[derive(Debug, Clone, PartialEq)]
pub struct FusedOp {
    /// Its id.
    pub id: u32,
    /// Where the file defines it.
    pub at: Position,
    /// Inputs.
    pub inputs: u32,
    /// Intermediate buffers.
    pub intermediates: u32,
    /// Schedules, each a list of steps.
    pub schedules: Vec<Vec<FusedStep>>,
}

/// What a step of a fused operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FusedSource {
    /// An input of the fused operation.
    Input(u32),
    /// An intermediate buffer.
    Intermed(u32),
    /// The destination registers.
    Dest,
}

/// Where a step of a fused operation writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FusedTarget {
    /// An intermediate buffer.
    Intermed(u32),
    /// The destination registers.
    Dest,
    /// The output.
    Output,
}

/// One step of a fused operation.
#[derive(Debug, Clone, PartialEq)]
pub struct FusedStep {
    /// Its name.
    pub name: String,
    /// Where the file defines it.
    pub at: Position,
    /// What it computes; never a fused operation.
    pub kind: OpKind,
    /// What it does with the result.
    pub post: Post,
    /// Operands and their TMs.
    pub inputs: Vec<(FusedSource, Vec<Tm>)>,
    /// Where the result goes.
    pub output: FusedTarget,
    /// Macro block of the result.
    pub mblock: Size,
    /// Micro block of the result.
    pub ublock: Size,
    /// Buffers that are freed after the step.
    pub pop: Vec<FusedSource>,
    /// Buffers that are freed after the last step of the operation.
    pub pop_last: Vec<FusedSource>,
}

/// A program.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Where the file defines it.
    pub at: Position,
    /// Instructions; an end of the program is implied after the last.
    pub instructions: Vec<Instruction>,
}

/// An instruction and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// Where.
    pub at: Position,
    /// What.
    pub kind: InstructionKind,
}

/// A variable's name, with its `$`.
pub type Variable = String;

/// A number or a variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number; true is 1.
    Immediate(i64),
    /// A variable.
    Variable(Variable),
}

/// What an instruction does.
#[derive(Debug, Clone, PartialEq)]
pub enum InstructionKind {
    /// Declares variables; a list gives them zero.
    Var(Vec<(Variable, i64)>),
    /// Declares variables that outlive the run.
    StaticVar(Vec<(Variable, i64)>),
    /// Declares parameters.
    Param(Vec<Variable>),
    /// Changes a variable.
    VarInst {
        /// Which.
        out: Variable,
        /// How.
        op: VarOp,
        /// With what.
        args: Vec<Value>,
    },
    /// Begins the life of dynamic queues.
    AllocateQueue(Vec<QueueId>),
    /// Ends it.
    DeallocateQueue(Vec<QueueId>),
    /// Repeats up to the matching end.
    Loop(Value),
    /// End of a loop.
    EndLoop,
    /// Runs a graph.
    Execute {
        /// Which.
        graph: GraphId,
        /// Settings of its queues.
        settings: Vec<QueueSettings>,
    },
    /// End of the program.
    EndProgram,
}

/// How a variable changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VarOp {
    /// out = a.
    Set,
    /// out = a + b.
    Add,
    /// out = a * b.
    Mul,
    /// out = out + a.
    Inc,
    /// out = (out + a) mod b.
    IncWrap,
}

/// Settings of a queue for one execution. What is absent has its default, which depends on the kind of queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSettings {
    /// Which queue.
    pub queue: QueueId,
    /// Where.
    pub at: Position,
    /// `prologue`: the entry is read once, before the first input.
    pub prologue: bool,
    /// `epilogue`: the entry is written once, after the last input.
    pub epilogue: bool,
    /// `zero`: the accumulator starts from zero.
    pub zero: Option<Value>,
    /// `rd_ptr_local`.
    pub rd_ptr_local: Option<Value>,
    /// `rd_ptr_global`.
    pub rd_ptr_global: Option<Value>,
    /// `wr_ptr_global`.
    pub wr_ptr_global: Option<Value>,
    /// `rd_ptr_autoinc`.
    pub rd_ptr_autoinc: Option<Value>,
    /// `global_rdptr_autoinc`.
    pub global_rdptr_autoinc: Option<Value>,
    /// `global_wrptr_autoinc`.
    pub global_wrptr_autoinc: Option<Value>,
    /// `read_only`: a view that never moves the write pointer.
    pub read_only: Option<Value>,
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
