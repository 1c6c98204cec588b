//! The telemetry table: what the card's firmware says about the card.
//!
//! Layout and tags: [`tilework_abi::telemetry`]; which tags there are and what their values look
//! like follows tt-zephyr-platforms `telemetry.c`. Values that the simulator models are true
//! (enabled units, translation, clocks, heartbeat); the others (temperatures, power, fans,
//! versions) are constants such as an idle card shows.

use super::messages::{AICLK_IDLE_MHZ, Power};
use crate::Cycle;
use tilework_abi::arc::TELEMETRY_TABLE as TABLE;
use tilework_abi::board::{AICLK_MHZ, Board, Harvesting, PCIE_PHYSICAL};
use tilework_abi::grid::{self, DRAM_BANKS, L2CPU_TILES};
use tilework_abi::telemetry::{self as abi, tag};

/// Version of the table's layout: major in bits 23..16, which tt-kmd (`telemetry_probe`) requires
/// to be at most 1.
const TABLE_VERSION: u32 = 0x0001_0000;
/// Time between two updates of a real table, in ms and in cycles (`telemetry.c`,
/// `telem_update_interval`).
const UPDATE_MS: u32 = 100;
const UPDATE_CYCLES: Cycle = UPDATE_MS as Cycle * AICLK_MHZ as Cycle * 1000;
/// The flash bundle that the simulated firmware says it is part of: 19.7.1, the newest that tt-umd
/// knows (`firmware_utils.cpp`).
const BUNDLE: u32 = 19 << 24 | 7 << 16 | 1 << 8;
/// Version of the base firmware of Ethernet tiles: 1.8.0 (estimate), packed as in their L1: patch
/// in the lowest byte, minor, major.
pub(crate) const ETHERNET_FIRMWARE: u32 = 1 << 16 | 8 << 8;
/// Temperatures in degrees Celsius: chip, GDDR, where the clock slows down, where the board shuts
/// down (the last one from tt-zephyr-platforms' `T_J_SHUTDOWN`, the others estimates).
const ASIC_CELSIUS: u32 = 45;
const GDDR_CELSIUS: u32 = 42;
const THROTTLE_CELSIUS: u32 = 83;
const SHUTDOWN_CELSIUS: u32 = 110;

/// The table of one card.
#[derive(Clone, Debug)]
pub(super) struct Telemetry {
    /// Tags in ascending order with the values that do not change; index in this list is index of
    /// the data word.
    entries: Vec<(u16, u32)>,
}

impl Telemetry {
    pub(super) fn new((board, serial): (Board, u32), gone: Harvesting, translated: bool) -> Self {
        let mut entries = identity(board, serial);
        entries.extend(units(gone, translated));
        entries.extend(SENSORS);
        // These change; `changing` has their values.
        entries.extend([tag::AICLK, tag::TIMER_HEARTBEAT, tag::AICLK_ARB_MIN].map(|tag| (tag, 0)));
        entries.push((tag::TELEM_ENUM_COUNT, entries.len() as u32 + 1));
        entries.sort_unstable_by_key(|&(tag, _)| tag);
        Self { entries }
    }

    /// Address of the data words.
    pub(super) fn data(&self) -> u64 {
        TABLE + abi::FIRST_ENTRY + 4 * self.entries.len() as u64
    }

    /// The whole table as it is at cycle `at`.
    pub(super) fn words(&self, at: Cycle, power: &Power) -> Vec<u32> {
        let mut words = vec![TABLE_VERSION, self.entries.len() as u32];
        words.extend(self.entries.iter().zip(0u32..).map(|(&(tag, _), index)| u32::from(tag) | index << 16));
        words.extend(self.entries.iter().map(|&(_, value)| value));
        for (addr, value) in self.changing(at, power) {
            words[((addr - TABLE) / 4) as usize] = value;
        }
        words
    }

    /// Addresses and values of the entries that change, as they are at cycle `at`.
    pub(super) fn changing(&self, at: Cycle, power: &Power) -> Vec<(u64, u32)> {
        let lowest = if power.busy() { AICLK_MHZ } else { AICLK_IDLE_MHZ };
        [
            (tag::AICLK, power.aiclk()),
            // The first update happens before the table is published.
            (tag::TIMER_HEARTBEAT, (at / UPDATE_CYCLES) as u32 + 1),
            (tag::AICLK_ARB_MIN, lowest),
        ]
        .into_iter()
        .filter_map(|(tag, value)| {
            let index = self.entries.iter().position(|entry| entry.0 == tag)?;
            Some((self.data() + 4 * index as u64, value))
        })
        .collect()
    }
}

/// Entries that identify the card.
fn identity(board: Board, serial: u32) -> Vec<(u16, u32)> {
    let product = board.product();
    vec![
        (tag::BOARD_ID_HIGH, product << abi::PRODUCT_SHIFT),
        (tag::BOARD_ID_LOW, serial),
        (tag::ASIC_ID_HIGH, product),
        (tag::ASIC_ID_LOW, serial),
        (tag::ASIC_LOCATION, 0),
        (tag::FLASH_BUNDLE_VERSION, BUNDLE),
    ]
}

/// Entries that say which units work.
fn units(gone: Harvesting, translated: bool) -> Vec<(u16, u32)> {
    let banks = (0..DRAM_BANKS).filter(|&bank| gone.dram & 1 << bank == 0);
    let (trained, temperatures) = banks.fold((0, [0; DRAM_BANKS / 2]), |(trained, mut temperatures), bank| {
        let both = GDDR_CELSIUS << 8 | GDDR_CELSIUS;
        temperatures[bank / 2] |= both << (bank % 2 * 16);
        // Training is complete, and from bit 16 on the self test of the memory (`telemetry.c`,
        // `bist.complete`), which bundles report from 19.7.0 on: tt-umd waits for both.
        (trained | 0x1_0001 << (2 * bank), temperatures)
    });
    // Two bits per PCIe tile; 1 means endpoint.
    let pcie = if PCIE_PHYSICAL.x == grid::PCIE_TILES[0].x { 1 } else { 1 << 2 };
    let ethernet = u32::from(!gone.ethernet & Harvesting::ALL_ETHERNET);
    // Packed differently from the version in L1: minor from bit 12 (tt-kmd
    // `tt_sysfs_show_u32_ver`). No version where no tile works.
    let version = ETHERNET_FIRMWARE;
    let version = if ethernet == 0 { 0 } else { version & 0xFF_0000 | (version >> 8 & 0xF) << 12 | version & 0xFF };
    let mut units = vec![
        (tag::HARVESTING_STATE, 0),
        (tag::GDDR_STATUS, trained),
        (tag::ENABLED_TENSIX_COL, u32::from(!gone.tensix & Harvesting::ALL_TENSIX)),
        (tag::ENABLED_ETH, ethernet),
        (tag::ENABLED_GDDR, u32::from(!gone.dram)),
        (tag::ENABLED_L2CPU, (1 << L2CPU_TILES.len()) - 1),
        (tag::PCIE_USAGE, pcie),
        (tag::NOC_TRANSLATION, translated.into()),
        (tag::ETH_FW_VERSION, version),
        // No link is up: nothing is connected.
        (tag::ETH_LIVE_STATUS, 0),
    ];
    units.extend((tag::GDDR_0_1_TEMP..).zip(temperatures));
    units.extend((tag::GDDR_0_1_CORR_ERRS..).zip([0; DRAM_BANKS / 2]));
    units.extend((tag::L2CPUCLK0..).zip([L2CPU_MHZ; L2CPU_TILES.len()]));
    units
}

/// Clock of idle L2CPU tiles in MHz (estimate).
const L2CPU_MHZ: u32 = 200;

/// Measurements and limits of a card: round estimates, except where a line says otherwise. Nothing
/// in the simulator depends on them.
const SENSORS: [(u16, u32); 31] = [
    (tag::UPDATE_TELEM_SPEED, UPDATE_MS),
    (tag::VCORE, 800),
    (tag::TDP, 40),
    (tag::TDC, 50),
    (tag::VDD_LIMITS, 950 << 16 | 700),
    (tag::THM_LIMIT_SHUTDOWN, SHUTDOWN_CELSIUS),
    (tag::ASIC_TEMPERATURE, ASIC_CELSIUS << 16),
    // Zero in `telemetry.c`: not measured.
    (tag::VREG_TEMPERATURE, 0),
    (tag::BOARD_TEMPERATURE, 0),
    (tag::AXICLK, 960),
    (tag::ARCCLK, 800),
    (tag::GDDR_SPEED, 16_000),
    (tag::GDDR_FW_VERSION, 2 << 16 | 10),
    (tag::DM_APP_FW_VERSION, 25 << 16),
    (tag::DM_BL_FW_VERSION, 0),
    (tag::CM_FW_VERSION, 29 << 16),
    (tag::L2CPU_FW_VERSION, 0),
    (tag::FAN_SPEED, 35),
    (tag::FAN_RPM, 1600),
    (tag::GDDR_UNCORR_ERRS, 0),
    (tag::MAX_GDDR_TEMP, GDDR_CELSIUS),
    (tag::BOARD_POWER_LIMIT, 300),
    (tag::INPUT_POWER, 60),
    (tag::TDC_LIMIT_MAX, 500),
    (tag::THM_LIMIT_THROTTLE, THROTTLE_CELSIUS),
    (tag::THERM_TRIP_COUNT, 0),
    // tt-umd `AICLK_BUSY_VAL`.
    (tag::AICLK_LIMIT_MAX, AICLK_MHZ),
    (tag::TDP_LIMIT_MAX, 160),
    (tag::AICLK_ARB_MAX, AICLK_MHZ),
    // All of the firmware's arbiters are enabled (their number is an estimate).
    (tag::ENABLED_MIN_ARB, 0b11),
    (tag::ENABLED_MAX_ARB, 0x7F),
];
