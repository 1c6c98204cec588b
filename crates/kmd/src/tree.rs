//! The files of a card in `/dev` and `/sys`, as the kernel and the driver show them
//! (`docs/sysfs-attributes.md`, `telemetry.c`; Linux `Documentation/ABI/testing/sysfs-bus-pci`).
//!
//! Values are the chip's own telemetry at the time when the tree is made.

use crate::layout::MODULE_VERSION;
use std::collections::BTreeMap;
use std::fmt::Write;
use tilework_abi::board::Board;
use tilework_abi::pci::{CLASS, DEVICE, VENDOR, config};
use tilework_abi::telemetry::{PRODUCT_SHIFT, tag};
use tilework_abi::tlb::Bar;

/// What stands between the boards of several cards in the variable with which the command hands
/// them to the library.
pub const BETWEEN_BOARDS: char = ';';
/// The most cards of a machine.
pub const MOST_CARDS: usize = 8;

/// Where card `number` is on the PCI bus: device 0, function 0 of a bus of its own, from 1 on
/// (`bus_dev_fn`).
pub fn bus_device_function(number: usize) -> u16 {
    u16::try_from(number + 1).unwrap_or(u16::MAX) << 8
}
/// The number of the device file's class: one of those that Linux gives out (`devices.txt`,
/// 234..254).
pub const MAJOR: u32 = 240;
/// Where card `number` is on the PCI bus, in words.
fn address(number: usize) -> String {
    format!("0000:{:02x}:00.0", bus_device_function(number) >> 8)
}
/// Distance between the BARs of two cards in the host's memory: no card has more.
const NEXT_CARD: u64 = 1 << 38;

/// A file or folder of the tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A folder.
    Folder,
    /// A file with its bytes.
    File(Vec<u8>),
    /// A link to a path of the tree, relative to the link.
    Link(String),
    /// The device file: major and minor number.
    Device(u32, u32),
}

/// All entries by their path, which begins with `/`. Folders above are implied.
pub type Tree = BTreeMap<String, Entry>;

/// How an attribute of the driver shows a word.
#[derive(Clone, Copy)]
enum Show {
    Decimal,
    Version,
    /// This word and the next one.
    Long,
    CardType,
}

/// The driver's attributes (`blackhole.c`, `bh_sysfs_attributes`).
const ATTRIBUTES: [(&str, u16, Show); 10] = [
    ("tt_aiclk", tag::AICLK, Show::Decimal),
    ("tt_axiclk", tag::AXICLK, Show::Decimal),
    ("tt_arcclk", tag::ARCCLK, Show::Decimal),
    ("tt_serial", tag::BOARD_ID_HIGH, Show::Long),
    ("tt_card_type", tag::BOARD_ID_HIGH, Show::CardType),
    ("tt_fw_bundle_ver", tag::FLASH_BUNDLE_VERSION, Show::Version),
    ("tt_m3app_fw_ver", tag::DM_APP_FW_VERSION, Show::Version),
    ("tt_asic_id", tag::ASIC_ID_HIGH, Show::Long),
    ("tt_heartbeat", tag::TIMER_HEARTBEAT, Show::Decimal),
    ("tt_therm_trip_count", tag::THERM_TRIP_COUNT, Show::Decimal),
];

/// Names of card types (`telemetry.c`, `tt_sysfs_show_card_type`).
const CARD_TYPES: [(u32, &str); 8] = [
    (0x36, "p100"),
    (0x40, "p150a"),
    (0x41, "p150b"),
    (0x42, "p150c"),
    (0x43, "p100a"),
    (0x44, "p300b"),
    (0x45, "p300a"),
    (0x46, "p300c"),
];

fn shown(telemetry: &BTreeMap<u16, u32>, tag: u16, how: Show) -> Option<String> {
    let value = *telemetry.get(&tag)?;
    Some(match how {
        Show::Decimal => format!("{value}\n"),
        Show::Version => {
            let [patch_of_patch, patch, minor, major] = value.to_le_bytes();
            format!("{major}.{minor}.{patch}.{patch_of_patch}\n")
        }
        Show::Long => format!("{value:08X}{:08X}\n", telemetry.get(&(tag + 1))?),
        Show::CardType => {
            let product = value >> PRODUCT_SHIFT & 0xFFFF;
            let name = CARD_TYPES.iter().find(|row| row.0 == product).map_or("unknown", |row| row.1);
            format!("{name}\n")
        }
    })
}

/// The first bytes of the configuration space: header, and a PCI Express capability whose link is
/// up as a P150's is, 32 GT/s and 16 lanes.
fn config_space(number: usize, board: Board) -> Vec<u8> {
    const CAPABILITY: usize = 0x40;
    let mut bytes = vec![0; config::SIZE as usize];
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    put(config::ID as usize, u32::from(DEVICE) << 16 | u32::from(VENDOR));
    // Status bit 4: there is a list of capabilities.
    put(config::COMMAND as usize, config::COMMAND_UP | 1 << 20);
    put(config::CLASS as usize, CLASS << 8);
    for bar in Bar::ALL {
        let at = bar.config_offset() as usize;
        let base = bar.assigned() + NEXT_CARD * number as u64;
        put(at, u32::try_from(base & 0xFFFF_FFFF).unwrap_or_default() | bar.attributes());
        put(at + 4, u32::try_from(base >> 32).unwrap_or_default());
    }
    put(config::SUBSYSTEM as usize, board.product() << 16 | u32::from(VENDOR));
    put(0x34, 0x40);
    // PCI Express Base Specification 5.0, 7.5.3: id 0x10, version 2, endpoint; link capabilities
    // and status with speed 5 (32 GT/s) and 16 lanes.
    put(CAPABILITY, 0x0002_0010);
    put(CAPABILITY + 0x0C, 5 | 16 << 4);
    put(CAPABILITY + 0x10, (5 | 16 << 4) << 16);
    bytes
}

/// The `resource` file: first and last address and flags of each BAR.
fn resources(number: usize) -> String {
    // Memory, 64 bits, and prefetchable (Linux `ioport.h`).
    const MEMORY: u64 = 0x14_0204;
    const PREFETCH: u64 = 0x14_220C;
    let mut text = String::new();
    for bar in Bar::ALL {
        let (first, flags) = (bar.assigned(), if bar == Bar::Bar2 { MEMORY } else { PREFETCH });
        let first = first + NEXT_CARD * number as u64;
        let _ = writeln!(text, "{first:#018x} {:#018x} {flags:#018x}", first + bar.size() - 1);
        let _ = writeln!(text, "{0:#018x} {0:#018x} {0:#018x}", 0);
    }
    text
}

/// The tree of a card of kind `board` with that telemetry.
pub fn tree(board: Board, telemetry: &BTreeMap<u16, u32>) -> Tree {
    tree_of(0, board, telemetry)
}

/// The tree of card `number` of a machine; together with those of the others it is the machine's.
pub fn tree_of(number: usize, board: Board, telemetry: &BTreeMap<u16, u32>) -> Tree {
    let mut tree = Tree::new();
    let address = address(number);
    let device = format!("/sys/devices/pci0000:00/{address}");
    let name = format!("tenstorrent!{number}");
    let class = format!("{device}/tenstorrent/{name}");
    let mut text = |path: String, content: String| tree.insert(path, Entry::File(content.into_bytes()));
    let [major, minor, patch] = MODULE_VERSION;
    text("/sys/module/tenstorrent/version".into(), format!("{major}.{minor}.{patch}\n"));
    for (name, content) in [
        ("vendor", format!("{VENDOR:#06x}\n")),
        ("device", format!("{DEVICE:#06x}\n")),
        ("subsystem_vendor", format!("{VENDOR:#06x}\n")),
        ("subsystem_device", format!("{:#06x}\n", board.product())),
        ("class", format!("{CLASS:#08x}\n")),
        ("revision", "0x00\n".into()),
        ("numa_node", "-1\n".into()),
        ("enable", "1\n".into()),
        ("current_link_speed", "32.0 GT/s PCIe\n".into()),
        ("current_link_width", "16\n".into()),
        ("max_link_speed", "32.0 GT/s PCIe\n".into()),
        ("max_link_width", "16\n".into()),
        ("local_cpulist", "0\n".into()),
        ("resource", resources(number)),
        ("uevent", format!("DRIVER=tenstorrent\nPCI_ID={VENDOR:04X}:{DEVICE:04X}\nPCI_SLOT_NAME={address}\n")),
        // Addresses are translated, so that clients need no huge pages.
        ("iommu_group/type", "DMA-FQ\n".into()),
    ] {
        text(format!("{device}/{name}"), content);
    }
    text(format!("{class}/dev"), format!("{MAJOR}:{number}\n"));
    for (name, tag, how) in ATTRIBUTES {
        if let Some(content) = shown(telemetry, tag, how) {
            text(format!("{class}/{name}"), content);
        }
    }
    tree.insert(format!("{device}/config"), Entry::File(config_space(number, board)));
    tree.insert(format!("{class}/device"), Entry::Link("../..".into()));
    let minor = u32::try_from(number).unwrap_or(u32::MAX);
    tree.insert(format!("/dev/tenstorrent/{number}"), Entry::Device(MAJOR, minor));
    tree.insert("/sys/bus/pci/slots".into(), Entry::Folder);
    tree.insert(
        format!("/sys/bus/pci/devices/{address}"),
        Entry::Link(format!("../../../devices/pci0000:00/{address}")),
    );
    let of_class = format!("../../devices/pci0000:00/{address}/tenstorrent/{name}");
    tree.insert(format!("/sys/class/tenstorrent/{name}"), Entry::Link(of_class.clone()));
    tree.insert(format!("/sys/dev/char/{MAJOR}:{number}"), Entry::Link(of_class));
    tree
}

/// Writes a tree below the folder `root`. The device file is an empty file there: who shows the
/// tree shows it as what it is.
///
/// # Errors
/// What the system says.
#[cfg(unix)]
pub fn write_tree(tree: &Tree, root: &std::path::Path) -> std::io::Result<()> {
    for (path, entry) in tree {
        let place = root.join(path.trim_start_matches('/'));
        if let Some(above) = place.parent() {
            std::fs::create_dir_all(above)?;
        }
        match entry {
            Entry::Folder => std::fs::create_dir_all(&place)?,
            Entry::File(bytes) => std::fs::write(&place, bytes)?,
            Entry::Device(..) => std::fs::write(&place, [])?,
            Entry::Link(target) => std::os::unix::fs::symlink(target, &place)?,
        }
    }
    Ok(())
}
