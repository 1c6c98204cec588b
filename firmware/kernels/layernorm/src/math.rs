//! The math thread of `layernorm`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Math, tilework_layernorm::main);
