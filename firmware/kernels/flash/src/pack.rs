//! The pack thread of `flash`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_flash::main);
