//! The unpack thread of `flash`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_flash::main);
