//! Typecasts of tiles in Dst.
//!
//! What does not fit becomes the nearest value that the type has, and numbers lose their fraction:
//! towards zero. NaN counts as infinity with its sign. Of unsigned integers of eight bits the low
//! bits are kept instead, and what is beyond integers of 32 bits becomes zero.

use super::words::*;
use super::{Element, number, round_to, rounds_by_group};
use crate::format::Format;
use crate::push::push;

/// Bits of a mantissa.
const MANTISSA: i32 = 23;
/// Bits of an integer, without and with its sign.
const INTEGER: i32 = 31;
const ALL_BITS: i32 = 32;
/// The largest and the smallest one, and this as a number.
const MAX_INTEGER: u32 = 0x7FFF_FFFF;
const MIN_INTEGER: u32 = 0x8000_0000;
const MIN_AS_FLOAT: f32 = -2_147_483_648.0;
/// The largest ones of types with less bits.
const MAX_UINT16: u32 = 0xFFFF;
const MAX_UINT8: u32 = 0xFF;
const MAX_INT8: i32 = 127;

/// What a tile has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Signed,
    Unsigned,
}

impl Kind {
    #[inline(always)]
    const fn of(format: Format) -> Self {
        match format {
            Format::Float32 | Format::Bf16 | Format::Bfp8 => Self::Number,
            Format::Int32 | Format::Int8 | Format::UInt8 => Self::Signed,
            _ => Self::Unsigned,
        }
    }
}

/// How tiles of a format lie in Dst.
#[inline(always)]
const fn element(format: Format, wide: bool) -> Element {
    match format {
        Format::Float32 | Format::Bf16 | Format::Bfp8 => Element::number(wide),
        Format::UInt16 => Element::uint16(wide),
        _ => Element::INT32,
    }
}

/// Makes of tile `tile`, whose elements are as `from` has them, one as `to` has them.
#[inline(always)]
pub(crate) fn typecast(from: Format, to: Format, wide: bool, tile: u32) {
    let (kind, result) = (Kind::of(from), Kind::of(to));
    if from == to || kind == Kind::Number && result == Kind::Number {
        return;
    }
    let (load, store) = (element(from, wide), element(to, wide));
    rounds_by_group(|group| {
        push(load.load(0, tile, group));
        if from.is_int8() {
            vector! { sign_magnitude(0, 0); }
        }
        match (kind, result) {
            (Kind::Number, Kind::Number) => {}
            (Kind::Number, Kind::Unsigned) => to_unsigned(),
            (Kind::Number, Kind::Signed) => to_integer(to != Format::UInt8),
            (Kind::Signed, Kind::Number) => from_integer(),
            (Kind::Unsigned, Kind::Number) => from_unsigned(),
            (Kind::Signed, _) => {}
            (Kind::Unsigned, Kind::Signed) if to == Format::UInt8 => {}
            (Kind::Unsigned, Kind::Signed) => vector! {
                if_negative(0);
                low_half(0, MAX_INTEGER);
                high_half(0, MAX_INTEGER);
                END_IF;
            },
            (Kind::Unsigned, Kind::Unsigned) => {}
        }
        bound(kind, to);
        if to.is_int8() {
            vector! { sign_magnitude(0, 0); }
        }
        if result == Kind::Number {
            round_to(number(wide));
        }
        push(store.store(tile));
    });
}

/// Bounds an integer of register 0 to the type `to`; it was of kind `kind`.
#[inline(always)]
fn bound(kind: Kind, to: Format) {
    if matches!(to, Format::UInt16 | Format::UInt32) && kind == Kind::Signed {
        vector! {
            if_negative(0);
            mov(ZERO, 0);
            END_IF;
        }
    }
    if to == Format::UInt16 && kind != Kind::Signed {
        // These have the sign's bit when they are large.
        vector! {
            if_negative(0);
            integer(0, MAX_UINT16);
            END_IF;
        }
    }
    match to {
        Format::UInt16 => push(integer(2, MAX_UINT16)),
        Format::UInt8 => push(integer(2, MAX_UINT8)),
        Format::Int8 => push(integer(2, MAX_INT8 as u32)),
        _ => return,
    }
    if to == Format::UInt8 {
        return vector! { and(2, 0); };
    }
    at_most();
    if to == Format::Int8 {
        vector! {
            if_negative(0);
            add_and_if_negative(0, MAX_INT8, 3);
            integer(0, MAX_INT8 as u32);
            sub_integer(ZERO, 0);
            END_IF;
        }
    }
}

/// Bounds what is not negative by register 2.
#[inline(always)]
fn at_most() {
    vector! {
        mov(2, 3);
        sub_integer(0, 3);
        if_not_negative(0);
        if_not_negative(3);
        mov(2, 0);
        END_IF;
    }
}

/// A number without its fraction as an integer in two's complement; where it is beyond all of them,
/// the integer `next` to it, or zero.
#[inline(always)]
fn to_integer(next: bool) {
    vector! {
        mov(ZERO, 3);
        exponent(0, 1);
        if_not_negative(1);
        mantissa(0, 3);
        add_integer_number(1, -MANTISSA, 2);
        shift_by(2, 3);
        add_integer_number(1, -INTEGER, 2);
        if_not_negative(2);
    }
    if next {
        vector! {
            low_half(3, MAX_INTEGER);
            high_half(3, MAX_INTEGER);
            if_negative(0);
            high_bits(3, MIN_INTEGER >> 16);
        }
    } else {
        vector! { integer(3, 0); }
    }
    vector! {
        END_IF;
        if_negative(0);
        sub_integer(ZERO, 3);
        END_IF;
        mov(3, 0);
    }
}

/// An integer in two's complement as the number next to it. -2^31 has no form with sign and
/// magnitude: it comes out as a zero with a sign.
#[inline(always)]
fn from_integer() {
    vector! {
        sign_magnitude(0, 1);
        to_float(1, 2);
        shift(1, 1);
        if_zero(1);
        if_negative(0);
        high(2, MIN_AS_FLOAT);
        END_IF;
        mov(2, 0);
    }
}

/// A number without its fraction as an integer without sign: 0 below, the largest one beyond.
#[inline(always)]
fn to_unsigned() {
    vector! {
        mov(ZERO, 3);
        if_not_negative(0);
        exponent(0, 1);
        if_not_negative(1);
        mantissa(0, 3);
        add_integer_number(1, -MANTISSA, 2);
        shift_by(2, 3);
        add_integer_number(1, -ALL_BITS, 2);
        if_not_negative(2);
        not(ZERO, 3);
        END_IF;
        mov(3, 0);
    }
}

/// An integer without sign as the number next to it: half of one that needs all bits, with what it
/// loses as its last bit, and twice that.
#[inline(always)]
fn from_unsigned() {
    vector! {
        mov(0, 1);
        if_negative(0);
        integer(2, 1);
        and(1, 2);
        shift(1, -1);
        or(2, 1);
        END_IF;
        to_float(1, 2);
        if_negative(0);
        add(2, 2, 2);
        END_IF;
        mov(2, 0);
    }
}
