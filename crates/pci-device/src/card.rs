//! The card: configuration space, BARs, time, and what becomes of faults.
//!
//! A host's wrong access (no BAR there, a window that points nowhere, an address that its tile does
//! not have) changes nothing; it is told and answered with ones, and the chip continues. A fault of
//! a program stops the chip: it is told once with its class, core, pc, address and cycle, and from
//! then on reads answer with ones and the rest does nothing. A host that polls on is ended after
//! some seconds, with the fault as its last words.
//!
//! The crate `libttsim` has one behind its entry points, `preload` some of them in the process of a
//! program that takes them for silicon.

use crate::config::ConfigSpace;
use crate::environment::{Wanted, writable};
use crate::host::Host;
use crate::looking::Looking;
use crate::messages::{Kind, say, say_last};
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilework_abi::board::Board;
use tilework_abi::pci::config;
use tilework_abi::tlb::Bar;
use tilework_sim::{Bug, Bugs, Chip, ChipConfig, ChipError, Coverage, HostBus};

/// What the coprocessors of all cards since the library was loaded have executed, for
/// [`Card::exit`].
static EXECUTED: Mutex<Coverage> = Mutex::new(Coverage::new());

/// The documented bugs of the chip, less those that the environment leaves out.
fn bugs() -> Bugs {
    let text = std::env::var("TILEWORK_WITHOUT_BUGS").unwrap_or_default();
    text.split(',').filter(|name| !name.is_empty()).fold(Bugs::AS_CHIP, |bugs, name| match Bug::named(name) {
        Ok(bug) => bugs.without(bug),
        Err(error) => {
            let what = format!("TILEWORK_WITHOUT_BUGS: {error}. The chip has all bugs but the others that are named");
            say(Kind::Environment, &what);
            bugs
        }
    })
}

/// The number of threads that the environment asks for.
fn threads() -> Option<NonZeroUsize> {
    let text = std::env::var("TILEWORK_THREADS").ok()?;
    let threads = text.parse().ok();
    if threads.is_none() {
        let what = format!("TILEWORK_THREADS is {text:?}; a number from 1 was expected. All processors are used");
        say(Kind::Environment, &what);
    }
    threads
}

/// The port at which the first card waits for gdb.
fn gdb_port(number: usize) -> Option<u16> {
    let text = std::env::var("TILEWORK_GDB").ok().filter(|_| number == 0)?;
    let port = text.parse().ok();
    if port.is_none() {
        let what = format!("TILEWORK_GDB is {text:?}; a port was expected, or 0 for any. There is no debugger");
        say(Kind::Environment, &what);
    }
    port
}

/// What becomes of a host that goes on after a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OnFault {
    /// It gets ones; if it polls for [`PATIENCE`], the process ends.
    Patience,
    /// The process ends at the first fault or wrong access.
    Abort,
    /// It gets ones for ever.
    Ones,
    /// The process ends at the first fault of a program; wrong accesses get ones.
    Ends,
}

impl OnFault {
    /// What the environment asks for.
    fn chosen() -> Self {
        let Some(word) = std::env::var_os("TILEWORK_ON_FAULT") else { return Self::Patience };
        match word.to_str() {
            Some("abort") => Self::Abort,
            Some("ones") => Self::Ones,
            _ => {
                say(Kind::Environment, &format!("TILEWORK_ON_FAULT is {word:?}; abort or ones was expected"));
                Self::Patience
            }
        }
    }
}

/// How long a host may poll a stopped chip: long enough to see the ones and end by itself, short
/// for somebody who waits for a program that never will.
const PATIENCE: Duration = Duration::from_secs(5);
/// A host that has not called for so long does not poll: somebody looks at the chip by hand.
const PAUSE: Duration = Duration::from_secs(1);

/// The calls of a host on a stopped chip.
struct Polling {
    /// The first of them since a pause.
    since: Instant,
    last: Instant,
}

/// Bytes of the largest access whose buffer is kept for the next one.
const KEPT: usize = 1 << 16;

/// The file that the environment wants coverage in, if it can be written.
fn coverage_file() -> Option<PathBuf> {
    let path = std::env::var_os("TILEWORK_COVERAGE")?;
    writable("TILEWORK_COVERAGE", &path).map_err(|what| say(Kind::Environment, &what)).ok()
}

/// How the process ends when it must not go on.
pub type End = fn() -> !;

/// The card.
pub struct Card {
    host: Host,
    end: End,
    config: ConfigSpace,
    on_fault: OnFault,
    /// Where to write what the coprocessors executed.
    coverage: Option<PathBuf>,
    looking: Looking,
    /// The chip's fault was told; and that it stays stopped.
    told_fault: bool,
    told_stopped: bool,
    polling: Option<Polling>,
    /// What was read last.
    buffer: Vec<u8>,
}

impl Card {
    /// A card just powered on.
    ///
    /// # Errors
    /// A board that cannot be built, as text.
    pub fn new(board: Board, bus: Option<Box<dyn HostBus>>) -> Result<Self, String> {
        Self::numbered(board, bus, 0)
    }

    /// Card `number` of a process that has several, just powered on: its serial number and its
    /// files are its own.
    ///
    /// # Errors
    /// As [`Card::new`].
    pub fn numbered(board: Board, bus: Option<Box<dyn HostBus>>, number: usize) -> Result<Self, String> {
        let coverage = coverage_file();
        let gdb = gdb_port(number);
        let counts = coverage.is_some();
        let config = ChipConfig {
            // A chip under gdb is run window by window.
            threads: if gdb.is_some() { Some(NonZeroUsize::MIN) } else { threads() },
            bugs: bugs(),
            coverage: counts,
            answers_host_errors: true,
            ..ChipConfig::of_card(number, board)
        };
        let mut chip = Chip::new(config).map_err(|error| format!("the chip cannot be built: {error}"))?;
        if let Some(bus) = bus {
            chip.attach_host_bus(bus);
        }
        let looking = Looking::begin(Wanted::by_environment().of_card(number), &mut chip, board);
        let host = match gdb {
            Some(port) => Host::debugged(chip, port).map_err(|error| format!("TILEWORK_GDB: {error}"))?,
            None => Host::Alone(Box::new(chip)),
        };
        Ok(Self {
            host,
            end: || std::process::abort(),
            config: ConfigSpace::new(board),
            on_fault: OnFault::chosen(),
            coverage,
            looking,
            told_fault: false,
            told_stopped: false,
            polling: None,
            buffer: Vec::new(),
        })
    }

    /// Has the process end by `end` instead of `abort()` when it must not go on, and at the first
    /// fault of a program.
    pub fn end_by(&mut self, end: End) {
        self.end = end;
        self.on_fault = OnFault::Ends;
    }

    /// The chip.
    pub fn chip(&mut self) -> &mut Chip {
        self.host.chip()
    }

    /// Powers off: tells what was found, and writes what is wanted of this card; what the
    /// coprocessors executed, of this one and those before.
    pub fn exit(mut self) {
        self.looking.finish(self.host.chip());
        let Some(path) = &self.coverage else { return };
        let mut coverage = EXECUTED.lock().unwrap_or_else(PoisonError::into_inner);
        coverage.merge(&self.host.chip().coverage());
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        let text = if is_json { coverage.json() } else { coverage.text() };
        if let Err(error) = std::fs::write(path, text) {
            let what = format!("TILEWORK_COVERAGE: cannot write {}: {error}", path.display());
            say(Kind::Environment, &what);
        }
    }

    /// Whether anything observes it.
    pub fn is_looked_at(&self) -> bool {
        self.looking.is_on()
    }

    /// The process ends and has not powered it off: what was found is told.
    pub fn end(&mut self) {
        self.looking.finish(self.host.chip());
    }

    /// True when the chip still runs; says otherwise, once.
    fn alive(&mut self) -> bool {
        if self.host.chip().fault().is_none() {
            return true;
        }
        if !self.told_stopped {
            self.told_stopped = true;
            let what = "the chip is stopped by the fault above; reads answer with ones, writes and clocks do nothing. \
                        libttsim_exit and libttsim_init start anew";
            say(Kind::Fault, what);
        }
        self.called_again();
        false
    }

    /// Ends the process if the host polls the stopped chip: it waits for something that will never
    /// be, and whoever started it does not see why.
    fn called_again(&mut self) {
        if self.on_fault == OnFault::Ones {
            return;
        }
        let now = Instant::now();
        let polling = self.polling.get_or_insert(Polling { since: now, last: now });
        if now.duration_since(polling.last) > PAUSE {
            polling.since = now;
        }
        polling.last = now;
        let polled = now.duration_since(polling.since);
        if polled >= PATIENCE {
            let fault = self.host.chip().fault().map(ToString::to_string).unwrap_or_default();
            let seconds = polled.as_secs();
            say_last(&format!("fault: {fault}"));
            say_last(&format!(
                "the host has polled the stopped chip for {seconds} s; the process ends (TILEWORK_ON_FAULT=ones lets \
                 it go on)"
            ));
            (self.end)();
        }
    }

    /// Tells what went wrong.
    fn failed(&mut self, call: &str, error: &dyn Display) {
        if self.host.is_killed() {
            say_last("gdb has ended the run");
            (self.end)();
        }
        if self.host.chip().fault().is_some() && !self.told_fault {
            self.told_fault = true;
            say(Kind::Fault, &format!("fault: {error}"));
            self.looking.finish(self.host.chip());
            if self.on_fault == OnFault::Ends {
                (self.end)();
            }
        } else {
            say(Kind::Memory, &format!("{call}: {error}"));
        }
        self.end_if_wanted();
    }

    fn end_if_wanted(&mut self) {
        if self.on_fault == OnFault::Abort {
            self.looking.finish(self.host.chip());
            say_last("TILEWORK_ON_FAULT=abort: the process ends");
            (self.end)();
        }
    }

    /// Tells about writes that tiles have refused meanwhile, and ends the process at a finding if
    /// that is wanted.
    #[inline]
    fn tell_refused(&mut self) {
        if self.looking.ends(self.host.chip()) {
            self.looking.finish(self.host.chip());
            say_last("TILEWORK_CHECKS=error: the process ends");
            (self.end)();
        }
        while let Some(fault) = self.host.chip().take_refused() {
            self.failed("libttsim_pci_mem_wr_bytes", &ChipError::Fault(fault));
        }
    }

    /// The word of configuration space; ones where no device is.
    pub fn config_read(&self, bus_device_function: u32, offset: u32) -> u32 {
        if bus_device_function != 0 || !Self::config_place("libttsim_pci_config_rd32", offset) {
            return u32::MAX;
        }
        self.config.read(offset)
    }

    /// Writes a word of configuration space; nothing happens where no device is.
    pub fn config_write(&mut self, bus_device_function: u32, offset: u32, value: u32) {
        if bus_device_function == 0 && Self::config_place("libttsim_pci_config_wr32", offset) {
            self.config.write(offset, value);
        }
    }

    fn config_place(call: &str, offset: u32) -> bool {
        let good = offset.is_multiple_of(4) && offset < config::SIZE;
        if !good {
            let size = config::SIZE;
            let what = format!("{call}: offset {offset:#x}; a multiple of 4 below {size:#x} was expected");
            say(Kind::Configuration, &what);
        }
        good
    }

    /// Reads `len` bytes of the card's memory; `None` when that is not possible.
    pub fn read(&mut self, paddr: u64, len: usize) -> Option<&[u8]> {
        const CALL: &str = "libttsim_pci_mem_rd_bytes";
        if !self.alive() {
            return None;
        }
        let (bar, offset) = self.locate(CALL, paddr, len)?;
        self.bar_read_buffered(CALL, bar, offset, len)
    }

    /// Reads `out.len()` bytes of a BAR; ones where that is not possible, which is told with the
    /// words `call`.
    pub fn bar_read(&mut self, call: &str, bar: Bar, offset: u64, out: &mut [u8]) {
        out.fill(0xFF);
        if self.alive() {
            let result = self.host.read(bar, offset, out);
            self.tell_refused();
            if let Err(error) = result {
                out.fill(0xFF);
                self.failed(call, &error);
            }
        }
    }

    /// Writes a BAR; a wrong access is told with the words `call`.
    pub fn bar_write(&mut self, call: &str, bar: Bar, offset: u64, data: &[u8]) {
        if self.alive() {
            let result = self.host.write(bar, offset, data);
            self.tell_refused();
            if let Err(error) = result {
                self.failed(call, &error);
            }
        }
    }

    fn bar_read_buffered(&mut self, call: &str, bar: Bar, offset: u64, len: usize) -> Option<&[u8]> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        if self.buffer.try_reserve_exact(len).is_err() {
            say(Kind::Memory, &format!("{call}: not enough memory for {len} bytes"));
            return None;
        }
        self.buffer.resize(len, 0);
        let result = self.host.read(bar, offset, &mut self.buffer);
        self.tell_refused();
        match result {
            Ok(()) => Some(&self.buffer),
            Err(error) => {
                self.failed(call, &error);
                None
            }
        }
    }

    /// Writes the card's memory.
    pub fn write(&mut self, paddr: u64, data: &[u8]) {
        const CALL: &str = "libttsim_pci_mem_wr_bytes";
        if !self.alive() {
            return;
        }
        let Some((bar, offset)) = self.locate(CALL, paddr, data.len()) else { return };
        self.bar_write(CALL, bar, offset, data);
    }

    fn locate(&mut self, call: &str, paddr: u64, len: usize) -> Option<(Bar, u64)> {
        match self.config.locate(paddr) {
            Some((bar, offset, room)) if len as u64 <= room => Some((bar, offset)),
            _ => {
                say(Kind::Memory, &format!("{call}: {len} bytes at {paddr:#x} lie in none of the card's BARs"));
                self.end_if_wanted();
                None
            }
        }
    }

    /// Lets cycles pass.
    #[inline]
    pub fn clock(&mut self, cycles: u32) {
        if self.host.clock_quickly(cycles.into()) || !self.alive() {
            return;
        }
        let result = self.host.clock(cycles.into());
        self.tell_refused();
        if let Err(error) = result {
            self.failed("libttsim_clock", &error);
        }
    }

    /// How many cycles pass without anything happening if nobody does anything to the card.
    #[inline]
    pub fn quiet_cycles(&self) -> u64 {
        self.host.quiet_cycles()
    }

    /// Lets so many of the [`Card::quiet_cycles`] pass.
    pub fn pass_quietly(&mut self, cycles: u64) {
        let passed = cycles == 0 || self.host.clock_quickly(cycles);
        debug_assert!(passed, "something was to happen within {cycles} cycles");
    }

    /// Tells that tiles are reached through the BARs.
    pub fn no_tile_access(&self, call: &str, x: u32, y: u32, addr: u64) {
        let what = "unsupported functionality on Blackhole, whose tiles are reached through the BARs";
        say(Kind::Tile, &format!("{call} at ({x}, {y}), address {addr:#x}: {what}"));
    }
}
