//! The mover and the part of TDMA-RISC that commands it.
//!
//! Follows WormholeB0/TensixTile/{Mover,TDMA-RISC}.md (Blackhole has no page of its own for
//! TDMA-RISC in the public tree). A copy takes effect as a whole when it is done.

use super::attempt::Attempt;
use super::border::{Hold, Outside};
use super::config::Refusal;
use super::coprocessor::{Coprocessor, THREADS};
use super::origin::{Issuer, Origin};
use super::reset;
use crate::probe::Unit;
use crate::{Bug, Bugs, Cycle, Fault, FaultClass, NEVER, timing};
use std::collections::VecDeque;
use tilework_abi::tensix as map;

/// Commands that the queue holds.
const QUEUE: usize = 4;
/// Commands with parameters in flight.
const CREDITS: usize = 2;
/// Commands, the low byte of a command word (TDMA-RISC.md): a copy, a wait for the mover, a write
/// to L1, and one that does nothing.
const COPY: u32 = 0x40;
const WAIT: u32 = 0x46;
const WRITE: u32 = 0x66;
const NOTHING: u32 = 0x89;
/// Targets outside L1 are spans of this many bytes (Mover.md, "Functional model").
const TARGET_BYTES: u32 = 0x1_0000;
/// The span that is the backend configuration.
const TARGET_CONFIG: u32 = 0;
/// The span that is NCRISC's instruction RAM on Wormhole.
const TARGET_IRAM: u32 = 4;
const READ: &str = "WormholeB0/TensixTile/Mover.md";

/// A command of the queue.
#[derive(Clone, Copy, Debug)]
struct Command {
    word: u32,
    params: [u32; 4],
    /// Where compact commands count from: the queueing core's `XMOV_L1_BASE_ADDR`.
    base: u32,
    /// The core's instruction that has queued it.
    by: Option<Issuer>,
}

/// Who asked for a copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asker {
    /// An instruction of the coprocessor.
    Insn(Attempt, Origin),
    /// A command, queued by a core.
    Command(Option<Issuer>),
}

impl Asker {
    /// Who asked; the debug bus stands for nobody.
    fn origin(self) -> Origin {
        match self {
            Self::Insn(_, origin) => origin,
            Self::Command(Some(by)) => Origin::own(by, 0),
            Self::Command(None) => Origin::DEBUG_BUS,
        }
    }

    /// A fault of the copy, with the core and the instruction that it goes back to.
    fn caused(self, fault: Fault) -> Fault {
        match self {
            Self::Insn(at, origin) => at.caused(fault.of_push(origin)),
            Self::Command(Some(by)) => fault.at_core(by.core, by.pc),
            Self::Command(None) => fault,
        }
    }
}

/// A copy in flight.
#[derive(Clone, Copy, Debug)]
struct Job {
    dst: u32,
    src: u32,
    len: u32,
    mode: u32,
    done: Cycle,
    by: Asker,
}

/// The mover.
#[derive(Clone, Debug, Default)]
pub(super) struct Mover {
    job: Option<Job>,
    queue: VecDeque<Command>,
    /// Commands with parameters that have not been taken from the queue.
    with_params: usize,
    bugs: Bugs,
}

impl Mover {
    /// Which documented bugs TDMA-RISC has.
    pub(super) fn set_bugs(&mut self, bugs: Bugs) {
        self.bugs = bugs;
    }

    /// Something is being copied.
    pub(super) fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    /// The copy in flight is aborted.
    pub(super) fn abort(&mut self) {
        self.job = None;
    }

    /// The queued commands are lost.
    pub(super) fn clear_queue(&mut self) {
        self.queue.clear();
        self.with_params = 0;
    }

    /// The low 16 bits of `RISCV_TDMA_REG_STATUS`.
    pub(super) fn status(&self) -> u32 {
        let bit = |on: bool, i: u32| u32::from(on) << i;
        bit(self.is_busy(), 0)
            | bit(self.queue.len() == QUEUE, 2)
            | bit(self.queue.is_empty(), 3)
            | bit(self.with_params == CREDITS, 4)
            | bit(self.with_params == 0, 5)
            | ((QUEUE - self.queue.len()) as u32) << 8
    }

    /// Queues a command. `Ok(false)`: no room.
    pub(super) fn enqueue(&mut self, word: u32, params: [u32; 4], base: u32) -> Result<bool, Refusal> {
        if self.queue.len() >= QUEUE {
            return Ok(false);
        }
        if word >> 31 == 0 {
            if self.with_params >= CREDITS && !self.bugs.has(Bug::TdmaParameters) {
                return Ok(false);
            }
            if self.with_params >= CREDITS {
                let what = "a third TDMA command with parameters while two are queued";
                return Err((FaultClass::UndefinedBehavior, what));
            }
            self.with_params += 1;
        }
        self.queue.push_back(Command { word, params, base, by: None });
        Ok(true)
    }

    /// Names the core's instruction that has queued the last command.
    pub(super) fn queued_by(&mut self, by: Issuer) {
        if let Some(command) = self.queue.back_mut() {
            command.by = Some(by);
        }
    }
}

/// Cycles that a copy of `len` bytes takes: eight 16-byte blocks every eleven cycles when it reads
/// L1, else one a cycle; more when another client uses the ports.
fn duration(len: u32, mode: u32, is_contended: bool) -> Cycle {
    let blocks = Cycle::from(len / 16);
    let busy = match (mode, is_contended) {
        (1 | 3, false) => (blocks * timing::MOVER_COPY.cycles).div_ceil(timing::MOVER_COPY.bytes),
        (1 | 3, true) => blocks * timing::MOVER_COPY_CONTENDED,
        (0, true) => blocks * timing::MOVER_CLEAR_CONTENDED,
        _ => blocks,
    };
    timing::MOVER_START + busy
}

impl Coprocessor {
    /// Starts a copy; the mover is free. In soft reset it discards it.
    pub(super) fn start_move(&mut self, now: Cycle, dst: u32, src: u32, len: u32, mode: u32, by: Asker) {
        if self.held & reset::MOVER != 0 {
            return;
        }
        let done = now + duration(len, mode, self.units.packer > now);
        self.mover.job = Some(Job { dst, src, len, mode, done, by });
        self.schedule_mover(done);
    }

    /// One cycle of mover and command processor; returns when to look again.
    #[inline(never)]
    pub(super) fn step_mover(&mut self, now: Cycle, outside: &mut impl Outside) -> Result<Cycle, Hold> {
        if let Some(job) = self.mover.job
            && job.done <= now
        {
            self.finish(now, job, outside)?;
        }
        let took = self.take_command(now, outside)?;
        if took {
            self.unblock(now + 1);
        }
        let done = self.mover.job.map_or(NEVER, |job| job.done);
        Ok(if took && !self.mover.queue.is_empty() { now + 1 } else { done })
    }

    fn finish(&mut self, now: Cycle, job: Job, outside: &mut impl Outside) -> Result<(), Hold> {
        let blame = |fault: Fault| Hold::Fault(job.by.caused(fault.at_cycle(now)));
        let undefined = |what| blame(Fault::new(FaultClass::UndefinedBehavior, what, READ));
        let Job { dst, src, len, mode, .. } = job;
        let in_l1 = |addr: u32| u64::from(addr) + u64::from(len) <= u64::from(map::L1_SIZE);
        let (reads, to_l1) = (mode & 1 != 0, mode == 0 || mode == 3);
        if reads && !in_l1(src) || to_l1 && !in_l1(dst) {
            return Err(undefined("the mover copies from or to outside L1"));
        }
        outside.acting(now, Unit::Mover, &job.by.origin());
        // Whoever polls the status, or the destination, must have looked before.
        if outside.must_wake(map::TDMA_BASE, 4) || to_l1 && len > 0 && outside.must_wake(dst, len) {
            return Err(Hold::Wake);
        }
        match (to_l1, reads) {
            (true, true) => outside.copy_l1(dst, src, len),
            (true, false) => outside.zero_l1(dst, len),
            (false, _) => {
                if dst % TARGET_BYTES + len > TARGET_BYTES {
                    return Err(undefined("the mover runs past the end of its target"));
                }
                match dst / TARGET_BYTES {
                    TARGET_CONFIG => self.move_to_config(job, outside).map_err(|(class, what)| {
                        blame(Fault::new(class, format!("the mover at {dst:#x} of the configuration: {what}"), READ))
                    })?,
                    TARGET_IRAM => {
                        let what = "the mover writes NCRISC's instruction RAM, which only Wormhole has";
                        return Err(blame(Fault::new(FaultClass::MissingSpecification, what, READ)));
                    }
                    // Nowhere: the writes are discarded.
                    _ => {}
                }
            }
        }
        self.mover.job = None;
        (0..THREADS).for_each(|thread| self.wake_retry(thread, now));
        self.notify_all(now);
        Ok(())
    }

    fn move_to_config(&mut self, job: Job, outside: &mut impl Outside) -> Result<(), Refusal> {
        if job.mode & 1 != 0 {
            outside.has_read(job.src, job.len);
        }
        for offset in (0..job.len).step_by(4) {
            let at = (job.src + offset) as usize;
            let value = match job.mode & 1 {
                0 => 0,
                _ => outside.l1()[at..at + 4].iter().rev().fold(0, |v, &b| v << 8 | u32::from(b)),
            };
            self.config.store((job.dst + offset) / 4, value)?;
        }
        Ok(())
    }

    /// Executes the first command of the queue. Whether it was taken.
    fn take_command(&mut self, now: Cycle, outside: &mut impl Outside) -> Result<bool, Hold> {
        let Some(&Command { word, params, base, by }) = self.mover.queue.front() else { return Ok(false) };
        let compact = word >> 31 != 0;
        let undefined = |what: String| {
            let read = "WormholeB0/TensixTile/TDMA-RISC.md";
            let fault = Fault::new(FaultClass::UndefinedBehavior, what, read).at_addr(u64::from(map::TDMA_BASE + 0x10));
            Hold::Fault(Asker::Command(by).caused(fault.at_cycle(now)))
        };
        match word & 0xFF {
            COPY | WAIT if self.mover.is_busy() => return Ok(false),
            WRITE if compact || word & 0x600 != 0x600 => {
                return Err(undefined(format!("the TDMA command {word:#010x}, whose form does not exist")));
            }
            WRITE => {
                let len = if word & 0x100 != 0 { 8 } else { 4 };
                let addr = params[0];
                if u64::from(addr) + u64::from(len) > u64::from(map::L1_SIZE) {
                    return Err(undefined(format!("a TDMA write to {addr:#x}, outside L1")));
                }
                if outside.must_wake(map::TDMA_BASE, 4) || outside.must_wake(addr, len) {
                    return Err(Hold::Wake);
                }
                outside.acting(now, Unit::Mover, &Asker::Command(by).origin());
                let data = u64::from(params[3]) << 32 | u64::from(params[2]);
                outside.write_l1(addr, &data.to_le_bytes()[..len as usize]);
                (0..THREADS).for_each(|thread| self.wake_retry(thread, now));
            }
            COPY | WAIT | NOTHING => {
                if outside.must_wake(map::TDMA_BASE, 4) {
                    return Err(Hold::Wake);
                }
            }
            _ => return Err(undefined(format!("the TDMA command {word:#010x}, which does not exist"))),
        }
        if word & 0xFF == COPY {
            let [src, dst, count, mode] = match compact {
                true => [
                    base.wrapping_add(word >> 8 & 0xFF),
                    word >> 16 & 0xFF,
                    word >> 24 & 0x3F,
                    if word >> 30 & 1 != 0 { 3 } else { 1 },
                ],
                false => [params[0], params[1], params[2] & 0xFFFF, params[3] & 3],
            };
            self.start_move(now, dst << 4, src << 4, count << 4, mode, Asker::Command(by));
        }
        self.mover.queue.pop_front();
        self.mover.with_params -= usize::from(!compact);
        Ok(true)
    }
}
