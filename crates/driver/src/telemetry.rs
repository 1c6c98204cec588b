//! The ARC's telemetry table as a driver reads it at start-up.

use crate::{DriverError, HostLink, Target, Window};
use std::collections::BTreeMap;
use tilework_abi::board::{self, Board, BoardSpec, DRAM_BANKS, Harvesting, SPECS};
use tilework_abi::convert::u8_of;
use tilework_abi::telemetry::{self as abi, tag};

/// The values that the card's firmware shows, by tag ([`tilework_abi::telemetry::tag`]).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Telemetry {
    values: BTreeMap<u16, u32>,
}

impl FromIterator<(u16, u32)> for Telemetry {
    fn from_iter<I: IntoIterator<Item = (u16, u32)>>(values: I) -> Self {
        Self { values: values.into_iter().collect() }
    }
}

fn bad(what: String) -> DriverError {
    DriverError::Telemetry { what }
}

/// The low half of a word: tags, and masks of at most sixteen units.
fn bits16(word: u32) -> u16 {
    let [a, b, ..] = word.to_le_bytes();
    u16::from_le_bytes([a, b])
}

impl Telemetry {
    /// Reads the table through `window`.
    ///
    /// # Errors
    /// The link failed, or what is there is no telemetry table.
    pub fn read(link: &mut impl HostLink, window: &mut Window) -> Result<Self, DriverError> {
        let arc = Target::tile(board::ARC);
        let table = u64::from(window.read32(link, &arc, abi::TABLE_POINTER)?);
        let csm = abi::CSM_BASE..abi::CSM_BASE + abi::CSM_BYTES;
        if !csm.contains(&table) {
            return Err(bad(format!("the table's address is {table:#x}, expected it in {csm:#x?}")));
        }
        let count = window.read32(link, &arc, table + abi::ENTRIES)?;
        if count > abi::MAX_ENTRIES {
            return Err(bad(format!("{count} entries, expected at most {}", abi::MAX_ENTRIES)));
        }
        let entries = words(link, window, &arc, table + abi::FIRST_ENTRY, count)?;
        let data = table + abi::FIRST_ENTRY + 4 * u64::from(count);
        let needed = entries.iter().map(|entry| (entry >> 16) + 1).max().unwrap_or(0);
        if data + 4 * u64::from(needed) > csm.end {
            return Err(bad(format!("{needed} data words at {data:#x} leave the ARC's memory")));
        }
        let data = words(link, window, &arc, data, needed)?;
        let values = entries.iter().filter_map(|entry| {
            let value = data.get((entry >> 16) as usize)?;
            Some((bits16(*entry), *value))
        });
        Ok(Self { values: values.collect() })
    }

    /// The value of `tag`.
    pub fn get(&self, tag: u16) -> Option<u32> {
        self.values.get(&tag).copied()
    }

    /// The physical DRAM bank that is harvested, if any.
    ///
    /// # Errors
    /// The mask is missing, or more than one bank is gone.
    pub fn harvested_dram(&self) -> Result<Option<u8>, DriverError> {
        const ALL: u32 = (1 << DRAM_BANKS) - 1;
        let mask = self.get(tag::ENABLED_GDDR);
        let mask = mask.ok_or_else(|| bad("no entry for the enabled DRAM banks (tag 36)".into()))?;
        let gone = !mask & ALL;
        match gone.count_ones() {
            0 => Ok(None),
            1 => Ok(Some(u8_of(gone.trailing_zeros()))),
            n => Err(bad(format!("{n} DRAM banks are gone (mask {mask:#x}), expected at most one"))),
        }
    }

    /// The units of the chip that are fused off.
    ///
    /// # Errors
    /// A mask is missing.
    pub fn harvesting(&self) -> Result<Harvesting, DriverError> {
        let mask = |tag, what| self.get(tag).ok_or_else(|| bad(format!("no entry for the enabled {what} (tag {tag})")));
        Ok(Harvesting {
            tensix: bits16(!mask(tag::ENABLED_TENSIX_COL, "Tensix columns")?) & Harvesting::ALL_TENSIX,
            dram: (!mask(tag::ENABLED_GDDR, "DRAM banks")?).to_le_bytes()[0],
            ethernet: bits16(!mask(tag::ENABLED_ETH, "Ethernet tiles")?) & Harvesting::ALL_ETHERNET,
        })
    }

    /// True when the NoCs translate coordinates.
    ///
    /// # Errors
    /// The entry is missing.
    pub fn translation(&self) -> Result<bool, DriverError> {
        let value = self.get(tag::NOC_TRANSLATION);
        value.map(|value| value != 0).ok_or_else(|| bad("no entry for coordinate translation (tag 40)".into()))
    }

    /// The board: its kind by the product number, with what its chip really lacks; `None` when the
    /// number is zero, with which a simulator says nothing.
    ///
    /// # Errors
    /// A product number of a board that is not known here; masks that no board has.
    pub fn board(&self) -> Result<Option<Board>, DriverError> {
        let id = self.get(tag::BOARD_ID_HIGH).ok_or_else(|| bad("no entry for the board id (tag 1)".into()))?;
        let product = id >> abi::PRODUCT_SHIFT;
        if product == 0 {
            return Ok(None);
        }
        let spec = BoardSpec::of_product(product).ok_or_else(|| {
            let known =
                SPECS.iter().flat_map(|spec| spec.products.iter().map(move |id| format!("{id:#x} ({})", spec.name)));
            bad(format!("product number {product:#x}, expected {}", known.collect::<Vec<_>>().join(", ")))
        })?;
        let harvesting = self.harvesting()?;
        let board = Board::harvested(spec, spec.name, harvesting);
        board.map(Some).map_err(|error| bad(format!("{error}: {harvesting:x?}")))
    }
}

fn words(
    link: &mut impl HostLink,
    window: &mut Window,
    target: &Target,
    address: u64,
    count: u32,
) -> Result<Vec<u32>, DriverError> {
    let mut bytes = vec![0; 4 * count as usize];
    window.read(link, target, address, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
}
