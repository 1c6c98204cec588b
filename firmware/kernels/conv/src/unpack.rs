//! The unpack thread of `conv`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_conv::main);
