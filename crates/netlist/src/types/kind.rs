//! What an operation computes.

use super::FusedId;

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
    /// Integer to float: (a - zp) * s.
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
