//! Instructions outside the run loop: general bus accesses, atomics, CSRs, pushes and faults.
//!
//! As in `exec.rs`, an instruction is executed entirely or not at all.

use crate::csr::CsrRead;
use crate::{Access, Amo, Bus, Core, CoreFault, Cycle, Effect, Exit, Insn, Op, Refuse, Store, Width, timing};

/// The address to which `.ttinsn` stores, as defined in `PushTensixInstruction.md`.
pub const INSTRN_BUF_BASE: u32 = 0xffe4_0000;

/// An instruction with its operands and cycle.
pub(crate) struct Issue {
    pub(crate) now: Cycle,
    pub(crate) limit: Cycle,
    pub(crate) pc: u32,
}

/// An [`Exit`] without the fault, which is large and stored separately, since this is passed
/// around often.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// [`Exit::Limit`]
    Limit,
    /// [`Exit::Sync`]
    Sync,
    /// [`Exit::Blocked`]
    Blocked {
        /// The address of the blocked access.
        addr: u32,
    },
    /// [`Exit::Parked`]
    Parked,
    /// [`Exit::Fault`]
    Fault,
}

/// How to continue after an instruction.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Then {
    /// With the next instruction.
    Next,
    /// With the next instruction, after re-reading the CSRs.
    Anew,
    /// As `Anew`, after dropping decoded code.
    NewCode,
}

impl Stop {
    /// Splits `exit`.
    fn of<F>(exit: Exit<F>, place: &mut Option<CoreFault<F>>) -> Stop {
        match exit {
            Exit::Limit => Stop::Limit,
            Exit::Sync => Stop::Sync,
            Exit::Blocked { addr } => Stop::Blocked { addr },
            Exit::Parked => Stop::Parked,
            Exit::Fault(fault) => {
                *place = Some(fault);
                Stop::Fault
            }
        }
    }

    /// The exit, with the fault that was stored separately.
    pub fn exit<F>(self, place: Option<CoreFault<F>>) -> Exit<F> {
        match (self, place) {
            (Stop::Limit, _) | (Stop::Fault, None) => Exit::Limit,
            (Stop::Sync, _) => Exit::Sync,
            (Stop::Blocked { addr }, _) => Exit::Blocked { addr },
            (Stop::Parked, _) => Exit::Parked,
            (Stop::Fault, Some(fault)) => Exit::Fault(fault),
        }
    }
}

impl Core {
    /// Executes an instruction whose operands are ready; returns the cycle at which the next one
    /// enters EX1 and how to continue. An error has the cycle at which this one entered EX1.
    #[inline(never)]
    pub(crate) fn rare<B: Bus>(
        &mut self,
        bus: &mut B,
        issue: &Issue,
        insn: Insn,
        retired: u64,
        fault: &mut Option<CoreFault<B::Fault>>,
    ) -> Result<(Cycle, Then), (Cycle, Stop)> {
        let &Issue { now, pc, .. } = issue;
        let mut stop = |exit| (now, Stop::of(exit, fault));
        let [a, b] = [insn.rs1, insn.rs2].map(|reg| self.regs[usize::from(reg & 31)]);
        let offset = insn.imm.cast_unsigned();
        let misaligned = |target| Exit::Fault(CoreFault::MisalignedTarget { pc, target });
        let mut then = Then::Anew;
        let next = match insn.op {
            Op::Lw | Op::Lhu | Op::Lbu | Op::Lh | Op::Lb => {
                self.load(bus, issue, a, insn).map_err(&mut stop)?;
                then = Then::Next;
                now + timing::ISSUE
            }
            Op::Sw | Op::Sh | Op::Sb => {
                let store = self.store(bus, issue, a, b, insn).map_err(&mut stop)?;
                then = if store.effect == Effect::Code { Then::NewCode } else { Then::Next };
                now + timing::ISSUE + Cycle::from(store.hold)
            }
            // It waits for accesses in flight until the limit; otherwise the run loop executes it.
            Op::Fence | Op::FenceI => return Err((now.max(self.outstanding), Stop::Limit)),
            Op::Ttinsn => {
                let hold = self.ttinsn(bus, issue, insn.imm.cast_unsigned()).map_err(&mut stop)?;
                then = Then::Next;
                now + timing::ISSUE + hold
            }
            Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => {
                self.csr_access(bus, issue, insn, retired).map_err(&mut stop)?
            }
            Op::Ecall => return Err(stop(Exit::Fault(CoreFault::Ecall { pc }))),
            Op::Ebreak => return Err(stop(Exit::Fault(CoreFault::Ebreak { pc }))),
            // The run loop executes all others.
            Op::Beq | Op::Bne | Op::Blt | Op::Bge | Op::Bltu | Op::Bgeu | Op::Jal => {
                return Err(stop(misaligned(pc.wrapping_add(offset))));
            }
            Op::Jalr => return Err(stop(misaligned(a.wrapping_add(offset) & !1))),
            _ => match amo_of(insn.op) {
                Some(amo) => {
                    let now = now.max(self.outstanding);
                    let issue = Issue { now, ..*issue };
                    self.amo(bus, &issue, amo, [a, b], insn.rd).map_err(|exit| (now, stop(exit).1))?;
                    now + timing::ISSUE
                }
                None => return Err(stop(Exit::Fault(CoreFault::Illegal { pc, word: offset }))),
            },
        };
        Ok((next, if bus.take_code_changed() { Then::NewCode } else { then }))
    }

    fn load<B: Bus>(&mut self, bus: &mut B, issue: &Issue, base: u32, insn: Insn) -> Result<(), Exit<B::Fault>> {
        let &Issue { now, pc, .. } = issue;
        let addr = base.wrapping_add(insn.imm.cast_unsigned());
        let width = width_of(insn.op);
        issue.check(addr, width)?;
        let load = bus.load(now, pc, addr, width).map_err(|refuse| refused(refuse, pc, addr))?;
        self.result_at(insn.rd, now + Cycle::from(load.latency));
        match load.access {
            Access::Private => {}
            Access::Watched => self.polls.note_loaded(now, pc, addr, width, load.value),
            Access::Volatile => self.polls.note_effect(),
        }
        let value = match insn.op {
            Op::Lh => i32::from(load.value as i16).cast_unsigned(),
            Op::Lb => i32::from(load.value as i8).cast_unsigned(),
            _ => load.value,
        };
        self.write(insn.rd, value);
        Ok(())
    }

    fn store<B: Bus>(
        &mut self,
        bus: &mut B,
        issue: &Issue,
        base: u32,
        value: u32,
        insn: Insn,
    ) -> Result<Store, Exit<B::Fault>> {
        let &Issue { now, pc, .. } = issue;
        let addr = base.wrapping_add(insn.imm.cast_unsigned());
        let width = width_of(insn.op);
        issue.check(addr, width)?;
        let store = bus.store(now, pc, addr, width, value).map_err(|refuse| refused(refuse, pc, addr))?;
        match store.effect {
            Effect::Silent => {}
            Effect::Same => self.polls.note_stored(now, pc, addr, width, value & width.mask()),
            Effect::Visible | Effect::Code => self.polls.note_effect(),
        }
        Ok(store)
    }

    fn amo<B: Bus>(
        &mut self,
        bus: &mut B,
        issue: &Issue,
        op: Amo,
        [addr, value]: [u32; 2],
        rd: u8,
    ) -> Result<(), Exit<B::Fault>> {
        let &Issue { now, pc, .. } = issue;
        issue.check(addr, Width::Word)?;
        let load = bus.amo(now, pc, op, addr, value).map_err(|refuse| refused(refuse, pc, addr))?;
        self.result_at(rd, now + Cycle::from(load.latency));
        self.polls.note_effect();
        self.write(rd, load.value);
        Ok(())
    }

    /// Returns the cycles for which the core is held.
    fn ttinsn<B: Bus>(&mut self, bus: &mut B, issue: &Issue, word: u32) -> Result<Cycle, Exit<B::Fault>> {
        let &Issue { now, pc, .. } = issue;
        issue.check(INSTRN_BUF_BASE, Width::Word)?;
        let hold = bus.ttinsn(now, pc, word).map_err(|refuse| refused(refuse, pc, INSTRN_BUF_BASE))?;
        self.polls.note_effect();
        Ok(Cycle::from(hold))
    }

    /// Returns the cycle at which the next instruction enters EX1.
    fn csr_access<B: Bus>(
        &mut self,
        bus: &mut B,
        issue: &Issue,
        insn: Insn,
        retired: u64,
    ) -> Result<Cycle, Exit<B::Fault>> {
        let &Issue { now, limit, pc } = issue;
        if now >= limit {
            return Err(Exit::Limit);
        }
        let csr = (insn.imm & 0xfff) as u16;
        let unknown = Exit::Fault(CoreFault::UnknownCsr { pc, csr });
        let instructions = retired + self.skipped;
        let old = match self.csr.read(csr, now, instructions) {
            CsrRead::Stable(value) => value,
            CsrRead::Volatile(value) => {
                self.polls.note_effect();
                value
            }
            CsrRead::Foreign => {
                self.polls.note_effect();
                match bus.csr_read(now, csr).map_err(|refuse| refused(refuse, pc, csr.into()))? {
                    Some(value) => value,
                    None => return Err(unknown),
                }
            }
        };
        let uimm = (insn.imm >> 12 & 31).cast_unsigned();
        let rs1 = self.regs[usize::from(insn.rs1 & 31)];
        let new = match insn.op {
            Op::Csrrw => Some(rs1),
            Op::Csrrs if insn.rs1 != 0 => Some(old | rs1),
            Op::Csrrc if insn.rs1 != 0 => Some(old & !rs1),
            Op::Csrrwi => Some(uimm),
            Op::Csrrsi if uimm != 0 => Some(old | uimm),
            Op::Csrrci if uimm != 0 => Some(old & !uimm),
            _ => None,
        };
        let mut next = self.after_csr(now);
        if let Some(value) = new {
            self.polls.note_effect();
            if self.csr.write(csr, value, now, instructions) {
                bus.csr_changed(now, &self.csr);
            } else if !bus.csr_write(now, csr, value) {
                return Err(unknown);
            }
            next = next.max(self.after_csr(now));
        }
        self.write(insn.rd, old);
        Ok(next)
    }

    fn after_csr(&self, now: Cycle) -> Cycle {
        if self.csr.cfg0_dis_csr_sync() { now + timing::ISSUE } else { now.max(self.outstanding) + timing::CSR }
    }
}

impl Issue {
    /// Whether the access may go to the bus now.
    fn check<F>(&self, addr: u32, width: Width) -> Result<(), Exit<F>> {
        let pc = self.pc;
        if addr & (width.bytes() - 1) != 0 {
            return Err(Exit::Fault(CoreFault::MisalignedAccess { pc, addr, width }));
        }
        if self.now >= self.limit {
            return Err(Exit::Limit);
        }
        Ok(())
    }
}

#[cold]
fn refused<F>(refuse: Refuse<F>, pc: u32, addr: u32) -> Exit<F> {
    match refuse {
        Refuse::Sync => Exit::Sync,
        Refuse::Block => Exit::Blocked { addr },
        Refuse::Fault(fault) => Exit::Fault(CoreFault::Bus { pc, fault }),
    }
}

/// Width of a load or store.
fn width_of(op: Op) -> Width {
    match op {
        Op::Lb | Op::Lbu | Op::Sb => Width::Byte,
        Op::Lh | Op::Lhu | Op::Sh => Width::Half,
        _ => Width::Word,
    }
}

/// The operation of an atomic instruction.
fn amo_of(op: Op) -> Option<Amo> {
    Some(match op {
        Op::AmoSwap => Amo::Swap,
        Op::AmoAdd => Amo::Add,
        Op::AmoXor => Amo::Xor,
        Op::AmoAnd => Amo::And,
        Op::AmoOr => Amo::Or,
        Op::AmoMin => Amo::Min,
        Op::AmoMax => Amo::Max,
        Op::AmoMinu => Amo::Minu,
        Op::AmoMaxu => Amo::Maxu,
        _ => return None,
    })
}
