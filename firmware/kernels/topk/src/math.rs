//! The math thread of `topk`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_topk::main);
