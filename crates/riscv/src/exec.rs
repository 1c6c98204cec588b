//! The interpreter: one `match` over predecoded instructions, generic over the bus so that memory
//! accesses inline.
//!
//! An instruction is executed entirely or not at all: an access that the bus refuses leaves
//! registers and `pc` unchanged and advances `now` only to the cycle at which the operands are
//! ready, so that a retry changes nothing. That makes results independent of where `limit` ends a
//! run. Times come from `timing.rs`.
//!
//! The loop itself calls nothing (except to record loads of a loop that may be parked), so that the
//! compiler keeps `now` and `pc` in registers. Long or rare instructions leave it and are executed
//! in `rare.rs`; then it continues.

use crate::loop_head::Visit;
use crate::pages::Current;
use crate::poll::Visited;
use crate::rare::{INSTRN_BUF_BASE, Issue, Stop, Then};
use crate::{
    Access, Bus, CODE_PAGE_BYTES, Core, CoreFault, Cycle, Effect, Exit, Insn, NotQuick, Op, Width, alu, timing,
};

/// `ra`, the link register of returns.
const RA: u8 = 1;

/// Why the inner loop pauses.
enum Pause {
    /// The next instruction is on another page, or the limit is reached.
    Page,
    /// This instruction's access must wait for another agent.
    Sync,
    /// This push waits for room.
    Full,
    /// This instruction is executed outside the loop.
    Rare,
    /// A backward jump leads to a loop head that has to be examined.
    Visit,
}

impl Core {
    /// Executes until `now >= limit` or one of the other exits. No access to the bus happens at or
    /// after `limit`.
    pub fn run<B: Bus>(&mut self, bus: &mut B, limit: Cycle) -> Exit<B::Fault> {
        let mut fault = None;
        self.run_apart(bus, limit, &mut fault).exit(fault)
    }

    /// [`Core::run`], with the fault of [`Stop::Fault`] apart: what is returned stays in registers,
    /// and its reader waits for no store.
    #[inline]
    pub fn run_apart<B: Bus>(&mut self, bus: &mut B, limit: Cycle, fault: &mut Option<CoreFault<B::Fault>>) -> Stop {
        if self.parked().is_some() {
            return Stop::Parked;
        }
        if self.pc & 3 != 0 {
            let (pc, target) = (self.pc, self.pc);
            *fault = Some(CoreFault::MisalignedTarget { pc, target });
            return Stop::Fault;
        }
        let mut current = self.pages.take_current();
        if bus.take_code_changed() {
            current = self.pages.cleared();
        }
        let stop = self.execute(bus, limit, &mut current, fault);
        self.pages.give_back(current);
        stop
    }

    /// The run loop, in one function although it is long: an arm for each instruction, most of one
    /// line. Arms leave or repeat the inner loop and change `now`, `index` and `count`, which must
    /// stay in registers. Divided into inlined functions that take these by reference, a class of
    /// instructions each, it ran at half to two thirds of its speed (`examples/mips.rs`): the
    /// compiler kept some of them on the stack, and a second `match` for the instructions that
    /// only compute is a second indirect jump.
    ///
    /// The count of instructions is kept as what must be added to `index` to get it: most
    /// instructions only move `index`. The compiler does not know that the next index is one more:
    /// otherwise it keeps the address and the place on the page beside it, and each instruction has
    /// to change all three (8 % of the host instructions of the loop).
    #[inline]
    fn execute<B: Bus>(
        &mut self,
        bus: &mut B,
        limit: Cycle,
        current: &mut Current,
        fault: &mut Option<CoreFault<B::Fault>>,
    ) -> Stop {
        let mut now = self.now;
        let mut retired = self.retired;
        let mut pc = self.pc;
        let unknown_zero = std::hint::black_box(0);
        'page: loop {
            if now >= limit {
                (self.now, self.retired, self.pc) = (now, retired, pc);
                return Stop::Limit;
            }
            let base = pc & !(CODE_PAGE_BYTES - 1);
            let page = match self.pages.get(current, bus, now, (base, pc)) {
                Ok(page) => page,
                Err(cause) => {
                    (self.now, self.retired, self.pc) = (now, retired, pc);
                    *fault = Some(CoreFault::Fetch { pc, fault: cause });
                    return Stop::Fault;
                }
            };
            // Out of range if the instruction is on another page (a huge number if that is
            // a lower one).
            let mut index = ((pc - base) / 4) as usize;
            // What must be added to `index` to get the executed instructions.
            let mut count = retired.wrapping_sub(index as u64);

            macro_rules! here {
                () => {
                    base.wrapping_add((index as u32) << 2)
                };
            }
            // The next instruction, `$extra` cycles later than usual.
            macro_rules! next {
                ($extra:expr) => {{
                    index += 1;
                    now += timing::ISSUE + $extra;
                    continue;
                }};
            }
            // Continues after a pause of the inner loop while the page stays the same.
            loop {
                let pause = loop {
                    if now >= limit {
                        break Pause::Page;
                    }
                    let Some(insn) = page.insns.get(index) else { break Pause::Page };
                    if B::COUNTS {
                        bus.issue(now, here!(), count.wrapping_add(index as u64));
                    }
                    // `rd` is read where it is needed, so that it does not occupy a register in
                    // every instruction.
                    let &Insn { op, rs1, rs2, imm, .. } = insn;
                    let [rs1, rs2] = [rs1 & 31, rs2 & 31];
                    if now < self.outstanding {
                        let ready = &self.ready;
                        now = now.max(ready[usize::from(rs1)]).max(ready[usize::from(rs2)]);
                    }
                    let a = self.regs[usize::from(rs1)];
                    let b = self.regs[usize::from(rs2)];
                    let i = imm.cast_unsigned();
                    let [sa, sb] = [a.cast_signed(), b.cast_signed()];

                    macro_rules! rare {
                        () => {
                            break Pause::Rare
                        };
                    }
                    // Checks whether an access of this width may go to the bus now.
                    macro_rules! may_access {
                        ($addr:expr, $width:expr) => {
                            $addr & ($width.bytes() - 1) == 0 && now < limit
                        };
                    }
                    macro_rules! quick {
                        ($access:expr) => {
                            match $access {
                                Ok(done) => done,
                                Err(NotQuick::Ask) => rare!(),
                                Err(NotQuick::Sync) => break Pause::Sync,
                                Err(NotQuick::Full) => break Pause::Full,
                            }
                        };
                    }
                    macro_rules! load {
                        ($width:expr) => {{
                            let addr = a.wrapping_add(i);
                            if !may_access!(addr, $width) {
                                rare!()
                            }
                            let load = quick!(bus.quick_load(now, here!(), addr, $width));
                            self.result_at(insn.rd, now + Cycle::from(load.latency));
                            match load.access {
                                Access::Private => {}
                                Access::Watched => self.polls.note_loaded(now, here!(), addr, $width, load.value),
                                Access::Volatile => self.polls.note_effect(),
                            }
                            load.value
                        }};
                    }
                    macro_rules! store {
                        ($width:expr) => {{
                            let addr = a.wrapping_add(i);
                            let records = self.polls.records();
                            if !may_access!(addr, $width) || records && !bus.knows_effect(addr, $width, b) {
                                rare!()
                            }
                            let store = quick!(bus.quick_store(now, here!(), addr, $width, b));
                            if records && store.effect != Effect::Silent {
                                self.polls.note_effect();
                            }
                            next!(Cycle::from(store.hold))
                        }};
                    }
                    macro_rules! jump {
                        ($bubble:expr) => {{
                            if imm & 3 != 0 {
                                rare!()
                            }
                            let ahead = (imm >> 2) as isize as usize;
                            index = index.wrapping_add(ahead);
                            now += timing::ISSUE + $bubble;
                            count = count.wrapping_add(1).wrapping_sub(ahead as u64);
                            // Calls link and are not loops; a loop has a jump that does not.
                            if imm <= 0 && insn.rd == 0 && !self.polls.passes(here!()) {
                                break Pause::Visit;
                            }
                            continue;
                        }};
                    }
                    macro_rules! branch {
                        ($taken:expr) => {{
                            let predicted = timing::predicts_taken(imm);
                            if $taken {
                                jump!(if predicted { self.predicted() } else { timing::MISPREDICT })
                            }
                            next!(if predicted { timing::MISPREDICT - self.predicted() } else { 0 })
                        }};
                    }
                    macro_rules! multiply {
                        ($product:expr) => {{
                            self.result_at(insn.rd, now + timing::MUL_LATENCY);
                            $product
                        }};
                    }
                    macro_rules! divide {
                        ($quotient:expr, $cycles:expr) => {{
                            now += $cycles - timing::ISSUE;
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
                        Op::OrcB => alu::orc_b(a),
                        Op::Rev8 => a.swap_bytes(),
                        Op::Brev8 => a.reverse_bits().swap_bytes(),
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
                        Op::Pack => a & 0xffff | b << 16,

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
                                self.write(insn.rd, here!().wrapping_add(4));
                            }
                            jump!(self.predicted())
                        }
                        Op::Jalr => {
                            let from = here!();
                            let target = a.wrapping_add(i) & !1;
                            if target & 3 != 0 {
                                rare!()
                            }
                            self.write(insn.rd, from.wrapping_add(4));
                            let is_return = insn.rs1 == RA && insn.rd == 0;
                            let bubble = if is_return { self.predicted() } else { timing::MISPREDICT };
                            now += timing::ISSUE + bubble;
                            retired = count.wrapping_add(index as u64) + 1;
                            pc = target;
                            continue 'page;
                        }
                        Op::Ttinsn => {
                            if now >= limit {
                                rare!()
                            }
                            // Kernels push in rows: those that follow go with the first.
                            let row = page.insns.get(index..).unwrap_or_default();
                            let pushed = quick!(bus.quick_ttinsns(now, limit, here!(), row));
                            self.polls.note_effect();
                            index += pushed;
                            now += pushed as Cycle * timing::ISSUE;
                            continue;
                        }
                        Op::Fence | Op::FenceI => {
                            let at = now.max(self.outstanding);
                            if at >= limit {
                                rare!()
                            }
                            now = at + Cycle::from(bus.fence(at, here!(), op == Op::FenceI)) + timing::FENCE;
                            index += 1;
                            continue;
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
                        | Op::Csrrw
                        | Op::Csrrs
                        | Op::Csrrc
                        | Op::Csrrwi
                        | Op::Csrrsi
                        | Op::Csrrci
                        | Op::Ecall
                        | Op::Ebreak
                        | Op::Illegal => rare!(),
                    };
                    self.write(insn.rd, value);
                    index = (index + 1) ^ unknown_zero;
                    now += timing::ISSUE;
                };
                (retired, pc) = (count.wrapping_add(index as u64), here!());
                match pause {
                    Pause::Page => continue 'page,
                    Pause::Sync => {
                        (self.now, self.retired, self.pc) = (now, retired, pc);
                        return Stop::Sync;
                    }
                    Pause::Full => {
                        (self.now, self.retired, self.pc) = (now, retired, pc);
                        return Stop::Blocked { addr: INSTRN_BUF_BASE };
                    }
                    Pause::Rare => {
                        let insn = page.insns[index % page.insns.len()];
                        match self.rare(bus, &Issue { now, limit, pc }, insn, retired, fault) {
                            Ok((next, then)) => {
                                index += 1;
                                now = next;
                                if then != Then::Next {
                                    (retired, pc) = (retired + 1, here!());
                                    if then == Then::NewCode {
                                        *current = self.pages.cleared();
                                    }
                                    continue 'page;
                                }
                            }
                            // The instruction may wait for accesses in flight; it must do
                            // so only once.
                            Err((at, stop)) => {
                                (self.now, self.retired, self.pc) = (at, retired, pc);
                                return stop;
                            }
                        }
                    }
                    Pause::Visit => {
                        let place = (pc, &page.insns[..], index);
                        let parked = self.visit_head(bus, (now, limit), place, retired);
                        if let Some((now, retired)) = parked {
                            (self.now, self.retired, self.pc) = (now, retired, pc);
                            return Stop::Parked;
                        }
                    }
                }
            }
        }
    }

    /// Examines the loop head to which a backward jump leads, with the instructions from there on;
    /// the cycle and the count of instructions if the core is parked.
    #[inline(never)]
    fn visit_head<B: Bus>(
        &mut self,
        bus: &mut B,
        (now, limit): (Cycle, Cycle),
        (head_pc, insns, index): (u32, &[Insn], usize),
        retired: u64,
    ) -> Option<(Cycle, u64)> {
        let (regs, outstanding, ready) = (&self.regs, self.outstanding, &self.ready);
        match self.polls.visit(bus, &Visit { head_pc, now, retired, regs, outstanding, ready }) {
            Visited::GoesOn => None,
            Visited::Parked => Some((now, retired)),
            Visited::Armed => {
                let head = (head_pc, insns.get(index..).unwrap_or_default());
                let parked = self.park_at_once(bus, (now, limit), head, retired, self.predicted());
                if parked.is_none() {
                    let (regs, outstanding, ready) = (&self.regs, self.outstanding, &self.ready);
                    self.polls.take_snapshot(bus, &Visit { head_pc, now, retired, regs, outstanding, ready });
                }
                parked
            }
        }
    }

    /// The extra cycles of control transfers that are predicted: taken backward branches, `jal` and
    /// returns. With the predictor off they are mispredicted, and a backward branch that is not
    /// taken, otherwise mispredicted, has none.
    #[inline(always)]
    fn predicted(&self) -> Cycle {
        Cycle::from(self.csr.cfg0_dis_bp()) * timing::MISPREDICT
    }

    #[inline(always)]
    pub(crate) fn write(&mut self, rd: u8, value: u32) {
        self.regs[usize::from(rd & 31)] = value;
        self.regs[0] = 0;
    }

    /// The result in `rd` is available from cycle `at` on, or from when an earlier one is, if
    /// that is later.
    #[inline(always)]
    pub(crate) fn result_at(&mut self, rd: u8, at: Cycle) {
        let ready = &mut self.ready[usize::from(rd & 31)];
        *ready = at.max(*ready);
        self.ready[0] = 0;
        self.outstanding = self.outstanding.max(at);
    }
}
