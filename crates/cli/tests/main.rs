//! The end-to-end tests of the command, one binary: it is linked once, and the machine's threads
//! are busy to the end.

mod bad_input;
mod bundle;
mod card;
mod card_bundle;
mod card_clients;
mod chip;
mod command_line;
mod common;
mod compute_examples;
mod compute_functions;
mod compute_integers;
mod compute_programs;
mod compute_rows;
mod coverage;
mod debugger;
mod disasm;
mod docs;
mod examples;
mod explain;
mod explore;
mod findings;
mod firmware;
mod functions;
mod going_on;
mod installed;
mod kinds;
mod limits;
mod looking;
mod models;
mod models_mesh;
mod native;
mod netlist_run;
mod netlists;
mod perfetto;
mod prints;
mod product;
mod program_check;
mod pto;
mod queue_steps;
mod races;
mod real_card;
mod ring_files;
mod robust;
mod sdk;
mod simdir;
mod swap;
mod traced_steps;
mod unsafe_code;
mod worker_choice;
mod wrong;

/// A file of this folder that no line above names would never run.
#[test]
fn every_file_is_a_module_of_the_binary() {
    let folder = common::repository().join("crates/cli/tests");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|&m| m != "main") {
            assert!(main.contains(&format!("\nmod {module};\n")), "{name} is in no test binary");
        }
    }
}
