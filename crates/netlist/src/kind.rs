//! Names of operation types in the netlist language.

use crate::types::{BinaryKind, OpKind, QuantKind, UnaryKind};

impl OpKind {
    /// The name of its type; a copy, which has two names, is `datacopy`.
    pub fn name(&self) -> &'static str {
        match self {
            OpKind::Unary(kind) => kind.name(),
            OpKind::Binary(BinaryKind::Add) => "add",
            OpKind::Binary(BinaryKind::Subtract) => "subtract",
            OpKind::Binary(BinaryKind::Multiply) => "multiply",
            OpKind::Binary(BinaryKind::Maximum) => "maximum",
            OpKind::Quant { kind: QuantKind::Quantize, .. } => "quantization",
            OpKind::Quant { kind: QuantKind::Requantize, .. } => "requantization",
            OpKind::Quant { kind: QuantKind::Dequantize, .. } => "dequantization",
            OpKind::Matmul(_) => "matmul",
            OpKind::Reduce { .. } => "reduce",
            OpKind::Splice { .. } => "splice",
            OpKind::Fused(_) => "fused_op",
            OpKind::Tilizer => "tilizer",
            OpKind::Embedding { .. } => "embedding",
            OpKind::Depthwise(_) => "depthwise",
            OpKind::TopK { .. } => "topk",
            OpKind::EthernetDatacopy => "ethernet_datacopy",
            OpKind::Drainer => "drainer",
        }
    }
}

impl UnaryKind {
    /// The name of its type.
    pub fn name(self) -> &'static str {
        match self {
            UnaryKind::Copy => "datacopy",
            UnaryKind::Exp => "exp",
            UnaryKind::Log => "log",
            UnaryKind::Sqrt => "sqrt",
            UnaryKind::Gelu => "gelu",
            UnaryKind::GeluDerivative => "gelu_derivative",
            UnaryKind::Reciprocal => "reciprocal",
            UnaryKind::Sigmoid => "sigmoid",
            UnaryKind::Tanh => "tanh",
            UnaryKind::Square => "square",
            UnaryKind::Power(_) => "power",
            UnaryKind::Sine => "sine",
            UnaryKind::Cosine => "cosine",
            UnaryKind::LeakyRelu(_) => "lrelu",
            UnaryKind::Abs => "abs",
            UnaryKind::Dropout { .. } => "dropout",
        }
    }
}
