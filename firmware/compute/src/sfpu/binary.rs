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
}

impl SfpuBinary {
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
