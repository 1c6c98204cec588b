//! Functions fused into other operations, and the precision of kernels.
//!
//! Source: `TTNN/operations/eltwise.fbs`, `configs.fbs` of the schema ([`crate::schema`]).

use crate::common::MathFidelity;
use crate::flat::declare::{enums, tables};

enums! {
    /// Functions that can be fused into the end, or the beginning, of another operation. `Log1p` is
    /// only in the compiler of `jax-tt-plugin`, since 0.1.2.
    UnaryOpType: u32 {
        Exp, Recip, Gelu, Relu, Sqrt, Sigmoid, Log, Tanh, Log2, Log10, Sin, Cos, Abs, AbsInt32, Sign, Square, Eqz,
        Nez, Gtz, Ltz, Gez, Lez, ReluMax, ReluMin, Power, LeakyRelu, Elu, Exp2, Heaviside, Expm1, Signbit, Asin,
        Acos, Rsqrt, Relu6, Hardsigmoid, Atan, Erf, Erfc, Isinf, Isposinf, Isneginf, Isnan, LogicalNotUnary,
        Isfinite, Erfinv, I0, I1, Tan, Rsub, Rdiv, Silu, Softplus, Identity, Neg, AddUnarySfpu, SubUnarySfpu,
        MulUnarySfpu, DivUnarySfpu, IdentityUint32, UnaryNe, UnaryGt, UnaryLt, TiledProd, Typecast, BitwiseXor,
        BitwiseNot, BitwiseAnd, BitwiseOr, RightShift, Floor, Ceil, Round, LeftShift, Remainder, Fmod, Dropout,
        Fill, PreluSfpu, ZeroPoint, Log1p,
    }
}

tables! {
    /// A fused function and its parameters.
    UnaryWithParam { op_type: UnaryOpType, params: Vec<f64> }

    /// How a kernel computes: fidelity, precision of accumulation. An absent value is the
    /// operation's default.
    DeviceComputeKernelConfig {
        math_fidelity: Option<MathFidelity>, math_approx_mode: Option<bool>, fp32_dest_acc_en: Option<bool>,
        packer_l1_acc: Option<bool>, dst_full_sync_en: Option<bool>,
    }
}
