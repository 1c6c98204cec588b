//! Clients that nobody here wrote, on the shared library: scripts over the bare interface, third-party firmware, the public user-mode driver.
//!
//! The scripts lie in `../shared/harness` beside the checkout, or where `TILEWORK_HARNESS` says; the firmware where `TILEWORK_BH_FIRMWARE`
//! says; Python is `python3.11`, or what `TILEWORK_PYTHON` says. What is not there is left out, and the test says so.

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
    let output = client.env_remove("TILEWORK_ON_FAULT").env_remove("TILEWORK_BOARD").output().unwrap();
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

#[test]
fn the_public_user_mode_driver_reads_and_writes_tiles() {
    match script("umd_smoke.py").and_then(|script| Ok((script, python("tt_umd")?))) {
        Ok((script, mut client)) => {
            let folder = tempfile::tempdir().unwrap();
            let copy = folder.path().join("libtilework.so");
            std::fs::copy(library(), &copy).unwrap();
            std::fs::write(folder.path().join("soc_descriptor.yaml"), tilework_driver::soc_descriptor(Board::P150))
                .unwrap();
            client.arg(script).arg(&copy);
            let said = run(client);
            assert!(said.contains("all ok") && !said.contains("FAIL"), "{said}");
        }
        Err(why) => left_out("umd_smoke.py", &why),
    }
}
