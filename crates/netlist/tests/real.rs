//! The real netlists: what they say arrives in the types.

mod common;

use common::real_netlists;
use tilework_netlist::read;

#[test]
fn every_valid_netlist_is_read() {
    let files = real_netlists("");
    assert!(files.is_empty() || files.len() >= 23, "{} netlists only", files.len());
    for (name, text) in &files {
        if let Err(diagnostics) = read(name, text) {
            panic!("{name} is refused:\n{diagnostics}");
        }
    }
}
