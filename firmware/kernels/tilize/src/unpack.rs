//! The unpack thread of `tilize`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_tilize::main);
