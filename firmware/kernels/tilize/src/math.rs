//! The math thread of `tilize`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_tilize::main);
