//! The pack thread of `row-norm`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_rows::norm::main);
