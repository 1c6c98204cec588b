//! An open card: how it is taken.

use crate::OpenError;
use crate::counter::Counter;
use crate::kernel::Kernel;
use crate::memory::Region;
use crate::system::System;
use crate::window::{Slot, ask};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tilework_abi::convert::u32_of;
use tilework_abi::kmd::{
    DRIVER_VERSION, DeviceInfo, DriverInfo, LockIn, LockOut, NocCleanup, POWER_L2CPU, POWER_MAX_AI_CLOCK,
    POWER_MRISC_PHY, POWER_TENSIX, PowerState, Request, SizeIn, lock, power_validity,
};
use tilework_abi::noc::NocXy;
use tilework_abi::{pci, tensix};
use zerocopy::IntoBytes;

/// The oldest driver that has all requests that are used here: `SET_POWER_STATE` came with 2.6.0.
pub const OLDEST_DRIVER: [u8; 3] = [2, 6, 0];
/// The lock that whoever runs programs on the workers by this library holds: the last one. The
/// first sixteen are those of Ethernet tiles (`TENSTORRENT_LOCK_INDEX_*`).
pub const LOCK: u8 = lock::COUNT - 1;
/// Flags of a power state that are known here, up to [`POWER_L2CPU`].
const POWER_FLAGS: u8 = 4;
const _: () = assert!(POWER_L2CPU == 1 << (POWER_FLAGS - 1));
/// What programs need: the highest AI clock, DRAM and Tensix tiles.
const POWER: u16 = POWER_MAX_AI_CLOCK | POWER_MRISC_PHY | POWER_TENSIX;

/// A card behind the kernel driver, taken for this process.
#[derive(Debug)]
pub struct KmdCard<K: Kernel> {
    pub(crate) kernel: K,
    /// The driver's version.
    driver: [u8; 3],
    /// Absent once the card is released.
    pub(crate) counter: Option<Counter<K::Mapping>>,
    /// The windows that the host uses, by the numbers that it gives them. The driver has others.
    pub(crate) slots: BTreeMap<u32, Slot<K::Mapping>>,
    pub(crate) regions: Vec<Region<K::Mapping>>,
    /// The tiles whose cores are held when the card is released.
    pub(crate) tiles: Vec<NocXy>,
    pub(crate) released: bool,
}

impl KmdCard<System> {
    /// Opens the device file `path` and takes the card.
    ///
    /// # Errors
    /// There is none; another program has it; a driver or a card that is not known here.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let system = System::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing,
            // Linux `ENXIO` and `ENODEV`: a file, but no device.
            _ if matches!(error.raw_os_error(), Some(6 | 19)) => OpenError::Missing,
            io::ErrorKind::WouldBlock => OpenError::InUse,
            _ => OpenError::Open(error),
        })?;
        Self::take(system)
    }
}

impl<K: Kernel> KmdCard<K> {
    /// Takes the card whose device file is open: driver and card are known, the lock is taken, the
    /// clock is asked to be high.
    ///
    /// # Errors
    /// As [`KmdCard::open`].
    pub fn take(mut kernel: K) -> Result<Self, OpenError> {
        let driver = driver(&mut kernel)?;
        let wanted = SizeIn { output_size_bytes: u32_of(size_of::<DeviceInfo>()) };
        let info: DeviceInfo = ask(&mut kernel, Request::GetDeviceInfo, &wanted)?;
        if (info.vendor_id, info.device_id) != (pci::VENDOR, pci::DEVICE) {
            return Err(OpenError::NotBlackhole { vendor: info.vendor_id, device: info.device_id });
        }
        if lock_ctl(&mut kernel, lock::ACQUIRE)? != 1 {
            return Err(OpenError::Locked { lock: LOCK });
        }
        let mut card = Self {
            kernel,
            driver,
            counter: None,
            slots: BTreeMap::new(),
            regions: Vec::new(),
            tiles: Vec::new(),
            released: false,
        };
        card.set_power(POWER)?;
        card.counter = Some(Counter::new(&mut card.kernel)?);
        Ok(card)
    }

    /// The driver's version.
    pub fn driver(&self) -> [u8; 3] {
        self.driver
    }

    /// Says whose cores are held when the card is released: `tiles`. If this process is killed,
    /// the driver holds those of `last` at least, which is to be the tile that talks to the host.
    ///
    /// # Errors
    /// The driver refused it.
    pub fn hold_at_end(&mut self, tiles: Vec<NocXy>, last: NocXy) -> Result<(), OpenError> {
        self.tiles = tiles;
        self.set_cleanup(Some(last))
    }

    /// Has the driver hold the cores of a tile when the file is closed, or nothing.
    pub(crate) fn set_cleanup(&mut self, tile: Option<NocXy>) -> Result<(), OpenError> {
        let NocXy { x, y } = tile.unwrap_or(NocXy::new(0, 0));
        let mut wish = NocCleanup {
            argsz: u32_of(size_of::<NocCleanup>()),
            enabled: tile.is_some().into(),
            x,
            y,
            addr: tensix::SOFT_RESET_0.into(),
            data: tensix::SOFT_RESET_ALL_CORES.into(),
            ..NocCleanup::default()
        };
        self.ask_only(Request::SetNocCleanup, wish.as_mut_bytes())
    }

    /// Says what this process needs of the card's power.
    pub(crate) fn set_power(&mut self, power_flags: u16) -> Result<(), OpenError> {
        let mut state = PowerState {
            argsz: u32_of(size_of::<PowerState>()),
            validity: power_validity(POWER_FLAGS, 0),
            power_flags,
            ..PowerState::default()
        };
        self.ask_only(Request::SetPowerState, state.as_mut_bytes())
    }

    pub(crate) fn ask_only(&mut self, request: Request, argument: &mut [u8]) -> Result<(), OpenError> {
        self.kernel.request(request, argument).map_err(|error| OpenError::Refused { request, error })
    }
}

/// The version of a driver that is known here.
fn driver<K: Kernel>(kernel: &mut K) -> Result<[u8; 3], OpenError> {
    let wanted = SizeIn { output_size_bytes: u32_of(size_of::<DriverInfo>()) };
    // The first request: a device of something else knows none.
    let info: DriverInfo = ask(kernel, Request::GetDriverInfo, &wanted).map_err(|error| match error {
        OpenError::Refused { error, .. } if error.raw_os_error() == Some(libc::ENOTTY) => OpenError::NotACard,
        error => error,
    })?;
    let found = [info.driver_version_major, info.driver_version_minor, info.driver_version_patch];
    let known = info.driver_version == DRIVER_VERSION && found[0] == OLDEST_DRIVER[0] && found >= OLDEST_DRIVER;
    if known { Ok(found) } else { Err(OpenError::Driver { found, interface: info.driver_version }) }
}

/// What a request about [`LOCK`] says: 1 for done.
pub(crate) fn lock_ctl<K: Kernel>(kernel: &mut K, flags: u32) -> Result<u8, OpenError> {
    let wanted = LockIn { output_size_bytes: u32_of(size_of::<LockOut>()), flags, index: LOCK, ..LockIn::default() };
    ask::<K, _, LockOut>(kernel, Request::LockCtl, &wanted).map(|out| out.value)
}
