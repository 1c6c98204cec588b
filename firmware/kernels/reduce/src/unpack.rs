//! The unpack thread of `reduce`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_reduce::main);
