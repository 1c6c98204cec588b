//! `cargo fuzz run bar`: see [`tilework_fuzz::bar`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tilework_fuzz::bar::run(input));
