//! The unpack thread of `attention`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_attention::main);
