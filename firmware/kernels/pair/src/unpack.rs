//! The unpack thread of `pair`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_pair::main);
