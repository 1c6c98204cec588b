//! What a run shows of itself: timeline, profile, page; and that looking changes nothing.

use crate::common;
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
        let mut plain = report(name, inputs, &["--checks", "off"]);
        let usual = report(name, inputs, &[]);
        let [trace, html, bundle, coverage] = ["run.pftrace", "run.html", "run.zip", "run.cov"].map(file);
        let mut everything = vec!["--checks", "races,suspicious", "--trace", &trace, "--html", &html];
        everything.extend(["--bundle", &bundle, "--coverage", &coverage]);
        let looked = report(name, inputs, &everything);
        assert!(looked["checks"]["races"] == true && usual["checks"]["level"] == "warn", "{name}: {looked:#}");
        assert!([&trace, &html, &coverage].iter().all(|file| Path::new(file).is_file()), "{name}");
        // What is looked for, what was found, and that it is kept, is all that may differ.
        let [mut usual, mut looked] = [usual, looked];
        for report in [&mut plain, &mut usual, &mut looked] {
            let fields = report.as_object_mut().unwrap();
            fields.remove("checks");
            fields.remove("bundle");
        }
        assert_eq!(looked, usual, "{name}");
        // Without observers tiles speculate, and the sum of instructions is that of other moments.
        for report in [&mut plain, &mut usual] {
            report.as_object_mut().unwrap().remove("instructions");
        }
        assert_eq!(usual, plain, "{name}");
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

#[test]
fn a_timeline_has_the_same_bytes_whatever_is_checked() {
    for (name, inputs) in programs().iter().filter(|(name, _)| ["ring", "softmax", "traced"].contains(&&**name)) {
        let out = tempfile::tempdir().unwrap();
        let (program, folder) = (example(name).display().to_string(), out.path().display().to_string());
        let trace = |checks: &str, form: &str| {
            let file = out.path().join(format!("{checks}.{form}"));
            let shown = file.display().to_string();
            let mut args = vec!["run", &program, "--out", &folder, "--checks", checks, "--trace", &shown];
            args.extend(inputs.iter().map(String::as_str));
            tilework(&args).code(0);
            std::fs::read(file).unwrap()
        };
        for form in ["pftrace", "txt"] {
            let off = trace("off", form);
            assert!(off.len() > 10_000, "{name}: {} bytes", off.len());
            for checks in ["warn", "races"] {
                assert!(trace(checks, form) == off, "{name}, {checks}: another {form}");
            }
        }
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

/// The commands of a timeline by track: what each line says behind it.
fn commands(events: &[(u64, String)]) -> BTreeMap<&str, Vec<&str>> {
    let mut commands: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (track, what) in events.iter().filter_map(|(_, event)| event.strip_prefix("( ")?.split_once(": ")) {
        if what.contains(" queue=") {
            commands.entry(track).or_default().push(what);
        }
    }
    commands
}

#[test]
fn a_timeline_names_the_commands_of_the_queue_by_program() {
    // In each layout the place of the core that executes a command, of which there are so many of
    // the program, and at least how many of others.
    for (layout, places) in [
        ("dispatcher", &[("RELAY_INLINE", 11, 4), ("SEND_GO_SIGNAL", 1, 0), ("WRITE_PAGED", 0, 2)][..]),
        ("subordinate", &[("NOTIFY_SUBORDINATE_GO_SIGNAL", 1, 0), ("SEND_GO_SIGNAL", 1, 0)]),
        ("subordinate-tile", &[("SEND_GO_SIGNAL", 1, 0)]),
        ("split", &[("SEND_GO_SIGNAL", 1, 0), ("WRITE_LINEAR_H_HOST", 0, 1)]),
    ] {
        let events = timeline("pipeline", &["--dispatch-layout", layout]);
        nesting(&events);
        let commands = commands(&events);
        for (name, of_program, of_others) in places {
            let count = |is: &dyn Fn(&str) -> bool| commands.values().flatten().filter(|what| is(what)).count();
            let named = format!("{name}: pipeline queue=0 number=");
            assert_eq!(count(&|what| what.starts_with(&named)), *of_program, "{layout} {named}: {commands:?}");
            assert!(count(&|what| what.starts_with(&format!("{name} queue=0"))) >= *of_others, "{layout} {name}");
        }
        for (track, of_track) in &commands {
            // The kernel's own count says that none is missing.
            let tile = track.split_once('/').unwrap();
            let counter = format!("{}/commands executed by {} = ", tile.0, tile.1);
            let counted = events.iter().rev().find_map(|(_, event)| event.strip_prefix(&counter)).unwrap();
            let counted: usize = counted.parse().unwrap();
            assert!(of_track.len() == counted || of_track.len() == counted + 1, "{layout} {track}: {counted}");
            // What a kernel gets from the host has a size.
            let told = of_track.iter().filter(|what| what.contains(" bytes=")).count();
            assert!(told == of_track.len() || told == 0 && layout == "split", "{layout} {track}: {of_track:?}");
            for (number, what) in of_track.iter().enumerate() {
                assert!(what.contains(&format!(" number={number}")), "{what}");
            }
        }
    }
}

#[test]
fn a_timeline_names_the_commands_of_traces_and_of_both_queues() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("run.txt").display().to_string();
    let inputs = programs().into_iter().find(|(name, _)| name == "traced").unwrap().1;
    report("traced", &inputs, &["--trace", &file]);
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let events: Vec<(u64, String)> = lines.map(|line| (0, line.split_once(' ').unwrap().1.to_owned())).collect();
    let commands = commands(&events);
    let all: Vec<&str> = commands.values().flatten().copied().collect();
    assert!(all.iter().all(|what| what.contains(" bytes=")), "{all:?}");
    let launches = |event: &&(u64, String)| event.1.contains("launches in queue");
    let launched = events.iter().filter(launches).count();
    // Each launch has a go signal of its program, those of traces too.
    let gone = all.iter().filter(|what| what.starts_with("SEND_GO_SIGNAL: ")).count();
    assert_eq!((gone, launched), (13, 13), "{all:?}");
    let replayed = all.iter().filter(|what| what.starts_with("EXEC_BUF queue=")).count();
    assert_eq!((replayed, all.iter().filter(|what| what.starts_with("EXEC_BUF_END queue=")).count()), (5, 10));
    for queue in ["queue=0", "queue=1"] {
        assert!(all.iter().any(|what| what.starts_with("SEND_GO_SIGNAL: ") && what.contains(queue)), "{queue}");
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
        (&["--trace", &file, "--trace-tiles", "1-2,9-3"], "--trace-tiles: a p100 has no Tensix tile 9-3"),
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
    // Waiting by reason is all of it, and tiles are all of a kernel.
    for kernel in &kernels {
        let sum =
            |list: &str, key: &str| kernel[list].as_array().unwrap().iter().map(|part| number(&part[key])).sum::<u64>();
        assert_eq!(sum("waits", "cycles"), number(&kernel["waiting"]), "{kernel}");
        for key in ["cycles", "waiting", "instructions"] {
            assert_eq!(sum("tiles", key), number(&kernel[key]), "{key}: {kernel}");
        }
    }
    assert!(
        increment["waits"]
            .as_array()
            .unwrap()
            .iter()
            .any(|wait| wait["reason"].as_str().is_some_and(|reason| reason.starts_with("noc"))),
        "{increment}"
    );
    let links: Vec<u64> = profile["links"].as_array().unwrap().iter().map(|link| number(&link["busy"])).collect();
    assert!(links.len() > 10 && links.is_sorted_by(|a, b| a >= b) && links.iter().all(|&busy| busy > 0), "{links:?}");
    let banks = profile["memory"].as_array().unwrap();
    let of_banks = |key: &str| {
        let banks = banks.iter().filter(|bank| bank["memory"].as_str().unwrap().starts_with("DRAM bank"));
        banks.map(|bank| number(&bank[key])).sum::<u64>()
    };
    // The dispatcher has written as much before, and read it behind.
    assert!(of_banks("read_bytes") >= number(&increment["read_bytes"]), "{banks:?}");
    assert!(of_banks("written_bytes") >= number(&increment["written_bytes"]), "{banks:?}");
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
    let circular = data["circular"].as_array().unwrap();
    assert!(circular.iter().any(|cb| cb["program"] == "pipeline" && cb["to"].as_u64() > cb["from"].as_u64()), "{data}");
    assert!(data["scene"].is_null());
}

/// Chromium, if it is there.
fn browser() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(runs)
}

/// What a browser makes of a page.
fn rendered(browser: &str, folder: &Path, page: &Path) -> String {
    let (profile, address) = (format!("--user-data-dir={}", folder.display()), format!("file://{}", page.display()));
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", &profile, &address];
    let output = Command::new(browser).args(args).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("data-ready=\"yes\""), "the script came to its end:\n{shown}");
    shown
}

#[test]
fn a_browser_shows_where_a_run_stopped() {
    let Some(browser) = browser() else {
        println!("skipped: no chromium");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let page = out.path().join("run.html");
    // A word that nobody writes, and an address where nothing is.
    for (word, scene, doing) in
        [("word.addr", "deadlock at cycle", "waits for the word at"), ("0xFFB80004", "undefined behaviour", "runs")]
    {
        let text = format!(
            "name = \"stops\"\n[buffers.word]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [4]\npage_size = 16\n\
             location = \"l1\"\n[[roles]]\nname = \"r\"\ncores = [[1, 2], [1, 3]]\n[roles.brisc]\n\
             elf = \"prebuilt:spin\"\nargs = [\"{word}\"]\n"
        );
        common::run_text(out.path(), &text, &["--no-bundle", "--html", page.to_str().unwrap()]).code(1);
        let shown = rendered(browser, out.path(), &page);
        assert!(shown.contains("id=\"scene\"") && shown.contains(scene), "{shown}");
        assert_eq!(shown.matches("class=\"stopped\"").count(), 2, "both tiles: {shown}");
        assert!(shown.contains(&format!("BRISC: prebuilt:spin of stops {doing}")), "{shown}");
    }
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
    let shown = rendered(browser, out.path(), &file);
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
