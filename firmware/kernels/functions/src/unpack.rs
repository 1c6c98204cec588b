//! The unpack thread of `functions`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_functions::main);
