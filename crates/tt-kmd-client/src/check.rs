//! What a card tells of itself, before anything is run on it. What is not known is refused.

use tilework_abi::board::{self, Board, DRAM_BANKS};
use tilework_abi::telemetry::{BOOT_STATUS, BOOT_STATUS_READY, tag};
use tilework_driver::{Card, DriverError, HostLink, Target, Telemetry};

/// The oldest firmware bundle: tt-umd's least for a Blackhole
/// (`get_minimum_compatible_firmware_version`).
pub const OLDEST_FIRMWARE: [u8; 3] = [18, 5, 0];
/// The newest major version of a bundle whose telemetry is known (tt-umd
/// `firmware_info_provider_implementation.cpp` has rules for versions to 19.13).
pub const NEWEST_MAJOR: u8 = 19;
/// What a bank says that is trained: two bits in the low half of the word.
const TRAINED: u32 = 1;

/// What a card is.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The board, with what its chip lacks.
    pub board: Board,
    /// Version of the firmware bundle: major, minor, patch, and what a pre-release adds.
    pub firmware: [u8; 4],
    /// The AI clock in MHz.
    pub aiclk: Option<u32>,
}

fn refused(what: String) -> DriverError {
    DriverError::Refused { what }
}

/// Looks at what the chip tells of itself: its firmware runs, is a known one and calls the board by
/// a known number; coordinates are translated; DRAM is trained.
///
/// # Errors
/// The card cannot be reached; what is not as it must be, or is not known.
pub fn check<L: HostLink>(card: &mut Card<L>) -> Result<Facts, DriverError> {
    let status = card.read32(&Target::tile(board::ARC), BOOT_STATUS)?;
    if status == u32::MAX || status & 7 != BOOT_STATUS_READY {
        return Err(refused(format!(
            "the ARC's firmware is not ready: its boot status is {status:#x}, expected {BOOT_STATUS_READY} in the low \
             three bits; `tt-smi -r` resets the card"
        )));
    }
    facts(&card.telemetry()?)
}

fn facts(telemetry: &Telemetry) -> Result<Facts, DriverError> {
    let word = |tag: u16, what: &str| {
        telemetry.get(tag).ok_or_else(|| refused(format!("its telemetry does not tell {what} (tag {tag})")))
    };
    let [patch_of_patch, patch, minor, major] = word(tag::FLASH_BUNDLE_VERSION, "the firmware bundle")?.to_le_bytes();
    if [major, minor, patch] < OLDEST_FIRMWARE || major > NEWEST_MAJOR {
        let [a, b, c] = OLDEST_FIRMWARE;
        return Err(refused(format!(
            "its firmware bundle is {major}.{minor}.{patch}.{patch_of_patch}, expected {a}.{b}.{c} to {NEWEST_MAJOR}.x"
        )));
    }
    if !telemetry.translation()? {
        return Err(refused("its NoCs do not translate coordinates, on which all places of programs rest".into()));
    }
    let Some(board) = telemetry.board()? else {
        return Err(refused("its telemetry names no board: the product number is zero".into()));
    };
    let (status, enabled) =
        (word(tag::GDDR_STATUS, "the state of DRAM")?, word(tag::ENABLED_GDDR, "the enabled DRAM banks")?);
    let untrained = |&bank: &usize| enabled >> bank & 1 != 0 && status >> (2 * bank) & 3 != TRAINED;
    if let Some(bank) = (0..DRAM_BANKS).find(untrained) {
        return Err(refused(format!("DRAM bank {bank} is not trained: the state of DRAM is {status:#x}")));
    }
    let firmware = [major, minor, patch, patch_of_patch];
    Ok(Facts { board, firmware, aiclk: telemetry.get(tag::AICLK) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::telemetry::PRODUCT_SHIFT;
    use tilework_sim::{Chip, ChipConfig};

    /// The telemetry of a p150 with other words.
    fn with(words: &[(u16, u32)]) -> Result<Facts, String> {
        let mut card = Card::open(Chip::new(ChipConfig::new(Board::P150)).unwrap()).unwrap();
        let telemetry = card.telemetry().unwrap();
        let known = (0..=80).filter_map(|tag| Some((tag, telemetry.get(tag)?)));
        let changed: Telemetry = known.chain(words.iter().copied()).collect();
        facts(&changed).map_err(|error| error.to_string())
    }

    #[test]
    fn a_card_as_it_should_be_is_known() {
        let facts = with(&[]).unwrap();
        assert!(facts.board.has_chip_of(Board::P150) && facts.aiclk.is_some(), "{facts:?}");
        assert!(with(&[(tag::FLASH_BUNDLE_VERSION, 0x1205_0000)]).is_ok(), "18.5.0");
        assert!(with(&[(tag::FLASH_BUNDLE_VERSION, 0x130D_0002)]).is_ok(), "19.13.0.2");
    }

    #[test]
    fn what_is_not_known_is_refused_with_the_reason() {
        let cases = [
            ((tag::FLASH_BUNDLE_VERSION, 0x1204_FF00), "firmware bundle is 18.4.255.0, expected 18.5.0 to 19.x"),
            ((tag::FLASH_BUNDLE_VERSION, 0x1400_0000), "firmware bundle is 20.0.0.0"),
            ((tag::NOC_TRANSLATION, 0), "do not translate coordinates"),
            ((tag::BOARD_ID_HIGH, 0), "names no board"),
            ((tag::BOARD_ID_HIGH, 0x99 << PRODUCT_SHIFT), "product number 0x99, expected"),
            ((tag::GDDR_STATUS, 0x5545), "DRAM bank 2 is not trained"),
            ((tag::ENABLED_GDDR, 0x3F), "more than one DRAM bank is harvested"),
        ];
        for (word, expected) in cases {
            let error = with(&[word]).unwrap_err();
            assert!(error.contains(expected), "expected {expected}, found {error}");
        }
    }
}
