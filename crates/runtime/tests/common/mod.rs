//! What the end-to-end tests share: our kernels, programs made of them, and other worker firmware.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::PathBuf;
use std::sync::Arc;
use tilework_abi::tensix::Processor;
use tilework_runtime::firmware::FILES;
use tilework_runtime::{
    ArgSet, Buffer, Cores, DeviceConfig, FirmwareFile, FirmwareSet, KernelImage, L1Buffer, MapValues, Program, Role,
    UniqueArgs, prebuilt,
};
use tilework_sim::{Chip, ChipConfig};

/// A device on the simulated chip.
pub(crate) type Device = tilework_runtime::Device<Chip>;

/// Opens a device on a new chip.
pub(crate) fn open(config: DeviceConfig) -> Device {
    open_with(config, true, FirmwareSet::prebuilt().unwrap())
}

/// Opens a device on a new chip, whose polling cores sleep or not, with worker firmware of choice.
pub(crate) fn open_with(config: DeviceConfig, parking: bool, firmware: FirmwareSet) -> Device {
    let chip = Chip::new(ChipConfig { parking, ..ChipConfig::new(config.board) }).unwrap();
    Device::open_with(chip, config, firmware, prebuilt::cq_kernels().unwrap()).unwrap()
}

/// A kernel of `firmware/prebuilt`.
pub(crate) fn kernel(name: &str, processor: Processor) -> Arc<KernelImage> {
    let path = format!("{}/../../firmware/prebuilt/{name}.elf", env!("CARGO_MANIFEST_DIR"));
    let data = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    Arc::new(KernelImage::load(name, data, processor).unwrap())
}

/// The program `empty` on `cores`.
pub(crate) fn empty(cores: Cores) -> Program {
    Program::new("empty", cores).role(Role::all().kernel(Processor::Brisc, kernel("empty", Processor::Brisc)))
}

/// For each of `cores` cores its first page and number of pages.
pub(crate) fn shares(pages: u32, cores: u32) -> Vec<(u32, u32)> {
    let (each, rest) = (pages / cores, pages % cores);
    let mut first = 0;
    (0..cores)
        .map(|i| {
            let count = each + u32::from(i < rest);
            first += count;
            (first - count, count)
        })
        .collect()
}

/// The program `increment`: `output` = `input` + `value`, on all workers of `device`.
pub(crate) fn increment(device: &Device, input: &Buffer, output: &Buffer, slots: &L1Buffer, value: u32) -> Program {
    let n = device.workers().len() as u32;
    let args = shares(input.pages().get(), n)
        .into_iter()
        .map(|(first, count)| {
            vec![
                input.address.word(),
                output.address.word(),
                first,
                count,
                input.page_size,
                value,
                slots.address.get(),
                3,
            ]
        })
        .collect();
    Program::new("increment", Cores::All)
        .role(Role::all().kernel(Processor::Brisc, kernel("increment", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args))
}

/// Firmware of a folder.
pub(crate) fn load_firmware(folder: PathBuf, values: &MapValues) -> FirmwareSet {
    let files = FILES.map(|name| {
        let path = folder.join(name);
        let data = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        FirmwareFile { name: name.to_owned(), data: data.into() }
    });
    FirmwareSet::load(&files, "memory-map.toml", values).unwrap()
}

/// Our firmware does not mind where the kernel configuration, the bank table and the data are.
pub(crate) fn moved_firmware() -> FirmwareSet {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../firmware/prebuilt");
    let values = MapValues {
        kernel_config: Some(0x9000),
        kernel_config_size: Some(0x8000),
        bank_table: Some(0x1_4000),
        keeps_launch: Some(true),
        text_cache: Some(0x1_5000),
        text_cache_size: Some(0x1_0000),
        data: Some(0x4_0000),
        ..MapValues::default()
    };
    load_firmware(folder.into(), &values)
}

/// Our firmware with a text cache that holds few of our kernels.
pub(crate) fn small_text_cache() -> FirmwareSet {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../firmware/prebuilt");
    let values = MapValues {
        kernel_config_size: Some(0x800),
        keeps_launch: Some(true),
        text_cache_size: Some(0x800),
        ..MapValues::default()
    };
    load_firmware(folder.into(), &values)
}

/// Firmware other than the built-in, with names.
pub(crate) fn other_firmware() -> Vec<(&'static str, FirmwareSet)> {
    let mut sets = vec![("ours, moved", moved_firmware())];
    match std::env::var_os("TILEWORK_BH_FIRMWARE") {
        Some(folder) => sets.push(("outside", load_firmware(folder.into(), &MapValues::default()))),
        None => eprintln!("outside firmware left out: TILEWORK_BH_FIRMWARE names no folder"),
    }
    sets
}
