//! The math thread of `row-softmax`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_rows::softmax::main);
