//! `cargo fuzz run firmware`: see [`tilework_fuzz::firmware`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tilework_fuzz::firmware::run(input));
