//! The unpack thread of `accumulate`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_accumulate::main);
