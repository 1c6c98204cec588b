//! The math thread of `conv`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_conv::main);
