//! Tables of the attributes, the operations that have them, and the operation types.

use crate::diagnostic::Diagnostics;
use crate::read::fields::text;
use crate::tree::Node;
use crate::types::{BinaryKind, QuantKind, UnaryKind};

/// Which operations have an attribute.
pub enum On {
    /// All.
    All,
    /// These. On others it has no effect.
    Some(&'static [&'static str]),
    /// These only. On others, except fused operations, it is an error.
    Only(&'static [&'static str]),
}

const MATMUL: &[&str] = &["matmul"];
const PRODUCTS: &[&str] = &["matmul", "depthwise"];
const BLOCKED: &[&str] = &["matmul", "depthwise", "reduce", "topk"];
const QUANT: &[&str] = &["quantization", "requantization", "dequantization", "matmul"];
const THREADS: &[&str] = &[
    "matmul",
    "nop",
    "datacopy",
    "exp",
    "log",
    "sqrt",
    "gelu",
    "gelu_derivative",
    "reciprocal",
    "sigmoid",
    "dropout",
    "tanh",
    "square",
    "power",
    "sine",
    "cosine",
    "lrelu",
    "abs",
];
/// Those of [`THREADS`] on the vector unit: all but products and copies.
const VECTOR_UNIT: &[&str] = THREADS.split_at(3).1;

/// Attributes of operations of graphs (tt-budabackend, `netlist/netlist_op_info_types.hpp`).
pub const ATTRIBUTES: [(&str, On); 48] = [
    ("kernel_broadcast", On::All),
    ("kernel_broadcast_per_t", On::All),
    ("single_tile", On::All),
    ("relu_en", On::All),
    ("relu_threshold", On::All),
    ("relu_mode", On::All),
    ("srnd_fpu_en", On::All),
    ("stoch_rnd_mode", On::All),
    ("approximate_mode", On::All),
    ("vector", On::Some(VECTOR_UNIT)),
    ("sfpu_execution_thread", On::Only(THREADS)),
    ("zero_point", On::Some(QUANT)),
    ("m_k", On::Some(BLOCKED)),
    ("u_kt", On::Some(BLOCKED)),
    ("bias", On::Some(PRODUCTS)),
    ("accumulate", On::Some(MATMUL)),
    ("sfpu_op", On::Some(MATMUL)),
    ("min_buffer_input", On::Only(PRODUCTS)),
    ("l1_acc", On::Only(PRODUCTS)),
    ("z", On::Only(&["reduce", "matmul"])),
    ("requant", On::Only(MATMUL)),
    ("dequant", On::Only(MATMUL)),
    ("identity", On::Only(MATMUL)),
    ("num_index_tiles", On::Only(MATMUL)),
    ("num_sparse_tiles", On::Only(MATMUL)),
    ("num_columns", On::Only(MATMUL)),
    ("sparse_tile_ptr_bits", On::Only(MATMUL)),
    ("sparse_ublock_idx_bits", On::Only(MATMUL)),
    ("indices_len", On::Only(MATMUL)),
    ("fracture_factor", On::Only(MATMUL)),
    ("starting_row", On::Only(MATMUL)),
    ("act_t", On::Only(MATMUL)),
    ("num_nz_strips", On::Only(MATMUL)),
    ("dim", On::Only(&["reduce"])),
    ("type", On::Only(&["reduce"])),
    ("granularity", On::Only(&["splice"])),
    ("p", On::Only(&["dropout"])),
    ("seed", On::Only(&["dropout"])),
    ("slope", On::Only(&["lrelu"])),
    ("exp", On::Only(&["power"])),
    ("k", On::Only(&["topk"])),
    ("sort", On::Only(&["topk"])),
    ("kreduce", On::Only(&["topk"])),
    ("num_indices", On::Only(&["embedding"])),
    ("fused_op_id", On::Only(&["fused_op"])),
    ("ingress_channels", On::Some(&["ethernet_datacopy"])),
    ("egress_channels", On::Some(&["ethernet_datacopy"])),
    ("dest_device", On::Some(&["ethernet_datacopy"])),
];

/// Attributes of steps of fused operations.
pub const STEP: [&str; 12] =
    ["m_k", "u_kt", "vector", "type", "dim", "relu_en", "relu_threshold", "relu_mode", "p", "seed", "slope", "exp"];

/// Names of the operations' types.
pub const TYPES: [(&str, Type); 36] = [
    ("nop", Type::Unary(UnaryKind::Copy)),
    ("datacopy", Type::Unary(UnaryKind::Copy)),
    ("exp", Type::Unary(UnaryKind::Exp)),
    ("log", Type::Unary(UnaryKind::Log)),
    ("sqrt", Type::Unary(UnaryKind::Sqrt)),
    ("gelu", Type::Unary(UnaryKind::Gelu)),
    ("gelu_derivative", Type::Unary(UnaryKind::GeluDerivative)),
    ("reciprocal", Type::Unary(UnaryKind::Reciprocal)),
    ("sigmoid", Type::Unary(UnaryKind::Sigmoid)),
    ("tanh", Type::Unary(UnaryKind::Tanh)),
    ("square", Type::Unary(UnaryKind::Square)),
    ("sine", Type::Unary(UnaryKind::Sine)),
    ("cosine", Type::Unary(UnaryKind::Cosine)),
    ("abs", Type::Unary(UnaryKind::Abs)),
    ("power", Type::Power),
    ("lrelu", Type::LeakyRelu),
    ("dropout", Type::Dropout),
    ("add", Type::Binary(BinaryKind::Add)),
    ("subtract", Type::Binary(BinaryKind::Subtract)),
    ("multiply", Type::Binary(BinaryKind::Multiply)),
    ("maximum", Type::Binary(BinaryKind::Maximum)),
    ("quantization", Type::Quant(QuantKind::Quantize)),
    ("requantization", Type::Quant(QuantKind::Requantize)),
    ("dequantization", Type::Quant(QuantKind::Dequantize)),
    ("matmul", Type::Matmul),
    ("depthwise", Type::Depthwise),
    ("reduce", Type::Reduce),
    ("splice", Type::Splice),
    ("fused_op", Type::Fused),
    ("tilizer", Type::Tilizer),
    ("embedding", Type::Embedding),
    ("topk", Type::TopK),
    ("ethernet_datacopy", Type::Ethernet),
    ("drainer", Type::Drainer),
    ("sub", Type::Short("subtract")),
    ("mul", Type::Short("multiply")),
];

#[derive(Clone, Copy)]
pub enum Type {
    Unary(UnaryKind),
    Power,
    LeakyRelu,
    Dropout,
    Binary(BinaryKind),
    Quant(QuantKind),
    Matmul,
    Depthwise,
    Reduce,
    Splice,
    Fused,
    Tilizer,
    Embedding,
    TopK,
    Ethernet,
    Drainer,
    /// A common wrong name of this one.
    Short(&'static str),
}

/// The name of an operation's type, when it is one.
pub fn type_name(node: &Node, sink: &mut Diagnostics) -> &'static str {
    let name = text(node, "type", sink).unwrap_or_default();
    TYPES.iter().find(|(known, _)| *known == name).map_or("", |(known, _)| known)
}
