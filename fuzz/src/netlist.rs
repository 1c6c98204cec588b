//! Any text as a netlist: it is accepted, or refused with findings whose positions are in the text.

use crate::Input;
use std::fmt::Write;
use tilework_netlist::memory::Memory;
use tilework_netlist::{Checked, Options, Severity, check};

/// Valid netlists, to be edited.
const SEEDS: [&str; 4] = [
    include_str!("../../crates/netlist/tests/data/base.yaml"),
    include_str!("../../crates/netlist/tests/data/fused.yaml"),
    include_str!("../../crates/netlist/tests/data/integer.yaml"),
    include_str!("../../crates/netlist/tests/data/devices.yaml"),
];

/// Words to insert.
const WORDS: [&str; 40] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "32",
    "64",
    "1048576",
    "4294967295",
    "9223372036854775807",
    "0x7fffffff",
    "1e9",
    ".nan",
    "true",
    "null",
    "~",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ": ",
    "\n",
    "  ",
    "- ",
    "'",
    "\"",
    "#",
    "&a",
    "*a",
    "<<: ",
    "$l",
    "HOST",
    "Bfp2",
    "Int32",
    "matmul",
    "dest",
    "intermed1",
    "[0, 1]",
    "ä",
];

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let text = match input.byte() % 4 {
        0 => String::from_utf8_lossy(bytes.get(1..).unwrap_or_default()).into_owned(),
        _ => edited(&mut input),
    };
    let Checked { netlist, archs, diagnostics } = check("fuzz.yaml", &text, &Options::default());
    let errors = diagnostics.list().iter().filter(|d| d.severity == Severity::Error).count();
    assert!(netlist.is_some() == (diagnostics.errors() == 0), "accepted with errors, or refused without");
    assert!(diagnostics.errors() >= errors);
    let lines = text.lines().count() + 1;
    for finding in diagnostics.list() {
        let (start, end) = (finding.span.start, finding.span.end);
        assert!(start <= end && start.line as usize <= lines, "{start:?} to {end:?} of {lines} lines");
        assert!(!finding.message.is_empty());
    }
    let shown = diagnostics.render(false);
    assert!(diagnostics.list().iter().all(|finding| shown.contains(&finding.code.to_string())));
    if let Some(netlist) = netlist {
        for arch in archs {
            let mut out = String::new();
            write!(out, "{}", Memory::of(&netlist, arch)).expect("a string takes it");
        }
    }
}

/// A valid netlist with up to eight edits: words moved, duplicated, removed or replaced.
fn edited(input: &mut Input<'_>) -> String {
    let mut text = input.pick(&SEEDS).to_owned();
    for _ in 0..=input.byte() % 8 {
        let (from, width) = (usize::from(input.half()), usize::from(input.byte() % 16));
        let mut start = from % text.len().max(1);
        let mut end = (start + width).min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        while !text.is_char_boundary(end) {
            end += 1;
        }
        match input.byte() % 4 {
            0 => text.replace_range(start..end, ""),
            1 => text.replace_range(start..end, input.pick(&WORDS)),
            2 => text.insert_str(start, input.pick(&WORDS)),
            _ => {
                let piece = text[start..end].to_owned();
                let mut to = usize::from(input.half()) % text.len().max(1);
                while !text.is_char_boundary(to) {
                    to -= 1;
                }
                text.insert_str(to, &piece);
            }
        }
    }
    text
}
