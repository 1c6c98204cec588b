//! Buffers by where they lie, each for the launches that may use it.
//!
//! The host allocates and frees while programs are still in the queue. So a buffer is there for the
//! launches from its allocation to its end, whenever they run.

use std::ops::Range;
use std::sync::Arc;
use tilework_driver::{BankNote, BufferNote};
use tilework_sim::Spot;

/// A buffer and the launches that may use it.
#[derive(Clone, Debug)]
struct Entry {
    note: Arc<BufferNote>,
    /// Its pages in the bank.
    runs: Vec<Range<u64>>,
    /// Numbers of launches.
    alive: Range<u64>,
}

/// All buffers of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    /// By banks (`place`).
    banks: Vec<Vec<Entry>>,
}

/// Where a bank is in a table of all: the host, DRAM, the tiles in their order.
fn place(bank: BankNote) -> usize {
    match bank {
        BankNote::Host => 0,
        BankNote::Dram(bank) => 1 + usize::from(bank),
        BankNote::Core(xy) => 1 + (1 << u8::BITS) + Spot::Tensix(xy).rank() as usize,
    }
}

/// How an access lies to the buffers of its bank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// Within the pages of a buffer: the bytes of these.
    Within(Range<u64>),
    /// It ends so many bytes behind the last page that the buffer has in this bank.
    Past(Arc<BufferNote>, u64),
    /// In no buffer.
    Nobody,
}

impl Buffers {
    /// A buffer, for launches from number `launch` on.
    pub(crate) fn add(&mut self, note: &Arc<BufferNote>, launch: u64) {
        let places = note.banks.iter().map(|&bank| place(bank));
        self.banks.resize_with(places.clone().max().map_or(0, |last| last + 1).max(self.banks.len()), Vec::new);
        let is_new = |entries: &[Entry]| entries.last().is_none_or(|entry| !Arc::ptr_eq(&entry.note, note));
        for at in places {
            if !is_new(&self.banks[at]) {
                continue;
            }
            let entry = Entry { note: Arc::clone(note), runs: Vec::new(), alive: launch..u64::MAX };
            self.banks[at].push(entry);
        }
        for run in &note.runs {
            let of_bank = self.banks.get_mut(place(run.bank)).and_then(|entries| entries.last_mut());
            if let Some(entry) = of_bank.filter(|entry| Arc::ptr_eq(&entry.note, note)) {
                entry.runs.push(run.range.clone());
            }
        }
    }

    /// The buffer is not there for launches from number `launch` on. Buffers that no launch from
    /// number `oldest` on may use are forgotten.
    pub(crate) fn free(&mut self, id: u64, launch: u64, oldest: u64) {
        for entries in &mut self.banks {
            for entry in entries.iter_mut().filter(|entry| entry.note.id == id && entry.alive.end == u64::MAX) {
                entry.alive.end = launch;
            }
            entries.retain(|entry| entry.alive.end > oldest);
        }
    }

    /// The name of the buffer whose page has the byte at `addr`.
    pub(crate) fn name(&self, bank: BankNote, addr: u64, launch: u64) -> Option<&str> {
        let mut alive = self.banks.get(place(bank))?.iter().filter(|entry| entry.alive.contains(&launch));
        let found = alive.find(|entry| entry.runs.iter().any(|run| run.contains(&addr)));
        found.map(|entry| entry.note.name.as_str())
    }

    /// How the `len` bytes at `addr` of `bank` lie to what launch number `launch` may use.
    pub(crate) fn find(&self, bank: BankNote, addr: u64, len: u64, launch: u64) -> Found {
        let end = addr.saturating_add(len);
        let alive = || self.banks.get(place(bank)).into_iter().flatten().filter(|entry| entry.alive.contains(&launch));
        let mut past: Option<(Arc<BufferNote>, u64)> = None;
        for entry in alive() {
            for run in entry.runs.iter().filter(|run| run.contains(&addr)) {
                if end <= run.end {
                    return Found::Within(run.clone());
                }
                past = Some((Arc::clone(&entry.note), end - run.end));
            }
        }
        // Behind the last page: in a row of the buffer that has no page in this bank, or
        // right behind.
        let behind = || {
            alive().find_map(|Entry { note, runs, .. }| {
                let last = runs.iter().map(|run| run.end).max();
                let last = last.unwrap_or(note.taken.start);
                let room = note.taken.end.max(last.saturating_add(u64::from(note.distance)));
                (last <= addr && addr < room).then(|| (Arc::clone(note), end - last))
            })
        };
        match past.or_else(behind) {
            Some((note, bytes)) => Found::Past(note, bytes),
            None => Found::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_driver::{MemoryKind, RunNote};

    /// Three pages of 64 bytes over two banks: the second bank has one, with room for two.
    fn buffer(id: u64, at: u64) -> Arc<BufferNote> {
        let run = |bank, pages: u64, first_page| RunNote {
            bank: BankNote::Dram(bank),
            range: at..at + 64 * pages,
            first_page,
            stride: 2,
        };
        Arc::new(BufferNote {
            id,
            name: format!("b{id}"),
            kind: MemoryKind::Dram,
            page_size: 64,
            distance: 64,
            pages: 3,
            taken: at..at + 128,
            banks: vec![BankNote::Dram(0), BankNote::Dram(1)],
            runs: vec![run(0, 2, 0), run(1, 1, 1)],
        })
    }

    #[test]
    fn pages_and_what_lies_behind_them() {
        let mut buffers = Buffers::default();
        let x = buffer(1, 0x1000);
        buffers.add(&x, 0);
        let find = |bank, addr, len| buffers.find(BankNote::Dram(bank), addr, len, 0);
        assert_eq!(find(0, 0x1000, 128), Found::Within(0x1000..0x1080));
        assert_eq!(find(0, 0x1040, 128), Found::Past(x.clone(), 64));
        assert_eq!(find(1, 0x1040, 64), Found::Past(x.clone(), 64), "a row without a page there");
        assert_eq!(find(0, 0x1080, 64), Found::Past(x.clone(), 64), "right behind");
        assert_eq!(find(0, 0x10C0, 64), Found::Nobody);
        assert_eq!(find(0, 0xFC0, 64), Found::Nobody);
        assert_eq!(find(2, 0x1000, 64), Found::Nobody);
    }

    #[test]
    fn a_freed_buffer_is_there_for_the_launches_before() {
        let mut buffers = Buffers::default();
        buffers.add(&buffer(1, 0x1000), 2);
        let find = |buffers: &Buffers, launch| buffers.find(BankNote::Dram(0), 0x1000, 64, launch);
        assert_eq!(find(&buffers, 1), Found::Nobody, "before it was allocated");
        buffers.free(1, 4, 0);
        assert!(matches!(find(&buffers, 3), Found::Within(_)));
        assert_eq!(find(&buffers, 4), Found::Nobody);
        buffers.free(9, 5, 4);
        assert_eq!(find(&buffers, 3), Found::Nobody, "no launch before 4 is left");
    }
}
