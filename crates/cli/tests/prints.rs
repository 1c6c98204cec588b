//! What kernels print, as a user sees it.

mod common;

use common::{Ended, folder, repository, run_example, tilework};
use std::path::Path;

/// The lines of kernels on standard error, without the cycles, which must not fall.
fn lines(ended: &Ended) -> Vec<String> {
    let mut last = 0;
    let mut out = Vec::new();
    for line in ended.stderr.lines() {
        if let Some(rest) = line.strip_prefix('[') {
            let (cycle, rest) = rest.split_once(' ').unwrap();
            let cycle: u64 = cycle.parse().unwrap();
            assert!(cycle >= last, "{line}");
            last = cycle;
            out.push(rest.to_owned());
        } else if line.starts_with("  ") {
            out.push(line.to_owned());
        }
    }
    out
}

/// The example with another limit for its assertion.
fn with_limit(folder: &Path, limit: &str) -> Ended {
    let text = std::fs::read_to_string(repository().join("examples/prints/program.toml")).unwrap();
    let changed = text.replace("\"x.pages\",     #", &format!("{limit},     #"));
    assert_ne!(changed, text);
    let program = folder.join("program.toml");
    std::fs::write(&program, changed).unwrap();
    let input = format!("x={}", repository().join("examples/prints/x.npy").display());
    let (program, out) = (program.display().to_string(), folder.display().to_string());
    tilework(&["run", &program, "--input", &input, "--out", &out, "--report", "json"])
}

#[test]
fn the_example_prints_what_its_page_says() {
    let out = folder();
    let ended = run_example("prints", out.path(), &[]).code(0);
    let readme = std::fs::read_to_string(repository().join("examples/prints/README.md")).unwrap();
    // Of the first core the page shows everything.
    let shown: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let lines = lines(&ended);
    let own = lines.iter().skip_while(|line| !line.starts_with("(1,2) ")).collect::<Vec<_>>();
    assert_eq!(lines.iter().filter(|line| line.contains("brisc prebuilt:prints]")).count(), 4 * 6, "{lines:#?}");
    let mut checked = 0;
    for expected in shown.iter().filter_map(|line| line.split_once("] ").map(|(_, text)| text)) {
        assert!(own.iter().any(|line| line.ends_with(expected)), "{expected:?} of {lines:#?}");
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[test]
fn the_report_has_the_lines_as_data() {
    let out = folder();
    let report = run_example("prints", out.path(), &["--report", "json", "--quiet"]).code(0);
    assert_eq!(report.stderr, "");
    let prints = &report.json()["prints"];
    assert_eq!((prints["missed"].as_u64(), prints["left_out"].as_u64()), (Some(0), Some(0)));
    let lines = prints["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 4 * 6);
    let first = &lines[0];
    assert_eq!((first["core"].as_str(), first["kernel"].as_str()), (Some("brisc"), Some("prebuilt:prints")));
    assert!(first["file"].as_str().unwrap().ends_with("prints/src/main.rs") && first["line"].as_u64().unwrap() > 20);
    assert!(lines.iter().any(|line| line["text"] == "round 1 of 0xc19ec1a0: true"), "{lines:#?}");
    // Of a program without prints there is nothing to say.
    let none = run_example("increment", out.path(), &["--report", "json"]).code(0).json();
    assert!(none.get("prints").is_none());
}

#[test]
fn an_assertion_that_fails_ends_the_run_with_its_place() {
    let folder = folder();
    let ended = with_limit(folder.path(), "1").code(1);
    assert!(ended.stderr.contains("assertion failed: page < rta(ctx, 4): page 1 is not below 1"), "{}", ended.stderr);
    let error = &ended.json()["error"];
    assert_eq!((error["class"].as_str(), error["core"].as_str()), (Some("assertion"), Some("brisc")));
    assert_eq!(error["condition"], "page < rta(ctx, 4)");
    assert!(error["source_file"].as_str().unwrap().ends_with("prints/src/main.rs"));
    assert!(error["source_line"].as_u64().unwrap() > 20);
    assert_eq!(error["tile"]["x"].as_u64().zip(error["tile"]["y"].as_u64()), Some((1, 3)));
    assert!(error["prints"]["lines"].as_array().unwrap().len() > 6);
}
