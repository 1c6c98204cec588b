//! `cargo fuzz run netlist`: see [`tilework_fuzz::netlist`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tilework_fuzz::netlist::run(input));
