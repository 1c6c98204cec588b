//! The pack thread of `conv`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_conv::main);
