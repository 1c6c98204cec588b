//! Steps of a tile's coprocessor, and the tile as its [`Outside`].
//!
//! The coprocessor is the last agent of each cycle.

use super::Tile;
use super::access::Reach;
use super::fabric::Fabric;
use super::watches::{COPROCESSOR, mask_out};
use crate::probe::{Agent, Passing, Spans, Unit, Wants, What};
use crate::tensix::{Hold, Issuer, Origin, Outside, Row, thread_of};
use crate::{Cycle, Fault, FaultClass};
use tilework_abi::tensix::Processor;
use tilework_riscv::{Refuse, Width};

impl Tile {
    /// Steps the coprocessor before the cycle `end`, until it has a side effect outside itself;
    /// true when it has had none. No core and no event is due before `end`.
    pub(super) fn step_coprocessor(&mut self, end: Cycle) -> Result<bool, Fault> {
        let (tensix, mut outside) = self.shared.coprocessor(&mut self.ports);
        let result = tensix.run(end, &mut outside);
        if self.shared.tensix.take_has_pushed() {
            self.tell_of_pushes();
        }
        if result.is_ok() && !self.has_side_effects() {
            return Ok(true);
        }
        let at = self.shared.tensix.last_step();
        if let Some(value) = self.shared.fabric.pc_buf_override.take() {
            self.shared.tensix.set_pc_buf_override(value, at + 1);
        }
        match result {
            Ok(()) => self.handle_side_effects(),
            Err(Hold::Wake) => {
                // In each cycle the cores act before the coprocessor.
                let set = std::mem::take(&mut self.shared.fabric.wake);
                self.wake(set, at + 1);
            }
            Err(Hold::Fault(fault)) => return Err(fault.at_tile(self.xy).at_cycle(at)),
        }
        Ok(false)
    }

    /// Has the coprocessor make the pushes of core `i` that stand in a row and wait for room, if
    /// nobody looks at what each of them does.
    pub(super) fn offer_row(&mut self, i: usize) {
        let (core, fabric) = (Processor::ALL[i], &self.shared.fabric);
        let Some(thread) = thread_of(core) else { return };
        let seen = Wants::CORES | Wants::COUNTS | Wants::COPROCESSOR;
        let is_seen = fabric.recorder.as_ref().is_some_and(|recorder| recorder.wants_any(seen));
        let is_looked_at = is_seen || fabric.is_late || fabric.debug.port.wants_pause(core);
        let is_current = self.ports[i].code_seen == fabric.code_generation;
        let state = &self.slots[i].core;
        if let (false, true, Some(page)) = (is_looked_at, is_current, state.current_page()) {
            let by = Issuer { core, pc: state.pc };
            let row = Row::of(by, state.now, page, fabric.code_generation);
            self.shared.tensix.set_row(thread, row);
        }
    }

    /// Nobody makes the pushes of core `i` but itself any more.
    pub(super) fn withdraw_row(&mut self, i: usize) {
        if let Some(thread) = thread_of(Processor::ALL[i]) {
            self.shared.tensix.set_row(thread, None);
        }
    }

    /// Tells the cores which of their pushes have been made.
    fn tell_of_pushes(&mut self) {
        for (core, slot) in Processor::ALL.into_iter().zip(&mut self.slots) {
            if let Some((count, at)) = thread_of(core).and_then(|thread| self.shared.tensix.take_made(thread)) {
                slot.core.has_pushed(count, at);
            }
        }
    }
}

impl Outside for Reach<'_> {
    #[inline]
    fn begins(&mut self, at: Cycle) {
        self.fabric.step = at;
    }
    #[inline]
    fn has_side_effects(&self) -> bool {
        self.fabric.has_side_effects()
    }
    fn must_wake(&mut self, addr: u32, len: u32) -> bool {
        let sleepers = mask_out(self.fabric.sleepers_on(u64::from(addr), len), COPROCESSOR);
        self.fabric.wake |= sleepers;
        sleepers != 0
    }
    fn sleep_on(&mut self, addr: u32) {
        self.fabric.watch(COPROCESSOR, Fabric::around(addr));
    }
    #[inline]
    fn code_changes(&self) -> u64 {
        self.fabric.code_generation
    }
    fn l1(&self) -> &[u8] {
        &self.fabric.l1[..]
    }
    fn write_l1(&mut self, addr: u32, data: &[u8]) {
        self.fabric.l1_write(addr, data);
        self.fabric.changed(self.fabric.step, addr, data.len() as u32);
        self.wrote(addr, data.len() as u32);
    }
    fn copy_l1(&mut self, dst: u32, src: u32, len: u32) {
        self.fabric.l1.copy_within(src as usize..(src + len) as usize, dst as usize);
        self.fabric.drop_code(dst, len);
        self.fabric.changed(self.fabric.step, dst, len);
        self.has_read(src, len);
        self.wrote(dst, len);
    }
    fn zero_l1(&mut self, addr: u32, len: u32) {
        self.fabric.l1[addr as usize..(addr + len) as usize].fill(0);
        self.fabric.drop_code(addr, len);
        self.fabric.changed(self.fabric.step, addr, len);
        self.wrote(addr, len);
    }
    fn load(&mut self, at: Cycle, addr: u32) -> Result<u32, Fault> {
        let load = Reach::load(self, None, at, addr, Width::Word);
        load.map(|load| load.value).map_err(|refuse| refused(refuse, addr))
    }
    fn store(&mut self, at: Cycle, addr: u32, value: u32) -> Result<(), Fault> {
        Reach::store(self, None, at, addr, Width::Word, value).map_err(|refuse| refused(refuse, addr))?;
        self.record_unit(Wants::REGISTERS, |by| What::UnitStore { by, addr, value });
        Ok(())
    }
    #[inline]
    fn works(&mut self, unit: Unit, thread: usize, from: Cycle, until: Cycle) {
        if let Some(recorder) = &mut self.fabric.recorder {
            recorder.works(unit, thread, from, until);
        }
    }
    #[inline]
    fn acting(&mut self, at: Cycle, unit: Unit, origin: &Origin) {
        if self.fabric.recorder.is_some() {
            self.fabric.acting = Some((at, unit, *origin));
        }
    }
    fn lost_posts(&mut self, at: Cycle, origin: Origin, semaphores: u8) {
        if let (Some(core), Some(pc), Some(recorder)) = (origin.core(), origin.pc(), &mut self.fabric.recorder)
            && recorder.wants(Wants::ACCESSES)
        {
            for semaphore in (0..8).filter(|i| semaphores >> i & 1 != 0) {
                recorder.record(at, Agent::Core(core), pc, What::PostLost { semaphore });
            }
        }
    }
    #[inline]
    fn executes(&mut self, at: Cycle, thread: usize, word: u32, origin: &Origin) {
        if let Some(recorder) = &mut self.fabric.recorder
            && recorder.wants(Wants::TENSIX)
            && let (Some(core), Some(pc)) = (origin.core(), origin.pc())
        {
            recorder.record(at, Agent::Core(core), pc, What::Tensix { thread: thread as u8, word });
        }
    }
    #[inline]
    fn is_followed(&self) -> bool {
        let followed = Wants::UNITS | Wants::TENSIX | Wants::COPROCESSOR;
        self.fabric.recorder.as_ref().is_some_and(|recorder| recorder.wants_any(followed))
    }
    #[inline]
    fn is_observed(&self) -> bool {
        self.fabric.records_accesses()
    }
    #[inline]
    fn is_watched(&self) -> bool {
        self.fabric.watches_coprocessor()
    }
    #[cold]
    fn passes(&mut self, at: Cycle, passing: &Passing) {
        if let Some(recorder) = &mut self.fabric.recorder {
            recorder.passes(at, passing);
        }
    }
    #[cold]
    fn watched(&mut self, at: Cycle, unit: Unit, origin: Origin, what: What) {
        if let Some(recorder) = &mut self.fabric.recorder {
            recorder.record(at, Agent::Coprocessor(unit), origin.pc().unwrap_or(0), what);
        }
    }
    #[inline]
    fn has_read(&mut self, addr: u32, len: u32) {
        if self.fabric.recorder.is_some() {
            self.record_unit(Wants::ACCESSES, |by| What::UnitRead { by, addr, len });
        }
    }
    fn has_read_spans(&mut self, spans: Spans) {
        if spans.count > 1 && self.fabric.recorder.as_ref().is_some_and(|recorder| recorder.takes_spans()) {
            return self.record_unit(Wants::ACCESSES, |by| What::UnitReads { by, spans });
        }
        spans.iter().for_each(|(addr, len)| self.has_read(addr, len));
    }
}

impl Reach<'_> {
    #[inline]
    fn wrote(&mut self, addr: u32, len: u32) {
        if let Some(recorder) = &mut self.fabric.recorder {
            if let Some((at, unit, _)) = self.fabric.acting {
                recorder.written(at, Agent::Coprocessor(unit), addr..addr + len);
            }
            self.record_unit(Wants::ACCESSES, |by| What::UnitWrite { by, addr, len });
        }
    }

    /// Records what the acting unit does, if such events or all accesses are wanted.
    #[cold]
    fn record_unit(&mut self, kind: Wants, what: impl FnOnce(Option<Processor>) -> What) {
        if let (Some((at, unit, origin)), Some(recorder)) = (self.fabric.acting, &mut self.fabric.recorder)
            && (recorder.wants(kind) || recorder.wants(Wants::ACCESSES))
        {
            recorder.record(at, Agent::Coprocessor(unit), origin.pc().unwrap_or(0), what(origin.core()));
        }
    }
}

fn refused(refuse: Refuse<Fault>, addr: u32) -> Fault {
    let fault = match refuse {
        Refuse::Fault(fault) => fault,
        Refuse::Sync | Refuse::Block => Fault::new(
            FaultClass::MissingSpecification,
            "the coprocessor accesses a register that can block",
            "BlackholeA0/TensixTile/BabyRISCV/README.md, memory map",
        ),
    };
    fault.at_addr(u64::from(addr))
}
