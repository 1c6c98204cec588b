//! Wrong input of every kind ends with exit code 2 (or 1), a message that says what was found and
//! what was expected, and no output file.

use crate::common;

#[cfg(unix)]
use common::limited;
use common::{Ended, example, files, folder, repository, run_text, tilework, write_npy};
use serde_json::{Value, json};
use std::path::Path;

const INPUT: &str = "[buffers.x]\nuse = \"input\"\ndtype = \"u32\"\nshape = [4, 16]\npage_size = 64\n\
                     [buffers.y]\nuse = \"output\"\nlike = \"x\"\npage_size = 64\n";

/// The JSON report of a kernel program's run that did not end well.
#[track_caller]
fn report_of_failure(ended: &Ended, status: &str, class: &str) -> Value {
    let report = ended.json();
    for (key, value) in [("kind", "kernel-program"), ("command", "run"), ("status", status)] {
        assert_eq!(report[key], value, "{report}");
    }
    assert_eq!((&report["schema"], &report["error"]["class"]), (&json!(1), &json!(class)), "{report}");
    let message = report["error"]["message"].as_str().unwrap();
    assert_eq!(ended.stderr, format!("error: {message}\n"), "people and programs are told the same");
    report
}

fn kernel(elf: &str, more: &str) -> String {
    format!("[[roles]]\nname = \"main\"\ncores = 2\nbrisc = {{ elf = \"{elf}\"{more} }}\n")
}

/// A program with an input x and an output y.
fn program() -> String {
    format!("name = \"t\"\n{INPUT}{}", kernel("prebuilt:empty", ""))
}

/// Runs a program without inputs that must be refused.
#[track_caller]
fn refused(text: &str) -> Ended {
    let folder = folder();
    let ended = run_text(folder.path(), &format!("name = \"t\"\n{text}"), &[]).code(2);
    assert_eq!(ended.stdout, "");
    assert_eq!(files(&folder.path().join("out")), [""; 0]);
    ended
}

/// Runs [`program`] with an array for x that must be refused.
#[track_caller]
fn array_refused(write: impl FnOnce(&Path)) -> Ended {
    let folder = folder();
    let x = folder.path().join("x.npy");
    write(&x);
    let ended = run_text(folder.path(), &program(), &["--input", &format!("x={}", x.display())]).code(2);
    assert_eq!(files(&folder.path().join("out")), [""; 0]);
    ended
}

#[test]
fn a_missing_array() {
    let folder = folder();
    run_text(folder.path(), &program(), &[])
        .code(2)
        .says("program.toml:2:10: no array for input \"x\"; give one with --input x=FILE.npy");
    run_text(folder.path(), &program(), &["--input", "x=/does/not/exist.npy"])
        .code(2)
        .says("cannot read /does/not/exist.npy");
    run_text(folder.path(), &program(), &["--input", "x"]).code(2).says("expected NAME=FILE");
    assert_eq!(files(&folder.path().join("out")), [""; 0]);
}

#[test]
fn an_array_that_the_program_does_not_have() {
    let folder = folder();
    let x = folder.path().join("x.npy");
    write_npy(&x, &[4, 16], &[0u32; 64]);
    let given = |name: &str| format!("{name}={}", x.display());
    run_text(folder.path(), &program(), &["--input", &given("z")])
        .code(2)
        .says("--input z: the program has no input of that name; it has x");
    run_text(folder.path(), &program(), &["--input", &given("x"), "--input", &given("x")])
        .code(2)
        .says("--input x is given twice");
}

#[test]
fn an_array_of_another_dtype_or_shape() {
    array_refused(|x| write_npy(x, &[4, 16], &[0i64; 64]))
        .says("input \"x\": the array has dtype i64, the program expects u32");
    array_refused(|x| write_npy(x, &[64], &[0u32; 64]))
        .says("input \"x\": the array has shape (64,), the program expects (4, 16)");
}

#[test]
fn a_broken_array_file() {
    array_refused(|x| std::fs::write(x, "hello").unwrap()).says("x.npy: not a .npy file");
    array_refused(|x| {
        write_npy(x, &[4, 16], &[0u32; 64]);
        let bytes = std::fs::read(x).unwrap();
        std::fs::write(x, &bytes[..bytes.len() - 6]).unwrap();
    })
    .says("dtype u32 and shape (4, 16) need 256 bytes of elements")
    .says("found 250: the file is truncated");
    array_refused(|x| {
        write_npy(x, &[4, 16], &[0u32; 64]);
        let text = std::fs::read(x).unwrap();
        let at = text.windows(5).position(|w| w == b"False").unwrap();
        let mut text = text;
        text[at..at + 5].copy_from_slice(b"True ");
        std::fs::write(x, text).unwrap();
    })
    .says("the array is in Fortran order; expected C order");
}

#[test]
fn a_broken_program_file() {
    let folder = folder();
    run_text(folder.path(), "name = ", &[]).code(2).says("program.toml:1:");
    run_text(folder.path(), "name = \"t\"\nroles = []\n", &[]).code(2).says("the program has no roles");
    refused("wrong = 1\nroles = []\n").says("program.toml:2:1: unknown field `wrong`");
    let missing = folder.path().join("nothing.toml");
    tilework(&["run", missing.to_str().unwrap(), "--out", "out"]).code(2).says("cannot read").says("nothing.toml");
    tilework(&["run", folder.path().to_str().unwrap(), "--out", "out"]).code(2).says("is a folder");
}

#[test]
fn an_argument_expression_with_a_mistake() {
    refused(&kernel("prebuilt:spin", ", args = [\"core.index + nothing\"]"))
        .says("program.toml:5:56: role \"main\", BRISC, args[0]: unknown name \"nothing\"; known here: board.workers");
    refused(&kernel("prebuilt:spin", ", args = [\"1 + \"]")).says("the expression ends too early");
}

/// A minimal 32-bit ELF file with loadable segments (address, bytes) and one section header's
/// worth of nothing.
fn elf(machine: u16, segments: &[(u32, u32)]) -> Vec<u8> {
    let mut out = vec![0x7F, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    out.extend(2u16.to_le_bytes());
    out.extend(machine.to_le_bytes());
    for word in [1, segments[0].0, 52, 0, 0] {
        out.extend(u32::to_le_bytes(word));
    }
    for half in [52, 32, segments.len() as u16, 40, 0, 0] {
        out.extend(u16::to_le_bytes(half));
    }
    let data = 52 + 32 * segments.len() as u32;
    for &(address, bytes) in segments {
        for word in [1, data, address, address, bytes, bytes, 5, 4] {
            out.extend(u32::to_le_bytes(word));
        }
    }
    out.resize(out.len() + 256, 0x13);
    out
}

fn elf_refused(bytes: &[u8]) -> Ended {
    let folder = folder();
    std::fs::write(folder.path().join("k.elf"), bytes).unwrap();
    run_text(folder.path(), &format!("name = \"t\"\n{}", kernel("k.elf", "")), &[]).code(2).says("k.elf")
}

#[test]
fn a_kernel_that_is_no_elf_file_for_this_core() {
    refused(&kernel("missing.elf", "")).says("program.toml:5:17: BRISC: cannot read").says("missing.elf");
    refused(&kernel("prebuilt:missing", ""))
        .says("no prebuilt kernel is named \"missing\"; there are accumulate-math, accumulate-pack");
    elf_refused(b"not an ELF file at all").says("expected");
    elf_refused(&elf(62, &[(0x1_0000, 16)])).says("expected").says("machine");
    elf_refused(&elf(243, &[(0x1_0000, 64), (0x1_0020, 64)])).says("overlap");
    let mut cut = elf(243, &[(0x1_0000, 64)]);
    cut.truncate(60);
    elf_refused(&cut).says("expected");
}

#[test]
fn a_core_that_is_not_on_the_board() {
    let on = |cores: &str| format!("[[roles]]\ncores = {cores}\nbrisc = {{ elf = \"prebuilt:empty\" }}\n");
    refused(&on("[[15, 2]]"))
        .says("program.toml:3:9: core (15, 2) of role \"role0\" is not on the board; the workers of a p100");
    refused(&on("[[14, 2]]")).says("runs the prefetcher");
    refused(&on("119")).says("wants 119 cores; a p100 has 118 workers");
    let folder = folder();
    run_text(folder.path(), &format!("name = \"t\"\n{}", on("[[15, 2]]")), &["--board", "p150"]).code(0);
}

#[test]
fn more_circular_buffers_than_a_core_has() {
    let cbs: String = (0..33).map(|i| format!("[[cb]]\nindex = {i}\npages = 1\npage_size = 16\n")).collect();
    refused(&format!("{cbs}{}", kernel("prebuilt:empty", ""))).says("33 circular buffers; a core has 32");
    refused(&format!("[[cb]]\nindex = 32\npages = 1\npage_size = 16\n{}", kernel("prebuilt:empty", "")))
        .says("is 32; expected 0 to 31");
}

#[test]
fn more_l1_than_a_core_has() {
    let l1 = "[buffers.big]\nuse = \"scratch\"\ndtype = \"u8\"\nshape = [1000000]\npage_size = 64\nlocation = \"l1\"\n";
    let cb = "[[cb]]\nindex = 5\npages = 200\npage_size = 4096\n";
    refused(&format!("{l1}{cb}{}", kernel("prebuilt:empty", ""))).says("L1").says("big").says("819200").says("free");
    refused(&format!("{}{}", l1.replace("1000000", "2000000"), kernel("prebuilt:empty", "")))
        .says("L1")
        .says("2000000")
        .says("free");
}

#[test]
fn an_argument_list_that_does_not_fit() {
    let args = format!(", args = [{}]", "1, ".repeat(12_000));
    refused(&kernel("prebuilt:empty", &args)).says("kernel configuration space");
    let args = format!(", args = [{}]", "1, ".repeat(20_000));
    refused(&kernel("prebuilt:empty", &args)).says("args has 20000 values; expected at most 16384");
    refused(&kernel("prebuilt:empty", ", args = [\"0x1_0000_0000\"]"))
        .says("does not fit the 32 bits of an argument word");
}

#[test]
fn wrong_use_of_the_command_line() {
    tilework::<&str>(&[]).code(2);
    tilework(&["fly"]).code(2).says("unrecognized subcommand 'fly'");
    tilework(&["board", "n150"]).code(2).says("expected p100, p150, p300 or a file (.toml)");
    let ring = example("ring");
    let ring = ring.to_str().unwrap();
    tilework(&["run", ring]).code(2).says("--out <DIR>");
    tilework(&["run", ring, "--out", "out", "--dispatch", "medium"]).code(2).says("[possible values: fast, slow]");
    tilework(&["run", ring, "--out", "out", "--max-cycles", "0"]).code(2).says("--max-cycles");
    let bug = tilework(&["run", ring, "--out", "out", "--without-bug", "shiftxa"]).code(2);
    bug.says("\"shiftxa\" is no bug; expected one of mop-count, stochastic-rounding");
    let bug = ["run", ring, "--out", "out", "--without-bug", "mop-count", "--chip", "lib.so"];
    tilework(&bug).code(2).says("cannot be used with");
    for threads in ["0", "2.5", "many"] {
        tilework(&["run", ring, "--out", "out", "--threads", threads]).code(2).says("--threads");
    }
    let (library, threads) = (["--chip", "no.so"], ["--threads", "2"]);
    let both = [&["run", ring, "--out", "out"][..], &library, &threads].concat();
    tilework(&both).code(2).says("--threads is for the built-in chip: leave out --chip");
    let folder = folder();
    let capture = folder.path().join("c.cq");
    let out = folder.path().join("out");
    let slow =
        ["run", ring, "--out", out.to_str().unwrap(), "--dispatch", "slow", "--capture", capture.to_str().unwrap()];
    tilework(&slow).code(2).says("--capture needs --dispatch fast");
    assert!(!capture.exists());
}

#[test]
fn a_capture_that_is_none() {
    tilework(&["cq", "decode", "/does/not/exist"]).code(2).says("cannot read /does/not/exist");
    let folder = folder();
    let file = folder.path().join("text");
    std::fs::write(&file, "this is not a command queue").unwrap();
    tilework(&["cq", "decode", file.to_str().unwrap()]).code(1).says("offset 0x0: ").says("0 records");
}

#[test]
fn files_that_are_no_regular_files_are_refused_unread() {
    let folder = folder();
    let path = folder.path().to_str().unwrap().to_owned();
    tilework(&["cq", "decode", &path]).code(2).says("is a folder; expected an issue region or capture");
    run_text(folder.path(), &program(), &["--input", &format!("x={path}")])
        .code(2)
        .says("is a folder; expected a .npy file");
    if Path::new("/dev/zero").exists() {
        let device = "/dev/zero is not a regular file; expected ";
        tilework(&["cq", "decode", "/dev/zero"]).code(2).says(&format!("{device}an issue region or capture"));
        run_text(folder.path(), &program(), &["--input", "x=/dev/zero"]).code(2).says(&format!("{device}a .npy file"));
        refused(&kernel("/dev/zero", "")).says(&format!("{device}an ELF file"));
    }
}

#[test]
fn files_larger_than_their_budget_are_refused_unread() {
    let folder = folder();
    // A file of this length without content, which takes no room on the disk.
    let sparse = |name: &str, bytes: u64| {
        let path = folder.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    tilework(&["cq", "decode", &sparse("c.cq", (1 << 30) + 1)]).code(2).says("is larger than 1073741824 bytes");
    let array = |bytes| format!("x={}", sparse("x.npy", bytes));
    run_text(folder.path(), &program(), &["--input", &array((4 << 30) + 1)])
        .code(2)
        .says("larger than 4294967296 bytes");
    run_text(folder.path(), &program(), &["--input", &array(4 << 30)]).code(2).says("x.npy: not a .npy file");
}

#[test]
fn a_capture_replaces_neither_the_program_nor_an_array_nor_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = "name = \"e\"\n[[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";
    std::fs::write(path("p.toml"), text).unwrap();
    let run = |capture: &str| tilework(&["run", &path("p.toml"), "--out", &path("out"), "--capture", capture]);
    run(&path("p.toml")).code(2).says("--capture would replace");
    run(&path("out/../p.toml")).code(2).says("--capture would replace");
    assert_eq!(std::fs::read_to_string(path("p.toml")).unwrap(), text);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(path("p.toml"), path("link.cq")).unwrap();
        run(&path("link.cq")).code(2).says("--capture would replace");
        std::os::unix::fs::symlink(path("nowhere"), path("other.cq")).unwrap();
        run(&path("other.cq")).code(1).says("a folder, link or device is there");
    }
    run(&path("c.cq")).code(0);
    run(&path("c.cq")).code(0);
}

#[cfg(unix)]
#[test]
fn a_capture_that_cannot_be_written_does_not_hide_why_the_run_failed() {
    let folder = folder();
    let word = "[buffers.word]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [4]\npage_size = 16\nlocation = \"l1\"\n";
    let text = format!("name = \"t\"\n{word}{}", kernel("prebuilt:spin", ", args = [\"word.addr\"]"));
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("program.toml"), text).unwrap();
    // The capture is longer than files may be.
    let args = ["run", &at("program.toml"), "--out", &at("out"), "--capture", &at("c.cq")];
    let ended =
        limited("ulimit -f 1", &[], &args).code(1).says("deadlock").says("spin").says("cannot write").says("c.cq");
    assert!(ended.stderr.find("deadlock") < ended.stderr.find("cannot write"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[cfg(unix)]
#[test]
fn a_capture_that_cannot_be_written_does_not_lose_the_outputs() {
    let folder = folder();
    let out = folder.path().join("out");
    let (ring, capture) = (example("ring"), folder.path().join("c.cq"));
    let args = ["run", ring.to_str().unwrap(), "--out", out.to_str().unwrap(), "--capture", capture.to_str().unwrap()];
    // The capture is longer than files may be, the output is not.
    let ended = limited("ulimit -f 2", &[], &args).code(1);
    assert_eq!(ended.stdout, "", "no report of a failed run");
    ended.says("cannot write").says("c.cq");
    assert_eq!(files(&out), ["total.npy"]);
}

#[test]
fn a_kernel_that_never_ends_is_a_named_deadlock_at_once() {
    for dispatch in ["fast", "slow"] {
        let folder = folder();
        let text = format!(
            "name = \"t\"\n[buffers.y]\nuse = \"output\"\ndtype = \"u32\"\nshape = [16]\npage_size = 64\n\
             [buffers.word]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [4]\npage_size = 16\nlocation = \"l1\"\n{}",
            kernel("prebuilt:spin", ", args = [\"word.addr\"]")
        );
        let ended = run_text(folder.path(), &text, &["--report", "json", "--dispatch", dispatch]).code(1);
        let report = report_of_failure(&ended, "failed", "deadlock");
        let error = &report["error"];
        assert!(error["cycle"].as_u64().unwrap() > 0 && error["programs"] == json!(["t"]), "{error}");
        let waiting = error["waiting"].as_array().unwrap();
        let spin =
            waiting.iter().find(|core| core["core"] == "brisc" && core["runs"].as_str().unwrap().contains("spin"));
        let spin = spin.unwrap_or_else(|| panic!("{error}"));
        assert!(spin["pc"].is_u64() && spin["words"][0]["address"].is_u64(), "{spin}");
        assert_eq!(spin["tiles"], json!([{"x": 1, "y": 2}, {"x": 1, "y": 3}]));
        ended.says("deadlock").says("spin").says("BRISC");
        assert_eq!(files(&folder.path().join("out")), [""; 0]);
    }
}

#[test]
fn a_fault_is_told_with_its_class_core_and_address() {
    let folder = folder();
    // The kernel waits for a word at an address where no core has memory.
    let text = format!("name = \"t\"\n{}", kernel("prebuilt:spin", ", args = [\"0xFFB80004\"]"));
    let ended = run_text(folder.path(), &text, &["--report", "json"]).code(1);
    let error = report_of_failure(&ended, "failed", "fault")["error"].clone();
    assert!(error["fault"].as_str().unwrap().chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{error}");
    assert!(error["what"].is_string() && error["cycle"].is_u64() && error["pc"].is_u64(), "{error}");
    assert_eq!((&error["core"], &error["tile"]["x"].is_u64()), (&json!("brisc"), &true), "{error}");
}

#[test]
fn what_is_refused_is_told_with_file_place_and_option() {
    let folder = folder();
    let json_of = |text: &str, more: &[&str]| {
        let ended = run_text(folder.path(), text, &[more, &["--report", "json"]].concat()).code(2);
        report_of_failure(&ended, "refused", "refused")["error"].clone()
    };
    let file = folder.path().join("program.toml").display().to_string();
    let place = json_of("name = \"t\"\nwrong = 1\nroles = []\n", &[]);
    assert_eq!((&place["file"], &place["line"], &place["column"]), (&json!(file), &json!(2), &json!(1)));
    let missing = json_of(&program(), &["--input", "x=/does/not/exist.npy"]);
    assert_eq!(missing["file"], "/does/not/exist.npy");
    let unknown =
        json_of(&program(), &["--input", &format!("z={}", repository().join("examples/increment/x.npy").display())]);
    assert_eq!((&unknown["option"], &unknown["input"]), (&json!("--input"), &json!("z")));
    let other = json_of(&program(), &["--profile"]);
    assert_eq!(other["option"], "--profile");
    let slow = json_of(&program(), &["--dispatch", "slow", "--core-timing"]);
    assert_eq!(slow["option"], "--core-timing");
    let slow = json_of(&program(), &["--dispatch", "slow", "--dispatch-layout", "dispatcher"]);
    assert_eq!(slow["option"], "--dispatch-layout");
}

#[test]
fn a_program_that_takes_too_long_is_ended() {
    let folder = folder();
    let text = format!("name = \"t\"\n{}", kernel("prebuilt:busy", ", args = [4000000000, 0x40000]"));
    let ended =
        run_text(folder.path(), &text, &["--max-cycles", "1000000", "--report", "json"]).code(1).says("1000000");
    let report = report_of_failure(&ended, "failed", "budget");
    assert_eq!(report["error"]["cycles"], 1_000_000);
    let busy = &report["error"]["busy"][0];
    assert!(busy["core"] == "brisc" && busy["pc"].is_u64() && busy["tiles"][0]["x"].is_u64(), "{report}");
}

#[test]
fn an_output_folder_that_cannot_be_made_or_written() {
    let folder = folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ring = example("ring");
    let inside = file.join("out");
    tilework(&["run", ring.to_str().unwrap(), "--out", inside.to_str().unwrap()])
        .code(1)
        .says("cannot make the folder");
    // A folder in the place of the output: nothing is left beside it.
    let out = folder.path().join("out");
    std::fs::create_dir_all(out.join("total.npy/full")).unwrap();
    tilework(&["run", ring.to_str().unwrap(), "--out", out.to_str().unwrap()])
        .code(1)
        .says("cannot write")
        .says("total.npy");
    assert_eq!(files(&out), ["total.npy"]);
}

#[test]
fn an_existing_output_survives_a_failed_run() {
    let folder = folder();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("y.npy"), "old").unwrap();
    run_text(folder.path(), &program(), &[]).code(2);
    assert_eq!(std::fs::read(out.join("y.npy")).unwrap(), b"old");
}

#[test]
fn a_program_file_of_the_repository_is_not_changed_by_running_it() {
    // The prebuilt kernels are part of the command: nothing is written beside the program.
    let before = files(&repository().join("examples/ring"));
    let out = folder();
    tilework(&["run", example("ring").to_str().unwrap(), "--out", out.path().to_str().unwrap()]).code(0);
    assert_eq!(files(&repository().join("examples/ring")), before);
}
