//! The unpack thread of `rotary`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_rotary::main);
