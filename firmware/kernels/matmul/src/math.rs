//! The math thread of `matmul`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_matmul::main);
