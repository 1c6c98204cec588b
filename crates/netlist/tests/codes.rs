//! Every code has a netlist that gives it, and the whole message stands in `data/codes.txt`.
//!
//! After a change of messages: `TILEWORK_BLESS=1 cargo test -p tilework-netlist --test codes`, and
//! read the difference.

mod cases;

use cases::{CASES, Case};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tilework_netlist::{Arch, Checked, Options, check, code};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn changed(case: &Case) -> String {
    let mut text = std::fs::read_to_string(data(case.file)).unwrap();
    for (old, new) in case.changes {
        assert!(text.contains(old), "case {}: nothing to replace: {old}", case.code);
        text = text.replacen(old, new, 1);
    }
    text
}

#[test]
fn the_netlists_that_are_changed_are_right() {
    for file in ["base.yaml", "fused.yaml", "integer.yaml", "devices.yaml"] {
        let text = std::fs::read_to_string(data(file)).unwrap();
        let Checked { netlist, diagnostics, .. } = check(file, &text, &Options::default());
        assert!(netlist.is_some() && diagnostics.list().is_empty(), "{diagnostics}");
    }
}

#[test]
fn every_code_has_a_case_that_gives_it_and_says_the_same_as_before() {
    let mut all = String::new();
    for case in CASES {
        let text = changed(case);
        let Checked { diagnostics, .. } = check(case.file, &text, &Options::default());
        let found: BTreeSet<u16> = diagnostics.list().iter().map(|d| d.code.number).collect();
        assert!(found.contains(&case.code), "case {} gives {found:?}:\n{diagnostics}", case.code);
        writeln!(all, "== {}\n{}", case.code, diagnostics).unwrap();
    }
    let have: BTreeSet<u16> = CASES.iter().map(|case| case.code).collect();
    let missing: Vec<_> = code::ALL.iter().filter(|code| !have.contains(&code.number)).collect();
    // There is no file in which an architecture is asked for.
    assert_eq!(missing.iter().map(|code| code.number).collect::<Vec<_>>(), [113], "{missing:?}");
    let path = data("codes.txt");
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let parts = |text: &str| text.split("== ").map(str::to_owned).collect::<Vec<_>>();
    for (new, old) in parts(&all).into_iter().zip(parts(&before)) {
        assert_eq!(new, old, "the message is another one than in data/codes.txt");
    }
    assert_eq!(all.len(), before.len());
}

#[test]
fn an_architecture_that_the_netlist_does_not_name_is_refused() {
    let text = std::fs::read_to_string(data("base.yaml")).unwrap();
    let options = Options { arch: Some(Arch::Blackhole), ..Options::default() };
    let Checked { netlist, diagnostics, archs } = check("base.yaml", &text, &options);
    assert!(netlist.is_none() && archs.is_empty());
    assert_eq!(diagnostics.list().iter().map(|d| d.code).collect::<Vec<_>>(), [code::ARCH_NOT_LISTED]);
}

#[test]
fn what_is_wrong_on_one_of_several_architectures_is_a_warning() {
    let case = CASES.iter().find(|case| case.code == 317).unwrap();
    let text = changed(case).replace("arch: grayskull", "arch: [grayskull, wormhole_b0]");
    let Checked { netlist, diagnostics, archs } = check("base.yaml", &text, &Options::default());
    assert!(netlist.is_some(), "{diagnostics}");
    assert_eq!(archs, [Arch::WormholeB0]);
    assert!(diagnostics.list()[0].message.starts_with("on grayskull: "), "{diagnostics}");
}

#[test]
fn codes_are_in_order_and_the_document_lists_them() {
    assert!(code::ALL.windows(2).all(|pair| pair[0].number < pair[1].number));
    let names: BTreeSet<&str> = code::ALL.iter().map(|code| code.name).collect();
    assert_eq!(names.len(), code::ALL.len());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/netlist-errors.md");
    let mut text = String::from(
        "# Findings of the netlist checker\n\nEvery finding has a code, which never gets another meaning. `tilework check NETLIST.yaml` prints them, `--json` for programs. This table is \
         `crates/netlist/src/code.rs`.\n\n| code | name | what it is about |\n|---|---|---|\n",
    );
    for code in code::ALL {
        writeln!(text, "| {code} | {} | {} |", code.name, code.about).unwrap();
    }
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/netlist-errors.md is not the list of codes; TILEWORK_BLESS=1 writes it");
}
