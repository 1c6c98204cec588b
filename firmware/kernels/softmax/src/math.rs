//! The math thread of `softmax`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_softmax::main);
