//! The math thread of `row-norm`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_rows::norm::main);
