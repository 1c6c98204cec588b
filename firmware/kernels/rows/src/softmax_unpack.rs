//! The unpack thread of `row-softmax`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_rows::softmax::main);
