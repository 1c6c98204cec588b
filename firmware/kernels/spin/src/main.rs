//! Never ends: polls a word that nobody writes. For tests of deadlock reports. Runs on BRISC.
//!
//! Arguments: 0: L1 address of the word; the kernel would end if it became other than it was at the
//! start.
#![no_std]
#![no_main]

use tilework_rt::reg::{read, wait};
use tilework_rt::{KernelContext, kernel, rta};

kernel!(main);

fn main(ctx: &KernelContext) {
    let addr = rta(ctx, 0);
    let before = read(addr);
    wait(addr, |now| now != before);
}
