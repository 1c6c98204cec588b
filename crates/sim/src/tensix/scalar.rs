//! The scalar unit (ThCon): arithmetic on GPRs, accesses of a thread to L1 and registers, atomics on L1.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/ScalarUnit.md and the pages of its instructions. One instruction at a time, of whichever
//! thread, and its thread starts nothing else until it is done. A load's result is in its GPR when the instruction starts; the documents let
//! nobody look before the wait that the request's time gives.

use super::config::Config;
use super::coprocessor::{Coprocessor, GPRS, Issue, Retry, of_thread};
use super::outside::{Hold, Outside};
use crate::{Cycle, FaultClass, NEVER, timing};
use tilework_abi::tensix as map;

/// The window of registers that `LOADREG`, `STOREREG` and `STOREIND` reach.
const MMIO_BASE: u32 = map::LOCAL_BASE;
/// Lowest address in it that is not undefined behaviour.
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

impl Coprocessor {
    /// Lets a scalar instruction pass, if the unit takes it in cycle `now` and it can finish.
    pub(super) fn issue_scalar(
        &mut self,
        thread: usize,
        now: Cycle,
        word: u32,
        outside: &mut impl Outside,
    ) -> Result<Issue, Hold> {
        let retries = self.threads[thread].retry;
        if retries.is_none() && self.units.scalar > now {
            return Ok(Issue::NotBefore(self.units.scalar));
        }
        let limited = matches!(word >> 24, 0x61 | 0x63);
        if limited && self.units.atomic > now {
            return Ok(Issue::NotBefore(self.units.atomic));
        }
        if outside.must_wake(map::GPR_BASE, 4) {
            return Err(Hold::Wake);
        }
        match self.scalar(thread, now, word, outside)? {
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
                    self.notify_others(1 + thread, now);
                }
                Ok(Issue::Passed)
            }
            Done::Again(addr) => {
                outside.sleep_on(addr);
                let first = retries.map_or(now, |retry| retry.first);
                self.threads[thread].retry = Some(Retry { first, due: NEVER });
                self.units.scalar = NEVER;
                Ok(Issue::NotBefore(NEVER))
            }
            Done::NotBefore(at) => Ok(Issue::NotBefore(at)),
        }
    }

    fn scalar(&mut self, thread: usize, now: Cycle, word: u32, outside: &mut impl Outside) -> Result<Done, Hold> {
        match word >> 24 {
            0x45 => self.set_dma_reg(thread, now, word),
            0x46 => {
                let mask = if word & 0xF == 0 { 0xF } else { word & 0xF };
                let until = (0..4).filter(|i| mask >> i & 1 != 0).map(|i| self.busy_until(thread, i)).max();
                match until {
                    Some(until) if until > now => Ok(Done::NotBefore(until)),
                    _ => takes(timing::TENSIX_REG2FLOP),
                }
            }
            0x48 => self.reg_to_flop(thread, now, word),
            0x49 => self.load_indirect(thread, now, word, outside),
            0x58..=0x5D => self.arithmetic(thread, now, word),
            0x60 => takes(1),
            0x61 => self.increment(thread, now, word, outside),
            0x62 => self.fifo_pointer(thread, now, word, outside),
            0x63 => self.swap(thread, now, word, outside),
            0x64 => self.compare_and_set(thread, now, word, outside),
            0x66 => self.store_indirect(thread, now, word, outside),
            0x67 => {
                let value = *self.gpr(thread, word >> 18);
                self.store_register(thread, now, MMIO_BASE + ((word & 0x3_FFFF) << 2), value, word, outside)
            }
            0x68 => {
                let addr = MMIO_BASE + ((word & 0x3_FFFF) << 2);
                self.check_mmio(thread, now, addr, word)?;
                let value = outside.load(now, addr).map_err(|fault| of_thread(fault, thread, now))?;
                *self.gpr(thread, word >> 18) = value;
                requests(timing::TENSIX_LOAD)
            }
            _ => Err(self.not_built(thread, now, word)),
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

    fn set_half(&mut self, thread: usize, half: u32, value: u32) {
        let shift = 16 * (half & 1);
        let gpr = self.gpr(thread, half >> 1);
        *gpr = *gpr & !(0xFFFF << shift) | (value & 0xFFFF) << shift;
    }

    fn undefined(&self, thread: usize, now: Cycle, word: u32, what: &'static str) -> Hold {
        self.refused(thread, now, word, (FaultClass::UndefinedBehavior, what))
    }

    fn set_dma_reg(&mut self, thread: usize, now: Cycle, word: u32) -> Result<Done, Hold> {
        if word >> 7 & 1 == 0 {
            self.set_half(thread, word & 0x7F, word >> 8 & 0xFFFF);
            return takes(1);
        }
        // Packers' state, of which none is built, except for the sources that give zero.
        let (source, size) = (word >> 11 & 0xF, word >> 22 & 3);
        if source < 10 {
            return Err(self.not_built(thread, now, word));
        }
        let half = word & 0x7F;
        match size {
            0 => self.set_half(thread, half, 0),
            1 => *self.gpr(thread, half >> 1) = 0,
            2 => (0..4).for_each(|i| *self.gpr(thread, (half >> 1 & 0x3C) + i) = 0),
            _ => return Err(self.not_built(thread, now, word)),
        }
        takes(1)
    }

    fn reg_to_flop(&mut self, thread: usize, now: Cycle, word: u32) -> Result<Done, Hold> {
        let value = *self.gpr(thread, word);
        let done = match word >> 20 & 3 {
            0 => {
                let four = self.four(thread, word);
                let wide = word >> 22 & 3 == 0;
                Config::thcon_index(word >> 6 & 0x7F).and_then(|index| match wide {
                    true => self.config.set_four(thread, index, four),
                    false => self.config.set(thread, index, value),
                })
            }
            1 => return Err(self.undefined(thread, now, word, "a target that does not exist")),
            _ => {
                self.adcs.move_from_gpr(thread, word, value);
                Ok(())
            }
        };
        done.map_err(|refusal| self.refused(thread, now, word, refusal))?;
        takes(timing::TENSIX_REG2FLOP)
    }

    fn arithmetic(&mut self, thread: usize, now: Cycle, word: u32) -> Result<Done, Hold> {
        let (left_reg, right_reg) = (word & 0x3F, word >> 6 & 0x3F);
        let is_imm = word >> 23 & 1 != 0;
        let left = *self.gpr(thread, left_reg);
        let right = if is_imm { right_reg } else { *self.gpr(thread, right_reg) };
        let mode = word >> 18 & 7;
        let result = match (word >> 24, mode) {
            (0x58, _) => left.wrapping_add(right),
            (0x59, _) => left.wrapping_sub(right),
            (0x5A, _) => (left & 0xFFFF) * (right & 0xFFFF),
            (0x5B, 0) => left & right,
            (0x5B, 1) => left | right,
            (0x5B, 2) => left ^ right,
            (0x5C, 0) => left << (right & 31),
            (0x5C, 1) => left >> (right & 31),
            (0x5D, 0) => u32::from(left > right),
            (0x5D, 1) => u32::from(left < right),
            (0x5D, 2) => u32::from(left == right),
            _ => return Err(self.undefined(thread, now, word, "a mode that does not exist")),
        };
        *self.gpr(thread, word >> 12) = result;
        let near = is_imm || left_reg / 4 == right_reg / 4;
        takes(if near { timing::TENSIX_ARITHMETIC } else { timing::TENSIX_ARITHMETIC + 1 })
    }

    /// The offset of an indirect access.
    fn offset(&mut self, thread: usize, word: u32) -> u32 {
        let half = word >> 14 & 0x7F;
        *self.gpr(thread, half >> 1) >> (16 * (half & 1)) & 0xFFFF
    }

    /// Moves the offset of an indirect access on.
    fn advance_offset(&mut self, thread: usize, word: u32) {
        let by = [0, 2, 4, 16][(word >> 12 & 3) as usize];
        let offset = self.offset(thread, word);
        self.set_half(thread, word >> 14 & 0x7F, offset + by);
    }

    /// Checks that `len` bytes at `addr` lie in L1.
    fn check_l1(&self, thread: usize, now: Cycle, addr: u64, len: u32, word: u32) -> Result<u32, Hold> {
        match u32::try_from(addr) {
            Ok(addr) if u64::from(addr) + u64::from(len) <= u64::from(map::L1_SIZE) => Ok(addr),
            _ => Err(self.undefined(thread, now, word, "an address outside L1")),
        }
    }

    /// L1 address and bytes of an indirect access.
    fn indirect_l1(&mut self, thread: usize, now: Cycle, word: u32, size: u32) -> Result<(u32, u32), Hold> {
        let offset = self.offset(thread, word);
        let bytes = [16, 4, 2, 1][size as usize];
        let addr = u64::from(*self.gpr(thread, word)) * 16 + u64::from(offset);
        Ok((self.check_l1(thread, now, addr & !u64::from(bytes - 1), bytes, word)?, bytes))
    }

    fn load_indirect(
        &mut self,
        thread: usize,
        now: Cycle,
        word: u32,
        outside: &mut impl Outside,
    ) -> Result<Done, Hold> {
        let size = word >> 22 & 3;
        let (addr, bytes) = self.indirect_l1(thread, now, word, size)?;
        self.advance_offset(thread, word);
        let data = &outside.l1()[addr as usize..(addr + bytes) as usize];
        let target = word >> 6 & 0x3F;
        if size == 0 {
            for (i, chunk) in (0..4).zip(data.chunks_exact(4)) {
                *self.gpr(thread, (target & 0x3C) + i) = little_endian(chunk);
            }
        } else {
            let (value, mask) = (little_endian(data), u32::MAX >> (32 - 8 * bytes));
            let gpr = self.gpr(thread, target);
            *gpr = *gpr & !mask | value;
        }
        requests(timing::TENSIX_LOAD)
    }

    fn store_indirect(
        &mut self,
        thread: usize,
        now: Cycle,
        word: u32,
        outside: &mut impl Outside,
    ) -> Result<Done, Hold> {
        let data = word >> 6 & 0x3F;
        if word >> 23 & 1 != 0 {
            let size = word >> 21 & 3;
            let (addr, bytes) = self.indirect_l1(thread, now, word, size)?;
            if outside.must_wake(addr, bytes) {
                return Err(Hold::Wake);
            }
            let values = if size == 0 { self.four(thread, data) } else { [*self.gpr(thread, data), 0, 0, 0] };
            self.advance_offset(thread, word);
            self.write_l1(thread, now, addr, &to_bytes(values)[..bytes as usize], outside);
            return requests(timing::TENSIX_STORE);
        }
        if word >> 22 & 1 == 0 {
            // SrcA and SrcB are not built.
            return Err(self.not_built(thread, now, word));
        }
        let offset = self.offset(thread, word);
        let addr = MMIO_BASE + (self.gpr(thread, word).wrapping_add(offset >> 4) & 0xF_FFFC);
        let value = *self.gpr(thread, data);
        let done = self.store_register(thread, now, addr, value, word, outside)?;
        self.advance_offset(thread, word);
        Ok(done)
    }

    fn check_mmio(&self, thread: usize, now: Cycle, addr: u32, word: u32) -> Result<(), Hold> {
        if addr < MMIO_FIRST {
            return Err(self.undefined(thread, now, word, "an address in a core's local RAM"));
        }
        Ok(())
    }

    fn store_register(
        &mut self,
        thread: usize,
        now: Cycle,
        addr: u32,
        value: u32,
        word: u32,
        outside: &mut impl Outside,
    ) -> Result<Done, Hold> {
        self.check_mmio(thread, now, addr, word)?;
        if outside.must_wake(addr, 4) {
            return Err(Hold::Wake);
        }
        outside.store(now, addr, value).map_err(|fault| of_thread(fault, thread, now))?;
        // A wait gate may look at what was written.
        self.notify_others(1 + thread, now);
        requests(timing::TENSIX_STORE)
    }

    /// Writes L1; sleepers have been woken. Other threads may repeat an atomic there.
    fn write_l1(&mut self, thread: usize, now: Cycle, addr: u32, data: &[u8], outside: &mut impl Outside) {
        outside.write_l1(addr, data);
        for other in (0..self.threads.len()).filter(|&t| t != thread) {
            self.wake_retry(other, now + 1);
        }
    }

    /// The L1 address that an atomic's address register names.
    fn atomic_addr(&mut self, thread: usize, now: Cycle, word: u32, offset: u32, len: u32) -> Result<u32, Hold> {
        let addr = u64::from(*self.gpr(thread, word)) * 16 + u64::from(offset);
        self.check_l1(thread, now, addr, len, word)
    }

    fn increment(&mut self, thread: usize, now: Cycle, word: u32, outside: &mut impl Outside) -> Result<Done, Hold> {
        let addr = self.atomic_addr(thread, now, word, (word >> 12 & 3) * 4, 4)?;
        if outside.must_wake(addr, 4) {
            return Err(Hold::Wake);
        }
        let old = load(outside, addr);
        let target = word >> 6;
        let mask = u32::MAX >> (31 - (word >> 14 & 31));
        let new = old.wrapping_add(*self.gpr(thread, target)) & mask | old & !mask;
        self.write_l1(thread, now, addr, &new.to_le_bytes(), outside);
        *self.gpr(thread, target) = old;
        requests(timing::TENSIX_ATOMIC)
    }

    fn fifo_pointer(&mut self, thread: usize, now: Cycle, word: u32, outside: &mut impl Outside) -> Result<Done, Hold> {
        let addr = self.atomic_addr(thread, now, word, 0, 16)?;
        let (ofs, width) = (word >> 12 & 3, word >> 14 & 0xF);
        let held = load(outside, addr + 4).wrapping_sub(load(outside, addr));
        let capacity = if width == 0 { 0x8000 } else { 1 << (width - 1) };
        let waits = if ofs & 1 != 0 { held != 0 && held % capacity == 0 } else { held == 0 };
        if waits {
            return Ok(Done::Again(addr));
        }
        let at = addr + 4 * ofs;
        if outside.must_wake(at, 4) {
            return Err(Hold::Wake);
        }
        let old = load(outside, at);
        let by = if word >> 22 & 1 != 0 { 0 } else { 1 << (word >> 18 & 0xF) };
        let mask = (1 << width) - 1;
        let new = old.wrapping_add(by) & mask | old & !mask;
        self.write_l1(thread, now, at, &new.to_le_bytes(), outside);
        *self.gpr(thread, word >> 6) = old;
        takes(timing::TENSIX_ATOMIC_RETRY)
    }

    fn swap(&mut self, thread: usize, now: Cycle, word: u32, outside: &mut impl Outside) -> Result<Done, Hold> {
        let addr = self.atomic_addr(thread, now, word, 0, 16)?;
        if outside.must_wake(addr, 16) {
            return Err(Hold::Wake);
        }
        let data = word >> 6 & 0x3F;
        let mut values = self.four(thread, data);
        if word >> 22 & 1 != 0 {
            values = [0; 4];
            values[(data & 3) as usize] = *self.gpr(thread, data);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&outside.l1()[addr as usize..addr as usize + 16]);
        for (i, half) in to_bytes(values).chunks_exact(2).enumerate() {
            if word >> (14 + i) & 1 != 0 {
                bytes[2 * i..2 * i + 2].copy_from_slice(half);
            }
        }
        self.write_l1(thread, now, addr, &bytes, outside);
        requests(timing::TENSIX_ATOMIC)
    }

    fn compare_and_set(
        &mut self,
        thread: usize,
        now: Cycle,
        word: u32,
        outside: &mut impl Outside,
    ) -> Result<Done, Hold> {
        let addr = self.atomic_addr(thread, now, word, (word >> 12 & 3) * 4, 4)?;
        if load(outside, addr) != word >> 14 & 0xF {
            return Ok(Done::Again(addr));
        }
        if outside.must_wake(addr, 4) {
            return Err(Hold::Wake);
        }
        self.write_l1(thread, now, addr, &(word >> 18 & 0xF).to_le_bytes(), outside);
        takes(timing::TENSIX_ATOMIC_RETRY)
    }
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
