//! The math thread of `seeded-compute`.
#![no_std]
#![no_main]

tilework_seeded_compute::image!(Math);
