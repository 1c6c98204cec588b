//! Watchpoints of the real gdb on registers and L1, with who made the access; that on local RAM and
//! DRAM are in the session of docs/debugger.md.

use super::common::folder;
use super::rsp::Debugged;
use super::session::{GDBS, built, in_order, starts};
use std::process::Command;
use tilework_abi::cb;
use tilework_abi::l1::WORKER;

/// `$REGISTER` is the counter of pages received of circular buffer 0, `$L1` where circular buffers
/// are.
const SESSION: &str = "\
set pagination off
set confirm off
set width 0
target remote localhost:$PORT
sharedlibrary
break compute.c:24
continue
delete
awatch *(unsigned *) $REGISTER
continue
delete
watch *(unsigned *) $L1
monitor watch l1 1-3 $L1 0x2000 w
continue
info threads
monitor unwatch
delete
stepi
detach
";

#[test]
fn gdb_stops_at_accesses_to_registers_and_l1_and_names_who_made_them() {
    let Some(gdb) = GDBS.into_iter().find(|gdb| starts(gdb)) else {
        return println!("skipped: none of {GDBS:?} starts");
    };
    let folder = folder();
    let Some(c) = built(folder.path()) else { return };
    let (out, input) = (folder.path().join("out"), format!("x={}", c.join("x.npy").display()));
    let run = Debugged::of(&c.join("program.toml"), &out, &["--input", &input]);
    let register = format!("{:#x}", cb::received_addr(WORKER.cb_stream, 0));
    let l1 = format!("{:#x}", WORKER.data.get());
    let script = SESSION.replace("$PORT", &run.port.to_string()).replace("$REGISTER", &register).replace("$L1", &l1);
    let file = folder.path().join("watches.gdb");
    std::fs::write(&file, script).unwrap();
    let session = Command::new(gdb).current_dir(&c).args(["-nx", "-batch", "-x"]).arg(&file).output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&session.stdout), String::from_utf8_lossy(&session.stderr));
    in_order(&said, &["hit Breakpoint 1", "Hardware access (read/write) watchpoint 2", "SIGTRAP", "TRISC1"]);
    // The register is that of the tile, and its own cores use it; the core writes a page in L1.
    let line = |part: &str| told.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {told}"));
    let of_register = line(&format!("4 bytes at {register} "));
    assert!(of_register.contains("tile (1,3): ") && of_register.contains(" by tile 1-3 "), "{of_register}");
    let of_l1 = line(" written by tile 1-3 TRISC1 at 0x");
    assert!(of_l1.contains("tile (1,3): 4 bytes at 0x3"), "{of_l1}");
    run.end().code(0);
}
