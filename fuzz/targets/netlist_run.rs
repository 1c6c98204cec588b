//! `cargo fuzz run netlist_run`: see [`tilework_fuzz::netlist_run`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tilework_fuzz::netlist_run::run(input));
