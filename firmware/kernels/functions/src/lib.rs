//! Runs a program of element-wise steps (`tilework_abi::eltwise`) tile by tile: a chain of
//! functions of operands that come by circular buffers, or a reduction of runs of tiles.
//!
//! Arguments (`tilework_abi::eltwise::arg`):
//! 0. number of runs (may be 0): a run is what goes into one tile of a result;
//! 1. iterations of a run, at least 1, and 2. of a row of them;
//! 3. flags: 1: Dst has elements of 32 bits; 2: each iteration stores for itself;
//! 4. number of operands, 5. of results, 6. of words of the program;
//! 7. seed of random numbers; then for each operand
//!    - the number of its circular buffer, and its format (`Format`);
//!    - for how many iterations a page stays, and for how many of these the first page does; then
//!      for each result
//!    - the number of its circular buffer, and its format; then the words of the program.
#![no_std]

use tilework_abi::eltwise::{arg, flag, image};
use tilework_compute::program::{Buffers, Iteration, Program, Slots};
use tilework_compute::{Compute, Thread};

/// The kernel with the functions of image `functions` (`tilework_abi::eltwise::image`).
pub fn main<T: Thread>(k: &mut Compute<T>) {
    run::<T, { image::FUNCTIONS }>(k);
}

/// With those of image `special`.
pub fn special<T: Thread>(k: &mut Compute<T>) {
    run::<T, { image::SPECIAL }>(k);
}

/// With those of image `integers`.
pub fn integers<T: Thread>(k: &mut Compute<T>) {
    run::<T, { image::INTEGERS }>(k);
}

#[inline(always)]
fn run<T: Thread, const IMAGE: u32>(k: &mut Compute<T>) {
    let counts = [arg::OPERANDS, arg::RESULTS, arg::WORDS].map(|i| k.arg(i));
    let (runs, iterations, columns) = (k.arg(arg::RUNS), k.arg(arg::ITERATIONS), k.arg(arg::COLUMNS));
    let flags = k.arg(arg::FLAGS);
    let each = flags & flag::EACH != 0;
    let mut buffers = Buffers::new();
    let mut program = Program::<T, IMAGE>::new(k, counts, arg::FIRST, k.arg(arg::SEED), &mut buffers);
    program.configure(k, flags & flag::WIDE != 0);
    for _ in 0..runs {
        let mut at = Iteration::first(iterations, columns);
        for number in 1..=iterations {
            if each || number == 1 {
                k.tile_regs_acquire();
            }
            program.compute(k, at, Slots::ALL);
            if each || number == iterations {
                k.tile_regs_commit();
                k.tile_regs_wait();
                program.store(k, each.then_some(at), Slots::ALL);
                k.tile_regs_release();
            }
            at = at.next();
        }
    }
}
