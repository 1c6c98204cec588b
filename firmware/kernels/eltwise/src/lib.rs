//! Adds, subtracts, multiplies, copies or transposes tiles, one by one, and computes a function of
//! the result.
//!
//! Arguments:
//! 0. number of tiles (may be 0);
//! 1. 0: add, 1: subtract, 2: multiply, 3: copy, 4: transpose (each tile by itself);
//! 2. how the second operand is spread: 0: not, 1: column 0, 2: row 0, 3: element 0;
//! 3. phases of a product, 1 to 4;
//! 4. 0: no function, 1: exponential, 2: reciprocal, 3: reciprocal of the square root of the sum
//!    with a number, 4: the larger of the result and zero, 5: product with a number;
//! 5. the number, as the bits of an f32;
//! 6. to 8. formats of first operand, second operand, result (`Format`);
//! 9. to 11. numbers of their circular buffers. A copy has no second operand.
//!
//! Dst has elements of 32 bits when a format has. So it does with integers of eight bits; `Int32`
//! as their result has the exact sum, difference or product, others the nearest value.
#![no_std]

use tilework_compute::{Binary, Broadcast, Compute, Fidelity, Format, Thread, Unary};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let tiles = k.arg(0);
    let op = [Binary::Add, Binary::Subtract, Binary::Multiply].get(k.arg(1) as usize).copied();
    let broadcast = match k.arg(2) {
        0 => Broadcast::None,
        1 => Broadcast::Column,
        2 => Broadcast::Row,
        _ => Broadcast::Scalar,
    };
    let function = match k.arg(4) {
        0 => None,
        1 => Some(Unary::Exp),
        2 => Some(Unary::Reciprocal),
        3 => Some(Unary::Rsqrt(k.arg(5))),
        4 => Some(Unary::Relu),
        _ => Some(Unary::Scale(k.arg(5))),
    };
    let formats = [6, 7, 8].map(|i| Format::of(k.arg(i)));
    let [first, second, result] = formats;
    let (mut a, mut b, mut out) = (k.cb(k.arg(9), first), k.cb(k.arg(10), second), k.cb(k.arg(11), result));

    k.hw_configure(first, second, result, formats.iter().any(|format| format.is_wide()));
    match op {
        Some(op) => k.binary_init(op, broadcast, Fidelity::of_phases(k.arg(3))),
        None if k.arg(1) == 3 => k.copy_tile_init(first),
        None => k.transpose_tile_init(),
    }
    if let Some(function) = function {
        k.unary_init(function);
    }
    let casts = first.is_int8() && !result.is_int8();
    if casts {
        k.typecast_init();
    }
    for _ in 0..tiles {
        a.wait_front(1);
        if op.is_some() {
            b.wait_front(1);
        }
        k.tile_to(&mut out, |k| {
            match op {
                Some(_) => k.binary_tiles(&a, &b, 0, 0, 0),
                None => k.copy_tile(&a, 0, 0),
            }
            if let Some(function) = function {
                k.unary_tile(function, 0);
            }
            if casts {
                k.typecast_tile(first, result, 0);
            }
        });
        a.pop_front(1);
        if op.is_some() {
            b.pop_front(1);
        }
    }
}
