//! The pack thread of `rotary`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_rotary::main);
