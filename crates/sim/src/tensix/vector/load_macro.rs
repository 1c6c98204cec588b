//! `SFPLOADMACRO`: instructions that execute later, beside those that threads issue.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/SFPLOADMACRO.md. In each cycle the scheduled
//! instructions come first, then the one that a thread issues; all see the registers and flags with
//! which the cycle began, and what they write arrives one cycle later, or two for those of the MAD
//! sub-unit. Nothing stalls for them. A register that is written in two instructions' last cycle
//! gets the value of the one that was started later; the page does not say.

use super::load_store::{Format, Load};
use super::regs::{Regs, SubUnit, latency};
use super::{COLUMNS, LReg, Lanes, MACRO_LREG, Operands, Vector, put, undefined};
use crate::tensix::config::Refusal;
use crate::{Cycle, NEVER};
use tilework_abi::tensix::insn::{Sfploadmacro, VectorOp};

/// Bits of a sequence for each sub-unit: what, how long after, and which operands are replaced.
const SEQUENCE_BITS: usize = 8;
/// The place of the sequences in `LoadMacroConfig`.
const SEQUENCES: usize = 4;
/// The place of `Misc`.
const MISC: usize = 8;
/// The longest delay.
const LONGEST: u32 = 7;
/// Of sequence bits: VB is replaced, not VC; of a store: VD is not replaced.
const REPLACE_VB: u32 = 0x80;
/// Of sequence bits: VD is the register of macros.
const MACRO_VD: u32 = 0x40;

/// What a scheduled instruction does.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// `SFPNOP`.
    Nothing,
    Op(VectorOp, Regs),
    Store {
        vd: usize,
        format: Format,
        addr: u32,
    },
}

/// An instruction that executes later.
#[derive(Clone, Copy, Debug)]
struct Scheduled {
    work: Work,
    unit: SubUnit,
    /// It executes in the cycle after this has become zero.
    delay: u32,
    /// `WaitForElapsedInstructions`.
    counts_instructions: bool,
    lanes: u32,
}

/// What a macro starts from.
#[derive(Clone, Copy)]
struct Start {
    load: Load,
    /// The address of the load, which is that of the store.
    addr: u32,
    /// Which macro.
    index: usize,
}

/// Values on their way to a register.
#[derive(Clone, Copy, Debug)]
struct Write {
    at: Cycle,
    d: usize,
    mask: u32,
    values: LReg,
}

/// The second cycle of a scheduled `SFPSWAP`, which is the next one.
#[derive(Clone, Copy, Debug)]
struct Swap {
    regs: Regs,
    mask: u32,
}

/// What is scheduled and on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Macros {
    scheduled: Vec<Scheduled>,
    writes: Vec<Write>,
    swap: Option<Swap>,
    /// When what is written now arrives; `None`: at once.
    arrival: Option<Cycle>,
    /// The last cycle in which scheduled instructions executed.
    cycle: Cycle,
    /// The lanes that were enabled when it began.
    enabled: u32,
    /// The sub-units of those instructions.
    taken: u8,
    /// Of the simple and the round one, those whose instruction has an ordinary VD and is not
    /// `SFPNOP`.
    ordinary: u8,
    /// The thread whose macro was the last.
    thread: usize,
}

impl Macros {
    fn is_idle(&self) -> bool {
        self.scheduled.is_empty() && self.writes.is_empty() && self.swap.is_none()
    }

    /// Whether nothing is scheduled or on its way, and nothing scheduled has executed in cycle
    /// `now`: an instruction that is issued has the unit for itself.
    #[inline]
    pub(super) fn is_quiet(&self, now: Cycle) -> bool {
        self.is_idle() && self.cycle != now
    }

    /// Whether writes arrive later.
    #[inline]
    pub(super) fn delays_writes(&self) -> bool {
        self.arrival.is_some()
    }

    /// What the next instruction writes arrives at cycle `at`, if others are in flight.
    pub(super) fn set_arrival(&mut self, at: Cycle) {
        self.arrival = (!self.is_idle()).then_some(at);
    }

    pub(super) fn write_later(&mut self, d: usize, values: &LReg, mask: u32) {
        if let Some(at) = self.arrival {
            self.writes.push(Write { at, d, mask, values: *values });
        }
    }

    /// A thread issues an instruction for `unit` in cycle `now`; true: a scheduled one has the
    /// sub-unit.
    pub(super) fn count_instruction(&mut self, now: Cycle, unit: SubUnit) -> bool {
        if self.counts_instructions() {
            self.count_down();
        }
        self.cycle == now && self.taken & bit(unit) != 0
    }

    /// Whether an instruction for `unit` in cycle `now` and a scheduled one would write together.
    pub(super) fn clashes(&self, now: Cycle, unit: SubUnit) -> bool {
        matches!(unit, SubUnit::Simple | SubUnit::Round) && self.cycle == now && self.ordinary != 0
    }

    fn counts_instructions(&self) -> bool {
        self.scheduled.iter().any(|s| s.counts_instructions)
    }

    fn count_down(&mut self) {
        self.scheduled.iter_mut().for_each(|s| s.delay = s.delay.saturating_sub(1));
    }

    /// Nothing more executes in the lanes of `mask` at the time at which `delay` ends.
    fn forget(&mut self, unit: SubUnit, delay: u32, mask: u32) {
        for s in self.scheduled.iter_mut().filter(|s| s.unit == unit && s.delay == delay) {
            s.lanes &= !mask;
        }
        self.scheduled.retain(|s| s.lanes != 0);
    }
}

fn bit(unit: SubUnit) -> u8 {
    1 << unit as u8
}

impl Vector {
    /// The lanes that are enabled as cycle `now` begins.
    pub(super) fn begin(&mut self, now: Cycle) -> u32 {
        if !self.macros.writes.is_empty() {
            self.settle(now);
        }
        if self.macros.cycle == now && self.macros.taken != 0 { self.macros.enabled } else { self.enabled() }
    }

    /// Registers get what has arrived by cycle `now`.
    fn settle(&mut self, now: Cycle) {
        let lregs = &mut self.lregs;
        // In the order in which they arrive, as nothing may have looked in between.
        self.macros.writes.sort_by_key(|write| write.at);
        self.macros.writes.retain(|write| {
            let arrived = write.at <= now;
            if arrived {
                put(&mut lregs[write.d], &write.values, write.mask);
            }
            !arrived
        });
    }

    /// `SFPLOADMACRO`.
    pub(super) fn load_macro(
        &mut self,
        on: &mut Operands<'_>,
        insn: Sfploadmacro,
        lanes: Lanes,
    ) -> Result<(), Refusal> {
        let load = Load::of_macro(insn);
        let from = Start { load, addr: self.load(on, load, lanes)?, index: insn.macro_index() as usize };
        self.macros.thread = on.thread;
        let mut left = 0xFFu32;
        while left != 0 {
            let column = left.trailing_zeros() as usize;
            let is_same = |other: usize| self.macro_config.iter().all(|slot| slot[other] == slot[column]);
            let same = (column..COLUMNS).filter(|&other| is_same(other)).fold(0, |mask, other| mask | 1 << other);
            left &= !same;
            for (i, unit) in SubUnit::SCHEDULED.into_iter().enumerate() {
                let bits = self.macro_config[SEQUENCES + from.index][column] >> (SEQUENCE_BITS * i);
                let delay = bits >> 3 & LONGEST;
                let mask = same * 0x0101_0101;
                let work = self.work(on, unit, bits, column, from)?;
                // The page's model forgets for a sub-unit without bits as well. The public kernel
                // library's `mul_int32` would lose stores by that, its reciprocal of FP32 a store
                // and a product.
                if delay != LONGEST && bits as u8 != 0 {
                    self.macros.forget(unit, delay, mask);
                }
                let Some(work) = work else { continue };
                let counts_instructions = self.macro_config[MISC][column] >> (8 + i) & 1 != 0;
                self.macros.scheduled.push(Scheduled { work, unit, delay, counts_instructions, lanes: mask });
            }
        }
        Ok(())
    }

    /// What a macro's sequence bits schedule for a sub-unit.
    fn work(
        &self,
        on: &Operands<'_>,
        unit: SubUnit,
        bits: u32,
        column: usize,
        from: Start,
    ) -> Result<Option<Work>, Refusal> {
        let Start { load, addr, index } = from;
        let insn = match bits & 7 {
            0 => return Ok(None),
            1 => return undefined("SFPLOADMACRO with sequence bits 1"),
            2 | 3 => None,
            template => VectorOp::decode(self.macro_config[template as usize - SEQUENCES][column]),
        };
        if unit == SubUnit::Store {
            let vd = match insn {
                None if bits & 7 == 3 => 0,
                Some(VectorOp::Sfpstore(insn)) => insn.vd() as usize,
                _ => return undefined("SFPLOADMACRO that schedules no store for the store sub-unit"),
            };
            let vd = match bits & (REPLACE_VB | MACRO_VD) {
                0 => load.vd,
                REPLACE_VB => vd,
                _ => MACRO_LREG,
            };
            let misc = self.macro_config[MISC][column];
            let mod0 = if misc >> (4 + index) & 1 != 0 { load.mod0 } else { misc & 0xF };
            return Ok(Some(Work::Store { vd, format: Format::of(mod0, on.config, on.thread), addr }));
        }
        // What the sub-unit cannot execute is as good as SFPNOP.
        let Some(insn) = insn.filter(|&insn| SubUnit::of(insn) == unit) else { return Ok(Some(Work::Nothing)) };
        let mut regs = Regs::of(insn);
        if bits & REPLACE_VB != 0 {
            regs.b = load.vd;
        } else {
            regs.c = load.vd;
        }
        // `SFPSWAP` reads VD where others read VB. If that is not replaced, VD is the template's:
        // the loaded register, VC, is compared with it. The public kernel library's fast
        // exponential bounds its operand in this way by a constant (tt-metal,
        // `ckernel_sfpu_exp.h`).
        let compares = matches!(insn, VectorOp::Sfpswap(_)) && bits & REPLACE_VB == 0;
        regs.d = match bits & MACRO_VD {
            0 if compares => regs.d,
            0 => load.vd,
            _ => MACRO_LREG,
        };
        Ok(Some(Work::Op(insn, regs)))
    }

    /// Whether something is scheduled.
    #[inline]
    pub(in crate::tensix) fn has_scheduled(&self) -> bool {
        !self.macros.scheduled.is_empty() || self.macros.swap.is_some()
    }

    /// The next cycle in which something that is scheduled happens by itself; `now` is over.
    pub(in crate::tensix) fn next_scheduled(&self, now: Cycle) -> Cycle {
        let macros = &self.macros;
        let due = macros.scheduled.iter().any(|s| s.delay == 0) || macros.swap.is_some();
        if due || !macros.scheduled.is_empty() && !macros.counts_instructions() { now + 1 } else { NEVER }
    }

    /// Until when scheduled instructions are in the pipeline, so far as that does not depend on
    /// what threads issue; `now` is over.
    pub(in crate::tensix) fn scheduled_until(&self, now: Cycle) -> Cycle {
        let counts = self.macros.counts_instructions();
        let certain = self.macros.scheduled.iter().filter(|s| s.delay == 0 || !counts);
        certain.map(|s| now + 1 + Cycle::from(s.delay) + 2).max().unwrap_or(0)
    }

    /// The thread whose macro was the last.
    pub(in crate::tensix) fn scheduling_thread(&self) -> usize {
        self.macros.thread
    }

    /// Executes what is due.
    pub(in crate::tensix) fn step_scheduled(&mut self, on: &mut Operands<'_>) -> Result<(), Refusal> {
        let now = on.now;
        self.settle(now);
        let enabled = self.enabled();
        self.macros.cycle = now;
        self.macros.enabled = enabled;
        (self.macros.taken, self.macros.ordinary) = (0, 0);
        let second = self.macros.swap.take();
        let mut i = 0;
        while i < self.macros.scheduled.len() {
            if self.macros.scheduled[i].delay != 0 {
                i += 1;
                continue;
            }
            let scheduled = self.macros.scheduled.remove(i);
            self.take_sub_unit(scheduled, second.is_some())?;
            let lanes = Lanes { all: scheduled.lanes, enabled: enabled & scheduled.lanes };
            self.execute_scheduled(on, scheduled.work, lanes)?;
        }
        if let Some(swap) = second {
            self.macros.arrival = Some(now + 1);
            self.exchange(swap.regs, swap.mask);
        }
        self.macros.arrival = None;
        if !self.macros.counts_instructions() {
            self.macros.count_down();
        }
        Ok(())
    }

    /// Notes which sub-unit an instruction has in this cycle, and refuses what the page's footnotes
    /// forbid.
    fn take_sub_unit(&mut self, scheduled: Scheduled, after_swap: bool) -> Result<(), Refusal> {
        let macros = &mut self.macros;
        macros.taken |= bit(scheduled.unit);
        let Work::Op(_, regs) = scheduled.work else { return Ok(()) };
        let writes_port = matches!(scheduled.unit, SubUnit::Simple | SubUnit::Round);
        if after_swap && writes_port {
            return undefined("an SFPLOADMACRO sequence uses the simple or round sub-unit in SFPSWAP's second cycle");
        }
        if writes_port && regs.d != MACRO_LREG {
            macros.ordinary |= bit(scheduled.unit);
        }
        if macros.ordinary == bit(SubUnit::Simple) | bit(SubUnit::Round) {
            return undefined("SFPLOADMACRO sequences write from the simple and the round sub-unit in one cycle");
        }
        Ok(())
    }

    fn execute_scheduled(&mut self, on: &mut Operands<'_>, work: Work, lanes: Lanes) -> Result<(), Refusal> {
        match work {
            Work::Nothing => {}
            Work::Store { vd, format, addr } => self.store(on, vd, addr, format, lanes),
            Work::Op(VectorOp::Sfpswap(insn), regs) => {
                let mask = self.swaps(insn.mod1(), regs, lanes);
                self.macros.swap = Some(Swap { regs, mask });
            }
            Work::Op(insn, regs) => {
                self.macros.arrival = Some(on.now + latency(insn));
                self.run(insn, regs, lanes)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "load_macro_tests.rs"]
mod tests;
