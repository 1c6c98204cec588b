//! The unpack thread of `softmax`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_softmax::main);
