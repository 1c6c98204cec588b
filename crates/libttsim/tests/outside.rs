//! Clients that nobody here wrote, on the shared library: scripts over the bare interface,
//! third-party firmware, the public user-mode driver.
//!
//! The scripts lie in `../shared/harness` beside the checkout, or where `TILEWORK_HARNESS` says;
//! the firmware where `TILEWORK_BH_FIRMWARE` says; Python is `python3.11`, or what
//! `TILEWORK_PYTHON` says. What is not there is left out, and the test says so.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{library, text};
use tilework_abi::board::Board;

/// A test's reason to be left out.
fn left_out(name: &str, why: &str) {
    println!("{name} is left out: {why}");
}

/// The harness's script of that name.
fn script(name: &str) -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let beside = root.join("../shared/harness");
    let folder = std::env::var_os("TILEWORK_HARNESS").map_or(beside, PathBuf::from);
    let script = folder.join(name);
    if script.is_file() {
        Ok(script)
    } else {
        Err(format!("no {} (TILEWORK_HARNESS names the folder)", script.display()))
    }
}

/// A Python that has `module`.
fn python(module: &str) -> Result<Command, String> {
    let name = std::env::var_os("TILEWORK_PYTHON").unwrap_or_else(|| "python3.11".into());
    let imports = Command::new(&name).args(["-c", &format!("import {module}")]).output();
    match imports {
        Ok(output) if output.status.success() => Ok(Command::new(name)),
        Ok(_) => Err(format!("{} has no {module} (TILEWORK_PYTHON names another)", name.display())),
        Err(error) => Err(format!("{} does not start: {error} (TILEWORK_PYTHON names another)", name.display())),
    }
}

/// Runs a client to its end and gives what it printed.
fn run(mut client: Command) -> String {
    let output = client
        .env_remove("TILEWORK_ON_FAULT")
        .env_remove("TILEWORK_BOARD")
        .env_remove("TILEWORK_WITHOUT_BUGS")
        .output()
        .unwrap();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{client:?}: {}\n{said}\n{errors}", output.status);
    assert!(!errors.contains("tilework:"), "the library complained:\n{errors}");
    said
}

#[test]
fn the_smoke_test_over_the_bare_interface_passes() {
    let parts = script("smoke.py").and_then(|script| Ok((script, python("ctypes")?)));
    match parts {
        Ok((script, mut client)) => {
            client.arg(script).arg(library());
            let said = run(client);
            assert!(said.contains("all ok") && !said.contains("FAIL"), "{said}");
        }
        Err(why) => left_out("smoke.py", &why),
    }
}

#[test]
fn third_party_firmware_boots_on_every_tile() {
    let firmware = std::env::var_os("TILEWORK_BH_FIRMWARE").ok_or("TILEWORK_BH_FIRMWARE names no folder".to_owned());
    let parts = firmware.and_then(|firmware| Ok((firmware, script("bh_boot.py")?, python("ctypes")?)));
    match parts {
        Ok((firmware, script, mut client)) => {
            client.arg(script).arg(library()).arg("--fw").arg(firmware).args(["--tiles", "140"]);
            let said = run(client);
            assert!(said.contains("RUN_MSG_DONE"), "{said}");
        }
        Err(why) => left_out("bh_boot.py", &why),
    }
}

/// A folder with the library and the descriptor of `board`.
fn simulator(board: Board) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(library(), folder.path().join("libtilework.so")).unwrap();
    std::fs::write(folder.path().join("soc_descriptor.yaml"), tilework_driver::soc_descriptor(board)).unwrap();
    folder
}

#[test]
fn the_public_user_mode_driver_reads_and_writes_tiles() {
    match script("umd_smoke.py").and_then(|script| Ok((script, python("tt_umd")?))) {
        Ok((script, mut client)) => {
            let folder = simulator(Board::P150);
            client.arg(script).arg(folder.path().join("libtilework.so"));
            let said = run(client);
            assert!(said.contains("all ok") && !said.contains("FAIL"), "{said}");
        }
        Err(why) => left_out("umd_smoke.py", &why),
    }
}

/// Opens the board `argv[2]` behind the library `argv[1]`, and prints what tt-umd makes of its
/// telemetry, what its ARC answers to messages (test, busy, a clock, idle, one that no firmware
/// knows), and which tiles' NIUs do not name the place that the descriptor has them at.
const ASK_THE_ARC: &str = r#"
import os, sys
os.environ["TILEWORK_BOARD"] = sys.argv[2]
import tt_umd
from tt_umd import CoreType as T
device = tt_umd.create_simulation_tt_device(sys.argv[1])
device.init_tt_device()
info = device.get_chip_info()
masks = info.harvesting_masks
print(tt_umd.board_type_to_string(info.board_type), info.noc_translation_enabled, masks.tensix_harvesting_mask,
      masks.dram_harvesting_mask, masks.eth_harvesting_mask, masks.pcie_harvesting_mask, masks.l2cpu_harvesting_mask)
ask = lambda code, *arguments: list(device.arc_msg(code, True, list(arguments), 1000))
print(ask(0x90, 41), device.get_clock(), ask(0x52), device.get_clock(), ask(0x34), ask(0x54), device.get_clock())
try:
    print("answered", ask(0x11))
except Exception as error:
    print("not recognized" in str(error))
soc = device.get_soc_descriptor()
high = 0xFFFFFFFFFF000000
bases = {T.TENSIX: 0xFFB20000, T.DRAM: 0xFFB20000, T.ROUTER_ONLY: 0xFF000000, T.ARC: high, T.PCIE: high, T.SECURITY: high,
         T.L2CPU: high}
for kind, base in bases.items():
    for core in soc.get_cores(kind, tt_umd.CoordSystem.NOC0):
        to = soc.translate_coord_to(core, tt_umd.CoordSystem.TRANSLATED)
        node = device.noc_read32(to.x, to.y, base + 0x44)
        if (node & 63, node >> 6 & 63) != (core.x, core.y):
            print("elsewhere", core, hex(node))
"#;

#[test]
fn the_public_user_mode_driver_understands_the_arc() {
    // P100: columns 15 and 16 are bits 12 and 13 by position; bank 7; no Ethernet; PCIe tile 1
    // idle. P150: Ethernet channels 5 and 8. P300: the masks of chip 0 in tt-umd's own description
    // of such a card.
    let expected = [
        (Board::P100, "p100 True 12288 128 16383 2 0"),
        (Board::P150, "p150 True 0 0 288 2 0"),
        (Board::P300, "p300 True 8320 0 288 2 0"),
    ];
    for (board, units) in expected {
        match python("tt_umd") {
            Ok(mut client) => {
                let folder = simulator(board);
                client.args(["-c", ASK_THE_ARC]).arg(folder.path().join("libtilework.so")).arg(board.name());
                let said = run(client);
                let lines: Vec<_> = said.lines().filter(|line| !line.contains("| info")).collect();
                let messages = "[0, 42, 1] 800 [0, 0, 0] 1350 [0, 1350, 3] [0, 0, 0] 800";
                assert_eq!(lines, [units, messages, "True"], "{said}");
            }
            Err(why) => left_out("asking the ARC", &why),
        }
    }
}
