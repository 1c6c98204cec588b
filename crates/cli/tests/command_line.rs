//! Help texts, versions and the board picture.

use crate::common;
use common::tilework;

#[test]
fn help_explains_every_command_with_examples() {
    let help = tilework(&["--help"]).code(0).stdout;
    for part in [
        "Usage: tilework <COMMAND>",
        "run ",
        "board ",
        "cq ",
        "Exit codes: 0 done; 1 the program failed",
        "2 wrong use",
    ] {
        assert!(help.contains(part), "{part}:\n{help}");
    }
    let run = tilework(&["run", "--help"]).code(0).stdout;
    for part in [
        "--input <NAME=FILE>",
        "--engine <ENGINE>",
        "--out <DIR>",
        "--board <BOARD>",
        "--without-bug <BUG>",
        "--dispatch <DISPATCH>",
        "--report <FORM>",
        "--capture <FILE>",
        "--core-timing",
        "--firmware <DIR>",
        "--max-cycles <N>",
        "--threads <N>",
        "p100 unless given",
        "tilework run examples/increment/program.toml --input x=examples/increment/x.npy --out out",
        "docs/program.md",
    ] {
        assert!(run.contains(part), "{part}:\n{run}");
    }
    assert!(tilework(&["cq", "decode", "--help"]).code(0).stdout.contains("stops at the first bad byte"));
    assert!(tilework(&["--version"]).code(0).stdout.starts_with("tilework 0.1.0"));
}

/// The rows of the grid: their cells by column.
fn grid(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().skip_while(|l| !l.contains("y\\x")).skip(1).take(12);
    rows.map(|l| l.split_whitespace().skip(1).collect()).collect()
}

#[test]
fn the_picture_of_a_p100_shows_its_tiles() {
    let text = tilework(&["board"]).code(0).stdout;
    assert_eq!(text, tilework(&["board", "p100"]).code(0).stdout, "p100 is the default");
    assert!(
        text.starts_with("p100: 118 workers and 2 dispatch cores in 12 columns, 7 DRAM banks of 4 GiB, 1350 MHz"),
        "{text}"
    );
    let grid = grid(&text);
    assert!(grid.len() == 12 && grid.iter().all(|row| row.len() == 17), "{text}");
    assert_eq!(grid.iter().flatten().filter(|c| **c == "w").count(), 118);
    assert_eq!((grid[2][14], grid[3][14], grid[2][15]), ("P", "D", "-"));
    assert_eq!((grid[0][2], grid[0][8]), ("pc", "ar"));
    for bank in 0..7 {
        assert_eq!(grid.iter().flatten().filter(|c| **c == format!("d{bank}")).count(), 3, "ports of bank {bank}");
    }
    let gone = "ports of the harvested bank, all Ethernet tiles, the idle PCIe tile";
    assert_eq!(grid.iter().flatten().filter(|c| **c == "--").count(), 3 + 14 + 1, "{gone}");
}

#[test]
fn the_picture_of_a_p150_shows_the_whole_chip() {
    let text = tilework(&["board", "p150"]).code(0).stdout;
    assert!(text.starts_with("p150: 138 workers and 2 dispatch cores in 14 columns, 8 DRAM banks"), "{text}");
    let grid = grid(&text);
    assert_eq!(grid.iter().flatten().filter(|c| **c == "w").count(), 138);
    assert_eq!((grid[2][16], grid[3][16]), ("P", "D"));
    assert!(!grid.iter().skip(2).flatten().any(|c| c.starts_with('-')));
    assert_eq!((grid[1][1], grid[1][14], grid[3][8], grid[2][8], grid[0][11]), ("e", "--", "l2", "se", "--"));
}

#[test]
fn the_memory_maps_have_the_addresses_of_the_documents() {
    let text = tilework(&["board", "p100"]).code(0).stdout;
    for line in [
        "0x00000370  0x00000394        36  9 go messages",
        "0x00037000  0x00180000   1347584  data: circular buffers and L1 buffers",
        "0x00019840  0x0001a43c      3068  prefetch queue: record sizes, 2 bytes each",
        "0x0001a000  0x0009a000    524288  dispatch buffer: 128 pages in 4 blocks",
        "0x000082b0  0x00008300        80  kernel configuration: 4 semaphores",
        "0x00008300  0x000112b0     36784  kernel configuration: kernel text",
        "0x00019790  0x000197a0        16  status of cq_prefetch: ",
        "0x000197a0  0x000197b0        16  status of cq_dispatch_subordinate: ",
        "0x000196f0  0x000196f4         4  last event of queue 0",
        "0x00000100  0x04000100  67108864  issue region",
        "Pinned host region of 134217728 bytes",
        "(17, 14)       (17, 13)",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
}

#[test]
fn the_devices_are_the_boards_with_their_tiles() {
    let text = tilework(&["list", "devices"]).code(0).stdout;
    let rows: Vec<Vec<&str>> = text.lines().skip(1).take(3).map(|line| line.split_whitespace().collect()).collect();
    let memory = |banks, bytes| [banks, "banks,", bytes, "GiB", "1350", "MHz", "simulated"];
    assert_eq!(
        rows[0],
        [&["p100", "1", "120", "1-7,10-14", "2-11", "118", "116", "2"][..], &memory("7", "28")].concat(),
        "{text}"
    );
    assert_eq!(
        rows[1],
        [&["p150", "1", "140", "1-7,10-16", "2-11", "138", "136", "2"][..], &memory("8", "32")].concat(),
        "{text}"
    );
    assert_eq!(rows[2][..2], ["p300", "2"], "{text}");
    let json = tilework(&["list", "devices", "--report", "json"]).code(0).stdout;
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&report["kind"], &report["command"]), (&"devices".into(), &"list devices".into()));
    assert_eq!(report["devices"][1]["workers"], 138);
    assert_eq!(report["devices"][0]["tensix_columns"].as_array().unwrap().len(), 12);
    assert_eq!(report["devices"][0]["tensix_rows"], serde_json::json!([2, 11]));
    assert_eq!(report["devices"][0]["dram_bytes"], 7u64 * (4 << 30));
    tilework(&["list"]).code(2);
}
