//! The pack thread of `functions`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_functions::main);
