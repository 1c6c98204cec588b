//! A card in this machine as the chip that runs a kernel program (docs/card.md, "Real cards").

use super::agreed;
use crate::failure::{Failure, Outcome};
use crate::{interrupt, loudness};
use std::path::{Path, PathBuf};
use tilework_abi::board::Board;
use tilework_driver::Card;
use tilework_runtime::DeviceConfig;
use tilework_tt_kmd_client::{Facts, KmdCard, RealCard, check};

/// Where the kernel driver has its device files.
const DEVICES: &str = "/dev/tenstorrent";

/// Whether `--chip` names a card: a device file, or anything where those of the driver are.
pub fn is_card(path: &Path) -> bool {
    path.starts_with(DEVICES) || is_device(path)
}

#[cfg(unix)]
fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|file| file.file_type().is_char_device())
}

#[cfg(not(unix))]
fn is_device(_path: &Path) -> bool {
    false
}

/// A card that this process has taken. It is left reset when this is dropped.
pub struct TakenCard {
    pub(super) card: RealCard,
    path: PathBuf,
}

impl TakenCard {
    /// Takes the card of the device file `path`, and looks at what it tells of itself; also says
    /// which board it is.
    ///
    /// # Errors
    /// There is none, another program has it, or something about it is not known; it has another
    /// chip than `wanted`.
    pub(super) fn open(path: &Path, wanted: Option<Board>) -> Outcome<(Self, Board)> {
        let refused =
            |what: String| Failure::option("--chip", format_args!(" {}: {what}", path.display())).of_file(path);
        // From here on the card is left reset whatever signal ends this process, if any can be
        // caught.
        interrupt::also_by_termination();
        let link = KmdCard::open(path).map_err(|error| refused(error.to_string()))?;
        let mut card = Card::open(link).map_err(|error| refused(error.to_string()))?;
        let facts = check(&mut card).map_err(|error| refused(error.to_string()))?;
        let board = agreed(Some(facts.board), wanted, "the card").map_err(refused)?.unwrap_or(facts.board);
        let link = card.into_link();
        loudness::step(&found(path, link.driver(), &facts));
        Ok((Self { card: link, path: path.to_owned() }, board))
    }

    /// Says which tiles are held when the card is left.
    pub(super) fn prepare(&mut self, config: &DeviceConfig) -> Outcome<()> {
        let board = config.board;
        // The first tile of the dispatch column fetches the queue's records from the host.
        let talks = board.prefetch_core();
        let held = self.card.hold_at_end(board.tensix_tiles().collect(), talks);
        held.map_err(|error| Failure::failed("device", error.to_string()))
    }
}

impl Drop for TakenCard {
    fn drop(&mut self) {
        let released = self.card.release();
        loudness::note(&format!("{} is left: {released}", self.path.display()));
    }
}

fn found(path: &Path, [major, minor, patch]: [u8; 3], facts: &Facts) -> String {
    let Facts { board, firmware: [a, b, c, d], aiclk } = facts;
    let clock = aiclk.map_or_else(String::new, |mhz| format!(", AI clock {mhz} MHz"));
    format!(
        "{}: a {} that lacks {}, tt-kmd {major}.{minor}.{patch}, firmware bundle {a}.{b}.{c}.{d}{clock}",
        path.display(),
        board.spec().name,
        board.harvesting()
    )
}
