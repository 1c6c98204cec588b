//! The pack thread of `attention`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_attention::main);
