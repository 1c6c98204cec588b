//! The pack thread of `seeded-compute`.
#![no_std]
#![no_main]

tilework_seeded_compute::image!(Pack);
