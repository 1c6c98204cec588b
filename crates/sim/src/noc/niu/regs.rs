//! The register file of an NIU.

use super::coordinates::Coordinates;
use super::{COUNTERS_PAGE, MAP_PAGE, Niu, Start};
use crate::noc::grid::node_id;
use crate::{Cycle, Fault, FaultClass};
use tilework_abi::noc::{self, counter, init};
use tilework_riscv::Access;

/// `NOC_SEC_CTRL`, the last field of a request initiator before `NOC_CMD_CTRL` (public firmware headers, `noc_parameters.h`).
const SEC_CTRL: u32 = 0x34;
/// Words of one request initiator before `NOC_CMD_CTRL` that exist.
const INITIATOR_WORDS: usize = (SEC_CTRL / 4 + 1) as usize;
/// Words of configuration.
pub(super) const CONFIG_WORDS: usize = crate::noc::grid::CONFIG_WORDS;
/// Bits of `NOC_PACKET_TAG` that exist (NoC/MemoryMap.md).
const TAG_MASK: u32 = 0xFFFF;
/// `NUM_MEM_PARITY_ERR` and the two header error counts behind it (`noc_parameters.h`); nothing here has such an error.
const ERROR_COUNTS: core::ops::Range<u32> = 0x50..0x5C;
/// `ECC_CTRL` (`noc_parameters.h`): bits 0..2 clear errors, bits 3..5 make some.
const ECC_CTRL: u32 = 0x5C;
/// The bits of `ECC_CTRL` that make errors.
const ECC_FORCE: u32 = 0b11_1000;
/// `CMD_BUF_AVAIL` and `CMD_BUF_OVFL` (`noc_parameters.h`), the "NIU request FIFO status" of NoC/MemoryMap.md. The FIFOs are off and cannot be
/// switched on (`NIU_CFG_0` bit 16), so that they have no room and never overflow.
const FIFO_STATUS: core::ops::Range<u32> = 0x64..0x6C;
/// `MEMORY_SHUTDOWN_CONTROL` (`noc_parameters.h`).
const MEMORY_SHUTDOWN: u32 = 0x14C;
/// `DEBUG_COUNTER_RESET` (NoC/MemoryMap.md): clears itself.
const DEBUG_COUNTER_RESET: u32 = 0x174;
/// `NIU_TRANS_COUNT_RTZ_CFG` (NoC/MemoryMap.md).
const RTZ_CFG: u32 = 0x178;
/// The bits of `RTZ_CFG` that enable interrupts, one for each transaction id.
const RTZ_CFG_ENABLE: u32 = 0xFFFF;
/// `NIU_TRANS_COUNT_RTZ_CFG_RC_DISABLE`: reading `RTZ_NUM` clears nothing.
const RTZ_CFG_RC_DISABLE: u32 = 1 << 28;
/// `NIU_TRANS_COUNT_RTZ_CLR` (NoC/MemoryMap.md): nothing is stored.
const RTZ_CLR: u32 = 0x17C;
/// "NoC router debug information" (NoC/MemoryMap.md): contents not described; an idle router's.
const ROUTER_DEBUG: core::ops::Range<u32> = 0x300..0x378;
/// `NIU_TRANS_COUNT_RTZ_NUM` (NoC/MemoryMap.md).
const RTZ_NUM: u32 = 0x378;
/// `NIU_TRANS_COUNT_RTZ_SOURCE` (NoC/MemoryMap.md).
const RTZ_SOURCE: u32 = 0x37C;
/// "NIU debug information" (NoC/MemoryMap.md): contents not described; an idle NIU's.
const NIU_DEBUG: core::ops::Range<u32> = 0x380..0x400;
/// "NIU security fence configuration" (NoC/MemoryMap.md): nothing is fenced off.
const SECURITY_FENCE: core::ops::Range<u32> = 0x400..0x500;

/// One request initiator.
#[derive(Clone, Debug, Default)]
pub(super) struct Initiator {
    regs: [u32; INITIATOR_WORDS],
    /// A request waits to leave: `NOC_CMD_CTRL` reads 1.
    pub(super) busy: bool,
    /// The hardware is splitting a long request.
    pub(super) splitting: bool,
}

impl Initiator {
    /// The field at offset `field` ([`init`]).
    pub(super) fn get(&self, field: u32) -> u32 {
        self.regs.get(field as usize / 4).copied().unwrap_or(0)
    }
    fn slot(&mut self, field: u32) -> Option<&mut u32> {
        self.regs.get_mut(field as usize / 4)
    }
    /// A 64-bit value of two neighbouring fields.
    pub(super) fn pair(&self, lo: u32, hi: u32) -> u64 {
        u64::from(self.get(hi)) << 32 | u64::from(self.get(lo))
    }
    /// The page's step after each piece of a long request: the length shrinks and both addresses grow.
    pub(super) fn advance(&mut self, bytes: u64) {
        let fields = [
            (init::AT_LEN_BE, init::AT_LEN_BE_1, bytes.wrapping_neg()),
            (init::TARG_ADDR_LO, init::TARG_ADDR_MID, bytes),
            (init::RET_ADDR_LO, init::RET_ADDR_MID, bytes),
        ];
        for (lo, hi, by) in fields {
            let value = self.pair(lo, hi).wrapping_add(by);
            if let Some(slot) = self.slot(lo) {
                *slot = value as u32;
            }
            if let Some(slot) = self.slot(hi) {
                *slot = (value >> 32) as u32;
            }
        }
    }
}

/// The bits of a configuration register that have a purpose which the simulator cannot change (NoC/MemoryMap.md, "NIU and NoC router
/// configuration"); all others are storage.
fn fixed_bits(offset: u32) -> u32 {
    /// `DDR_COORD_TRANSLATE_TABLE_0` to `_5` and `DDR_COORD_TRANSLATE_COL_SWAP`; the card's firmware leaves them zero.
    const DDR_TABLES: core::ops::Range<u32> = 0x158..0x174;
    match offset {
        // Bits 13 and 15 have no effect in a Tensix tile.
        noc::NIU_CFG_0 => 0x1_1000,
        MEMORY_SHUTDOWN => 0b111,
        _ if DDR_TABLES.contains(&offset) => u32::MAX,
        _ => 0,
    }
}

impl Niu {
    /// Reads the register at `off` from the NIU's base. A busy `NOC_CMD_CTRL` is volatile, and so is `NIU_TRANS_COUNT_RTZ_NUM`, whose read has an
    /// effect; everything else changes only when the tile knows about it.
    ///
    /// # Errors
    /// A register that does not exist, or one that the simulator does not have.
    pub(crate) fn read(&mut self, off: u32, at: Cycle) -> Result<(u32, Access), Fault> {
        self.read_reg(off).map_err(|fault| self.named(fault, at))
    }

    /// Reads what cores poll most: a counter, or `NOC_CMD_CTRL` of an initiator that is free. `None` when it is anything else;
    /// [`Niu::read`] knows what then.
    #[inline(always)]
    pub(crate) fn read_word(&self, off: u32) -> Option<u32> {
        if in_counters(off) {
            return Some(self.counter(((off - noc::COUNTERS) / 4) as usize));
        }
        let (buf, field) = ((off / noc::CMD_BUF_STRIDE) as usize, off % noc::CMD_BUF_STRIDE);
        let free = |initiator: &Initiator| field == init::CMD_CTRL && !initiator.busy;
        self.initiators.get(buf).filter(|initiator| free(initiator)).map(|_| 0)
    }

    fn read_reg(&mut self, off: u32) -> Result<(u32, Access), Fault> {
        if let Some((buf, field)) = split(off) {
            let initiator = &self.initiators[buf];
            let value = match field {
                init::CMD_CTRL if initiator.busy => return Ok((1, Access::Volatile)),
                init::CMD_CTRL => 0,
                noc::NODE_ID => node_id(self.noc, self.place),
                noc::ENDPOINT_ID => self.endpoint_id,
                _ if field <= SEC_CTRL => initiator.get(field),
                _ if FIFO_STATUS.contains(&field) => 0,
                _ => return Err(unknown(off, "read")),
            };
            return Ok((value, Access::Watched));
        }
        let value = match off {
            noc::CLEAR_OUTSTANDING | ECC_CTRL | RTZ_CLR | DEBUG_COUNTER_RESET => 0,
            RTZ_SOURCE => self.returned_to_zero,
            RTZ_NUM => return Ok((self.take_returned_to_zero(), Access::Volatile)),
            _ if is_idle_status(off) => 0,
            _ if in_config(off) => self.config[((off - noc::CFG_BASE) / 4) as usize],
            _ if in_counters(off) => self.counter(((off - noc::COUNTERS) / 4) as usize),
            _ => return Err(unknown(off, "read")),
        };
        Ok((value, Access::Watched))
    }

    /// A read of `NIU_TRANS_COUNT_RTZ_NUM`: the lowest of the enabled bits of `RTZ_SOURCE`, which it clears unless told not to; the page lets
    /// hardware choose any.
    fn take_returned_to_zero(&mut self) -> u32 {
        let config = self.config[((RTZ_CFG - noc::CFG_BASE) / 4) as usize];
        let pending = self.returned_to_zero & config & RTZ_CFG_ENABLE;
        if pending == 0 {
            return 0;
        }
        if config & RTZ_CFG_RC_DISABLE == 0 {
            self.returned_to_zero &= !(pending & pending.wrapping_neg());
        }
        pending.trailing_zeros()
    }

    /// Writes the register at `off` from the NIU's base. Writing 1 to `NOC_CMD_CTRL` starts a request: the caller hands the returned
    /// [`Start`] to [`Niu::depart`] when its cycle comes.
    ///
    /// # Errors
    /// A register that does not exist, is read only or that the simulator does not have; a field of an initiator whose request has not left;
    /// every request that hardware would not carry out as described.
    pub(crate) fn write(&mut self, off: u32, value: u32, at: Cycle) -> Result<Option<Start>, Fault> {
        self.write_reg(off, value, at).map_err(|fault| self.named(fault, at))
    }

    fn write_reg(&mut self, off: u32, value: u32, at: Cycle) -> Result<Option<Start>, Fault> {
        if let Some((buf, field)) = split(off) {
            return self.write_initiator(buf, field, value, at, off);
        }
        if off == noc::CLEAR_OUTSTANDING {
            for i in (0..16).filter(|i| value & 1 << i != 0) {
                let outstanding = &mut self.counters[counter::MST_REQS_OUTSTANDING_ID + i];
                self.returned_to_zero |= u32::from(*outstanding != 0) << i;
                *outstanding = 0;
            }
            return Ok(None);
        }
        if off == ECC_CTRL && value & ECC_FORCE == 0 || SECURITY_FENCE.contains(&off) && value == 0 {
            return Ok(None); // no errors to clear, nothing to fence off
        }
        if in_config(off) {
            self.write_config(off, value)?;
            return Ok(None);
        }
        Err(unknown(off, "write"))
    }

    /// Writes one of the fields that only wait for `NOC_CMD_CTRL`: most of what a core does to start a request. False, and nothing is done, when
    /// it is anything else or must not be written now; [`Niu::write`] knows what then.
    #[inline(always)]
    pub(crate) fn write_field(&mut self, off: u32, value: u32) -> bool {
        let (buf, field) = ((off / noc::CMD_BUF_STRIDE) as usize, off % noc::CMD_BUF_STRIDE);
        let plain = field < init::PACKET_TAG || (init::CTRL..=init::AT_DATA).contains(&field);
        match self.initiators.get_mut(buf) {
            Some(initiator) if plain && !initiator.busy && off.is_multiple_of(4) => match initiator.slot(field) {
                Some(slot) => {
                    *slot = value;
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    fn write_initiator(
        &mut self,
        buf: usize,
        field: u32,
        value: u32,
        at: Cycle,
        off: u32,
    ) -> Result<Option<Start>, Fault> {
        let initiator = &mut self.initiators[buf];
        let writable = field <= SEC_CTRL || field == init::CMD_CTRL;
        if writable && initiator.busy {
            return Err(Fault::new(
                FaultClass::UndefinedBehavior,
                format!("write of NIU register {off:#x} while the request of initiator {buf} has not left"),
                "BlackholeA0/NoC/MemoryMap.md, NOC_CMD_CTRL",
            ));
        }
        if field == init::CMD_CTRL {
            return if value & 1 != 0 { self.start(buf, at).map(Some) } else { Ok(None) };
        }
        let mask = if field == init::PACKET_TAG { TAG_MASK } else { u32::MAX };
        match initiator.slot(field) {
            Some(slot) if writable => {
                *slot = value & mask;
                Ok(None)
            }
            _ => Err(unknown(off, "write")),
        }
    }

    fn write_config(&mut self, off: u32, value: u32) -> Result<(), Fault> {
        if off == RTZ_CLR {
            self.returned_to_zero &= !value;
            return Ok(());
        }
        if off == DEBUG_COUNTER_RESET {
            return Ok(()); // the router's flit counters, which nobody can read, and the FIFOs' overflow flags
        }
        const READ: &str = "BlackholeA0/NoC/MemoryMap.md, NIU and NoC router configuration";
        let index = ((off - noc::CFG_BASE) / 4) as usize;
        let old = self.config[index];
        if (old ^ value) & fixed_bits(off) != 0 {
            let what = format!("NIU configuration register {off:#x} changes from {old:#x} to {value:#x}");
            return Err(Fault::new(FaultClass::UnimplementedFunctionality, what, READ));
        }
        let mut config = self.config;
        config[index] = value;
        if !self.is_opted_out(&config) && !self.can_opt_in() {
            let what = "an NIU whose tile cannot receive broadcasts opts in to them";
            return Err(Fault::new(FaultClass::UnimplementedFunctionality, what, READ));
        }
        self.config = config;
        if Coordinates::depend_on(off) {
            self.take_over_coordinates();
        }
        Ok(())
    }
}

/// Initiator and field of an offset that lies in an initiator or repeats the identification registers beside it.
fn split(off: u32) -> Option<(usize, u32)> {
    let (buf, field) = (off / noc::CMD_BUF_STRIDE, off % noc::CMD_BUF_STRIDE);
    let repeated = field <= noc::ENDPOINT_ID || FIFO_STATUS.contains(&field);
    (buf < noc::CMD_BUFS && repeated && off.is_multiple_of(4)).then_some((buf as usize, field))
}

/// Status that is zero while nothing is wrong and nobody looks at routers.
fn is_idle_status(off: u32) -> bool {
    let ranges = [&ERROR_COUNTS, &ROUTER_DEBUG, &NIU_DEBUG, &SECURITY_FENCE];
    ranges.iter().any(|range| range.contains(&off)) && off.is_multiple_of(4)
}

fn in_config(off: u32) -> bool {
    (noc::CFG_BASE..noc::CFG_END).contains(&off) && off.is_multiple_of(4)
}

fn in_counters(off: u32) -> bool {
    (noc::COUNTERS..noc::COUNTERS_END).contains(&off) && off.is_multiple_of(4)
}

fn unknown(off: u32, access: &str) -> Fault {
    let page = if in_counters(off) { COUNTERS_PAGE } else { MAP_PAGE };
    let what = format!("{access} of NIU register {off:#x}");
    Fault::new(FaultClass::UnimplementedFunctionality, what, page)
}
