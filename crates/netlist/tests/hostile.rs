//! Hostile files: no panic, and memory and time in proportion to the file's size.

use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;
use tilework_netlist::memory::Memory;
use tilework_netlist::{Checked, Options, check, code, tree::Budget};

fn data(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

/// Codes of the errors of a text.
fn codes(text: &str) -> Vec<String> {
    let Checked { netlist, diagnostics, .. } = check("hostile.yaml", text, &Options::default());
    assert_eq!(netlist.is_some(), diagnostics.errors() == 0);
    diagnostics.render(true);
    diagnostics.list().iter().map(|finding| finding.code.to_string()).collect()
}

#[test]
fn brackets_without_end_are_refused() {
    for open in ["[", "{", "- ", "a: [", "{a: "] {
        assert!(!codes(&open.repeat(100_000)).is_empty(), "{open}");
    }
    let deep: String = (0..5_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(codes(&deep), ["N0002"]);
}

#[test]
fn aliases_are_never_expanded() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nqueues: [*c, *c]\n";
    assert_eq!(codes(bomb), ["N0003"]);
}

#[test]
fn sizes_beyond_the_budget_are_refused() {
    let budget = Budget { bytes: 100, ..Budget::default() };
    let checked = check("big.yaml", &data("base.yaml"), &Options { budget, ..Options::default() });
    assert_eq!(checked.diagnostics.list()[0].code, code::YAML_BUDGET);
    let budget = Budget { nodes: 100, ..Budget::default() };
    let checked = check("big.yaml", &data("base.yaml"), &Options { budget, ..Options::default() });
    assert_eq!(checked.diagnostics.list()[0].code, code::YAML_BUDGET);
}

#[test]
fn counts_cannot_overflow_or_ask_for_memory() {
    let base = data("base.yaml");
    for number in ["1048576", "1048577", "4294967295", "4294967296", "9223372036854775807", "99999999999999999999"] {
        for (field, value) in [
            ("entries: 4", format!("entries: {number}")),
            ("t: 2", format!("t: {number}")),
            ("mblock: [2, 1]", format!("mblock: [{number}, {number}]")),
            ("ublock: [2, 2]", format!("ublock: [{number}, {number}]")),
            ("grid_size: [1, 1]", format!("grid_size: [{number}, {number}]")),
            ("grid_loc: [1, 0]", format!("grid_loc: [{number}, {number}]")),
            ("buf_size_mb: 2", format!("buf_size_mb: {number}")),
            ("input_count: 2", format!("input_count: {number}")),
            ("m_k: 2, u_kt: 2", format!("m_k: {number}, u_kt: {number}")),
            (
                "broadcast: {r: 2}",
                format!("broadcast: {{r: {number}}}, broadcast: {{r: {number}}}, broadcast: {{z: {number}}}"),
            ),
            (
                "input_1_tms: [transpose]",
                format!("input_1_tms: [vstack: {number}, hslice: {number}, pad: [{number}, {number}, 0]]"),
            ),
            ("{input_2: 2}", format!("{{input_2: {number}}}")),
            ("$c_wrap: 8", format!("$c_wrap: {number}")),
            ("target_device: 0", format!("target_device: {number}")),
        ] {
            assert!(base.contains(field), "{field}");
            codes(&base.replace(field, &value));
        }
    }
}

#[test]
fn a_list_of_devices_cannot_blow_a_file_up() {
    let devices: Vec<String> = (0..256).map(|device| device.to_string()).collect();
    let list = format!("target_device: [{}]", devices.join(", "));
    let base = data("devices.yaml").replace("target_device: [0, 1]", &list);
    assert!(codes(&base).is_empty());
    let queue = base.lines().find(|line| line.trim_start().starts_with("in:")).unwrap();
    let more: String = (0..300).map(|index| queue.replace("in:", &format!("in{index}:")) + "\n").collect();
    assert!(codes(&base.replace("  in:", &format!("{more}  in:"))).contains(&"N0017".to_owned()));
    let execute = base.lines().find(|line| line.contains("graph_name: both")).unwrap();
    let more: String = (0..300).map(|_| format!("{execute}\n")).collect();
    assert!(codes(&base.replace(execute, &more)).contains(&"N0017".to_owned()));
}

#[test]
fn many_findings_are_counted_not_kept() {
    let mut text = String::from("devices: {arch: grayskull}\nprograms: []\ngraphs: {}\nqueues:\n");
    for index in 0..5_000 {
        writeln!(text, "  q{index}: {{typ: queue}}").unwrap();
    }
    let found = check("many.yaml", &text, &Options::default()).diagnostics;
    assert_eq!(found.list().len(), 500);
    assert!(found.left_out() > 5_000 && found.errors() > 5_000);
}

/// What may replace a word of a netlist.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "7",
    "32",
    "-1",
    "1048576",
    "0xffffffff",
    "true",
    "null",
    "HOST",
    "Float32",
    "Int8",
    "Bfp2_b",
    "matmul",
    "fused_op",
    "splice",
    "dest",
    "intermed0",
    "$l",
    "[]",
    "{}",
    "[0, 0]",
    "grayskull",
    "transpose",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Words of a valid netlist are replaced; what is still accepted can be reported on.
    #[test]
    fn changed_words_are_accepted_or_refused(
        file in 0..4usize,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..WORDS.len()), 1..5),
    ) {
        let text = data(["base.yaml", "fused.yaml", "integer.yaml", "devices.yaml"][file]);
        let mut words: Vec<&str> = text.split_inclusive([' ', ',', '\n', ']', '}', '[', '{', ':']).collect();
        for (at, word) in &edits {
            let index = at.index(words.len());
            words[index] = WORDS[*word];
        }
        let text = words.concat();
        let Checked { netlist, archs, diagnostics } = check("changed.yaml", &text, &Options::default());
        prop_assert_eq!(netlist.is_some(), diagnostics.errors() == 0);
        prop_assert!(!diagnostics.render(false).is_empty() || diagnostics.list().is_empty());
        if let Some(netlist) = netlist {
            for arch in archs {
                prop_assert!(!Memory::of(&netlist, arch).to_string().is_empty());
            }
        }
    }

    /// Any text is handled without a panic.
    #[test]
    fn any_text_is_answered(text in "(queues|graphs|devices|[ \\[\\]{}:,\\-\n'\"#&*!|>a-z0$]){0,200}") {
        codes(&text);
    }
}
