//! Mistakes that a netlist may have and still be legal, and what resembles them without being one;
//! messages that name what is wrong.

use std::path::Path;
use tilework_netlist::{Checked, Options, Severity, check};

/// What is said of a netlist of tests/data after replacements: codes with their messages and helps.
fn said(file: &str, changes: &[(&str, &str)]) -> Vec<(u16, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let mut text = std::fs::read_to_string(path).unwrap();
    for (old, new) in changes {
        assert!(text.contains(old), "nothing to replace: {old}");
        text = text.replace(old, new);
    }
    let Checked { diagnostics, .. } = check(file, &text, &Options::default());
    let message = |d: &tilework_netlist::Diagnostic| {
        let severity = if d.severity == Severity::Warning { "warning" } else { "error" };
        format!("{severity}: {}; {}", d.message, d.help.as_deref().unwrap_or_default())
    };
    diagnostics.list().iter().map(|d| (d.code.number, message(d))).collect()
}

fn base(changes: &[(&str, &str)]) -> Vec<(u16, String)> {
    said("base.yaml", changes)
}

const GLOBAL: &str = "      - varinst: [$g, incwrap, $c_inputs, $c_wrap]\n";
const LOCAL: &str = "      - varinst: [$l, incwrap, $c_inputs, $c_wrap]\n";

#[test]
fn pointers_that_wrap_at_the_entries_are_a_warning() {
    let found = base(&[("$c_inputs, $c_wrap]", "$c_inputs, 4]")]);
    let wanted = |name: &str| {
        let help = "pointers of a queue of 4 run from 0 to 7: wrap at 8";
        (619, format!("warning: a read pointer of `{name}` wraps at 4, its entries; {help}"))
    };
    assert_eq!(found, ["acts", "acts", "middle"].map(wanted));
    // Twice as many, or what is not known before the run, is no mistake.
    assert_eq!(base(&[("$c_wrap: 8", "$c_wrap: 16")]), []);
    assert_eq!(base(&[("$c_inputs, $c_wrap]", "$c_inputs, $p_times]")]), []);
}

#[test]
fn reading_in_a_circle_is_no_mistake() {
    // Nobody frees the entries: the local pointer goes round over them.
    let circle = [(LOCAL, "      - varinst: [$l, incwrap, $c_inputs, 4]\n"), (GLOBAL, "")];
    assert_eq!(base(&circle), []);
    // A pointer that wraps at 1 reads the only entry of a queue as a constant.
    let one = [("entries: 4", "entries: 1"), ("input_count: 2", "input_count: 1"), ("$c_wrap: 8", "$c_wrap: 1")];
    assert_eq!(base(&one), []);
}

#[test]
fn a_graph_that_takes_more_inputs_than_a_queue_holds_is_a_warning() {
    let more = ("input_count: 2", "input_count: 5");
    let help = "make input_count smaller, the queue larger, or let global_rdptr_autoinc free each entry";
    let of = |graph: &str, queue: &str| {
        (226, format!("warning: graph `{graph}` takes 5 inputs of queue `{queue}`, which holds 4; {help}"))
    };
    assert_eq!(base(&[more]), [of("forward", "acts"), of("backward", "middle")]);
    // Entries that the device frees meanwhile, or of which one is read for all inputs.
    let pops = ("rd_ptr_global: $m}", "rd_ptr_global: $m, global_rdptr_autoinc: 1}");
    assert_eq!(base(&[more, pops]), [of("forward", "acts")]);
    let constant = ("acts: {prologue: false", "acts: {prologue: true");
    assert_eq!(base(&[more, constant]), [of("backward", "middle")]);
    let same = ("rd_ptr_global: $g}", "rd_ptr_global: $g, rd_ptr_autoinc: 0}");
    assert_eq!(base(&[more, pops, same]), []);
    // What stands in no settings is read from one entry to the next.
    let settings =
        "          middle: {prologue: false, epilogue: false, zero: false, rd_ptr_local: $m, rd_ptr_global: $m},\n";
    assert_eq!(base(&[more, constant, (settings, "")]), [of("backward", "middle")]);
}

#[test]
fn a_global_pointer_that_no_program_moves_is_a_warning() {
    let help = "what is read stays in the queue, which fills up: move rd_ptr_global like rd_ptr_local";
    let wanted = [(620, format!("warning: no program moves the global read pointer of `acts`; {help}"))];
    assert_eq!(base(&[(GLOBAL, "")]), wanted);
    // A loop that moves neither.
    assert_eq!(base(&[(GLOBAL, ""), (LOCAL, "")]), wanted);
    assert_eq!(base(&[(GLOBAL, ""), ("rd_ptr_global: $g", "rd_ptr_global: 0")]), wanted);
    // A loop of one turn, a constant's name, an entry for all inputs, the device, a caller.
    let once = ("loop: $p_times", "loop: 1");
    assert_eq!(base(&[(GLOBAL, ""), (LOCAL, ""), once]), []);
    let constant = ("rd_ptr_local: $l, rd_ptr_global: $g", "rd_ptr_local: $c_zero, rd_ptr_global: $c_zero");
    assert_eq!(base(&[(GLOBAL, ""), (LOCAL, ""), constant]), []);
    assert_eq!(base(&[(GLOBAL, ""), ("acts: {prologue: false", "acts: {prologue: true")]), []);
    assert_eq!(base(&[(GLOBAL, ""), ("rd_ptr_global: $g}", "rd_ptr_global: $g, global_rdptr_autoinc: 1}")]), []);
    assert_eq!(base(&[(GLOBAL, ""), ("rd_ptr_global: $g}", "rd_ptr_global: $p_times}")]), []);
}

#[test]
fn a_pointer_may_be_moved_by_another_program() {
    let other = "\n  - free:\n      - staticvar: {$f: 0}\n      - execute: {graph_name: forward, queue_settings: {acts: \
                 {prologue: false, epilogue: false, zero: false, rd_ptr_local: $f, rd_ptr_global: $f}, weights: \
                 {prologue: true, epilogue: false, zero: false, rd_ptr_global: 0, wr_ptr_global: 0}}}\n      \
                 - varinst: [$f, incwrap, 2, 8]\n\ntest-config:";
    assert_eq!(base(&[(GLOBAL, ""), ("\ntest-config:", other)]), []);
}

#[test]
fn the_message_of_a_wrong_m_k_names_it() {
    let found = base(&[("m_k: 2, u_kt: 2, bias", "m_k: 3, u_kt: 2, bias")]);
    let wanted =
        "error: m_k 3 times u_kt 2 of `product` is 6, but its inputs have 4 tiles in that direction; write m_k: 2";
    assert_eq!(found, [(205, wanted.to_owned())]);
    let found = base(&[("type: max, m_k: 2, u_kt: 2", "type: max, m_k: 2, u_kt: 3")]);
    let wanted = "error: m_k 2 times u_kt 3 of `largest` is 6, but its inputs have 4 tiles in that direction; m_k * u_kt must be 4";
    assert_eq!(found, [(205, wanted.to_owned())]);
    // Of a fused product, too.
    let found = said("fused.yaml", &[("attributes: {m_k: 2, u_kt: 1}", "attributes: {m_k: 1, u_kt: 1}")]);
    assert!(found.iter().any(|(code, text)| *code == 515 && text.contains("m_k 1 and u_kt 1")), "{found:?}");
}

#[test]
fn a_misspelt_field_gets_the_one_that_is_meant() {
    let meant = |changes: &[(&str, &str)], name: &str| {
        let found = base(changes);
        let wanted = format!("; did you mean `{name}`?");
        assert!(found.len() == 1 && found[0].0 == 10 && found[0].1.contains(&wanted), "{found:?}");
    };
    meant(&[("entries: 4, grid_size: [1, 2]", "entries: 4, gird_size: [1, 2]")], "grid_size");
    meant(
        &[(
            "grid_loc: [0, 1], grid_size: [1, 1], inputs: [reader]",
            "grid_loc: [0, 1], gird_size: [1, 1], inputs: [reader]",
        )],
        "grid_size",
    );
    // One that stands beside the operations, where only those of the graph may.
    meant(&[("    input_count: 2\n    reader", "    input_count: 2\n    gird_size: [1, 1]\n    reader")], "grid_size");
    meant(
        &[("target_device: 0\n    input_count: 2\n    reader", "target_device: 0\n    inptu_count: 2\n    reader")],
        "input_count",
    );
}
