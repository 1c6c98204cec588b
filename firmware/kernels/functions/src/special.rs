//! The math thread of `functions` with further functions of numbers.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_functions::special);
