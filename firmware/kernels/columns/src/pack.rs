//! The pack thread of `columns`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_columns::main);
