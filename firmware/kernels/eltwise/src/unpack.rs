//! The unpack thread of `eltwise`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_eltwise::main);
