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
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|&module| module != "main") {
            assert!(main.contains(&format!("\nmod {module};\n")), "{name} is in no test binary");
        }
    }
}
