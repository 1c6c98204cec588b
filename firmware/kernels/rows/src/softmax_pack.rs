//! The pack thread of `row-softmax`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_rows::softmax::main);
