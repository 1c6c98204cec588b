//! The math thread of `pair`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_pair::main);
