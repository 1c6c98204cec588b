//! `tilework run --gdb`: a program under a debugger, and that it is the same program.

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod card;
use crate::common;
mod found;
mod mi;
mod rsp;
mod session;
mod watches;

use common::{Ended, example, example_input, files, folder, run_example};
use rsp::{Client, Debugged, thread_of, words};
use serde_json::Value;
use std::path::Path;

/// All that a run may not owe to the debugger.
fn measured(report: &Value) -> Vec<Value> {
    let keys = ["cycles", "program_cycles", "launch_cycles", "pcie_bytes", "noc_bytes", "records", "commands"];
    keys.iter().map(|key| report[*key].clone()).collect()
}

/// That a run under the debugger has the cycles, counts and bytes of one without.
#[track_caller]
fn is_as_without(name: &str, debugged: &Ended, out: &Path) {
    let plain = folder();
    let without = run_example(name, plain.path(), &["--report", "json"]).code(0).json();
    assert_eq!(measured(&debugged.json()), measured(&without));
    assert_eq!(debugged.json()["session"]["cycles"], without["session"]["cycles"]);
    let names = files(plain.path());
    assert!(!names.is_empty());
    for name in names {
        assert!(std::fs::read(plain.path().join(&name)).unwrap() == std::fs::read(out.join(&name)).unwrap(), "{name}");
    }
}

/// The address of the program's kernel, by the list of libraries.
fn kernel_base(client: &mut Client, name: &str) -> u32 {
    let xml = client.libraries();
    let (_, at) = xml.split_once(&format!("{name}@")).unwrap_or_else(|| panic!("no {name}: {xml}"));
    u32::from_str_radix(at.split('.').next().unwrap(), 16).unwrap()
}

#[test]
fn breakpoints_steps_and_watchpoints_change_neither_cycles_nor_bytes() {
    let out = folder();
    let run = Debugged::start("increment", out.path(), &[]);
    let mut gdb = Client::connect(run.port);
    let first = thread_of(&gdb.ask("?"));
    gdb.select(&first);
    let base = kernel_base(&mut gdb, "increment");
    assert_eq!(gdb.pc(), base, "the first stop is at the first kernel's first instruction");
    assert!(gdb.monitor("where").contains("increment"), "{}", gdb.printed);

    // Step by step: each executes one instruction of this core.
    let mut path = vec![(gdb.pc(), gdb.registers())];
    for _ in 0..40 {
        assert_eq!(thread_of(&gdb.ask(&format!("vCont;s:{first};c"))), first);
        path.push((gdb.pc(), gdb.registers()));
    }
    let moved = path.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    assert!(moved >= 39, "{path:x?}");

    // A breakpoint where all cores come by; the first to arrive stops.
    let at = path[3].0;
    gdb.expect(&format!("Z0,{at:x},4"), "OK");
    let stop = gdb.ask("vCont;c");
    assert!(stop.contains("swbreak"), "{stop}");
    let second = thread_of(&stop);
    assert_ne!(second, first);
    gdb.select(&second);
    assert_eq!(gdb.pc(), at);
    assert!(gdb.printed.contains("at a breakpoint"), "{}", gdb.printed);
    // More cores arrive in the same cycles, and none is lost.
    let mut seen = std::collections::BTreeSet::from([first, second]);
    for _ in 0..10 {
        assert!(seen.insert(thread_of(&gdb.ask("vCont;c"))));
    }
    gdb.expect(&format!("z0,{at:x},4"), "OK");

    // The kernel's L1 is written by an NIU, for a core that asked: the debugger names it.
    let tile = gdb.monitor("where");
    let tile = tile.split("tile ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let slots = path.iter().flat_map(|(_, registers)| registers.clone()).max().unwrap();
    assert!(slots > 0);
    gdb.monitor(&format!("watch l1 {tile} 0x0 0x20"));
    assert!(gdb.monitor("watch dram 0 0x0 0x10000 w").starts_with("watching"));
    gdb.monitor("unwatch");
    gdb.send("vCont;c");
    assert_eq!(gdb.receive(), "W00");
    let ended = run.end().code(0);
    is_as_without("increment", &ended, out.path());
}

#[test]
fn going_back_shows_what_was_there() {
    let out = folder();
    let run = Debugged::start("increment", out.path(), &[]);
    let mut gdb = Client::connect(run.port);
    let thread = thread_of(&gdb.ask("?"));
    gdb.select(&thread);
    let mut path = vec![gdb.registers()];
    for _ in 0..12 {
        gdb.ask(&format!("vCont;s:{thread};c"));
        path.push(gdb.registers());
    }
    for steps in (9..12).rev() {
        assert_eq!(thread_of(&gdb.ask("bs")), thread);
        assert_eq!(gdb.registers(), path[steps], "after {} steps back", 12 - steps);
    }
    // Forward again, the same way.
    gdb.ask(&format!("vCont;s:{thread};c"));
    assert_eq!(gdb.registers(), path[10]);
    // Back to a breakpoint on the way, and from there to the beginning.
    gdb.expect(&format!("Z0,{:x},4", path[4][32]), "OK");
    // Others come by there, too.
    let mut stop = gdb.ask("bc");
    while thread_of(&stop) != thread {
        assert!(stop.contains("swbreak"), "{stop}");
        stop = gdb.ask("bc");
    }
    assert_eq!(gdb.registers(), path[4]);
    let mut begin = gdb.ask("bc");
    while begin.contains("swbreak") {
        begin = gdb.ask("bc");
    }
    assert!(begin.contains("replaylog:begin"), "{begin}");
    assert!(gdb.monitor("where").starts_with("cycle 0:"));
    gdb.expect(&format!("z0,{:x},4", path[4][32]), "OK");
    gdb.send("vCont;c");
    let mut end = gdb.receive();
    // Code is found again on the way.
    while end.contains("library") {
        gdb.send("vCont;c");
        end = gdb.receive();
    }
    assert_eq!(end, "W00");
    is_as_without("increment", &run.end().code(0), out.path());
}

/// What can be seen of the chip where it stands: the cores of the first tiles, what a tile and a
/// bank hold, a coprocessor, and who waits for what.
fn seen(gdb: &mut Client) -> Vec<String> {
    let mut seen: Vec<String> = ["threads 1-2", "threads 1-3", "l1 1-2 0x0 0x8000", "l1 1-3 0x10000 0x8000"]
        .into_iter()
        .chain(["dram 0 0x0 0x4000", "coprocessor 1-2 config 0 40", "waiting"])
        .map(|command| gdb.monitor(command))
        .collect();
    for thread in 1..=10 {
        gdb.select(&format!("{thread:x}"));
        seen.push(format!("{:x?}", gdb.registers()));
    }
    seen
}

/// The cycle at which the chip stands.
fn cycle(gdb: &mut Client) -> u64 {
    let place = gdb.monitor("where");
    place.split([' ', ':']).nth(1).and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{place}"))
}

/// Lets the chip go to a cycle, forwards or back.
fn go(gdb: &mut Client, to: u64, how: &str) {
    gdb.monitor(&format!("goto {to}"));
    let mut stop = gdb.ask(how);
    while stop.contains("library") {
        gdb.monitor(&format!("goto {to}"));
        stop = gdb.ask(how);
    }
    assert_eq!(cycle(gdb), to, "{stop}");
}

#[test]
fn going_back_begins_at_checkpoints_and_shows_what_a_run_from_the_beginning_shows() {
    let out = folder();
    let run = Debugged::start("pipeline", out.path(), &[]);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    let first = cycle(&mut gdb);
    let places: Vec<u64> = (1..=4).map(|n| first + 1_500 * n).collect();
    for &place in &places {
        go(&mut gdb, place, "vCont;c");
    }
    let kept = gdb.monitor("checkpoints");
    assert!(kept.starts_with("checkpoints at cycles 0, "), "{kept}");
    // Another run, which does not go back.
    let elsewhere = folder();
    let other = Debugged::start("pipeline", elsewhere.path(), &[]);
    let mut straight = Client::connect(other.port);
    straight.ask("?");
    let expected: Vec<Vec<String>> = places
        .iter()
        .map(|&place| {
            go(&mut straight, place, "vCont;c");
            seen(&mut straight)
        })
        .collect();
    straight.expect("D", "OK");
    is_as_without("pipeline", &other.end().code(0), elsewhere.path());
    for (&place, expected) in places.iter().zip(&expected).rev().skip(1) {
        go(&mut gdb, place, "bc");
        assert_eq!(seen(&mut gdb), *expected, "at cycle {place}");
        let kept = gdb.monitor("checkpoints");
        let base = kept.lines().find_map(|line| line.strip_prefix("repeated from cycle "));
        let base: u64 = base.unwrap_or_else(|| panic!("{kept}")).parse().unwrap();
        assert!(base > 0 && base < place, "{kept}");
    }
    gdb.expect("D", "OK");
    is_as_without("pipeline", &run.end().code(0), out.path());
}

#[test]
fn accesses_to_watched_memory_are_met_backwards_in_the_other_order() {
    let out = folder();
    let run = Debugged::start("increment", out.path(), &[]);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    assert!(gdb.monitor("watch dram 0 0x0 0x10000 w").starts_with("watching"));
    let mut met = Vec::new();
    for _ in 0..6 {
        gdb.printed.clear();
        gdb.ask("vCont;c");
        met.push(gdb.printed.clone());
    }
    assert!(met.iter().all(|line| line.contains("DRAM bank 0: ") && line.contains(" written by NIU")), "{met:?}");
    let mut back = Vec::new();
    for _ in 1..met.len() {
        gdb.printed.clear();
        gdb.ask("bc");
        back.push(gdb.printed.clone());
    }
    back.reverse();
    // The last one first: the chip stands before it then.
    assert_eq!(back, met[1..]);
    gdb.monitor("unwatch");
    gdb.expect("D", "OK");
    is_as_without("increment", &run.end().code(0), out.path());
}

#[test]
fn memory_registers_and_the_coprocessor_can_be_read_and_changed() {
    let out = folder();
    let run = Debugged::start("increment", out.path(), &[]);
    let mut gdb = Client::connect(run.port);
    let thread = thread_of(&gdb.ask("?"));
    gdb.select(&thread);
    let pc = gdb.pc();
    let code = words(&gdb.ask(&format!("m{pc:x},10")));
    assert!(code.len() == 4 && code.iter().all(|&word| word & 3 == 3), "instructions: {code:x?}");
    // Local RAM: the stack of this core.
    let sp = gdb.registers()[2];
    assert!(sp >= 0xFFB0_0000, "{sp:#x}");
    gdb.expect(&format!("M{:x},4:78563412", sp - 64), "OK");
    assert_eq!(words(&gdb.ask(&format!("m{:x},4", sp - 64))), [0x1234_5678]);
    assert!(gdb.ask("mffffff00,4").starts_with('E'), "no memory is there");
    for (part, shows) in [
        ("dst 0 2", "row 1 ="),
        ("dst32 0 1", "row 0 ="),
        ("srca", "row 0"),
        ("lregs 0 16", "LReg[15] = 0 0.0"),
        ("config 0 4", "config[3] ="),
        ("semaphores", "semaphore 7 ="),
        ("rwcs", "T2: RWCs Dst 0"),
    ] {
        let shown = gdb.monitor(&format!("coprocessor {part}"));
        assert!(
            shows == "LReg[15] = 0 0.0" && shown.contains("LReg[15] =") || shown.contains(shows),
            "{part}: {shown}"
        );
    }
    for wrong in ["coprocessor nothing", "coprocessor 0-0 dst", "dram 0", "l1 zero", "goto", "nonsense"] {
        let answer = gdb.monitor(wrong);
        assert!(answer.contains("usage") || answer.contains("no such command"), "{wrong}: {answer}");
    }
    assert!(gdb.monitor("symbols").contains("add-symbol-file target:/tilework/brisc/increment"), "{}", gdb.printed);
    assert!(gdb.monitor("threads").lines().count() > 100);
    // The whole chip by cycles.
    let cycle = |text: &str| text.split([' ', ':']).nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap();
    let before = cycle(&gdb.monitor("where"));
    gdb.monitor("step-chip 100");
    gdb.ask("vCont;c");
    assert_eq!(cycle(&gdb.monitor("where")), before + 100);
    gdb.expect("D", "OK");
    run.end().code(0);
}

/// Two cores that wait for a word that nobody writes.
const HANG: &str = "\
name = \"t\"\n[buffers.word]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [4]\npage_size = 16\nlocation = \"l1\"\n\
[[roles]]\nname = \"r\"\ncores = [[1, 2], [1, 3]]\n[roles.brisc]\nelf = \"prebuilt:spin\"\nargs = [\"word.addr\"]\n";

#[test]
fn the_run_of_a_bundle_is_repeated_under_the_debugger() {
    let folder = folder();
    let bundle = folder.path().join("hang.zip");
    common::run_text(folder.path(), HANG, &["--bundle", bundle.to_str().unwrap()]).code(1).says("deadlock");
    let run = Debugged::replay(&bundle);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    gdb.printed.clear();
    let stop = gdb.ask("vCont;c");
    let told = std::mem::take(&mut gdb.printed);
    assert!(stop.starts_with('T') && told.contains("deadlock at cycle"), "{stop} {told}");
    assert!(gdb.monitor("waiting").contains("tile 1-2 BRISC"), "{}", gdb.printed);
    // Its run has found it without being asked, and was not stopped by it.
    assert!(gdb.monitor("findings").contains("l1-unwritten-read: reads 4 bytes"));
    let hung = cycle(&mut gdb);
    // Back to before it hung, and on to the same end.
    go(&mut gdb, hung - 200, "bc");
    let stop = gdb.ask("vCont;c");
    assert!(stop.starts_with('T') && gdb.printed.contains(told.trim()), "{stop} {}", gdb.printed);
    assert_eq!(cycle(&mut gdb), hung);
    gdb.expect("D", "OK");
    let ended = run.end().code(0).json();
    assert_eq!((&ended["same"], &ended["end"]), (&Value::Bool(true), &Value::from("deadlock")), "{ended:#}");
}

#[test]
fn a_run_ends_well_without_its_debugger() {
    // Detached: to the end.
    let out = folder();
    let run = Debugged::start("increment", out.path(), &[]);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    assert!(std::net::TcpStream::connect(("127.0.0.1", run.port)).is_err(), "a second client is refused");
    gdb.expect("D", "OK");
    is_as_without("increment", &run.end().code(0), out.path());
    // Gone without a word: the same.
    let out = folder();
    let run = Debugged::start("increment", out.path(), &[]);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    drop(gdb);
    is_as_without("increment", &run.end().code(0), out.path());
    // Killed: a failed run that says so.
    let out = folder();
    let run = Debugged::start("increment", out.path(), &[]);
    let mut gdb = Client::connect(run.port);
    gdb.ask("?");
    gdb.send("k");
    let ended = run.end().code(1);
    assert!(ended.stderr.contains("gdb has ended the run"), "{}", ended.stderr);
    assert!(!out.path().join("y.npy").exists());
}

#[test]
fn a_port_that_cannot_be_had_is_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let out = folder();
    run_example("increment", out.path(), &["--gdb", &port]).code(2).says("--gdb");
    run_example("increment", out.path(), &["--gdb", "0", "--trace", "t.txt"]).code(2).says("needs a run without --gdb");
    run_example("increment", out.path(), &["--gdb", "0", "--allow", "l1-null"])
        .code(2)
        .says("has no effect with --gdb");
    run_example("increment", out.path(), &["--gdb", "70000"]).code(2).says("--gdb");
    run_example("increment", out.path(), &["--gdb", "0", "--chip", "none.so"]).code(2).says("needs the built-in chip");
}
