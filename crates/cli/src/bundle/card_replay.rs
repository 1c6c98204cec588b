//! `tilework replay` of a bundle of a card: the chip is given what the program gave it.
//!
//! The record says what the device read of host memory, so that the chip needs no host; of what it
//! answered and wrote the record has digests, and of each answer the cycle. A replay that parts
//! from its record says where, and stops there.

use super::card::{CardManifest, CardOf, RECORD};
use super::{FORM, MANIFEST};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::interrupt;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilework_abi::simlib::board_of;
use tilework_abi::tlb::Bar;
use tilework_debugger::{DebugLink, Debugger};
use tilework_driver::HostLink;
use tilework_kmd::record::{Entry, Records, digest};
use tilework_sim::{Bug, Bugs, Chip, ChipConfig, HostBus};
use zip::ZipArchive;

/// A number of the record, as entries are counted in it.
type Place = u64;
/// An entry with its bytes.
type Whole = Entry<Vec<u8>>;

/// Bytes of the manifest of a bundle, at most.
const MANIFEST_BYTES: u64 = 1 << 20;
/// Entries between two looks whether the user has interrupted.
const LOOK: u64 = 1 << 10;

/// What came of a replay.
pub(super) struct Replay {
    pub(super) manifest: CardManifest,
    pub(super) report: CardReport,
    /// Where the run parts from its record: the place, what the record has, what happened.
    pub(super) parted: Option<(String, Value, Value)>,
}

/// What the chip did. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug, Default)]
pub(super) struct CardReport {
    /// The command of the program.
    command: Vec<String>,
    /// The host's time at the end.
    cycles: u64,
    instructions: u64,
    /// Accesses of the program to BARs.
    reads: u64,
    writes: u64,
    bytes_written: u64,
    resets: u64,
    /// Transfers of the device from and to host memory.
    host_memory_reads: u64,
    host_memory_writes: u64,
    /// Whether the record has the end of the program, or was cut off by it.
    whole: bool,
    /// The fault that stopped the chip.
    pub(super) fault: Option<String>,
}

/// The manifest of a bundle, if it is one of a card.
pub(super) fn manifest(path: &Path) -> Outcome<Option<CardManifest>> {
    let (file, _) = files::open_within(path, u64::MAX, "a bundle")?;
    // What is no archive is told by who reads other bundles.
    let Ok(mut archive) = ZipArchive::new(BufReader::new(file)) else { return Ok(None) };
    if archive.index_for_name(RECORD).is_none() {
        return Ok(None);
    }
    let wrong = |what: &dyn std::fmt::Display| Failure::file(path, tilework_text::plain(&what.to_string()));
    let mut bytes = Vec::new();
    let entry = archive.by_name(MANIFEST).map_err(|e| wrong(&format!("{MANIFEST}: {e}")))?;
    entry.take(MANIFEST_BYTES).read_to_end(&mut bytes).map_err(|e| wrong(&e))?;
    let manifest: CardManifest = serde_json::from_slice(&bytes).map_err(|e| wrong(&format!("{MANIFEST}: {e}")))?;
    if manifest.bundle != FORM {
        let why = format!("a bundle of form {}, written by tilework {}", manifest.bundle, manifest.tilework);
        return Err(wrong(&format!("{why}; this version reads form {FORM}")));
    }
    Ok(Some(manifest))
}

/// Repeats the run of a card, under a debugger if there is one.
pub(super) fn replay(path: &Path, manifest: CardManifest, debugger: Option<&Debugger>) -> Outcome<Replay> {
    let wrong = |what: &dyn std::fmt::Display| Failure::file(path, tilework_text::plain(&what.to_string()));
    let (file, _) = files::open_within(path, u64::MAX, "a bundle")?;
    let archive = ZipArchive::new(BufReader::new(file)).map_err(|e| wrong(&e))?;
    let source = Arc::new(Mutex::new(Source::new(entries_of(archive))));
    let config = config(&manifest.card, debugger.is_some()).map_err(|what| wrong(&what))?;
    let mut run = Run { source, config, debugger, report: CardReport::default(), parted: None };
    run.report.command.clone_from(&manifest.card.command);
    run.all()?;
    if let Some(error) = run.source().error.take() {
        return Err(wrong(&format!("{RECORD}: {error}")));
    }
    let Run { report, parted, .. } = run;
    Ok(Replay { manifest, report, parted })
}

/// The chip of a card, as the card's library makes it.
fn config(card: &CardOf, debugged: bool) -> Result<ChipConfig, String> {
    let board = board_of(card.board.as_bytes()).ok_or_else(|| format!("no board is {:?}", card.board))?;
    let mut bugs = Bugs::AS_CHIP;
    for name in &card.without_bugs {
        bugs = bugs.without(Bug::named(name).map_err(|error| error.to_string())?);
    }
    Ok(ChipConfig {
        bugs,
        answers_host_errors: true,
        threads: debugged.then_some(NonZeroUsize::MIN),
        ..ChipConfig::of_card(card.number, board)
    })
}

/// The chip, alone or under gdb.
enum Link {
    Alone(Box<Chip>),
    Debugged(Box<DebugLink>),
}

impl Link {
    fn chip(&mut self) -> &mut Chip {
        match self {
            Self::Alone(chip) => chip,
            Self::Debugged(link) => link.chip_mut(),
        }
    }
    fn now(&self) -> u64 {
        match self {
            Self::Alone(chip) => chip.now(),
            Self::Debugged(link) => link.cycles(),
        }
    }
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Alone(chip) => chip.bar_read(bar, offset, out).map_err(|error| error.to_string()),
            Self::Debugged(link) => link.bar_read(bar, offset, out).map_err(|error| error.to_string()),
        }
    }
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), String> {
        match self {
            Self::Alone(chip) => chip.bar_write(bar, offset, data).map_err(|error| error.to_string()),
            Self::Debugged(link) => link.bar_write(bar, offset, data).map_err(|error| error.to_string()),
        }
    }
    fn clock(&mut self, cycles: u64) -> Result<(), String> {
        match self {
            Self::Alone(chip) => chip.clock(cycles).map_err(|error| error.to_string()),
            Self::Debugged(link) => link.idle(cycles).map_err(|error| error.to_string()),
        }
    }
}

/// A run that is being repeated.
struct Run<'a> {
    source: Arc<Mutex<Source>>,
    config: ChipConfig,
    debugger: Option<&'a Debugger>,
    report: CardReport,
    parted: Option<(String, Value, Value)>,
}

impl Run<'_> {
    fn source(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A chip just powered on.
    fn power_on(&self, again: bool) -> Outcome<Link> {
        let failed = |error: &dyn std::fmt::Display| Failure::failed("device", error.to_string());
        let mut chip = Chip::new(self.config).map_err(|error| failed(&error))?;
        chip.attach_host_bus(Box::new(Recorded(Arc::clone(&self.source))));
        Ok(match self.debugger {
            None => Link::Alone(Box::new(chip)),
            Some(_) if again => {
                let what = "the program has reset the chip, and the debugger follows one chip only: a replay without \
                            --gdb goes on";
                return Err(Failure::failed("debugger", what));
            }
            Some(debugger) => Link::Debugged(Box::new(debugger.replay(chip).map_err(|error| failed(&error))?)),
        })
    }

    /// Repeats all entries, or up to where the run parts from its record.
    fn all(&mut self) -> Outcome<()> {
        let mut link = self.power_on(false)?;
        let interrupted = interrupt::flag();
        let mut done: Place = 0;
        loop {
            let Some((place, entry)) = self.source().next_of_host() else { break };
            if let Entry::Reset = entry {
                self.report.resets += 1;
                drop(link);
                link = self.power_on(true)?;
                continue;
            }
            if done.is_multiple_of(LOOK) && interrupted.load(Ordering::Relaxed) {
                return Err(Failure::failed("interrupted", "interrupted before the run came to its end"));
            }
            done += 1;
            if !self.one(&mut link, place, entry) {
                break;
            }
        }
        let cycle = link.now();
        let stats = link.chip().stats();
        (self.report.cycles, self.report.instructions) = (cycle, stats.instructions);
        let source = self.source();
        let (fetched, stored) = (source.fetched, source.stored);
        drop(source);
        (self.report.host_memory_reads, self.report.host_memory_writes) = (fetched, stored);
        Ok(())
    }

    /// Repeats an entry. False if the run ends with it.
    fn one(&mut self, link: &mut Link, place: Place, entry: Whole) -> bool {
        let mut out = Vec::new();
        let (what, result) = match &entry {
            Entry::Read(bar, offset, len) => {
                self.report.reads += 1;
                out.resize(usize::try_from(*len).unwrap_or(0), 0xFF);
                let result = link.read(*bar, *offset, &mut out);
                if result.is_err() {
                    out.fill(0xFF);
                }
                (format!("entry {place}, a read of {len} bytes at {bar:?}+{offset:#x}"), result)
            }
            Entry::Write(bar, offset, data) => {
                self.report.writes += 1;
                self.report.bytes_written += data.len() as u64;
                let len = data.len();
                (
                    format!("entry {place}, a write of {len} bytes at {bar:?}+{offset:#x}"),
                    link.write(*bar, *offset, data),
                )
            }
            Entry::Clock(cycles) => (format!("entry {place}, {cycles} cycles that pass"), link.clock(*cycles)),
            Entry::End { cycle, instructions } => {
                self.report.whole = true;
                self.ended(link, place, [*cycle, *instructions]);
                return false;
            }
            _ => {
                self.part(format!("entry {place}"), json!("an entry that nothing asked for"), Value::Null);
                return false;
            }
        };
        while link.chip().take_refused().is_some() {}
        let differs = self.source().parted.take();
        if let Some((then, now)) = differs {
            self.part(format!("within {what}"), then, now);
            return false;
        }
        if let Some(fault) = link.chip().fault().map(ToString::to_string) {
            self.report.fault = Some(fault.clone());
            // The program was ended within the access.
            if self.source().next_of_host().is_some() {
                self.part(what, json!("goes on"), json!(fault));
            }
            return false;
        }
        if let (Link::Debugged(_), Err(error)) = (&link, &result)
            && self.debugger.is_some_and(|debugger| debugger.killed() || debugger.goes_back())
        {
            self.part(what, Value::Null, json!(error));
            return false;
        }
        !matches!(entry, Entry::Read(..)) || self.answered(link.now(), &out, what)
    }

    /// Compares what a read gave, and when.
    fn answered(&mut self, now: u64, out: &[u8], what: String) -> bool {
        let found = self.source().next_of_host();
        match found {
            // The program was ended within the read.
            None => false,
            Some((_, Entry::Answer { digest: then, cycle })) => {
                let told = |digest: u32, cycle: u64| json!({ "digest": digest, "cycle": cycle });
                let now = (digest(out), now);
                if (then, cycle) != now {
                    self.part(what, told(then, cycle), told(now.0, now.1));
                }
                self.parted.is_none()
            }
            Some(_) => {
                self.part(what, json!("no answer"), json!("an answer"));
                false
            }
        }
    }

    /// Compares the end.
    fn ended(&mut self, link: &mut Link, place: Place, then: [u64; 2]) {
        let instructions = link.chip().stats().instructions;
        let now = [link.now(), instructions];
        // Under the debugger windows are cut elsewhere, and counts may be of some cycles later.
        let same = then == now || self.debugger.is_some() && then[0] == now[0];
        if !same {
            let told = |[cycle, instructions]: [u64; 2]| json!({ "cycle": cycle, "instructions": instructions });
            self.part(format!("entry {place}, the end"), told(then), told(now));
        }
    }

    fn part(&mut self, at: String, then: Value, now: Value) {
        self.parted.get_or_insert((at, then, now));
    }
}

/// The record, read by the host and by the chip's bus. Each takes its own entries in order: the
/// chip may be some cycles ahead of the host in one run and less in another.
struct Source {
    records: Receiver<std::io::Result<Whole>>,
    place: Place,
    host: VecDeque<(Place, Whole)>,
    bus: VecDeque<(Place, Whole)>,
    ended: bool,
    error: Option<std::io::Error>,
    /// What the record has of a transfer of the device, and what the device did.
    parted: Option<(Value, Value)>,
    fetched: u64,
    stored: u64,
}

/// Entries that wait for the chip, at most.
const AHEAD: usize = 64;

/// The entries of a record in an archive. A thread unpacks them, because the chip's bus takes them
/// whenever the device reaches for host memory.
fn entries_of(mut archive: ZipArchive<BufReader<File>>) -> Receiver<std::io::Result<Whole>> {
    let (send, receive) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        let unpack = || -> std::io::Result<()> {
            let entry = archive.by_name(RECORD).map_err(std::io::Error::other)?;
            let mut records = Records::new(BufReader::new(entry))?;
            while let Some(entry) = records.read()? {
                // The replay has ended.
                if send.send(Ok(entry)).is_err() {
                    break;
                }
            }
            Ok(())
        };
        if let Err(error) = { unpack }() {
            // Nobody may be there to hear of it.
            let _ = send.send(Err(error));
        }
    });
    receive
}

impl Source {
    fn new(records: Receiver<std::io::Result<Whole>>) -> Self {
        let (host, bus) = (VecDeque::new(), VecDeque::new());
        Self { records, place: 0, host, bus, ended: false, error: None, parted: None, fetched: 0, stored: 0 }
    }

    /// Reads an entry. False at the end.
    fn read(&mut self) -> bool {
        if self.ended {
            return false;
        }
        match self.records.recv() {
            Ok(Ok(entry)) => {
                let is_bus = matches!(entry, Entry::Fetched(..) | Entry::Stored { .. });
                if is_bus { &mut self.bus } else { &mut self.host }.push_back((self.place, entry));
                self.place += 1;
            }
            Err(_) => self.ended = true,
            Ok(Err(error)) => (self.ended, self.error) = (true, Some(error)),
        }
        !self.ended
    }

    fn next_of_host(&mut self) -> Option<(Place, Whole)> {
        while self.host.is_empty() && self.read() {}
        self.host.pop_front()
    }

    fn next_of_bus(&mut self) -> Option<Whole> {
        while self.bus.is_empty() && self.read() {}
        self.bus.pop_front().map(|(_, entry)| entry)
    }

    fn part(&mut self, then: Option<&Whole>, now: Value) {
        let then = match then {
            Some(Entry::Fetched(address, data)) => json!(format!("reads {} bytes at {address:#x}", data.len())),
            Some(Entry::Stored { address, len, digest }) => {
                json!(format!("writes {len} bytes at {address:#x}, digest {digest:#x}"))
            }
            // The program may have ended before.
            _ => return,
        };
        self.parted.get_or_insert((then, now));
    }
}

/// Host memory as the record has it.
struct Recorded(Arc<Mutex<Source>>);

impl HostBus for Recorded {
    fn read(&self, addr: u64, out: &mut [u8]) {
        let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        source.fetched += 1;
        match source.next_of_bus() {
            Some(Entry::Fetched(address, data)) if address == addr && data.len() == out.len() => {
                out.copy_from_slice(&data);
            }
            other => {
                out.fill(0xFF);
                source.part(other.as_ref(), json!(format!("reads {} bytes at {addr:#x}", out.len())));
            }
        }
    }
    fn write(&self, addr: u64, data: &[u8]) {
        let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        source.stored += 1;
        let now = (addr, data.len() as u64, digest(data));
        match source.next_of_bus() {
            Some(Entry::Stored { address, len, digest }) if (address, len, digest) == now => {}
            other => {
                let (address, len, digest) = now;
                let now = json!(format!("writes {len} bytes at {address:#x}, digest {digest:#x}"));
                source.part(other.as_ref(), now);
            }
        }
    }
}
