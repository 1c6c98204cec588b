//! The register file of an NIU.

use super::coordinates::Coordinates;
use super::{MAP_PAGE, Niu, Start};
use crate::noc::grid::node_id;
use crate::{Cycle, Fault, FaultClass};
use tilework_abi::noc::{self, counter, init};
use tilework_abi::reg::{Access as Kind, Slot};
use tilework_riscv::Access;

/// Words of one request initiator, up to the last field before `NOC_CMD_CTRL`.
const INITIATOR_WORDS: usize = (init::SEC_CTRL / 4 + 1) as usize;
/// Words of configuration.
pub(super) const CONFIG_WORDS: usize = crate::noc::grid::CONFIG_WORDS;

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
    /// The page's step after each piece of a long request: the length shrinks and both addresses
    /// grow.
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

impl Niu {
    /// Reads the register at `off` from the NIU's base. A busy `NOC_CMD_CTRL` is volatile, and so
    /// is `NIU_TRANS_COUNT_RTZ_NUM`, whose read has a side effect; everything else changes only
    /// when the tile knows about it.
    ///
    /// # Errors
    /// A register that does not exist or is not modelled.
    pub(crate) fn read(&mut self, off: u32, at: Cycle) -> Result<(u32, Access), Fault> {
        self.read_reg(off).map_err(|fault| self.named(fault, at))
    }

    /// Reads what cores poll most: a counter, or `NOC_CMD_CTRL` of an initiator that is free.
    /// `None` for anything else, which [`Niu::read`] handles.
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
        let Some((initiator, slot)) = noc::register(off) else { return Err(unknown(off, "read")) };
        let value = match (slot.reg.access, initiator) {
            (Kind::NotBuilt | Kind::WoFault, _) => return Err(refused(off, slot, "read")),
            (Kind::Wo | Kind::W1c, _) => 0,
            (_, Some(buf)) => match off % noc::CMD_BUF_STRIDE {
                init::CMD_CTRL if self.initiators[buf as usize].busy => return Ok((1, Access::Volatile)),
                noc::NODE_ID => node_id(self.noc, self.place),
                noc::ENDPOINT_ID => self.endpoint_id,
                // Zero after the fields: nothing is busy, and the request FIFOs are off.
                field => self.initiators[buf as usize].get(field),
            },
            (_, None) => match off {
                noc::RTZ_SOURCE => self.returned_to_zero,
                noc::RTZ_NUM => return Ok((self.take_returned_to_zero(), Access::Volatile)),
                noc::CFG_BASE..noc::CFG_END => self.config[config_word(off)],
                noc::COUNTERS..noc::COUNTERS_END => self.counter(((off - noc::COUNTERS) / 4) as usize),
                // Error and router status, which is zero as neither is modelled.
                _ => slot.reg.reset,
            },
        };
        Ok((value, Access::Watched))
    }

    /// A read of `NIU_TRANS_COUNT_RTZ_NUM`: the lowest of the enabled bits of `RTZ_SOURCE`, which
    /// it clears unless `RTZ_CFG_RC_DISABLE` is set; the page lets hardware choose any.
    fn take_returned_to_zero(&mut self) -> u32 {
        let config = self.config[config_word(noc::RTZ_CFG)];
        let pending = self.returned_to_zero & config & noc::RTZ_CFG_ENABLE;
        if pending == 0 {
            return 0;
        }
        if config & noc::RTZ_CFG_RC_DISABLE == 0 {
            self.returned_to_zero &= !(pending & pending.wrapping_neg());
        }
        pending.trailing_zeros()
    }

    /// Writes the register at `off` from the NIU's base. Writing 1 to `NOC_CMD_CTRL` starts a
    /// request: the caller hands the returned [`Start`] to [`Niu::depart`] when its cycle comes.
    ///
    /// # Errors
    /// A register that does not exist, is read only or is not modelled; a field of an initiator
    /// whose request has not left; any request that hardware would not carry out as described.
    pub(crate) fn write(&mut self, off: u32, value: u32, at: Cycle) -> Result<Option<Start>, Fault> {
        self.write_reg(off, value, at).map_err(|fault| self.named(fault, at))
    }

    fn write_reg(&mut self, off: u32, value: u32, at: Cycle) -> Result<Option<Start>, Fault> {
        let Some((initiator, slot)) = noc::register(off) else { return Err(unknown(off, "write")) };
        if matches!(slot.reg.access, Kind::NotBuilt | Kind::Ro) {
            return Err(refused(off, slot, "write"));
        }
        if let Some(buf) = initiator {
            return self.write_initiator(buf as usize, slot, value, at);
        }
        let in_config = (noc::CFG_BASE..noc::CFG_END).contains(&off);
        let old = if in_config { self.config[config_word(off)] } else { 0 };
        let Some(new) = slot.reg.written(old, value) else { return Err(not_changed(slot, old, value)) };
        match off {
            noc::CLEAR_OUTSTANDING => self.clear_outstanding(new),
            noc::RTZ_CLR => self.returned_to_zero &= !new,
            // Only the router's flit counters, which cannot be read, and the FIFOs' overflow flags.
            noc::DEBUG_COUNTER_RESET => {}
            _ if in_config => self.write_config(off, new)?,
            _ => {} // no errors to clear, nothing to fence off
        }
        Ok(None)
    }

    /// Resets the counts of outstanding requests of the transaction ids in `ids`.
    fn clear_outstanding(&mut self, ids: u32) {
        for i in (0..16).filter(|i| ids & 1 << i != 0) {
            let outstanding = &mut self.counters[counter::MST_REQS_OUTSTANDING_ID + i];
            self.returned_to_zero |= u32::from(*outstanding != 0) << i;
            *outstanding = 0;
        }
    }

    /// Writes a word to a field that takes effect only with `NOC_CMD_CTRL`, as most writes that
    /// prepare a request do. Returns false, without effect, for any other register and for a field
    /// that must not be written now; [`Niu::write`] handles these.
    #[inline(always)]
    pub(crate) fn write_field(&mut self, off: u32, value: u32) -> bool {
        let (buf, word) = (off / noc::CMD_BUF_STRIDE, off % noc::CMD_BUF_STRIDE / 4);
        let is_plain = PLAIN_FIELDS.checked_shr(word).unwrap_or(0) & 1 != 0;
        let Some(initiator) = self.initiators.get_mut(buf as usize).filter(|it| is_plain && !it.busy) else {
            return false;
        };
        let Some(slot) = initiator.regs.get_mut(word as usize) else { return false };
        *slot = value;
        true
    }

    /// Starts the request of an initiator if that is what a write of `value` to the register at
    /// `off` does; `None`, without effect, for everything else and for a request that
    /// [`Niu::write`] refuses.
    pub(crate) fn quick_start(&mut self, off: u32, value: u32, at: Cycle) -> Option<Start> {
        let (buf, field) = ((off / noc::CMD_BUF_STRIDE) as usize, off % noc::CMD_BUF_STRIDE);
        let free = self.initiators.get(buf).is_some_and(|initiator| !initiator.busy);
        if !free || field != init::CMD_CTRL || value != 1 {
            return None;
        }
        self.start_plain_read(buf, at).or_else(|| self.start(buf, at).ok())
    }

    fn write_initiator(&mut self, buf: usize, slot: Slot, value: u32, at: Cycle) -> Result<Option<Start>, Fault> {
        let initiator = &mut self.initiators[buf];
        if initiator.busy {
            return Err(Fault::new(
                FaultClass::UndefinedBehavior,
                format!("write of {slot} while the request of initiator {buf} has not left"),
                "BlackholeA0/NoC/MemoryMap.md, NOC_CMD_CTRL",
            ));
        }
        // No field has bits that must not change.
        let value = value & slot.reg.mask;
        if slot.reg.offset == init::CMD_CTRL {
            return if value != 0 { self.start(buf, at).map(Some) } else { Ok(None) };
        }
        if let Some(field) = initiator.slot(slot.reg.offset) {
            *field = value;
        }
        Ok(None)
    }

    /// Writes a configuration register that hardware acts on or that is storage.
    fn write_config(&mut self, off: u32, value: u32) -> Result<(), Fault> {
        let mut config = self.config;
        config[config_word(off)] = value;
        if !self.is_opted_out(&config) && !self.can_opt_in() {
            let what = "an NIU whose tile cannot receive broadcasts opts in to them";
            return Err(Fault::new(FaultClass::UnimplementedFunctionality, what, CONFIG_PAGE));
        }
        self.config = config;
        if Coordinates::depend_on(off) {
            self.take_over_coordinates();
        }
        Ok(())
    }
}

const CONFIG_PAGE: &str = "BlackholeA0/NoC/MemoryMap.md, NIU and NoC router configuration";

/// Position of the configuration register at `off`, which must be one.
const fn config_word(off: u32) -> usize {
    ((off - noc::CFG_BASE) / 4) as usize
}

/// Whether a field of an initiator takes effect only with `NOC_CMD_CTRL`.
#[inline(always)]
const fn is_plain_field(field: u32) -> bool {
    field < init::PACKET_TAG || field >= init::CTRL && field <= init::AT_DATA
}

/// The words of an initiator that are such fields, a bit each.
const PLAIN_FIELDS: u32 = {
    let (mut fields, mut word) = (0, 0);
    while word < INITIATOR_WORDS as u32 {
        fields |= (is_plain_field(4 * word) as u32) << word;
        word += 1;
    }
    fields
};
const _: () = assert!(INITIATOR_WORDS <= u32::BITS as usize);

#[inline(always)]
fn in_counters(off: u32) -> bool {
    (noc::COUNTERS..noc::COUNTERS_END).contains(&off) && off.is_multiple_of(4)
}

/// An access to an offset without a register.
#[cold]
fn unknown(off: u32, access: &str) -> Fault {
    Fault::new(FaultClass::UnimplementedFunctionality, format!("{access} of NIU register {off:#x}"), MAP_PAGE)
}

/// An access that the register does not allow.
#[cold]
fn refused(off: u32, slot: Slot, access: &str) -> Fault {
    let why = slot.reg.access.refusal();
    let what = format!("{access} of {slot} (NIU register {off:#x}), which is {why}");
    Fault::new(FaultClass::UnimplementedFunctionality, what, slot.reg.page)
}

/// A write that changes bits whose effect is not modelled.
#[cold]
fn not_changed(slot: Slot, old: u32, value: u32) -> Fault {
    let what = match slot.reg.refused {
        "" => format!("{slot} changes from {old:#x} to {value:#x}, which is not built"),
        refused => format!("{slot} is set to {value:#x}: {refused}"),
    };
    Fault::new(FaultClass::UnimplementedFunctionality, what, CONFIG_PAGE)
}
