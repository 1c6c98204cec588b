//! DRAM: buffers, what nobody has written, and pages that two tiles write.

use super::buffers::Found;
use super::observer::{CheckObserver, PADDING};
use super::report::Actor;
use super::writers::Writers;
use super::written::{Shadow, Sparse};
use crate::catalogue::{Row, memory as rows};
use crate::protocol::Issued;
use std::sync::Arc;
use tilework_driver::{BankNote, BufferNote, LaunchNote};
use tilework_sim::{Cycle, PacketEvent, RequestKind};

/// A bank of DRAM.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dram {
    written: Sparse,
    writers: Writers,
}

/// `n bytes`, or `1 byte`.
pub(super) fn bytes(n: u64) -> String {
    format!("{n} byte{}", if n == 1 { "" } else { "s" })
}

/// How words say that an access leaves a buffer:
/// `12 bytes past the end of "x" in DRAM bank 2, ...`.
pub(super) fn past(note: &BufferNote, by: u64, place: &str) -> String {
    let BufferNote { name, pages, page_size, .. } = note;
    let past = bytes(by);
    format!("{past} past the last page that buffer {name:?} ({pages} pages of {page_size} bytes) has in {place}")
}

impl CheckObserver {
    /// Words and row for an access that is not within a buffer of `bank`.
    pub(super) fn outside(
        &self,
        bank: BankNote,
        (addr, len): (u64, u64),
        launch: u64,
        rows: [&'static Row; 2],
    ) -> Result<std::ops::Range<u64>, (&'static Row, String)> {
        let place = || match bank {
            BankNote::Dram(bank) => format!("DRAM bank {bank}"),
            BankNote::Core(tile) => format!("L1 of {tile}"),
            BankNote::Host => "host memory".into(),
        };
        match self.buffers.find(bank, addr, len, launch) {
            Found::Within(range) => Ok(range),
            Found::Past(note, by) => Err((rows[0], past(&note, by, &place()))),
            Found::Nobody => {
                Err((rows[1], format!("{} at {addr:#x} in {} that are of no buffer", bytes(len), place())))
            }
        }
    }

    /// A request of a kernel to a DRAM bank.
    pub(super) fn reach_dram(&mut self, issued: &Issued, agent: Actor, bank: u8) {
        let (addr, len) = (issued.request.remote_addr, issued.request.len);
        let verb = if issued.request.kind == RequestKind::Read { "reads" } else { "writes" };
        let kinds = [&rows::DRAM_PAST_BUFFER, &rows::DRAM_UNOWNED];
        if let Err((row, what)) = self.outside(BankNote::Dram(bank), (addr, len), issued.launch.number, kinds) {
            self.reports.report(row, agent, None, || (format!("{verb} {what}"), None));
        }
    }

    /// A write has come to a DRAM bank.
    pub(super) fn wrote_dram(&mut self, bank: u8, packet: &PacketEvent, issued: Option<&Issued>, at: Cycle) {
        let dram = self.dram.entry(bank).or_default();
        dram.written.mark(packet.addr, packet.len.into(), true);
        let Some(issued) = issued.filter(|_| self.stranger.is_none()) else { return };
        let by = Actor { at, ..issued.actor.by(issued.agent()) };
        let other = dram.writers.write(packet.addr, packet.len.into(), issued.launch.number, by.place(None));
        // Whoever was told of something by another tile may come after it.
        if let Some(place) = other.filter(|_| self.tiles.get(by.tile).is_alone()) {
            self.reports.report(&rows::PAGE_WRITTEN_TWICE, by, None, || {
                let (len, addr) = (packet.len, packet.addr);
                let what =
                    format!("writes {len} bytes at {addr:#x} in DRAM bank {bank} that {} has written", place.tile);
                (what, Some(place))
            });
        }
    }

    /// A read of a kernel has come to a DRAM bank.
    pub(super) fn read_dram(&mut self, bank: u8, packet: &PacketEvent, issued: &Issued, at: Cycle) {
        let (addr, len) = (packet.addr, u64::from(packet.len));
        let gap = match self.dram.get(&bank) {
            Some(dram) => dram.written.gap(addr, len, u64::from(PADDING).min(len)),
            None => Some((addr, len)),
        };
        if let Some((from, gap)) = gap {
            let actor = Actor { at, ..issued.actor.by(issued.agent()) };
            let launch: &Arc<LaunchNote> = &issued.launch;
            let name = self.name_at(BankNote::Dram(bank), from, launch.number);
            self.reports.report(&rows::DRAM_UNWRITTEN_READ, actor, None, || {
                (format!("reads {} at {from:#x} in DRAM bank {bank}{name} that nobody has written", bytes(gap)), None)
            });
        }
    }

    fn name_at(&self, bank: BankNote, addr: u64, launch: u64) -> String {
        self.buffers.name(bank, addr, launch).map_or_else(String::new, |name| format!(", of buffer {name:?},"))
    }

    /// What a new buffer's bytes hold is not the buffer's. While programs run that may be of an
    /// older buffer there, nothing is forgotten.
    pub(super) fn forget_written(&mut self, buffer: &BufferNote) {
        if !self.is_idle() {
            return;
        }
        let (start, len) = (buffer.taken.start, buffer.taken.end - buffer.taken.start);
        for bank in &buffer.banks {
            match *bank {
                BankNote::Dram(bank) => self.dram.entry(bank).or_default().written.mark(start, len, false),
                BankNote::Core(tile) => self.tiles.get(tile).l1.mark(start, len, false),
                BankNote::Host => {}
            }
        }
    }
}
