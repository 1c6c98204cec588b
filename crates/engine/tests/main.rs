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
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|&module| module != "main") {
            assert!(main.contains(&format!("\nmod {module};\n")), "{name} is in no test binary");
        }
    }
}
