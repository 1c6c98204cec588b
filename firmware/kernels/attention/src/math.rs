//! The math thread of `attention`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_attention::main);
