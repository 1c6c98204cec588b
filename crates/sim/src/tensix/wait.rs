//! The wait gate's latched wait instruction and its conditions.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{STALLWAIT,SEMWAIT,STREAMWAIT}.md.

use super::attempt::{Attempt, named, of_thread};
use super::border::{Hold, Outside};
use super::coprocessor::Coprocessor;
use super::fifo::Entry;
use super::matrix::Needs;
use super::origin::Origin;
use crate::{Cycle, Fault, NEVER};
use tilework_abi::stream;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{self, Insn};

/// A latched wait instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latched {
    /// The instruction.
    pub(super) insn: insn::WaitOp,
    /// Which instructions it blocks.
    pub(super) block: u16,
    pub(super) condition: Condition,
    /// The cycle in which it was latched.
    pub(super) since: Cycle,
    /// It blocks nothing from this cycle on; [`NEVER`] while its conditions are not met.
    pub(super) released: Cycle,
}

/// What a latched wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// `STALLWAIT`: all of these are clear.
    Units(u16),
    /// `SEMWAIT`.
    Semaphores { mask: u8, while_zero: bool, while_full: bool },
    /// `STREAMWAIT`: the register at this address has reached the value.
    Stream { addr: u32, target: u32 },
}

/// Whether a condition is met.
pub(super) enum Verdict {
    Met,
    /// Not before this cycle; [`NEVER`]: when something changes.
    NotBefore(Cycle),
}

/// What condition 0 and 1 of `STREAMWAIT` look at.
const STREAM_REGS: [u32; 2] = [stream::reg::CURR_PHASE, stream::reg::NUM_MSGS_RECEIVED];

impl Coprocessor {
    /// What `insn` latches.
    pub(super) fn latch(&self, at: Attempt, insn: insn::WaitOp) -> Result<Latched, Hold> {
        let (block, condition) = match insn {
            insn::WaitOp::Stallwait(wait) => {
                let mask = match wait.condition_mask() as u16 {
                    0 => 0x0F,
                    mask => mask,
                };
                (wait.block_mask(), Condition::Units(mask))
            }
            insn::WaitOp::Semwait(wait) => {
                let condition = wait.condition_mask();
                if condition == 0 {
                    return Err(at.undefined("no condition is selected"));
                }
                let (while_zero, while_full) = (condition & 1 != 0, condition & 2 != 0);
                let mask = wait.semaphore_mask() as u8;
                (wait.block_mask(), Condition::Semaphores { mask, while_zero, while_full })
            }
            insn::WaitOp::Streamwait(wait) => {
                let index = wait.condition_index() as usize;
                let high = [cfg::STREAMWAIT_PHASE_HI_VAL, cfg::STREAMWAIT_NUM_MSGS_HI_VAL][index];
                let target = self.config.read(at.thread, high) << 10 | wait.target_value_lo();
                let stream =
                    self.config.read(at.thread, cfg::STREAM_ID_SYNC_SEC_BANKSEL.copy(wait.stream_select() as usize));
                let addr = stream::reg_addr(stream, STREAM_REGS[index]);
                (wait.block_mask(), Condition::Stream { addr, target })
            }
        };
        let block = match block as u16 {
            0 => insn::Unit::Matrix.block_bits(),
            mask => mask,
        };
        Ok(Latched { insn, block, condition, since: at.now, released: NEVER })
    }

    /// Whether the latched wait's conditions are met in cycle `now`.
    pub(super) fn verdict(
        &self,
        thread: usize,
        now: Cycle,
        latched: &Latched,
        outside: &mut impl Outside,
    ) -> Result<Verdict, Hold> {
        let met = match latched.condition {
            Condition::Units(mask) => {
                let busy = (0..13).filter(|i| mask >> i & 1 != 0).map(|i| self.busy_until(thread, i));
                let until = busy.max().unwrap_or(0);
                return Ok(if until <= now { Verdict::Met } else { Verdict::NotBefore(until) });
            }
            Condition::Semaphores { mask, while_zero, while_full } => {
                let chosen = (0..8).filter(|i| mask >> i & 1 != 0).map(|i| self.semaphores[i]);
                chosen.into_iter().all(|s| !(while_zero && s.value() == 0 || while_full && s.is_full()))
            }
            Condition::Stream { addr, target } => {
                let value = outside.load(now, addr).map_err(|fault: Fault| of_thread(fault, thread, now))?;
                if value < target {
                    outside.sleep_on(addr);
                }
                value >= target
            }
        };
        Ok(if met { Verdict::Met } else { Verdict::NotBefore(NEVER) })
    }

    /// The cycle from which condition bit `bit` of `STALLWAIT` no longer holds a thread; [`NEVER`]:
    /// not by itself. What a core stores has happened when it continues.
    pub(super) fn busy_until(&self, thread: usize, bit: u32) -> Cycle {
        let busy = &self.threads[thread].busy;
        let src = |bit: u32| &self.src.0[(bit as usize - 5) & 1];
        let until = |met: bool| if met { 0 } else { NEVER };
        match bit {
            0 => busy.memory,
            1 | 2 => until(!self.unpackers.holds(bit as usize - 1, thread)),
            3 => busy.packer,
            4 => busy.matrix,
            5 | 6 => until(src(bit).unpacker_may_write()),
            7 | 8 => until(src(bit).matrix_may_read()),
            9 => until(!self.mover.is_busy()),
            11 => busy.vector,
            12 => self.units.config_busy,
            _ => 0,
        }
    }

    /// What a thread stands at its wait gate for, or what its instruction in an unpacker waits for,
    /// in words, and where the instruction was pushed; `None` when there is neither.
    pub(super) fn explain(&self, thread: usize) -> Option<(String, Origin)> {
        let t = &self.threads[thread];
        let told = |insn, why: String, origin: Origin| {
            Some((format!("Tensix thread T{thread}: {} waits for {why}", named(insn)), origin))
        };
        let Some(&Entry { word, origin, .. }) = t.front.head() else {
            let (unit, insn, origin) = self.unpackers.stuck(thread)?;
            return told(insn, bank_of(unit), origin);
        };
        let insn = Insn::decode(word);
        let why = match t.latched {
            Some(latched) if insn::is_blocked_by(word, latched.block) => self.describe(thread, &latched),
            _ => match (t.mutex, t.retry) {
                (Some(index), _) => match self.mutexes.holder(index) {
                    Some(holder) => format!("mutex {index}, which T{holder} holds"),
                    None => format!("mutex {index}"),
                },
                (None, Some(_)) => "its atomic on L1 to succeed".into(),
                (None, None) => match (insn, self.unpackers.stuck(thread)) {
                    (Insn::Unpacker(_), Some((unit, ..))) => bank_of(unit),
                    (Insn::Matrix(insn), _) => Needs::of(insn, 0).missing(&self.src).unwrap_or("its unit").into(),
                    _ => "its unit".into(),
                },
            },
        };
        told(insn, why, origin)
    }

    fn describe(&self, thread: usize, latched: &Latched) -> String {
        let insn = Insn::Wait(latched.insn);
        let (name, word) = (insn.row().map_or("", |row| row.mnemonic), insn.word());
        let list = |bits: Vec<u32>| bits.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match latched.condition {
            Condition::Units(mask) => {
                let unmet = (0..13).filter(|i| mask >> i & 1 != 0 && self.busy_until(thread, *i) == NEVER);
                format!("condition C{} of {name} ({word:#010x})", list(unmet.collect()))
            }
            Condition::Semaphores { mask, while_zero, while_full } => {
                let stuck = (0..8u32).filter(|&i| {
                    let s = self.semaphores[i as usize];
                    mask >> i & 1 != 0 && (while_zero && s.value() == 0 || while_full && s.is_full())
                });
                format!("semaphore {} ({name} {word:#010x})", list(stuck.collect()))
            }
            Condition::Stream { addr, target } => {
                format!("the stream register at {addr:#x} to reach {target} ({name} {word:#010x})")
            }
        }
    }
}

/// What an instruction waits for in unpacker `unit`.
fn bank_of(unit: usize) -> String {
    format!("the matrix unit to give a bank of Src{} back to unpacker {unit}", ["A", "B"][unit])
}
