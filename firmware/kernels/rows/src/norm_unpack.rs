//! The unpack thread of `row-norm`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_rows::norm::main);
