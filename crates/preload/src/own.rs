//! A card of this process: the chip, what is counted and recorded of it, and the program's memory
//! as the device reaches it.

use crate::counts::Accesses;
use crate::record::Record;
use crate::standstill::{Standstill, Word};
use crate::{client, tell, watch};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tilework_abi::board::Board;
use tilework_abi::grid::Site;
use tilework_abi::tensix::L1_SIZE;
use tilework_abi::tlb::{Bar, COUNT_2M, REG_BYTES, REGS, REGS_END, SIZE_2M, Window, WindowSize};
use tilework_kmd::BusMap;
use tilework_kmd::record::{Entry, digest};
use tilework_pci_device::Card;
use tilework_sim::{ChipStats, HostBus};

/// The words that a wrong access is told with.
const ACCESS: &str = "an access of the program to a BAR";

/// The chip as the driver sees it.
pub(crate) struct OwnCard {
    card: Card,
    number: usize,
    board: Board,
    bus: BusMap,
    accesses: Accesses,
    moved: Arc<Moved>,
    record: Option<Arc<Record>>,
    standstill: Standstill,
    /// It does, and the process is to end.
    pub stands_still: bool,
    /// What the program has written into the registers of windows of 2 MiB.
    aims: [u8; AIMS],
}

/// Bytes of those registers.
const AIMS: usize = COUNT_2M as usize * REG_BYTES as usize;

/// Bytes of host memory that the device has read and written.
#[derive(Default)]
struct Moved {
    read: AtomicU64,
    written: AtomicU64,
}

impl OwnCard {
    pub(crate) fn new(number: usize, board: Board, bus: BusMap, record: Option<Arc<Record>>) -> Self {
        let moved = Arc::<Moved>::default();
        let host = Box::new(HostMemory(bus.clone(), Arc::clone(&moved), record.clone()));
        let mut card = Card::numbered(board, Some(host), number).unwrap_or_else(|error| {
            tell::say(&error);
            tell::end()
        });
        card.end_by(tell::end);
        Self {
            card,
            number,
            board,
            bus,
            accesses: Accesses::default(),
            moved,
            record,
            standstill: Standstill::new(),
            stands_still: false,
            aims: [0; AIMS],
        }
    }
    /// The program has read a word and found `value`. True if the process is to end.
    pub(crate) fn looked(&mut self, word: Word, value: u64, quiet: bool) -> bool {
        let quiet = quiet && self.card.chip().fault().is_none();
        self.standstill.looked(word, value, quiet) && self.standstill.tell(self.number, self.card.chip())
    }
    /// Accesses of the program so far.
    pub(crate) fn accesses(&self) -> Accesses {
        self.accesses
    }
    /// How often the program has touched the card.
    pub(crate) fn touched(&self) -> u64 {
        self.accesses.reads + self.accesses.writes
    }
    /// The chip's own counts.
    pub(crate) fn stats(&mut self) -> ChipStats {
        self.card.chip().stats()
    }
    /// Bytes of host memory that the device has read.
    pub(crate) fn bytes_from_host(&self) -> u64 {
        self.moved.read.load(Ordering::Relaxed)
    }
    /// Bytes of host memory that the device has written.
    pub(crate) fn bytes_to_host(&self) -> u64 {
        self.moved.written.load(Ordering::Relaxed)
    }
    /// Whether `len` bytes at an offset of a BAR are L1 of a Tensix tile.
    pub(crate) fn is_l1(&self, bar: Bar, offset: u64, len: usize) -> bool {
        let id = offset / SIZE_2M;
        if bar != Bar::Bar0 || id >= u64::from(COUNT_2M) {
            return false;
        }
        let at = id as usize * REG_BYTES as usize;
        let word = |i: usize| {
            let bytes = &self.aims[at + 4 * i..][..4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        let window = Window::decode([word(0), word(1), word(2)], WindowSize::Small);
        let address = window.address.saturating_add(offset % SIZE_2M);
        let tensix = matches!(Site::at(window.end.x, window.end.y), Some(Site::Tensix));
        tensix && window.noc == 0 && !window.multicast && address.saturating_add(len as u64) <= u64::from(L1_SIZE)
    }
    /// Lets time pass.
    pub(crate) fn clock(&mut self, cycles: u32) {
        self.record(&Entry::Clock(cycles.into()));
        self.card.clock(cycles);
    }
    /// Adds to the record, if there is one.
    #[inline]
    fn record(&self, entry: &Entry<&[u8]>) {
        if let Some(record) = &self.record {
            record.add(entry);
        }
    }
    /// Whether nothing happens on the chip by itself.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.card.chip().is_quiet()
    }
    /// Writes of the device to the program's memory so far.
    pub(crate) fn device_writes(&mut self) -> u64 {
        self.card.chip().device_writes()
    }
    /// The process ends: what was found on the chip is told, and files are written.
    pub(crate) fn finish(&mut self) {
        self.card.end();
        let (cycle, instructions) = (self.card.chip().now(), self.stats().instructions);
        self.record(&Entry::End { cycle, instructions });
    }
}

impl tilework_kmd::Card for OwnCard {
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        self.accesses.reads += 1;
        self.accesses.bytes_read += out.len() as u64;
        self.record(&Entry::Read(bar, offset, out.len() as u64));
        self.card.bar_read(ACCESS, bar, offset, out);
        if self.record.is_some() {
            let cycle = self.card.chip().now();
            self.record(&Entry::Answer { digest: digest(out), cycle });
        }
        let mut word = [0; 8];
        match word.get_mut(..out.len()) {
            Some(part) => {
                part.copy_from_slice(out);
                let quiet = self.is_quiet();
                self.stands_still |= self.looked(Word::Bar(bar, offset), u64::from_le_bytes(word), quiet);
            }
            None => self.standstill.forget(),
        }
    }
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.accesses.writes += 1;
        self.accesses.bytes_written += data.len() as u64;
        // A program may aim a window before each look.
        match offset.checked_sub(REGS).filter(|_| bar == Bar::Bar0 && offset < REGS_END) {
            Some(at) => {
                let at = (at as usize).min(AIMS);
                let part = data.len().min(AIMS - at);
                self.aims[at..at + part].copy_from_slice(&data[..part]);
            }
            None => self.standstill.forget(),
        }
        self.record(&Entry::Write(bar, offset, data));
        self.card.bar_write(ACCESS, bar, offset, data);
    }
    fn reset(&mut self) {
        self.card.end();
        self.record(&Entry::Reset);
        let (accesses, moved) = (self.accesses, Arc::clone(&self.moved));
        *self = Self::new(self.number, self.board, self.bus.clone(), self.record.take());
        // What the program has done goes on, on the same chip after its reset.
        self.accesses = accesses;
        for (now, before) in [(&self.moved.read, &moved.read), (&self.moved.written, &moved.written)] {
            now.store(before.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// The program's memory as the device reaches it.
struct HostMemory(BusMap, Arc<Moved>, Option<Arc<Record>>);

impl HostBus for HostMemory {
    fn read(&self, addr: u64, out: &mut [u8]) {
        self.1.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        let found = self.0.find(addr, out.len(), false);
        if let Some(at) = found {
            watch::lend(at as usize, out.len());
        }
        if !found.is_some_and(|at| client::load(at as usize, out)) {
            out.fill(0xFF);
            tell::say(&format!(
                "the device reads {} bytes at bus address {addr:#x}, where nothing is pinned",
                out.len()
            ));
        }
        if let Some(record) = &self.2 {
            record.add(&Entry::Fetched(addr, out));
        }
    }
    fn write(&self, addr: u64, data: &[u8]) {
        self.1.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        let found = self.0.find(addr, data.len(), true).map(|at| at as usize);
        if let Some(at) = found {
            watch::device_writes(at, data.len());
        }
        if !found.is_some_and(|at| client::store(at, data)) {
            let what = "where nothing that it may write is pinned";
            tell::say(&format!("the device writes {} bytes at bus address {addr:#x}, {what}", data.len()));
        }
        if let Some(at) = found {
            watch::device_wrote(at, data.len());
        }
        if let Some(record) = &self.2 {
            record.add(&Entry::Stored { address: addr, len: data.len() as u64, digest: digest(data) });
        }
    }
}
