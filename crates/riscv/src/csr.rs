//! The CSRs that belong to the core, after `BabyRISCV/CSRs.md` (Blackhole).
//!
//! The counters are functions of time and of retired instructions, so that they cost nothing until
//! read. Registers whose content comes from the coprocessor or the NoC overlay (`tt_cfg_*` on the T
//! cores) are the bus's; every other number is an unknown-CSR fault. F and V instructions are not
//! implemented; their CSRs hold what is written to them, and so do the event counters
//! `mhpmcounter3` and `mhpmcounter4`: events are not counted.

use crate::{Cycle, HartKind};

/// `cfg0`: configuration and chicken bits. CSRs.md, section "cfg0".
const CFG0: u16 = 0x7c0;
/// `cfg0` at reset: all clear but `StMergeTimer`, which is 16.
const CFG0_RESET: u32 = 16 << 13;
/// `mstatus`: read-only. CSRs.md.
const MSTATUS: u32 = 0x8000_6600;
/// `misa`: read-only, RV32IMABFV. CSRs.md.
const MISA: u32 = 0x4020_1123;
/// `vlenb`: initially 16, writable. CSRs.md.
const VLENB: u32 = 16;

/// Registers that only hold what was written to them: number, implemented bits, reset value.
const PLAIN: [(u16, u32, u32); 24] = [
    (0x003, 0xff, 0),     // fcsr
    (0x009, 1, 0),        // vxsat
    (0x00a, 3, 0),        // vxrm
    (0x320, u32::MAX, 0), // mcountinhibit
    (0x323, u32::MAX, 0), // mhpmevent3
    (0x324, u32::MAX, 0), // mhpmevent4
    (0x7c1, u32::MAX, 0), // pmacfg0
    (0x7c2, u32::MAX, 0), // pmacfg1
    (0x7c3, u32::MAX, 0), // cfg1
    (0x7c4, u32::MAX, 0), // hwa_mask
    (0x7c5, u32::MAX, 0), // hwa_cfg
    (0x7c6, u32::MAX, 0), // vgsrc
    (0xb03, u32::MAX, 0), // mhpmcounter3
    (0xb04, u32::MAX, 0), // mhpmcounter4
    (0xb83, u32::MAX, 0), // mhpmcounter3h
    (0xb84, u32::MAX, 0), // mhpmcounter4h
    (0xbca, u32::MAX, 0), // intp_restore_pc
    (0xc20, u32::MAX, 0), // vl
    (0xc21, u32::MAX, 0), // vtype
    (0xc22, u32::MAX, VLENB),
    (0x008, 0, 0), // vstart: read-only zero
    (0xf14, 0, 0), // mhartid: read-only, zero on every core
    (0x301, 0, MISA),
    (CFG0, u32::MAX, CFG0_RESET),
];
const CFG0_SLOT: usize = PLAIN.len() - 1;

/// Result of a CSR read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum CsrRead {
    /// A value that changes only by this core's writes.
    Stable(u32),
    /// A value that changes with time.
    Volatile(u32),
    /// The CSR is not the core's.
    Foreign,
}

/// The CSR state of one core. `cfg0`, which each turn of the core looks at, is the last word, next
/// to what follows in [`crate::Core`].
#[derive(Clone, Debug)]
#[repr(C)]
pub struct CsrFile {
    /// `mcycle` minus the cycle.
    mcycle: u64,
    /// `minstret` minus the executed and skipped instructions.
    minstret: u64,
    hart: HartKind,
    /// `tt_cfg_sstatus0..7` of B and NC, which are scratch there.
    scratch: [u32; 8],
    plain: [u32; PLAIN.len()],
}

impl CsrFile {
    pub(crate) fn new(hart: HartKind) -> CsrFile {
        CsrFile { hart, plain: PLAIN.map(|(_, _, reset)| reset), scratch: [0; 8], mcycle: 0, minstret: 0 }
    }

    /// Resets all values; `mcycle` and `minstret` restart from zero.
    pub(crate) fn reset(&mut self, now: Cycle, retired: u64) {
        *self = CsrFile::new(self.hart);
        self.mcycle = now.wrapping_neg();
        self.minstret = retired.wrapping_neg();
    }

    /// The whole `cfg0` register.
    pub fn cfg0(&self) -> u32 {
        self.plain[CFG0_SLOT]
    }

    /// `DisBp` (bit 1): the branch predictor is off.
    pub fn cfg0_dis_bp(&self) -> bool {
        self.cfg0() >> 1 & 1 != 0
    }

    /// `DisLowCash` (bit 3): the L0 data cache is off.
    pub fn cfg0_dis_low_cache(&self) -> bool {
        self.cfg0() >> 3 & 1 != 0
    }

    /// `DisCsrSync` (bit 10): CSR instructions do not hold up the next instruction. Fences
    /// always do here.
    pub fn cfg0_dis_csr_sync(&self) -> bool {
        self.cfg0() >> 10 & 1 != 0
    }

    /// `DisLowCachePeriodicFlush` (bit 24): if clear, each request through the L0 data cache
    /// flushes it with a chance of about 0.8%.
    pub fn cfg0_dis_low_cache_periodic_flush(&self) -> bool {
        self.cfg0() >> 24 & 1 != 0
    }

    /// Reads a CSR. `instructions` is the count of executed and skipped instructions
    /// before this one.
    pub(crate) fn read(&self, csr: u16, now: Cycle, instructions: u64) -> CsrRead {
        let mcycle = now.wrapping_add(self.mcycle);
        let minstret = instructions.wrapping_add(self.minstret);
        match csr {
            0xb00 | 0xc00 => CsrRead::Volatile(mcycle as u32),
            0xb80 | 0xc80 => CsrRead::Volatile((mcycle >> 32) as u32),
            0xb02 | 0xc02 => CsrRead::Volatile(minstret as u32),
            0xb82 | 0xc82 => CsrRead::Volatile((minstret >> 32) as u32),
            0x300 => CsrRead::Stable(MSTATUS),
            0xbc2..=0xbc9 if self.hart.owns_stream_status() => CsrRead::Stable(self.scratch[usize::from(csr - 0xbc2)]),
            _ => match slot(csr) {
                Some(slot) => CsrRead::Stable(self.plain[slot]),
                None => CsrRead::Foreign,
            },
        }
    }

    /// Writes a CSR; returns false if it is not the core's. Writes to read-only registers
    /// are ignored.
    pub(crate) fn write(&mut self, csr: u16, value: u32, now: Cycle, instructions: u64) -> bool {
        let low = |counter: u64| counter >> 32 << 32 | u64::from(value);
        let high = |counter: u64| u64::from(value) << 32 | counter & 0xffff_ffff;
        let mcycle = now.wrapping_add(self.mcycle);
        let minstret = instructions.wrapping_add(self.minstret);
        match csr {
            0xb00 | 0xc00 => self.mcycle = low(mcycle).wrapping_sub(now),
            0xb80 | 0xc80 => self.mcycle = high(mcycle).wrapping_sub(now),
            0xb02 | 0xc02 => self.minstret = low(minstret).wrapping_sub(instructions),
            0xb82 | 0xc82 => self.minstret = high(minstret).wrapping_sub(instructions),
            0x300 => {}
            0xbc2..=0xbc9 if self.hart.owns_stream_status() => {
                self.scratch[usize::from(csr - 0xbc2)] = value;
            }
            _ => match slot(csr) {
                Some(slot) => {
                    let (_, mask, fixed) = PLAIN[slot];
                    if mask != 0 {
                        self.plain[slot] = value & mask;
                    } else {
                        self.plain[slot] = fixed;
                    }
                }
                None => return false,
            },
        }
        true
    }
}

fn slot(csr: u16) -> Option<usize> {
    PLAIN.iter().position(|&(number, _, _)| number == csr)
}
