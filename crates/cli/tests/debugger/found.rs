//! Checks under the debugger: the chip stops at what is wrong, once, however often the run goes
//! back over it, and the report is that of a run without a debugger.

use super::common::{Ended, folder, repository, tilework};
use super::rsp::{Client, Debugged};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A program file of `examples/wrong`, its input as an option, and the checks.
fn wrong(name: &str, checks: &str) -> (PathBuf, [String; 4]) {
    let folder = repository().join("examples/wrong");
    let input = format!("x={}", folder.join("x.npy").display());
    (folder.join(format!("{name}.toml")), ["--input".into(), input, "--checks".into(), checks.into()])
}

/// The findings of a run without a debugger.
fn without(program: &Path, more: &[String], code: i32) -> Value {
    let out = folder();
    let [program, out] = [program, out.path()].map(|path| path.display().to_string());
    let mut args = vec!["run".to_owned(), program, "--out".into(), out, "--report".into(), "json".into()];
    args.extend_from_slice(more);
    checks(&tilework(&args).code(code))
}

/// What a report says of the findings, but for the cycle at which the run was ended: windows are
/// shorter under the debugger.
fn checks(ended: &Ended) -> Value {
    let report = ended.json();
    let mut checks = if report["error"].is_null() { &report } else { &report["error"] }["checks"].clone();
    checks.as_object_mut().unwrap_or_else(|| panic!("{report:#}")).remove("ended_at");
    checks
}

/// What gdb is told of a finding: its cycle, the core and its id.
fn line(finding: &Value) -> String {
    let (x, y) = (&finding["tile"]["x"], &finding["tile"]["y"]);
    let core = finding["core"].as_str().unwrap().to_uppercase();
    format!("cycle {}, tile {x}-{y} {core}: {}: ", finding["cycle"], finding["id"].as_str().unwrap())
}

/// Lets the program run to its end; how often the chip stopped on the way.
fn run_on(gdb: &mut Client) -> usize {
    let mut stops = 0;
    loop {
        let stop = gdb.ask("vCont;c");
        if stop.starts_with('W') {
            return stops;
        }
        stops += usize::from(!stop.contains("library"));
    }
}

#[test]
fn the_chip_stops_at_each_finding_once_and_the_report_is_the_same() {
    for (name, words) in [("unwritten-l1", "warn"), ("overrun", "warn,races"), ("one-page", "races")] {
        let (program, more) = wrong(name, words);
        let expected = without(&program, &more, 0);
        let out = folder();
        let run = Debugged::of(&program, out.path(), &more.each_ref().map(String::as_str));
        let mut gdb = Client::connect(run.port);
        gdb.ask("?");
        assert_eq!(gdb.monitor("findings"), "nothing was found up to now\n");
        let stops = run_on(&mut gdb);
        let told = std::mem::take(&mut gdb.printed);
        for finding in expected["findings"].as_array().unwrap() {
            assert_eq!(told.matches(&line(finding)).count(), 1, "{name}: {}: {told}", line(finding));
        }
        // A finding of several tiles is one in a report, and one for each of them here.
        let all: usize =
            expected["findings"].as_array().unwrap().iter().map(|f| f["tiles"].as_array().unwrap().len()).sum();
        assert!(stops >= expected["findings"].as_array().unwrap().len() && stops <= all, "{name}: {stops} of {all}");
        assert_eq!(checks(&run.end().code(0)), expected, "{name}");
    }
}

#[test]
fn going_back_tells_nothing_twice_and_loses_nothing() {
    let (program, more) = wrong("overrun", "warn,races");
    let expected = without(&program, &more, 0);
    let first = line(&expected["findings"][0]);
    let cycle = expected["findings"][0]["cycle"].as_u64().unwrap();
    let out = folder();
    let run = Debugged::of(&program, out.path(), &more.each_ref().map(String::as_str));
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    let stop = gdb.ask("vCont;c");
    assert!(stop.starts_with("T05"), "{stop}");
    assert!(gdb.printed.contains(&first), "{}", gdb.printed);
    let found = gdb.monitor("findings");
    assert!(found.contains(&first), "{found}");
    assert!(gdb.monitor("where").contains(expected["findings"][0]["id"].as_str().unwrap()));
    // Behind the finding and back before it, twice: from a checkpoint, and from the beginning.
    for _ in 0..2 {
        gdb.monitor(&format!("goto {}", cycle + 3000));
        let mut stop = gdb.ask("vCont;c");
        while stop.contains("library") {
            stop = gdb.ask("vCont;c");
        }
        gdb.monitor(&format!("goto {}", cycle - 1));
        gdb.ask("bc");
        assert!(gdb.monitor("where").starts_with(&format!("cycle {}", cycle - 1)));
        assert_eq!(gdb.monitor("findings"), "nothing was found up to now\n");
    }
    gdb.printed.clear();
    run_on(&mut gdb);
    assert_eq!(gdb.printed.matches(&first).count(), 0, "gdb was told of it before");
    assert_eq!(checks(&run.end().code(0)), expected);
}

#[test]
fn an_error_ends_the_run_when_gdb_goes_on() {
    let (program, more) = wrong("past-a-buffer", "error");
    let expected = without(&program, &more, 1);
    let out = folder();
    let run = Debugged::of(&program, out.path(), &more.each_ref().map(String::as_str));
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    let stop = gdb.ask("vCont;c");
    let id = &expected["findings"][0]["id"];
    assert!(stop.starts_with("T05") && gdb.printed.contains(id.as_str().unwrap()), "{stop}: {}", gdb.printed);
    run_on(&mut gdb);
    let found = checks(&run.end().code(1));
    assert_eq!((&found["findings"][0]["id"], &found["findings"][0]["cycle"]), (id, &expected["findings"][0]["cycle"]));
}

#[test]
fn nothing_is_looked_for_unless_it_is_asked_for() {
    let (program, more) = wrong("unwritten-l1", "warn");
    let out = folder();
    let run = Debugged::of(&program, out.path(), &[&more[0], &more[1]]);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    assert!(gdb.monitor("findings").starts_with("nothing is looked for"));
    assert_eq!(run_on(&mut gdb), 0);
    assert!(run.end().code(0).json()["checks"].is_null());
    let [program, input, out] = [program.display().to_string(), more[1].clone(), out.path().display().to_string()];
    let args = ["run", &program, "--input", &input, "--out", &out, "--gdb", "0", "--allow", "l1-null"];
    tilework(&args).code(2).says("--allow has no effect with --gdb without --checks");
}

/// Runs a program to the end that is kept in a bundle; what it found.
fn bundled(more: &[&str], bundle: &Path, code: i32) -> Value {
    let (program, input) = wrong("unwritten-l1", "warn");
    let out = folder();
    let [program, out, bundle] = [&program, out.path(), bundle].map(|path| path.display().to_string());
    let mut args = vec!["run", &program, "--out", &out, "--bundle", &bundle, "--report", "json", &input[0], &input[1]];
    args.extend(more);
    checks(&tilework(&args).code(code))
}

#[test]
fn a_replay_lists_what_its_run_found_unasked_and_stops_only_if_that_is_why_it_was_kept() {
    let folder = folder();
    let bundle = folder.path().join("budget.zip");
    let expected = bundled(&["--max-cycles", "12000"], &bundle, 1);
    let first = &expected["findings"][0];
    let run = Debugged::replay(&bundle);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    assert_eq!(gdb.monitor("findings"), "nothing was found up to now\n");
    let behind = first["cycle"].as_u64().unwrap() + 10;
    gdb.monitor(&format!("goto {behind}"));
    while gdb.ask("vCont;c").contains("library") {}
    assert!(gdb.monitor("where").starts_with(&format!("cycle {behind}:")), "{}", gdb.monitor("where"));
    let listed = gdb.monitor("findings");
    assert!(listed.contains(&line(first)), "{listed}");
    assert_eq!(run_on(&mut gdb), 0);
    let ended = run.end().code(0).json();
    assert_eq!((&ended["same"], &ended["end"]), (&Value::Bool(true), &Value::from("budget")), "{ended:#}");
    assert_eq!(ended["report"]["error"]["checks"], expected);

    let bundle = folder.path().join("findings.zip");
    let expected = bundled(&[], &bundle, 0);
    let run = Debugged::replay(&bundle);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    assert!(run_on(&mut gdb) > 0);
    assert!(gdb.printed.contains(&line(&expected["findings"][0])), "{}", gdb.printed);
    let ended = run.end().code(0).json();
    assert_eq!((&ended["same"], &ended["end"]), (&Value::Bool(true), &Value::from("findings")), "{ended:#}");
}
