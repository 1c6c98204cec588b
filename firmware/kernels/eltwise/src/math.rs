//! The math thread of `eltwise`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_eltwise::main);
