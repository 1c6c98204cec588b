//! The pack thread of `softmax`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_softmax::main);
