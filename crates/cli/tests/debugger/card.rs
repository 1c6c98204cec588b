//! The card of a program that knows only silicon, under gdb.

use super::rsp::{Client, Debugged};

/// A shell opens the device: the driver reads the chip.
const OPENS: &str = "exec 3<>/dev/tenstorrent/0; echo opened";

#[test]
fn the_chip_of_a_card_stops_within_an_access_and_cannot_go_back() {
    let run = Debugged::card(OPENS);
    let (mut gdb, offered) = Client::connect_to(run.port);
    assert!(offered.contains("vContSupported+") && !offered.contains("Reverse"), "{offered}");
    assert!(gdb.ask("?").starts_with('T'));
    assert!(gdb.monitor("where").contains("cycle 0"), "{}", gdb.monitor("where"));
    assert!(gdb.monitor("step-chip 500").contains("500"));
    assert!(gdb.ask("vCont;c").starts_with("T05"));
    assert!(gdb.monitor("where").contains("cycle 500"), "{}", gdb.monitor("where"));
    let refused = gdb.monitor("goto 100");
    assert!(refused.contains("cannot be run again"), "{refused}");
    assert_eq!(gdb.ask("bs"), "", "an unknown packet");
    gdb.expect("D", "OK");
    let ended = run.end();
    assert_eq!((ended.code, ended.stdout.trim()), (0, "opened"), "{}", ended.stderr);
}

#[test]
fn killing_the_chip_ends_the_program() {
    let run = Debugged::card(OPENS);
    let (mut gdb, _) = Client::connect_to(run.port);
    gdb.expect("vKill;1", "OK");
    let ended = run.end();
    assert_eq!(ended.code, 101, "{}", ended.stderr);
    assert!(ended.stderr.contains("the debugger has ended the run"), "{}", ended.stderr);
}
