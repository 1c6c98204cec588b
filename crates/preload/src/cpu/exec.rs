//! The instructions of drivers around their accesses, one by one: moves, sums, branches and calls.
//!
//! Only what reads and writes one operand in memory at most once is here. What is not known here
//! the processor carries out with the program's registers ([`native`]).

use super::flags::{CARRY, OVERFLOW, cut, of_result, top};
use super::plan::{Arithmetic, Class, Operand, Plan, Shift};
use super::table::{Run, Table};
use super::{Context, Step, Stop, flags, native, strings};
use crate::state::State;
use crate::{client, combine, maps, polls, watch};

/// Numbers of registers in instructions.
pub(super) const RAX: u8 = 0;
pub(super) const RCX: u8 = 1;
pub(super) const RDX: u8 = 2;
pub(super) const RSP: u8 = 4;
pub(super) const RBP: u8 = 5;
pub(super) const RSI: u8 = 6;
pub(super) const RDI: u8 = 7;

const PAGE: usize = 4096;
/// Pages that are remembered.
const PAGES: usize = 64;

/// A run of instructions at work.
pub(super) struct Cpu<'a> {
    pub state: &'a mut State,
    pub context: &'a mut Context,
    /// The instruction has touched the card.
    pub touched: bool,
    /// Pages of the program's memory that are neither the card's nor pinned, by their numbers.
    plain: [usize; PAGES],
    pub run: Run,
    /// One of them may have been changed by the program.
    pub rewritten: bool,
}

impl<'a> Cpu<'a> {
    pub(super) fn new(state: &'a mut State, context: &'a mut Context) -> Self {
        let plain = [usize::MAX; PAGES];
        Self { state, context, touched: false, plain, run: Run::new(), rewritten: false }
    }

    /// Carries an instruction out, unless it is for the processor.
    #[inline(always)]
    pub(super) fn step(&mut self, table: &Table, place: usize) -> Step {
        self.touched = false;
        let plan = table.plan(place);
        let rip = self.context.rip();
        self.context.set_rip(rip.wrapping_add(plan.len.into()));
        match self.execute(table, plan, place) {
            Ok(()) => Step::Done(self.touched),
            Err(_) => {
                self.context.set_rip(rip);
                Step::Native
            }
        }
    }

    /// Whether `len` bytes at `at` are the card's.
    pub(super) fn is_card(&self, at: usize, len: usize) -> bool {
        maps::is_card(at, len) && self.state.maps.overlaps(at, len)
    }

    /// Whether `len` bytes at `at` are known to be neither the card's nor pinned.
    #[inline]
    pub(super) fn is_plain(&self, at: usize, len: usize) -> bool {
        self.plain[at / PAGE % PAGES] == at / PAGE && at % PAGE + len <= PAGE
    }

    /// Remembers the page of `at` if it is neither.
    fn remember(&mut self, at: usize) {
        let page = at & !(PAGE - 1);
        if !self.is_card(page, PAGE) && !watch::covers_any(page, PAGE) {
            self.plain[at / PAGE % PAGES] = at / PAGE;
        }
    }

    #[inline]
    pub(super) fn load(&mut self, at: usize, out: &mut [u8]) -> Result<(), Stop> {
        if !self.is_plain(at, out.len()) && self.load_card(at, out)? {
            return Ok(());
        }
        if client::load(at, out) { Ok(()) } else { Err(Stop::Memory) }
    }

    /// Loads from the card, or from pinned memory. False: the memory is neither.
    #[inline(never)]
    fn load_card(&mut self, at: usize, out: &mut [u8]) -> Result<bool, Stop> {
        if combine::take(self.state, at, out) {
            self.touched = true;
            return Ok(true);
        }
        if self.is_card(at, out.len()) {
            self.touched = true;
            return if combine::load(self.state, at, out) { Ok(true) } else { Err(Stop::Memory) };
        }
        if watch::is_watched(at, out.len()) {
            self.load_watched(at, out)?;
            return Ok(true);
        }
        self.remember(at);
        Ok(false)
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

    #[inline]
    pub(super) fn store(&mut self, at: usize, data: &[u8]) -> Result<(), Stop> {
        if !self.is_plain(at, data.len()) && self.store_card(at, data)? {
            return Ok(());
        }
        self.stored(at, data.len());
        if client::store(at, data) { Ok(()) } else { Err(Stop::Memory) }
    }

    /// The program's memory is about to be changed.
    #[inline]
    pub(super) fn stored(&mut self, at: usize, len: usize) {
        self.rewritten |= self.run.pages.touch(at, len);
    }

    /// Stores to the card, or prepares pinned memory. False: the processor is to store.
    #[inline(never)]
    fn store_card(&mut self, at: usize, data: &[u8]) -> Result<bool, Stop> {
        if combine::append(self.state, at, data) {
            self.touched = true;
            return Ok(true);
        }
        if self.is_card(at, data.len()) {
            self.touched = true;
            self.state.polls.forget();
            return if combine::store(self.state, at, data) { Ok(true) } else { Err(Stop::Memory) };
        }
        if watch::is_watched(at, data.len()) {
            self.use_watched(at, data.len());
        } else {
            self.remember(at);
        }
        Ok(false)
    }

    /// The program uses pinned memory, and does not poll it: it can be accessed until the end of
    /// this run.
    pub(super) fn use_watched(&mut self, at: usize, len: usize) {
        self.touched = true;
        self.state.polls.forget();
        if len > 8 {
            watch::used_as_data(at, len);
        } else {
            watch::read_once(at, len);
        }
        watch::lend(at, len);
    }

    #[inline]
    fn load_word(&mut self, at: usize, bytes: u8) -> Result<u64, Stop> {
        if self.is_plain(at, bytes.into()) {
            return client::load_word(at, bytes).ok_or(Stop::Memory);
        }
        let mut word = [0; 8];
        self.load(at, &mut word[..usize::from(bytes)])?;
        Ok(u64::from_le_bytes(word))
    }

    #[inline]
    fn store_word(&mut self, at: usize, bytes: u8, value: u64) -> Result<(), Stop> {
        if self.is_plain(at, bytes.into()) {
            self.stored(at, bytes.into());
            return client::store_word(at, bytes, value).ok_or(Stop::Memory);
        }
        self.store(at, &value.to_le_bytes()[..usize::from(bytes)])
    }

    #[inline]
    pub(super) fn at(&self, plan: &Plan) -> Result<usize, Stop> {
        plan.memory.map(|place| place.address(self.context)).ok_or(Stop::Unknown)
    }

    /// The value of an operand, zero-extended.
    #[inline]
    fn get(&mut self, plan: &Plan, operand: Operand, bytes: u8) -> Result<u64, Stop> {
        match operand {
            Operand::Register(number) => Ok(cut(self.context.numbered(number), bytes)),
            Operand::High(number) => Ok(self.context.numbered(number) >> 8 & 0xFF),
            Operand::Immediate => Ok(plan.immediate),
            Operand::Memory => {
                let at = self.at(plan)?;
                self.load_word(at, bytes)
            }
            Operand::None => Err(Stop::Unknown),
        }
    }

    #[inline]
    fn put(&mut self, plan: &Plan, operand: Operand, bytes: u8, value: u64) -> Result<(), Stop> {
        match operand {
            Operand::Register(number) => self.context.set_numbered(number, bytes, value),
            Operand::High(number) => self.context.set_high(number, value),
            Operand::Memory => {
                let at = self.at(plan)?;
                return self.store_word(at, bytes, value);
            }
            Operand::Immediate | Operand::None => return Err(Stop::Unknown),
        }
        Ok(())
    }

    #[inline(always)]
    fn execute(&mut self, table: &Table, plan: &Plan, place: usize) -> Result<(), Stop> {
        // Each kind reads what it needs of the plan: vectors need little.
        match plan.class {
            Class::Move => {
                let value = self.get(plan, plan.b, plan.b_bytes)?;
                self.put(plan, plan.a, plan.a_bytes, value)
            }
            // The end of a run behind a look has to be on the stack on which it began.
            Class::MoveStack if !self.context.has_vectors() => Err(Stop::Unknown),
            Class::MoveStack => {
                let value = self.get(plan, plan.b, 8)?;
                self.put(plan, plan.a, 8, value)
            }
            Class::SignExtend => {
                let value = self.get(plan, plan.b, plan.b_bytes)?;
                let empty = 64 - 8 * u32::from(plan.b_bytes);
                self.put(plan, plan.a, plan.a_bytes, ((value << empty) as i64 >> empty) as u64)
            }
            Class::Lea => {
                let at = self.at(plan)? as u64;
                self.put(plan, plan.a, plan.a_bytes, at)
            }
            Class::Arithmetic(what) => self.arithmetic(plan, what),
            Class::Increment | Class::Decrement | Class::Negate | Class::Not => self.unary(plan),
            Class::Shift(what) => self.shift(plan, what),
            Class::Push => {
                let value = self.get(plan, plan.a, 8)?;
                self.push(value)
            }
            Class::Pop => {
                let value = self.pop()?;
                self.put(plan, plan.a, 8, value)
            }
            Class::Call => {
                let to = self.get(plan, plan.a, 8)?;
                self.push(self.context.rip())?;
                self.context.set_rip(to);
                Ok(())
            }
            Class::Return => {
                let to = self.pop()?;
                self.context.set_rip(to);
                Ok(())
            }
            Class::Leave => {
                let frame = self.context.numbered(RBP);
                let value = self.load_word(frame as usize, 8)?;
                self.context.set_numbered(RSP, 8, frame.wrapping_add(8));
                self.context.set_numbered(RBP, 8, value);
                Ok(())
            }
            Class::Jump => {
                let to = self.get(plan, plan.a, 8)?;
                self.context.set_rip(to);
                Ok(())
            }
            Class::Branch(condition) => {
                if self.context.flags.hold(condition) {
                    self.context.set_rip(plan.immediate);
                }
                Ok(())
            }
            Class::Set(condition) => {
                let holds = self.context.flags.hold(condition);
                self.put(plan, plan.a, plan.a_bytes, holds.into())
            }
            Class::MoveIf(condition) => {
                // The source is read in any case, and 32 bits clear the upper half in any case.
                let new = self.get(plan, plan.b, plan.b_bytes)?;
                let old = self.get(plan, plan.a, plan.a_bytes)?;
                let holds = self.context.flags.hold(condition);
                self.put(plan, plan.a, plan.a_bytes, if holds { new } else { old })
            }
            Class::Multiply => self.multiply(table, plan, place),
            Class::Divide(signed) => self.divide(plan, signed),
            Class::Nothing => Ok(()),
            Class::Fence => {
                combine::flush(self.state);
                combine::forget(self.state);
                Ok(())
            }
            Class::ClearUpper if !self.context.has_vectors() => Err(Stop::Unknown),
            Class::ClearUpper => {
                self.context.clear_upper();
                Ok(())
            }
            Class::Vector(what) => self.vector(table, plan, place, what),
            Class::String => strings::execute(self, table.instruction(place).ok_or(Stop::Unknown)?),
            Class::Native(usage) => {
                let instruction = table.instruction(place).ok_or(Stop::Unknown)?;
                native::step(self, instruction, plan, usage, place)
            }
            Class::Unknown => Err(Stop::Unknown),
        }
    }

    #[inline]
    fn arithmetic(&mut self, plan: &Plan, what: Arithmetic) -> Result<(), Stop> {
        use Arithmetic::{Add, And, Compare, Or, Sub, Test, Xor};
        let bytes = plan.a_bytes;
        let a = self.get(plan, plan.a, bytes)?;
        let b = cut(self.get(plan, plan.b, bytes)?, bytes);
        let result = match what {
            Add => cut(a.wrapping_add(b), bytes),
            Sub | Compare => cut(a.wrapping_sub(b), bytes),
            And | Test => a & b,
            Or => a | b,
            Xor => a ^ b,
        };
        if !matches!(what, Compare | Test) {
            self.put(plan, plan.a, bytes, result)?;
        }
        match what {
            Add => self.context.flags.set_sum(a, b, bytes),
            Sub | Compare => self.context.flags.set_difference(a, b, bytes),
            And | Or | Xor | Test => self.context.flags.set_logic(result, bytes),
        }
        Ok(())
    }

    fn unary(&mut self, plan: &Plan) -> Result<(), Stop> {
        let bytes = plan.a_bytes;
        let value = self.get(plan, plan.a, bytes)?;
        let result = match plan.class {
            Class::Increment => value.wrapping_add(1),
            Class::Decrement => value.wrapping_sub(1),
            Class::Negate => value.wrapping_neg(),
            _ => !value,
        };
        self.put(plan, plan.a, bytes, cut(result, bytes))?;
        let before = self.context.flags;
        let after = &mut self.context.flags;
        match plan.class {
            Class::Increment => after.set_sum(value, 1, bytes),
            Class::Decrement => after.set_difference(value, 1, bytes),
            Class::Negate => after.set_difference(0, value, bytes),
            _ => {}
        }
        if matches!(plan.class, Class::Increment | Class::Decrement) {
            // The carry stays.
            after.set_masked(CARRY, before.word());
        }
        Ok(())
    }

    fn shift(&mut self, plan: &Plan, what: Shift) -> Result<(), Stop> {
        let bytes = plan.a_bytes;
        let bits = 8 * u32::from(bytes);
        let by = self.get(plan, plan.b, 1)? as u32 & if bytes == 8 { 63 } else { 31 };
        if by == 0 {
            return Ok(());
        }
        // The overflow flag is undefined for more than one, and the carry from the width on.
        if by >= bits {
            return Err(Stop::Unknown);
        }
        let value = self.get(plan, plan.a, bytes)?;
        let (result, carry, overflow) = match what {
            Shift::Left => {
                let result = cut(value << by, bytes);
                let carry = value >> (bits - by) & 1 != 0;
                (result, carry, top(result, bytes) != carry)
            }
            Shift::Signed => {
                let empty = 64 - bits;
                let wide = (value << empty) as i64 >> empty;
                (cut((wide >> by) as u64, bytes), wide >> (by - 1) & 1 != 0, false)
            }
            Shift::Right => (value >> by, value >> (by - 1) & 1 != 0, top(value, bytes)),
        };
        self.put(plan, plan.a, bytes, result)?;
        let carry = if carry { CARRY } else { 0 };
        let overflow = if overflow && by == 1 { OVERFLOW } else { 0 };
        let set = of_result(result, bytes) | carry | overflow;
        self.context.flags.set_masked(flags::ALL & !flags::ADJUST, set);
        Ok(())
    }

    fn multiply(&mut self, table: &Table, plan: &Plan, place: usize) -> Result<(), Stop> {
        let bytes = plan.a_bytes;
        // Some flags are undefined: with an operand of the card's they are the processor's own.
        if plan.memory.is_some() && self.is_card(self.at(plan)?, bytes.into()) {
            let instruction = table.instruction(place).ok_or(Stop::Unknown)?;
            let usage = native::Usage::of(instruction).ok_or(Stop::Unknown)?;
            return native::step(self, instruction, plan, usage, place);
        }
        let other = self.get(plan, plan.b, bytes)?;
        let with = if plan.third { plan.immediate } else { self.get(plan, plan.a, bytes)? };
        let empty = 64 - 8 * u32::from(bytes);
        let signed = |value: u64| i128::from((value << empty) as i64 >> empty);
        let wide = signed(other) * signed(with);
        let result = cut(wide as u64, bytes);
        self.put(plan, plan.a, bytes, result)?;
        let set = if wide == signed(result) { 0 } else { CARRY | OVERFLOW };
        self.context.flags.set_masked(CARRY | OVERFLOW, set);
        Ok(())
    }

    /// Division of `rdx:rax` or `edx:eax`, which leaves the flags undefined.
    fn divide(&mut self, plan: &Plan, signed: bool) -> Result<(), Stop> {
        let bytes = plan.a_bytes;
        if bytes < 4 {
            return Err(Stop::Unknown);
        }
        let bits = 8 * u32::from(bytes);
        let by = self.get(plan, plan.a, bytes)?;
        let low = cut(self.context.numbered(RAX), bytes);
        let high = cut(self.context.numbered(RDX), bytes);
        let wide = u128::from(high) << bits | u128::from(low);
        // What does not fit is the program's fault, which the processor is to raise.
        let (quotient, rest) = if signed {
            let empty = 128 - 2 * bits;
            let wide = (wide << empty) as i128 >> empty;
            let by = i128::from((by << (64 - bits)) as i64 >> (64 - bits));
            let quotient = wide.checked_div(by).ok_or(Stop::Unknown)?;
            let fits = quotient >> (bits - 1) == 0 || quotient >> (bits - 1) == -1;
            let rest = wide - quotient * by;
            if !fits {
                return Err(Stop::Unknown);
            }
            (quotient as u64, rest as u64)
        } else {
            let quotient = wide.checked_div(by.into()).ok_or(Stop::Unknown)?;
            if quotient >> bits != 0 {
                return Err(Stop::Unknown);
            }
            (quotient as u64, (wide - quotient * u128::from(by)) as u64)
        };
        self.context.set_numbered(RAX, bytes, quotient);
        self.context.set_numbered(RDX, bytes, rest);
        Ok(())
    }

    #[inline]
    fn push(&mut self, value: u64) -> Result<(), Stop> {
        let top = self.context.numbered(RSP).wrapping_sub(8);
        self.store_word(top as usize, 8, value)?;
        self.context.set_numbered(RSP, 8, top);
        Ok(())
    }

    #[inline]
    fn pop(&mut self) -> Result<u64, Stop> {
        let top = self.context.numbered(RSP);
        let value = self.load_word(top as usize, 8)?;
        self.context.set_numbered(RSP, 8, top.wrapping_add(8));
        Ok(value)
    }
}
