//! The math thread of `flash`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_flash::main);
