//! `tilework pto` as a user sees it.

use crate::common;
use common::{Ended, folder, tilework};
use serde_json::{Value, json};

fn pto(args: &str) -> Ended {
    let words: Vec<&str> = ["pto"].into_iter().chain(args.split_whitespace()).collect();
    tilework(&words)
}

fn object(args: &str, code: i32) -> Value {
    let ended = pto(args).code(code);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{args}: {e}\n{}", ended.stdout))
}

#[test]
fn ids_are_an_object_for_each_core() {
    for (arch, cores, clusters) in [("a5", 108, 36), ("a2a3", 75, 25)] {
        let report = object(&format!("ids --arch {arch} --json"), 0);
        assert_eq!(report, object(&format!("ids --arch {arch} --report json"), 0));
        let Value::Array(all) = &report["cores"] else { panic!("an array") };
        assert_eq!(all.len(), cores);
        for cluster in 0..clusters {
            let of: Vec<_> = all.iter().filter(|core| core["cluster"] == cluster).collect();
            let kinds: Vec<_> = of.iter().map(|core| (core["kind"].as_str().unwrap(), &core["subblock"])).collect();
            assert_eq!(kinds, [("cube", &Value::Null), ("vector", &json!(0)), ("vector", &json!(1))], "{cluster}");
        }
    }
}

/// Worked values of docs/pto.md.
#[test]
fn ids_are_those_of_the_worked_table() {
    let of_core = |id: u32| object(&format!("ids --arch a5 --json --core {id}"), 0)["cores"][0].clone();
    for (id, subblock, cluster) in [
        (0, None, 0),
        (17, None, 17),
        (54, None, 18),
        (71, None, 35),
        (18, Some(0), 0),
        (21, Some(1), 1),
        (53, Some(1), 17),
        (72, Some(0), 18),
        (107, Some(1), 35),
    ] {
        let kind = if subblock.is_some() { "vector" } else { "cube" };
        let expected = json!({"core_id": id, "kind": kind, "subblock": subblock, "cluster": cluster});
        assert_eq!(of_core(id), expected);
    }
}

#[test]
fn ids_that_are_taken_for_others_are_refused() {
    pto("ids --core 20 --subblock 1").code(2).says("core 20 of a5 is subblock 0 of cluster 1, not subblock 1");
    pto("ids --core 3 --subblock 0").code(2).says("core 3 of a5 is a Cube, not a Vector");
    pto("ids --core 108").code(2).says("the cores of a5 are 0 to 107");
    pto("ids --arch a2a3 --core 75").code(2).says("the cores of a2a3 are 0 to 74");
    pto("ids --subblock 1").code(2).says("--core");
    pto("ids --arch a4").code(2).says("a2a3");
}

#[test]
fn every_example_runs_and_is_right() {
    for arch in ["a5", "a2a3"] {
        for example in ["bias", "dequant", "round-trip", "flash", "flash-f32"] {
            let report = object(&format!("run {example} --arch {arch} --slots 8 --seed 7 --report json"), 0);
            assert_eq!((&report["example"], &report["arch"]), (&json!(example), &json!(arch)));
            assert_eq!(
                (&report["right"], &report["leftovers"], &report["races"]),
                (&json!(true), &json!([]), &json!([]))
            );
            assert!(report["cycles"].as_u64().unwrap() > 1000 && report["pushed"].as_u64().unwrap() >= 16);
            assert!(report["largest_error"].as_f64() <= report["tolerance"].as_f64());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_one_another() {
    let run = |seed| pto(&format!("run flash --arch a2a3 --slots 3 --seed {seed} --report json")).code(0).stdout;
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn a_trace_is_written_in_the_form_of_its_ending() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = |name: &str| pto(&format!("run round-trip --seed 7 --trace {}", path(name))).code(0);
    for name in ["a.pftrace", "a.json", "a.txt"] {
        assert!(run(name).stdout.contains(name));
    }
    let json: Value = serde_json::from_slice(&std::fs::read(path("a.json")).unwrap()).unwrap();
    let named = |name: &str| json["traceEvents"].as_array().unwrap().iter().filter(|e| e["name"] == name).count();
    assert_eq!((named("TPUSH"), named("TPOP")), (24, 24), "8 tiles, each pushed once and twice, popped twice and once");
    let text = std::fs::read_to_string(path("a.txt")).unwrap();
    assert!(text.starts_with("# 1 cycle = 1 ns\n") && text.contains("# track cluster/Vector 1\n"));
    let perfetto = std::fs::read(path("a.pftrace")).unwrap();
    assert!(perfetto.len() > 5000 && perfetto[0] == 0x0a, "the file begins with a packet of a Trace message");
    run("b.pftrace");
    assert_eq!(std::fs::read(path("b.pftrace")).unwrap(), perfetto);
    for (wrong, code, says) in [("a.bin", 2, ".pftrace"), ("no/a.txt", 1, "cannot write")] {
        pto(&format!("run bias --trace {}", path(wrong))).code(code).says(says);
        assert!(!folder.path().join(wrong).exists());
    }
}

#[test]
fn what_the_headers_get_wrong_is_shown_by_a_slow_consumer() {
    let folder = folder();
    let trace = folder.path().join("race.txt");
    let wrong =
        format!("run bias --arch a5 --slots 4 --profile headers --slow-consumer 500 --trace {}", trace.display());
    pto(&wrong).code(1).says("race on slot 0: Cube's write of tile 4");
    assert!(std::fs::read_to_string(trace).unwrap().contains("fault what=\"race on slot 0"));
    let recorded = "run bias --arch a2a3 --slots 5 --profile headers --slow-consumer 500 --races record --report json";
    let report = object(recorded, 1);
    assert_eq!(report["right"], false);
    assert!(!report["races"].as_array().unwrap().is_empty());
    // The default profile on the same rings, and the headers' where they are right.
    for right in ["--arch a5 --slots 4", "--arch a2a3 --slots 5", "--arch a2a3 --slots 4 --profile headers"] {
        pto(&format!("run bias {right} --slow-consumer 500")).code(0);
    }
    pto("run bias --arch a5 --slots 4 --profile headers").code(1).says("semaphores are not at zero");
}

#[test]
fn exploration_states_what_it_reached() {
    let report = object("explore --arch a2a3 --slots 2 --tiles 6 --report json", 0);
    assert_eq!((&report["clean"], &report["complete"], &report["findings"]), (&json!(true), &json!(true), &json!([])));
    assert!(report["states"].as_u64().unwrap() > 500 && report["transitions"].as_u64() > report["states"].as_u64());
    let text = pto("explore --slots 2 --tiles 6").code(0).stdout;
    assert!(text.contains("states (all)") && text.contains("every interleaving ends well"), "{text}");
}

#[test]
fn one_tile_too_many_in_both_directions_is_a_deadlock_with_its_cycle() {
    pto("explore push-push --slots 2 --tiles 2").code(0);
    let report = object("explore push-push --slots 2 --tiles 3 --report json", 1);
    let [finding] = report["findings"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&finding["kind"], &report["ends"]), (&json!("deadlock"), &json!(0)));
    let message = finding["message"].as_str().unwrap();
    for part in
        ["Cube waits for a free slot of `ring C2V` for tile 2", "waits for a free slot of `ring V2C` for tile 2"]
    {
        assert!(message.contains(part), "{message}");
    }
    let text = pto("explore push-push --slots 2 --tiles 3").code(1).says("not every interleaving").stdout;
    assert!(text.contains("   1  ") && text.contains("deadlock in 1 state;"), "{text}");
}

#[test]
fn an_exploration_that_is_not_complete_is_none() {
    pto("explore --slots 4 --tiles 12 --max-states 100").code(1).says("more states than 100");
}

#[test]
fn wrong_arguments_are_refused_with_what_would_be_right() {
    for (args, says) in [
        ("run", "<EXAMPLE>"),
        ("run softmax", "flash"),
        ("run bias --slots 0", "1..=64"),
        ("run bias --slots 65", "1..=64"),
        ("run bias --slots 16", "1 to 15 slots"),
        ("run bias --profile credits", "headers"),
        ("run round-trip --profile tags --slots 5", "1 to 4 slots"),
        ("run flash --profile tags --slots 5", "ring `PV`"),
        ("run bias --seed x", "--seed"),
        ("run bias --trace x.pb", ".pftrace"),
        ("explore two-way", "push-push"),
        ("explore push-push --direction c2v", "needs a ring in both directions"),
        ("explore --direction both", "needs a ring in one direction"),
        ("explore --arch a2a3 --direction c2v-gm", "a2a3 has no direction"),
        ("explore --tiles 0", "--tiles"),
        ("explore --slots 16", "1 to 15 slots"),
        ("ids --core x", "--core"),
        ("", "Usage: tilework pto"),
    ] {
        let ended = pto(args).code(2).says(says);
        assert_eq!(ended.stdout, "", "{args}");
    }
}

#[test]
fn help_has_examples_that_run() {
    let mut ran = 0;
    for command in ["ids", "run", "explore"] {
        let help = pto(&format!("{command} --help")).code(0).stdout;
        let folder = folder();
        for line in help.lines().filter_map(|line| line.trim().strip_prefix("tilework pto ")) {
            let trace = folder.path().join("flash.pftrace").display().to_string();
            let ended = pto(&of_repository(line).replace("flash.pftrace", &trace));
            assert_ne!(ended.code, 2, "{line}: {}", ended.stderr);
            ran += 1;
        }
    }
    assert!(ran >= 8, "{ran} examples");
}

/// A command with the examples of the repository, wherever the test runs.
fn of_repository(command: &str) -> String {
    command.replace("examples/", &format!("{}/", common::repository().join("examples").display()))
}

/// The commands of a page: those in back quotes, and those of indented lines up to their
/// explanation.
fn commands(page: &str) -> Vec<&str> {
    let ends = |rest: &str| rest.find(['`', '\n']).into_iter().chain(rest.find("  ")).min().unwrap_or(rest.len());
    let starts = page.match_indices("tilework pto ").map(|(at, _)| &page[at + "tilework pto ".len()..]);
    starts.map(|rest| rest[..ends(rest)].trim()).filter(|command| command.contains(' ')).collect()
}

#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let page = std::fs::read_to_string(common::repository().join("docs/pto.md")).unwrap();
    let (before, defects) = page.split_once("## What is wrong in the headers").unwrap();
    let folder = folder();
    let trace = folder.path().join("flash.pftrace").display().to_string();
    let ended: Vec<_> = commands(before)
        .iter()
        .map(|c| pto(&of_repository(c).replace("flash.pftrace", &trace).replace("rings.pftrace", &trace)))
        .collect();
    let codes: Vec<_> = ended.iter().map(|ended| ended.code).collect();
    assert_eq!(codes, [0, 0, 0, 2, 0, 1, 0, 1], "{:?}", commands(before));
    let quotes = before.split("\n\n").filter_map(|part| part.strip_prefix("> "));
    let quotes: Vec<_> = quotes.map(|quote| quote.trim().replace("\n> ", " ")).collect();
    assert_eq!(quotes.len(), 3);
    for quote in quotes {
        assert!(ended.iter().any(|e| e.stdout.contains(&quote) || e.stderr.contains(&quote)), "{quote}");
    }
    assert!(before.contains(&format!("{} states", object("explore --report json", 0)["states"])));
    let defects = commands(defects);
    assert_eq!(defects.len(), 6, "{defects:?}");
    for command in defects {
        pto(command).code(1);
        let sound = command.replace(" --profile headers", "").replace("--slots 16", "--slots 15");
        let expected = if sound.contains("--slots 15") { sound.replace("--tiles 16", "--tiles 8") } else { sound };
        pto(&expected).code(0);
    }
}
