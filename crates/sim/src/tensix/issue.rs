//! Issue: instructions enter the sync, configuration, miscellaneous, matrix and vector units and
//! the mover. The scalar unit is in `scalar.rs`, the unpackers are in `unpack`.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{SyncUnit,ConfigurationUnit}.md,
//! WormholeB0/TensixTile/TensixCoprocessor/MiscellaneousUnit.md and the instructions' pages.
//!
//! The units are not inlined into the loop of steps, but the vector unit is, whose instructions
//! come one after the other: with all of them there the compiler computes for every step what any
//! of them may need, and a call for each vector instruction costs more (5 % of the library's
//! instructions in a run of ttnn's softmax, its start included).

use super::attempt::{Attempt, of_thread};
use super::border::{Hold, Outside};
use super::config::{Config, Refusal, XMOV};
use super::coprocessor::{Coprocessor, GPRS, Issue};
use super::matrix::Operands;
use super::mover::Asker;
use super::pack;
use super::random::Owner;
use super::reset::InReset;
use super::step_queue;
use super::sync;
use super::vector;
use crate::{Cycle, Fault, NEVER, probe, timing};
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{self, MiscOp, Streamwrcfg, Unit};
use tilework_abi::{stream, tensix as map};

/// Any address among the semaphores that cores see.
pub(super) const SEMAPHORE_ADDR: u32 = map::PC_BUF_BASE + map::pc_buf::SEMAPHORE;

/// What executes each opcode, as the rows say. It is asked for each push and for each instruction
/// at a wait gate; the rows themselves would be as many lines of the host's cache as there are
/// instructions.
static UNITS: [Option<Unit>; 1 << u8::BITS] = {
    let mut units = [None; 1 << u8::BITS];
    let mut unit = 0;
    while unit < Unit::ALL.len() {
        let rows = Unit::ALL[unit].rows();
        let mut i = 0;
        while i < rows.len() {
            units[rows[i].opcode as usize] = Some(Unit::ALL[unit]);
            i += 1;
        }
        unit += 1;
    }
    units
};

/// [`insn::unit_of`]: what executes an instruction word; `None`: its opcode, the highest byte, does
/// not exist.
#[inline]
pub(super) fn unit_of(word: u32) -> Option<Unit> {
    UNITS[usize::from(word.to_be_bytes()[0])]
}

impl Coprocessor {
    /// Lets the instruction at the wait gate pass, if its unit takes it now.
    pub(super) fn issue(&mut self, at: Attempt, outside: &mut impl Outside) -> Result<Issue, Hold> {
        match self.in_reset(at.word) {
            Some(InReset::Discards) => return Ok(self.passed(at, timing::TENSIX_UNIT)),
            Some(InReset::Waits) => return Ok(Issue::not_before(NEVER)),
            None => {}
        }
        // Each unit decodes for itself: an `Insn` would be put together here only to be taken apart
        // again, and this is done for every instruction.
        let word = at.word;
        let Some(unit) = unit_of(word) else { return Err(at.no_instruction()) };
        match unit {
            Unit::Misc => insn::MiscOp::decode(word).map(|insn| Ok(self.issue_misc(at, insn))),
            Unit::Wait => insn::WaitOp::decode(word).map(|insn| self.issue_wait(at, insn)),
            Unit::Sync => insn::SyncOp::decode(word).map(|insn| self.issue_sync(at, insn, outside)),
            Unit::Config => insn::ConfigOp::decode(word).map(|insn| self.issue_config(at, insn, outside)),
            Unit::Scalar => insn::ScalarOp::decode(word).map(|insn| self.issue_scalar(at, insn, outside)),
            Unit::Mover => insn::MoverOp::decode(word).map(|insn::MoverOp::Xmov(_)| self.issue_mover(at)),
            Unit::Matrix => insn::MatrixOp::decode(word).map(|insn| self.issue_matrix(at, insn)),
            Unit::Vector => {
                let looked = self.vector.look(word, at.now, &self.config);
                looked.map(|looked| self.issue_vector(at, &looked))
            }
            Unit::Packer => insn::PackerOp::decode(word).map(|insn| match insn {
                insn::PackerOp::Pacr(insn) => self.issue_pack(at, insn, outside),
                insn::PackerOp::PacrSetreg(insn) => self.issue_set_register(at, insn, outside),
            }),
            Unit::Unpacker => insn::UnpackerOp::decode(word).map(|insn| self.issue_unpacker(at, insn, outside)),
            Unit::FrontEnd => insn::FrontEndOp::decode(word).map(|_| Err(at.no_instruction())),
        }
        .unwrap_or_else(|| match self.free_at(unit) {
            free if free > at.now => Ok(Issue::not_before(free)),
            _ => Err(at.not_built()),
        })
    }

    /// Something of `thread` is in flight until `until`.
    pub(super) fn occupy(&mut self, thread: usize, until: Cycle) {
        let any = &mut self.threads[thread].busy.any;
        *any = until.max(*any);
    }

    /// The instruction has passed and is in flight for `latency` cycles.
    fn passed(&mut self, at: Attempt, latency: Cycle) -> Issue {
        self.occupy(at.thread, at.now + latency);
        Issue::PASSED
    }

    /// When the matrix or vector unit takes the next instruction; other units need not be asked.
    fn free_at(&self, unit: Unit) -> Cycle {
        match unit {
            Unit::Matrix => self.units.matrix,
            Unit::Vector => self.units.vector,
            _ => 0,
        }
    }

    #[inline(never)]
    fn issue_matrix(&mut self, at: Attempt, insn: insn::MatrixOp) -> Result<Issue, Hold> {
        let free = self.units.matrix;
        if free > at.now {
            return Ok(Issue::not_before(free));
        }
        if let Some(seed) = self.config.take_seed(Owner::Matrix) {
            self.matrix.seed(seed);
        }
        let Self { config, src, dst, matrix, vector, executed, .. } = self;
        let blocked = vector.blocked_columns();
        let mut on = Operands { config, thread: at.thread, src, dst, blocked };
        let needs = matrix.needs(&on, insn);
        let start = matrix.start(&needs, &on);
        if start > at.now {
            return Ok(Issue::not_before(start));
        }
        if let Some(executed) = executed {
            executed.settings = Some(matrix.settings(&on));
        }
        let handed_over = matrix.execute(&mut on, insn).map_err(|refusal| at.refused(refusal))?;
        matrix.started(&needs, &mut on, at.now);
        if let insn::MatrixOp::Clrexphist(_) = insn {
            self.packer.clear_histogram();
        }
        self.units.matrix = at.now + needs.interval;
        let busy = &mut self.threads[at.thread].busy.matrix;
        *busy = (*busy).max(at.now + needs.latency);
        if handed_over {
            self.notify_others(at.thread, at.now);
        }
        Ok(self.passed(at, needs.latency))
    }

    #[inline(never)]
    fn issue_pack(&mut self, at: Attempt, insn: insn::Pacr, outside: &mut impl Outside) -> Result<Issue, Hold> {
        outside.acting(at.now, probe::Unit::Packer, self.origin(at));
        if self.units.packer > at.now {
            return Ok(Issue::not_before(self.units.packer));
        }
        if let Some(seed) = self.config.take_seed(Owner::Packer) {
            self.packer.seed(seed);
        }
        let Self { config, adcs, dst, packer, pack_plans: plans, .. } = self;
        let mut on = pack::Work { config, thread: at.thread, plans, adcs, dst, now: at.now };
        let cycles = match packer.pack(&mut on, insn, outside) {
            Ok(cycles) => cycles,
            Err(pack::Stop::NotBefore(ready)) => return Ok(Issue::not_before(ready)),
            Err(pack::Stop::Wake) => return Err(Hold::Wake),
            Err(pack::Stop::Refused(refusal)) => return Err(at.refused(refusal)),
        };
        if let Some(executed) = &mut self.executed {
            executed.settings = Some(pack::settings(&self.config, at.thread));
        }
        self.units.packer = at.now + cycles;
        let latency = cycles + timing::TENSIX_PACK;
        self.threads[at.thread].busy.packer = at.now + latency;
        for other in (0..self.threads.len()).filter(|&thread| thread != at.thread) {
            self.wake_retry(other, at.now + 1);
        }
        Ok(self.passed(at, latency))
    }

    /// All `PACR`s before have taken effect when the packer is free.
    #[inline(never)]
    fn issue_set_register(
        &mut self,
        at: Attempt,
        insn: insn::PacrSetreg,
        outside: &mut impl Outside,
    ) -> Result<Issue, Hold> {
        if self.units.packer > at.now {
            return Ok(Issue::not_before(self.units.packer));
        }
        outside.acting(at.now, probe::Unit::Packer, self.origin(at));
        self.packer.set_register(at, insn, outside)?;
        self.units.packer = at.now + timing::TENSIX_UNIT;
        self.threads[at.thread].busy.packer = at.now + timing::TENSIX_PACK;
        // A wait gate may look at what was written, and an atomic at L1.
        self.notify_others(at.thread, at.now);
        for other in (0..self.threads.len()).filter(|&thread| thread != at.thread) {
            self.wake_retry(other, at.now + 1);
        }
        Ok(self.passed(at, timing::TENSIX_PACK))
    }

    fn issue_vector(&mut self, at: Attempt, looked: &vector::Looked) -> Result<Issue, Hold> {
        let free = self.units.vector.max(looked.accepts);
        if free > at.now {
            return Ok(Issue::not_before(free));
        }
        if let Some(seed) = self.config.take_seed(Owner::Vector) {
            self.vector.seed(seed);
        }
        let Self { config, dst, matrix, vector, .. } = self;
        let rwc = &mut matrix.rwcs[at.thread];
        let mut on = vector::Operands { config, thread: at.thread, dst, rwc, now: at.now };
        let latency = vector.issue(&mut on, looked).map_err(|refusal| at.refused(refusal))?;
        if insn::Sfploadmacro::is(at.word) {
            self.macro_origin = *self.origin(at);
        }
        self.units.vector = at.now + 1;
        let (mut until, mut next) = (at.now + latency, NEVER);
        if self.vector.has_scheduled() {
            until = until.max(self.vector.scheduled_until(at.now));
            next = self.vector.next_scheduled(at.now);
        }
        self.threads[at.thread].busy.vector = until;
        self.steps.set(step_queue::VECTOR, next);
        Ok(self.passed(at, until - at.now))
    }

    /// Executes what `SFPLOADMACRO` has scheduled for cycle `now`. Returns when more is due.
    pub(super) fn step_vector(&mut self, now: Cycle) -> Result<Cycle, Hold> {
        let (thread, origin) = (self.vector.scheduling_thread(), self.macro_origin);
        let Self { config, dst, matrix, vector, .. } = self;
        let mut on = vector::Operands { config, thread, dst, rwc: &mut matrix.rwcs[thread], now };
        vector.step_scheduled(&mut on).map_err(|(class, what)| {
            let page = "BlackholeA0/TensixTile/TensixCoprocessor/SFPLOADMACRO.md";
            let what = format!("SFPLOADMACRO of Tensix thread T{thread}, {}: {what}", Unit::Vector.name());
            of_thread(Fault::new(class, what, page).of_push(origin), thread, now)
        })?;
        let until = self.vector.scheduled_until(now).max(now + timing::TENSIX_VECTOR_MAD);
        let busy = &mut self.threads[thread].busy.vector;
        *busy = until.max(*busy);
        self.occupy(thread, until);
        Ok(self.vector.next_scheduled(now))
    }

    #[inline(never)]
    fn issue_wait(&mut self, at: Attempt, insn: insn::WaitOp) -> Result<Issue, Hold> {
        if self.units.sync > at.now {
            return Ok(Issue::not_before(self.units.sync));
        }
        self.threads[at.thread].latched = Some(self.latch(at, insn)?);
        self.units.sync = at.now + 1;
        Ok(self.passed(at, timing::TENSIX_UNIT))
    }

    #[inline(never)]
    fn issue_sync(&mut self, at: Attempt, insn: insn::SyncOp, outside: &mut impl Outside) -> Result<Issue, Hold> {
        match insn {
            insn::SyncOp::Atgetm(insn) => Ok(self.acquire_mutex(at, insn.index())),
            insn::SyncOp::Atrelm(insn) => Ok(self.release_mutex(at, insn.index())),
            insn::SyncOp::Seminit(insn) => {
                let (value, max) = (insn.new_value() as u8, insn.new_max() as u8);
                self.issue_semaphores(at, insn.semaphore_mask(), outside, |s| s.init(value, max))
            }
            insn::SyncOp::Sempost(insn) => {
                let mask = insn.semaphore_mask();
                let lost =
                    (0..self.semaphores.len()).filter(|i| mask >> i & 1 != 0 && self.semaphores[*i].loses_post());
                let lost = lost.fold(0u8, |all, i| all | 1 << i);
                let issue = self.issue_semaphores(at, mask, outside, sync::Semaphore::post)?;
                if lost != 0 && matches!(issue, Issue::PASSED) {
                    outside.lost_posts(at.now, *self.origin(at), lost);
                }
                Ok(issue)
            }
            insn::SyncOp::Semget(insn) => {
                self.issue_semaphores(at, insn.semaphore_mask(), outside, sync::Semaphore::get)
            }
        }
    }

    fn acquire_mutex(&mut self, at: Attempt, index: u32) -> Issue {
        let index = sync::mutex_index(index);
        self.threads[at.thread].mutex = index;
        match index {
            Some(index) if self.mutexes.acquire(index, at.thread) => {
                self.threads[at.thread].mutex = None;
                self.passed(at, timing::TENSIX_UNIT)
            }
            // The page: an invalid index waits for ever.
            _ => Issue::not_before(NEVER),
        }
    }

    fn release_mutex(&mut self, at: Attempt, index: u32) -> Issue {
        let Some(index) = sync::mutex_index(index) else {
            // As for an acquisition.
            self.threads[at.thread].mutex = None;
            return Issue::not_before(NEVER);
        };
        let waits = [0, 1, 2].map(|i| i != at.thread && self.threads[i].mutex == Some(index));
        self.mutexes.release(index, at.thread, waits);
        self.notify_others(at.thread, at.now);
        self.threads[at.thread].mutex = None;
        self.passed(at, timing::TENSIX_UNIT)
    }

    fn issue_semaphores(
        &mut self,
        at: Attempt,
        mask: u32,
        outside: &mut impl Outside,
        change: impl Fn(&mut sync::Semaphore),
    ) -> Result<Issue, Hold> {
        if self.units.sync > at.now {
            return Ok(Issue::not_before(self.units.sync));
        }
        if outside.must_wake(SEMAPHORE_ADDR, 4) {
            return Err(Hold::Wake);
        }
        self.semaphores.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 != 0).for_each(|(_, s)| change(s));
        self.units.sync = at.now + 1;
        self.notify_others(at.thread, at.now);
        Ok(self.passed(at, timing::TENSIX_UNIT))
    }

    #[inline(never)]
    fn issue_config(&mut self, at: Attempt, insn: insn::ConfigOp, outside: &mut impl Outside) -> Result<Issue, Hold> {
        let sets_thread = matches!(insn, insn::ConfigOp::Setc16(_));
        if !sets_thread && self.units.config > at.now {
            return Ok(Issue::not_before(self.units.config));
        }
        if outside.must_wake(map::CFG_BASE, 4) {
            return Err(Hold::Wake);
        }
        let thread = at.thread;
        let gpr = |index: u32| thread * GPRS + index as usize;
        let config = &mut self.config;
        let rmw = |config: &mut Config, byte: u32, index: u32, mask: u32, new: u32| {
            (config.modify_byte(thread, index, byte, mask as u8, new as u8), 1, 1)
        };
        // How long the instruction is in the unit, and when the unit takes the next one
        // (ConfigurationUnit.md).
        let (done, latency, interval) = match insn {
            insn::ConfigOp::Wrcfg(insn) if insn.is_128bit() => {
                let four = [0, 1, 2, 3].map(|i| self.gprs[(gpr(insn.input_reg()) & !3) + i]);
                (config.set_four(thread, insn.cfg_index(), four), 2, 1)
            }
            insn::ConfigOp::Wrcfg(insn) => {
                (config.set(thread, insn.cfg_index(), self.gprs[gpr(insn.input_reg())]), 2, 1)
            }
            insn::ConfigOp::Rdcfg(insn) => {
                let value = config.get(thread, insn.cfg_index());
                (value.map(|value| self.gprs[gpr(insn.result_reg())] = value), 2, 1)
            }
            insn::ConfigOp::Setc16(insn) => {
                if insn.cfg_index() == u32::from(cfg::UNPACK_MISC_CFG_CFGCONTEXTCNTRESET_0.word) {
                    self.unpackers.reset_counters(thread);
                }
                (config.set_thread(thread, insn.cfg_index(), insn.new_value() as u16), 1, 0)
            }
            insn::ConfigOp::Rmwcib0(insn) => rmw(config, 0, insn.index4(), insn.mask(), insn.new_value()),
            insn::ConfigOp::Rmwcib1(insn) => rmw(config, 1, insn.index4(), insn.mask(), insn.new_value()),
            insn::ConfigOp::Rmwcib2(insn) => rmw(config, 2, insn.index4(), insn.mask(), insn.new_value()),
            insn::ConfigOp::Rmwcib3(insn) => rmw(config, 3, insn.index4(), insn.mask(), insn.new_value()),
            insn::ConfigOp::Streamwrcfg(insn) => (self.set_from_stream(at, insn, outside)?, 5, 1),
            insn::ConfigOp::Cfgshiftmask(insn) => (config.shift_mask(thread, insn), 2, 2),
        };
        done.map_err(|refusal| at.refused(refusal))?;
        if outside.is_watched() {
            self.tell_config(at, insn, outside);
        }
        self.units.config = self.units.config.max(at.now + interval);
        self.units.config_busy = self.units.config_busy.max(at.now + latency);
        Ok(self.passed(at, latency))
    }

    /// Tells observers what an instruction has changed of the shared configuration.
    #[cold]
    fn tell_config(&self, at: Attempt, insn: insn::ConfigOp, outside: &mut impl Outside) {
        let byte = |byte: u32, index: u32, mask: u32| (index, 1, (mask & 0xFF) << (8 * byte));
        let (index, words, mask) = match insn {
            insn::ConfigOp::Wrcfg(insn) if insn.is_128bit() => (insn.cfg_index() & !3, 4, u32::MAX),
            insn::ConfigOp::Wrcfg(insn) => (insn.cfg_index(), 1, u32::MAX),
            insn::ConfigOp::Rmwcib0(insn) => byte(0, insn.index4(), insn.mask()),
            insn::ConfigOp::Rmwcib1(insn) => byte(1, insn.index4(), insn.mask()),
            insn::ConfigOp::Rmwcib2(insn) => byte(2, insn.index4(), insn.mask()),
            insn::ConfigOp::Rmwcib3(insn) => byte(3, insn.index4(), insn.mask()),
            insn::ConfigOp::Streamwrcfg(insn) => (insn.cfg_index(), 1, u32::MAX),
            insn::ConfigOp::Cfgshiftmask(insn) => (insn.cfg_index(), 1, u32::MAX),
            insn::ConfigOp::Rdcfg(_) | insn::ConfigOp::Setc16(_) => return,
        };
        (index..index + words).for_each(|index| self.tell_word(at, index, mask, outside));
    }

    /// Tells observers that word `index` of the thread's bank has changed.
    pub(super) fn tell_word(&self, at: Attempt, index: u32, mask: u32, outside: &mut impl Outside) {
        if let Ok(value) = self.config.get(at.thread, index) {
            let word = self.config.place_of(at.thread, index);
            let what = probe::What::Configures { thread: at.thread as u8, word, mask, value };
            outside.watched(at.now, probe::Unit::Gate, *self.origin(at), what);
        }
    }

    /// `STREAMWRCFG`.
    fn set_from_stream(
        &mut self,
        at: Attempt,
        insn: Streamwrcfg,
        outside: &mut impl Outside,
    ) -> Result<Result<(), Refusal>, Hold> {
        let stream = self.config.read(at.thread, cfg::STREAM_ID_SYNC_SEC_BANKSEL.copy(insn.stream_select() as usize));
        let addr = stream::reg_addr(stream, insn.reg_index() % stream::REGS);
        let value = outside.load(at.now, addr).map_err(|fault| at.caused(fault))?;
        Ok(self.config.set(at.thread, insn.cfg_index(), value))
    }

    /// `XMOV`.
    #[inline(never)]
    fn issue_mover(&mut self, at: Attempt) -> Result<Issue, Hold> {
        if self.mover.is_busy() {
            return Ok(Issue::not_before(NEVER));
        }
        let read = |i: u32| self.config.get(at.thread, XMOV + i).map_err(|refusal| at.refused(refusal));
        let [src, dst, size] = [read(0)?, read(1)?, read(2)?];
        self.start_move(
            at.now,
            dst << 4,
            src << 4,
            (size & 0xFFFF) << 4,
            size >> 30,
            Asker::Insn(at, *self.origin(at)),
        );
        Ok(self.passed(at, timing::TENSIX_UNIT))
    }

    #[inline(never)]
    fn issue_misc(&mut self, at: Attempt, insn: MiscOp) -> Issue {
        if !self.adcs.execute(at.thread, insn)
            && let MiscOp::Setdvalid(insn) = insn
        {
            self.src.set_valid(insn.set_valid());
            self.start_src_rows(at.thread, insn.set_valid());
            self.notify_others(at.thread, at.now);
        }
        self.passed(at, timing::TENSIX_UNIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_opcode_has_the_unit_of_its_row() {
        for word in (0..=u8::MAX).map(|opcode| u32::from_be_bytes([opcode, 1, 2, 3])) {
            assert_eq!(unit_of(word), insn::unit_of(word), "{word:#x}");
        }
    }
}
