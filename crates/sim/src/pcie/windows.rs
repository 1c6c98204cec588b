//! Decoding of BAR accesses: TLB windows, their registers, the PCIe tile's own NIUs, the ARC.
//!
//! Layout and sources are in [`tilework_abi::tlb`]; the meaning of the fields is that of
//! WormholeB0/PCIExpressTile/TLBs.md.

use crate::{Fault, FaultClass};
use tilework_abi::noc::{self, NocRect, NocXy};
use tilework_abi::pci::iatu;
use tilework_abi::tlb::{self, Bar, Ordering, Window, WindowSize};
use tilework_abi::{board, telemetry};

pub(super) const READ: &str = "WormholeB0/PCIExpressTile/TLBs.md";

/// Where a piece of a host access goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// Through a window onto the NoC.
    Noc(NocTarget),
    /// A register of the TLB: byte offset from [`tlb::REGS`].
    TlbRegister(u32),
    /// A register of the address translation: byte offset from [`iatu::BASE`].
    Iatu(u32),
    /// A register of one of the PCIe tile's NIUs.
    Niu {
        /// 0 or 1.
        noc: u8,
        /// Byte offset.
        reg: u32,
    },
}

/// A place on the NoC that a host access reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NocTarget {
    /// 0 or 1.
    pub noc: u8,
    /// The tile or tiles.
    pub to: Tiles,
    /// Address in the target's space.
    pub address: u64,
    /// How the accesses are ordered.
    pub ordering: Ordering,
}

/// One tile or a rectangle of Tensix tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tiles {
    /// One tile.
    One(NocXy),
    /// All Tensix tiles of a rectangle.
    Rect(NocRect),
}

/// The registers of all windows.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    words: Box<[[u32; 3]]>,
    written: Box<[bool]>,
}

impl Default for Windows {
    fn default() -> Self {
        let count = tlb::COUNT as usize;
        Self { words: vec![[0; 3]; count].into(), written: vec![false; count].into() }
    }
}

fn fault(class: FaultClass, bar: Bar, offset: u64, what: impl Into<String>) -> Fault {
    Fault::new(class, format!("host access to {bar}: {}", what.into()), READ).at_addr(offset)
}

impl Windows {
    /// Where the byte at `offset` of `bar` goes, and how many bytes from there on go to the same
    /// target.
    ///
    /// # Errors
    /// An offset with nothing behind it, or a window that is not configured or has a configuration
    /// that the documents forbid.
    pub(crate) fn locate(&self, bar: Bar, offset: u64) -> Result<(Target, u64), Fault> {
        const WINDOWS_END: u64 = tlb::COUNT_2M as u64 * tlb::SIZE_2M;
        const NIU1: u64 = tlb::NIU + tlb::NIU_STRIDE;
        const NIU_BYTES: u64 = noc::COUNTERS_END as u64;
        if offset >= bar.size() {
            let what = format!("past its end; it has {:#x} bytes", bar.size());
            return Err(fault(FaultClass::UndefinedBehavior, bar, offset, what));
        }
        match (bar, offset) {
            (Bar::Bar0, 0..WINDOWS_END) => {
                self.through((offset / tlb::SIZE_2M) as u32, offset % tlb::SIZE_2M, bar, offset)
            }
            (Bar::Bar4, _) => {
                let index = tlb::COUNT_2M + (offset / tlb::SIZE_4G) as u32;
                self.through(index, offset % tlb::SIZE_4G, bar, offset)
            }
            (Bar::Bar2, iatu::BASE..iatu::END) => Ok((Target::Iatu((offset - iatu::BASE) as u32), iatu::END - offset)),
            (Bar::Bar2, _) => {
                let what = "of the PCIe controller only the address translation is documented";
                Err(fault(FaultClass::MissingSpecification, bar, offset, what))
            }
            (Bar::Bar0, tlb::REGS..tlb::REGS_END) => {
                Ok((Target::TlbRegister((offset - tlb::REGS) as u32), tlb::REGS_END - offset))
            }
            (Bar::Bar0, tlb::NIU..) if offset < tlb::NIU + NIU_BYTES => {
                let reg = offset - tlb::NIU;
                Ok((Target::Niu { noc: 0, reg: reg as u32 }, NIU_BYTES - reg))
            }
            (Bar::Bar0, NIU1..) if offset < NIU1 + NIU_BYTES => {
                let reg = offset - NIU1;
                Ok((Target::Niu { noc: 1, reg: reg as u32 }, NIU_BYTES - reg))
            }
            (Bar::Bar0, tlb::ARC_APB..) => {
                let at = offset - tlb::ARC_APB;
                let target = NocTarget {
                    noc: 0,
                    to: Tiles::One(board::ARC),
                    address: telemetry::APB_BASE + at,
                    ordering: Ordering::Strict,
                };
                Ok((Target::Noc(target), tlb::ARC_APB_BYTES - at))
            }
            (Bar::Bar0, _) => {
                let what = "between the windows and the registers nothing is documented";
                Err(fault(FaultClass::MissingSpecification, bar, offset, what))
            }
        }
    }

    fn through(&self, index: u32, at: u64, bar: Bar, offset: u64) -> Result<(Target, u64), Fault> {
        let i = index as usize;
        let size = WindowSize::of_window(index);
        let bad = |class, what: &str| Err(fault(class, bar, offset, format!("TLB window {index} {what}")));
        if !self.written[i] {
            return bad(FaultClass::UndefinedBehavior, "was never configured");
        }
        let window = Window::decode(self.words[i], size);
        let Some(ordering) = window.ordering else {
            return bad(FaultClass::UndefinedBehavior, "has ordering mode 3, which does not exist");
        };
        if window.noc > 1 {
            return bad(FaultClass::UndefinedBehavior, "names a NoC that does not exist");
        }
        if window.linked {
            return bad(FaultClass::UndefinedBehavior, "is linked, which is never safe");
        }
        if window.stream_header {
            return bad(FaultClass::MissingSpecification, "has the stream header bit set");
        }
        let to = if window.multicast {
            Tiles::Rect(NocRect { start: window.start, end: window.end })
        } else {
            Tiles::One(window.end)
        };
        let target = NocTarget { noc: window.noc, to, address: window.address + at, ordering };
        Ok((Target::Noc(target), size.bytes() - at))
    }

    /// Reads the register word at byte offset `reg` from [`tlb::REGS`].
    pub(crate) fn read(&self, reg: u32) -> u32 {
        let word = reg as usize / 4;
        self.words.get(word / 3).map_or(0, |words| words[word % 3])
    }

    /// Writes the register word at byte offset `reg` from [`tlb::REGS`].
    ///
    /// # Errors
    /// A strided multicast, which is not built.
    pub(crate) fn write(&mut self, reg: u32, value: u32) -> Result<(), Fault> {
        let word = reg as usize / 4;
        if let Some(words) = self.words.get_mut(word / 3) {
            words[word % 3] = value;
            self.written[word / 3] = true;
            return Ok(());
        }
        let offset = tlb::REGS + u64::from(reg);
        let slot = offset.checked_sub(tlb::STRIDED_REGS).and_then(|at| tlb::STRIDED.at(u32::try_from(at).ok()?));
        match slot {
            Some(slot) if slot.reg.written(0, value).is_none() => {
                let what = format!("write of {slot}: {}", slot.reg.refused);
                Err(fault(FaultClass::UnimplementedFunctionality, Bar::Bar0, offset, what))
            }
            _ => Ok(()),
        }
    }
}
