//! `workers` of a program file: programs, buffers in L1 and reports follow the choice.

use crate::common;
use common::{example, example_input, folder, read_npy, repository, run_text, tilework};
use serde_json::{Value, json};

/// Runs `increment`, which takes all workers, with this choice of them, and checks its output.
fn increment(workers: &str, more: &[&str]) -> Value {
    let out = folder();
    let text = std::fs::read_to_string(example("increment")).unwrap();
    let program = out.path().join("program.toml");
    std::fs::write(&program, format!("workers = {workers}\n{text}")).unwrap();
    let (program, input, to) = (program.display().to_string(), example_input("increment"), out.path().join("out"));
    let to = to.display().to_string();
    let args = [&["run", &program, "--input", &input, "--out", &to, "--report", "json"], more].concat();
    let report = tilework(&args).code(0).json();
    let (_, x) = read_npy::<u32>(&repository().join("examples/increment/x.npy"));
    let (_, y) = read_npy::<u32>(&out.path().join("out/y.npy"));
    assert!(x.iter().zip(&y).all(|(x, y)| *y == x.wrapping_add(1)));
    report
}

#[test]
fn a_program_runs_on_the_chosen_workers_only() {
    let some = "[[[2, 3], [5, 4]], [12, 9]]";
    for more in [&[][..], &["--dispatch", "slow"], &["--dispatch-layout", "split"], &["--board", "p150"]] {
        let report = increment(some, more);
        assert_eq!((&report["workers"], &report["cores"]), (&json!(9), &json!(9)), "{more:?}");
    }
    let report = increment(some, &["--core-timing"]);
    let on = report["core_timing"].as_array().unwrap();
    assert!(on.iter().all(|core| {
        let (x, y) = (core["x"].as_u64().unwrap(), core["y"].as_u64().unwrap());
        (2..=5).contains(&x) && (3..=4).contains(&y) || (x, y) == (12, 9)
    }));
    assert_eq!(increment("[[[13, 2], [13, 4]]]", &[])["workers"], 3);
    assert_eq!(increment("[[[13, 4], [14, 11]], [1, 2]]", &[])["workers"], 17);
}

#[test]
fn buffers_and_expressions_follow_the_choice() {
    let folder = folder();
    let text = "name = \"t\"\nworkers = [[[1, 2], [2, 3]]]\n[buffers.x]\nuse = \"output\"\ndtype = \"u32\"\n\
        shape = [\"board.workers\", 16]\npage_size = 64\nmemory = \"l1\"\n\
        [[roles]]\ncores = \"all\"\nbrisc = { elf = \"prebuilt:empty\" }\n";
    let report = run_text(folder.path(), text, &["--report", "json"]).code(0).json();
    assert_eq!(report["outputs"]["x"]["shape"], json!([4, 16]));
    let file = folder.path().join("program.toml").display().to_string();
    let map = tilework(&["show", &file, "--memory"]).code(0).stdout;
    // A page for each of the four, so that each has one.
    assert!(map.contains("\nL1 of each of 4 workers: ") && map.contains("          64  buffer x"), "{map}");
    assert_eq!(tilework(&["show", &file, "--json"]).code(0).json()["cores"], 4);
    assert!(tilework(&["check", &file, "--board", "p150"]).code(0).stdout.contains("1 role on 4 cores"));
}

#[test]
fn wrong_choices_are_named() {
    let folder = folder();
    let check = |workers: &str, cores: &str, message: &str| {
        let role = format!("[[roles]]\ncores = {cores}\nbrisc = {{ elf = \"prebuilt:empty\" }}\n");
        let file = folder.path().join("program.toml");
        std::fs::write(&file, format!("name = \"t\"\nworkers = {workers}\n{role}")).unwrap();
        tilework(&["check", file.to_str().unwrap()]).code(2).says(&format!("program.toml:{message}"));
    };
    check("[[14, 2]]", "1", "2:11: workers: (14, 2) runs the prefetcher");
    check("[[[1, 2], [14, 3]]]", "1", "2:11: workers: (14, 3) runs the dispatcher");
    let shown = "2:11: workers: (8, 2) is no Tensix tile of a p100; \"tilework board p100\" shows them";
    check("[[[8, 2], [9, 3]]]", "1", shown);
    check("[]", "1", "2:11: worker cores: the set is empty");
    check("3", "1", "2:11: invalid type: integer `3`, expected a sequence");
    check("[[1]]", "1", "2:11: found [1], expected a core [x, y] or a rectangle");
    let four = "[[[1, 2], [2, 3]]]";
    check(four, "[[1, 4]]", "4:9: core (1, 4) of role \"role0\" is none of the program's workers");
    check(four, "5", "4:9: role \"role0\" wants 5 cores; a p100 has 4 workers, of which 4 are free");
}
