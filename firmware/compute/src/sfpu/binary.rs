//! Functions of two or three tiles of Dst.

use super::words::*;
use super::{Two, quotient};

/// The high half of what only a NaN is beyond.
const INFINITY: u32 = 0x7F80;

/// A function of two tiles of Dst. Comparisons give 1 or 0; -0 equals 0, and numbers that are not
/// normal are zero. A NaN is not equal to anything, and neither more nor less.
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
    /// a to the power of b, to 2^-18 of the value. A negative a takes integers b up to
    /// 2^22, further ones count as even, others give NaN.
    Power,
    /// What a / b leaves, with the sign of a: exact up to quotients of 2^12, beyond to 2^-22 of a.
    Fmod,
    /// The same with the sign of b.
    Remainder,
    /// 1 where neither is zero, else 0.
    And,
    /// 0 where both are zero, else 1.
    Or,
    /// 1 where one of both is zero, else 0.
    Xor,
}

impl SfpuBinary {
    /// The function of `two`: register 0 becomes that of registers 0 and 1.
    #[inline(always)]
    pub(super) fn of(self, two: Two) {
        match self {
            Self::Add => two.map(|| vector! { add(0, 1, 0); }),
            Self::Subtract => two.map(|| vector! { sub(0, 1, 0); }),
            Self::Multiply => two.map(|| vector! { mul(0, 1, 0); }),
            Self::Divide => two.map_long(divide),
            Self::Min => two.map(|| vector! { min_max(0, 1); }),
            Self::Max => two.map(|| vector! { min_max(1, 0); }),
            Self::Equal => two.map_long(|| equal(true)),
            Self::NotEqual => two.map_long(|| equal(false)),
            Self::Less => two.map_long(|| greater(true, true)),
            Self::AtMost => two.map_long(|| greater(false, false)),
            Self::Greater => two.map_long(|| greater(false, true)),
            Self::AtLeast => two.map_long(|| greater(true, false)),
            Self::And => two.map_long(and_both),
            Self::Or => two.map_long(or_both),
            Self::Xor => two.map_long(xor_both),
            Self::Power | Self::Fmod | Self::Remainder => {}
        }
    }

    /// Whether it is a function of [`SfpuBinary::special`].
    #[inline(always)]
    pub(super) const fn is_special(self) -> bool {
        matches!(self, Self::Power | Self::Fmod | Self::Remainder)
    }

    /// The same for functions that images of most functions have no room for.
    #[inline(always)]
    pub(super) fn special(self, two: Two) {
        match self {
            Self::Power => two.map_long(quotient::power),
            Self::Fmod => two.map_long(|| quotient::remainder(false)),
            _ => two.map_long(|| quotient::remainder(true)),
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
    vector! {
        xor(0, 1);
        magnitude(0, 2);
        mov(ZERO, 0);
    }
    if holds {
        vector! { if_zero(1); }
    } else {
        vector! { if_not_zero(1); }
    }
    vector! { mov(ONE, 0); END_IF; }
    // Two NaNs have the same bits here.
    vector! { high_bits(3, INFINITY); if_greater(2, 3); }
    if holds {
        vector! { mov(ZERO, 0); }
    } else {
        vector! { mov(ONE, 0); }
    }
    vector! { END_IF; }
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
        magnitude(0, 0);
        magnitude(1, 1);
        min_max(1, 0);
        high_bits(3, INFINITY);
        if_greater(0, 3);
        mov(ZERO, 2);
        END_IF;
        mov(2, 0);
    }
}

/// 1 where neither is zero.
#[inline(always)]
fn and_both() {
    normal();
    vector! {
        mov(ZERO, 2);
        if_not_zero(0);
        if_not_zero(1);
        mov(ONE, 2);
        END_IF;
        mov(2, 0);
    }
}

/// 0 where both are zero.
#[inline(always)]
fn or_both() {
    normal();
    vector! {
        or(1, 0);
        mov(ZERO, 2);
        if_not_zero(0);
        mov(ONE, 2);
        END_IF;
        mov(2, 0);
    }
}

/// 1 where one of both is zero.
#[inline(always)]
fn xor_both() {
    normal();
    vector! {
        mov(ZERO, 2);
        if_not_zero(0);
        mov(ONE, 2);
        END_IF;
        if_not_zero(1);
        sub(ONE, 2, 2);
        END_IF;
        mov(2, 0);
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
