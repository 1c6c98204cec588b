//! Computes a function of the vector unit of one, two or three operands, tile by tile.
//!
//! Arguments:
//! 0. number of tiles (may be 0);
//! 1. the function, its number in [`unary`] or, from 64 on, in [`binary`]; 96: where the first
//!    operand is not zero the second, elsewhere the third;
//! 2. and 3. numbers that the function takes, as the bits of an f32 or an integer;
//! 4. and 5. formats of the operands and of the result (`Format`);
//! 6. whether Dst has elements of 32 bits;
//! 7. to 9. numbers of the operands' circular buffers, 10. of the result's.
#![no_std]

use tilework_compute::{Compute, Format, SfpuBinary, Test, Thread, Unary};

/// First function of two operands, and the one of three.
const BINARY: u32 = 64;
const WHERE: u32 = 96;

/// A function of one operand.
#[inline(always)]
fn unary(function: u32, x: u32, y: u32) -> Unary {
    match function {
        0 => Unary::Exp,
        1 => Unary::Exp2,
        2 => Unary::Expm1,
        3 => Unary::Sigmoid,
        4 => Unary::Silu,
        5 => Unary::Gelu,
        6 => Unary::GeluTanh,
        7 => Unary::Tanh,
        8 => Unary::Elu(x),
        9 => Unary::Reciprocal,
        10 => Unary::Rsqrt(x),
        11 => Unary::Sqrt,
        12 => Unary::Log,
        13 => Unary::Power(x),
        14 => Unary::Sin,
        15 => Unary::Cos,
        16 => Unary::Square,
        17 => Unary::Relu,
        18 => Unary::LeakyRelu(x),
        19 => Unary::Clamp(x, y),
        20 => Unary::Scale(x),
        21 => Unary::Shift(x),
        22 => Unary::Abs,
        23 => Unary::Negative,
        24 => Unary::Sign,
        25 => Unary::Round,
        26 => Unary::Floor,
        27 => Unary::Ceil,
        28 => Unary::Trunc,
        29 => Unary::Test(Test::Zero),
        30 => Unary::Test(Test::NotZero),
        31 => Unary::Test(Test::Negative),
        32 => Unary::Test(Test::Positive),
        33 => Unary::Test(Test::NotPositive),
        34 => Unary::Test(Test::NotNegative),
        35 => Unary::ToInt32,
        _ => Unary::FromInt32,
    }
}

/// A function of two operands.
#[inline(always)]
fn binary(function: u32) -> SfpuBinary {
    match function - BINARY {
        0 => SfpuBinary::Add,
        1 => SfpuBinary::Subtract,
        2 => SfpuBinary::Multiply,
        3 => SfpuBinary::Divide,
        4 => SfpuBinary::Min,
        5 => SfpuBinary::Max,
        6 => SfpuBinary::Equal,
        7 => SfpuBinary::NotEqual,
        8 => SfpuBinary::Less,
        9 => SfpuBinary::AtMost,
        10 => SfpuBinary::Greater,
        11 => SfpuBinary::AtLeast,
        12 => SfpuBinary::AddInt32,
        13 => SfpuBinary::SubtractInt32,
        _ => SfpuBinary::MultiplyInt32,
    }
}

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let [tiles, function, x, y] = [0, 1, 2, 3].map(|i| k.arg(i));
    let [format, result] = [4, 5].map(|i| Format::of(k.arg(i)));
    let [mut a, mut b, mut c] = [7, 8, 9].map(|i| k.cb(k.arg(i), format));
    let mut out = k.cb(k.arg(10), result);
    let operands = if function < BINARY { 1 } else { 2 + u32::from(function == WHERE) };

    k.hw_configure(format, format, result, k.arg(6) != 0);
    k.copy_tile_init(format);
    match operands {
        1 => k.unary_init(unary(function, x, y)),
        _ => k.sfpu_binary_init(),
    }
    for _ in 0..tiles {
        k.tile_to(&mut out, |k| {
            for (i, operand) in (0..operands).zip([&mut a, &mut b, &mut c]) {
                operand.wait_front(1);
                k.copy_tile(operand, 0, i);
                operand.pop_front(1);
            }
            match operands {
                1 => k.unary_tile(unary(function, x, y), 0),
                2 => k.sfpu_binary_tiles(binary(function), 0, 1, 0),
                _ => k.where_tiles(0, [1, 2], 0),
            }
        });
    }
}
