//! The scalar unit (ThCon): arithmetic on GPRs, accesses of a thread to L1 and registers, atomics
//! on L1.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/ScalarUnit.md and the pages of its instructions.
//! One instruction at a time, of whichever thread, and its thread starts nothing else until it is
//! done. A load's result is in its GPR when the instruction starts; the documents let nobody look
//! before the wait that the request's time gives.

use super::attempt::Attempt;
use super::border::{Hold, Outside};
use super::config::Config;
use super::coprocessor::{Coprocessor, GPRS, Issue, Retry};
use super::number::src_of_bf16;
use super::src;
use crate::probe::Unit;
use crate::{Cycle, NEVER, timing};
use tilework_abi::tensix::insn::{self, Atcas, Atincget, Atincgetptr, Atswap, Loadind, Reg2flop, Setdmareg, Storeind};
use tilework_abi::tensix::{self as map, cfg};

/// Base of the registers that `LOADREG`, `STOREREG` and `STOREIND` reach: the map from local RAM
/// on.
const MMIO_BASE: u32 = map::LOCAL_BASE;
/// Lowest address in it that is not undefined behaviour: what lies below is a core's local RAM.
const MMIO_FIRST: u32 = map::TDMA_BASE;

/// What an attempt to execute an instruction came to.
enum Done {
    /// It occupies the unit for this many cycles, and its memory request takes as many.
    In { cycles: Cycle, memory: Cycle },
    /// An atomic whose condition on the word at this address does not hold yet.
    Again(u32),
    /// Conditions of `FLUSHDMA` hold until this cycle.
    NotBefore(Cycle),
}

fn takes(cycles: Cycle) -> Result<Done, Hold> {
    Ok(Done::In { cycles, memory: 0 })
}

fn requests(memory: Cycle) -> Result<Done, Hold> {
    Ok(Done::In { cycles: timing::TENSIX_REQUEST, memory })
}

/// What arithmetic computes.
#[derive(Clone, Copy)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    /// The operand `Mode`.
    Bitwise(u32),
    Shift(u32),
    Compare(u32),
}

/// The operands of arithmetic. The right one is a GPR or a number, by `is_imm`.
struct Operands {
    result: u32,
    left: u32,
    right: u32,
    is_imm: bool,
}

/// The operands of an indirect access.
#[derive(Clone, Copy)]
struct Indirect {
    addr_reg: u32,
    offset_half_reg: u32,
    offset_increment: u32,
    data_reg: u32,
}

impl From<Loadind> for Indirect {
    fn from(insn: Loadind) -> Self {
        Self {
            addr_reg: insn.addr_reg(),
            offset_half_reg: insn.offset_half_reg(),
            offset_increment: insn.offset_increment(),
            data_reg: insn.result_reg(),
        }
    }
}

impl From<Storeind> for Indirect {
    fn from(insn: Storeind) -> Self {
        Self {
            addr_reg: insn.addr_reg(),
            offset_half_reg: insn.offset_half_reg(),
            offset_increment: insn.offset_increment(),
            data_reg: insn.data_reg(),
        }
    }
}

/// The operands of an arithmetic instruction, whose names they share.
macro_rules! operands {
    ($insn:ident) => {
        Operands {
            result: $insn.result_reg(),
            left: $insn.left_reg(),
            right: $insn.right_reg(),
            is_imm: $insn.right_is_imm(),
        }
    };
}

impl Coprocessor {
    /// Lets a scalar instruction pass, if the unit takes it now and it can finish.
    #[inline(never)]
    pub(super) fn issue_scalar(
        &mut self,
        at: Attempt,
        insn: insn::ScalarOp,
        outside: &mut impl Outside,
    ) -> Result<Issue, Hold> {
        let Attempt { thread, now, .. } = at;
        let retries = self.threads[thread].retry;
        if retries.is_none() && self.units.scalar > now {
            return Ok(Issue::not_before(self.units.scalar));
        }
        let limited = matches!(insn, insn::ScalarOp::Atincget(_) | insn::ScalarOp::Atswap(_));
        if limited && self.units.atomic > now {
            return Ok(Issue::not_before(self.units.atomic));
        }
        if outside.must_wake(map::GPR_BASE, 4) {
            return Err(Hold::Wake);
        }
        outside.acting(now, Unit::Scalar, self.origin(at));
        match self.scalar(at, insn, outside)? {
            Done::In { cycles, memory } => {
                if limited {
                    self.units.atomic = now + timing::TENSIX_ATOMIC_INTERVAL;
                }
                let t = &mut self.threads[thread];
                t.retry = None;
                t.ready = now + cycles;
                t.busy.memory = t.busy.memory.max(now + memory);
                self.units.scalar = now + cycles;
                self.occupy(thread, now + cycles.max(memory));
                if retries.is_some() {
                    // The others did not know when the unit would be free.
                    self.notify_others(thread, now);
                }
                Ok(Issue::PASSED)
            }
            Done::Again(addr) => {
                outside.sleep_on(addr);
                let first = retries.map_or(now, |retry| retry.first);
                self.threads[thread].retry = Some(Retry { first, due: NEVER });
                self.units.scalar = NEVER;
                Ok(Issue::not_before(NEVER))
            }
            Done::NotBefore(at) => Ok(Issue::not_before(at)),
        }
    }

    fn scalar(&mut self, at: Attempt, insn: insn::ScalarOp, outside: &mut impl Outside) -> Result<Done, Hold> {
        use insn::ScalarOp;
        match insn {
            ScalarOp::Setdmareg(insn) => self.set_dma_reg(at, insn),
            ScalarOp::Flushdma(insn) => {
                let mask = if insn.condition_mask() == 0 { 0xF } else { insn.condition_mask() };
                let until = (0..4).filter(|i| mask >> i & 1 != 0).map(|i| self.busy_until(at.thread, i)).max();
                match until {
                    Some(until) if until > at.now => Ok(Done::NotBefore(until)),
                    _ => takes(timing::TENSIX_REG2FLOP),
                }
            }
            ScalarOp::Reg2flop(insn) => self.reg_to_flop(at, insn, outside),
            ScalarOp::Loadind(insn) => self.load_indirect(at, insn, outside),
            ScalarOp::Adddmareg(insn) => self.arithmetic(at, Arithmetic::Add, operands!(insn)),
            ScalarOp::Subdmareg(insn) => self.arithmetic(at, Arithmetic::Subtract, operands!(insn)),
            ScalarOp::Muldmareg(insn) => self.arithmetic(at, Arithmetic::Multiply, operands!(insn)),
            ScalarOp::Bitwopdmareg(insn) => self.arithmetic(at, Arithmetic::Bitwise(insn.mode()), operands!(insn)),
            ScalarOp::Shiftdmareg(insn) => self.arithmetic(at, Arithmetic::Shift(insn.mode()), operands!(insn)),
            ScalarOp::Cmpdmareg(insn) => self.arithmetic(at, Arithmetic::Compare(insn.mode()), operands!(insn)),
            ScalarOp::Dmanop(_) => takes(1),
            ScalarOp::Atincget(insn) => self.increment(at, insn, outside),
            ScalarOp::Atincgetptr(insn) => self.fifo_pointer(at, insn, outside),
            ScalarOp::Atswap(insn) => self.swap(at, insn, outside),
            ScalarOp::Atcas(insn) => self.compare_and_set(at, insn, outside),
            ScalarOp::Storeind(insn) => self.store_indirect(at, insn, outside),
            ScalarOp::Storereg(insn) => {
                let value = *self.gpr(at.thread, insn.data_reg());
                self.store_register(at, MMIO_BASE + (insn.addr_lo() << 2), value, outside)
            }
            ScalarOp::Loadreg(insn) => {
                let addr = mmio(at, MMIO_BASE + (insn.addr_lo() << 2))?;
                let value = outside.load(at.now, addr).map_err(|fault| at.caused(fault))?;
                *self.gpr(at.thread, insn.result_reg()) = value;
                requests(timing::TENSIX_LOAD)
            }
        }
    }

    fn gpr(&mut self, thread: usize, index: u32) -> &mut u32 {
        &mut self.gprs[thread * GPRS + (index as usize & (GPRS - 1))]
    }

    /// The four GPRs around `index`.
    fn four(&self, thread: usize, index: u32) -> [u32; 4] {
        let first = thread * GPRS + (index as usize & (GPRS - 1) & !3);
        [0, 1, 2, 3].map(|i| self.gprs[first + i])
    }

    fn half(&mut self, thread: usize, half: u32) -> u32 {
        *self.gpr(thread, half >> 1) >> (16 * (half & 1)) & 0xFFFF
    }

    fn set_half(&mut self, thread: usize, half: u32, value: u32) {
        let shift = 16 * (half & 1);
        let gpr = self.gpr(thread, half >> 1);
        *gpr = *gpr & !(0xFFFF << shift) | (value & 0xFFFF) << shift;
    }

    fn set_dma_reg(&mut self, at: Attempt, insn: Setdmareg) -> Result<Done, Hold> {
        let (thread, half) = (at.thread, insn.result_half_reg());
        if !insn.set_signals_mode() {
            self.set_half(thread, half, insn.new_value());
            return takes(1);
        }
        // Of the packer's state zero flags are not built: what they are of data that are not
        // compressed is not documented. Blackhole has the first of Wormhole's packers.
        let values = match insn.input_source() {
            0 => {
                let [last, all] = self.packer.sizes(thread);
                [all << 16 | last, 0, 0, 0]
            }
            2 if self.config.is_set(thread, cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS) => {
                let format = self.config.read(thread, cfg::THCON_SEC_REG1_OUT_DATA_FORMAT);
                [(self.packer.sizes(thread)[0] + 1) & 0xFFFF, format << 16 | 1 << 20, 0, 0]
            }
            source @ 6..=7 if insn.which_packers() & 3 == 0 => self.packer.histogram(source as usize - 6),
            9 => [self.packer.largest_exponent(), 0, 0, 0],
            10.. => [0; 4],
            _ => return Err(at.not_built()),
        };
        let input = insn.input_half_reg();
        match insn.result_size() {
            0 => self.set_half(thread, half, values[input as usize >> 1] >> (16 * (input & 1))),
            1 => *self.gpr(thread, half >> 1) = values[input as usize >> 1],
            2 => (0..4).for_each(|i| *self.gpr(thread, (half >> 1 & 0x3C) + i) = values[i as usize]),
            _ => return Err(at.not_built()),
        }
        takes(1)
    }

    fn reg_to_flop(&mut self, at: Attempt, insn: Reg2flop, outside: &mut impl Outside) -> Result<Done, Hold> {
        let (thread, input) = (at.thread, insn.input_reg());
        let value = *self.gpr(thread, input);
        let done = match (insn.to_adc(), insn.override_thread()) {
            (false, false) => {
                let four = self.four(thread, input);
                let wide = insn.size_sel() == 0;
                Config::thcon_index(insn.thcon_cfg_index()).and_then(|index| match wide {
                    true => self.config.set_four(thread, index, four),
                    false => self.config.set(thread, index, value),
                })
            }
            (false, true) => return Err(at.undefined("a target that does not exist")),
            (true, _) => {
                self.adcs.move_from_gpr(thread, insn, value);
                Ok(())
            }
        };
        done.map_err(|refusal| at.refused(refusal))?;
        if outside.is_watched() && !insn.to_adc() {
            let words = if insn.size_sel() == 0 { 4 } else { 1 };
            if let Ok(index) = Config::thcon_index(insn.thcon_cfg_index()) {
                let first = if words == 4 { index & !3 } else { index };
                (first..first + words).for_each(|index| self.tell_word(at, index, u32::MAX, outside));
            }
        }
        takes(timing::TENSIX_REG2FLOP)
    }

    fn arithmetic(&mut self, at: Attempt, what: Arithmetic, operands: Operands) -> Result<Done, Hold> {
        let Operands { result, left: left_reg, right: right_reg, is_imm } = operands;
        let left = *self.gpr(at.thread, left_reg);
        let right = if is_imm { right_reg } else { *self.gpr(at.thread, right_reg) };
        let value = match what {
            Arithmetic::Add => left.wrapping_add(right),
            Arithmetic::Subtract => left.wrapping_sub(right),
            Arithmetic::Multiply => (left & 0xFFFF) * (right & 0xFFFF),
            Arithmetic::Bitwise(0) => left & right,
            Arithmetic::Bitwise(1) => left | right,
            Arithmetic::Bitwise(2) => left ^ right,
            Arithmetic::Shift(0) => left << (right & 31),
            Arithmetic::Shift(1) => left >> (right & 31),
            Arithmetic::Compare(0) => u32::from(left > right),
            Arithmetic::Compare(1) => u32::from(left < right),
            Arithmetic::Compare(2) => u32::from(left == right),
            Arithmetic::Bitwise(_) | Arithmetic::Shift(_) | Arithmetic::Compare(_) => {
                return Err(at.undefined("a mode that does not exist"));
            }
        };
        *self.gpr(at.thread, result) = value;
        let near = is_imm || left_reg / 4 == right_reg / 4;
        takes(if near { timing::TENSIX_ARITHMETIC } else { timing::TENSIX_ARITHMETIC + 1 })
    }

    /// Moves the offset of an indirect access on.
    fn advance_offset(&mut self, thread: usize, access: Indirect) {
        let by = [0, 2, 4, 16][access.offset_increment as usize];
        let offset = self.half(thread, access.offset_half_reg);
        self.set_half(thread, access.offset_half_reg, offset + by);
    }

    /// L1 address and bytes of an indirect access.
    fn indirect_l1(&mut self, at: Attempt, access: Indirect, size: u32) -> Result<(u32, u32), Hold> {
        let offset = self.half(at.thread, access.offset_half_reg);
        let bytes = [16, 4, 2, 1][size as usize];
        let addr = u64::from(*self.gpr(at.thread, access.addr_reg)) * 16 + u64::from(offset);
        Ok((in_l1(at, addr & !u64::from(bytes - 1), bytes)?, bytes))
    }

    fn load_indirect(&mut self, at: Attempt, insn: Loadind, outside: &mut impl Outside) -> Result<Done, Hold> {
        let (access, thread) = (Indirect::from(insn), at.thread);
        let (addr, bytes) = self.indirect_l1(at, access, insn.size())?;
        self.advance_offset(thread, access);
        outside.has_read(addr, bytes);
        let data = &outside.l1()[addr as usize..(addr + bytes) as usize];
        if insn.size() == 0 {
            for (i, chunk) in (0..4).zip(data.chunks_exact(4)) {
                *self.gpr(thread, (access.data_reg & 0x3C) + i) = little_endian(chunk);
            }
        } else {
            let (value, mask) = (little_endian(data), u32::MAX >> (32 - 8 * bytes));
            let gpr = self.gpr(thread, access.data_reg);
            *gpr = *gpr & !mask | value;
        }
        requests(timing::TENSIX_LOAD)
    }

    fn store_indirect(&mut self, at: Attempt, insn: Storeind, outside: &mut impl Outside) -> Result<Done, Hold> {
        let (access, thread) = (Indirect::from(insn), at.thread);
        let value = *self.gpr(thread, access.data_reg);
        if insn.to_l1() {
            let (addr, bytes) = self.indirect_l1(at, access, insn.size())?;
            if outside.must_wake(addr, bytes) {
                return Err(Hold::Wake);
            }
            let values = if insn.size() == 0 { self.four(thread, access.data_reg) } else { [value, 0, 0, 0] };
            self.advance_offset(thread, access);
            self.write_l1(at, addr, &to_bytes(values)[..bytes as usize], outside);
            return requests(timing::TENSIX_STORE);
        }
        if !insn.to_mmio() {
            return self.store_to_source(at, access, usize::from(insn.to_src_b()));
        }
        let offset = self.half(thread, access.offset_half_reg);
        let addr = MMIO_BASE + (self.gpr(thread, access.addr_reg).wrapping_add(offset >> 4) & 0xF_FFFC);
        let done = self.store_register(at, addr, value, outside)?;
        self.advance_offset(thread, access);
        Ok(done)
    }

    /// `STOREIND` to SrcA or SrcB (STOREIND_Src.md). While it waits for its bank, other threads may
    /// use the unit.
    fn store_to_source(&mut self, at: Attempt, access: Indirect, unit: usize) -> Result<Done, Hold> {
        if !self.src.0[unit].unpacker_may_write() {
            return Ok(Done::NotBefore(NEVER));
        }
        let thread = at.thread;
        let offset = self.half(thread, access.offset_half_reg);
        let addr = self.gpr(thread, access.addr_reg).wrapping_add(offset >> 4) & 0xF_FFFF;
        if addr & 0xF_0000 != 0 {
            return Err(at.undefined("an address behind SrcA or SrcB"));
        }
        let [low, high, ..] = self.four(thread, access.data_reg);
        let data = [low, high].map(|pair| [bf16_of_low_half(pair), src_of_bf16((pair >> 16) as u16)]);
        let (row, column) = ((addr >> 2) as usize, (addr & 3) as usize * 4);
        // The first four rows lie before SrcA.
        let before = if unit == src::A { 4 } else { 0 };
        self.advance_offset(thread, access);
        let Some(row) = row.checked_sub(before) else { return takes(timing::TENSIX_REQUEST) };
        let absolute = unit == src::A && self.config.is_set(thread, cfg::SRCA_SET_SETOVRDWITHADDR);
        let (rows, first) = match absolute {
            true => (src::ROWS, 0),
            false => (16, self.unpackers.src_row(unit, thread) as usize),
        };
        if row >= rows {
            return Err(at.undefined("a row behind those of SrcA or SrcB"));
        }
        let row = &mut self.src.0[unit].unpacked_mut()[(first + row) % src::ROWS];
        row[column..column + 4].copy_from_slice(data.as_flattened());
        takes(timing::TENSIX_REQUEST)
    }

    fn store_register(&mut self, at: Attempt, addr: u32, value: u32, outside: &mut impl Outside) -> Result<Done, Hold> {
        let Attempt { thread, now, .. } = at;
        let addr = mmio(at, addr)?;
        if outside.must_wake(addr, 4) {
            return Err(Hold::Wake);
        }
        outside.store(now, addr, value).map_err(|fault| at.caused(fault))?;
        // A wait gate may look at what was written.
        self.notify_others(thread, now);
        requests(timing::TENSIX_STORE)
    }

    /// Writes L1; sleepers have been woken. Other threads may repeat an atomic there.
    fn write_l1(&mut self, at: Attempt, addr: u32, data: &[u8], outside: &mut impl Outside) {
        outside.write_l1(addr, data);
        for other in (0..self.threads.len()).filter(|&t| t != at.thread) {
            self.wake_retry(other, at.now + 1);
        }
    }

    /// The L1 address that an atomic's address register names.
    fn atomic_addr(&mut self, at: Attempt, addr_reg: u32, offset: u32, len: u32) -> Result<u32, Hold> {
        let addr = u64::from(*self.gpr(at.thread, addr_reg)) * 16 + u64::from(offset);
        in_l1(at, addr, len)
    }

    fn increment(&mut self, at: Attempt, insn: Atincget, outside: &mut impl Outside) -> Result<Done, Hold> {
        let addr = self.atomic_addr(at, insn.addr_reg(), insn.ofs() * 4, 4)?;
        if outside.must_wake(addr, 4) {
            return Err(Hold::Wake);
        }
        let old = load(outside, addr);
        let mask = u32::MAX >> (31 - insn.int_width());
        let new = old.wrapping_add(*self.gpr(at.thread, insn.in_out_reg())) & mask | old & !mask;
        self.write_l1(at, addr, &new.to_le_bytes(), outside);
        *self.gpr(at.thread, insn.in_out_reg()) = old;
        requests(timing::TENSIX_ATOMIC)
    }

    fn fifo_pointer(&mut self, at: Attempt, insn: Atincgetptr, outside: &mut impl Outside) -> Result<Done, Hold> {
        let addr = self.atomic_addr(at, insn.addr_reg(), 0, 16)?;
        let (ofs, width) = (insn.ofs(), insn.int_width());
        let held = load(outside, addr + 4).wrapping_sub(load(outside, addr));
        let capacity = if width == 0 { 0x8000 } else { 1 << (width - 1) };
        let waits = if ofs & 1 != 0 { held != 0 && held % capacity == 0 } else { held == 0 };
        if waits {
            return Ok(Done::Again(addr));
        }
        let pointer = addr + 4 * ofs;
        if outside.must_wake(pointer, 4) {
            return Err(Hold::Wake);
        }
        let old = load(outside, pointer);
        let by = if insn.no_incr() { 0 } else { 1 << insn.incr_log2() };
        let mask = (1 << width) - 1;
        let new = old.wrapping_add(by) & mask | old & !mask;
        self.write_l1(at, pointer, &new.to_le_bytes(), outside);
        *self.gpr(at.thread, insn.result_reg()) = old;
        takes(timing::TENSIX_ATOMIC_RETRY)
    }

    fn swap(&mut self, at: Attempt, insn: Atswap, outside: &mut impl Outside) -> Result<Done, Hold> {
        let addr = self.atomic_addr(at, insn.addr_reg(), 0, 16)?;
        if outside.must_wake(addr, 16) {
            return Err(Hold::Wake);
        }
        let data = insn.data_reg();
        let mut values = self.four(at.thread, data);
        if insn.single_data_reg() {
            values = [0; 4];
            values[(data & 3) as usize] = *self.gpr(at.thread, data);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&outside.l1()[addr as usize..addr as usize + 16]);
        for (i, half) in to_bytes(values).chunks_exact(2).enumerate() {
            if insn.mask() >> i & 1 != 0 {
                bytes[2 * i..2 * i + 2].copy_from_slice(half);
            }
        }
        self.write_l1(at, addr, &bytes, outside);
        requests(timing::TENSIX_ATOMIC)
    }

    fn compare_and_set(&mut self, at: Attempt, insn: Atcas, outside: &mut impl Outside) -> Result<Done, Hold> {
        let addr = self.atomic_addr(at, insn.addr_reg(), insn.ofs() * 4, 4)?;
        if load(outside, addr) != insn.cmp_val() {
            return Ok(Done::Again(addr));
        }
        if outside.must_wake(addr, 4) {
            return Err(Hold::Wake);
        }
        self.write_l1(at, addr, &insn.set_val().to_le_bytes(), outside);
        takes(timing::TENSIX_ATOMIC_RETRY)
    }
}

/// Checks that `len` bytes at `addr` lie in L1.
fn in_l1(at: Attempt, addr: u64, len: u32) -> Result<u32, Hold> {
    match u32::try_from(addr) {
        Ok(addr) if u64::from(addr) + u64::from(len) <= u64::from(map::L1_SIZE) => Ok(addr),
        _ => Err(at.undefined("an address outside L1")),
    }
}

/// Checks that `addr` is a register and not a core's local RAM.
fn mmio(at: Attempt, addr: u32) -> Result<u32, Hold> {
    if addr < MMIO_FIRST {
        return Err(at.undefined("an address in a core's local RAM"));
    }
    Ok(addr)
}

/// A datum of SrcA or SrcB from the low half of a GPR, which has the mantissa before the exponent.
fn bf16_of_low_half(pair: u32) -> u32 {
    (pair & 0xFF00) << 3 | pair & 0xFF
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

fn load(outside: &impl Outside, addr: u32) -> u32 {
    little_endian(&outside.l1()[addr as usize..addr as usize + 4])
}

fn to_bytes(values: [u32; 4]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (chunk, value) in bytes.chunks_exact_mut(4).zip(values) {
        chunk.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}
