//! Boards as records: which tiles a card has and where dispatch runs.
//!
//! Follows the seed ("board layout"), the original's `device.py` and tt-umd's public tables
//! (`cluster_descriptor_types.hpp`, `tests/cluster_descriptor_examples`). Coordinates are
//! translated unless they say physical.

use crate::convert::{u8_of, u32_of};
use crate::grid;
use crate::noc::NocXy;

pub use crate::grid::{DRAM_BANKS, DRAM_PORTS};

/// First row of Tensix tiles.
pub const WORKER_Y_FIRST: u8 = grid::TENSIX_ROW_FIRST;
/// Last row of Tensix tiles.
pub const WORKER_Y_LAST: u8 = grid::TENSIX_ROW_LAST;
/// The PCIe tile (seed: absolute, not mirrored on NoC 1).
pub const PCIE: NocXy = NocXy::new(19, 24);
/// The PCIe tile in use, in NoC 0 coordinates; the other one is idle (tt-umd's descriptors of P100
/// and P150 cards, `pcie_harvesting_mask`).
pub const PCIE_PHYSICAL: NocXy = grid::PCIE_TILES[0];
/// The ARC tile, which keeps its NoC 0 coordinates (tt-umd `types/telemetry.hpp`).
pub const ARC: NocXy = grid::ARC_TILE;
/// Bytes of one DRAM bank.
pub const DRAM_BANK_BYTES: u64 = 1 << 32;
/// The port that each bank's traffic uses, per NoC (seed's system, bank table).
pub const DRAM_BANK_PORT: [[u8; 2]; DRAM_BANKS] = [[2, 1], [0, 1], [0, 1], [0, 1], [2, 1], [2, 1], [2, 1], [2, 1]];
/// AI clock in MHz (measured: 1343..1350, docs/sources.md).
pub const AICLK_MHZ: u32 = 1350;
/// Telemetry: byte offset of scratch RAM 13 in the ARC tile's NoC address space (tt-umd
/// `blackhole_implementation.h`).
pub const ARC_SCRATCH_RAM_13: u64 = 0x8003_0434;
/// Telemetry tag of the mask of enabled GDDR banks (tt-umd `types/telemetry.hpp`).
pub const TAG_GDDR_ENABLED: u16 = 36;

/// A kind of card: one row, from which its columns, telemetry, descriptors and names
/// follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoardSpec {
    /// The name that command lines and reports use.
    pub name: &'static str,
    /// Product numbers, which stand in the board id from bit 36 on (tt-umd `board_upi_map`; tt-kmd
    /// has the letters). The first is what a simulated card shows.
    pub products: &'static [u32],
    /// Its chips. Simulated is the first; the others are used when there are meshes.
    pub chips: &'static [ChipSpec],
}

/// One chip of a kind of card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChipSpec {
    /// The units that are fused off, the same on every simulated card of a kind. Real cards differ
    /// in which they are, not in how many.
    pub harvesting: Harvesting,
    /// Tensix columns, in the order of [`grid::DIE_COLUMNS`], that work and that the card's firmware
    /// switches off all the same: of every P150 two since bundle 19.5.0, those with the highest
    /// numbers on the die (tt-system-firmware, `lib/tenstorrent/bh_arc/harvesting.c`; tt-umd
    /// expects two since its pull request 1942).
    pub left_out: u16,
    /// Index in [`grid::PCIE_TILES`] of the PCIe tile in use.
    pub pcie: u8,
}

/// All kinds of cards. To add one, add a row.
///
/// How many units a kind lacks follows tt-umd (`expected_tensix_harvested_units_map` and its like),
/// except that the P150 is the whole chip of BlackholeA0/README.md, which its own firmware does not
/// show ([`ChipSpec::left_out`]).
pub static SPECS: [BoardSpec; 3] = [
    // Two Tensix columns, one DRAM bank and all Ethernet tiles gone (BlackholeA0/README.md).
    BoardSpec {
        name: "p100",
        // p100a, p100.
        products: &[0x43, 0x36],
        chips: &[ChipSpec {
            harvesting: Harvesting { tensix: 1 << 1 | 1 << 3, dram: 1 << 7, ethernet: Harvesting::ALL_ETHERNET },
            left_out: 0,
            pcie: 0,
        }],
    },
    // The Ethernet channels are those of tt-umd's description of such a card
    // (`eth_harvesting_mask` 288).
    BoardSpec {
        name: "p150",
        // p150b, p150a, p150c.
        products: &[0x41, 0x40, 0x42],
        chips: &[ChipSpec {
            harvesting: Harvesting { tensix: 0, dram: 0, ethernet: 1 << 5 | 1 << 8 },
            left_out: 1 << 12 | 1 << 13,
            pcie: 0,
        }],
    },
    // The card of tt-umd's `blackhole_P300_both_mmio.yaml`. Its Tensix masks count from left to
    // right: 8320 are columns 10 and 16, 272 are columns 5 and 11.
    BoardSpec {
        name: "p300",
        // p300a, p300b, p300c.
        products: &[0x45, 0x44, 0x46],
        chips: &[
            ChipSpec {
                harvesting: Harvesting { tensix: 1 << 13 | 1 << 1, dram: 0, ethernet: 1 << 5 | 1 << 8 },
                left_out: 0,
                pcie: 0,
            },
            ChipSpec {
                harvesting: Harvesting { tensix: 1 << 8 | 1 << 11, dram: 0, ethernet: 1 << 5 | 1 << 8 },
                left_out: 0,
                pcie: 1,
            },
        ],
    },
];

impl BoardSpec {
    /// The first chip of such a card, with the units that the row says.
    pub const fn board(&'static self) -> Board {
        Board { spec: self, name: self.name, harvesting: self.chips[0].harvesting }
    }
    /// The kind of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SPECS.iter().find(|spec| spec.name == name)
    }
    /// The kind with that product number.
    pub fn of_product(product: u32) -> Option<&'static Self> {
        SPECS.iter().find(|spec| spec.products.contains(&product))
    }
}

/// A board: a kind of card, and what the chip of this one lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Board {
    spec: &'static BoardSpec,
    name: &'static str,
    harvesting: Harvesting,
}

impl Board {
    /// Two Tensix columns and one DRAM bank harvested.
    pub const P100: Self = SPECS[0].board();
    /// The whole chip.
    pub const P150: Self = SPECS[1].board();
    /// Two chips, of which this is the first; two Tensix columns of each are harvested.
    pub const P300: Self = SPECS[2].board();
    /// One of each kind.
    pub const ALL: [Self; 3] = [Self::P100, Self::P150, Self::P300];

    /// A card of kind `spec` by the name `name`, which lacks other units than the row says.
    ///
    /// # Errors
    /// A chip that has no place in the coordinate translation, or nothing to run programs on.
    pub const fn harvested(
        spec: &'static BoardSpec,
        name: &'static str,
        harvesting: Harvesting,
    ) -> Result<Self, HarvestingError> {
        match harvesting.check() {
            Ok(()) => Ok(Self { spec, name, harvesting }),
            Err(error) => Err(error),
        }
    }
    /// The kind of card.
    pub const fn spec(self) -> &'static BoardSpec {
        self.spec
    }
    /// The name that command lines and reports use.
    pub const fn name(self) -> &'static str {
        self.name
    }
    /// The product number that it shows.
    pub const fn product(self) -> u32 {
        self.spec.products[0]
    }
    /// The board as the card's own firmware shows it to programs that know only silicon: without
    /// [`ChipSpec::left_out`]. Tilework's firmware runs on all columns that work.
    pub const fn by_firmware(self) -> Self {
        let Harvesting { tensix, dram, ethernet } = self.harvesting;
        let harvesting = Harvesting { tensix: tensix | self.spec.chips[0].left_out, dram, ethernet };
        Self { harvesting, ..self }
    }
    /// Whether `other` has the same chip, whatever its name is.
    pub fn has_chip_of(self, other: Self) -> bool {
        self.spec == other.spec && self.harvesting == other.harvesting
    }
    /// Columns that hold Tensix tiles, in translated coordinates: these are numbered as if the
    /// harvested ones came last.
    pub const fn worker_columns(self) -> &'static [u8] {
        const ALL: &[u8; grid::TENSIX_COLUMNS.len()] = &grid::TENSIX_COLUMNS;
        let gone = self.harvesting.tensix.count_ones() as usize;
        ALL.split_at(ALL.len() - gone).0
    }
    /// Number of Tensix tiles, dispatch cores included.
    pub const fn tensix_count(self) -> usize {
        self.worker_columns().len() * (WORKER_Y_LAST - WORKER_Y_FIRST + 1) as usize
    }
    /// The column of the two dispatch cores: the last (seed, "board layout").
    pub const fn dispatch_column(self) -> u8 {
        let columns = self.worker_columns();
        columns[columns.len() - 1]
    }
    /// The core that runs the prefetcher.
    pub const fn prefetch_core(self) -> NocXy {
        NocXy::new(self.dispatch_column(), WORKER_Y_FIRST)
    }
    /// The core that runs the dispatcher.
    pub const fn dispatch_core(self) -> NocXy {
        NocXy::new(self.dispatch_column(), WORKER_Y_FIRST + 1)
    }
    /// All Tensix tiles, column by column (x, then y), dispatch cores included.
    pub fn tensix_tiles(self) -> impl Iterator<Item = NocXy> {
        self.worker_columns().iter().flat_map(|&x| (WORKER_Y_FIRST..=WORKER_Y_LAST).map(move |y| NocXy::new(x, y)))
    }
    /// The worker tiles under fast dispatch: all Tensix tiles but the two dispatch cores, in the
    /// order of [`Board::tensix_tiles`].
    pub fn workers(self) -> impl Iterator<Item = NocXy> {
        self.tensix_tiles().filter(move |&c| c != self.prefetch_core() && c != self.dispatch_core())
    }
    /// True when `xy` is a Tensix tile of this board.
    pub fn is_tensix(self, xy: NocXy) -> bool {
        (WORKER_Y_FIRST..=WORKER_Y_LAST).contains(&xy.y) && self.worker_columns().contains(&xy.x)
    }
    /// The units of the board's chip that are fused off.
    pub const fn harvesting(self) -> Harvesting {
        self.harvesting
    }
    /// The physical DRAM bank that is harvested, if any.
    pub const fn harvested_dram(self) -> Option<u8> {
        self.harvesting.dram_bank()
    }
    /// The DRAM banks in logical order.
    pub const fn dram(self) -> DramMap {
        DramMap::new(self.harvested_dram())
    }
}

/// Harvesting that no board can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HarvestingError {
    /// Bits beyond the units of the chip.
    NoSuchUnit,
    /// Every Tensix column is gone.
    NoTensix,
    /// More than one DRAM bank is gone: the coordinate translation has a place for one
    /// (tt-umd refuses such a chip, too).
    Dram,
}

impl core::fmt::Display for HarvestingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoSuchUnit => "units that the chip does not have are harvested",
            Self::NoTensix => "all Tensix columns are harvested, at least one must work",
            Self::Dram => "more than one DRAM bank is harvested, at most one may be",
        })
    }
}

/// The units of a chip that are fused off for yield: a set bit means gone, as in tt-umd's
/// harvesting masks and the other way round than in the telemetry's masks of what is enabled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Harvesting {
    /// Tensix columns, in the order of [`grid::DIE_COLUMNS`].
    pub tensix: u16,
    /// Physical DRAM banks.
    pub dram: u8,
    /// Ethernet channels.
    pub ethernet: u16,
}

impl Harvesting {
    /// Nothing is gone.
    pub const NONE: Self = Self { tensix: 0, dram: 0, ethernet: 0 };
    /// The mask of all Tensix columns.
    pub const ALL_TENSIX: u16 = (1 << grid::DIE_COLUMNS.len()) - 1;
    /// The mask of all Ethernet channels.
    pub const ALL_ETHERNET: u16 = (1 << grid::ETHERNET_TILES) - 1;

    /// Checks that a board can have it.
    ///
    /// # Errors
    /// It cannot.
    pub const fn check(self) -> Result<(), HarvestingError> {
        if self.tensix & !Self::ALL_TENSIX != 0 || self.ethernet & !Self::ALL_ETHERNET != 0 {
            return Err(HarvestingError::NoSuchUnit);
        }
        if self.tensix == Self::ALL_TENSIX {
            return Err(HarvestingError::NoTensix);
        }
        if self.dram.count_ones() > 1 { Err(HarvestingError::Dram) } else { Ok(()) }
    }

    /// True when the Tensix tiles in NoC 0 column `x` work.
    pub const fn has_column(self, x: u8) -> bool {
        let mut bit = 0;
        while bit < grid::DIE_COLUMNS.len() {
            if grid::DIE_COLUMNS[bit] == x {
                return self.tensix & 1 << bit == 0;
            }
            bit += 1;
        }
        false
    }
    /// The NoC 0 columns whose Tensix tiles work, from left to right.
    pub fn columns(self) -> impl Iterator<Item = u8> + Clone {
        grid::TENSIX_COLUMNS.into_iter().filter(move |&x| self.has_column(x))
    }
    /// True when what stands at `site` works.
    pub const fn has(self, x: u8, site: grid::Site) -> bool {
        match site {
            grid::Site::Tensix => self.has_column(x),
            grid::Site::Dram { bank, .. } => self.dram & 1 << bank == 0,
            grid::Site::Ethernet { channel } => self.ethernet & 1 << channel == 0,
            _ => true,
        }
    }
    /// The first DRAM bank that is gone.
    pub const fn dram_bank(self) -> Option<u8> {
        if self.dram == 0 { None } else { Some(u8_of(self.dram.trailing_zeros())) }
    }
}

impl core::fmt::Display for Harvesting {
    /// The units that are gone, by the numbers that users know: NoC 0 columns, banks, channels.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if *self == Self::NONE {
            return f.write_str("nothing");
        }
        let columns = grid::TENSIX_COLUMNS.into_iter().filter(|&x| !self.has_column(x));
        let banks = (0..u8_of(u32_of(grid::DRAM_BANKS))).filter(|bank| self.dram & 1 << bank != 0);
        let channels = (0..u8_of(u32_of(grid::ETHERNET_TILES))).filter(|channel| self.ethernet & 1 << channel != 0);
        let mut between = "";
        let mut list = |what: &str, units: &mut dyn Iterator<Item = u8>| -> core::fmt::Result {
            let Some(first) = units.next() else { return Ok(()) };
            write!(f, "{between}{what} {first}")?;
            between = ", ";
            for unit in units {
                write!(f, " {unit}")?;
            }
            Ok(())
        };
        list("Tensix columns", &mut { columns })?;
        list("DRAM bank", &mut { banks })?;
        list("Ethernet channels", &mut { channels })
    }
}

/// One DRAM bank in logical order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DramBank {
    /// Physical bank.
    pub physical: u8,
    /// Translated coordinates of the first of the three ports; the others follow in y.
    pub first_port: NocXy,
}

/// The logical DRAM banks of a chip with at most one harvested bank.
///
/// Logical banks leave out the harvested one. The translated column 17 holds the four banks of the
/// whole column and 18 the three (or four) of the other; within column 17 the bank that mirrors the
/// harvested one comes last (seed's system, bank table).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DramMap {
    banks: [DramBank; DRAM_BANKS],
    count: usize,
}

impl DramMap {
    /// The map for a harvested physical bank.
    pub const fn new(harvested: Option<u8>) -> Self {
        const HALF: u8 = 4;
        let mut banks = [DramBank { physical: 0, first_port: NocXy::new(17, 12) }; DRAM_BANKS];
        let mut count = 0;
        let mut slots = [0u8; 2]; // next row group in columns 17 and 18
        let mut physical = 0;
        // The column with all four banks is translated to x = 17.
        let whole_is_left = match harvested {
            Some(h) => h >= HALF,
            None => true,
        };
        while (physical as usize) < DRAM_BANKS {
            let gone = matches!(harvested, Some(h) if h == physical);
            if !gone {
                let in_whole = (physical < HALF) == whole_is_left;
                let column = if in_whole { 0 } else { 1 };
                let mirror = match harvested {
                    Some(h) => in_whole && physical % HALF == h % HALF,
                    None => false,
                };
                let slot = if mirror { HALF - 1 } else { slots[column] };
                if !mirror {
                    slots[column] += 1;
                }
                banks[count] = DramBank { physical, first_port: NocXy::new(17 + u8_of(u32_of(column)), 12 + 3 * slot) };
                count += 1;
            }
            physical += 1;
        }
        Self { banks, count }
    }
    /// The logical banks.
    pub fn banks(&self) -> &[DramBank] {
        &self.banks[..self.count]
    }
    /// The translated coordinates that traffic of NoC `noc` to logical bank `bank` uses.
    pub fn port(&self, bank: usize, noc: usize) -> NocXy {
        let first = self.banks()[bank].first_port;
        NocXy::new(first.x, first.y + DRAM_BANK_PORT[bank][noc])
    }
}

// Seed, "board layout": 12 and 14 columns of 10 rows; the dispatch cores in the last column; 7 and
// 8 banks. tt-umd: a P300 lacks two columns and no bank.
const _: () = {
    assert!(Board::P100.tensix_count() == 120 && Board::P150.tensix_count() == 140);
    assert!(Board::P100.dispatch_column() == 14 && Board::P150.dispatch_column() == 16);
    let mut i = 0;
    while i < SPECS.len() {
        let (spec, board) = (&SPECS[i], Board::ALL[i]);
        assert!(board.dram().count == [7, 8, 8][i]);
        assert!(board.worker_columns().len() == [12, 14, 12][i]);
        assert!(grid::ETHERNET_TILES - board.harvesting().ethernet.count_ones() as usize == [0, 12, 12][i]);
        assert!(!spec.products.is_empty() && spec.chips.len() == [1, 1, 2][i]);
        let mut chip = 0;
        while chip < spec.chips.len() {
            let ChipSpec { harvesting, left_out, .. } = spec.chips[chip];
            assert!(harvesting.check().is_ok() && harvesting.tensix & left_out == 0);
            chip += 1;
        }
        // tt-umd: every kind of card lacks two Tensix columns.
        assert!(board.by_firmware().worker_columns().len() == 12);
        assert!(board.by_firmware().harvesting.check().is_ok());
        // The simulated PCIe tile is the first, which is what the first chip of each card uses.
        let pcie = grid::PCIE_TILES[spec.chips[0].pcie as usize];
        assert!(pcie.x == PCIE_PHYSICAL.x && pcie.y == PCIE_PHYSICAL.y);
        i += 1;
    }
    assert!(PCIE.encode() == 24 << 6 | 19);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Every chip with one bank gone: seven different banks, four of them in column 17, each port
    /// at its own coordinates.
    #[test]
    fn any_one_bank_may_be_harvested() {
        for harvested in 0..u8_of(u32_of(DRAM_BANKS)) {
            let map = DramMap::new(Some(harvested));
            let banks = map.banks();
            assert_eq!(banks.len(), 7);
            assert!(banks.iter().all(|b| b.physical != harvested));
            for (i, a) in banks.iter().enumerate() {
                assert!(banks[..i].iter().all(|b| b.physical < a.physical && b.first_port != a.first_port));
                assert_eq!(a.first_port.y % 3, 0);
                assert!((12..24).contains(&a.first_port.y));
            }
            assert_eq!(banks.iter().filter(|b| b.first_port.x == 17).count(), 4);
            // The whole column's bank that mirrors the harvested one comes last.
            let mirror = banks.iter().find(|b| b.physical % 4 == harvested % 4).expect("the other column is whole");
            assert_eq!(mirror.first_port, NocXy::new(17, 21));
        }
    }

    /// The columns that release notes of bundle 19.5 and `harvesting.c` give for a whole chip.
    #[test]
    fn firmware_leaves_two_columns_of_a_p150_out() {
        let shown = Board::P150.by_firmware();
        assert!(!shown.harvesting().has_column(7) && !shown.harvesting().has_column(10));
        assert_eq!((shown.tensix_count(), shown.dispatch_column(), shown.name()), (120, 14, "p150"));
        assert!(Board::P100.by_firmware() == Board::P100 && Board::P300.by_firmware() == Board::P300);
        assert!(!shown.has_chip_of(Board::P150));
    }

    /// Worked by hand from the seed's system's bank table for a chip without bank 1.
    #[test]
    fn the_map_without_bank_1() {
        let map = DramMap::new(Some(1));
        let expected = [(0, 18, 12), (2, 18, 15), (3, 18, 18), (4, 17, 12), (5, 17, 21), (6, 17, 15), (7, 17, 18)];
        let found: Vec<_> = map.banks().iter().map(|b| (b.physical, b.first_port.x, b.first_port.y)).collect();
        assert_eq!(found, expected);
        assert_eq!(map.port(0, 0), NocXy::new(18, 14));
        assert_eq!(map.port(0, 1), NocXy::new(18, 13));
    }

    extern crate std;
    use std::vec::Vec;
}
