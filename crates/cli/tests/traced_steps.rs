//! `[[queue]]` with two command queues and traces: the example of it, its report, and what is
//! refused at its place in the file.

use crate::common;
use common::{Ended, example, files, folder, read_npy, repository, run_text, tilework};
use serde_json::{Value, json};
use std::path::Path;

/// Runs the example with its two arrays.
fn run(out: &Path, more: &[&str]) -> Ended {
    start(out, more).code(0)
}

fn start(out: &Path, more: &[&str]) -> Ended {
    let (program, out) = (example("traced").display().to_string(), out.display().to_string());
    let mut args = vec!["run".to_owned(), program, "--out".to_owned(), out];
    for name in ["x", "z"] {
        let file = repository().join(format!("examples/traced/{name}.npy"));
        args.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
    }
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    tilework(&args)
}

fn report(out: &Path, more: &[&str]) -> Value {
    run(out, &[&["--report", "json"], more].concat()).json()
}

#[test]
fn the_example_gives_the_same_arrays_by_every_dispatch() {
    let layouts = ["subordinate", "subordinate-tile", "split"].map(|name| ["--dispatch-layout", name]);
    let others = [["--dispatch", "slow"], ["--transfers", "windows"]];
    let mut workers = Vec::new();
    for more in std::iter::once(&[][..]).chain(layouts.iter().chain(&others).map(|more| &more[..])) {
        let out = folder();
        let report = report(out.path(), more);
        for (name, factor, added) in [("sum", 1, 55), ("w", 5, 100), ("other", 5, 11)] {
            let (shape, found) = read_npy::<u32>(&out.path().join(format!("{name}.npy")));
            assert_eq!(shape, [64, 64]);
            assert!((0..64 * 64u32).map(|n| n * factor + added).eq(found), "{name} with {more:?}");
        }
        assert_eq!(files(out.path()).len(), 3);
        // Three launches, and five replays of two programs.
        assert_eq!(report["programs"], 13, "{more:?}");
        workers.push(report["workers"].as_u64().unwrap());
    }
    // The tiles of both queues are no workers.
    assert_eq!(workers[0], 116, "{workers:?}");
}

#[test]
fn the_report_says_queues_and_traces() {
    let out = folder();
    let found = report(out.path(), &[]);
    let steps = found["queue"].as_array().unwrap();
    let queues: Vec<_> = steps.iter().map(|step| step["queue"].as_u64()).collect();
    let (a, b) = (Some(0), Some(1));
    assert_eq!(queues, [b, b, a, a, a, a, a, a, b, b, b, b, b, b, b, a, a, a, a, a, None]);
    let release = [&steps[17]["action"], &steps[17]["name"], &steps[17]["queue"]];
    assert_eq!(release, [&json!("release"), &json!("both"), &json!(0)]);
    let trace = &steps[5];
    assert_eq!((&trace["action"], &trace["name"], &trace["programs"]), (&json!("trace"), &json!("both"), &json!(2)));
    let bytes = trace["bytes"].as_u64().unwrap();
    assert!(bytes > 0, "{trace}");
    assert_eq!((&steps[6]["times"], &steps[16]["times"]), (&json!(4), &json!(1)));
    assert_eq!(report(folder().path(), &[])["queue"], found["queue"], "the same in every run");
    let slow = report(folder().path(), &["--dispatch", "slow"]);
    assert_eq!((&slow["queue"][5]["programs"], &slow["queue"][5]["bytes"]), (&json!(2), &json!(0)));

    let capture = out.path().join("records");
    let text = run(out.path(), &["--capture", capture.to_str().unwrap()]).stdout;
    for part in
        ["    trace both on queue 0: 2 programs, ", " bytes of commands\n", "    read sum of x on queue 1: enqueued at"]
    {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    // Each queue has its records.
    let second = format!("{}.queue1", capture.display());
    let decoded = [capture.to_str().unwrap(), &second].map(|file| tilework(&["cq", "decode", file]).code(0).stdout);
    assert_eq!(decoded.each_ref().map(|text| text.matches("EXEC_BUF ").count()), [5, 0]);
    // What the first replay executes is shown: two go signals, up to the end.
    let (_, rest) = decoded[0].split_once("EXEC_BUF ").unwrap();
    let shown: Vec<_> = rest.lines().skip(1).take_while(|line| line.starts_with("            > ")).collect();
    assert_eq!(shown.iter().filter(|line| line.contains("SEND_GO_SIGNAL")).count(), 2, "{shown:#?}");
    assert!(shown.iter().any(|line| line.contains("EXEC_BUF_END")), "{shown:#?}");
    assert_eq!(decoded[0].matches("            > as above\n").count(), 4);
    let decoded = tilework(&["cq", "decode", capture.to_str().unwrap(), "--report", "json"]).code(0).json();
    let executes: Vec<_> =
        decoded["records"].as_array().unwrap().iter().filter_map(|one| one.get("executes")).collect();
    assert_eq!(executes.len(), 1);
    assert!(executes[0].as_array().unwrap().last().unwrap().as_str().unwrap().contains("EXEC_BUF_END"), "{executes:?}");
    // Without queue transfers the bytes do not go through the queue.
    run(out.path(), &["--transfers", "windows", "--capture", capture.to_str().unwrap()]);
    let decoded = tilework(&["cq", "decode", capture.to_str().unwrap()]).code(0).stdout;
    assert_eq!(decoded.matches("            > not in this capture\n").count(), 5, "{decoded}");
}

#[test]
fn check_and_show_know_queues_and_traces() {
    let program = example("traced").display().to_string();
    tilework(&["check", &program]).code(0);
    let shown = tilework(&["show", &program]).code(0).stdout;
    for part in [
        "  steps: write x on queue 1, record written on queue 1, wait written on queue 0, launch one on queue 0, ",
        ", trace both of one and ten on queue 0, replay both 4 times on queue 0, record computed on queue 0, ",
        ", replay both on queue 0, release both on queue 0, read x as other on queue 0, record all on queue 0, synchronize all\n",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in\n{shown}");
    }
    let report = tilework(&["show", &program, "--report", "json"]).code(0).json();
    let trace = json!({ "action": "trace", "queue": 0, "name": "both", "launches": ["one", "ten"] });
    assert_eq!(report["queue"][5], trace);
    assert_eq!(report["queue"][6], json!({ "action": "replay", "queue": 0, "name": "both", "times": 4 }));
}

/// Two launches on the same worker that nothing orders, and the same with an event between them.
#[test]
fn launches_that_meet_in_no_order_are_refused_at_the_step() {
    let run = |between: &str| {
        let folder = folder();
        let text = format!(
            "name = \"t\"\n[[launch]]\nname = \"a\"\nroles = [\"one\"]\n[[launch]]\nname = \"b\"\nroles = [\"two\"]\n\
             [[queue]]\nlaunch = \"a\"\n{between}[[queue]]\nlaunch = \"b\"\nqueue = 1\n\
             [[roles]]\nname = \"one\"\ncores = 1\nbrisc = {{ elf = \"prebuilt:empty\" }}\n\
             [[roles]]\nname = \"two\"\ncores = 2\nbrisc = {{ elf = \"prebuilt:empty\" }}\n"
        );
        run_text(folder.path(), &text, &[])
    };
    let refused = run("").code(2);
    assert!(refused.stderr.contains("program.toml:11:10: program \"t.b\" on queue 1 would meet"), "{}", refused.stderr);
    assert!(refused.stderr.contains("program \"t.a\" on queue 0 on core (1,2)"), "{}", refused.stderr);
    run("[[queue]]\nrecord = \"e\"\n[[queue]]\nwait = \"e\"\nqueue = 1\n").code(0);
    run("[[queue]]\nrecord = \"e\"\n[[queue]]\nsynchronize = \"e\"\n").code(0);
}

/// Queue kernels of others are built for the tiles of one queue.
#[test]
fn a_folder_of_queue_kernels_runs_one_queue() {
    let (set, out) = (folder(), folder());
    for name in ["prefetch.elf", "dispatch.elf", "dispatch-s.elf"] {
        std::fs::copy(repository().join("firmware/prebuilt").join(name), set.path().join(name)).unwrap();
    }
    std::fs::write(set.path().join("queue.toml"), "").unwrap();
    let refused = start(out.path(), &["--cq-firmware", set.path().to_str().unwrap()]).code(2);
    refused.says("--cq-firmware runs one queue, on the tiles for which it is built");
    assert!(files(out.path()).is_empty());
}
