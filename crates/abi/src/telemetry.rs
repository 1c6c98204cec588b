//! The ARC's telemetry table, which a driver reads at start-up.
//!
//! Follows facts ("Harvested DRAM bank"); tags are those of tt-umd `types/telemetry.hpp`, addresses those of tt-kmd `blackhole.c`. The
//! table: version (u32), number of entries (u32), one word per entry (tag in the low half, index of the data word in the high
//! half), then the data words.

/// First address of the ARC's peripherals in its tile's NoC address space (tt-umd `ARC_NOC_XBAR_ADDRESS_START`).
pub const APB_BASE: u64 = 0x8000_0000;
/// `NIU_CFG_0` of the ARC tile's NIU, which a driver reads to learn whether coordinates are translated (tt-umd `NIU_CFG_NOC0_ARC_ADDR`,
/// `NIU_CFG_NOC1_ARC_ADDR`).
pub const NIU_CFG: [u64; 2] = [0x8005_0100, 0x8005_8100];

/// Scratch RAM word `n` of the reset unit, in the ARC tile's NoC address space (tt-kmd `RESET_SCRATCH`).
pub const fn scratch_ram(n: u64) -> u64 {
    0x8003_0400 + 4 * n
}
/// Scratch RAM word that holds the boot status.
pub const BOOT_STATUS: u64 = scratch_ram(2);
/// Scratch RAM word that holds the address of the data words (tt-kmd `ARC_TELEMETRY_DATA`).
pub const DATA_POINTER: u64 = scratch_ram(12);
/// Scratch RAM word that holds the address of the table (tt-kmd `ARC_TELEMETRY_PTR`).
pub const TABLE_POINTER: u64 = scratch_ram(13);
/// First address of the ARC's shared memory; the table must lie in it (facts' sources, `CSM_START`).
pub const CSM_BASE: u64 = 0x1000_0000;
/// Bytes of the ARC's shared memory (WormholeB0/ARCTile/README.md).
pub const CSM_BYTES: u64 = 512 << 10;
/// Low three bits of [`BOOT_STATUS`] when the firmware runs and takes messages (tt-umd, start-up wait).
pub const BOOT_STATUS_READY: u32 = 5;
/// Most entries that a reader should believe; the public tag list has 65.
pub const MAX_ENTRIES: u32 = 256;

/// Offset of the number of entries.
pub const ENTRIES: u64 = 4;
/// Offset of the first entry.
pub const FIRST_ENTRY: u64 = 8;

/// Tags of entries.
pub mod tag {
    /// High half of the board's serial number; its bits 4.. are the product number.
    pub const BOARD_ID_HIGH: u16 = 1;
    /// Low half of the board's serial number.
    pub const BOARD_ID_LOW: u16 = 2;
    /// AI clock in MHz.
    pub const AICLK: u16 = 14;
    /// AXI clock in MHz.
    pub const AXICLK: u16 = 15;
    /// ARC clock in MHz.
    pub const ARCCLK: u16 = 16;
    /// Two bits per GDDR bank; 1 means trained.
    pub const GDDR_STATUS: u16 = 22;
    /// GDDR transfer rate in MT/s.
    pub const GDDR_SPEED: u16 = 23;
    /// Version of the whole flash content, one byte per part.
    pub const FLASH_BUNDLE_VERSION: u16 = 28;
    /// Mask of enabled Tensix columns, in the order of [`super::TENSIX_COLUMN_ORDER`].
    pub const ENABLED_TENSIX_COL: u16 = 34;
    /// Mask of enabled Ethernet tiles.
    pub const ENABLED_ETH: u16 = 35;
    /// Mask of enabled GDDR banks.
    pub const ENABLED_GDDR: u16 = crate::board::TAG_GDDR_ENABLED;
    /// Mask of enabled L2CPU tiles.
    pub const ENABLED_L2CPU: u16 = 37;
    /// Two bits per PCIe tile; 1 means endpoint.
    pub const PCIE_USAGE: u16 = 38;
    /// 1 when the NoCs translate coordinates.
    pub const NOC_TRANSLATION: u16 = 40;
}

/// Physical column of each bit of the Tensix column mask (tt-umd `HARVESTING_NOC_LOCATIONS`).
pub const TENSIX_COLUMN_ORDER: [u8; 14] = [1, 16, 2, 15, 3, 14, 4, 13, 5, 12, 6, 11, 7, 10];

/// Product number of a P100A (tt-umd, board types).
pub const PRODUCT_P100A: u32 = 0x43;
/// Product number of a P150B (tt-umd, board types).
pub const PRODUCT_P150B: u32 = 0x41;

const _: () = assert!(TABLE_POINTER == crate::board::ARC_SCRATCH_RAM_13);
