//! The engine on programs of files and of its own making, one binary: what the tests make of its
//! generic code is compiled once.

mod beside;
mod common;
mod compare;
mod control;
mod flow;
mod hostile;
mod inputs;
mod mesh;
mod observe;
mod own;
mod plugin;
mod prepare;
mod real;
mod support;
mod threads;
mod training;

/// A file of this folder that no line above names would never run.
#[test]
fn every_file_is_a_module_of_the_binary() {
    common::assert_all_are_modules(env!("CARGO_MANIFEST_DIR"));
}
