//! The session of docs/debugger.md with the real gdb.

use super::common::{folder, tilework};
use super::rsp::Debugged;
use std::path::Path;
use std::process::Command;

/// Debian's gdb for many processors, and the one of the cross tools.
pub(crate) const GDBS: [&str; 2] = ["gdb-multiarch", "riscv64-unknown-elf-gdb"];

/// The commands of the session; `$PORT` is the port.
const SESSION: &str = "\
set pagination off
set confirm off
set width 0
set print thread-events off
target remote localhost:$PORT
sharedlibrary
break compute.c:24
continue
info locals
p factor
p pages_done
delete
watch pages_done
continue
monitor where
stepi
p/x $pc
stepi
reverse-stepi
p/x $pc
reverse-continue
p pages_done
delete
monitor watch dram 0 0x0 0x1000000
continue
monitor unwatch
monitor step-chip 100
continue
continue
";

pub(crate) fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The folder of kernels in C, built.
pub(crate) fn built(folder: &Path) -> Option<std::path::PathBuf> {
    if !starts("make") || !starts("riscv64-unknown-elf-gcc") {
        println!("skipped: no make or no riscv64-unknown-elf-gcc");
        return None;
    }
    let sdk = folder.join("sdk");
    tilework(&["sdk", sdk.to_str().unwrap()]).code(0);
    let made = Command::new("make").arg("-C").arg(sdk.join("c")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(sdk.join("c"))
}

/// That texts come one after the other.
#[track_caller]
pub(crate) fn in_order(all: &str, texts: &[&str]) {
    let mut rest = all;
    for text in texts {
        let Some((_, behind)) = rest.split_once(text) else { panic!("\"{text}\" is not in:\n{rest}\nof:\n{all}") };
        rest = behind;
    }
}

#[test]
fn gdb_goes_through_a_kernel_in_c_forwards_and_backwards() {
    let Some(gdb) = GDBS.into_iter().find(|gdb| starts(gdb)) else {
        return println!("skipped: none of {GDBS:?} starts");
    };
    let folder = folder();
    let Some(c) = built(folder.path()) else { return };
    let (out, input) = (folder.path().join("out"), format!("x={}", c.join("x.npy").display()));
    let run = Debugged::of(&c.join("program.toml"), &out, &["--input", &input]);
    let script = folder.path().join("session.gdb");
    std::fs::write(&script, SESSION.replace("$PORT", &run.port.to_string())).unwrap();
    let session = Command::new(gdb).current_dir(&c).args(["-nx", "-batch", "-x"]).arg(&script).output().unwrap();
    let said = String::from_utf8_lossy(&session.stdout).into_owned();
    let all = format!("{said}\n{}", String::from_utf8_lossy(&session.stderr));
    let told = String::from_utf8_lossy(&session.stderr).into_owned();
    in_order(
        &said,
        &[
            "Breakpoint 1 at",
            "hit Breakpoint 1, kernel_main () at compute.c:24",
            "pages = ",
            "$1 = 3",
            "$2 = 0",
            "Old value = 0\nNew value = 1",
            "$3 = 0x",
            "$4 = 0x",
            "Old value = 1\nNew value = 0",
            "$5 = 0",
            "SIGTRAP",
            "writer.c",
            "exited normally",
        ],
    );
    // What the debugger prints itself, batch mode puts there.
    in_order(
        &told,
        &[
            "TRISC1: at a breakpoint",
            "written by tile 1-3 TRISC1",
            "written by tile 1-3 TRISC1",
            "watching",
            "DRAM bank 0: 1024 bytes at",
            "written by NIU",
            "BRISC at 0x",
            "continue stops at cycle",
        ],
    );
    // One step forward and back is where it was.
    let value = |name: &str| said.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned)).unwrap();
    assert_eq!(value("$3 = "), value("$4 = "), "{all}");
    let ended = run.end().code(0);
    let plain = folder.path().join("plain");
    let program = c.join("program.toml").display().to_string();
    let args = ["run", &program, "--input", &input, "--out", plain.to_str().unwrap(), "--report", "json"];
    let without = tilework(&args).code(0).json();
    assert_eq!(ended.json()["cycles"], without["cycles"]);
    for name in ["y.npy", "cores.npy"] {
        assert!(std::fs::read(plain.join(name)).unwrap() == std::fs::read(out.join(name)).unwrap(), "{name}");
    }
}
