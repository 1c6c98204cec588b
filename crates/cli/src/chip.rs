//! Which chip runs a kernel program: the built-in one, one behind the libttsim interface, or a card
//! in this machine.

use self::card::TakenCard;
use crate::board_file::is_known;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::program::{BUILT_IN, Schedule};
use crate::simdir::LIBRARY_BUDGET;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::noc::NocXy;
use tilework_abi::tlb::Bar;
use tilework_checks::{CheckObserver, Checks, Level, RaceObserver};
use tilework_debugger::DebugLink;
use tilework_driver::{Card, HostLink, Inspect, LinkError, Note, StoreSink};
use tilework_libttsim_client::LibraryChip;
use tilework_runtime::DeviceConfig;
use tilework_sim::{Bugs, Chip, ChipConfig, Coverage, LateCores, LatePackets, Observer};

mod card;

pub use card::is_card;

/// A device on any chip.
pub type Device = tilework_runtime::Device<AnyChip>;

/// A chip that this command can run programs on.
#[expect(clippy::large_enum_variant, reason = "a process has one")]
pub enum AnyChip {
    /// The built-in simulator.
    BuiltIn(Chip),
    /// The same under a debugger.
    Debugged(DebugLink),
    /// A library's.
    Library(LibraryChip),
    /// A card's.
    Card(TakenCard),
}

/// What may be chosen of the built-in chip.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// How many threads run its tiles; all of the machine's unless given.
    pub threads: Option<NonZeroUsize>,
    /// The documented bugs that it has.
    pub bugs: Bugs,
    /// Its coprocessors count what they execute.
    pub coverage: bool,
    /// Packets and cores are late.
    pub schedule: Option<Schedule>,
}

impl AnyChip {
    /// Powers on the chip behind `library`, takes the card that it names, or powers on the built-in
    /// one of `board` (p100 unless given) with `settings`; also says which board it is.
    ///
    /// # Errors
    /// A file that is no such library; a card that cannot be had or is not known; a chip that is
    /// not a Blackhole, of an unknown board, or of another board than `board`.
    pub fn power_on(library: Option<&Path>, board: Option<Board>, settings: Settings) -> Outcome<(Self, Board)> {
        match library {
            Some(device) if card::is_card(device) => {
                let (card, board) = TakenCard::open(device, board)?;
                Ok((Self::Card(card), board))
            }
            Some(library) => open_library(library, board),
            None => {
                let board = board.unwrap_or(Board::P100);
                let Settings { threads, bugs, coverage, schedule } = settings;
                let late = schedule.map(|late| LatePackets { seed: late.seed.into(), most: late.packets });
                let late_cores = schedule.map(|late| LateCores { seed: late.seed.into(), most: late.cores });
                let config = ChipConfig { threads, bugs, coverage, late, late_cores, ..ChipConfig::new(board) };
                let chip = Chip::new(config);
                let chip = chip.map_err(not_built)?;
                Ok((Self::BuiltIn(chip), board))
            }
        }
    }

    /// Adds an observer; the chip of a library has none.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        if let Self::BuiltIn(chip) = self {
            chip.observe(observer);
        }
    }

    /// Has what kernels do looked at, as far as the policy of `checks` wants and the chip shows it.
    /// Gives the one who looks for races, if they are wanted.
    pub fn check(&mut self, checks: &Arc<Mutex<Checks>>, board: Board) -> Option<Arc<Mutex<RaceObserver>>> {
        let (wanted, races) = checks.lock().map_or((false, false), |checks| {
            let policy = checks.policy();
            (policy.level() != Level::Off, policy.races())
        });
        let Self::BuiltIn(chip) = self else { return None };
        if wanted {
            chip.observe(Box::new(CheckObserver::new(Arc::clone(checks))));
        }
        let races =
            (wanted && races).then(|| Arc::new(Mutex::new(RaceObserver::new(board).telling(Arc::clone(checks)))));
        if let Some(races) = &races {
            chip.observe(Box::new(Arc::clone(races)));
        }
        races
    }

    /// What the coprocessors executed, of a chip that counts it.
    pub fn coverage(&self) -> Option<Coverage> {
        match self {
            Self::BuiltIn(chip) => Some(chip.coverage()),
            Self::Debugged(link) => link.chip().map(Chip::coverage),
            Self::Library(_) | Self::Card(_) => None,
        }
    }

    /// Tells a card what a device of this configuration uses of it.
    ///
    /// # Errors
    /// The driver of the card refused it.
    pub fn prepare(&mut self, config: &DeviceConfig) -> Outcome<()> {
        match self {
            Self::Card(card) => card.prepare(config),
            _ => Ok(()),
        }
    }

    /// The chip's name in reports.
    pub fn name(chip: Option<&Path>) -> String {
        match chip {
            None => BUILT_IN.to_owned(),
            Some(path) if card::is_card(path) => format!("tt-kmd: {}", path.display()),
            Some(path) => format!("libttsim: {}", path.display()),
        }
    }
}

/// Refuses a board that another chip has than the one that was found.
fn agreed(found: Option<Board>, wanted: Option<Board>, whose: &str) -> Result<Option<Board>, String> {
    match (found, wanted) {
        // The name of a kind stands for what its firmware shows, too.
        (Some(found), Some(wanted)) if is_known(wanted) && wanted.by_firmware().has_chip_of(found) => Ok(Some(found)),
        (Some(found), Some(wanted)) if !wanted.has_chip_of(found) => {
            let chip = |board: Board| format!("{} that lacks {}", board.spec().name, board.harvesting());
            Err(format!("{whose} has a {}, but --board says a {}", chip(found), chip(wanted)))
        }
        (found, wanted) => Ok(wanted.or(found)),
    }
}

fn open_library(library: &Path, wanted: Option<Board>) -> Outcome<(AnyChip, Board)> {
    let refused =
        |what: String| Failure::option("--chip", format_args!(" {}: {what}", library.display())).of_file(library);
    // A name without a slash would be searched for in the system's folders.
    let file = library.canonicalize().map_err(|e| refused(e.to_string()))?;
    // The loader would wait at a pipe.
    files::open_within(&file, LIBRARY_BUDGET, "a shared library").map_err(|failure| refused(failure.to_string()))?;
    let chip = LibraryChip::open(file.as_os_str()).map_err(|e| refused(with_cause(&e)))?;
    let mut card = Card::open(chip).map_err(|e| refused(e.to_string()))?;
    let found = card.telemetry().and_then(|telemetry| telemetry.board()).map_err(|e| refused(e.to_string()))?;
    let board = agreed(found, wanted, "the library").map_err(refused)?;
    let board = board.ok_or_else(|| {
        refused("the library does not say which board it has (its product number is zero): name it with --board".into())
    })?;
    Ok((AnyChip::Library(card.into_link()), board))
}

fn not_built(error: impl std::fmt::Display) -> Failure {
    Failure::failed("device", format!("the simulated chip could not be built: {error}"))
}

/// An error with what caused it.
fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Passes a call on to the chip that it is.
macro_rules! each {
    ($chip:expr, $inner:ident => $call:expr) => {
        match $chip {
            AnyChip::BuiltIn($inner) => $call,
            AnyChip::Debugged($inner) => $call,
            AnyChip::Library($inner) => $call,
            AnyChip::Card(TakenCard { card: $inner, .. }) => $call,
        }
    };
}

impl HostLink for AnyChip {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        each!(self, chip => HostLink::bar_write(chip, bar, offset, data))
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        each!(self, chip => HostLink::bar_read(chip, bar, offset, out))
    }
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        each!(self, chip => HostLink::pin(chip, len, wish))
    }
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        each!(self, chip => HostLink::pinned_read(chip, address, out))
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        each!(self, chip => HostLink::pinned_write(chip, address, data))
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        each!(self, chip => HostLink::wait_word(chip, address, seen, budget))
    }
    fn wait_words(&mut self, words: &[(PcieAddr, u32)], budget: Cycle) -> Result<(), LinkError> {
        each!(self, chip => HostLink::wait_words(chip, words, budget))
    }
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        each!(self, chip => HostLink::idle(chip, cycles))
    }
    fn cycles(&self) -> Cycle {
        each!(self, chip => HostLink::cycles(chip))
    }
    fn measured(&self) -> Option<Cycle> {
        each!(self, chip => HostLink::measured(chip))
    }
    fn watch_stores(&mut self, range: Range<u32>, seen: StoreSink) -> bool {
        each!(self, chip => HostLink::watch_stores(chip, range, seen))
    }
    fn settle(&mut self) {
        each!(self, chip => HostLink::settle(chip));
    }
    fn peek(&mut self, tile: NocXy, at: u32, out: &mut [u8]) -> bool {
        each!(self, chip => HostLink::peek(chip, tile, at, out))
    }
    fn inspect(&self) -> Option<&dyn Inspect> {
        each!(self, chip => HostLink::inspect(chip))
    }
    fn listens(&self) -> bool {
        each!(self, chip => HostLink::listens(chip))
    }
    fn note(&mut self, note: &Note) {
        each!(self, chip => HostLink::note(chip, note));
    }
    fn settle_observers(&mut self) {
        each!(self, chip => HostLink::settle_observers(chip));
    }
}
