//! The pack thread of `pair`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_pair::main);
