//! The math thread of `columns`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_columns::main);
