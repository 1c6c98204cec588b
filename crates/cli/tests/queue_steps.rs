//! `[[queue]]`: what the host puts into the command queue, step by step, and the example of it.

use crate::common;
use common::{Ended, example, files, folder, read_npy, repository, run_text, tilework};
use serde_json::{Value, json};
use std::path::Path;

/// Runs the example with its three arrays.
fn run(out: &Path, more: &[&str]) -> Ended {
    let (program, out) = (example("queue").display().to_string(), out.display().to_string());
    let mut args = vec!["run".to_owned(), program, "--out".to_owned(), out];
    for name in ["x", "twice", "thrice"] {
        let file = repository().join(format!("examples/queue/{name}.npy"));
        args.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
    }
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    tilework(&args).code(0)
}

fn report(out: &Path, more: &[&str]) -> Value {
    run(out, &[&["--report", "json"], more].concat()).json()
}

/// Every read has the array of its round: plus 11 behind both programs, unchanged through L1.
fn check(out: &Path) {
    for round in 0..3u32 {
        for (name, added) in [("sum", 11), ("dealt", 0), ("sharded", 0)] {
            let (shape, found) = read_npy::<u32>(&out.join(format!("{name}{round}.npy")));
            assert_eq!(shape, [64, 64]);
            assert!((0..64 * 64).map(|n| n * (round + 1) + added).eq(found), "{name}{round}");
        }
    }
    assert_eq!(files(out).len(), 9);
}

#[test]
fn the_example_gives_the_same_arrays_by_every_dispatch_and_transfer() {
    let mut hashes = Vec::new();
    for more in [&[][..], &["--dispatch", "slow"], &["--transfers", "windows"], &["--dispatch-layout", "split"]] {
        let out = folder();
        let report = report(out.path(), more);
        check(out.path());
        assert_eq!(report["programs"], 6, "{more:?}");
        let outputs = report["outputs"].as_object().unwrap();
        hashes.push(outputs.values().map(|output| output["sha256"].clone()).collect::<Vec<_>>());
    }
    assert!(hashes.windows(2).all(|pair| pair[0] == pair[1]));
}

/// Nothing waits but the last step: reads end in their order, behind the step that enqueued them,
/// and the one that waits returns when the host has noticed the event.
#[test]
fn reads_and_events_have_the_cycle_at_which_they_were_noticed() {
    let out = folder();
    let report = report(out.path(), &[]);
    let steps = report["queue"].as_array().unwrap();
    assert_eq!(steps.len(), 26);
    let number = |step: &Value, key: &str| step[key].as_u64();
    let returned: Vec<u64> = steps.iter().map(|step| number(step, "returned").unwrap()).collect();
    assert!(returned.is_sorted());
    let noticed: Vec<(u64, u64)> =
        steps.iter().filter_map(|step| Some((number(step, "returned")?, number(step, "noticed")?))).collect();
    assert_eq!(noticed.len(), 10, "nine reads and an event");
    assert!(noticed.iter().map(|(_, noticed)| noticed).is_sorted());
    assert!(noticed.iter().all(|(enqueued, noticed)| enqueued < noticed), "{noticed:?}");
    let (event, waited) = (&steps[24], &steps[25]);
    assert_eq!((&event["action"], &event["name"]), (&json!("record"), &json!("all")));
    assert_eq!((&waited["action"], number(waited, "returned")), (&json!("synchronize"), number(event, "noticed")));
    assert!(number(event, "noticed") <= report["cycles"].as_u64());
    assert_eq!(
        steps[8],
        json!({ "action": "write", "queue": 0, "name": "twice", "buffer": "x", "returned": returned[8] })
    );
    let read = &steps[3];
    assert_eq!((&read["name"], &read["buffer"]), (&json!("sum0"), &json!("x")));

    // The same pipeline takes longer when nothing is in flight together.
    let slow = folder();
    let windows = self::report(slow.path(), &["--transfers", "windows"]);
    assert!(report["cycles"].as_u64() < windows["cycles"].as_u64());
    let again = folder();
    assert_eq!(self::report(again.path(), &[])["queue"], report["queue"], "the same in every run");
}

#[test]
fn the_cache_and_the_queue_are_counted() {
    let out = folder();
    let report = report(out.path(), &[]);
    let expected = json!({
        "programs_found": 5, "programs_compiled": 1, "evictions": 0, "text_found": 5, "text_sent": 1, "text_from_dram": 0,
    });
    assert_eq!(report["cache"], expected, "two programs that differ in arguments, three times each");
    let [commands, records, bytes] = ["commands", "records", "record_bytes"].map(|key| report[key].as_u64().unwrap());
    // Arrays go up in nine records of 16 KiB.
    assert!(records > 26 && commands > 26 && bytes > 9 * (16 << 10), "{report}");
    let text = run(out.path(), &[]).stdout;
    for part in [
        "queue on a p100, fast dispatch, 8 cores\n",
        &format!("{commands} commands in {records} records of"),
        "  launches: 1 compiled, 5 found in the program cache; kernel text sent for 1, found on the workers for 5\n",
        "  26 steps, the last of which returned at cycle ",
        "    read sum0 of x: enqueued at cycle ",
        "    record all: enqueued at cycle ",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    let slow = self::report(out.path(), &["--dispatch", "slow"]);
    assert_eq!((&slow["cache"], &slow["records"]), (&Value::Null, &json!(0)));
}

#[test]
fn check_and_show_know_steps() {
    let program = example("queue").display().to_string();
    let checked = tilework(&["check", &program]).code(0).stdout;
    assert!(checked.contains("fits a p100: 2 roles on 8 cores, 7 buffers"), "{checked}");
    let shown = tilework(&["show", &program]).code(0).stdout;
    for part in [
        "  2 launches; arguments of the first",
        "  steps: write x, launch one, launch ten, read x as sum0, write dealt from x, read dealt as dealt0, ",
        ", record all, synchronize all\n",
        "  role forth on 8 cores: brisc prebuilt:increment\n",
        "  role back on 8 cores: brisc prebuilt:increment\n",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in\n{shown}");
    }
    let report = tilework(&["show", &program, "--report", "json"]).code(0).json();
    assert_eq!(report["queue"][3], json!({ "action": "read", "queue": 0, "name": "sum0", "buffer": "x" }));
    // Both programs in the first of their launches: one reads what the other writes.
    let arguments = |role: usize| report["roles"][role]["kernels"][0]["arguments"][0].clone();
    assert_eq!((&arguments(0)[0], &arguments(0)[1]), (&arguments(1)[1], &arguments(1)[0]));
    assert_eq!((&arguments(0)[5], &arguments(1)[5]), (&json!(1), &json!(10)));
}

#[test]
fn expected_arrays_are_compared_with_those_of_reads() {
    let out = folder();
    run(out.path(), &[]);
    let program = example("queue").display().to_string();
    let inputs: Vec<String> = ["x", "twice", "thrice"]
        .iter()
        .flat_map(|name| {
            let file = repository().join(format!("examples/queue/{name}.npy"));
            ["--input".to_owned(), format!("{name}={}", file.display())]
        })
        .collect();
    let expect = out.path().display().to_string();
    let args: Vec<String> =
        ["check", &program, "--expect", &expect].map(str::to_owned).into_iter().chain(inputs).collect();
    let compared = tilework(&args).code(0).stdout;
    assert_eq!(compared.lines().count(), 9, "{compared}");
    std::fs::copy(out.path().join("sum1.npy"), out.path().join("sum0.npy")).unwrap();
    assert!(tilework(&args).code(1).stderr.contains("the outputs are not as expected"));
}

#[test]
fn an_empty_buffer_is_written_and_read() {
    let folder = folder();
    let text = "name = \"t\"\nqueue = [{ read = \"y\" }, { launch = \"launch0\" }, { wait = \"y\" }]\n\
        [buffers.y]\nuse = \"output\"\ndtype = \"u32\"\nshape = [0, 4]\npage_size = 64\n\
        [[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";
    let report = run_text(folder.path(), text, &["--report", "json"]).code(0).json();
    assert_eq!(report["outputs"]["y"]["shape"], json!([0, 4]));
    assert!(report["queue"][0]["noticed"].as_u64().is_some(), "{report}");
}

#[test]
fn what_does_not_go_with_steps_is_refused() {
    let folder = folder();
    let role = "[[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";
    let text = format!("name = \"t\"\nqueue = [{{ launch = \"launch0\" }}]\n{role}");
    run_text(folder.path(), &text, &["--core-timing"]).code(2).says("--core-timing needs a program without [[queue]]");
    let wrong = format!(
        "name = \"t\"\nqueue = [{{ launch = \"launch0\" }}, {{ wait = 3 }}, {{ rite = \"x\" }}, {{ wait = \"e\" }}]\n{role}"
    );
    let ended = run_text(folder.path(), &wrong, &[]).code(2);
    // All of the form at once; what names something is not told while steps are missing.
    let ended =
        tilework(&["check", folder.path().join("program.toml").to_str().unwrap()]).code(2).says(&ended.stderr[..20]);
    assert!(ended.stderr.contains("2:43: invalid type: integer `3`"), "{}", ended.stderr);
    assert!(ended.stderr.contains("2:50: unknown field `rite`, expected one of `write`, `launch`"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("no event"), "{}", ended.stderr);
}

/// A fault behind a step ends the run with the same report as without steps.
#[test]
fn a_deadlock_behind_a_step_is_named() {
    let folder = folder();
    let text = "name = \"t\"\nqueue = [{ launch = \"launch0\" }, { record = \"done\" }, { synchronize = \"done\" }]\n\
        [buffers.word]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [4]\npage_size = 16\nlocation = \"l1\"\n\
        [[roles]]\nname = \"idle\"\ncores = 1\nbrisc = { elf = \"prebuilt:spin\", args = [\"word.addr\"] }\n";
    let ran = run_text(folder.path(), text, &["--report", "json"]).code(1).json();
    assert_eq!(ran["error"]["class"], "deadlock");
    let waiting = ran["error"]["waiting"].as_array().unwrap();
    assert!(waiting.iter().any(|core| core["runs"].as_str().is_some_and(|runs| runs.contains("spin"))), "{ran}");
}
