//! The instructions of copies and polls, one by one.
//!
//! Only what reads and writes one operand in memory at most once is here; an instruction that is
//! not is for the processor. A locked instruction on the program's own memory exchanges the word
//! for what it has read, and begins anew if another thread was faster.

use super::flags::{self, add, cut, holds, of_result, sub, top};
use super::plan::{Class, Plan};
use super::{Context, Step, Stop, strings};
use crate::state::State;
use crate::{client, combine, maps, polls, watch};
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

/// One instruction at work.
pub(super) struct Cpu<'a> {
    pub state: &'a mut State,
    pub context: &'a mut Context,
    pub instruction: &'a Instruction,
    plan: &'a Plan,
    pub touched: bool,
    /// Of a locked instruction on the program's memory: what it has read there.
    locked: Option<Option<u64>>,
}

/// The address that a segment register adds.
fn segment_base(register: Register) -> Option<u64> {
    match register {
        Register::FS => {
            let base: u64;
            // SAFETY: the C library keeps the base of FS in its first word, and this thread is one
            // of the C library's.
            unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) base, options(nostack, readonly)) };
            Some(base)
        }
        Register::GS => None,
        _ => Some(0),
    }
}

/// The address of the operand in memory, if the instruction has one.
pub(super) fn address(context: &Context, instruction: &Instruction) -> Option<usize> {
    let operand = (0..instruction.op_count()).find(|&op| instruction.op_kind(op) == OpKind::Memory)?;
    let found = instruction.virtual_address(operand, 0, |register, _, _| match register {
        Register::None => Some(0),
        _ if register.is_segment_register() => segment_base(register),
        _ if register.is_gpr() || register == Register::RIP => Some(context.register(register)),
        _ => None,
    })?;
    Some(found as usize)
}

/// Carries an instruction out, unless it is for the processor.
pub(super) fn step(state: &mut State, context: &mut Context, instruction: &Instruction, plan: &Plan) -> Step {
    let mut cpu = Cpu { state, context, instruction, plan, touched: false, locked: None };
    let before = cpu.context.rip();
    cpu.context.set_rip(instruction.next_ip());
    let mut done = cpu.execute();
    while matches!(done, Err(Stop::Again)) {
        done = cpu.execute();
    }
    match done {
        Ok(()) => Step::Done(cpu.touched),
        Err(_) => {
            cpu.context.set_rip(before);
            Step::Native
        }
    }
}

impl Cpu<'_> {
    /// Whether `len` bytes at `at` are the card's.
    pub(super) fn is_card(&self, at: usize, len: usize) -> bool {
        maps::is_card(at, len) && self.state.maps.overlaps(at, len)
    }

    pub(super) fn load(&mut self, at: usize, out: &mut [u8]) -> Result<(), Stop> {
        if self.is_card(at, out.len()) {
            self.touched = true;
            return if combine::load(self.state, at, out) { Ok(()) } else { Err(Stop::Memory) };
        }
        if watch::is_watched(at, out.len()) {
            return self.load_watched(at, out);
        }
        if client::load(at, out) { Ok(()) } else { Err(Stop::Memory) }
    }

    /// Reads pinned memory that the program may poll.
    fn load_watched(&mut self, at: usize, out: &mut [u8]) -> Result<(), Stop> {
        self.touched = true;
        combine::forget(self.state);
        watch::lend(at, out.len());
        if !client::load(at, out) {
            return Err(Stop::Memory);
        }
        let mut word = [0; 8];
        let Some(part) = word.get_mut(..out.len()) else {
            watch::used_as_data(at, out.len());
            return Ok(());
        };
        part.copy_from_slice(out);
        if !self.state.polls.read(at, u64::from_le_bytes(word)) {
            watch::read_once(at, out.len());
            return Ok(());
        }
        watch::is_mailbox(at, out.len());
        combine::flush(self.state);
        polls::run_to_write(self.state);
        self.state.looked_at_memory(at, u64::from_le_bytes(word));
        watch::lend(at, out.len());
        if client::load(at, out) { Ok(()) } else { Err(Stop::Memory) }
    }

    pub(super) fn store(&mut self, at: usize, data: &[u8]) -> Result<(), Stop> {
        if self.is_card(at, data.len()) {
            self.touched = true;
            self.state.polls.forget();
            return if combine::store(self.state, at, data) { Ok(()) } else { Err(Stop::Memory) };
        }
        if watch::is_watched(at, data.len()) {
            self.touched = true;
            self.state.polls.forget();
            if data.len() > 8 {
                watch::used_as_data(at, data.len());
            } else {
                watch::read_once(at, data.len());
            }
            watch::lend(at, data.len());
        }
        self.state.stored = (at, data.len());
        if client::store(at, data) { Ok(()) } else { Err(Stop::Memory) }
    }

    #[inline]
    pub(super) fn at(&self) -> Result<usize, Stop> {
        match self.plan.memory {
            Some(place) => Ok(place.address(self.context)),
            None => address(self.context, self.instruction).ok_or(Stop::Unknown),
        }
    }

    /// Bytes of operand `op`.
    fn bytes(&self, op: u32) -> Result<usize, Stop> {
        let bytes = match self.instruction.op_kind(op) {
            OpKind::Register => self.instruction.op_register(op).size(),
            OpKind::Memory => self.instruction.memory_size().size(),
            _ => return Err(Stop::Unknown),
        };
        if matches!(bytes, 1 | 2 | 4 | 8) { Ok(bytes) } else { Err(Stop::Unknown) }
    }

    /// An operand of an integer instruction, zero-extended.
    fn get(&mut self, op: u32) -> Result<u64, Stop> {
        match self.instruction.op_kind(op) {
            OpKind::Register => {
                let register = self.instruction.op_register(op);
                if register.is_gpr() { Ok(self.context.register(register)) } else { Err(Stop::Unknown) }
            }
            OpKind::Memory => {
                let bytes = self.bytes(op)?;
                let mut word = [0; 8];
                let at = self.at()?;
                self.load(at, &mut word[..bytes])?;
                if let Some(seen) = &mut self.locked {
                    *seen = Some(u64::from_le_bytes(word));
                }
                Ok(u64::from_le_bytes(word))
            }
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => Ok(self.instruction.immediate(op)),
            _ => Err(Stop::Unknown),
        }
    }

    /// Sets an operand of an integer instruction.
    fn put(&mut self, op: u32, value: u64) -> Result<(), Stop> {
        match self.instruction.op_kind(op) {
            OpKind::Register => {
                self.context.set_register(self.instruction.op_register(op), value);
                Ok(())
            }
            OpKind::Memory => {
                let (at, bytes) = (self.at()?, self.bytes(op)?);
                if let Some(Some(seen)) = self.locked {
                    return match client::swap(at, bytes, seen, value) {
                        Some(true) => Ok(()),
                        Some(false) => Err(Stop::Again),
                        None => Err(Stop::Memory),
                    };
                }
                self.store(at, &value.to_le_bytes()[..bytes])
            }
            _ => Err(Stop::Unknown),
        }
    }

    fn set_flags(&mut self, mask: u64, flags: u64) {
        let all = self.context.flags();
        self.context.set_flags(all & !mask | flags & mask);
    }

    /// Finds out whether the instruction must be atomic in the program's memory: a whole word, of
    /// which the first operand is in memory.
    fn check_lock(&mut self) -> Result<(), Stop> {
        let instruction = self.instruction;
        if !self.plan.locks {
            return Ok(());
        }
        let at = self.at()?;
        let bytes = instruction.memory_size().size();
        if self.is_card(at, bytes.max(1)) {
            return Ok(());
        }
        let whole = matches!(bytes, 4 | 8) && at.is_multiple_of(bytes) && !watch::is_watched(at, bytes);
        if !whole || instruction.op0_kind() != OpKind::Memory {
            return Err(Stop::Unknown);
        }
        combine::flush(self.state);
        combine::forget(self.state);
        self.locked = Some(None);
        Ok(())
    }

    fn execute(&mut self) -> Result<(), Stop> {
        use Mnemonic as M;
        self.check_lock()?;
        match self.plan.class {
            Class::Branch(condition) => return self.branch(condition),
            Class::String => return strings::execute(self),
            Class::Conditional(set, condition) => return self.conditional(set, condition),
            Class::Vector(what) => return self.vector(what),
            Class::Other => {}
        }
        match self.instruction.mnemonic() {
            M::Mov | M::Movnti | M::Movzx => {
                let value = self.get(1)?;
                self.put(0, value)
            }
            M::Movsx | M::Movsxd => self.sign_extend(),
            M::Lea => {
                let at = self.lea()?;
                self.put(0, at)
            }
            M::Add | M::Adc | M::Sub | M::Sbb | M::Cmp => self.sum(),
            M::And | M::Or | M::Xor | M::Test => self.logic(),
            M::Inc | M::Dec | M::Neg | M::Not => self.unary(),
            M::Imul => self.multiply(),
            M::Shl | M::Shr | M::Sar => self.shift(),
            M::Xchg | M::Xadd | M::Cmpxchg => self.exchange(),
            M::Bswap => self.swap_bytes(),
            M::Push | M::Pop | M::Call | M::Ret => self.stack(),
            M::Nop | M::Pause | M::Endbr64 => Ok(()),
            M::Sfence | M::Lfence | M::Mfence => {
                combine::flush(self.state);
                combine::forget(self.state);
                Ok(())
            }
            M::Vzeroupper => {
                self.context.clear_upper();
                Ok(())
            }
            M::Jmp => self.jump(),
            _ => Err(Stop::Unknown),
        }
    }

    fn sign_extend(&mut self) -> Result<(), Stop> {
        let bytes = self.bytes(1)?;
        let value = self.get(1)?;
        let empty = 64 - 8 * bytes as u32;
        self.put(0, ((value << empty) as i64 >> empty) as u64)
    }

    fn lea(&self) -> Result<u64, Stop> {
        // No segment counts, and the width of the address is that of its registers.
        let instruction = self.instruction;
        if instruction.memory_base().size() == 4 || instruction.memory_index().size() == 4 {
            return Err(Stop::Unknown);
        }
        self.at().map(|at| at as u64)
    }

    fn sum(&mut self) -> Result<(), Stop> {
        use Mnemonic::{Adc, Add, Cmp, Sbb};
        let bytes = self.bytes(0)?;
        let (a, b) = (self.get(0)?, self.get(1)?);
        let carry = self.context.flags() & flags::CARRY != 0;
        let mnemonic = self.instruction.mnemonic();
        let (result, set) = match mnemonic {
            Add => add(a, b, false, bytes),
            Adc => add(a, b, carry, bytes),
            Sbb => sub(a, b, carry, bytes),
            _ => sub(a, b, false, bytes),
        };
        if mnemonic != Cmp {
            self.put(0, result)?;
        }
        self.set_flags(flags::ALL, set);
        Ok(())
    }

    fn logic(&mut self) -> Result<(), Stop> {
        use Mnemonic::{And, Or, Test, Xor};
        let bytes = self.bytes(0)?;
        let (a, b) = (self.get(0)?, self.get(1)?);
        let mnemonic = self.instruction.mnemonic();
        let result = match mnemonic {
            And | Test => a & b,
            Or => a | b,
            Xor => a ^ b,
            _ => return Err(Stop::Unknown),
        };
        if mnemonic != Test {
            self.put(0, cut(result, bytes))?;
        }
        // The adjust flag is undefined; processors clear it.
        self.set_flags(flags::ALL, of_result(result, bytes));
        Ok(())
    }

    /// `imul` with two or three operands.
    fn multiply(&mut self) -> Result<(), Stop> {
        let operands = self.instruction.op_count();
        let bytes = self.bytes(0)?;
        // Some flags are undefined: with an operand of the card's they are the processor's own.
        let of_card = address(self.context, self.instruction).is_some_and(|at| self.is_card(at, bytes));
        if operands < 2 || bytes == 1 || of_card {
            return Err(Stop::Unknown);
        }
        let (a, b) = (self.get(operands - 2)?, self.get(operands - 1)?);
        let (result, set) = flags::multiply(a, b, bytes);
        self.put(0, result)?;
        self.set_flags(flags::CARRY | flags::OVERFLOW, set);
        Ok(())
    }

    fn unary(&mut self) -> Result<(), Stop> {
        use Mnemonic::{Dec, Inc, Neg};
        let bytes = self.bytes(0)?;
        let value = self.get(0)?;
        let (result, set, mask) = match self.instruction.mnemonic() {
            Inc => {
                let (result, set) = add(value, 1, false, bytes);
                (result, set, flags::ALL & !flags::CARRY)
            }
            Dec => {
                let (result, set) = sub(value, 1, false, bytes);
                (result, set, flags::ALL & !flags::CARRY)
            }
            Neg => {
                let (result, set) = sub(0, value, false, bytes);
                (result, set, flags::ALL)
            }
            _ => (cut(!value, bytes), 0, 0),
        };
        self.put(0, result)?;
        self.set_flags(mask, set);
        Ok(())
    }

    fn shift(&mut self) -> Result<(), Stop> {
        use Mnemonic::{Sar, Shl};
        let bytes = self.bytes(0)?;
        let bits = 8 * bytes as u32;
        let by = self.get(1)? as u32 & if bytes == 8 { 63 } else { 31 };
        if by == 0 {
            return Ok(());
        }
        // The overflow flag is undefined for more than one, and the carry from the width on.
        if by >= bits {
            return Err(Stop::Unknown);
        }
        let value = cut(self.get(0)?, bytes);
        let (result, carry, overflow) = match self.instruction.mnemonic() {
            Shl => {
                let result = cut(value << by, bytes);
                let carry = value >> (bits - by) & 1 != 0;
                (result, carry, top(result, bytes) != carry)
            }
            Sar => {
                let empty = 64 - bits;
                let wide = (value << empty) as i64 >> empty;
                (cut((wide >> by) as u64, bytes), wide >> (by - 1) & 1 != 0, false)
            }
            _ => (value >> by, value >> (by - 1) & 1 != 0, top(value, bytes)),
        };
        self.put(0, result)?;
        let carry = if carry { flags::CARRY } else { 0 };
        let overflow = if overflow && by == 1 { flags::OVERFLOW } else { 0 };
        self.set_flags(flags::ALL & !flags::ADJUST, of_result(result, bytes) | carry | overflow);
        Ok(())
    }

    fn exchange(&mut self) -> Result<(), Stop> {
        use Mnemonic::{Xadd, Xchg};
        let bytes = self.bytes(0)?;
        let (a, b) = (self.get(0)?, self.get(1)?);
        match self.instruction.mnemonic() {
            Xchg => {
                self.put(0, b)?;
                self.put(1, a)
            }
            Xadd => {
                let (result, set) = add(a, b, false, bytes);
                // The register first: if both are the same, it has the sum in the end.
                if self.instruction.op_kind(0) == OpKind::Register {
                    self.put(1, a)?;
                    self.put(0, result)?;
                } else {
                    self.put(0, result)?;
                    self.put(1, a)?;
                }
                self.set_flags(flags::ALL, set);
                Ok(())
            }
            _ => {
                let accumulator = match bytes {
                    1 => Register::AL,
                    2 => Register::AX,
                    4 => Register::EAX,
                    _ => Register::RAX,
                };
                let expected = self.context.register(accumulator);
                let (_, set) = sub(expected, a, false, bytes);
                if set & flags::ZERO != 0 {
                    self.put(0, b)?;
                } else {
                    self.put(0, a)?;
                    self.context.set_register(accumulator, a);
                }
                self.set_flags(flags::ALL, set);
                Ok(())
            }
        }
    }

    fn swap_bytes(&mut self) -> Result<(), Stop> {
        let value = self.get(0)?;
        match self.bytes(0)? {
            4 => self.put(0, u64::from((value as u32).swap_bytes())),
            8 => self.put(0, value.swap_bytes()),
            _ => Err(Stop::Unknown),
        }
    }

    fn push(&mut self, value: u64) -> Result<(), Stop> {
        let top = self.context.register(Register::RSP).wrapping_sub(8);
        self.store(top as usize, &value.to_le_bytes())?;
        self.context.set_register(Register::RSP, top);
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, Stop> {
        let top = self.context.register(Register::RSP);
        let mut word = [0; 8];
        self.load(top as usize, &mut word)?;
        self.context.set_register(Register::RSP, top.wrapping_add(8));
        Ok(u64::from_le_bytes(word))
    }

    fn stack(&mut self) -> Result<(), Stop> {
        use Mnemonic::{Call, Pop, Push};
        let instruction = self.instruction;
        let register = |op| instruction.op_kind(op) == OpKind::Register && instruction.op_register(op).size() == 8;
        match instruction.mnemonic() {
            Push if register(0) => {
                let value = self.get(0)?;
                self.push(value)
            }
            Pop if register(0) => {
                let value = self.pop()?;
                self.put(0, value)
            }
            Call => {
                let to = match instruction.op0_kind() {
                    OpKind::NearBranch64 => instruction.near_branch64(),
                    OpKind::Register | OpKind::Memory if instruction.code() == Code::Call_rm64 => self.get(0)?,
                    _ => return Err(Stop::Unknown),
                };
                self.push(instruction.next_ip())?;
                self.context.set_rip(to);
                Ok(())
            }
            // A shadow stack would not know of it.
            _ if instruction.mnemonic() == Mnemonic::Ret && instruction.op_count() == 0 => {
                let to = self.pop()?;
                self.context.set_rip(to);
                Ok(())
            }
            _ => Err(Stop::Unknown),
        }
    }

    fn jump(&mut self) -> Result<(), Stop> {
        let to = match self.instruction.op0_kind() {
            OpKind::NearBranch64 => self.instruction.near_branch64(),
            OpKind::Register | OpKind::Memory if self.instruction.code() == Code::Jmp_rm64 => self.get(0)?,
            _ => return Err(Stop::Unknown),
        };
        self.context.set_rip(to);
        Ok(())
    }

    fn branch(&mut self, condition: u8) -> Result<(), Stop> {
        if holds(condition, self.context.flags()) {
            self.context.set_rip(self.instruction.near_branch64());
        }
        Ok(())
    }

    /// `setcc` and `cmovcc`.
    fn conditional(&mut self, set: bool, condition: u8) -> Result<(), Stop> {
        let holds = holds(condition, self.context.flags());
        if set {
            return self.put(0, u64::from(holds));
        }
        // The source is read in any case, and 32 bits clear the upper half in any case.
        let (old, new) = (self.get(0)?, self.get(1)?);
        self.put(0, if holds { new } else { old })
    }
}
