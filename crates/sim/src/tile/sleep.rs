//! Cores that fall asleep in a poll loop or a blocked access, and who wakes them.

use super::events::Event;
use super::fabric::Fabric;
use super::watches::{COPROCESSOR, CoreSet};
use super::{Activity, Tile, commands_cores, shows_cores, wake};
use crate::bits::members;
use crate::noc::Packet;
use crate::probe::What;
use crate::tensix::Awaits;
use std::ops::Range;
use tilework_abi::address_map::niu_register;
use tilework_abi::tensix::{self as map, Processor};
use tilework_riscv::{Cycle, Watch};

impl Tile {
    #[inline]
    pub(super) fn wake(&mut self, set: CoreSet, at: Cycle) {
        if set != 0 {
            let parked = if self.late.is_some() { self.parked() } else { 0 };
            self.wake_members(set, at);
            self.make_late(set & parked);
        }
    }

    pub(super) fn wake_members(&mut self, set: CoreSet, at: Cycle) {
        for i in members(set & !(1 << COPROCESSOR)) {
            if self.slots[i].activity == Activity::Parked {
                let core = &mut self.slots[i].core;
                let skipped = core.wake_for_change(at);
                self.ports[i].stores.skip(core.now - skipped, skipped);
                self.set_activity(i, Activity::Running);
                self.shared.fabric.unwatch(i);
                if let Some(recorder) = &mut self.shared.fabric.recorder {
                    recorder.wakes(Processor::ALL[i], at);
                }
                self.record_core(i, |_| What::Resumed);
            }
        }
        if set >> COPROCESSOR & 1 != 0 {
            self.shared.fabric.unwatch(COPROCESSOR);
            self.shared.tensix.wake(at);
        }
    }

    /// Wakes cores before the first event, at cycle `at`, is applied.
    pub(super) fn wake_for_event(&mut self, set: CoreSet, at: Cycle) {
        let looks = |packet: &Packet| shows_cores(packet) || commands_cores(packet);
        let is_seen = matches!(self.queue.peek(), Some(Event::Packet(packet)) if looks(packet));
        let one = if set & (set - 1) == 0 { set.trailing_zeros() as usize } else { COPROCESSOR };
        let is_parked = self.slots.get(one).is_some_and(|slot| slot.activity == Activity::Parked);
        // Who records accesses or counts instructions sees each of them.
        let is_seen = is_seen || self.shared.fabric.probes() != (false, false);
        let polls_registers = is_parked && !is_seen && self.shared.fabric.watches.sleeps_on_registers_only(one);
        let parked = if self.late.is_some() { self.parked() } else { 0 };
        self.wake_members(set, at);
        if polls_registers {
            self.slots[one].core.finish_iteration(at);
        }
        self.make_late(set & parked);
    }

    /// Those that wait for `what` try again.
    pub(super) fn wake_blocked(&mut self, at: Cycle, what: Awaits) {
        for (i, core) in Processor::ALL.into_iter().enumerate() {
            let Activity::Blocked { addr } = self.slots[i].activity else { continue };
            let awaits = Awaits::of(core, addr);
            if what.meets(awaits) {
                self.slots[i].core.wake(at);
                let paused = self.shared.fabric.debug.port.take_pause(core);
                self.set_activity(i, if paused { Activity::Paused } else { Activity::Running });
                self.record_core(i, |_| What::Resumed);
            } else {
                self.shared.tensix.core_blocks(awaits);
            }
        }
    }

    /// A core can be blocked in a push of a later cycle than the others have come to. At cycle `at`
    /// it has not come to that push: it is running.
    pub(super) fn resume_early_blocked(&mut self, at: Cycle) {
        for i in 0..self.slots.len() {
            let slot = &self.slots[i];
            if matches!(slot.activity, Activity::Blocked { .. }) && slot.core.now > at {
                self.set_activity(i, Activity::Running);
            }
        }
    }

    /// Puts core `i` to sleep, unless what it polls has changed since it looked.
    pub(super) fn park(&mut self, i: usize) {
        let processor = Processor::ALL[i];
        let now = self.slots[i].core.now;
        let Some(poll) = self.slots[i].core.parked() else { return };
        if let [watch] = &poll.watched[..]
            && let Some((noc, offset)) = niu_register(watch.addr)
            && self.shared.nius[noc].read_word(offset) == Some(watch.value)
            && self.shared.fabric.recorder.is_none()
        {
            // As mostly: it polls a counter of an NIU.
            self.shared.fabric.watch(i, bytes_of(watch));
            return self.set_activity(i, Activity::Parked);
        }
        let last_iteration = poll.start - poll.period;
        let l0 = &self.ports[i].l0;
        // A line that the cache has held since before the last iteration is not read from L1 by the
        // next one either: no store becomes visible through it (a loop without a fence).
        let is_stale = |watch: &Watch| {
            let since = if watch.addr < map::L1_SIZE { l0.held_since(watch.addr) } else { None };
            since.is_some_and(|since| since < last_iteration)
        };
        // What the cache holds beside the watched bytes is not as old as it would be in a core that
        // polls, unless each iteration empties the cache before it loads anything.
        let first_load =
            poll.watched.iter().filter(|watch| !watch.stored && watch.addr < map::L1_SIZE).map(|watch| watch.at);
        let is_fresh = l0.is_fresh(last_iteration, first_load.min().unwrap_or(0));
        let stale = poll.watched.iter().enumerate().filter(|(_, watch)| is_stale(watch));
        let stale = stale.fold(0_u32, |set, (n, _)| set | 1 << n);
        let seen = || poll.watched.iter().enumerate().filter(|(n, _)| stale >> n & 1 == 0).map(|(_, watch)| watch);
        let mut reach = self.shared.reach(&mut self.ports);
        if seen().all(|w| reach.peek(processor, now, w.addr, w.width) == Some(w.value)) {
            for watch in seen() {
                self.shared.fabric.watch(i, if is_fresh { bytes_of(watch) } else { Fabric::around(watch.addr) });
            }
            self.set_activity(i, Activity::Parked);
            self.record_core(i, |core| {
                let watched = core.parked().map_or(&[][..], |poll| &poll.watched);
                let addrs = watched.iter().filter(|watch| !watch.stored).map(|watch| watch.addr);
                // As large as needed, so that nothing is copied.
                let mut all = Vec::with_capacity(addrs.clone().count());
                all.extend(addrs);
                What::Parked(all.into_boxed_slice())
            });
        } else {
            self.slots[i].core.wake(now);
        }
    }

    /// The cores that must wake before `event` is applied.
    pub(super) fn sleepers_on_event(&self, event: &Event) -> CoreSet {
        if !self.shared.fabric.watches.has_sleepers() {
            return 0;
        }
        match event {
            Event::Depart(noc, _) => self.shared.fabric.watches.on_classes(wake::NIU << noc),
            Event::Packet(packet) => {
                let moved = if packet.body.is_request() { wake::NIU_SERVED } else { wake::NIU };
                let mut set = self.shared.fabric.watches.on_classes(moved << packet.noc);
                if shows_cores(packet) || commands_cores(packet) {
                    set |= self.parked();
                }
                if let Some(touch) = packet.body.touches() {
                    set |= self.shared.fabric.sleepers_on(touch.addr, touch.len as u32);
                }
                set
            }
        }
    }

    /// The cores that sleep.
    pub(super) fn parked(&self) -> CoreSet {
        let parked = self.slots.iter().enumerate().filter(|(_, slot)| slot.activity == Activity::Parked);
        parked.fold(0, |set, (i, _)| set | 1 << i)
    }
}

/// The bytes that a poll loop accesses.
fn bytes_of(watch: &Watch) -> Range<u32> {
    watch.addr..watch.addr + watch.width.bytes()
}
