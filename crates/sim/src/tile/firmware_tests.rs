//! Start-up code of another project: the prebuilt worker firmware of the public repository
//! `boopdotpng/blackhole-py` (`riscv-firmware/p100a`), from the folder that the environment
//! variable `TILEWORK_BH_FIRMWARE` names. Without it the tests say so and pass.

use super::tests::{run, tile, word};
use super::*;
use crate::NEVER;
use std::path::PathBuf;

/// File, start of its text, and where the image of its local RAM is staged.
const IMAGES: [(&str, Processor, u32, u32); 5] = [
    ("brisc", Processor::Brisc, 0x3840, 0x82B0),
    ("ncrisc", Processor::Ncrisc, 0x5440, 0xA2B0),
    ("trisc0", Processor::Trisc0, 0x5A40, 0xC2B0),
    ("trisc1", Processor::Trisc1, 0x6040, 0xD2B0),
    ("trisc2", Processor::Trisc2, 0x6640, 0xE2B0),
];
const SYNC: i32 = 0x68;
const GO: i32 = 0x370;
const RUN_MSG_INIT: u8 = 0x40;

fn firmware() -> Option<PathBuf> {
    let folder = std::env::var_os("TILEWORK_BH_FIRMWARE").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: TILEWORK_BH_FIRMWARE does not name a folder with brisc.elf, ncrisc.elf, trisc0.elf, ...");
    }
    folder
}

/// The loadable segments of a 32-bit little-endian ELF file: physical address and bytes, with what
/// is not in the file as zeros.
fn segments(elf: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(elf[at..at + 4].try_into().expect("4 bytes"));
    let half = |at: usize| usize::from(u16::from_le_bytes(elf[at..at + 2].try_into().expect("2 bytes")));
    let headers = (0..half(44)).map(|i| word(28) as usize + i * half(42));
    headers
        .filter(|&h| word(h) == 1 && word(h + 20) > 0)
        .map(|h| {
            let (offset, addr, stored, size) = (word(h + 4), word(h + 12), word(h + 16), word(h + 20));
            let mut bytes = elf[offset as usize..(offset + stored) as usize].to_vec();
            bytes.resize(size as usize, 0);
            (addr, bytes)
        })
        .collect()
}

fn jal(target: u32) -> u32 {
    (target & 0x7FE) << 20 | (target & 0x800) << 9 | target & 0xF_F000 | 0x6F
}

/// A tile with the firmware in place, BRISC released at cycle 10.
fn booting(folder: &std::path::Path, parking: bool) -> Tile {
    let mut tile = tile(parking);
    for (name, core, text, staged) in IMAGES {
        let file = folder.join(format!("{name}.elf"));
        let elf = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for (addr, bytes) in segments(&elf) {
            let addr = if addr >= map::LOCAL_BASE { staged + addr - map::LOCAL_BASE } else { addr };
            tile.shared.fabric.l1_write(addr, &bytes);
        }
        let reset_pc = match core {
            Processor::Brisc => {
                tile.shared.fabric.l1_write(0, &jal(text).to_le_bytes());
                continue;
            }
            Processor::Ncrisc => map::NCRISC_RESET_PC,
            Processor::Trisc0 => map::TRISC0_RESET_PC,
            Processor::Trisc1 => map::TRISC1_RESET_PC,
            Processor::Trisc2 => map::TRISC2_RESET_PC,
        };
        tile.shared.fabric.debug.write(reset_pc, text, false).expect("storage");
    }
    tile.shared.fabric.l1_write(GO as u32 + 3, &[RUN_MSG_INIT]);
    tile.shared.fabric.debug.write(map::SOFT_RESET_0, map::SOFT_RESET_BRISC_RUNS, false).expect("storage");
    tile.shared.fabric.reset_changed = Some(10);
    tile.handle_side_effects();
    tile
}

/// Whether BRISC reports "done" and has found every other core ready.
fn booted(tile: &Tile) -> bool {
    let [ncrisc, trisc0, trisc1, trisc2] = word(tile, SYNC).to_le_bytes();
    word(tile, GO) >> 24 == 0 && [trisc0, trisc1, trisc2] == [0; 3] && matches!(ncrisc, 0 | 3)
}

#[test]
fn third_party_firmware_boots_and_sets_the_coprocessor_up() {
    let Some(folder) = firmware() else { return };
    let outcome = |parking, step: Cycle| {
        let mut tile = booting(&folder, parking);
        let mut until = 0;
        while !booted(&tile) {
            until += step;
            assert!(until < 1_000_000, "not ready: {:?}", tile.waiting());
            run(&mut tile, until);
        }
        run(&mut tile, 200_000);
        // BRISC pushes ZEROACC, SFPENCC, NOP, SFPLOADI, SFPCONFIG and three SEMINITs.
        assert_eq!((tile.shared.tensix.next(), tile.stats().tensix), (NEVER, 8));
        (tile.l1().to_vec(), Processor::ALL.map(|core| tile.activity(core)))
    };
    let whole = outcome(true, 100);
    assert_eq!(whole.1, [Activity::Parked; 5], "everybody waits for work");
    for (parking, step) in [(true, 1), (false, 50), (true, 777)] {
        let other = outcome(parking, step);
        assert!(other.0 == whole.0, "parking {parking}, steps of {step}");
    }
}
