//! `tilework explain`, and the page that is made from the same rows.

use crate::common;
use common::tilework;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use tilework_checks::catalogue::{self, Kind, Row};

#[test]
fn an_id_is_explained_with_an_example_and_its_repair() {
    let text = tilework(&["explain", "cb-page-not-reserved"]).code(0).stdout;
    let expected = "\
cb-page-not-reserved: Writes a page of a circular buffer that is not reserved
memory, certain

Until reserve_back has returned, the page may hold what the consumer still reads. The write is
lost, or the consumer reads half of the old and half of the new page.

Wrong:

    noc.read(x.page(i), cb.write_ptr(), size);
    cb.reserve_back(1);

Right:

    cb.reserve_back(1);
    noc.read(x.page(i), cb.write_ptr(), size);

Reserve as many pages as will be written, before the first of them is written.
";
    assert_eq!(text, expected);
    let report = tilework(&["explain", "undefined_behaviour", "--report", "json"]).code(0).json();
    for (key, value) in [
        ("schema", json!(1)),
        ("kind", json!("explanation")),
        ("command", json!("explain")),
        ("status", json!("ok")),
        ("id", json!("undefined-behaviour")),
        ("about", json!("stop")),
    ] {
        assert_eq!(report[key], value, "{key}");
    }
    assert!(report.get("certainty").is_none());
}

#[test]
fn every_id_is_listed_and_explained() {
    let text = tilework(&["explain"]).code(0).stdout;
    let listed = tilework(&["explain", "--report", "json"]).code(0).json();
    let topics = listed["topics"].as_array().unwrap();
    assert_eq!(topics.len(), catalogue::all().count());
    for (row, topic) in catalogue::all().zip(topics) {
        assert!(text.contains(&format!("  {} ", row.id)) && text.contains(row.title), "{}", row.id);
        assert_eq!(topic["id"], row.id);
    }
    for row in [catalogue::all().next().unwrap(), catalogue::all().last().unwrap()] {
        tilework(&["explain", row.id]).code(0);
    }
}

#[test]
fn whether_anything_looks_for_a_finding_is_said() {
    let report = |id: &str| tilework(&["explain", id, "--report", "json"]).code(0).json()["looked_for"].clone();
    assert_eq!([report("l1-null"), report("deadlock")], [json!(true), json!(null)]);
    let listed = tilework(&["explain", "--report", "json"]).code(0).json();
    for (row, topic) in catalogue::all().zip(listed["topics"].as_array().unwrap()) {
        assert_ne!(topic["looked_for"], json!(!row.looked_for), "{}", row.id);
        let text = tilework(&["explain", row.id]).code(0).stdout;
        assert_eq!(text.contains("; nothing looks for it yet\n"), !row.looked_for, "{text}");
    }
}

#[test]
fn a_code_of_netlists_is_explained_too() {
    for id in ["N0013", "n0013", "bad-number"] {
        let text = tilework(&["explain", id]).code(0).stdout;
        assert_eq!(text, "N0013: bad-number\nnetlist\n\nNot a number, or one outside its range.\n");
    }
}

#[test]
fn an_unknown_id_is_refused_with_the_nearest() {
    tilework(&["explain", "cb-page-not-reserve"]).code(2).says("is it cb-page-not-reserved, ");
    tilework(&["explain", "0123"]).code(2).says("nothing has the id \"0123\"; tilework explain lists all ids");
    let report: Value = tilework(&["explain", "dead-lock", "--report", "json"]).code(2).json();
    assert_eq!((&report["status"], &report["error"]["near"][0]), (&json!("refused"), &json!("deadlock")), "{report}");
}

/// The catalogue as it is in the page.
fn catalogue_page() -> String {
    let mut page = String::new();
    for kind in Kind::ALL {
        let rows: Vec<&Row> = catalogue::all().filter(|row| row.kind == kind).collect();
        let name = match kind {
            Kind::Memory => "Memory",
            Kind::Protocol => "Protocol",
            Kind::Race => "Races",
            Kind::Stop => "Stops",
        };
        writeln!(page, "### {name}\n").unwrap();
        for Row { id, certainty, looked_for, title, about, wrong, right, repair, .. } in rows {
            let certainty = match (kind, looked_for) {
                (Kind::Stop, _) => String::new(),
                (_, true) => format!(" ({})", certainty.name()),
                (_, false) => format!(" ({}; nothing looks for it yet)", certainty.name()),
            };
            writeln!(page, "#### `{id}`\n\n{}\n", folded(&format!("{title}{certainty}. {about}"))).unwrap();
            for (head, lines) in [("Wrong", wrong), ("Right", right)] {
                if !lines.is_empty() {
                    let lines: Vec<String> = lines.lines().map(|line| format!("    {line}")).collect();
                    writeln!(page, "{head}:\n\n{}\n", lines.join("\n")).unwrap();
                }
            }
            writeln!(page, "{}\n", folded(repair)).unwrap();
        }
    }
    page
}

/// A paragraph in lines of at most 120 columns.
fn folded(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= 120 => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[test]
fn every_id_is_in_its_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- begin catalogue -->\n", "<!-- end catalogue -->");
    let start = found.find(begin).expect("the page has the start of the catalogue") + begin.len();
    let stop = found.find(end).expect("the page has the end of the catalogue");
    let mut expected = found.clone();
    expected.replace_range(start..stop, &catalogue_page());
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else {
        assert!(
            found == expected,
            "docs/checks.md is stale: TILEWORK_BLESS=1 cargo test -p tilework-cli --test end_to_end explain"
        );
    }
}
