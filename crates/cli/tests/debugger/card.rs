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

#[test]
fn a_card_that_is_replayed_stops_where_gdb_wants_and_goes_back() {
    let folder = super::common::folder();
    let (bundle, out) = (folder.path().join("card.zip"), folder.path().join("out"));
    let own = env!("CARGO_BIN_EXE_tilework");
    let card = ["card", "--board", "p100", "--bundle", bundle.to_str().unwrap(), "--", own, "run"];
    let ring = super::example("ring");
    let run = [ring.to_str().unwrap(), "--out", out.to_str().unwrap(), "--chip", "/dev/tenstorrent/0"];
    super::common::tilework(&[&card[..], &run].concat()).code(0);
    let plain = super::common::tilework(&["replay", bundle.to_str().unwrap(), "--report", "json"]).code(0).json();

    let run = Debugged::replay(&bundle);
    let mut gdb = Client::connect(run.port);
    assert!(gdb.monitor("where").contains("cycle 0"), "{}", gdb.monitor("where"));
    let go = |gdb: &mut Client, cycle: u64, packet: &str| {
        gdb.monitor(&format!("goto {cycle}"));
        assert!(gdb.ask(packet).starts_with("T05"));
        let told = gdb.monitor("where");
        assert!(told.contains(&format!("cycle {cycle}")), "{told}");
    };
    go(&mut gdb, 40_000, "vCont;c");
    let before = gdb.monitor("l1 1-2 0 64");
    go(&mut gdb, 60_000, "vCont;c");
    go(&mut gdb, 40_000, "bc");
    assert_eq!(gdb.monitor("l1 1-2 0 64"), before);
    gdb.expect("D", "OK");
    let ended = run.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let again = ended.json();
    assert_eq!((&again["same"], &again["report"]["cycles"]), (&plain["same"], &plain["report"]["cycles"]));
    assert_eq!(again["same"], true, "{again}");
}
