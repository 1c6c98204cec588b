//! Outbound address translation of the PCIe controller: where a device's access to the host's
//! address space goes.
//!
//! Layout and sources are in [`tilework_abi::pci::iatu`]. An address outside all enabled regions
//! passes unchanged; where regions overlap, the lowest-numbered one applies (DesignWare PCIe
//! controller; Linux' `pcie-designware.c` programs it so).

use super::windows::READ;
use crate::{Fault, FaultClass};
use tilework_abi::pci::iatu as regs;

const WORDS: usize = regs::OUTBOUND_BYTES as usize / 4;

/// The registers of the outbound regions.
#[derive(Clone, Debug)]
pub(super) struct Iatu {
    words: Box<[[u32; WORDS]; regs::REGIONS]>,
}

impl Default for Iatu {
    fn default() -> Self {
        Self { words: Box::new([[0; WORDS]; regs::REGIONS]) }
    }
}

impl Iatu {
    fn slot(&self, reg: u32) -> Option<(usize, usize)> {
        let reg = u64::from(reg);
        let (region, at) = (reg / regs::STRIDE, reg % regs::STRIDE);
        (at < regs::OUTBOUND_BYTES && region < regs::REGIONS as u64).then_some((region as usize, at as usize / 4))
    }
    /// Reads the word at byte offset `reg` of the block; inbound regions, which the card does not
    /// use, read zero.
    pub(super) fn read(&self, reg: u32) -> u32 {
        self.slot(reg).map_or(0, |(region, word)| self.words[region][word])
    }
    /// Writes the word at byte offset `reg` of the block.
    ///
    /// # Errors
    /// A write to an inbound region, or one that enables a region whose end is before its start.
    pub(super) fn write(&mut self, reg: u32, value: u32) -> Result<(), Fault> {
        let refuse = |class, what: &str| {
            Err(Fault::new(class, format!("host access to BAR2: {what}"), READ).at_addr(regs::BASE + u64::from(reg)))
        };
        let Some((region, word)) = self.slot(reg) else {
            return refuse(FaultClass::UnimplementedFunctionality, "inbound address translation is not built");
        };
        let old = self.words[region][word];
        self.words[region][word] = value;
        if self.span(region).is_some_and(|(first, last, _)| last < first) {
            self.words[region][word] = old;
            return refuse(
                FaultClass::UndefinedBehavior,
                "an address translation region whose end is before its start",
            );
        }
        Ok(())
    }
    fn word(&self, region: usize, at: u64) -> u32 {
        self.words[region][at as usize / 4]
    }
    /// First and last address of an enabled region, and the target of the first.
    fn span(&self, region: usize) -> Option<(u64, u64, u64)> {
        let long = |low, high| u64::from(self.word(region, low)) | u64::from(self.word(region, high)) << 32;
        if self.word(region, regs::CONTROL_2) & regs::REGION_ENABLE == 0 {
            return None;
        }
        let first = long(regs::BASE_LOW, regs::BASE_HIGH);
        let increased = self.word(region, regs::CONTROL_1) & regs::INCREASE_REGION_SIZE != 0;
        let last = if increased {
            long(regs::LIMIT_LOW, regs::LIMIT_HIGH)
        } else {
            first & !0xFFFF_FFFF | u64::from(self.word(region, regs::LIMIT_LOW))
        };
        Some((first, last, long(regs::TARGET_LOW, regs::TARGET_HIGH)))
    }
    /// The host's bus address of `len` bytes that the device accesses at `addr`.
    ///
    /// # Errors
    /// The access crosses the end of its region, or the target lies past the end of the
    /// address space.
    pub(super) fn translate(&self, addr: u64, len: usize) -> Result<u64, Fault> {
        for region in 0..regs::REGIONS {
            let Some((first, last, target)) = self.span(region) else { continue };
            if !(first..=last).contains(&addr) {
                continue;
            }
            let end = addr.checked_add((len as u64).saturating_sub(1)).filter(|&end| end <= last);
            let start = target.checked_add(addr - first);
            return match (end, start) {
                (Some(_), Some(start)) => Ok(start),
                _ => {
                    let what = format!(
                        "an access of {len} bytes crosses the end of outbound region {region} of the address translation"
                    );
                    Err(Fault::new(FaultClass::UndefinedBehavior, what, READ).at_addr(addr))
                }
            };
        }
        Ok(addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The register sequence that tt-umd writes for channel `region` of 1 GiB.
    fn channel(iatu: &mut Iatu, region: u32, target: u64, bytes: u64) {
        let base = u64::from(region) << 30;
        let words = [(4, 0), (0, 0), (8, base as u32), (0xC, 0), (0x10, (base + bytes - 1) as u32)];
        let rest = [(0x14, target as u32), (0x18, (target >> 32) as u32), (4, 1 << 31)];
        for (at, value) in words.into_iter().chain(rest) {
            iatu.write(region * 0x200 + at, value).unwrap();
        }
    }

    #[test]
    fn a_channel_goes_to_its_target_and_the_rest_passes() {
        let mut iatu = Iatu::default();
        assert_eq!(iatu.translate(0x1234, 4).unwrap(), 0x1234);
        channel(&mut iatu, 0, 0x70_0000_0000, 1 << 30);
        channel(&mut iatu, 1, 0x10_0000_0000, 768 << 20);
        assert_eq!(iatu.translate(0x1234, 4).unwrap(), 0x70_0000_1234);
        assert_eq!(iatu.translate(0x4000_0010, 16).unwrap(), 0x10_0000_0010);
        assert_eq!(iatu.translate(0x7000_0000, 16).unwrap(), 0x7000_0000, "past the 768 MiB of channel 1");
        assert_eq!(iatu.translate(0x6FFF_FFFC, 8).unwrap_err().class, FaultClass::UndefinedBehavior);
        assert_eq!(iatu.read(0x200 + 0x18), 0x10);
        iatu.write(4, 0).unwrap();
        assert_eq!(iatu.translate(0x1234, 4).unwrap(), 0x1234, "switched off");
    }

    #[test]
    fn long_regions_take_the_upper_half_of_the_limit() {
        let mut iatu = Iatu::default();
        for (at, value) in [(0, 1 << 13), (0x10, 0xF), (0x20, 2), (0x18, 1), (4, 1 << 31)] {
            iatu.write(at, value).unwrap();
        }
        assert_eq!(iatu.translate(0x2_0000_000F, 1).unwrap(), 0x3_0000_000F);
        assert_eq!(iatu.translate(0x2_0000_0010, 1).unwrap(), 0x2_0000_0010);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let mut iatu = Iatu::default();
        assert_eq!(iatu.write(0x100, 1).unwrap_err().class, FaultClass::UnimplementedFunctionality);
        iatu.write(8, 16).unwrap();
        assert_eq!(iatu.write(4, 1 << 31).unwrap_err().class, FaultClass::UndefinedBehavior);
        assert_eq!(iatu.read(4), 0, "a refused write changes nothing");
        assert_eq!(iatu.read(u32::MAX), 0);
    }
}
