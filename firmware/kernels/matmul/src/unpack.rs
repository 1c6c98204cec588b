//! The unpack thread of `matmul`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_matmul::main);
