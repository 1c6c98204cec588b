//! The unpack thread of `columns`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_columns::main);
