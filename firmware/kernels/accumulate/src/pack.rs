//! The pack thread of `accumulate`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_accumulate::main);
