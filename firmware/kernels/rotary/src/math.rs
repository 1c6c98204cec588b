//! The math thread of `rotary`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_rotary::main);
