//! The examples, as a user runs them: results, reports, and that they are the same every time.

use crate::common;
use common::{Ended, files, folder, read_npy, repository, run_example, tilework};
use serde_json::Value;
use std::path::Path;

fn run(name: &str, out: &Path, more: &[&str]) -> Ended {
    run_example(name, out, more).code(0)
}

fn report(name: &str, out: &Path, more: &[&str]) -> Value {
    let mut args = vec!["--report", "json"];
    args.extend(more);
    serde_json::from_str(&run(name, out, &args).stdout).expect("standard output is one JSON object")
}

/// Every element of the outputs is what the example's README says.
fn check_outputs(name: &str, out: &Path, workers: u64) {
    match name {
        "increment" => {
            let (shape, x) = read_npy::<u32>(&repository().join("examples/increment/x.npy"));
            let (found_shape, y) = read_npy::<u32>(&out.join("y.npy"));
            assert_eq!(found_shape, shape);
            assert_eq!(x[0], u32::MAX);
            for (i, (x, y)) in x.iter().zip(&y).enumerate() {
                assert_eq!(*y, x.wrapping_add(1), "element {i}");
            }
            assert_eq!(y.len(), 300 * 128);
        }
        "pipeline" => {
            let (shape, x) = read_npy::<i16>(&repository().join("examples/pipeline/x.npy"));
            let (found_shape, y) = read_npy::<i16>(&out.join("y.npy"));
            assert_eq!((found_shape, y.len()), (shape, 37 * 32 * 32));
            assert!(x == y);
        }
        "ring" => {
            let (shape, total) = read_npy::<u32>(&out.join("total.npy"));
            assert_eq!(shape, [workers]);
            for (i, total) in (0u64..).zip(&total) {
                let expected = 2 * workers * (workers + 1) / 2 + (i + 1) * (i + 2) / 2;
                assert_eq!(u64::from(*total), expected, "element {i}");
            }
        }
        _ => panic!("no such example"),
    }
}

/// All boards, both kinds of dispatch: right results, and the same for both kinds.
fn right_everywhere(name: &str) {
    for (board, workers) in [("p100", 118), ("p150", 138), ("p300", 118)] {
        let mut hashes = Vec::new();
        for dispatch in ["fast", "slow"] {
            let out = folder();
            let report = report(name, out.path(), &["--board", board, "--dispatch", dispatch]);
            assert_eq!((report["board"].as_str(), report["dispatch"].as_str()), (Some(board), Some(dispatch)));
            check_outputs(name, out.path(), workers);
            hashes
                .push(report["outputs"].as_object().unwrap().values().map(|o| o["sha256"].clone()).collect::<Vec<_>>());
        }
        assert_eq!(hashes[0], hashes[1], "{board}");
    }
}

#[test]
fn increment_adds_one_to_every_element_on_all_boards_with_both_dispatches() {
    right_everywhere("increment");
}

#[test]
fn pipeline_copies_its_tiles_on_all_boards_with_both_dispatches() {
    right_everywhere("pipeline");
}

#[test]
fn ring_adds_up_on_all_boards_with_both_dispatches() {
    right_everywhere("ring");
}

/// A card with thirteen columns and seven banks, for which there is no name.
#[test]
fn a_board_of_a_file_runs_the_examples() {
    let folder = folder();
    let file = folder.path().join("lab.toml");
    let text = "name = 'lab-7'\nbase = 'p150'\n[harvested]\ntensix_columns = [4]\ndram_banks = [2]\n";
    std::fs::write(&file, text).unwrap();
    for dispatch in ["fast", "slow"] {
        for name in ["increment", "pipeline", "ring"] {
            let out = folder.path().join(name);
            let report = report(name, &out, &["--board", file.to_str().unwrap(), "--dispatch", dispatch]);
            assert_eq!(report["board"], "lab-7");
            check_outputs(name, &out, 128);
        }
    }
    let shown = tilework(&["board", file.to_str().unwrap()]).code(0).stdout;
    assert!(shown.starts_with("lab-7: 128 workers and 2 dispatch cores in 13 columns, 7 DRAM banks"), "{shown}");
}

/// The P150 of today's firmware is a file among the examples.
#[test]
fn a_p150_with_120_tiles_runs_an_example() {
    let (folder, board) = (folder(), repository().join("examples/boards/p150-120.toml"));
    let board = board.to_str().unwrap();
    let report = report("increment", folder.path(), &["--board", board]);
    assert_eq!(report["board"], "p150-120");
    check_outputs("increment", folder.path(), 118);
    let shown = tilework(&["board", board]).code(0).stdout;
    assert!(shown.starts_with("p150-120: 118 workers and 2 dispatch cores in 12 columns, 8 DRAM banks"), "{shown}");
}

#[test]
fn two_runs_of_each_example_give_the_same_cycles_and_bytes() {
    for name in ["increment", "pipeline", "ring"] {
        let (a, b) = (folder(), folder());
        let (first, second) = (report(name, a.path(), &[]), report(name, b.path(), &[]));
        for key in ["cycles", "instructions", "skipped_instructions", "commands", "pcie_bytes", "noc_bytes"] {
            assert!(first[key].as_u64().is_some(), "{key}");
            assert_eq!(first[key], second[key], "{name}: {key}");
        }
        assert!(first["cycles"].as_u64().unwrap() > 0);
        for (output, found) in first["outputs"].as_object().unwrap() {
            assert_eq!(found["sha256"], second["outputs"][output]["sha256"], "{name}: {output}");
        }
    }
}

#[test]
fn each_example_gives_the_same_cycles_and_bytes_on_any_number_of_threads() {
    for name in ["increment", "pipeline", "ring"] {
        let [one, two, three, five] = ["1", "2", "3", "5"].map(|threads| {
            let out = folder();
            let mut report = report(name, out.path(), &["--threads", threads]);
            for key in ["host_seconds", "mips"] {
                report.as_object_mut().unwrap().remove(key).expect("the report has it");
            }
            report["session"].as_object_mut().unwrap().remove("host_seconds").expect("the session has it");
            for output in report["outputs"].as_object_mut().unwrap().values_mut() {
                output.as_object_mut().unwrap().remove("file");
            }
            report
        });
        assert!(one["cycles"].as_u64().is_some_and(|cycles| cycles > 0), "{one}");
        assert_eq!([&two, &three, &five], [&one; 3], "{name}");
    }
}

#[test]
fn the_json_report_is_the_only_thing_on_standard_output_and_has_every_key() {
    let out = folder();
    let report = report("increment", out.path(), &[]);
    for key in ["program", "board", "dispatch", "firmware", "timing_model"] {
        assert!(report[key].as_str().is_some_and(|s| !s.is_empty()), "{key}: {report}");
    }
    for key in ["cycles", "instructions", "skipped_instructions", "programs", "commands", "pcie_bytes", "noc_bytes"] {
        assert!(report[key].as_u64().is_some(), "{key}: {report}");
    }
    for key in ["host_seconds", "simulated_seconds", "mips"] {
        assert!(report[key].as_f64().is_some_and(|v| v > 0.0), "{key}: {report}");
    }
    assert_eq!(report["programs"], 1);
    assert!(report["commands"].as_u64().unwrap() > 5);
    // Every element of x is read and every one of y written over the NoC.
    assert!(report["noc_bytes"].as_u64().unwrap() >= 2 * 300 * 128 * 4);
    let y = &report["outputs"]["y"];
    assert_eq!(y["file"].as_str().unwrap(), out.path().join("y.npy").display().to_string());
    assert_eq!(y["dtype"], "u32");
    assert_eq!(y["shape"], serde_json::json!([300, 128]));
    assert_eq!(y["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(files(out.path()), ["y.npy"]);
}

#[test]
fn the_text_report_says_what_ran_and_what_is_modelled() {
    let out = folder();
    let text = run("increment", out.path(), &[]).stdout;
    for part in [
        "increment on a p100, fast dispatch, 118 cores",
        "cycles = ",
        "MIPS",
        "over PCIe",
        "modelled:",
        "y.npy u32 (300, 128)",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn every_dispatch_layout_runs_the_examples_with_the_same_results() {
    for example in ["increment", "pipeline"] {
        let mut expected = None;
        for (layout, tiles) in [("dispatcher", 2), ("subordinate", 2), ("subordinate-tile", 3), ("split", 4)] {
            let out = folder();
            let report = report(example, out.path(), &["--dispatch-layout", layout]);
            assert_eq!(report["dispatch_layout"], layout);
            let outputs = report["outputs"].as_object().unwrap();
            let hashes: Vec<_> = outputs.values().map(|output| output["sha256"].clone()).collect();
            assert_eq!(*expected.get_or_insert(hashes.clone()), hashes, "{example} with {layout}");
            let board = tilework(&["board", "p100", "--dispatch-layout", layout, "--report", "json"]).code(0).json();
            assert_eq!(board["dispatch_layout"], layout);
            assert_eq!(board["queue_tiles"].as_array().unwrap().len(), tiles);
            assert_eq!(board["workers"].as_array().unwrap().len(), 120 - tiles);
        }
    }
    let unknown = tilework(&["board", "--dispatch-layout", "star"]).code(2);
    assert!(unknown.stderr.contains("dispatcher, subordinate, subordinate-tile, split"), "{}", unknown.stderr);
}

#[test]
fn core_timing_names_every_core() {
    let out = folder();
    let report = report("pipeline", out.path(), &["--core-timing"]);
    let times = report["core_timing"].as_array().unwrap();
    assert_eq!(times.len(), 8);
    for time in times {
        assert!(time["end"].as_u64().unwrap() > time["start"].as_u64().unwrap(), "{time}");
        assert!((1..=4).contains(&time["x"].as_u64().unwrap()));
    }
}

#[test]
fn a_capture_can_be_decoded_and_names_every_command_of_a_run() {
    let out = folder();
    let capture = out.path().join("run.cq");
    // Without the records of the arrays: a command of the run for each record.
    let capture_to = capture.to_str().unwrap();
    let report = report("increment", out.path(), &["--capture", capture_to, "--transfers", "windows"]);
    let decoded = tilework(&["cq", "decode", capture.to_str().unwrap()]).code(0);
    for command in [
        "RELAY_INLINE",
        "WRITE_PACKED",
        "WRITE_PACKED_LARGE",
        "WAIT",
        "SEND_GO_SIGNAL",
        "TIMESTAMP",
        "WRITE_LINEAR_H_HOST",
    ] {
        assert!(decoded.stdout.contains(command), "{command} is missing:\n{}", decoded.stdout);
    }
    assert!(decoded.stdout.lines().all(|line| line.starts_with("0x")), "{}", decoded.stdout);
    let commands = report["commands"].as_u64().unwrap();
    decoded.says(&format!("{commands} records, {commands} dispatch commands"));

    let bytes = std::fs::read(&capture).unwrap();
    let cut = out.path().join("cut.cq");
    std::fs::write(&cut, &bytes[..bytes.len() - 40]).unwrap();
    let ended = tilework(&["cq", "decode", cut.to_str().unwrap()]).code(1).says("cut.cq: offset 0x").says("needs");
    assert!(ended.stdout.contains("RELAY_INLINE"), "the good records are printed");
    ended.says(&format!("{} records", commands - 1));

    let mut bad = bytes;
    bad[16] = 0xEE; // the id of the first dispatch command
    std::fs::write(&cut, &bad).unwrap();
    tilework(&["cq", "decode", cut.to_str().unwrap()])
        .code(1)
        .says("offset 0x10: ")
        .says("found command id 238")
        .says("0 records");
}

/// Three launches of `increment`, each with another number to add: the last one's result stays.
#[test]
fn launches_run_in_turn_with_their_own_arguments() {
    let example = repository().join("examples/increment");
    let text = std::fs::read_to_string(example.join("program.toml")).expect("the example is there");
    let text = text.replace("    1,    ", "    \"launch.add\",    ");
    assert!(text.contains("launch.add"));
    let launches =
        "\n[[launch]]\nvalues = { add = 1000 }\n\n[[launch]]\nrepeat = 2\nvalues = { add = \"launch.index * 5\" }\n";
    let out = folder();
    let file = out.path().join("program.toml");
    std::fs::write(&file, text + launches).expect("a folder of the test");
    let x = example.join("x.npy");
    let input = format!("x={}", x.display());
    for dispatch in ["fast", "slow"] {
        let to = out.path().join(dispatch);
        let (file, to) = (file.to_str().unwrap(), to.to_str().unwrap());
        let ended =
            tilework(&["run", file, "--input", &input, "--out", to, "--dispatch", dispatch, "--report", "json"]);
        let report: Value = serde_json::from_str(&ended.code(0).stdout).expect("one JSON object");
        assert_eq!(report["programs"], 3);
        let each: Vec<u64> = report["launch_cycles"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        assert_eq!(each.len(), 3);
        assert!(report["program_cycles"].as_u64().unwrap() >= each.iter().sum());
        let ((_, x), (_, y)) = (read_npy::<u32>(&x), read_npy::<u32>(&Path::new(to).join("y.npy")));
        assert!(x.iter().zip(&y).all(|(x, y)| *y == x.wrapping_add(10)));
    }
}

/// Arrays go through the queue unless the host's windows are asked for; results are the same.
#[test]
fn arrays_go_through_the_queue_or_through_windows() {
    let (queue, windows) = (folder(), folder());
    let by_queue = report("increment", queue.path(), &[]);
    let by_windows = report("increment", windows.path(), &["--transfers", "windows"]);
    assert_eq!(by_queue["outputs"]["y"]["sha256"], by_windows["outputs"]["y"]["sha256"]);
    let cycles = |report: &Value| report["session"]["cycles"].as_u64().unwrap();
    assert!(cycles(&by_queue) < cycles(&by_windows));
    let out = folder();
    let refused = run_example("increment", out.path(), &["--dispatch", "slow", "--transfers", "queue"]).code(2);
    refused.says("--transfers needs --dispatch fast");
}

/// The lines of the log, and nothing else, are on standard error.
#[test]
fn a_log_tells_what_the_runtime_does() {
    let ring = repository().join("examples/ring/program.toml");
    let out = folder();
    let logged = |targets: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tilework"));
        command.env("TILEWORK_LOG", targets).arg("run").arg(&ring).arg("--out").arg(out.path()).output().unwrap()
    };
    let all = String::from_utf8(logged("debug").stderr).unwrap();
    for line in ["device: opened a p100: Fast dispatch, layout dispatcher, 118 workers", "program: ring: compiled"] {
        assert!(all.contains(line), "{all}");
    }
    assert!(all.contains("memory: ") && all.contains("queue: cycle "), "{all}");
    let one = String::from_utf8(logged("device=info").stderr).unwrap();
    assert_eq!(one.lines().filter(|line| line.contains("INFO device: ")).count(), one.lines().count(), "{one}");
    let wrong = logged("queue=loud");
    assert_eq!(wrong.status.code(), Some(2));
    let message = String::from_utf8(wrong.stderr).unwrap();
    assert!(message.contains("TILEWORK_LOG has the level \"loud\"; levels are off, error"), "{message}");
}
