//! The math thread of `accumulate`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_accumulate::main);
