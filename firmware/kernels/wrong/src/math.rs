//! Wrong uses of the coprocessor, for tests of what finds them, as `wrong` has them of the rest.
//! Runs on TRISC1.
//!
//! Arguments:
//! 0. which program: 0 sets a semaphore, 1 sets and posts it, 2 posts it only, and 3 posts it too
//!    often.
#![no_std]
#![no_main]

use tilework_abi::tensix::insn::{Seminit, Sempost};
use tilework_abi::tensix::{INSTRN_BUF_BASE, PC_BUF_BASE, pc_buf};
use tilework_rt::reg::{read, write};
use tilework_rt::{KernelContext, kernel, rta};

kernel!(main);

/// Semaphore 2.
const MASK: u32 = 1 << 2;

/// Has the coprocessor execute an instruction.
#[inline(always)]
fn push(word: u32) {
    write(INSTRN_BUF_BASE, word);
}

#[inline(never)]
fn set() {
    push(Seminit::build().new_max(15).new_value(0).semaphore_mask(MASK).word());
}

#[inline(never)]
fn post() {
    push(Sempost::build().semaphore_mask(MASK).word()); // wrong: tensix-state-left
}

#[inline(never)]
fn post_often() {
    for _ in 0..16 {
        push(Sempost::build().semaphore_mask(MASK).word()); // wrong: sem-overflow
    }
}

fn main(ctx: &KernelContext) {
    let program = rta(ctx, 0);
    if program != 2 {
        set();
    }
    match program {
        1 | 2 => post(),
        3 => post_often(),
        _ => {}
    }
    // Answered when the coprocessor has done everything.
    read(PC_BUF_BASE + pc_buf::TENSIX_SYNC);
}
