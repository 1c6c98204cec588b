//! A core's view of its tile: the fast paths of loads and stores, and the order among the agents of
//! a tile.
//!
//! Shared accesses happen in the order of (cycle, core): an access that is not before
//! [`TileBus::horizon`] is refused with [`Refuse::Sync`] and retried when the others have caught
//! up. Private accesses need no such order.
//!
//! The bus exists three times: `PROBED` records every access for the observers of the chip, and
//! `COUNTED` every instruction; the one that does neither contains nothing of that.

mod quick;
mod told;

use super::access::Shared;
use super::fabric::put;
use super::port::Ports;
use super::wake;
use super::watches::CoreSet;
use crate::noc::{Leaving, Outbox, wraps};
use crate::probe::{Agent, What};
use crate::tensix::Issuer;
use crate::{Fault, FaultClass, NEVER, tensix, timing};
use std::sync::Arc;
use tilework_abi::address_map::niu_register;
use tilework_abi::tensix::{self as map, Processor};
use tilework_riscv::{
    Access, Amo, Bus, CodePage, CsrFile, Cycle, Effect, Insn, Load, NotQuick, Op, Refuse, Store, Width,
};

// The largest local RAM.
const _: () = assert!(map::LOCAL_SIZE_DM >= map::LOCAL_SIZE_TRISC);

/// A core's bus during one run.
pub(super) struct TileBus<'a, const PROBED: bool, const COUNTED: bool> {
    pub(super) shared: &'a mut Shared,
    pub(super) core: Processor,
    /// Those of all cores; its own is at its index.
    pub(super) ports: &'a mut Ports,
    /// Shared accesses at or after this cycle must wait.
    pub(super) horizon: Cycle,
    /// What leaves the tile; `None` during speculation, when nothing does.
    pub(super) out: Option<&'a mut Outbox>,
    /// The cycle at which the only started request leaves, when no other agent can observe that: it
    /// is then sent before the first register access from that cycle on. Most requests are reads
    /// that the core then waits for.
    pub(super) due: Cycle,
}

type Refused = Refuse<Fault>;

impl<const PROBED: bool, const COUNTED: bool> TileBus<'_, PROBED, COUNTED> {
    /// Asks for the sleepers to be woken before a write; true when there are any.
    fn must_wake(&mut self, sleepers: CoreSet) -> bool {
        let sleepers = sleepers & !(1 << self.core.index());
        if self.shared.fabric.log.on && sleepers & !self.shared.fabric.log.running != 0 {
            self.shared.fabric.log.stopped = true;
        } else {
            self.shared.fabric.wake |= sleepers;
        }
        sleepers != 0
    }

    /// True during speculation, which ends before this access.
    fn stops_here(&mut self) -> bool {
        self.shared.fabric.log.stopped |= self.shared.fabric.log.on;
        self.shared.fabric.log.on
    }

    /// Sends the request that is due.
    #[inline(never)]
    fn settle(&mut self) {
        self.due = NEVER;
        if let Some(out) = &mut self.out
            && let Some((noc, start)) = self.shared.fabric.started.pop_if(|(_, start)| start.is_plain_read())
            && let Leaving::Read(initiator, packet) = start.leaving
        {
            self.shared.nius[usize::from(noc)].depart_plain_read(start.at, initiator, packet, out);
        }
    }

    /// Starts a request if that is what the store does and nobody sleeps on the NIU's registers;
    /// `None`, without effect, for anything else and for what [`TileBus::store_register`] refuses.
    fn quick_start(&mut self, at: Cycle, addr: u32, width: Width, value: u32) -> Option<Store> {
        let (noc, offset) = niu_register(addr)?;
        let plain = width == Width::Word && at < self.horizon.min(self.due) && !self.shared.fabric.log.on;
        if !plain || self.shared.fabric.watches.is_watched(wake::NIU << noc) || self.shared.fabric.recorder.is_some() {
            return None;
        }
        let start = self.shared.nius[noc].quick_start(offset, value, at)?;
        self.shared.fabric.started.push((noc as u8, start));
        self.limit_by_started();
        self.limit_by_coprocessor();
        Some(Store { hold: 0, effect: Effect::Visible })
    }

    /// Ends the turn where a request that the core has started leaves, because others may see that.
    fn limit_by_started(&mut self) {
        self.due = NEVER;
        let [(noc, start)] = &self.shared.fabric.started[..] else {
            let first = self.shared.fabric.started.first().map_or(NEVER, |(_, start)| start.at);
            self.horizon = self.horizon.min(first);
            return;
        };
        if start.is_plain_read() && self.shared.fabric.watches.on_classes(wake::NIU << noc) == 0 {
            self.due = start.at;
            // The earliest cycle of its answer.
            self.horizon = self.horizon.min(start.at + timing::LOOKAHEAD);
        } else {
            self.horizon = self.horizon.min(start.at);
        }
    }

    #[cold]
    #[inline(never)]
    fn load_register(&mut self, at: Cycle, addr: u32, width: Width) -> Result<Load, Refused> {
        if self.stops_here() {
            return Err(Refuse::Sync);
        }
        let load = self.shared.reach(self.ports).load(Some(self.core), at, addr, width)?;
        self.limit_by_coprocessor();
        Ok(load)
    }

    #[cold]
    #[inline(never)]
    fn store_register(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) -> Result<Store, Refused> {
        if self.stops_here() {
            return Err(Refuse::Sync);
        }
        if at >= self.due {
            self.settle();
        }
        let sleepers = self.shared.fabric.sleepers_on(u64::from(addr), width.bytes());
        if self.must_wake(sleepers) {
            return Err(Refuse::Sync);
        }
        let by = Issuer { core: self.core, pc };
        self.shared.reach(self.ports).store(Some(by), at, addr, width, value)?;
        // A reset takes effect before the core continues.
        if self.shared.fabric.reset_changed.is_some() {
            self.horizon = 0;
        }
        if !self.shared.fabric.started.is_empty() {
            self.limit_by_started();
        }
        self.limit_by_coprocessor();
        Ok(Store { hold: 0, effect: Effect::Visible })
    }

    /// Ends the turn after an access that may have given the coprocessor work, which comes after
    /// the cores in each cycle, or unblocked another core.
    fn limit_by_coprocessor(&mut self) {
        self.horizon = match self.shared.tensix.has_changed() {
            true => 0,
            false => self.horizon.min(self.shared.tensix.next().saturating_add(1)),
        };
    }

    /// Pushes an instruction into the core's own Tensix thread, which needs no order with other
    /// agents as long as there is room.
    fn push(&mut self, thread: usize, at: Cycle, pc: u32, word: u32) -> Result<(), Refused> {
        if self.stops_here() {
            return Err(Refuse::Sync);
        }
        if self.shared.tensix.push(Issuer { core: self.core, pc }, thread, word, at)? {
            self.horizon = self.horizon.min(self.shared.tensix.next().saturating_add(1));
            return Ok(());
        }
        // Of the instructions before, the coprocessor may still take some before `at`: the core
        // tries again then, as if it had come here only now.
        Err(Refuse::Block)
    }

    /// A store to a line of L1 that holds code or that a sleeper watches.
    fn store_marked(&mut self, at: Cycle, addr: u32, width: Width, value: u32) -> Result<Store, Refused> {
        if at >= self.horizon {
            return Err(Refuse::Sync);
        }
        let sleepers = self.shared.fabric.sleepers_on_l1(addr, width.bytes());
        if self.must_wake(sleepers) {
            return Err(Refuse::Sync);
        }
        // What has left cannot be rolled back.
        let is_source = self.shared.fabric.is_source(addr, width.bytes());
        if is_source && self.stops_here() {
            return Err(Refuse::Sync);
        }
        if self.shared.fabric.log.on {
            let word = addr & !3;
            self.shared.fabric.log.log_l1(word, self.shared.fabric.l1_load(word, Width::Word));
        }
        self.ports[self.core.index()].l0.drop_line(addr);
        put(&mut self.shared.fabric.l1[..], addr as usize, width, value);
        self.shared.fabric.drop_code(addr, width.bytes());
        if is_source {
            self.shared.fabric.changed(at, addr, width.bytes());
        }
        let effect = if self.take_code_changed() { Effect::Code } else { Effect::Visible };
        Ok(Store { hold: self.ports[self.core.index()].stores.push(at, addr), effect })
    }

    fn load_anywhere(&mut self, at: Cycle, addr: u32, width: Width) -> Result<Load, Refused> {
        if (self.due..self.horizon).contains(&at) && !self.shared.fabric.log.on && niu_register(addr).is_some() {
            // Mostly a counter, whose read waited only for the request to leave.
            self.settle();
        }
        if let Ok(load) = self.load_within_loop(at, addr, width) {
            return Ok(load);
        }
        if at >= self.horizon {
            return Err(Refuse::Sync);
        }
        if at >= self.due && !self.shared.fabric.log.on {
            self.settle();
        }
        self.load_register(at, addr, width)
    }

    fn store_anywhere(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) -> Result<Store, Refused> {
        self.shared.fabric.log.make_room();
        if addr < map::L1_SIZE && at < self.horizon && self.shared.fabric.l1_load(addr, width) == value & width.mask() {
            // The value does not change: no sleeper has to wake, and decoded code stays valid.
            self.ports[self.core.index()].l0.drop_line(addr);
            return Ok(Store { hold: self.ports[self.core.index()].stores.push(at, addr), effect: Effect::Same });
        }
        // The run loop has tried the quick path already, unless it records.
        if niu_register(addr).is_some() {
            if let Some(store) = self.quick_start(at, addr, width, value) {
                return Ok(store);
            }
        } else if let Ok(store) = self.store_within_loop(at, pc, addr, width, value) {
            return Ok(store);
        }
        if addr < map::L1_SIZE {
            return self.store_marked(at, addr, width, value);
        }
        if addr == map::INSTRN_BUF_BASE
            && width == Width::Word
            && let Some(thread) = tensix::thread_of(self.core)
        {
            return self.push(thread, at, pc, value).map(|()| Store { hold: 0, effect: Effect::Visible });
        }
        if at >= self.horizon {
            return Err(Refuse::Sync);
        }
        self.store_register(at, pc, addr, width, value)
    }
}

impl<const PROBED: bool, const COUNTED: bool> Bus for TileBus<'_, PROBED, COUNTED> {
    type Fault = Fault;

    const COUNTS: bool = COUNTED;

    #[inline(always)]
    fn issue(&mut self, at: Cycle, pc: u32, executed: u64) {
        if COUNTED && let Some(recorder) = &mut self.shared.fabric.recorder {
            recorder.issue(self.core, at, pc, executed);
        }
    }

    fn code(&mut self, at: Cycle, pc: u32) -> Result<Arc<CodePage>, Fault> {
        let core = self.core;
        if self.records().is_some()
            && self.shared.fabric.stale_code.at(core, pc)
            && let Some(recorder) = self.records()
        {
            recorder.record(at, Agent::Core(core), pc, What::StaleCode);
        }
        self.shared.fabric.code(pc)
    }

    #[inline(always)]
    fn quick_load(&mut self, at: Cycle, pc: u32, addr: u32, width: Width) -> Result<Load, NotQuick> {
        let load = self.load_within_loop(at, addr, width)?;
        self.loaded(at, pc, addr, width, load);
        Ok(load)
    }

    #[inline(always)]
    fn quick_store(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) -> Result<Store, NotQuick> {
        let store = self.store_within_loop(at, pc, addr, width, value)?;
        self.stored(at, pc, addr, width, value);
        Ok(store)
    }

    fn load(&mut self, at: Cycle, pc: u32, addr: u32, width: Width) -> Result<Load, Refused> {
        let load = self.load_anywhere(at, addr, width)?;
        self.loaded(at, pc, addr, width, load);
        Ok(load)
    }

    fn store(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) -> Result<Store, Refused> {
        let store = self.store_anywhere(at, pc, addr, width, value)?;
        if self.shared.fabric.recorder.is_some() {
            self.observe_store(at, pc, addr, width, value);
        }
        Ok(store)
    }

    fn amo(&mut self, at: Cycle, pc: u32, op: Amo, addr: u32, value: u32) -> Result<Load, Refused> {
        if addr >= map::L1_SIZE {
            return Err(Refuse::Fault(
                Fault::new(
                    FaultClass::UndefinedBehavior,
                    "atomics work on L1 only",
                    "BlackholeA0/TensixTile/BabyRISCV/MemoryOrdering.md, Atomics",
                )
                .at_addr(u64::from(addr)),
            ));
        }
        if at >= self.horizon || self.stops_here() {
            return Err(Refuse::Sync);
        }
        let sleepers = self.shared.fabric.sleepers_on_l1(addr, 4);
        if self.must_wake(sleepers) {
            return Err(Refuse::Sync);
        }
        let drain = self.ports[self.core.index()].stores.drain(at);
        self.ports[self.core.index()].l0.flush(at);
        let old = self.shared.fabric.l1_load(addr, Width::Word);
        self.shared.fabric.l1_store(addr, Width::Word, op.apply(old, value));
        self.shared.fabric.changed(at, addr, 4);
        let core = self.core;
        if let Some(recorder) = self.records() {
            recorder.record_access(core, at, pc, false, What::Atomic { addr, value: old });
            if op == Amo::Add && wraps(old, value, u32::MAX) {
                recorder.record(at, Agent::Core(core), pc, What::Wrapped { addr, value: old, added: value });
            }
        }
        let latency = timing::ATOMIC_L1 + u32::try_from(drain).unwrap_or(u32::MAX / 2);
        Ok(Load { value: old, latency, access: Access::Volatile })
    }

    #[inline(always)]
    fn knows_effect(&self, addr: u32, width: Width, value: u32) -> bool {
        // Who records accesses is told of these by `store`.
        !PROBED
            && if addr < map::L1_SIZE {
                self.shared.fabric.l1_load(addr, width) != value & width.mask()
            } else {
                addr.wrapping_sub(map::LOCAL_BASE) < map::LOCAL_SIZE_DM
            }
    }

    #[inline]
    fn fence(&mut self, at: Cycle, pc: u32, code: bool) -> u32 {
        let core = self.core;
        if let Some(recorder) = self.records() {
            recorder.fence(core, at, pc);
            if code {
                self.shared.fabric.stale_code.emptied(core);
            }
        }
        self.ports[self.core.index()].l0.flush(at);
        u32::try_from(self.ports[self.core.index()].stores.drain(at)).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn quick_ttinsns(&mut self, at: Cycle, limit: Cycle, pc: u32, insns: &[Insn]) -> Result<usize, NotQuick> {
        // Who counts instructions is told each of them.
        let most = if COUNTED { 1 } else { usize::try_from(limit - at).unwrap_or(usize::MAX) };
        let row = insns.iter().take(most).take_while(|insn| insn.op == Op::Ttinsn);
        let pushed = self.quick_pushes(at, pc, row.map(|insn| insn.imm.cast_unsigned()))?;
        for i in 0..pushed {
            self.pushed(at + i as Cycle, pc.wrapping_add(4 * i as u32));
        }
        Ok(pushed)
    }

    fn ttinsn(&mut self, at: Cycle, pc: u32, word: u32) -> Result<u32, Refused> {
        match tensix::thread_of(self.core) {
            Some(thread) => {
                self.push(thread, at, pc, word)?;
                self.pushed(at, pc);
                Ok(0)
            }
            None if at >= self.horizon => Err(Refuse::Sync),
            // As a store (PushTensixInstruction.md): to thread 0 for BRISC, nowhere for NCRISC.
            None => self.store_register(at, pc, map::INSTRN_BUF_BASE, Width::Word, word).map(|store| store.hold),
        }
    }

    #[inline(always)]
    fn take_code_changed(&mut self) -> bool {
        let changed = self.ports[self.core.index()].code_seen != self.shared.fabric.code_generation;
        if changed {
            self.ports[self.core.index()].code_seen = self.shared.fabric.code_generation;
        }
        changed
    }

    fn csr_read(&mut self, at: Cycle, csr: u16) -> Result<Option<u32>, Refused> {
        if at >= self.horizon || self.stops_here() {
            return Err(Refuse::Sync);
        }
        Ok(self.shared.tensix.status_csr(self.core, csr, at))
    }

    fn csr_changed(&mut self, _at: Cycle, csr: &CsrFile) {
        self.ports[self.core.index()].l0.configure(csr);
    }

    #[inline]
    fn steady_word(&mut self, at: Cycle, addr: u32) -> Option<(u32, u32)> {
        let (noc, offset) = niu_register(addr)?;
        let quick = !PROBED && at < self.horizon && !self.shared.fabric.log.on;
        if !quick || self.shared.fabric.is_leaving(noc) {
            return None;
        }
        if at >= self.due {
            self.settle();
        }
        Some((self.shared.nius[noc].read_word(offset)?, timing::LOAD_TILE_REG))
    }

    fn cache_token(&self) -> [u32; 4] {
        self.ports[self.core.index()].l0.tags()
    }

    fn draining(&self, at: Cycle) -> Cycle {
        self.ports[self.core.index()].stores.drain(at)
    }
}
