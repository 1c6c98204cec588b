//! The math thread of `reduce`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_reduce::main);
