//! A Blackhole card on the PCI bus: its identity, its BARs and the address translation of
//! what it sends to the host.
//!
//! Identity: tt-kmd `enumerate.h` and tt-umd `pci_ids.h`. Configuration header: PCI Local Bus
//! Specification 3.0, chapter 6. Address translation (iATU): the register block of the DesignWare
//! PCIe controller as tt-umd's `BlackholeTTDevice::configure_iatu_region` programs it; names and
//! offsets of the fields it leaves alone are those of Linux' `pcie-designware.h`.

use crate::tlb::Bar;

/// Tenstorrent.
pub const VENDOR: u16 = 0x1E52;
/// Blackhole.
pub const DEVICE: u16 = 0xB140;
/// Class code: processing accelerator (PCI Code and ID Assignment Specification, class 12h).
pub const CLASS: u32 = 0x12_0000;

/// Byte offsets of the configuration header (type 0).
pub mod config {
    /// Vendor (low half) and device.
    pub const ID: u32 = 0x00;
    /// Command (low half) and status.
    pub const COMMAND: u32 = 0x04;
    /// Revision (low byte) and class code.
    pub const CLASS: u32 = 0x08;
    /// The first of six BAR words.
    pub const BAR0: u32 = 0x10;
    /// Subsystem vendor (low half) and subsystem.
    pub const SUBSYSTEM: u32 = 0x2C;
    /// Bytes of the configuration space of a PCI Express function.
    pub const SIZE: u32 = 0x1000;
    /// Low bits of a BAR word: 64-bit memory.
    pub(super) const BAR_MEMORY_64: u32 = 0b0100;
    /// Low bits of a BAR word: 64-bit prefetchable memory.
    pub(super) const BAR_PREFETCHABLE_64: u32 = 0b1100;
    /// Bits of the command register that a function without I/O and interrupts keeps: memory space,
    /// bus master.
    pub const COMMAND_BITS: u32 = 0b110;
    /// The command register once a system's firmware has set the card up: memory space and bus
    /// master on.
    pub const COMMAND_UP: u32 = 0b110;
}

impl Bar {
    /// The three BARs, each two words of the header.
    pub const ALL: [Bar; 3] = [Bar::Bar0, Bar::Bar2, Bar::Bar4];

    /// Where the simulated system's firmware has put the BAR: a bus address, aligned to its size.
    pub const fn assigned(self) -> u64 {
        match self {
            Self::Bar0 => 0x4_0000_0000,
            Self::Bar2 => 0x4_2000_0000,
            Self::Bar4 => 0x8_0000_0000,
        }
    }
    /// Offset of its low word in the configuration header.
    pub const fn config_offset(self) -> u32 {
        match self {
            Self::Bar0 => config::BAR0,
            Self::Bar2 => config::BAR0 + 8,
            Self::Bar4 => config::BAR0 + 16,
        }
    }
    /// The attribute bits of its low word.
    pub const fn attributes(self) -> u32 {
        match self {
            Self::Bar2 => config::BAR_MEMORY_64,
            Self::Bar0 | Self::Bar4 => config::BAR_PREFETCHABLE_64,
        }
    }
}

/// The iATU's registers in BAR2.
pub mod iatu {
    use crate::convert::{addr32_of, u32_of};
    use crate::reg::registers;

    /// First byte of the block (tt-umd `ATU_OFFSET_IN_BH_BAR2`).
    pub const BASE: u64 = 0x1000;
    /// Distance between regions; an outbound one starts each, an inbound one follows at +0x100.
    pub const STRIDE: u64 = 0x200;
    /// Regions (tt-umd programs at most sixteen).
    pub const REGIONS: usize = 16;
    /// Bytes of an outbound region's registers.
    pub const OUTBOUND_BYTES: u64 = 0x100;
    /// Control 1: the upper half of the limit counts too.
    pub const INCREASE_REGION_SIZE: u32 = 1 << 13;
    /// Control 2: the region is on.
    pub const REGION_ENABLE: u32 = 1 << 31;
    /// End of the block.
    pub const END: u64 = BASE + REGIONS as u64 * STRIDE;

    registers! {
        /// An outbound region of the address translation, in BAR2. Words without a row are storage.
        /// The inbound region behind each of them reads zero and is not built.
        pub static OUTBOUND = {
            name: "outbound iATU region", base: BASE, span: addr32_of(OUTBOUND_BYTES),
            copies: u32_of(REGIONS), stride: addr32_of(STRIDE),
            unit: 1, page: "Linux, pcie-designware.h",
            const u64 = |at| at,
        };
        /// Control 1.
        CONTROL_1 "PCIE_ATU_REGION_CTRL1" = 0x00, Rw;
        /// Control 2.
        CONTROL_2 "PCIE_ATU_REGION_CTRL2" = 0x04, Rw;
        /// First address, low half.
        BASE_LOW "PCIE_ATU_LOWER_BASE" = 0x08, Rw;
        /// First address, high half.
        BASE_HIGH "PCIE_ATU_UPPER_BASE" = 0x0C, Rw;
        /// Last address, low half.
        LIMIT_LOW "PCIE_ATU_LIMIT" = 0x10, Rw;
        /// Where the first address goes, low half.
        TARGET_LOW "PCIE_ATU_LOWER_TARGET" = 0x14, Rw;
        /// Where the first address goes, high half.
        TARGET_HIGH "PCIE_ATU_UPPER_TARGET" = 0x18, Rw;
        /// Last address, high half.
        LIMIT_HIGH "PCIE_ATU_UPPER_LIMIT" = 0x20, Rw;
    }
}

const _: () = {
    let mut i = 0;
    while i < 3 {
        let bar = Bar::ALL[i];
        assert!(bar.size().is_power_of_two() && bar.assigned().is_multiple_of(bar.size()));
        let mut j = 0;
        while j < i {
            let other = Bar::ALL[j];
            assert!(other.assigned() + other.size() <= bar.assigned());
            j += 1;
        }
        i += 1;
    }
    assert!(iatu::END <= Bar::Bar2.size());
};
