//! The unpackers: from L1 to SrcA (unpacker 0), SrcB (unpacker 1) and Dst (unpacker 0).
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/Unpackers/README.md and the pages of `UNPACR`
//! and `UNPACR_NOP` (Blackhole's refer to them); `UNPACR_NOP` is encoded as the public
//! `assembly.yaml` of Blackhole says.
//!
//! An instruction works out its addresses when it starts (`plan`) and waits with its unpacker,
//! in order, until its bank of SrcA or SrcB is the unpackers'. Then its data move, all at once, and
//! it occupies the unpacker for as long as fetching them takes. When that is over the bank changes
//! hands. Nobody else looks at the bank before.

mod fields;
mod format;
mod moves;
#[cfg(test)]
mod moves_tests;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use super::attempt::Attempt;
use super::border::{Hold, Outside};
use super::config::Refusal;
use super::coprocessor::{Coprocessor, Issue, THREADS};
use super::number::{src_of_bf16, src_of_fp16};
use super::origin::Origin;
use super::src::{ROWS, Src};
use crate::probe::{Spans, Unit, What};
use crate::{Cycle, FaultClass, NEVER, timing};
use moves::Registers;
use plan::{At, Context, Plan, Setups};
use std::collections::VecDeque;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Insn, UnpackerOp, Unpacr, UnpacrNop};

/// Unpackers.
pub(super) const UNPACKERS: usize = 2;
/// Bits of `SrcRow`.
const SRC_ROW: u32 = 0x3F;
/// All bits of a datum of SrcA or SrcB: what stands for minus infinity (UNPACR_NOP_ZEROSRC.md).
const MINUS_INFINITY: u32 = (1 << 19) - 1;

/// Operations of `UNPACR_NOP`, and clear values of the second (`assembly.yaml`).
const POP: u32 = 0;
const CLEAR: u32 = 1;
const NOTHING: u32 = 2;
const CLEAR_TO: [&str; 4] = ["zero", "minus infinity", "one", "UNP_NOP_REG_CLR_VAL"];
/// The word of `UNPACR_NOP` that only gives a bank away, less opcode and unpacker
/// (UNPACR_NOP_SETDVALID.md).
const SET_DVALID: u32 = 7;

/// What an instruction does when its turn has come.
#[derive(Clone, Debug)]
enum Work {
    /// Moves data.
    Move(Plan),
    /// Fills the unpacker's bank. It waits for the bank that the unpacker uses (`own`), or for the
    /// one that the matrix unit uses.
    Fill { datum: u32, own: bool },
    /// Occupies the unpacker.
    Nothing,
}

/// An instruction in an unpacker's pipeline.
#[derive(Clone, Debug)]
struct Job {
    at: Attempt,
    origin: Origin,
    /// It starts in this cycle at the earliest.
    from: Cycle,
    work: Work,
    /// The bank then becomes the matrix unit's, with data that imply this format.
    gives: Option<u32>,
}

/// One unpacker.
#[derive(Clone, Debug, Default)]
struct Unpacker {
    /// By thread: `ContextCounter` and `SrcRow`.
    counters: [u32; THREADS],
    src_rows: [u32; THREADS],
    jobs: VecDeque<Job>,
    /// The first job is moving data until then.
    until: Option<Cycle>,
    /// How many words of L1 a cycle that job wants; 0: it fetches nothing.
    wants: u32,
}

/// Both unpackers.
#[derive(Clone, Debug, Default)]
pub(super) struct Unpackers {
    units: [Unpacker; UNPACKERS],
    /// The next `UNPACR` can start then.
    next: Cycle,
    setups: Setups,
}

/// How many words of L1 a cycle unpackers 0 and 1 get, if both want some: the table in
/// UNPACR_Regular.md, "Performance".
fn speeds(wants: [u32; 2]) -> [u32; 2] {
    match wants {
        [2, 2] => [1, 1],
        [4, 2] => [2, 1],
        [2, 4] => [1, 2],
        [4, 4] => [2, 2],
        other => other,
    }
}

impl Unpackers {
    /// Whether an instruction of `thread` is in the pipeline of unpacker `unit`.
    pub(super) fn holds(&self, unit: usize, thread: usize) -> bool {
        self.units[unit].jobs.iter().any(|job| job.at.thread == thread)
    }

    /// Whether an instruction waits in the pipeline of unpacker `unit`.
    pub(super) fn waits(&self, unit: usize) -> bool {
        let unit = &self.units[unit];
        unit.until.is_none() && !unit.jobs.is_empty()
    }

    /// The unpacker in which the first instruction of `thread` waits for its bank, with the
    /// instruction and where that comes from.
    pub(super) fn stuck(&self, thread: usize) -> Option<(usize, Insn, Origin)> {
        let first = |unit: usize| self.units[unit].jobs.iter().find(|job| job.at.thread == thread);
        let mut waiting = (0..UNPACKERS).filter(|&unit| self.waits(unit));
        waiting.find_map(|unit| first(unit).map(|job| (unit, job.at.insn(), job.origin)))
    }

    /// `SrcRow` of unpacker `unit` for `thread`.
    pub(super) fn src_row(&self, unit: usize, thread: usize) -> u32 {
        self.units[unit].src_rows[thread]
    }

    /// `SETC16` has written `UNPACK_MISC_CFG` of `thread` (BackendConfiguration.md, "Special
    /// cases").
    pub(super) fn reset_counters(&mut self, thread: usize) {
        self.units.iter_mut().for_each(|unit| unit.counters[thread] = 0);
    }

    /// Unpacker soft reset: what is in flight is aborted.
    pub(super) fn abort(&mut self) {
        for unit in &mut self.units {
            unit.jobs.clear();
            unit.until = None;
        }
    }

    /// The duration of a plan that starts in unpacker `unit` at cycle `now`. What the other one
    /// fetches at that time decides (the page; what changes on the way is left out).
    fn duration(&self, unit: usize, plan: &Plan) -> Cycle {
        let other = &self.units[1 - unit];
        if other.until.is_none() || other.wants == 0 {
            return plan.duration(plan.wants);
        }
        let mut wants = [other.wants; 2];
        wants[unit] = plan.wants;
        plan.duration(speeds(wants)[unit])
    }
}

impl Coprocessor {
    /// `UNPACR` and `UNPACR_NOP` at the wait gate.
    #[inline(never)]
    pub(super) fn issue_unpacker(
        &mut self,
        at: Attempt,
        insn: UnpackerOp,
        outside: &mut impl Outside,
    ) -> Result<Issue, Hold> {
        match insn {
            UnpackerOp::Unpacr(insn) => self.issue_unpacr(at, insn, outside),
            UnpackerOp::UnpacrNop(insn) => {
                let unit = insn.which_unpacker() as usize;
                if self.unpackers.units[unit].jobs.len() >= timing::UNPACKER_IN_FLIGHT {
                    return Ok(Issue::not_before(NEVER));
                }
                let (work, gives) = self.nop(at, insn).map_err(|refusal| at.refused(refusal))?;
                if gives.is_some() {
                    self.unpackers.units[unit].src_rows[at.thread] = self.src_row_base(at.thread, unit);
                }
                let from = at.now + timing::TENSIX_UNIT;
                self.enqueue(unit, Job { at, origin: *self.origin(at), from, work, gives });
                self.occupy(at.thread, from);
                Ok(Issue::PASSED)
            }
        }
    }

    fn issue_unpacr(&mut self, at: Attempt, insn: Unpacr, outside: &mut impl Outside) -> Result<Issue, Hold> {
        let unit = insn.which_unpacker() as usize;
        let refused = |refusal: Refusal| at.refused(refusal);
        if insn.cfg_context_cnt_inc() != 0 || insn.search_cache_flush() {
            // The cache is not modelled.
            match (insn.cfg_context_cnt_inc(), insn.search_cache_flush()) {
                (0, true) => {}
                (1, false) => {
                    let context = self.unpackers.units[unit].counters[at.thread];
                    self.count_context(at.thread, unit, context);
                }
                _ => return Err(at.undefined("forms that exclude each other")),
            }
            self.occupy(at.thread, at.now + timing::TENSIX_UNIT);
            return Ok(Issue::PASSED);
        }
        if self.unpackers.next > at.now {
            return Ok(Issue::not_before(self.unpackers.next));
        }
        if self.unpackers.units[unit].jobs.len() >= timing::UNPACKER_IN_FLIGHT {
            return Ok(Issue::not_before(NEVER));
        }
        let state = &self.unpackers.units[unit];
        let around = At {
            config: &self.config,
            adcs: &self.adcs,
            l1: outside.l1(),
            thread: at.thread,
            counter: state.counters[at.thread],
            src_row: state.src_rows[at.thread],
        };
        let context = Context::of(insn, &around).map_err(refused)?;
        let setup = self.unpackers.setups.get(&self.config, (at.thread, unit), context).map_err(refused)?;
        let plan = Plan::new(insn, context, setup, &around).map_err(refused)?;
        if insn.multi_context_mode() && insn.use_context_counter() {
            self.count_context(at.thread, unit, context.index);
        }
        for thread in (0..THREADS).filter(|&thread| thread == at.thread || thread == context.adc) {
            self.adcs.increment_yz(thread, unit, 0, [insn.ch0_y_inc(), insn.ch0_z_inc()]);
            self.adcs.increment_yz(thread, unit, 1, [insn.ch1_y_inc(), insn.ch1_z_inc()]);
        }
        if let Some(executed) = &mut self.executed {
            executed.settings = Some(plan.settings());
        }
        let gives = insn.flip_src().then_some(plan.format);
        self.advance_src_row(at.thread, unit, insn.flip_src());
        // The address generator is both unpackers'; the thread waits for it, too.
        let from = at.now + timing::UNPACR_ADDRESS;
        self.unpackers.next = from;
        self.threads[at.thread].ready = from;
        self.enqueue(unit, Job { at, origin: *self.origin(at), from, work: Work::Move(plan), gives });
        self.occupy(at.thread, from);
        Ok(Issue::PASSED)
    }

    /// The context counter behind `context`.
    fn count_context(&mut self, thread: usize, unit: usize, context: u32) {
        let read = |field: cfg::Field| self.config.read(thread, field.copy(unit));
        // The second form is Blackhole's (tt-llk's hal/cfg/thcon.h).
        let contexts = match read(cfg::THCON_SEC_REG2_CONTEXT_COUNT_NON_LOG2_EN) {
            0 => 1 << read(cfg::THCON_SEC_REG2_CONTEXT_COUNT),
            _ => read(cfg::THCON_SEC_REG2_CONTEXT_COUNT_NON_LOG2),
        };
        let next = (context + 1) & 7;
        self.unpackers.units[unit].counters[thread] = if next >= contexts { 0 } else { next };
    }

    /// `SETDVALID`: the next data of the chosen unpackers go to the first rows of a bank.
    pub(super) fn start_src_rows(&mut self, thread: usize, chosen: u32) {
        for unit in (0..UNPACKERS).filter(|unit| chosen >> unit & 1 != 0) {
            self.unpackers.units[unit].src_rows[thread] = self.src_row_base(thread, unit);
        }
    }

    fn src_row_base(&self, thread: usize, unit: usize) -> u32 {
        self.config.read(thread, [cfg::SRCA_SET_BASE, cfg::SRCB_SET_BASE][unit]) << 4
    }

    fn advance_src_row(&mut self, thread: usize, unit: usize, flip: bool) {
        let base = self.src_row_base(thread, unit);
        let row = &mut self.unpackers.units[unit].src_rows[thread];
        if flip {
            *row = base;
        } else if self.config.is_set(thread, cfg::THCON_SEC_REG2_UNPACK_SRC_REG_SET_UPD.copy(unit)) {
            *row = (*row + 16 + base) & SRC_ROW;
        }
    }

    /// What an `UNPACR_NOP` does, and the format with which it gives the bank to the matrix unit.
    fn nop(&self, at: Attempt, insn: UnpacrNop) -> Result<(Work, Option<u32>), Refusal> {
        let unit = insn.which_unpacker() as usize;
        let format = || self.config.read(at.thread, cfg::THCON_SEC_REG2_OUT_DATA_FORMAT.copy(unit));
        let unsupported = |what| Err((FaultClass::UnsupportedFunctionality, what));
        match insn.unpack_pop() {
            _ if insn.word() & 0x7F_FFFF == SET_DVALID => Ok((Work::Nothing, Some(format()))),
            CLEAR if insn.clr_to1_fmt_ctrl() == 3 => Ok((Work::Nothing, Some(format()))),
            CLEAR if insn.bank_clr_ctrl() => unsupported("clears both banks, one of which may be in use"),
            CLEAR => {
                let datum = match (insn.src_clr_val_ctrl(), insn.clr_to1_fmt_ctrl()) {
                    (0, _) => 0,
                    (1, _) => MINUS_INFINITY,
                    (2, 0) => src_of_fp16(0x3C00),
                    (2, 1) => src_of_bf16(0x3F80),
                    // An integer over FP16 has 16 as its exponent (SrcASrcB.md).
                    (2, _) => src_of_fp16(16 << 10 | 1),
                    (value, _) => {
                        let what = CLEAR_TO[value as usize];
                        debug_assert!(value == 3);
                        return Err((FaultClass::MissingSpecification, what));
                    }
                };
                let work = Work::Fill { datum, own: insn.stall_clr_cntrl() };
                Ok((work, insn.set_dvalid().then(format)))
            }
            NOTHING => Ok((Work::Nothing, None)),
            POP => unsupported("frees buffers of the overlay"),
            _ if insn.enhanced() => unsupported("writes a register"),
            _ => unsupported("frees buffers of a stream"),
        }
    }

    fn enqueue(&mut self, unit: usize, job: Job) {
        let from = job.from;
        self.unpackers.units[unit].jobs.push_back(job);
        self.schedule_unpacker(unit, from);
    }

    /// One cycle of an unpacker; returns when to look again.
    #[inline(never)]
    pub(super) fn step_unpacker(&mut self, unit: usize, now: Cycle, outside: &mut impl Outside) -> Result<Cycle, Hold> {
        loop {
            match self.unpackers.units[unit].until {
                Some(until) if until > now => return Ok(until),
                Some(_) => self.finish_job(unit, now, outside),
                None => {
                    let from = self.unpackers.units[unit].jobs.front().map_or(NEVER, |job| job.from);
                    if from > now {
                        return Ok(from);
                    }
                    if !self.start_job(unit, now, outside)? {
                        return Ok(NEVER);
                    }
                }
            }
        }
    }

    /// Starts the first job, if its bank is the unpackers'.
    fn start_job(&mut self, unit: usize, now: Cycle, outside: &mut impl Outside) -> Result<bool, Hold> {
        let Self { unpackers, src, dst, .. } = self;
        let Some(job) = unpackers.units[unit].jobs.front() else { return Ok(false) };
        let bank = &mut src.0[unit];
        let (busy, wants) = match &job.work {
            Work::Move(plan) => {
                if plan.input.count > 0 && !bank.unpacker_may_write() {
                    return Ok(false);
                }
                let busy = unpackers.duration(unit, plan);
                let mut registers = Registers { src, dst, last: now + busy - 1 };
                let moved = moves::execute(plan, outside.l1(), &mut registers);
                moved.map_err(|refusal| job.at.refused(refusal).of_push(job.origin))?;
                let at = job.at;
                if outside.is_watched() {
                    let starts = What::Starts { thread: at.thread as u8, passed: at.now };
                    outside.watched(now, Unit::Unpacker(unit as u8), job.origin, starts);
                }
                tell_reads(plan, unit, now, &job.origin, outside);
                (busy, plan.wants)
            }
            Work::Fill { datum, own } => {
                if !may_fill(bank, *own) {
                    return Ok(false);
                }
                bank.unpacked_mut()[..ROWS].fill([*datum; 16]);
                (timing::TENSIX_UNIT, 0)
            }
            Work::Nothing => (timing::TENSIX_UNIT, 0),
        };
        outside.works(Unit::Unpacker(unit as u8), job.at.thread, now, now + busy);
        let (thread, origin) = (job.at.thread, job.origin);
        let unpacker = &mut unpackers.units[unit];
        (unpacker.until, unpacker.wants) = (Some(now + busy), wants);
        if outside.is_watched() {
            self.tell_dst(Unit::Unpacker(unit as u8), thread, now, origin, outside);
        }
        Ok(true)
    }

    /// The first job is done: its bank changes hands.
    fn finish_job(&mut self, unit: usize, now: Cycle, outside: &mut impl Outside) {
        let unpacker = &mut self.unpackers.units[unit];
        unpacker.until = None;
        let Some(job) = unpacker.jobs.pop_front() else { return };
        if outside.is_watched() {
            let ends = What::Ends { passed: job.at.now, gives: job.gives.is_some() };
            outside.watched(now, Unit::Unpacker(unit as u8), job.origin, ends);
        }
        if let Some(format) = job.gives {
            let bank = &mut self.src.0[unit];
            bank.imply_format(format);
            bank.give_to_matrix();
        }
        self.notify_of_unpacker(now);
        // A core may wait until nothing of the thread is in flight.
        self.unblock(now + 1);
    }
}

/// Tells those who observe what an unpacker has read.
#[inline]
fn tell_reads(plan: &Plan, unit: usize, now: Cycle, origin: &Origin, outside: &mut impl Outside) {
    if plan.zero || !outside.is_observed() {
        return;
    }
    outside.acting(now, Unit::Unpacker(unit as u8), origin);
    let mut last: Option<Spans> = None;
    for (addr, len) in plan.input.spans() {
        if !last.as_mut().is_some_and(|spans| spans.take(addr, len))
            && let Some(spans) = last.replace(Spans::one(addr, len))
        {
            outside.has_read_spans(spans);
        }
    }
    last.into_iter().for_each(|spans| outside.has_read_spans(spans));
}

/// Whether a bank can be filled: the one that the unpacker uses is its `own`, or the one that the
/// matrix unit uses is the unpackers' (UNPACR_NOP_ZEROSRC.md).
fn may_fill(src: &Src, own: bool) -> bool {
    if own { src.unpacker_may_write() } else { !src.matrix_may_read() }
}
