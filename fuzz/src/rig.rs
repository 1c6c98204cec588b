//! A chip under test, with the invariants of every call.

use tilework_abi::board::Board;
use tilework_abi::noc::NocXy;
use tilework_abi::tlb::{self, Bar, Ordering, Window, WindowSize};
use tilework_sim::{Chip, ChipConfig, ChipError, Cycle};

/// Every host call ends within this many cycles: far more than any queue of packets needs.
const CALL_CYCLES: Cycle = 10_000_000;

/// The chip, and how it failed.
pub(crate) struct Rig {
    chip: Chip,
    /// The failure, as text, that every later call must repeat.
    failed: Option<String>,
}

impl Rig {
    /// A P150, just powered on.
    pub(crate) fn new(parking: bool) -> Self {
        let chip =
            Chip::new(ChipConfig { parking, ..ChipConfig::new(Board::P150) }).expect("the board's tables are sound");
        Self { chip, failed: None }
    }

    /// The failure so far.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// The host's time.
    pub(crate) fn now(&self) -> Cycle {
        self.chip.now()
    }

    /// Reads a BAR; all ones if the chip refuses.
    pub(crate) fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        out.fill(0xFF);
        self.call(|chip| chip.bar_read(bar, offset, out));
    }

    /// Writes a BAR.
    pub(crate) fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.call(|chip| chip.bar_write(bar, offset, data));
    }

    /// Lets cycles pass.
    pub(crate) fn run(&mut self, cycles: Cycle) {
        self.call(|chip| chip.run(cycles));
    }

    /// Makes small window 0 show `address` of `tile` in strict order; returns the offset of that
    /// address in BAR0.
    pub(crate) fn map(&mut self, tile: NocXy, address: u64) -> u64 {
        let offset = address % tlb::SIZE_2M;
        let window = Window { ordering: Some(Ordering::Strict), ..Window::unicast(tile, address - offset) };
        for (word, at) in window.encode(WindowSize::Small).into_iter().zip((0..).step_by(4)) {
            self.write(Bar::Bar0, tlb::REGS + at, &word.to_le_bytes());
        }
        offset
    }

    /// Writes bytes of a tile.
    pub(crate) fn tile_write(&mut self, tile: NocXy, address: u64, data: &[u8]) {
        let offset = self.map(tile, address);
        self.write(Bar::Bar0, offset, data);
    }

    /// Writes a word of a tile.
    pub(crate) fn tile_word(&mut self, tile: NocXy, address: u32, word: u32) {
        self.tile_write(tile, address.into(), &word.to_le_bytes());
    }

    /// Reads bytes of a tile.
    pub(crate) fn tile_read(&mut self, tile: NocXy, address: u64, len: usize) -> Vec<u8> {
        let offset = self.map(tile, address);
        let mut out = vec![0; len];
        self.read(Bar::Bar0, offset, &mut out);
        out
    }

    fn call(&mut self, what: impl FnOnce(&mut Chip) -> Result<(), ChipError>) {
        let before = self.chip.now();
        let was_poisoned = self.chip.fault().cloned();
        let result = what(&mut self.chip);
        assert!(self.chip.now() >= before, "time went back");
        assert!(self.chip.now() - before < CALL_CYCLES, "a call took {} cycles", self.chip.now() - before);
        match (result, was_poisoned) {
            (Ok(()), None) => {}
            (Ok(()), Some(fault)) => panic!("a call went well on a chip stopped by: {fault}"),
            (Err(ChipError::Fault(fault)), before) => {
                // Every fault says what happened and where to read about it.
                assert!(!fault.what.is_empty() && !fault.read.is_empty(), "a fault without words: {fault:?}");
                assert!(before.is_none_or(|before| before == fault), "the chip's fault changed to {fault}");
                self.failed.get_or_insert_with(|| fault.to_string());
            }
            // A host read whose response waits for a stalled device; the host would see a time-out.
            (Err(error @ ChipError::Deadlock { .. }), _) => {
                self.failed.get_or_insert_with(|| error.to_string());
            }
            (Err(error), _) => panic!("not an answer to a host access: {error}"),
        }
    }
}
