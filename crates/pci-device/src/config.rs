//! The card's PCI configuration space: who it is and where its BARs lie.
//!
//! Layout and sources are in [`tilework_abi::pci`]. The simulated system's firmware has set the
//! card up; a host may size and move the BARs as the PCI specification says (chapter 6.2.5.1: write
//! ones, read back the mask, write an address).

use tilework_abi::board::Board;
use tilework_abi::convert::{high32, low32};
use tilework_abi::pci::{CLASS, DEVICE, VENDOR, config};
use tilework_abi::tlb::Bar;

/// The configuration space of device 0, function 0.
#[derive(Debug)]
pub(crate) struct ConfigSpace {
    board: Board,
    command: u32,
    bars: [u64; 3],
}

impl ConfigSpace {
    /// A card that is set up.
    pub(crate) fn new(board: Board) -> Self {
        Self { board, command: config::COMMAND_UP, bars: Bar::ALL.map(Bar::assigned) }
    }

    /// The BAR word at `offset`: which BAR, and whether it is its high half.
    fn bar(offset: u32) -> Option<(usize, bool)> {
        let word = offset.checked_sub(config::BAR0)? / 4;
        (word < 6).then_some((word as usize / 2, word % 2 == 1))
    }

    /// The word at `offset`, which is a multiple of four.
    pub(crate) fn read(&self, offset: u32) -> u32 {
        if let Some((i, high)) = Self::bar(offset) {
            let base = self.bars[i];
            return if high { high32(base) } else { low32(base) | Bar::ALL[i].attributes() };
        }
        match offset {
            config::ID => u32::from(VENDOR) | u32::from(DEVICE) << 16,
            config::COMMAND => self.command,
            config::CLASS => CLASS << 8,
            config::SUBSYSTEM => u32::from(VENDOR) | self.board.product() << 16,
            _ => 0,
        }
    }

    /// Writes the word at `offset`; words that are read only stay as they are.
    pub(crate) fn write(&mut self, offset: u32, value: u32) {
        if let Some((i, high)) = Self::bar(offset) {
            let mask = !(Bar::ALL[i].size() - 1);
            let (base, value) = (self.bars[i], u64::from(value));
            let base = if high { base & 0xFFFF_FFFF | value << 32 } else { base & !0xFFFF_FFFF | value };
            self.bars[i] = base & mask;
        } else if offset == config::COMMAND {
            self.command = value & config::COMMAND_BITS;
        }
    }

    /// The BAR that holds bus address `paddr`, the offset in it, and the bytes from there to its
    /// end.
    pub(crate) fn locate(&self, paddr: u64) -> Option<(Bar, u64, u64)> {
        Bar::ALL.into_iter().zip(self.bars).find_map(|(bar, base)| {
            let offset = paddr.checked_sub(base).filter(|&at| at < bar.size())?;
            Some((bar, offset, bar.size() - offset))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_finds_a_blackhole_and_its_bars() {
        let space = ConfigSpace::new(Board::P150);
        assert_eq!(space.read(0), 0xB140_1E52);
        assert_eq!(space.read(8) >> 16, 0x1200);
        let bar = |at| (u64::from(space.read(at + 4)) << 32 | u64::from(space.read(at))) & !0xF;
        assert_eq!(space.read(0x10) & 0xF, 0xC);
        assert_eq!(space.locate(bar(0x10) + 5), Some((Bar::Bar0, 5, (512 << 20) - 5)));
        assert_eq!(space.locate(bar(0x18)), Some((Bar::Bar2, 0, 1 << 20)));
        assert_eq!(space.locate(bar(0x20) + (32 << 30) - 1), Some((Bar::Bar4, (32 << 30) - 1, 1)));
        assert_eq!(space.locate(bar(0x20) + (32 << 30)), None);
        assert_eq!(space.read(0x2C), 0x0041_1E52);
        assert_eq!(ConfigSpace::new(Board::P100).read(0x2C), 0x0043_1E52);
        assert_eq!(ConfigSpace::new(Board::P300).read(0x2C), 0x0045_1E52);
    }

    #[test]
    fn bars_can_be_sized_and_moved() {
        let mut space = ConfigSpace::new(Board::P150);
        space.write(0x20, u32::MAX);
        space.write(0x24, u32::MAX);
        let mask = (u64::from(space.read(0x24)) << 32 | u64::from(space.read(0x20))) & !0xF;
        assert_eq!((!mask).wrapping_add(1), 32 << 30);
        space.write(0x20, 0);
        space.write(0x24, 0x70);
        assert_eq!(space.locate(0x70_0000_0010), Some((Bar::Bar4, 0x10, (32 << 30) - 0x10)));
        space.write(0, 0);
        assert_eq!(space.read(0), 0xB140_1E52, "read only");
        space.write(4, u32::MAX);
        assert_eq!(space.read(4), 6);
    }
}
