//! The part of `square` for one TRISC.
#![no_std]
#![no_main]

tilework_compute::compute_kernel!(@THREAD@, kernels::square);
