//! What the host and the card have moved: the file of `--counts`.
//!
//! Equal results alone do not prove that a program's data went over the card: a program may keep a
//! copy of its own. These numbers tell.

use crate::state::OwnCard;
use crate::tell;
use std::ffi::OsString;
use std::fmt::Write;

/// Accesses of the program to the card's BARs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Accesses {
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
}

/// Writes the file; `%p` in its name is the number of the process.
pub(crate) fn write(card: &mut OwnCard, path: OsString) {
    let path = path
        .into_string()
        .map_or_else(OsString::from, |text| OsString::from(text.replace("%p", &std::process::id().to_string())));
    let (accesses, stats) = (card.accesses(), card.stats());
    let mut text = String::from("{\n");
    for (name, value) in [
        ("cycles", stats.cycles),
        ("instructions", stats.instructions),
        ("bar_reads", accesses.reads),
        ("bar_bytes_read", accesses.bytes_read),
        ("bar_writes", accesses.writes),
        ("bar_bytes_written", accesses.bytes_written),
        ("host_memory_bytes_read_by_card", card.bytes_from_host()),
        ("host_memory_writes_by_card", card.device_writes()),
        ("host_memory_bytes_written_by_card", card.bytes_to_host()),
    ] {
        let _ = writeln!(text, "  \"{name}\": {value},");
    }
    text.truncate(text.trim_end_matches(",\n").len());
    text.push_str("\n}\n");
    if let Err(error) = std::fs::write(&path, text) {
        tell::say(&format!("--counts: cannot write {}: {error}", path.display()));
    }
}
