//! The ARC's telemetry table, which a driver reads at start-up.
//!
//! Tags are those of tt-umd `types/telemetry.hpp`, addresses
//! those of tt-kmd `blackhole.c`. The table: version (u32), number of entries (u32), one word per
//! entry (tag in the low half, index of the data word in the high half), then the data words.

/// First address of the ARC's peripherals in its tile's NoC address space (tt-umd
/// `ARC_NOC_XBAR_ADDRESS_START`).
pub const APB_BASE: u64 = 0x8000_0000;
/// `NIU_CFG_0` of the ARC tile's NIU, which a driver reads to learn whether coordinates are
/// translated (tt-umd `NIU_CFG_NOC0_ARC_ADDR`, `NIU_CFG_NOC1_ARC_ADDR`).
pub const NIU_CFG: [u64; 2] = [0x8005_0100, 0x8005_8100];

/// Scratch RAM word `n` of the reset unit, in the ARC tile's NoC address space (tt-kmd
/// `RESET_SCRATCH`).
const fn scratch_ram(n: u64) -> u64 {
    crate::arc::SCRATCH_RAM + 4 * n
}
/// Scratch RAM word that holds the boot status.
pub const BOOT_STATUS: u64 = scratch_ram(2);
/// Scratch RAM word that holds the address of the message queues' control block (tt-kmd
/// `ARC_MSG_QCB_PTR`, tt-umd `SCRATCH_RAM_11`).
pub const QUEUE_POINTER: u64 = scratch_ram(11);
/// Scratch RAM word that holds the address of the data words (tt-kmd `ARC_TELEMETRY_DATA`).
pub const DATA_POINTER: u64 = scratch_ram(12);
/// Scratch RAM word that holds the address of the table (tt-kmd `ARC_TELEMETRY_PTR`).
pub const TABLE_POINTER: u64 = scratch_ram(13);
/// First address of the ARC's shared memory; the table must lie in it (tt-kmd `blackhole.c`,
/// `CSM_START`).
pub const CSM_BASE: u64 = 0x1000_0000;
/// Bytes of the ARC's shared memory (WormholeB0/ARCTile/README.md).
pub const CSM_BYTES: u64 = 512 << 10;
/// Low three bits of [`BOOT_STATUS`] when the firmware runs and takes messages (tt-umd, start-up
/// wait).
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
    /// Not used on a Blackhole: the masks of what is enabled have tags of their own.
    pub const HARVESTING_STATE: u16 = 4;
    /// Time between two updates in ms.
    pub const UPDATE_TELEM_SPEED: u16 = 5;
    /// Core voltage in mV.
    pub const VCORE: u16 = 6;
    /// Power of the core supply in W.
    pub const TDP: u16 = 7;
    /// Current of the core supply in A.
    pub const TDC: u16 = 8;
    /// Highest (high half) and lowest core voltage in mV.
    pub const VDD_LIMITS: u16 = 9;
    /// Temperature at which the board shuts down, in degrees Celsius.
    pub const THM_LIMIT_SHUTDOWN: u16 = 10;
    /// Temperature of the chip in degrees Celsius, signed 16.16.
    pub const ASIC_TEMPERATURE: u16 = 11;
    /// Temperature of the regulators, signed 16.16; zero where it is not measured.
    pub const VREG_TEMPERATURE: u16 = 12;
    /// Temperature of the board, signed 16.16; zero where it is not measured.
    pub const BOARD_TEMPERATURE: u16 = 13;
    /// AI clock in MHz.
    pub const AICLK: u16 = 14;
    /// AXI clock in MHz.
    pub const AXICLK: u16 = 15;
    /// ARC clock in MHz.
    pub const ARCCLK: u16 = 16;
    /// Clock of L2CPU tile 0 in MHz; tiles 1..3 follow.
    pub const L2CPUCLK0: u16 = 17;
    /// Ethernet heartbeats (low half) and links (high half), a bit a channel.
    pub const ETH_LIVE_STATUS: u16 = 21;
    /// Two bits per GDDR bank; 1 means trained.
    pub const GDDR_STATUS: u16 = 22;
    /// GDDR transfer rate in MT/s.
    pub const GDDR_SPEED: u16 = 23;
    /// Version of the Ethernet tiles' base firmware: major from bit 16, minor from bit 12, patch.
    pub const ETH_FW_VERSION: u16 = 24;
    /// Version of the GDDR controllers' firmware: major in the high half, minor.
    pub const GDDR_FW_VERSION: u16 = 25;
    /// Version of the board manager's application, one byte per part.
    pub const DM_APP_FW_VERSION: u16 = 26;
    /// Version of the board manager's boot loader, one byte per part.
    pub const DM_BL_FW_VERSION: u16 = 27;
    /// Version of the whole flash content, one byte per part.
    pub const FLASH_BUNDLE_VERSION: u16 = 28;
    /// Version of the ARC's firmware, one byte per part.
    pub const CM_FW_VERSION: u16 = 29;
    /// Version of the L2CPU tiles' firmware.
    pub const L2CPU_FW_VERSION: u16 = 30;
    /// Fan speed that is aimed at, in percent.
    pub const FAN_SPEED: u16 = 31;
    /// Counts updates of the telemetry.
    pub const TIMER_HEARTBEAT: u16 = 32;
    /// Number of tags that the firmware knows.
    pub const TELEM_ENUM_COUNT: u16 = 33;
    /// Mask of enabled Tensix columns, in the order of [`crate::grid::DIE_COLUMNS`].
    pub const ENABLED_TENSIX_COL: u16 = 34;
    /// Mask of enabled Ethernet tiles, by channel.
    pub const ENABLED_ETH: u16 = 35;
    /// Mask of enabled GDDR banks.
    pub const ENABLED_GDDR: u16 = crate::board::TAG_GDDR_ENABLED;
    /// Mask of enabled L2CPU tiles, in the order of [`crate::grid::L2CPU_TILES`].
    pub const ENABLED_L2CPU: u16 = 37;
    /// Two bits per PCIe tile; 1 means endpoint.
    pub const PCIE_USAGE: u16 = 38;
    /// 1 when the NoCs translate coordinates.
    pub const NOC_TRANSLATION: u16 = 40;
    /// Fan speed in revolutions per minute.
    pub const FAN_RPM: u16 = 41;
    /// Temperatures of banks 0 and 1, a byte for each bottom and top, in degrees Celsius; the next
    /// three pairs of banks follow.
    pub const GDDR_0_1_TEMP: u16 = 42;
    /// Corrected errors of banks 0 and 1, a byte for each of reads and writes; the next three pairs
    /// of banks follow.
    pub const GDDR_0_1_CORR_ERRS: u16 = 46;
    /// Uncorrected errors, two bits a bank.
    pub const GDDR_UNCORR_ERRS: u16 = 50;
    /// Highest temperature of a bank in degrees Celsius.
    pub const MAX_GDDR_TEMP: u16 = 51;
    /// Which of the board's chips this is.
    pub const ASIC_LOCATION: u16 = 52;
    /// Most power of the board in W.
    pub const BOARD_POWER_LIMIT: u16 = 53;
    /// Power of the board in W.
    pub const INPUT_POWER: u16 = 54;
    /// Most current of the core supply in A.
    pub const TDC_LIMIT_MAX: u16 = 55;
    /// Temperature at which the clock slows down, in degrees Celsius.
    pub const THM_LIMIT_THROTTLE: u16 = 56;
    /// How often the board shut down for its temperature.
    pub const THERM_TRIP_COUNT: u16 = 60;
    /// High half of the chip's number.
    pub const ASIC_ID_HIGH: u16 = 61;
    /// Low half of the chip's number.
    pub const ASIC_ID_LOW: u16 = 62;
    /// Highest AI clock in MHz.
    pub const AICLK_LIMIT_MAX: u16 = 63;
    /// Most power of the core supply in W.
    pub const TDP_LIMIT_MAX: u16 = 64;
    /// Lowest AI clock that is asked for in MHz, and by whom (high half).
    pub const AICLK_ARB_MIN: u16 = 65;
    /// Highest AI clock that is allowed in MHz, and by whom (high half).
    pub const AICLK_ARB_MAX: u16 = 66;
    /// Mask of those who may ask for a lowest AI clock.
    pub const ENABLED_MIN_ARB: u16 = 67;
    /// Mask of those who may limit the AI clock.
    pub const ENABLED_MAX_ARB: u16 = 68;
}

/// Where the product number starts in the high word of the board id (tt-umd,
/// `get_board_type_from_board_id`: bit 36 of the whole).
pub const PRODUCT_SHIFT: u32 = 36 - 32;

const _: () = assert!(TABLE_POINTER == crate::board::ARC_SCRATCH_RAM_13);
