//! `tilework simdir`: the card that a folder's library is, as `tilework run --chip` sees it.

use crate::common;
use common::{example, folder, library, tilework};

#[test]
fn the_librarys_board_is_the_one_that_was_asked_for() {
    let Some(library) = library() else { return };
    let folder = folder();
    let file = folder.path().join("lab.toml");
    std::fs::write(&file, "name = 'lab-7'\nbase = 'p300'\nharvested.dram_banks = [6]\n").unwrap();
    let file = file.to_str().unwrap();
    for (board, workers) in [("p100", 118), ("p150", 138), ("p300", 118), (file, 118)] {
        let sim = folder.path().join("sim");
        let sim = sim.to_str().unwrap();
        tilework(&["simdir", sim, "--board", board, "--library", library.to_str().unwrap()]).code(0);
        let chip = format!("{sim}/libtilework.so");
        let out = folder.path().join("out");
        let ring = example("ring");
        let args = ["run", ring.to_str().unwrap(), "--out", out.to_str().unwrap(), "--chip", &chip, "--report", "json"];
        let ended = tilework(&[&args[..], &["--board", board]].concat()).code(0);
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(report["board"], if board == file { "lab-7" } else { board });
        assert_eq!(report["outputs"]["total"]["shape"][0], workers, "{board}");
    }
}
