//! The card behind the entry points: configuration space, BARs, time, and what becomes of faults.
//!
//! A host's wrong access (no BAR there, a window that points nowhere) changes nothing; it is told
//! and answered with ones. A fault of a program stops the chip: it is told once with its class,
//! core, pc, address and cycle, and from then on reads answer with ones and the rest does nothing.

use crate::config::ConfigSpace;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tilework_abi::board::Board;
use tilework_abi::pci::config;
use tilework_sim::{Bug, Bugs, Chip, ChipConfig, ChipError, Coverage, HostBus};

/// Messages about the host's own accesses that are printed; a driver that polls a wrong address
/// must not fill a disk.
const MESSAGES: u32 = 100;

/// What the coprocessors of all cards since the library was loaded have executed, for
/// [`Card::exit`].
static EXECUTED: Mutex<Coverage> = Mutex::new(Coverage::new());

/// Prints a diagnostic. Standard error may be closed.
pub(crate) fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "tilework: {what}");
}

/// The documented bugs of the chip, less those that the environment leaves out.
fn bugs() -> Bugs {
    let text = std::env::var("TILEWORK_WITHOUT_BUGS").unwrap_or_default();
    text.split(',').filter(|name| !name.is_empty()).fold(Bugs::AS_CHIP, |bugs, name| match Bug::named(name) {
        Ok(bug) => bugs.without(bug),
        Err(error) => {
            say(&format!("TILEWORK_WITHOUT_BUGS: {error}. The chip has all bugs but the others that are named"));
            bugs
        }
    })
}

/// The number of threads that the environment asks for.
fn threads() -> Option<NonZeroUsize> {
    let text = std::env::var("TILEWORK_THREADS").ok()?;
    let threads = text.parse().ok();
    if threads.is_none() {
        say(&format!("TILEWORK_THREADS is {text:?}; a number from 1 was expected. All processors are used"));
    }
    threads
}

/// The card.
pub(crate) struct Card {
    chip: Chip,
    config: ConfigSpace,
    abort: bool,
    /// Where to write what the coprocessors executed.
    coverage: Option<PathBuf>,
    /// The chip's fault was told; and that it stays stopped.
    told_fault: bool,
    told_stopped: bool,
    messages: u32,
}

impl Card {
    /// A card just powered on.
    ///
    /// # Errors
    /// A board that cannot be built, as text.
    pub(crate) fn new(board: Board, bus: Option<Box<dyn HostBus>>) -> Result<Self, String> {
        let coverage = std::env::var_os("TILEWORK_COVERAGE").map(PathBuf::from);
        let counts = coverage.is_some();
        let config = ChipConfig { threads: threads(), bugs: bugs(), coverage: counts, ..ChipConfig::new(board) };
        let mut chip = Chip::new(config).map_err(|error| format!("the chip cannot be built: {error}"))?;
        if let Some(bus) = bus {
            chip.attach_host_bus(bus);
        }
        let abort = std::env::var_os("TILEWORK_ON_FAULT").is_some_and(|value| value == "abort");
        let config = ConfigSpace::new(board);
        Ok(Self { chip, config, abort, coverage, told_fault: false, told_stopped: false, messages: 0 })
    }

    /// Powers off: writes what the coprocessors of this card and those before executed, if that is
    /// wanted.
    pub(crate) fn exit(self) {
        let Some(path) = &self.coverage else { return };
        let mut coverage = EXECUTED.lock().unwrap_or_else(PoisonError::into_inner);
        coverage.merge(&self.chip.coverage());
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        let text = if is_json { coverage.json() } else { coverage.text() };
        if let Err(error) = std::fs::write(path, text) {
            say(&format!("TILEWORK_COVERAGE: cannot write {}: {error}", path.display()));
        }
    }

    /// True when the chip still runs; says otherwise, once.
    fn alive(&mut self) -> bool {
        if self.chip.fault().is_some() && !self.told_stopped {
            self.told_stopped = true;
            say(
                "the chip is stopped by the fault above; reads answer with ones, writes and clocks do nothing. libttsim_exit and libttsim_init start anew",
            );
        }
        self.chip.fault().is_none()
    }

    /// Tells what went wrong.
    fn failed(&mut self, call: &str, error: &ChipError) {
        if self.chip.fault().is_some() && !self.told_fault {
            self.told_fault = true;
            say(&format!("fault: {error}"));
        } else {
            self.complain(&format!("{call}: {error}"));
        }
        if self.abort {
            say("TILEWORK_ON_FAULT=abort: the process ends");
            std::process::abort();
        }
    }

    /// Tells about a wrong call, unless that was done too often.
    fn complain(&mut self, what: &str) {
        self.messages = self.messages.saturating_add(1);
        match self.messages {
            0..MESSAGES => say(what),
            MESSAGES => say(&format!("{what} (further messages of this kind are left out)")),
            _ => {}
        }
    }

    /// The word of configuration space; ones where no device is.
    pub(crate) fn config_read(&mut self, bus_device_function: u32, offset: u32) -> u32 {
        if bus_device_function != 0 || !self.config_place("libttsim_pci_config_rd32", offset) {
            return u32::MAX;
        }
        self.config.read(offset)
    }

    /// Writes a word of configuration space; nothing happens where no device is.
    pub(crate) fn config_write(&mut self, bus_device_function: u32, offset: u32, value: u32) {
        if bus_device_function == 0 && self.config_place("libttsim_pci_config_wr32", offset) {
            self.config.write(offset, value);
        }
    }

    fn config_place(&mut self, call: &str, offset: u32) -> bool {
        let good = offset.is_multiple_of(4) && offset < config::SIZE;
        if !good {
            self.complain(&format!(
                "{call}: offset {offset:#x}; a multiple of 4 below {:#x} was expected",
                config::SIZE
            ));
        }
        good
    }

    /// Reads the card's memory; `out` stays as it is when that is not possible.
    pub(crate) fn read(&mut self, paddr: u64, out: &mut [u8]) {
        if !self.alive() {
            return;
        }
        let Some((bar, offset)) = self.locate("libttsim_pci_mem_rd_bytes", paddr, out.len()) else { return };
        if let Err(error) = self.chip.bar_read(bar, offset, out) {
            out.fill(0xFF);
            self.failed("libttsim_pci_mem_rd_bytes", &error);
        }
    }

    /// Writes the card's memory.
    pub(crate) fn write(&mut self, paddr: u64, data: &[u8]) {
        if !self.alive() {
            return;
        }
        let Some((bar, offset)) = self.locate("libttsim_pci_mem_wr_bytes", paddr, data.len()) else { return };
        if let Err(error) = self.chip.bar_write(bar, offset, data) {
            self.failed("libttsim_pci_mem_wr_bytes", &error);
        }
    }

    fn locate(&mut self, call: &str, paddr: u64, len: usize) -> Option<(tilework_abi::tlb::Bar, u64)> {
        match self.config.locate(paddr) {
            Some((bar, offset, room)) if len as u64 <= room => Some((bar, offset)),
            _ => {
                self.complain(&format!("{call}: {len} bytes at {paddr:#x} lie in none of the card's BARs"));
                None
            }
        }
    }

    /// Lets cycles pass.
    #[inline]
    pub(crate) fn clock(&mut self, cycles: u32) {
        if !self.alive() {
            return;
        }
        if let Err(error) = self.chip.clock(u64::from(cycles)) {
            self.failed("libttsim_clock", &error);
        }
    }

    /// Tells that tiles are reached through the BARs.
    pub(crate) fn no_tile_access(&mut self, call: &str, x: u32, y: u32, addr: u64) {
        self.complain(&format!(
            "{call} at ({x}, {y}), address {addr:#x}: unsupported functionality on Blackhole, whose tiles are reached through the BARs"
        ));
    }
}
