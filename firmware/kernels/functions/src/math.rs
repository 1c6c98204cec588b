//! The math thread of `functions`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_functions::main);
