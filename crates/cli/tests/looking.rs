//! What a run shows of itself: timeline, profile, page; and that looking changes nothing.

mod common;

use common::{example, example_input, repository, run_example, tilework};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The kernel programs among the examples with the inputs that they are given.
fn programs() -> Vec<(String, Vec<String>)> {
    let mut programs = Vec::new();
    for folder in std::fs::read_dir(repository().join("examples")).unwrap() {
        let folder = folder.unwrap().path();
        let program = folder.join("program.toml");
        if !program.is_file() {
            continue;
        }
        let source = std::fs::read_to_string(&program).unwrap();
        let mut inputs = Vec::new();
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let named = source.contains(&format!("[buffers.{name}]"));
            if file.extension().is_some_and(|ending| ending == "npy") && named {
                inputs.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
            }
        }
        programs.push((folder.file_name().unwrap().to_str().unwrap().to_owned(), inputs));
    }
    programs.sort();
    programs
}

/// The report of a run without what depends on this machine.
fn report(name: &str, inputs: &[String], more: &[&str]) -> Value {
    let out = tempfile::tempdir().unwrap();
    let (program, folder) = (example(name).display().to_string(), out.path().display().to_string());
    let mut args = vec!["run", &program, "--out", &folder, "--report", "json"];
    args.extend(inputs.iter().map(String::as_str));
    args.extend(more);
    let ended = tilework(&args).code(0);
    let mut report: Value = serde_json::from_str(&ended.stdout).unwrap();
    // Whether an instruction of a polling loop is executed or accounted for depends on speculation,
    // which observers switch off; their sum does not.
    let count = |key: &str| report[key].as_u64().unwrap();
    report["instructions"] = (count("instructions") + count("skipped_instructions")).into();
    let of_machine = [("", "host_seconds"), ("", "mips"), ("", "skipped_instructions")];
    for (of, key) in of_machine.into_iter().chain([("/session", "host_seconds"), ("/session", "instructions")]) {
        report.pointer_mut(of).unwrap().as_object_mut().unwrap().remove(key);
    }
    for output in report["outputs"].as_object_mut().unwrap().values_mut() {
        output.as_object_mut().unwrap().remove("file");
    }
    report
}

#[test]
fn looking_changes_neither_cycles_nor_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let programs = programs();
    assert!(programs.len() > 12, "{programs:?}");
    for (name, inputs) in &programs {
        let plain = report(name, inputs, &[]);
        let looked = report(name, inputs, &["--trace", &file("run.pftrace"), "--html", &file("run.html")]);
        assert_eq!(looked, plain, "{name}");
        let program = example(name).display().to_string();
        let mut args = vec!["profile", &program, "--report", "json"];
        args.extend(inputs.iter().map(String::as_str));
        let profile: Value = serde_json::from_str(&tilework(&args).code(0).stdout).unwrap();
        // Counts are those of the run itself.
        let instructions: u64 =
            profile["kernels"].as_array().unwrap().iter().map(|k| k["instructions"].as_u64().unwrap()).sum();
        assert!(instructions > 0, "{name}");
        assert!(profile["cycles"].as_u64().unwrap() <= plain["session"]["cycles"].as_u64().unwrap(), "{name}");
    }
}

/// The events of a timeline in the text form: time, then the rest of the line.
fn timeline(name: &str, more: &[&str]) -> Vec<(u64, String)> {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("run.txt");
    let shown = file.display().to_string();
    let all: Vec<&str> = ["--trace", &shown].into_iter().chain(more.iter().copied()).collect();
    run_example(name, out.path(), &all).code(0);
    let text = std::fs::read_to_string(file).unwrap();
    let events = text.lines().filter(|line| !line.starts_with('#'));
    events.map(|line| line.split_once(' ').unwrap()).map(|(at, rest)| (at.parse().unwrap(), rest.to_owned())).collect()
}

/// How deep slices of each track are nested, which never is below nothing.
fn nesting(events: &[(u64, String)]) -> BTreeMap<&str, i64> {
    let mut depth = BTreeMap::new();
    for (at, event) in events {
        let (track, change) = match (event.strip_prefix("( "), event.strip_prefix(") ")) {
            (Some(begins), _) => (begins.split_once(": ").unwrap().0, 1),
            (_, Some(track)) => (track, -1),
            (None, None) => continue,
        };
        let depth = depth.entry(track).or_insert(0);
        *depth += change;
        assert!(*depth >= 0, "{at} {event}");
    }
    depth
}

#[test]
fn a_timeline_has_kernels_waits_requests_and_levels() {
    let events = timeline("pipeline", &[]);
    assert!(events.windows(2).all(|pair| pair[0].0 <= pair[1].0), "the order of time");
    let depth = nesting(&events);
    let left: Vec<_> = depth.iter().filter(|(track, depth)| **depth != 0 && !track.contains("RISC")).collect();
    assert!(left.is_empty(), "{left:?}");
    let has = |parts: &[&str]| events.iter().any(|(_, event)| parts.iter().all(|part| event.contains(part)));
    for parts in [
        &["( tile", "BRISC", "program=\"pipeline\"", "role="][..],
        &["( tile", "NCRISC", "program=\"pipeline\""],
        &["waits for pages of circular buffer", "reason=\"cb_pages\""],
        &["waits for its reads on NoC", "reason=\"noc_reads\""],
        &["NoC 0 requests 0: read", "bytes=", "remote=\"DRAM bank", "1>"],
        &["DRAM bank", ": read", ">1"],
        &["circular buffer", " = 1"],
        &["prefetch queue = 1"],
        &["BRISC: go: pipeline", "launch=0"],
        &["commands executed by BRISC ="],
        &["launches in queue 0: pipeline"],
    ] {
        assert!(has(parts), "{parts:?}");
    }
}

#[test]
fn a_timeline_shows_the_units_of_the_coprocessor() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("run.txt").display().to_string();
    let inputs: Vec<String> = programs().into_iter().find(|(name, _)| name == "matmul").unwrap().1;
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    report("matmul", &inputs.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), &["--trace", &file]);
    let text = std::fs::read_to_string(&file).unwrap();
    for unit in ["unpacker 0: busy", "unpacker 1: busy", "matrix unit (FPU): busy", "packer: busy"] {
        assert!(text.contains(unit), "{unit}");
    }
}

#[test]
fn a_window_and_a_choice_of_tiles_make_a_timeline_shorter() {
    let whole = timeline("ring", &[]);
    let (first, last) = (whole.first().unwrap().0, whole.last().unwrap().0);
    let middle = (first + last) / 2;
    let half = timeline("ring", &["--trace-cycles", &format!("{middle}..")]);
    assert!(half.len() < whole.len() && half.first().unwrap().0 >= middle);
    // Behind the start of the window it is what the whole has there.
    let behind = |events: &[(u64, String)]| {
        let events = events.iter().filter(|(at, event)| *at > middle && !event.contains(">"));
        events.cloned().collect::<Vec<_>>()
    };
    assert_eq!(behind(&half), behind(&whole));
    let tile = whole.iter().find_map(|(_, event)| event.strip_prefix("( tile ")?.split_once("/BRISC: ")).unwrap().0;
    let xy = tile.trim_matches(['(', ')']).replace(',', "-");
    let one = timeline("ring", &["--trace-tiles", &xy]);
    assert!(!one.is_empty());
    assert!(one.iter().all(|(_, event)| !event.contains("tile (") || event.contains(&format!("tile {tile}"))));
}

#[test]
fn options_without_effect_are_refused() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("t.txt").display().to_string();
    for (more, why) in [
        (&["--trace-cycles", "0..9"][..], "--trace-cycles needs --trace"),
        (&["--trace-tiles", "1-2"], "--trace-tiles needs --trace"),
        (&["--trace", "t.csv"], ".csv"),
        (&["--trace", &file, "--trace-cycles", "9..3"], "expected A..B"),
        (&["--trace", &file, "--trace-tiles", "12"], "x-y"),
        (&["--trace", &file, "--html", &file], "would replace"),
    ] {
        let ended = run_example("increment", out.path(), more).code(2);
        assert!(ended.stderr.contains(why), "{why}: {}", ended.stderr);
    }
    assert!(!Path::new(&file).exists());
}

#[test]
fn a_profile_has_exact_counts_of_lines_and_stacks() {
    let out = tempfile::tempdir().unwrap();
    let [folded, csv] = ["p.folded", "p.csv"].map(|name| out.path().join(name));
    let args = |more: &[&str]| {
        let mut args = vec!["profile".to_owned(), example("increment").display().to_string()];
        args.extend(["--input".to_owned(), example_input("increment")]);
        args.extend(more.iter().map(|word| (*word).to_owned()));
        args
    };
    let more = ["--folded", folded.to_str().unwrap(), "--csv", csv.to_str().unwrap(), "--report", "json"];
    let profile: Value = serde_json::from_str(&tilework(&args(&more)).code(0).stdout).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let kernels: Vec<&Value> =
        profile["kernels"].as_array().unwrap().iter().filter(|kernel| kernel["program"] == "increment").collect();
    let increment = kernels.iter().find(|kernel| kernel["kernel"] == "prebuilt:increment").unwrap();
    assert!(number(&increment["waiting"]) < number(&increment["cycles"]));
    // The lines of a kernel are its instructions, none more and none less.
    let lines = profile["source"]["lines"].as_array().unwrap();
    let of_kernel = lines.iter().filter(|line| line["kernel"] == "prebuilt:increment");
    assert_eq!(of_kernel.map(|line| number(&line["instructions"])).sum::<u64>(), number(&increment["instructions"]));
    assert!(lines.iter().any(|line| line["file"].as_str().is_some_and(|file| file.ends_with(".rs"))));
    // Every page is incremented by the same instructions on every tile that has as many.
    let tiles = increment["tiles"].as_array().unwrap();
    assert!(tiles.len() > 1 && tiles.iter().all(|tile| number(&tile["instructions"]) > 0));
    assert_eq!(number(&increment["read_bytes"]), number(&increment["written_bytes"]));
    let text = std::fs::read_to_string(&folded).unwrap();
    let cycles: u64 = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    let of_lines = lines.iter().map(|line| number(&line["cycles"]) + number(&line["waiting"])).sum::<u64>();
    assert_eq!(cycles, of_lines);
    assert!(
        text.lines().any(|line| line.starts_with("increment;") && line.contains(";BRISC;prebuilt:increment;")),
        "{text}"
    );
    let table = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(table.lines().filter(|line| line.contains("\"prebuilt:increment\",")).count(), tiles.len());
    let text = tilework(&args(&["--annotate"])).code(0).stdout;
    assert!(text.contains("hottest lines") && text.contains("waiting"), "{text}");
}

/// The data of a page.
fn page_data(page: &str) -> Value {
    let (_, behind) = page.split_once("<script id=\"data\" type=\"application/json\">").unwrap();
    serde_json::from_str(behind.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_page_needs_nothing_else_and_shows_load_and_buffers() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("run.html");
    run_example("pipeline", out.path(), &["--html", file.to_str().unwrap()]).code(0);
    let page = std::fs::read_to_string(&file).unwrap();
    for outside in ["src=", "href=", "@import", "fetch(", "XMLHttpRequest", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let data = page_data(&page);
    let sum = |series: &Value| series.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).sum::<u64>();
    let tiles = data["tiles"].as_array().unwrap();
    assert!(!tiles.is_empty());
    for tile in tiles {
        assert!(sum(&tile["busy"]) > 0 && sum(&tile["waiting"]) <= sum(&tile["busy"]) && !tile["at"].is_null());
        assert!(tile["busy"].as_array().unwrap().len() as u64 <= data["bins"].as_u64().unwrap());
    }
    assert!(data["banks"].as_array().unwrap().iter().any(|bank| sum(&bank["bytes"]) > 0));
    assert!(data["links"].as_array().unwrap().iter().any(|link| sum(&link["flits"]) > 0));
    assert!(data["buffers"].as_array().unwrap().iter().any(|buffer| buffer["name"] == "x"), "{}", data["buffers"]);
    assert!(data["scene"].is_null());
}

/// Chromium, if it is there.
fn browser() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(runs)
}

#[test]
fn a_browser_shows_the_page() {
    let Some(browser) = browser() else {
        println!("skipped: no chromium");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("run.html");
    run_example("pipeline", out.path(), &["--html", file.to_str().unwrap()]).code(0);
    let (profile, address) =
        (format!("--user-data-dir={}", out.path().display()), format!("file://{}", file.display()));
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", &profile, &address];
    let output = Command::new(browser).args(args).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("data-ready=\"yes\""), "the script came to its end:\n{shown}");
    let data = page_data(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(shown.matches("class=\"link\"").count(), data["links"].as_array().unwrap().len());
    for tile in data["tiles"].as_array().unwrap() {
        let name = tile["name"].as_str().unwrap();
        assert!(shown.contains(&format!(">{name}</text>")), "{name}");
    }
    assert!(shown.contains("<td>x</td>"), "the buffers");
}

#[test]
fn a_failed_run_leaves_its_timeline_and_a_page_with_its_scene() {
    let out = tempfile::tempdir().unwrap();
    let [trace, html] = ["run.txt", "run.html"].map(|name| out.path().join(name));
    let more = ["--trace", trace.to_str().unwrap(), "--html", html.to_str().unwrap(), "--max-cycles", "4000"];
    let ended = run_example("pipeline", out.path(), &more).code(1);
    assert!(std::fs::read_to_string(&trace).unwrap().contains("prefetch.elf"), "{}", ended.stderr);
    let data = page_data(&std::fs::read_to_string(&html).unwrap());
    assert!(data["scene"].as_str().unwrap().contains("4000 cycles"), "{}", data["scene"]);
}
