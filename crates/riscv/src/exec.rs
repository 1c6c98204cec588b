//! The interpreter: one `match` over predecoded instructions, generic over the bus so that memory accesses inline.
//!
//! An instruction either happens entirely, or not at all: an access that the bus refuses leaves registers and `pc` alone,
//! and advances `now` only to the cycle at which the operands are ready, so that trying again changes nothing. This is
//! what makes results independent of where `limit` cuts a run. Times come from `timing.rs`.

use crate::csr::CsrRead;
use crate::pages::Pages;
use crate::poll::Visit;
use crate::{
    Access, Amo, Bus, CODE_PAGE_BYTES, Core, CoreFault, Cycle, Effect, Exit, Insn, Op, Refuse, Store, Width, alu,
    timing,
};

/// Where `.ttinsn` stores, by the definition in `PushTensixInstruction.md`.
pub const INSTRN_BUF_BASE: u32 = 0xffe4_0000;
/// `ra`, the link register of returns.
const RA: u8 = 1;

/// An instruction on its way to the bus.
struct Issue {
    now: Cycle,
    limit: Cycle,
    pc: u32,
}

/// The extra cycles of control transfers under the present setting of the predictor.
struct Bubbles {
    /// Taken backward branch, `jal`, return.
    predicted: Cycle,
    /// Backward branch that is not taken.
    fall_through: Cycle,
}

impl Core {
    /// Executes until `now >= limit` or one of the other exits. No access to the bus happens at or after `limit`.
    pub fn run<B: Bus>(&mut self, bus: &mut B, limit: Cycle) -> Exit<B::Fault> {
        if self.parked().is_some() {
            return Exit::Parked;
        }
        if self.pc & 3 != 0 {
            let (pc, target) = (self.pc, self.pc);
            return Exit::Fault(CoreFault::MisalignedTarget { pc, target });
        }
        let mut pages = self.pages.take().unwrap_or_default();
        if bus.take_code_changed() {
            pages.clear();
        }
        let exit = self.execute(bus, limit, &mut pages);
        self.pages = Some(pages);
        exit
    }

    /// The run loop.
    ///
    /// Time and the count of instructions are kept as what must be added to `index` to get them, because most instructions
    /// take one cycle: those only move `index`. `insns` ends where the page does or where the time is up, so that one
    /// comparison finds both.
    #[inline]
    fn execute<B: Bus>(&mut self, bus: &mut B, limit: Cycle, pages: &mut Pages) -> Exit<B::Fault> {
        let mut now = self.now;
        let mut retired = self.retired;
        let mut pc = self.pc;
        // Half of time is enough, and leaves room for a sign.
        let end = limit.min(Cycle::MAX / 4).cast_signed();
        'page: loop {
            if now >= limit {
                (self.now, self.retired, self.pc) = (now, retired, pc);
                return Exit::Limit;
            }
            let bubbles = self.bubbles();
            let base = pc & !(CODE_PAGE_BYTES - 1);
            let page = match pages.get(bus, now, base) {
                Ok(page) => page,
                Err(fault) => {
                    (self.now, self.retired, self.pc) = (now, retired, pc);
                    return Exit::Fault(CoreFault::Fetch { pc, fault });
                }
            };
            // Beyond the page when the instruction lies in another one, before it too (then it is a huge number).
            let mut index = ((pc - base) / 4) as usize;
            let mut time = now.wrapping_sub(index as u64);
            let mut count = retired.wrapping_sub(index as u64);

            macro_rules! now {
                () => {
                    time.wrapping_add(index as u64)
                };
            }
            macro_rules! until_limit {
                () => {
                    page.until(end.wrapping_sub(time.cast_signed()))
                };
            }
            let mut insns = until_limit!();
            macro_rules! here {
                () => {
                    base.wrapping_add((index as u32) << 2)
                };
            }
            macro_rules! leave {
                ($exit:expr) => {{
                    (self.now, self.retired, self.pc) = (now!(), count.wrapping_add(index as u64), here!());
                    return $exit;
                }};
            }
            macro_rules! new_page {
                () => {{
                    (now, retired, pc) = (now!(), count.wrapping_add(index as u64), here!());
                    continue 'page;
                }};
            }
            // The next instruction, `$extra` cycles later than usual.
            macro_rules! next {
                ($extra:expr) => {{
                    index += 1;
                    let extra: Cycle = $extra;
                    if extra != 0 {
                        time = time.wrapping_add(extra);
                        insns = until_limit!();
                    }
                    continue;
                }};
            }
            loop {
                let Some(&Insn { op, rd, rs1, rs2, imm }) = insns.get(index) else { new_page!() };
                let [rd, rs1, rs2] = [rd & 31, rs1 & 31, rs2 & 31];
                if now!() < self.score.outstanding {
                    let ready = &self.score.ready;
                    let wait = ready[usize::from(rs1)].max(ready[usize::from(rs2)]);
                    if wait > now!() {
                        time = wait.wrapping_sub(index as u64);
                        insns = until_limit!();
                    }
                }
                let a = self.regs[usize::from(rs1)];
                let b = self.regs[usize::from(rs2)];
                let i = imm.cast_unsigned();
                let [sa, sb] = [a.cast_signed(), b.cast_signed()];

                macro_rules! attempt {
                    ($access:expr) => {
                        match $access {
                            Ok(done) => done,
                            Err(exit) => leave!(exit),
                        }
                    };
                }
                macro_rules! load {
                    ($width:expr) => {{
                        let issue = Issue { now: now!(), limit, pc: here!() };
                        attempt!(self.load(bus, &issue, a.wrapping_add(i), $width, rd))
                    }};
                }
                macro_rules! store {
                    ($width:expr) => {{
                        let issue = Issue { now: now!(), limit, pc: here!() };
                        let store = attempt!(self.store(bus, &issue, a.wrapping_add(i), $width, b));
                        if store.effect == Effect::Code {
                            index += 1;
                            time = time.wrapping_add(Cycle::from(store.hold));
                            pages.clear();
                            new_page!();
                        }
                        next!(Cycle::from(store.hold))
                    }};
                }
                macro_rules! jump {
                    ($bubble:expr) => {{
                        if imm & 3 != 0 {
                            let pc = here!();
                            let target = pc.wrapping_add(i);
                            leave!(Exit::Fault(CoreFault::MisalignedTarget { pc, target }));
                        }
                        let ahead = (imm >> 2) as isize as usize;
                        index = index.wrapping_add(ahead);
                        time = time.wrapping_add(timing::ISSUE + $bubble).wrapping_sub(ahead as u64);
                        count = count.wrapping_add(1).wrapping_sub(ahead as u64);
                        insns = until_limit!();
                        // Calls link and are not loops; a loop has a jump that does not.
                        if imm <= 0 && rd == 0 {
                            let retired = count.wrapping_add(index as u64);
                            let score = &self.score;
                            let visit = Visit { head_pc: here!(), now: now!(), retired, regs: &self.regs, score };
                            if self.polls.visit(bus, &visit) {
                                leave!(Exit::Parked);
                            }
                        }
                        continue;
                    }};
                }
                macro_rules! branch {
                    ($taken:expr) => {{
                        let predicted = timing::predicts_taken(imm);
                        if $taken {
                            jump!(if predicted { bubbles.predicted } else { timing::MISPREDICT })
                        }
                        next!(if predicted { bubbles.fall_through } else { 0 })
                    }};
                }
                macro_rules! multiply {
                    ($product:expr) => {{
                        self.result_at(rd, now!() + timing::MUL_LATENCY);
                        $product
                    }};
                }
                macro_rules! divide {
                    ($quotient:expr, $cycles:expr) => {{
                        time = time.wrapping_add($cycles - timing::ISSUE);
                        insns = until_limit!();
                        $quotient
                    }};
                }

                let value = match op {
                    Op::Lui => i,
                    Op::Auipc => here!().wrapping_add(i),
                    Op::Addi => a.wrapping_add(i),
                    Op::Slti => u32::from(sa < imm),
                    Op::Sltiu => u32::from(a < i),
                    Op::Xori => a ^ i,
                    Op::Ori => a | i,
                    Op::Andi => a & i,
                    Op::Slli => a << (i & 31),
                    Op::Srli => a >> (i & 31),
                    Op::Srai => (sa >> (i & 31)).cast_unsigned(),
                    Op::Rori => a.rotate_right(i & 31),
                    Op::Clz => a.leading_zeros(),
                    Op::Ctz => a.trailing_zeros(),
                    Op::Cpop => a.count_ones(),
                    Op::SextB => i32::from(a as i8).cast_unsigned(),
                    Op::SextH => i32::from(a as i16).cast_unsigned(),
                    Op::ZextH => a & 0xffff,
                    Op::OrcB => alu::orc_b(a),
                    Op::Rev8 => a.swap_bytes(),
                    Op::Add => a.wrapping_add(b),
                    Op::Sub => a.wrapping_sub(b),
                    Op::Sll => a << (b & 31),
                    Op::Slt => u32::from(sa < sb),
                    Op::Sltu => u32::from(a < b),
                    Op::Xor => a ^ b,
                    Op::Srl => a >> (b & 31),
                    Op::Sra => (sa >> (b & 31)).cast_unsigned(),
                    Op::Or => a | b,
                    Op::And => a & b,
                    Op::Sh1add => (a << 1).wrapping_add(b),
                    Op::Sh2add => (a << 2).wrapping_add(b),
                    Op::Sh3add => (a << 3).wrapping_add(b),
                    Op::Andn => a & !b,
                    Op::Orn => a | !b,
                    Op::Xnor => !(a ^ b),
                    Op::Min => sa.min(sb).cast_unsigned(),
                    Op::Minu => a.min(b),
                    Op::Max => sa.max(sb).cast_unsigned(),
                    Op::Maxu => a.max(b),
                    Op::Rol => a.rotate_left(b & 31),
                    Op::Ror => a.rotate_right(b & 31),

                    Op::Mul => multiply!(a.wrapping_mul(b)),
                    Op::Mulh => multiply!(alu::mulh(a, b)),
                    Op::Mulhsu => multiply!(alu::mulhsu(a, b)),
                    Op::Mulhu => multiply!(alu::mulhu(a, b)),
                    Op::Div => divide!(alu::div(a, b), timing::divide_signed(sa, sb)),
                    Op::Divu => divide!(alu::divu(a, b), timing::divide_unsigned(a, b)),
                    Op::Rem => divide!(alu::rem(a, b), timing::divide_signed(sa, sb)),
                    Op::Remu => divide!(alu::remu(a, b), timing::divide_unsigned(a, b)),

                    Op::Lw => load!(Width::Word),
                    Op::Lhu => load!(Width::Half),
                    Op::Lbu => load!(Width::Byte),
                    Op::Lh => i32::from(load!(Width::Half) as i16).cast_unsigned(),
                    Op::Lb => i32::from(load!(Width::Byte) as i8).cast_unsigned(),
                    Op::Sw => store!(Width::Word),
                    Op::Sh => store!(Width::Half),
                    Op::Sb => store!(Width::Byte),

                    Op::Beq => branch!(a == b),
                    Op::Bne => branch!(a != b),
                    Op::Blt => branch!(sa < sb),
                    Op::Bge => branch!(sa >= sb),
                    Op::Bltu => branch!(a < b),
                    Op::Bgeu => branch!(a >= b),
                    Op::Jal => {
                        if imm & 3 == 0 {
                            self.write(rd, here!().wrapping_add(4));
                        }
                        jump!(bubbles.predicted)
                    }
                    Op::Jalr => {
                        let from = here!();
                        let target = a.wrapping_add(i) & !1;
                        if target & 3 != 0 {
                            leave!(Exit::Fault(CoreFault::MisalignedTarget { pc: from, target }));
                        }
                        self.write(rd, from.wrapping_add(4));
                        let is_return = rs1 == RA && rd == 0;
                        let bubble = if is_return { bubbles.predicted } else { timing::MISPREDICT };
                        now = now!() + timing::ISSUE + bubble;
                        retired = count.wrapping_add(index as u64) + 1;
                        pc = target;
                        continue 'page;
                    }
                    Op::AmoSwap
                    | Op::AmoAdd
                    | Op::AmoXor
                    | Op::AmoAnd
                    | Op::AmoOr
                    | Op::AmoMin
                    | Op::AmoMax
                    | Op::AmoMinu
                    | Op::AmoMaxu
                    | Op::Fence
                    | Op::FenceI
                    | Op::Csrrw
                    | Op::Csrrs
                    | Op::Csrrc
                    | Op::Csrrwi
                    | Op::Csrrsi
                    | Op::Csrrci
                    | Op::Ttinsn
                    | Op::Ecall
                    | Op::Ebreak
                    | Op::Illegal => {
                        let issue = Issue { now: now!(), limit, pc: here!() };
                        let insn = Insn { op, rd, rs1, rs2, imm };
                        now = match self.rare(bus, &issue, insn, count.wrapping_add(index as u64)) {
                            Ok(next) => next,
                            // The instruction may wait for what is in flight, and then it does so only once.
                            Err((at, exit)) => {
                                (self.now, self.retired, self.pc) = (at, count.wrapping_add(index as u64), here!());
                                return exit;
                            }
                        };
                        retired = count.wrapping_add(index as u64) + 1;
                        pc = here!().wrapping_add(4);
                        if bus.take_code_changed() {
                            pages.clear();
                        }
                        // Also because the predictor may have been switched.
                        continue 'page;
                    }
                };
                self.write(rd, value);
                index += 1;
            }
        }
    }

    /// Instructions that are not in the run loop; returns the cycle at which the next one enters EX1. An error comes with
    /// the cycle at which this one did.
    #[inline(never)]
    fn rare<B: Bus>(
        &mut self,
        bus: &mut B,
        issue: &Issue,
        insn: Insn,
        retired: u64,
    ) -> Result<Cycle, (Cycle, Exit<B::Fault>)> {
        let &Issue { now, limit, pc } = issue;
        match insn.op {
            Op::Fence | Op::FenceI => {
                let now = now.max(self.score.outstanding);
                if now >= limit {
                    return Err((now, Exit::Limit));
                }
                Ok(now + Cycle::from(bus.fence(now)) + timing::FENCE)
            }
            Op::Ttinsn => {
                let hold = self.ttinsn(bus, issue, insn.imm.cast_unsigned()).map_err(|exit| (now, exit))?;
                Ok(now + timing::ISSUE + hold)
            }
            Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => {
                self.csr_access(bus, issue, insn, retired).map_err(|exit| (now, exit))
            }
            Op::Ecall => Err((now, Exit::Fault(CoreFault::Ecall { pc }))),
            Op::Ebreak => Err((now, Exit::Fault(CoreFault::Ebreak { pc }))),
            _ => match amo_of(insn.op) {
                Some(amo) => {
                    let now = now.max(self.score.outstanding);
                    let [a, b] = [insn.rs1, insn.rs2].map(|reg| self.regs[usize::from(reg & 31)]);
                    let issue = Issue { now, ..*issue };
                    let old = self.amo(bus, &issue, amo, a, b, insn.rd).map_err(|exit| (now, exit))?;
                    self.write(insn.rd, old);
                    Ok(now + timing::ISSUE)
                }
                None => {
                    let word = insn.imm.cast_unsigned();
                    Err((now, Exit::Fault(CoreFault::Illegal { pc, word })))
                }
            },
        }
    }

    fn bubbles(&self) -> Bubbles {
        if self.csr.cfg0_dis_bp() {
            Bubbles { predicted: timing::MISPREDICT, fall_through: 0 }
        } else {
            Bubbles { predicted: 0, fall_through: timing::MISPREDICT }
        }
    }

    #[inline(always)]
    fn write(&mut self, rd: u8, value: u32) {
        self.regs[usize::from(rd & 31)] = value;
        self.regs[0] = 0;
    }

    /// The result in `rd` is available from cycle `at` on, or from when an earlier one is, if that is later.
    #[inline(always)]
    fn result_at(&mut self, rd: u8, at: Cycle) {
        let ready = &mut self.score.ready[usize::from(rd & 31)];
        *ready = at.max(*ready);
        self.score.ready[0] = 0;
        self.score.outstanding = self.score.outstanding.max(at);
    }

    #[inline(always)]
    fn load<B: Bus>(
        &mut self,
        bus: &mut B,
        issue: &Issue,
        addr: u32,
        width: Width,
        rd: u8,
    ) -> Result<u32, Exit<B::Fault>> {
        let &Issue { now, pc, .. } = issue;
        issue.check(addr, width)?;
        let load = bus.load(now, pc, addr, width).map_err(|refuse| refused(refuse, pc, addr))?;
        self.result_at(rd, now + Cycle::from(load.latency));
        match load.access {
            Access::Private => {}
            Access::Watched => self.polls.note_watched(now, pc, addr, width, load),
            Access::Volatile => self.polls.note_effect(),
        }
        Ok(load.value)
    }

    #[inline(always)]
    fn store<B: Bus>(
        &mut self,
        bus: &mut B,
        issue: &Issue,
        addr: u32,
        width: Width,
        value: u32,
    ) -> Result<Store, Exit<B::Fault>> {
        let &Issue { now, pc, .. } = issue;
        issue.check(addr, width)?;
        let store = bus.store(now, pc, addr, width, value).map_err(|refuse| refused(refuse, pc, addr))?;
        if store.effect != Effect::Silent {
            self.polls.note_effect();
        }
        Ok(store)
    }

    #[inline(never)]
    fn amo<B: Bus>(
        &mut self,
        bus: &mut B,
        issue: &Issue,
        op: Amo,
        addr: u32,
        value: u32,
        rd: u8,
    ) -> Result<u32, Exit<B::Fault>> {
        let &Issue { now, pc, .. } = issue;
        issue.check(addr, Width::Word)?;
        let load = bus.amo(now, pc, op, addr, value).map_err(|refuse| refused(refuse, pc, addr))?;
        self.result_at(rd, now + Cycle::from(load.latency));
        self.polls.note_effect();
        Ok(load.value)
    }

    /// Returns the cycles for which the core is held.
    #[inline(always)]
    fn ttinsn<B: Bus>(&mut self, bus: &mut B, issue: &Issue, word: u32) -> Result<Cycle, Exit<B::Fault>> {
        let &Issue { now, pc, .. } = issue;
        issue.check(INSTRN_BUF_BASE, Width::Word)?;
        let hold = bus.ttinsn(now, pc, word).map_err(|refuse| refused(refuse, pc, INSTRN_BUF_BASE))?;
        self.polls.note_effect();
        Ok(Cycle::from(hold))
    }

    /// Returns the cycle at which the next instruction enters EX1.
    #[inline(never)]
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
                match bus.csr_read(now, csr) {
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
        if self.csr.cfg0_dis_csr_sync() { now + timing::ISSUE } else { now.max(self.score.outstanding) + timing::CSR }
    }
}

impl Issue {
    /// Whether the access may go to the bus now.
    #[inline(always)]
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
