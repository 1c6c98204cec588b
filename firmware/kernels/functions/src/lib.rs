//! Computes a function of the vector unit of one, two or three operands, tile by tile.
//!
//! Arguments:
//! 0. number of tiles (may be 0);
//! 1. the function: its number in [`unary`], from 48 on in [`integer_unary`], from 64 on in
//!    [`binary`], from 76 on in [`integer_binary`], from 97 on in [`ternary`]; 35: a typecast;
//!    96: where the first operand is not zero the second, elsewhere the third. Random numbers are
//!    the same on every core. Integers of eight
//!    bits are calculated with as ones of 32 bits, whose result is cast;
//! 2. and 3. numbers that the function takes, as the bits of an f32 or an integer;
//! 4. and 5. formats of the operands and of the result (`Format`);
//! 6. whether Dst has elements of 32 bits;
//! 7. to 9. numbers of the operands' circular buffers, 10. of the result's.
#![no_std]

use tilework_compute::{
    Compute, Format, Integer, IntegerBinary, IntegerUnary, SfpuBinary, Ternary, Test, Thread, Unary,
};

/// The typecast, and the first function of each kind.
const TYPECAST: u32 = 35;
const UNIFORM: u32 = 42;
const DROPOUT: u32 = 43;
const INTEGER_UNARY: u32 = 48;
const BINARY: u32 = 64;
const INTEGER_BINARY: u32 = 76;
const WHERE: u32 = 96;
const TERNARY: u32 = 97;

/// The sequence of random numbers.
const SEED: u32 = 1;

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
        36 => Unary::Test(Test::Nan),
        37 => Unary::Test(Test::Infinite),
        38 => Unary::Test(Test::Finite),
        39 => Unary::HardSigmoid,
        40 => Unary::HardSwish,
        41 => Unary::Fill(x),
        42 => Unary::Uniform(x, y),
        _ => Unary::Dropout(x, y),
    }
}

/// A function of an integer.
#[inline(always)]
fn integer_unary(function: u32, x: u32) -> IntegerUnary {
    match function - INTEGER_UNARY {
        0 => IntegerUnary::Negative,
        1 => IntegerUnary::Abs,
        2 => IntegerUnary::Not,
        _ => IntegerUnary::Fill(x),
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
        _ => SfpuBinary::AtLeast,
    }
}

/// A function of two integers.
#[inline(always)]
fn integer_binary(function: u32) -> IntegerBinary {
    match function - INTEGER_BINARY {
        0 => IntegerBinary::Add,
        1 => IntegerBinary::Subtract,
        2 => IntegerBinary::Multiply,
        3 => IntegerBinary::Min,
        4 => IntegerBinary::Max,
        5 => IntegerBinary::Equal,
        6 => IntegerBinary::NotEqual,
        7 => IntegerBinary::Less,
        8 => IntegerBinary::AtMost,
        9 => IntegerBinary::Greater,
        10 => IntegerBinary::AtLeast,
        11 => IntegerBinary::And,
        12 => IntegerBinary::Or,
        13 => IntegerBinary::Xor,
        14 => IntegerBinary::ShiftLeft,
        15 => IntegerBinary::ShiftRight,
        _ => IntegerBinary::ShiftRightSigned,
    }
}

/// A function of three operands.
#[inline(always)]
fn ternary(function: u32, x: u32) -> Ternary {
    match function - TERNARY {
        0 => Ternary::MultiplyAdd,
        1 => Ternary::AddProduct(x),
        2 => Ternary::AddQuotient(x),
        _ => Ternary::Lerp,
    }
}

/// A function of integers in the first tiles of Dst, to the first.
#[inline(always)]
fn integers<T: Thread>(k: &mut Compute<T>, [function, x, operands]: [u32; 3], format: Format, result: Format) {
    let integer = Integer::of(format);
    (0..operands).filter(|_| format.is_int8()).for_each(|i| k.typecast_tile(format, Format::Int32, i));
    match operands {
        1 => k.integer_tile(integer_unary(function, x), integer, 0),
        _ => k.integer_tiles(integer_binary(function), integer, 0, 1, 0),
    }
    if integer.format() != result {
        k.typecast_tile(integer.format(), result, 0);
    }
}

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let [tiles, function, x, y] = [0, 1, 2, 3].map(|i| k.arg(i));
    let [format, result] = [4, 5].map(|i| Format::of(k.arg(i)));
    let [mut a, mut b, mut c] = [7, 8, 9].map(|i| k.cb(k.arg(i), format));
    let mut out = k.cb(k.arg(10), result);
    let operands = match function {
        ..BINARY => 1,
        BINARY..WHERE => 2,
        _ => 3,
    };

    k.hw_configure(format, format, result, k.arg(6) != 0);
    k.copy_tile_init(format);
    match function {
        TYPECAST => k.typecast_init(),
        ..INTEGER_UNARY => k.unary_init(unary(function, x, y)),
        INTEGER_UNARY..BINARY | INTEGER_BINARY..WHERE => k.integer_init(),
        BINARY..INTEGER_BINARY | WHERE => k.sfpu_binary_init(),
        TERNARY.. => k.ternary_init(ternary(function, x)),
    }
    if function == UNIFORM || function == DROPOUT {
        k.rand_tile_init(SEED);
    }
    for _ in 0..tiles {
        k.tile_to(&mut out, |k| {
            for (i, operand) in (0..operands).zip([&mut a, &mut b, &mut c]) {
                operand.wait_front(1);
                k.copy_tile(operand, 0, i);
                operand.pop_front(1);
            }
            match function {
                TYPECAST => k.typecast_tile(format, result, 0),
                ..INTEGER_UNARY => k.unary_tile(unary(function, x, y), 0),
                INTEGER_UNARY..BINARY | INTEGER_BINARY..WHERE => integers(k, [function, x, operands], format, result),
                BINARY..INTEGER_BINARY => k.sfpu_binary_tiles(binary(function), 0, 1, 0),
                WHERE => k.where_tiles(0, [1, 2], 0),
                TERNARY.. => k.ternary_tiles(ternary(function, x), [0, 1, 2], 0),
            }
        });
    }
}
