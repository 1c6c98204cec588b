//! The pack thread of `tilize`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_tilize::main);
