//! The pack thread of `matmul`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_matmul::main);
