//! The unpack thread of `topk`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_topk::main);
