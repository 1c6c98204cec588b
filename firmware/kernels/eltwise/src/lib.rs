//! Adds, subtracts or multiplies the tiles of two circular buffers, one by one.
//!
//! Arguments:
//! 0. number of tiles (may be 0);
//! 1. 0: add, 1: subtract, 2: multiply;
//! 2. how the second operand is spread: 0: not, 1: column 0, 2: row 0, 3: element 0;
//! 3. phases of a product, 1 to 4;
//! 4. format of all tiles (`Format`);
//! 5. to 7. numbers of the circular buffers: first operand, second operand, result.
#![no_std]

use tilework_compute::{Binary, Broadcast, Compute, Fidelity, Format, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let tiles = k.arg(0);
    let op = match k.arg(1) {
        0 => Binary::Add,
        1 => Binary::Subtract,
        _ => Binary::Multiply,
    };
    let broadcast = match k.arg(2) {
        0 => Broadcast::None,
        1 => Broadcast::Column,
        2 => Broadcast::Row,
        _ => Broadcast::Scalar,
    };
    let (fidelity, format) = (Fidelity::of_phases(k.arg(3)), Format::of(k.arg(4)));
    let (mut a, mut b, mut out) = (k.cb(k.arg(5), format), k.cb(k.arg(6), format), k.cb(k.arg(7), format));

    k.hw_configure(format, format, format, format == Format::Float32);
    k.binary_init(op, broadcast, fidelity);
    for _ in 0..tiles {
        a.wait_front(1);
        b.wait_front(1);
        k.tile_regs_acquire();
        k.binary_tiles(&a, &b, 0, 0, 0);
        k.tile_regs_commit();
        a.pop_front(1);
        b.pop_front(1);

        out.reserve_back(1);
        k.tile_regs_wait();
        k.pack_tile(0, &out, 0);
        k.tile_regs_release();
        out.push_back(1);
    }
}
