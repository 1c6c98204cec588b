//! Operations and programs on the simulated chip, one binary: what the tests make of the generic
//! code of the runtime and of this crate is compiled once.

mod chip;
mod chosen;
mod composed;
mod families;
mod images;
mod layers;
mod mesh;
mod moves;
mod one_pass;
mod plugin;
mod properties;
mod real;
mod rowwise;
mod runs;
mod sequences;
mod sharded;
mod training;

/// A file of this folder that no line above names would never run.
#[test]
fn every_file_is_a_module_of_the_binary() {
    chip::common::assert_all_are_modules(env!("CARGO_MANIFEST_DIR"));
}
