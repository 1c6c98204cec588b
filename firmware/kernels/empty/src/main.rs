//! Does nothing. For tests of launching. No arguments; runs on BRISC.
#![no_std]
#![no_main]

use tilework_rt::{KernelContext, kernel};

kernel!(main);

fn main(_: &KernelContext) {}
