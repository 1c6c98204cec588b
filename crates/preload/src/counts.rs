//! What the host and the card have moved: the file of `--counts`.
//!
//! Equal results alone do not prove that a program's data went over the card: a program may keep a
//! copy of its own. These numbers tell.

use crate::own::OwnCard;
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

/// Writes the file, with the sums over all cards; `%p` in its name is the number of the process.
pub(crate) fn write(cards: &mut [&mut OwnCard], path: OsString) {
    let path = path
        .into_string()
        .map_or_else(OsString::from, |text| OsString::from(text.replace("%p", &std::process::id().to_string())));
    const NAMES: [&str; 9] = [
        "cycles",
        "instructions",
        "bar_reads",
        "bar_bytes_read",
        "bar_writes",
        "bar_bytes_written",
        "host_memory_bytes_read_by_card",
        "host_memory_writes_by_card",
        "host_memory_bytes_written_by_card",
    ];
    let mut sums = [0; NAMES.len()];
    for card in cards {
        let (accesses, stats) = (card.accesses(), card.stats());
        let values = [
            stats.cycles,
            stats.instructions,
            accesses.reads,
            accesses.bytes_read,
            accesses.writes,
            accesses.bytes_written,
            card.bytes_from_host(),
            card.device_writes(),
            card.bytes_to_host(),
        ];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    let mut text = String::from("{\n");
    for (name, value) in NAMES.into_iter().zip(sums) {
        let _ = writeln!(text, "  \"{name}\": {value},");
    }
    text.truncate(text.trim_end_matches(",\n").len());
    text.push_str("\n}\n");
    if let Err(error) = std::fs::write(&path, text) {
        tell::say(&format!("--counts: cannot write {}: {error}", path.display()));
    }
}
