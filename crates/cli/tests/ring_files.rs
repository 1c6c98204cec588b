//! Rings and schedules of a file, under `tilework pto run` and `tilework pto explore`.

use crate::common;
use common::{Ended, folder, repository, tilework};
use serde_json::json;
use std::path::Path;

fn example() -> String {
    repository().join("examples/rings/there-and-back.toml").display().to_string()
}

fn pto(verb: &str, file: &str, more: &[&str]) -> Ended {
    tilework(&[&["pto", verb, file], more].concat())
}

fn text(folder: &Path, text: &str) -> String {
    let file = folder.join("rings.toml");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn the_rings_of_a_file_run_and_every_tile_is_compared() {
    let report = pto("run", &example(), &["--seed", "7", "--report", "json"]).code(0).json();
    assert_eq!((&report["program"], &report["arch"]), (&json!("there-and-back"), &json!("a5")));
    assert_eq!((&report["right"], &report["wrong_tiles"], &report["races"]), (&json!(true), &json!(0), &json!([])));
    let ring = &report["rings"][1];
    let stated = (&ring["name"], &ring["direction"], &ring["dtype"], &ring["slots"], &ring["flag"]);
    assert_eq!(stated, (&json!("weights"), &json!("v2c"), &json!("f16"), &json!(2), &json!(2)));
    assert_eq!((&ring["pushed"], &ring["popped"]), (&json!(8), &json!(8)));
    assert_eq!(report["pushed"], 24, "8 of the Cube, 8 of each Vector");
    // The same seed, the same report; the command line replaces what the file states.
    let again = || pto("run", &example(), &["--seed", "7"]).code(0).stdout;
    assert_eq!(again(), again());
    assert!(again().contains("  right: every popped tile is as it was pushed\n"), "{}", again());
    let other = pto("run", &example(), &["--arch", "a2a3", "--slots", "3", "--report", "json"]).code(0).json();
    assert_eq!((&other["arch"], &other["rings"][0]["slots"]), (&json!("a2a3"), &json!(3)));
    let trace = folder();
    let trace = trace.path().join("rings.txt");
    pto("run", &example(), &["--trace", trace.to_str().unwrap()]).code(0);
    assert!(std::fs::read_to_string(trace).unwrap().contains("TPUSH"));
}

#[test]
fn the_rings_of_a_file_are_explored() {
    let report = pto("explore", &example(), &["--report", "json"]).code(0).json();
    assert_eq!((&report["clean"], &report["complete"]), (&json!(true), &json!(true)));
    assert!(report["states"].as_u64().unwrap() > 1000, "{report}");
    // One slot for each ring is too few, and the run and the exploration say so alike.
    let message = "Cube waits for a free slot of `scores` for tile 2";
    let explored = pto("explore", &example(), &["--slots", "1", "--report", "json"]).code(1).json();
    let [finding] = explored["findings"].as_array().unwrap().as_slice() else { panic!("{explored}") };
    assert_eq!(finding["kind"], "deadlock");
    assert!(finding["message"].as_str().unwrap().contains(message), "{finding}");
    pto("run", &example(), &["--slots", "1"]).code(1).says(message);
}

const OVERTAKEN: &str = "name = \"overtaken\"
[[rings]]
name = \"r\"
direction = \"c2v\"
tile = [4, 8]
slots = 4
profile = \"headers\"
[schedule]
cube = [{ repeat = 16, do = [\"push r\"] }]
vectors = [{ repeat = 16, do = [\"pop r\", \"work 500\", \"free r\"] }]
";

#[test]
fn a_report_with_overwritten_tiles_does_not_call_its_result_exact() {
    let folder = folder();
    let file = text(folder.path(), OVERTAKEN);
    pto("run", &file, &["--slow-consumer", "500"]).code(1).says("race on slot 0");
    let bias = ["run", "bias", "--arch", "a2a3", "--slots", "5", "--profile", "headers", "--slow-consumer", "500"];
    let record = ["--races", "record"];
    for ended in [
        pto("run", &file, &[&["--slow-consumer", "500"], &record[..]].concat()).code(1),
        tilework(&[&["pto"], &bias[..], &record].concat()).code(1),
    ] {
        assert!(ended.stdout.contains("  wrong: ") && !ended.stdout.contains("exact"), "{}", ended.stdout);
        assert!(ended.stdout.contains("what was overwritten is in the result, as on the machine"), "{}", ended.stdout);
    }
    let right = pto("run", &file, &["--profile", "counting"]).code(0).stdout;
    assert!(right.contains("results are exact") && right.contains("  right: "), "{right}");
}

#[test]
fn mistakes_in_a_file_have_their_places() {
    let folder = folder();
    let wrong = "name = \"w\"\n[[rings]]\nname = \"r\"\ndirection = \"up\"\ntile = [4, 8]\n[[rings]]\nname = \"s\"\ndirection = \"c2v\"\n\
        tile = [3, 8]\nslots = 99\n[schedule]\ncube = [\"push q\", \"fly\", { repeat = 2, do = [\"work x\"] }]\n";
    let report = pto("run", &text(folder.path(), wrong), &["--report", "json"]).code(2).json();
    let findings = report["error"]["findings"].as_array().unwrap();
    let places: Vec<(u64, &str)> = findings
        .iter()
        .map(|finding| (finding["line"].as_u64().unwrap(), finding["message"].as_str().unwrap()))
        .collect();
    let expected = [
        (4, "direction \"up\"; expected c2v, v2c, both"),
        (6, "ring `s`: 99 slots"),
        (12, "there is no ring \"q\"; there are r, s"),
        (12, "\"fly\" is no action; expected push, pop or free with a ring, or work with cycles"),
        (12, "\"x\" is no number of cycles"),
    ];
    assert_eq!(places.len(), expected.len(), "{report}");
    for ((line, message), (at, says)) in places.iter().zip(expected) {
        assert!(*line == at && message.contains(says), "{line}: {message}\nexpected {at}: {says}");
    }
    for (schedule, says) in [
        ("vectors = [\"push r\"]", "Vector 0 cannot push on `r`, which goes from the Cube to the Vectors"),
        ("cube = [\"free r\"]", "Cube cannot free a slot of `r`"),
        ("vectors = [\"free r\"]", "frees a slot of `r`, but holds none"),
        ("vectors = []\nvector0 = []", "give vectors, what both Vectors do, or vector0 and vector1"),
        ("cube = [{ repeat = 99999999, do = [\"push r\"] }]", "more than 1048576 actions of one core"),
        ("cube = [1]", "expected an action in a string, or { repeat = N, do = [...] }"),
        ("cubes = []", "unknown field `cubes`"),
    ] {
        let file = "name = \"w\"\n[[rings]]\nname = \"r\"\ndirection = \"c2v\"\ntile = [4, 8]\n[schedule]\n".to_owned()
            + schedule;
        let ended = pto("run", &text(folder.path(), &file), &[]).says(says);
        assert!((1..=2).contains(&ended.code), "{}", ended.stderr);
    }
    pto("explore", &example(), &["--tiles", "3"]).code(2).says("--tiles is for the scenarios");
    pto("explore", "one-way", &["--rounds", "3"]).code(2).says("--rounds is for push-push; the scenario is one-way");
    pto("run", "/no/such.toml", &[]).code(2).says("cannot read /no/such.toml");
}

/// A ring without split has no Vector 1 on A5.
#[test]
fn a_ring_without_split_is_vector_0_s_alone() {
    let folder = folder();
    let file = "name = \"one\"\n[[rings]]\nname = \"r\"\ndirection = \"v2c\"\ntile = [4, 8]\nsplit = \"none\"\ndtype = \"i8\"\n\
        [schedule]\nvectors = [\"work 5\", \"push r\"]\ncube = [\"pop r\", \"free r\"]\n";
    for (arch, pushed) in [("a5", 1), ("a2a3", 2)] {
        let file = text(folder.path(), file);
        let report = pto("run", &file, &["--arch", arch, "--report", "json"]).code(0).json();
        assert_eq!((&report["pushed"], &report["rings"][0]["pushed"]), (&json!(pushed), &json!(1)), "{report}");
        pto("explore", &file, &["--arch", arch]).code(0);
    }
}
