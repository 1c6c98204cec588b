//! `cargo fuzz run noc`: see [`tilework_fuzz::noc`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tilework_fuzz::noc::run(input));
