//! Multiplies rows of windows with weights, which stay in L1: a row of tiles of the result after
//! the other, in parts that fit into Dst.
//!
//! Arguments and circular buffers: `tilework_abi::conv`.
#![no_std]

use tilework_abi::conv::{arg, cb, own};
use tilework_compute::{Compute, Fidelity, Format, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let [inner, columns, part, phases] = [arg::INNER, arg::COLUMNS, arg::PART, arg::PHASES].map(|i| k.common_arg(i));
    let [pixels, weights, result] = [0, 1, 2].map(|i| Format::of(k.common_arg(arg::FORMATS + i)));
    let (mut rows, weight, mut out) = (k.cb(cb::ROWS, pixels), k.cb(cb::WEIGHTS, weights), k.cb(cb::RESULT, result));
    // The weights go through SrcA.
    k.hw_configure(weights, pixels, result, k.common_arg(arg::WIDE) != 0);
    k.matmul_init(Fidelity::of_phases(phases), false);
    for _ in 0..k.arg(own::ROWS) {
        for left in (0..columns).step_by(part as usize) {
            k.tile_regs_acquire();
            for i in 0..inner {
                rows.wait_front(i + 1);
                weight.wait_front((i + 1) * columns);
                k.matmul_onto(&rows, &weight, [i, i * columns + left], part, 0);
            }
            k.tile_regs_commit();
            out.reserve_back(part);
            k.tile_regs_wait();
            (0..part).for_each(|tile| k.pack_tile(tile, &out, tile));
            k.tile_regs_release();
            out.push_back(part);
        }
        rows.pop_front(inner);
    }
}
