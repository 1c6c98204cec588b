//! The pack thread of `layernorm`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Pack, tilework_layernorm::main);
