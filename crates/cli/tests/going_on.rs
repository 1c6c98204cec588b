//! Runs that go on for long: they tell their rate, and an interrupt ends them with a report.
//! Reports use the names of the program file.

use crate::common;
use common::{folder, run_text};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tilework_abi::address_map::THREAD_STRIDE;
use tilework_abi::tensix::INSTRN_BUF_BASE;
use tilework_abi::tensix::insn::{Insn, Unit};

/// A program whose kernel never ends, on two cores.
const ENDLESS: &str = "name = \"t\"
[buffers.word]
use = \"scratch\"
dtype = \"u32\"
shape = [4]
page_size = 16
location = \"l1\"
[[roles]]
name = \"looping\"
cores = 2
brisc = { elf = \"prebuilt:busy\", args = [0xFFFF_FFFF, \"word.addr\"] }
";

/// Starts a run of [`ENDLESS`], and ends it with SIGINT when `ready` says so.
fn interrupted(folder: &Path, more: &[&str], ready: impl Fn(&Path) -> bool) -> Output {
    let file = folder.join("program.toml");
    std::fs::write(&file, ENDLESS).unwrap();
    let out = folder.join("out");
    let started = Command::new(env!("CARGO_BIN_EXE_tilework"))
        .args(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while !ready(&out) && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let kill = Command::new("kill").args(["-INT", &started.id().to_string()]).status().unwrap();
    assert!(kill.success());
    started.wait_with_output().unwrap()
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_run_with_the_report_of_max_cycles() {
    let folder = folder();
    let ended = interrupted(folder.path(), &["--report", "json"], Path::exists);
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let error = &report["error"];
    assert_eq!((&report["status"], &error["class"]), (&json!("failed"), &json!("interrupted")), "{report}");
    let busy = error["busy"].as_array().unwrap();
    let loops = |core: &&Value| core["runs"] == "kernel prebuilt:busy of program t, role looping";
    // It may have come before the kernels have started.
    assert!(error["cycles"] == 0 || busy.iter().any(|core| loops(&core)), "{report}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("interrupted after ") && message.contains(" cycles; busy:"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_run_that_goes_on_tells_its_rate() {
    let folder = folder();
    let begin = Instant::now();
    let ended = interrupted(folder.path(), &[], |_| begin.elapsed() > Duration::from_secs(8));
    let said = String::from_utf8(ended.stderr).unwrap();
    let line = said.lines().next().unwrap();
    assert!(
        line.starts_with("running, cycle ") && line.contains(" million cycles a second, at the limit in "),
        "{said}"
    );
    assert!(line.ends_with("(--max-cycles); an interrupt ends the run with a report"), "{said}");
    assert!(said.contains("error: interrupted after "), "{said}");
    assert!(said.contains("kernel prebuilt:busy of program t, role looping\n    at "), "{said}");
}

#[test]
fn the_report_of_an_exhausted_budget_has_the_names_of_the_program_file() {
    let folder = folder();
    let ended = run_text(folder.path(), ENDLESS, &["--max-cycles", "300000"]).code(1);
    ended
        .says("error: still running after 300000 cycles; busy:\n  BRISC of (1,")
        .says("  BRISC of (1,2)")
        .says("  BRISC of (1,3)")
        .says(", kernel prebuilt:busy of program t, role looping\n    at ")
        .says("--max-cycles allows more, or fewer");
}

#[test]
fn a_deadlock_has_the_names_of_circular_buffers_semaphores_and_roles() {
    let folder = folder();
    let text = "name = \"t\"\n[[cb]]\nname = \"tiles\"\nindex = 3\npages = 2\npage_size = 64\n[[semaphores]]\nname = \"go\"\n\
        [buffers.y]\nuse = \"output\"\ndtype = \"u8\"\nshape = [64]\npage_size = 64\n\
        [[roles]]\nname = \"drain\"\ncores = 1\nbrisc = { elf = \"prebuilt:writer\", args = [\"y.addr\", 0, 1, 64, \"cb.tiles\"] }\n";
    let ended = run_text(folder.path(), text, &["--report", "json"]).code(1);
    let report = ended.json();
    let waiting = report["error"]["waiting"].as_array().unwrap();
    let kernel = waiting.iter().find(|core| core["runs"] == "kernel prebuilt:writer of program t, role drain").unwrap();
    let word = &kernel["words"][0];
    assert_eq!(word["what"], "CB 3 \"tiles\" pages received (0); nobody has written it so far");
    assert_eq!(word["writers"], "nobody: no kernel of this program writes it");
    // A semaphore that nobody sets: the word that the kernel `spin` looks at.
    let shown = {
        let file = folder.path().join("program.toml");
        common::tilework(&["show", file.to_str().unwrap(), "--json"]).code(0).json()
    };
    let rows = shown["l1"].as_array().unwrap();
    let semaphore = rows.iter().find(|row| row["what"] == "semaphore 0 \"go\"").unwrap()["start"].as_u64().unwrap();
    let spin = text.replace("prebuilt:writer", "prebuilt:spin").replace("\"y.addr\", 0", &format!("{semaphore}, 0"));
    run_text(folder.path(), &spin, &[])
        .code(1)
        .says("semaphore 0 \"go\" [")
        .says("written by nobody: no other kernel of program t runs any more")
        .says("kernel prebuilt:spin of program t, role drain");
}

#[test]
fn a_fault_of_the_coprocessor_has_role_core_pc_and_line_of_the_push() {
    let folder = folder();
    // The kernel stores its number at its end: for this many steps it is an instruction that the
    // matrix unit does not have, and goes to thread 1.
    let numbers = std::iter::successors(Some(1u32), |x| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)));
    let not_built = |insn: &Insn| matches!(insn, Insn::NotBuilt(_)) && insn.unit() == Some(Unit::Matrix);
    let steps = numbers.map(Insn::decode).take(100_000).position(|insn| not_built(&insn)).unwrap();
    let args = format!("{steps}, {}", INSTRN_BUF_BASE + THREAD_STRIDE);
    let text = ENDLESS.replace("0xFFFF_FFFF, \"word.addr\"", &args).replace("cores = 2", "cores = [[2, 4]]");
    let ended = run_text(folder.path(), &text, &[]).code(1);
    let report = run_text(folder.path(), &text, &["--report", "json"]).code(1).json();
    let error = &report["error"];
    let pc = error["pc"].as_u64().unwrap();
    assert_eq!((&error["core"], &error["tile"]), (&json!("brisc"), &json!({"x": 2, "y": 4})), "{report}");
    assert!(error["source"][0]["file"].as_str().unwrap().contains("/src/"), "{report}");
    let ended = ended
        .says(&format!("pushed by BRISC at pc {pc:#x}"))
        .says("  BRISC of (2,4), kernel prebuilt:busy of program t, role looping\n    at ");
    assert_eq!(ended.stderr.matches("pc 0x").count(), 1, "{}", ended.stderr);
}

#[test]
fn times_of_cores_have_their_roles() {
    let out = folder();
    let report = common::run_example("pipeline", out.path(), &["--core-timing", "--report", "json"]).code(0).json();
    let times = report["core_timing"].as_array().unwrap();
    assert!(times.len() == 8 && times.iter().all(|core| core["role"] == "copy"), "{report}");
    let text = common::run_example("pipeline", out.path(), &["--core-timing"]).code(0).stdout;
    assert_eq!(text.lines().filter(|line| line.ends_with("  copy")).count(), 8, "{text}");
}
