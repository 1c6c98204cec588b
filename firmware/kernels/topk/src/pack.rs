//! The pack thread of `topk`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_topk::main);
