//! Functions of integers.
//!
//! The vector unit adds and shifts integers in two's complement, and compares integers with sign
//! and magnitude. So what is compared is first mapped to those, in the same order.

use super::Element;
use super::quotient::{self, Wanted};
use super::words::*;
use crate::format::Format;
use crate::push::push;

/// The most places that the shifter takes, and how many bits such a number has.
const MOST_SHIFTED: u32 = 31;
const BITS_OF_SHIFT: i32 = 5;

/// Integers in tiles of Dst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Integer {
    /// 32 bits in two's complement. Dst must be wide.
    Int32,
    /// 32 bits without sign. Dst must be wide.
    UInt32,
    /// 16 bits without sign.
    UInt16,
}

impl Integer {
    /// Those of a format, as which also integers of eight bits are calculated with: typecasts make
    /// [`Integer::Int32`] of them and back.
    #[inline(always)]
    pub const fn of(format: Format) -> Self {
        match format {
            Format::UInt16 => Self::UInt16,
            Format::UInt32 => Self::UInt32,
            _ => Self::Int32,
        }
    }
    /// The format.
    #[inline(always)]
    pub const fn format(self) -> Format {
        match self {
            Self::Int32 => Format::Int32,
            Self::UInt32 => Format::UInt32,
            Self::UInt16 => Format::UInt16,
        }
    }
    /// How they lie in Dst.
    #[inline(always)]
    pub(super) const fn element(self, wide: bool) -> Element {
        match self {
            Self::UInt16 => Element::uint16(wide),
            Self::Int32 | Self::UInt32 => Element::INT32,
        }
    }
}

/// A function of two tiles of integers. Results that have more bits lose them: they wrap around.
/// Comparisons give 1 or 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntegerBinary {
    /// a + b.
    Add,
    /// a - b.
    Subtract,
    /// a x b.
    Multiply,
    /// The smaller.
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
    /// Bits that both have.
    And,
    /// Bits that one or both have.
    Or,
    /// Bits that one of both has.
    Xor,
    /// a, shifted left by b: 0 if that is negative or more than 31.
    ShiftLeft,
    /// a, shifted right by b likewise; zeros come in.
    ShiftRight,
    /// The same, and copies of the sign of an [`Integer::Int32`] come in, also where b is negative or
    /// more than 31.
    ShiftRightSigned,
    /// a / b without its fraction; where b is zero all bits are ones. -2^31 / -1 wraps around.
    Divide,
    /// What that leaves, with the sign of a; a where b is zero.
    Remainder,
    /// What a / b, rounded down, leaves, with the sign of b; a where b is zero.
    Modulus,
}

/// A function of a tile of integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntegerUnary {
    /// -a, which wraps around.
    Negative,
    /// The magnitude of an [`Integer::Int32`]; that of -2^31 wraps around to itself.
    Abs,
    /// All bits inverted.
    Not,
    /// The integer, whatever was there.
    Fill(u32),
}

/// Registers for comparisons: all bits but the sign, and the sign.
#[inline(always)]
pub(crate) fn init() {
    super::init();
    kept_constant(C12, 0x7FFF_FFFF);
    kept_constant(C13, 0x8000_0000);
}

impl IntegerBinary {
    /// Register 0 becomes the function of registers 0 and 1.
    #[inline(always)]
    pub(super) fn body(self, kind: Integer) {
        match self {
            Self::Add => vector! { add_integer(1, 0); },
            Self::Subtract => vector! {
                sub_integer(0, 1);
                mov(1, 0);
            },
            Self::Multiply => multiply(),
            Self::Min => least(kind, true),
            Self::Max => least(kind, false),
            Self::Equal => equal(true),
            Self::NotEqual => equal(false),
            Self::Less => greater(kind, true, true),
            Self::AtMost => greater(kind, false, false),
            Self::Greater => greater(kind, false, true),
            Self::AtLeast => greater(kind, true, false),
            Self::And => vector! { and(1, 0); },
            Self::Or => vector! { or(1, 0); },
            Self::Xor => vector! { xor(1, 0); },
            Self::ShiftLeft => {
                vector! {
                    integer(2, MOST_SHIFTED);
                    and(1, 2);
                    shift_by(2, 0);
                }
                none_beyond();
            }
            Self::ShiftRight => right(false),
            Self::ShiftRightSigned => right(kind == Integer::Int32),
            Self::Divide => quotient::divide(kind, Wanted::Quotient),
            Self::Remainder => quotient::divide(kind, Wanted::Remainder),
            Self::Modulus => quotient::divide(kind, Wanted::Modulus),
        }
    }
}

impl IntegerUnary {
    /// Register 0 becomes the function of itself.
    #[inline(always)]
    pub(super) fn body(self) {
        match self {
            Self::Negative => vector! { sub_integer(ZERO, 0); },
            Self::Abs => vector! {
                if_negative(0);
                sub_integer(ZERO, 0);
                END_IF;
            },
            Self::Not => vector! { not(0, 0); },
            Self::Fill(integer) => constant(0, integer),
        }
    }
}

/// Register `r` becomes an integer with sign and magnitude in the same order, or back: bits of
/// negative ones are inverted. -1 becomes -0, which counts as less than 0.
#[inline(always)]
pub(super) fn ordered(kind: Integer, r: u32, back: bool) {
    let flip = xor(C13, r);
    if kind == Integer::UInt32 && !back {
        push(flip);
    }
    if kind != Integer::UInt16 {
        push(if_negative(r));
        push(xor(C12, r));
        push(END_IF);
    }
    if kind == Integer::UInt32 && back {
        push(flip);
    }
}

/// The smaller of registers 0 and 1, or the larger.
#[inline(always)]
fn least(kind: Integer, smaller: bool) {
    ordered(kind, 0, false);
    ordered(kind, 1, false);
    if smaller {
        vector! { min_max(0, 1); }
    } else {
        vector! { min_max(1, 0); }
    }
    ordered(kind, 0, true);
}

/// 1 where both are equal and where they are not, as `holds` says.
#[inline(always)]
fn equal(holds: bool) {
    vector! {
        xor(0, 1);
        integer(0, 0);
    }
    if holds {
        vector! { if_zero(1); }
    } else {
        vector! { if_not_zero(1); }
    }
    vector! {
        integer(0, 1);
        END_IF;
    }
}

/// 1 where a > b, or, `swapped`, b > a; else where that does not hold.
#[inline(always)]
fn greater(kind: Integer, swapped: bool, holds: bool) {
    ordered(kind, 0, false);
    ordered(kind, 1, false);
    vector! { mov(ZERO, 2); }
    match (swapped, holds) {
        (false, true) => vector! { if_greater(0, 1); },
        (false, false) => vector! { if_at_most(0, 1); },
        (true, true) => vector! { if_greater(1, 0); },
        (true, false) => vector! { if_at_most(1, 0); },
    }
    vector! {
        integer(2, 1);
        END_IF;
        mov(2, 0);
    }
}

/// Register 0 becomes zero where register 1 is negative or more than the most that can be shifted.
#[inline(always)]
fn none_beyond() {
    vector! {
        shift(1, -BITS_OF_SHIFT);
        if_not_zero(1);
        integer(0, 0);
        END_IF;
    }
}

/// Register 0, shifted right by register 1.
#[inline(always)]
fn right(signed: bool) {
    vector! {
        integer(2, MOST_SHIFTED);
        and(1, 2);
    }
    if signed {
        vector! {
            shift(1, -BITS_OF_SHIFT);
            if_not_zero(1);
            integer(2, MOST_SHIFTED);
            END_IF;
            sub_integer(ZERO, 2);
            shift_signed_by(2, 0);
        }
    } else {
        vector! {
            sub_integer(ZERO, 2);
            shift_by(2, 0);
        }
        none_beyond();
    }
}

/// Register 0 becomes its product with register 1, by halves: l l + (h l + l h) 2^16.
#[inline(always)]
pub(super) fn multiply() {
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
