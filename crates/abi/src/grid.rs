//! The 17 x 12 grid of a Blackhole in NoC 0 coordinates: which tile stands where, before any
//! harvesting.
//!
//! Counts per kind are those of BlackholeA0/README.md; positions are those of the public driver
//! (tt-umd `blackhole_implementation.hpp`), which sees the same grid on every card. What a board
//! has of it, and under which coordinates firmware knows it, is in [`crate::board`].

use core::ops::Range;

use crate::convert::{u8_of, u32_of};
use crate::noc::{GRID_X, GRID_Y, NocXy};

/// Columns that hold Tensix tiles, from left to right (tt-umd `T6_X_LOCATIONS`).
pub const TENSIX_COLUMNS: [u8; 14] = [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16];
/// First row of Tensix tiles (tt-umd `T6_Y_LOCATIONS`).
pub const TENSIX_ROW_FIRST: u8 = 2;
/// Last row of Tensix tiles.
pub const TENSIX_ROW_LAST: u8 = 11;
/// The columns in the order in which they lie on the die, which is the order of Ethernet channels
/// and of the bits of fuse masks (tt-umd `HARVESTING_NOC_LOCATIONS`, `ETH_CORES_NOC0`).
pub const DIE_COLUMNS: [u8; 14] = [1, 16, 2, 15, 3, 14, 4, 13, 5, 12, 6, 11, 7, 10];
/// Ethernet tiles: one in each Tensix column, channel `i` in column [`DIE_COLUMNS`]`[i]`.
pub const ETHERNET_TILES: usize = DIE_COLUMNS.len();
/// The row of the Ethernet tiles (tt-umd `ETH_CORES_NOC0`).
pub const ETHERNET_ROW: u8 = 1;
/// Bytes of an Ethernet tile's L1 (BlackholeA0/EthernetTile/README.md).
pub const ETHERNET_L1_BYTES: u32 = 512 << 10;
/// The registers of an Ethernet tile without those of its NIUs, from tile control to the Ethernet
/// MAC (EthernetTile/BabyRISCV/README.md).
pub const ETHERNET_REGISTERS: Range<u64> = 0xFFB1_2000..0xFFBB_0000;
/// `eth_status_t` in an Ethernet tile's L1: a word each for state, port and training (tt-umd
/// `blackhole_eth.hpp`).
pub const ETHERNET_STATUS: u64 = 0x7_CC00;
/// The version of the base firmware in an Ethernet tile's L1: the word below 0x7CFC0 (same file).
pub const ETHERNET_FIRMWARE_VERSION: u64 = 0x7_CFBC;
/// TLB window configuration of an L2CPU tile and the registers beside it, in the x280's physical
/// addresses, which the NoC sees unchanged (L2CPUTile/TLBWindows.md: 0x0000_2??0_0000).
pub const L2CPU_REGISTERS: Range<u64> = 0x2000_0000..0x3000_0000;
/// Registers of an L2CPU tile beside the cores, as the NoC sees them: 0xFFFF_F7FE_FFF1_0400
/// suppresses instruction fetch (L2CPUTile/MemoryMap.md, as public software for these tiles cites
/// it).
pub const L2CPU_TILE_REGISTERS: Range<u64> = 0xFFFF_F7FE_FFF0_0000..0xFFFF_F7FF_0000_0000;
/// DRAM banks of the chip.
pub const DRAM_BANKS: usize = 8;
/// DRAM tiles, and so NoC ports, of one bank.
pub const DRAM_PORTS: usize = 3;
/// Columns of the DRAM tiles: banks 0..3, banks 4..7.
pub const DRAM_COLUMNS: [u8; 2] = [0, 9];
/// Rows of the three ports of each bank of a column, port 0 first (tt-umd `DRAM_CORES_NOC0`).
pub const DRAM_ROWS: [[u8; DRAM_PORTS]; DRAM_BANKS / 2] = [[0, 1, 11], [2, 10, 3], [9, 4, 8], [5, 7, 6]];
/// The two PCIe tiles (tt-umd `PCIE_CORES_NOC0`).
pub const PCIE_TILES: [NocXy; 2] = [NocXy::new(2, 0), NocXy::new(11, 0)];
/// The ARC tile (tt-umd `ARC_CORES_NOC0`).
pub const ARC_TILE: NocXy = NocXy::new(8, 0);
/// The security tile (tt-umd `SECURITY_CORES_NOC0`).
pub const SECURITY_TILE: NocXy = NocXy::new(8, 2);
/// The four L2CPU tiles (tt-umd `L2CPU_CORES_NOC0`).
pub const L2CPU_TILES: [NocXy; 4] = [NocXy::new(8, 3), NocXy::new(8, 9), NocXy::new(8, 5), NocXy::new(8, 7)];

/// What stands at a position of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Site {
    /// A Tensix tile.
    Tensix,
    /// A port of a DRAM bank.
    Dram {
        /// Physical bank, 0..7.
        bank: u8,
        /// Port of the bank, 0..2.
        port: u8,
    },
    /// An Ethernet tile.
    Ethernet {
        /// Channel, 0..13.
        channel: u8,
    },
    /// A PCIe tile, by its index in [`PCIE_TILES`].
    Pcie {
        /// 0 or 1.
        index: u8,
    },
    /// The ARC tile.
    Arc,
    /// The security tile.
    Security,
    /// An L2CPU tile, by its index in [`L2CPU_TILES`].
    L2Cpu {
        /// 0..3.
        index: u8,
    },
    /// An empty tile: a router and an NIU with nothing behind (BlackholeA0/NoC/README.md).
    Empty,
}

/// Position of `needle` in `list`.
const fn index_of(list: &[u8], needle: u8) -> Option<u8> {
    let mut i = 0;
    while i < list.len() {
        if list[i] == needle {
            return Some(u8_of(u32_of(i)));
        }
        i += 1;
    }
    None
}

const fn index_of_xy(list: &[NocXy], x: u8, y: u8) -> Option<u8> {
    let mut i = 0;
    while i < list.len() {
        if list[i].x == x && list[i].y == y {
            return Some(u8_of(u32_of(i)));
        }
        i += 1;
    }
    None
}

impl Site {
    /// What stands at column `x` and row `y` of NoC 0; `None` outside the grid.
    pub const fn at(x: u8, y: u8) -> Option<Self> {
        if x as u32 >= GRID_X || y as u32 >= GRID_Y {
            return None;
        }
        if let Some(half) = index_of(&DRAM_COLUMNS, x) {
            let mut bank = 0;
            while bank < DRAM_ROWS.len() {
                if let Some(port) = index_of(&DRAM_ROWS[bank], y) {
                    return Some(Self::Dram { bank: half * 4 + u8_of(u32_of(bank)), port });
                }
                bank += 1;
            }
        }
        if let Some(channel) = index_of(&DIE_COLUMNS, x) {
            if y == ETHERNET_ROW {
                return Some(Self::Ethernet { channel });
            }
            if TENSIX_ROW_FIRST <= y && y <= TENSIX_ROW_LAST {
                return Some(Self::Tensix);
            }
        }
        if let Some(index) = index_of_xy(&PCIE_TILES, x, y) {
            return Some(Self::Pcie { index });
        }
        if let Some(index) = index_of_xy(&L2CPU_TILES, x, y) {
            return Some(Self::L2Cpu { index });
        }
        if ARC_TILE.x == x && ARC_TILE.y == y {
            return Some(Self::Arc);
        }
        if SECURITY_TILE.x == x && SECURITY_TILE.y == y {
            return Some(Self::Security);
        }
        Some(Self::Empty)
    }
}

/// NoC 0 coordinates of port `port` of physical bank `bank`.
pub const fn dram_port(bank: usize, port: usize) -> NocXy {
    NocXy::new(DRAM_COLUMNS[bank / DRAM_ROWS.len()], DRAM_ROWS[bank % DRAM_ROWS.len()][port])
}

/// NoC 0 coordinates of the Ethernet tile of `channel`.
pub const fn ethernet(channel: usize) -> NocXy {
    NocXy::new(DIE_COLUMNS[channel], ETHERNET_ROW)
}

// BlackholeA0/README.md, "Full ASIC": 140 Tensix, 24 DRAM, 4 L2CPU, 14 Ethernet, 2 PCIe, 1 ARC and
// 1 security tile; the rest is empty.
const _: () = {
    let mut count = [0; 8];
    let mut y = 0;
    while y < u8_of(GRID_Y) {
        let mut x = 0;
        while x < u8_of(GRID_X) {
            let kind = match Site::at(x, y) {
                Some(Site::Tensix) => 0,
                Some(Site::Dram { bank, port }) => {
                    let place = dram_port(bank as usize, port as usize);
                    assert!(place.x == x && place.y == y);
                    1
                }
                Some(Site::L2Cpu { .. }) => 2,
                Some(Site::Ethernet { channel }) => {
                    let place = ethernet(channel as usize);
                    assert!(place.x == x && place.y == y);
                    3
                }
                Some(Site::Pcie { .. }) => 4,
                Some(Site::Arc) => 5,
                Some(Site::Security) => 6,
                Some(Site::Empty) => 7,
                None => panic!(),
            };
            count[kind] += 1;
            x += 1;
        }
        y += 1;
    }
    let [tensix, dram, l2cpu, ethernet, pcie, arc, security, empty] = count;
    assert!(tensix == 140 && dram == 24 && l2cpu == 4 && ethernet == 14 && pcie == 2 && arc == 1 && security == 1);
    assert!(empty == 12 + 6);
    assert!(Site::at(u8_of(GRID_X), 0).is_none() && Site::at(0, u8_of(GRID_Y)).is_none());
};
