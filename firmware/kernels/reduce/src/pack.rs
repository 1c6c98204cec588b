//! The pack thread of `reduce`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_reduce::main);
