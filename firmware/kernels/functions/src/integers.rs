//! The math thread of `functions` with functions of integers and of places.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_functions::integers);
