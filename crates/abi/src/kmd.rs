//! The kernel driver's interface for programs: numbers and structures of its requests, as in its
//! public header `ioctl.h` (tt-kmd 2.10.1), and the offsets for `mmap`. Field names are the
//! header's.
//!
//! Two sides share it: who is a driver for programs (the crate `kmd`), and who is such a program
//! (the crate `tt-kmd-client`).

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// `TENSTORRENT_DRIVER_VERSION`: the version of this interface.
pub const DRIVER_VERSION: u32 = 2;
/// Version of the driver: major, minor, patch (`module.h`).
pub const MODULE_VERSION: [u8; 3] = [2, 10, 1];

/// `_IO(TENSTORRENT_IOCTL_MAGIC, number)`.
const fn io(number: u32) -> u32 {
    0xFA << 8 | number
}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        /// A request.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Request { $($(#[$doc])* $name,)* }
        impl Request {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
            /// The command number of `ioctl`.
            pub const fn command(self) -> u32 {
                match self { $(Self::$name => io($number),)* }
            }
            /// The name in the header, without `TENSTORRENT_IOCTL_`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
            /// The request with that command number.
            pub fn of_command(command: u32) -> Option<Self> {
                Self::ALL.iter().copied().find(|request| request.command() == command)
            }
        }
    };
}

requests! {
    /// Identity of the card.
    GetDeviceInfo = 0 "GET_DEVICE_INFO",
    /// Not offered on this chip.
    GetHarvesting = 1 "GET_HARVESTING",
    /// Where the BARs can be mapped.
    QueryMappings = 2 "QUERY_MAPPINGS",
    /// Memory of the driver that the device can reach.
    AllocateDmaBuf = 3 "ALLOCATE_DMA_BUF",
    /// Not offered: buffers live as long as the file.
    FreeDmaBuf = 4 "FREE_DMA_BUF",
    /// Version of the driver.
    GetDriverInfo = 5 "GET_DRIVER_INFO",
    /// Steps of a reset.
    ResetDevice = 6 "RESET_DEVICE",
    /// Makes memory of the caller reachable for the device.
    PinPages = 7 "PIN_PAGES",
    /// Locks between processes.
    LockCtl = 8 "LOCK_CTL",
    /// Another card's BAR for this one.
    MapPeerBar = 9 "MAP_PEER_BAR",
    /// Ends a pin.
    UnpinPages = 10 "UNPIN_PAGES",
    /// Takes a TLB window.
    AllocateTlb = 11 "ALLOCATE_TLB",
    /// Gives one back.
    FreeTlb = 12 "FREE_TLB",
    /// Aims one.
    ConfigureTlb = 13 "CONFIGURE_TLB",
    /// A write that the driver does when the file is closed.
    SetNocCleanup = 14 "SET_NOC_CLEANUP",
    /// What the caller needs of clocks and power.
    SetPowerState = 15 "SET_POWER_STATE",
    /// A window for another device.
    ExportTlbDmabuf = 16 "EXPORT_TLB_DMABUF",
}

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident $bytes:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable)]
            #[repr(C)]
            #[allow(missing_docs, reason = "the header says what its fields are")]
            pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
            const _: () = assert!(size_of::<$name>() == $bytes);
        )*
        /// The structures by name: bytes, and the offset of each field. For tests against the
        /// header.
        pub const STRUCTURES: &[(&str, usize, &[(&str, usize)])] = &[
            $((stringify!($name), $bytes, &[$((stringify!($field), core::mem::offset_of!($name, $field))),*]),)*
        ];
    };
}

structures! {
    /// `tenstorrent_get_device_info_in` and other inputs that only say how much is wanted.
    SizeIn 4 { output_size_bytes: u32, }
    /// `tenstorrent_get_device_info_out`.
    DeviceInfo 20 {
        output_size_bytes: u32, vendor_id: u16, device_id: u16, subsystem_vendor_id: u16, subsystem_id: u16,
        bus_dev_fn: u16, max_dma_buf_size_log2: u16, pci_domain: u16, reserved: u16,
    }
    /// `tenstorrent_query_mappings_in`.
    QueryMappingsIn 8 { output_mapping_count: u32, reserved: u32, }
    /// `tenstorrent_mapping`.
    MappingOut 24 { mapping_id: u32, reserved: u32, mapping_base: u64, mapping_size: u64, }
    /// `tenstorrent_allocate_dma_buf_in`.
    AllocateDmaBufIn 24 { requested_size: u32, buf_index: u8, flags: u8, reserved0: [u8; 2], reserved1: [u64; 2], }
    /// `tenstorrent_allocate_dma_buf_out`.
    AllocateDmaBufOut 40 {
        physical_address: u64, mapping_offset: u64, size: u32, reserved0: u32, noc_address: u64, reserved1: u64,
    }
    /// `tenstorrent_get_driver_info_out`.
    DriverInfo 12 {
        output_size_bytes: u32, driver_version: u32, driver_version_major: u8, driver_version_minor: u8,
        driver_version_patch: u8, reserved0: u8,
    }
    /// `tenstorrent_reset_device_in`.
    ResetIn 8 { output_size_bytes: u32, flags: u32, }
    /// `tenstorrent_reset_device_out`.
    ResetOut 8 { output_size_bytes: u32, result: u32, }
    /// `tenstorrent_pin_pages_in`.
    PinIn 24 { output_size_bytes: u32, flags: u32, virtual_address: u64, size: u64, }
    /// `tenstorrent_pin_pages_out_extended`.
    PinOut 16 { physical_address: u64, noc_address: u64, }
    /// `tenstorrent_unpin_pages_in`.
    UnpinIn 24 { virtual_address: u64, size: u64, reserved: u64, }
    /// `tenstorrent_lock_ctl_in`.
    LockIn 12 { output_size_bytes: u32, flags: u32, index: u8, reserved: [u8; 3], }
    /// `tenstorrent_lock_ctl_out`.
    LockOut 4 { value: u8, reserved: [u8; 3], }
    /// `tenstorrent_map_peer_bar_in`.
    PeerBarIn 24 {
        peer_fd: u32, peer_bar_index: u32, peer_bar_offset: u32, peer_bar_length: u32, flags: u32, reserved: u32,
    }
    /// `tenstorrent_allocate_tlb_in`.
    AllocateTlbIn 16 { size: u64, reserved: u64, }
    /// `tenstorrent_allocate_tlb_out`.
    AllocateTlbOut 32 { id: u32, reserved0: u32, mmap_offset_uc: u64, mmap_offset_wc: u64, reserved1: u64, }
    /// `tenstorrent_free_tlb_in`.
    FreeTlbIn 4 { id: u32, }
    /// `tenstorrent_configure_tlb_in`, with the `tenstorrent_noc_tlb_config` in it.
    ConfigureTlbIn 40 {
        id: u32, reserved: u32, addr: u64, x_end: u16, y_end: u16, x_start: u16, y_start: u16, noc: u8, mcast: u8,
        ordering: u8, linked: u8, static_vc: u8, reserved0: [u8; 3], reserved1: [u32; 2],
    }
    /// `tenstorrent_set_noc_cleanup`.
    NocCleanup 32 {
        argsz: u32, flags: u32, enabled: u8, x: u8, y: u8, noc: u8, reserved0: u32, addr: u64, data: u64,
    }
    /// `tenstorrent_power_state`.
    PowerState 40 {
        argsz: u32, flags: u32, reserved0: u8, validity: u8, power_flags: u16, power_settings: [u16; 14],
    }
    /// `tenstorrent_export_tlb_dmabuf`.
    ExportTlb 32 { argsz: u32, flags: u32, tlb_id: u32, fd: i32, offset: u64, size: u64, }
}

/// `TENSTORRENT_ALLOCATE_DMA_BUF_NOC_DMA`.
pub const DMA_BUF_NOC: u8 = 2;
/// `TENSTORRENT_PIN_PAGES_CONTIGUOUS`: the caller says that its pages lie side by side.
pub const PIN_CONTIGUOUS: u32 = 1;
/// `TENSTORRENT_PIN_PAGES_NOC_DMA`: it wants a NoC address.
pub const PIN_NOC: u32 = 2;
/// `TENSTORRENT_PIN_PAGES_NOC_TOP_DOWN`: likewise, from the top.
pub const PIN_NOC_TOP_DOWN: u32 = 4;
/// `TENSTORRENT_PIN_PAGES_READ_ONLY`: the device only reads.
pub const PIN_READ_ONLY: u32 = 8;

/// Steps of `RESET_DEVICE` (`TENSTORRENT_RESET_DEVICE_*`).
pub mod reset {
    /// Sets the configuration space up again.
    pub const RESTORE_STATE: u32 = 0;
    /// Resets the PCIe link.
    pub const PCIE_LINK: u32 = 1;
    /// Resets the chip by its interrupt timer.
    pub const CONFIG_WRITE: u32 = 2;
    /// The caller resets the chip by other means.
    pub const USER: u32 = 3;
    /// Resets the chip.
    pub const ASIC: u32 = 4;
    /// Resets the chip and the board's controller.
    pub const ASIC_DMC: u32 = 5;
    /// Ends a reset.
    pub const POST: u32 = 6;
}

/// Actions of `LOCK_CTL` (`TENSTORRENT_LOCK_CTL_*`).
pub mod lock {
    /// Takes the lock if it is free.
    pub const ACQUIRE: u32 = 0;
    /// Gives it back.
    pub const RELEASE: u32 = 1;
    /// Tells who has it.
    pub const TEST: u32 = 2;
    /// Takes it, and waits until it is free.
    pub const ACQUIRE_BLOCKING: u32 = 3;
    /// Number of locks (`TENSTORRENT_RESOURCE_LOCK_COUNT`).
    pub const COUNT: u8 = 64;
}

/// `TT_POWER_FLAG_MAX_AI_CLK`.
pub const POWER_MAX_AI_CLOCK: u16 = 1;
/// `TT_POWER_FLAG_MRISC_PHY_WAKEUP`.
pub const POWER_MRISC_PHY: u16 = 1 << 1;
/// `TT_POWER_FLAG_TENSIX_ENABLE`.
pub const POWER_TENSIX: u16 = 1 << 2;
/// `TT_POWER_FLAG_L2CPU_ENABLE`, the last flag.
pub const POWER_L2CPU: u16 = 1 << 3;
/// Flags of a power state (`TT_POWER_FLAG_ALL` of `chardev.c`).
pub const POWER_ALL: u16 = 0x7FFF;
/// `TT_POWER_VALIDITY`: how many flags and settings of a power state count.
pub const fn power_validity(flags: u8, settings: u8) -> u8 {
    flags & 0xF | settings << 4
}

/// `TENSTORRENT_MAX_INBOUND_TLBS`: numbers of windows from here on are wrong on every chip.
pub const MAX_TLBS: u32 = 256;
/// The largest DMA buffer, as a power of two (`memory.h`).
pub const DMA_BUF_LOG2: u16 = 28;

/// Offsets for `mmap` (`memory.c`, `MMAP_OFFSET_*`).
pub mod offset {
    /// Distance between the BARs' places: BAR0, 2 and 4, each uncached and write-combined.
    pub const RESOURCE: u64 = 1 << 36;
    /// Uncached windows, by their offset in BAR0; those of BAR4 follow behind [`BAR0_SIZE`].
    pub const WINDOW_UC: u64 = 6 << 36;
    /// Write-combined windows.
    pub const WINDOW_WC: u64 = 7 << 36;
    /// Where the windows of BAR4 begin.
    pub const BAR0_SIZE: u64 = 1 << 29;
    /// DMA buffers, by their index.
    pub const DMA_BUF: u64 = (4096 - 255 - 1) << 32;
    /// Distance between them.
    pub const DMA_BUF_STEP: u64 = 1 << 32;
}
