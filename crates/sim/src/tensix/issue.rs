//! Instructions enter their units: sync, configuration, mover, miscellaneous, matrix and vector. (The scalar unit is in `scalar.rs`.)
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{SyncUnit,ATGETM,ConfigurationUnit,STREAMWRCFG}.md and
//! WormholeB0/TensixTile/TensixCoprocessor/{MiscellaneousUnit,SETDVALID,XMOV}.md.

use super::config::{Refusal, STREAM_ID_SYNC, XMOV};
use super::coprocessor::{Coprocessor, GPRS, Issue, of_thread};
use super::matrix::Executed;
use super::opcodes::{self, Unit};
use super::outside::{Hold, Outside};
use super::reset::InReset;
use super::sync;
use crate::{Cycle, Fault, FaultClass, NEVER, timing};
use tilework_abi::{stream, tensix as map};

/// Any address among the semaphores that cores see.
pub(super) const SEMAPHORE_ADDR: u32 = map::PC_BUF_BASE + 0x20;

impl Coprocessor {
    /// Lets the instruction at the wait gate of `thread` pass, if its unit takes it in cycle `now`.
    pub(super) fn issue(
        &mut self,
        thread: usize,
        now: Cycle,
        unit: Unit,
        word: u32,
        outside: &mut impl Outside,
    ) -> Result<Issue, Hold> {
        match self.in_reset(unit, word) {
            Some(InReset::Discards) => {
                self.occupy(thread, now + timing::TENSIX_UNIT);
                return Ok(Issue::Passed);
            }
            Some(InReset::Waits) => return Ok(Issue::NotBefore(NEVER)),
            None => {}
        }
        match unit {
            Unit::Nop => {}
            Unit::Wait => return self.issue_wait(thread, now, word),
            Unit::Sync if matches!(word >> 24, 0xA0 | 0xA1) => return Ok(self.issue_mutex(thread, now, word)),
            Unit::Sync => return self.issue_semaphores(now, word, outside, thread),
            Unit::Config => return self.issue_config(thread, now, word, outside),
            Unit::Scalar => return self.issue_scalar(thread, now, word, outside),
            Unit::Mover => return self.issue_mover(thread, now, word),
            Unit::Misc => return self.issue_misc(thread, now, word),
            Unit::Matrix => {
                if self.units.matrix > now {
                    return Ok(Issue::NotBefore(self.units.matrix));
                }
                let executed = self.matrix.execute(&self.config, thread, word);
                self.built(thread, now, word, executed)?;
                self.units.matrix = now + 1;
                self.threads[thread].busy.matrix = now + timing::TENSIX_UNIT;
                self.notify_others(1 + thread, now);
            }
            Unit::Vector => {
                if self.units.vector > now {
                    return Ok(Issue::NotBefore(self.units.vector));
                }
                let executed = self.vector.execute(word);
                self.built(thread, now, word, executed)?;
                self.units.vector = now + 1;
                self.threads[thread].busy.vector = now + timing::TENSIX_UNIT;
            }
            Unit::Packer | Unit::Unpacker | Unit::FrontEnd => return Err(self.not_built(thread, now, word)),
        }
        self.occupy(thread, now + timing::TENSIX_UNIT);
        Ok(Issue::Passed)
    }

    /// Something of `thread` is under way until `until`.
    pub(super) fn occupy(&mut self, thread: usize, until: Cycle) {
        let any = &mut self.threads[thread].busy.any;
        *any = until.max(*any);
    }

    fn built(&self, thread: usize, now: Cycle, word: u32, executed: Result<Executed, Refusal>) -> Result<(), Hold> {
        match executed {
            Ok(Executed::Done) => Ok(()),
            Ok(Executed::NotBuilt) => Err(self.not_built(thread, now, word)),
            Err(refusal) => Err(self.refused(thread, now, word, refusal)),
        }
    }

    /// The fault of an instruction that exists but is not built.
    pub(super) fn not_built(&self, thread: usize, now: Cycle, word: u32) -> Hold {
        let name = opcodes::mnemonic(word).unwrap_or("instruction");
        let what = format!("{name} ({word:#010x}) of Tensix thread T{thread}: coprocessor instruction not built yet");
        let read = "WormholeB0/TensixTile/TensixCoprocessor/README.md";
        of_thread(Fault::new(FaultClass::UnimplementedFunctionality, what, read), thread, now).into()
    }

    fn issue_wait(&mut self, thread: usize, now: Cycle, word: u32) -> Result<Issue, Hold> {
        if self.units.sync > now {
            return Ok(Issue::NotBefore(self.units.sync));
        }
        self.threads[thread].latched = Some(self.latch(thread, now, word)?);
        self.units.sync = now + 1;
        self.occupy(thread, now + timing::TENSIX_UNIT);
        Ok(Issue::Passed)
    }

    fn issue_mutex(&mut self, thread: usize, now: Cycle, word: u32) -> Issue {
        let index = sync::mutex_index(word);
        let acquires = word >> 24 == 0xA0;
        self.threads[thread].mutex = index;
        let Some(index) = index else {
            // The page: an invalid index waits for ever.
            return Issue::NotBefore(NEVER);
        };
        if acquires {
            if !self.mutexes.acquire(index, thread) {
                return Issue::NotBefore(NEVER);
            }
        } else {
            let waits = [0, 1, 2].map(|i| i != thread && self.threads[i].mutex == Some(index));
            self.mutexes.release(index, thread, waits);
            self.notify_others(1 + thread, now);
        }
        self.threads[thread].mutex = None;
        self.occupy(thread, now + timing::TENSIX_UNIT);
        Issue::Passed
    }

    fn issue_semaphores(
        &mut self,
        now: Cycle,
        word: u32,
        outside: &mut impl Outside,
        thread: usize,
    ) -> Result<Issue, Hold> {
        if self.units.sync > now {
            return Ok(Issue::NotBefore(self.units.sync));
        }
        if outside.must_wake(SEMAPHORE_ADDR, 4) {
            return Err(Hold::Wake);
        }
        let mask = word >> 2 & 0xFF;
        for (_, semaphore) in self.semaphores.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 != 0) {
            match word >> 24 {
                0xA3 => semaphore.init((word >> 16 & 0xF) as u8, (word >> 20 & 0xF) as u8),
                0xA4 => semaphore.post(),
                _ => semaphore.get(),
            }
        }
        self.units.sync = now + 1;
        self.occupy(thread, now + timing::TENSIX_UNIT);
        self.notify_others(1 + thread, now);
        Ok(Issue::Passed)
    }

    fn issue_config(
        &mut self,
        thread: usize,
        now: Cycle,
        word: u32,
        outside: &mut impl Outside,
    ) -> Result<Issue, Hold> {
        let opcode = word >> 24;
        let sets_thread = opcode == 0xB2;
        if !sets_thread && self.units.config > now {
            return Ok(Issue::NotBefore(self.units.config));
        }
        if outside.must_wake(map::CFG_BASE, 4) {
            return Err(Hold::Wake);
        }
        let gpr = thread * GPRS + (word >> 16 & 0x3F) as usize;
        let index = word & 0x7FF;
        let config = &mut self.config;
        // How long the instruction is in the unit, and when the unit takes the next one (ConfigurationUnit.md).
        let (done, latency, interval) = match opcode {
            0xB0 if word >> 15 & 1 != 0 => {
                let four = [0, 1, 2, 3].map(|i| self.gprs[(gpr & !3) + i]);
                (config.set_four(thread, index, four), 2, 1)
            }
            0xB0 => (config.set(thread, index, self.gprs[gpr]), 2, 1),
            0xB1 => (config.get(thread, index).map(|value| self.gprs[gpr] = value), 2, 1),
            0xB2 => (config.set_thread(thread, word >> 16 & 0xFF, word as u16), 1, 0),
            0xB3..=0xB6 => {
                let (mask, new) = ((word >> 16) as u8, (word >> 8) as u8);
                (config.modify_byte(thread, word & 0xFF, opcode - 0xB3, mask, new), 1, 1)
            }
            0xB7 => {
                let select = STREAM_ID_SYNC + (word >> 21 & 3);
                let addr = stream::reg_addr(config.field(thread, (select, 0, 6)), (word >> 11 & 0x3FF) % stream::REGS);
                let value = outside.load(now, addr).map_err(|fault| of_thread(fault, thread, now))?;
                (config.set(thread, index, value), 5, 1)
            }
            _ => (config.shift_mask(thread, word), 2, 2),
        };
        done.map_err(|refusal| self.refused(thread, now, word, refusal))?;
        self.units.config = self.units.config.max(now + interval);
        self.units.config_busy = self.units.config_busy.max(now + latency);
        self.occupy(thread, now + latency);
        Ok(Issue::Passed)
    }

    fn issue_mover(&mut self, thread: usize, now: Cycle, word: u32) -> Result<Issue, Hold> {
        if self.mover.is_busy() {
            return Ok(Issue::NotBefore(NEVER));
        }
        let read = |i: u32| self.config.get(thread, XMOV + i);
        let four = || Ok([read(0)?, read(1)?, read(2)?]);
        let [src, dst, size] = four().map_err(|refusal| self.refused(thread, now, word, refusal))?;
        self.start_move(now, dst << 4, src << 4, (size & 0xFFFF) << 4, size >> 30, Some(thread));
        self.occupy(thread, now + timing::TENSIX_UNIT);
        Ok(Issue::Passed)
    }

    fn issue_misc(&mut self, thread: usize, now: Cycle, word: u32) -> Result<Issue, Hold> {
        if word >> 24 == 0x57 {
            self.matrix.banks.give_to_matrix(word & 3);
            self.notify_others(1 + thread, now);
        } else if !self.adcs.execute(thread, word) {
            return Err(self.not_built(thread, now, word));
        }
        self.occupy(thread, now + timing::TENSIX_UNIT);
        Ok(Issue::Passed)
    }
}
