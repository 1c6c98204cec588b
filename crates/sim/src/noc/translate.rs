//! Coordinate translation as the card's firmware sets it up.
//!
//! Each NIU has one table for X and one for Y with 32 entries each, which software's coordinates go
//! through before a packet leaves, and two masks: a row whose bit is set keeps X as it is, a column
//! whose bit is set keeps Y. The purpose and format of the tables are in
//! WormholeB0/NoC/Coordinates.md and BlackholeA0/NoC/MemoryMap.md; their content on a Blackhole is
//! that of the card's public firmware (tenstorrent/tt-zephyr-platforms, `noc_init.c`), to which
//! tt-umd's coordinate managers are the counterpart:
//!
//! | X, Y | means |
//! |---|---|
//! | 1..7 and 10..16, 2..11 | working Tensix columns, left to right, then the harvested ones |
//! | 17 and 18, 12..23 | DRAM, three rows a bank; first the column without a harvested bank |
//! | 19, 24 | the PCIe tile in use |
//! | 20..31, 25 | Ethernet channels, without two of the harvested ones |
//! | 8, 26..29 and 8, 30 | L2CPU tiles, the security tile |
//! | else below 17, 12 | NoC 0 coordinates; on NoC 1, rows 0 and 1 keep the X of NoC 1 |
//!
//! The row of banks in which one is harvested comes last.

use tilework_abi::board::{self, Harvesting};
use tilework_abi::grid::{self, DIE_COLUMNS, DRAM_COLUMNS, DRAM_ROWS, Site, TENSIX_COLUMNS};
use tilework_abi::noc::{self, GRID_X, GRID_Y, NocXy};

/// Entries of a table: 160 bits of 5 (NoC/MemoryMap.md).
const ENTRIES: usize = 32;
/// Bits of an entry, and entries of a 32-bit register.
const ENTRY_BITS: usize = 5;
const ENTRIES_PER_WORD: usize = 6;
/// Registers of a table.
pub(super) const TABLE_WORDS: usize = 6;
/// Rows in which X is not translated: those of PCIe and Ethernet.
const KEEP_X_ROWS: u32 = 0b11;
/// First translated rows of the tiles that are given rows outside the torus.
const DRAM_Y: usize = 12;
const ETHERNET_Y: usize = 25;
const L2CPU_Y: usize = 26;
const SECURITY_Y: usize = 30;
/// Likewise for columns, and the number of Ethernet channels.
const DRAM_X: usize = 17;
const ETHERNET_X: usize = 20;
const ETHERNET_COUNT: usize = ENTRIES - ETHERNET_X;
/// The firmware has no place for more harvested columns: it fills columns 16 down to 10 with them.
pub(super) const MOST_HARVESTED_COLUMNS: u32 = 7;

/// The tables of all NIUs of one NoC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Translation {
    pub(super) x: [u8; ENTRIES],
    pub(super) y: [u8; ENTRIES],
    pub(super) keep_x_rows: u32,
    pub(super) keep_y_columns: u32,
}

impl Translation {
    /// The tables of NoC 0 and NoC 1.
    pub(super) fn new(harvesting: Harvesting) -> [Self; 2] {
        let noc0 = Self::noc0(harvesting);
        let mut noc1 = noc0.clone();
        // NoC 1 counts from the opposite corner.
        noc1.x = noc1.x.map(|x| GRID_X as u8 - 1 - x);
        noc1.y = noc1.y.map(|y| GRID_Y as u8 - 1 - y);
        [noc0, noc1]
    }

    fn noc0(harvesting: Harvesting) -> Self {
        let identity = |size: u32| std::array::from_fn(|i| if i < size as usize { i as u8 } else { 0 });
        let (mut x, mut y): ([u8; ENTRIES], [u8; ENTRIES]) = (identity(GRID_X), identity(GRID_Y));
        let gone = DIE_COLUMNS.into_iter().filter(|&column| !harvesting.has_column(column));
        for (place, column) in TENSIX_COLUMNS.into_iter().zip(harvesting.columns()) {
            x[usize::from(place)] = column;
        }
        for (place, column) in TENSIX_COLUMNS.into_iter().rev().zip(gone) {
            x[usize::from(place)] = column;
        }
        let bank_gone = harvesting.dram_bank().map(usize::from);
        let half = DRAM_ROWS.len();
        let (west, east) = (DRAM_COLUMNS[0], DRAM_COLUMNS[1]);
        (x[DRAM_X], x[DRAM_X + 1]) = if bank_gone.is_some_and(|b| b < half) { (east, west) } else { (west, east) };
        let last = bank_gone.map(|b| b % half);
        let rows = (0..half).filter(|&row| Some(row) != last).chain(last).flat_map(|row| DRAM_ROWS[row]);
        for (place, row) in y[DRAM_Y..].iter_mut().zip(rows) {
            *place = row;
        }
        x[usize::from(board::PCIE.x)] = board::PCIE_PHYSICAL.x;
        y[usize::from(board::PCIE.y)] = board::PCIE_PHYSICAL.y;
        y[ETHERNET_Y] = grid::ETHERNET_ROW;
        for (place, column) in x[ETHERNET_X..].iter_mut().zip(ethernet_columns(harvesting.ethernet)) {
            *place = column;
        }
        for (place, tile) in y[L2CPU_Y..].iter_mut().zip(grid::L2CPU_TILES) {
            *place = tile.y;
        }
        y[SECURITY_Y] = grid::SECURITY_TILE.y;
        Self { x, y, keep_x_rows: KEEP_X_ROWS, keep_y_columns: 0 }
    }

    /// The coordinates of this NoC that software's `xy` mean, `None` beyond the tables.
    pub(super) fn apply(&self, xy: NocXy) -> Option<NocXy> {
        let (x, y) = (self.x.get(usize::from(xy.x))?, self.y.get(usize::from(xy.y))?);
        let keeps = |mask: u32, bit: u8| mask >> bit & 1 != 0;
        Some(NocXy::new(
            if keeps(self.keep_x_rows, xy.y) { xy.x } else { *x },
            if keeps(self.keep_y_columns, xy.x) { xy.y } else { *y },
        ))
    }

    /// True for the offset of a register that holds part of a translation.
    pub(super) fn is_made_of(off: u32) -> bool {
        (noc::X_TABLE..noc::ID_LOGICAL).contains(&off)
            || [noc::TRANSLATE_COL_MASK, noc::TRANSLATE_ROW_MASK].contains(&off)
    }

    /// The translation that the configuration registers of an NIU hold.
    pub(super) fn from_registers(config: &[u32]) -> Self {
        let register = |off: u32| config.get(((off - noc::CFG_BASE) / 4) as usize).copied().unwrap_or(0);
        let table = |first: u32| {
            core::array::from_fn(|i| {
                let word = register(first + 4 * (i / ENTRIES_PER_WORD) as u32);
                (word >> (i % ENTRIES_PER_WORD * ENTRY_BITS) & ((1 << ENTRY_BITS) - 1)) as u8
            })
        };
        Self {
            x: table(noc::X_TABLE),
            y: table(noc::Y_TABLE),
            keep_x_rows: register(noc::TRANSLATE_ROW_MASK),
            keep_y_columns: register(noc::TRANSLATE_COL_MASK),
        }
    }

    /// Registers of the X and the Y table.
    pub(super) fn words(&self) -> [[u32; TABLE_WORDS]; 2] {
        [&self.x, &self.y].map(|table| {
            let mut words = [0; TABLE_WORDS];
            for (i, &entry) in table.iter().enumerate() {
                words[i / ENTRIES_PER_WORD] |= u32::from(entry) << (i % ENTRIES_PER_WORD * ENTRY_BITS);
            }
            words
        })
    }
}

/// The columns of the channels that get coordinates: all but the last harvested one of channels
/// 4..6 and of channels 7..9.
fn ethernet_columns(gone: u16) -> impl Iterator<Item = u8> {
    let last_of = |channels: core::ops::RangeInclusive<usize>| channels.rev().find(|&i| gone & 1 << i != 0);
    let skipped = [last_of(4..=6), last_of(7..=9)];
    let channels = (0..DIE_COLUMNS.len()).filter(move |&i| !skipped.contains(&Some(i)));
    channels.take(ETHERNET_COUNT).map(|i| DIE_COLUMNS[i])
}

/// The translated coordinates that firmware prefers for the tile at NoC 0 coordinates `at`; `at`
/// itself where there are none.
pub(super) fn preferred(noc0: &Translation, at: NocXy, site: Site) -> NocXy {
    let entry = |table: &[u8], range: core::ops::Range<usize>, value: u8| {
        let found = table.get(range.clone()).and_then(|part| part.iter().position(|&v| v == value));
        found.map(|i| (range.start + i) as u8)
    };
    let found = match site {
        Site::Tensix => entry(&noc0.x, 0..GRID_X as usize, at.x).map(|x| NocXy::new(x, at.y)),
        Site::Dram { .. } => {
            let (x, y) = (entry(&noc0.x, DRAM_X..DRAM_X + 2, at.x), entry(&noc0.y, DRAM_Y..DRAM_Y + 12, at.y));
            x.zip(y).map(|(x, y)| NocXy::new(x, y))
        }
        Site::Ethernet { .. } => entry(&noc0.x, ETHERNET_X..ENTRIES, at.x).map(|x| NocXy::new(x, ETHERNET_Y as u8)),
        Site::Pcie { .. } if at == board::PCIE_PHYSICAL => Some(board::PCIE),
        Site::L2Cpu { index } => Some(NocXy::new(at.x, L2CPU_Y as u8 + index)),
        Site::Security => Some(NocXy::new(at.x, SECURITY_Y as u8)),
        Site::Pcie { .. } | Site::Arc | Site::Empty => None,
    };
    found.unwrap_or(at)
}

/// The broadcast opt-out masks of columns and rows, in the coordinates of NoC 1 when `mirrored`:
/// only Tensix columns that work receive.
pub(super) fn opt_out(harvesting: Harvesting, mirrored: bool) -> [u32; 2] {
    let mask = |size: u32, receives: &dyn Fn(u8) -> bool| {
        let bit = |v: u32| 1u32 << if mirrored { size - 1 - v } else { v };
        (0..size).filter(|&v| !receives(v as u8)).fold(0, |mask, v| mask | bit(v))
    };
    let rows = grid::TENSIX_ROW_FIRST..=grid::TENSIX_ROW_LAST;
    [mask(GRID_X, &|x| harvesting.has_column(x)), mask(GRID_Y, &|y| rows.contains(&y))]
}

const _: () = {
    assert!(ENTRIES_PER_WORD * ENTRY_BITS <= 32 && TABLE_WORDS * ENTRIES_PER_WORD >= ENTRIES);
    assert!(DRAM_X + 2 == board::PCIE.x as usize && board::PCIE.x as usize + 1 == ETHERNET_X);
    assert!(DRAM_Y + 12 == board::PCIE.y as usize && L2CPU_Y + grid::L2CPU_TILES.len() == SECURITY_Y);
    assert!(noc::X_TABLE + 4 * TABLE_WORDS as u32 == noc::Y_TABLE);
    assert!(noc::Y_TABLE + 4 * TABLE_WORDS as u32 == noc::ID_LOGICAL);
};
