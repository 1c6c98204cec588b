//! The unpack thread of `layernorm`.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(Unpack, tilework_layernorm::main);
