//! The descriptor that we write, read by the public user-mode driver.
//!
//! Needs a Python with the package `tt-umd` (`python3.11`, or what `TILEWORK_PYTHON` says); says so and does nothing where there is none.

use std::process::Command;
use tilework_abi::board::Board;
use tilework_driver::soc_descriptor;

/// Prints what differs between the driver's own table of a whole Blackhole and the descriptor in `argv[1]`, field by field.
const COMPARE: &str = r#"
import sys, tt_umd
def plain(v):
    return [plain(i) for i in v] if isinstance(v, list) else (v.x, v.y) if hasattr(v, "x") else v
own, ours = tt_umd.SocArchDescriptor(tt_umd.ARCH.BLACKHOLE), tt_umd.SocArchDescriptor(sys.argv[1])
for field in ("grid_size", "tensix_cores", "dram_cores", "eth_cores", "firmware_cores", "pcie_cores", "router_cores",
              "security_cores", "l2cpu_cores", "worker_l1_size", "noc0_x_to_noc1_x", "noc0_y_to_noc1_y"):
    a, b = plain(getattr(own, field)), plain(getattr(ours, field))
    if field in ("router_cores", "l2cpu_cores"):
        a, b = sorted(a), sorted(b)
    if a != b:
        print(field, len(a), len(b), all(i in a for i in b))
"#;

fn python() -> Option<String> {
    let python = std::env::var("TILEWORK_PYTHON").unwrap_or_else(|_| "python3.11".into());
    let found = Command::new(&python).args(["-c", "import tt_umd"]).output().is_ok_and(|out| out.status.success());
    if !found {
        println!("left out: {python} has no tt_umd (TILEWORK_PYTHON names another)");
    }
    found.then_some(python)
}

/// What differs from the whole chip.
fn differences(python: &str, board: Board) -> String {
    let file = std::env::temp_dir().join(format!("tilework-soc-{}-{}.yaml", board.name(), std::process::id()));
    std::fs::write(&file, soc_descriptor(board)).unwrap();
    let out = Command::new(python).args(["-c", COMPARE]).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_public_driver_reads_our_descriptor_as_its_own_tables() {
    let Some(python) = python() else { return };
    for board in Board::ALL {
        assert_eq!(differences(&python, board), "eth_cores 14 0 True\n", "no Ethernet tiles, all else the same");
    }
}
