//! The pack thread of `eltwise`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_eltwise::main);
