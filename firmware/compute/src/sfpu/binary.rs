//! Functions of two or three tiles of Dst.

use super::words::*;

/// A function of two tiles of Dst. Comparisons give 1 or 0; -0 equals 0, and numbers that are not
/// normal are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SfpuBinary {
    /// a + b, rounded once.
    Add,
    /// a - b, rounded once.
    Subtract,
    /// a x b, rounded once.
    Multiply,
    /// a times the reciprocal of b, to 2^-22 if that is below 2^104 (`Unary::Reciprocal`). x / 0 is
    /// infinite, 0 / 0 NaN.
    Divide,
    /// The smaller; -0 is less than 0.
    Min,
    /// The larger.
    Max,
    /// a = b.
    Equal,
    /// a /= b.
    NotEqual,
    /// a < b.
    Less,
    /// a <= b.
    AtMost,
    /// a > b.
    Greater,
    /// a >= b.
    AtLeast,
    /// The sum of integers of 32 bits, modulo 2^32. Dst must be wide.
    AddInt32,
    /// Their difference.
    SubtractInt32,
    /// Their product.
    MultiplyInt32,
}

impl SfpuBinary {
    /// Whether the tiles have integers.
    #[inline(always)]
    pub(super) const fn is_integer(self) -> bool {
        matches!(self, Self::AddInt32 | Self::SubtractInt32 | Self::MultiplyInt32)
    }

    /// Register 0 becomes the function of registers 0 and 1.
    #[inline(always)]
    pub(super) fn body(self) {
        match self {
            Self::Add => vector! { add(0, 1, 0); },
            Self::Subtract => vector! { sub(0, 1, 0); },
            Self::Multiply => vector! { mul(0, 1, 0); },
            Self::Divide => divide(),
            Self::Min => vector! { min_max(0, 1); },
            Self::Max => vector! { min_max(1, 0); },
            Self::Equal => equal(true),
            Self::NotEqual => equal(false),
            Self::Less => greater(true, true),
            Self::AtMost => greater(false, false),
            Self::Greater => greater(false, true),
            Self::AtLeast => greater(true, false),
            Self::AddInt32 => vector! { add_integer(1, 0); },
            Self::SubtractInt32 => vector! {
                sub_integer(0, 1);
                mov(1, 0);
            },
            Self::MultiplyInt32 => multiply_integers(),
        }
    }
}

#[inline(always)]
fn divide() {
    vector! {
        mov(0, 4);
        mov(1, 0);
    }
    super::power::reciprocal();
    vector! { mul(4, 0, 0); }
}

/// Zeros lose their signs, and numbers that are not normal become zero.
#[inline(always)]
fn normal() {
    vector! {
        add(0, ZERO, 0);
        add(1, ZERO, 1);
    }
}

/// 1 where both are equal and where they are not, as `holds` says.
#[inline(always)]
fn equal(holds: bool) {
    normal();
    vector! { xor(0, 1); }
    if holds {
        vector! { mov(ZERO, 0); if_zero(1); }
    } else {
        vector! { mov(ZERO, 0); if_not_zero(1); }
    }
    vector! { mov(ONE, 0); END_IF; }
}

/// 1 where a > b, or, `swapped`, b > a; else where that does not hold.
#[inline(always)]
fn greater(swapped: bool, holds: bool) {
    normal();
    vector! { mov(ZERO, 2); }
    match (swapped, holds) {
        (false, true) => vector! { if_greater(0, 1); },
        (false, false) => vector! { if_at_most(0, 1); },
        (true, true) => vector! { if_greater(1, 0); },
        (true, false) => vector! { if_at_most(1, 0); },
    }
    vector! {
        mov(ONE, 2);
        END_IF;
        mov(2, 0);
    }
}

/// By halves: l l + (h l + l h) 2^16.
#[inline(always)]
fn multiply_integers() {
    const HALF: i32 = 16;
    vector! {
        mov(0, 2);
        shift(2, -HALF);
        mov(1, 3);
        shift(3, -HALF);
        mov(0, 4);
        shift(4, HALF);
        shift(4, -HALF);
        mov(1, 5);
        shift(5, HALF);
        shift(5, -HALF);
        mul_23(2, 5, 6, false);
        mul_23(3, 4, 7, false);
        mul_23(4, 5, 1, true);
        mul_23(4, 5, 0, false);
        add_integer(7, 6);
        shift(6, HALF);
        shift(1, 23);
        add_integer(1, 0);
        add_integer(6, 0);
    }
}

/// Register 0 becomes register 1 where register 0 is not zero, else register 2.
#[inline(always)]
pub(super) fn select() {
    vector! {
        magnitude(0, 0);
        if_not_zero(0);
        mov(1, 2);
        END_IF;
        mov(2, 0);
    }
}
